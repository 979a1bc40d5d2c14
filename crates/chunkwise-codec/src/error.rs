//! Why could a chunk not be decoded, or encoded?

use thiserror::Error;

/// Why a chunk could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Not what the filter writes, or damaged.
    #[error("the {filter} stream is damaged")]
    Damaged {
        /// The filter's name.
        filter: &'static str,
    },
    /// The output is far larger than any chunk it could be, and other filters want all of it.
    #[error("the {filter} stream holds more than {most} bytes")]
    TooLong {
        /// The filter's name.
        filter: &'static str,
        /// Bytes after which decoding stopped.
        most: usize,
    },
    /// Something that the dataset's options do not tell, and that only libhdf5's filter
    /// can decode.
    #[error("the {filter} stream uses {what}, which is not decoded natively")]
    Unsupported {
        /// The filter's name.
        filter: &'static str,
        /// What it uses.
        what: &'static str,
    },
    /// No memory for what comes out.
    #[error("there is no memory for {nbytes} bytes")]
    Memory {
        /// Bytes needed.
        nbytes: usize,
    },
    /// Fewer bytes than the checksum itself takes.
    #[error("{len} bytes are too few to hold a Fletcher-32 checksum")]
    NoChecksum {
        /// Bytes there are.
        len: usize,
    },
    /// The data is not what was written.
    #[error("the Fletcher-32 checksum is {stored:#010x}, the data's is {computed:#010x}")]
    Checksum {
        /// As stored with the data.
        stored: u32,
        /// As computed now.
        computed: u32,
    },
    /// Far too few bytes for a chunk, seen before decoding.
    #[error("{stored_len} stored bytes cannot decode to the {raw_len} that a chunk holds")]
    CannotHold {
        /// Bytes stored.
        stored_len: usize,
        /// Bytes a chunk holds.
        raw_len: usize,
    },
    /// Too few bytes for a chunk.
    #[error("decoding gave {len} bytes where a chunk holds {expected}")]
    TooShort {
        /// Bytes decoded.
        len: usize,
        /// Bytes a chunk holds.
        expected: usize,
    },
}

/// What decoding a chunk passed over, as libhdf5 does: it is whole, and more than was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// Bytes after the end of a filter's stream.
    pub trailing_nbytes: usize,
    /// Whether more was decoded than a chunk holds.
    pub beyond_chunk: bool,
}

impl PassedOver {
    /// Whether nothing was.
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            trailing_nbytes: self.trailing_nbytes.saturating_add(other.trailing_nbytes),
            beyond_chunk: self.beyond_chunk || other.beyond_chunk,
        }
    }
}

/// Why a chunk could not be encoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The filter cannot be applied to these bytes.
    #[error("the {filter} filter cannot encode this chunk")]
    Failed {
        /// The filter's name.
        filter: &'static str,
    },
    /// No memory for what comes out.
    #[error("there is no memory for {nbytes} bytes")]
    Memory {
        /// Bytes needed.
        nbytes: usize,
    },
}
