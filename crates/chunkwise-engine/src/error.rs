//! What can go wrong while reading, and where?

use chunkwise_codec::DecodeError;
use chunkwise_select::{ChunkGrid, Dims, SelectError};
use thiserror::Error;

/// Which chunk an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkPlace {
    /// Element where the chunk begins, slowest dimension first.
    pub chunk_origin: Dims,
    /// Where its bytes lie in the file.
    pub address: u64,
    /// How many bytes it takes there.
    pub stored_nbytes: u64,
}

impl std::fmt::Display for ChunkPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the chunk at element {:?} ({} bytes at address {})",
            self.chunk_origin.as_slice(),
            self.stored_nbytes,
            self.address
        )
    }
}

/// What a chunk lacks of the dataset's elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// Bytes that it decodes to.
    pub nbytes: u64,
    /// The first element that is missing.
    pub first: Dims,
    /// How many are missing, in row-major order of the chunk.
    pub elements: u64,
}

impl Lacking {
    /// What a chunk that decodes to this many bytes lacks of the dataset's elements.
    pub fn of(
        grid: &ChunkGrid,
        chunk_index: &[u64],
        nbytes: u64,
        element_size: usize,
    ) -> Option<Self> {
        let held = nbytes / (element_size as u64).max(1);
        let (first, elements) = grid.lacking(chunk_index, held)?;
        Some(Self { nbytes, first, elements })
    }
}

impl std::fmt::Display for Lacking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { nbytes, first, elements } = self;
        let first = first.as_slice();
        write!(f, "it decodes to {nbytes} bytes, and lacks {elements} elements from {first:?} on")
    }
}

/// Why a read failed.  The caller adds the file's and the dataset's name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The selection does not fit the dataset.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The destination has another size than the selection.
    #[error("the selection takes {selected} bytes, the destination holds {destination}")]
    Destination {
        /// Bytes selected.
        selected: u64,
        /// Bytes of the destination.
        destination: u64,
    },
    /// A chunk whose bytes do not decode.
    #[error("{place} cannot be decoded: {source}")]
    Decode {
        /// The chunk.
        place: ChunkPlace,
        /// What is wrong with its bytes.
        source: DecodeError,
    },
    /// A chunk that decodes to fewer bytes than the dataset's elements in it take.
    #[error("{place} is too short: {lacking}")]
    Short {
        /// The chunk.
        place: ChunkPlace,
        /// What it lacks.
        lacking: Box<Lacking>,
    },
    /// A chunk whose bytes are not all there.
    #[error(
        "the file ends at byte {end}, within or before {place}: it is truncated, or shrank while being read"
    )]
    TruncatedChunk {
        /// The chunk.
        place: ChunkPlace,
        /// Where the file ends.
        end: u64,
    },
    /// Bytes that are not there.
    #[error(
        "the file ends at byte {end}, before the {len} bytes at address {address}: it is truncated, or shrank while being read"
    )]
    Truncated {
        /// Where the bytes should lie.
        address: u64,
        /// How many there should be.
        len: u64,
        /// Where the file ends.
        end: u64,
    },
    /// The operating system's error.
    #[error("reading {len} bytes at address {address} failed: {message}")]
    Io {
        /// Where the bytes lie.
        address: u64,
        /// How many there are.
        len: u64,
        /// What the system said.
        message: String,
    },
    /// A request to a storage that is no local file, which failed for good.
    #[error("{}: {message}", .place.as_ref().map_or_else(|| format!("{len} bytes at address {address}"), ToString::to_string))]
    Request {
        /// The chunk, where it is one.
        place: Option<ChunkPlace>,
        /// Where the bytes lie.
        address: u64,
        /// How many there are.
        len: u64,
        /// What was answered, and what to do.
        message: String,
    },
    /// The storage does not hold any more what it held when it was opened.
    #[error("{0}")]
    Changed(String),
    /// Fields that do not lie within the elements.
    #[error("the fields do not lie within the elements")]
    Fields,
    /// A chunk index that is not as it should be: libhdf5 has to read the dataset.
    #[error("{0}")]
    Index(String),
    /// A file that is not any more what it was when the dataset was described.
    #[error("{0} was changed or replaced after it was opened")]
    Replaced(String),
    /// What went wrong in a source of a virtual dataset.
    #[error("{name}: {error}")]
    Source {
        /// File and dataset.
        name: String,
        /// The same as if it had been read by itself.
        error: Box<ReadError>,
    },
    /// The reader was cancelled.
    #[error("the read was cancelled")]
    Cancelled,
    /// More memory than the machine gives, or than a program can address.
    #[error("there is no memory for it{}", .0.map_or(String::new(), |n| format!(": {n} bytes")))]
    Memory(Option<u64>),
}

impl From<std::collections::TryReserveError> for ReadError {
    fn from(_: std::collections::TryReserveError) -> Self {
        Self::Memory(None)
    }
}
