//! How is one chunk fetched from storage and decoded?

use std::cell::RefCell;
use std::sync::Arc;

use chunkwise_codec::{DecodeError, FilterKind, Scratch, resize};
use chunkwise_select::Dims;

use crate::cache_entry::{ChunkKey, Decoded};
use crate::dataset::Layout;
use crate::platform::Map;
use crate::process::ProcessState;
use crate::profile::{Laps, Phase, timed};
use crate::{ChunkPlace, ChunkRecord, Dataset, Lacking, ReadError};

/// More stored bytes than this are looked for in the file before there is room for them.
const CHECKED_NBYTES: u64 = 1 << 20;

/// What a thread reuses from chunk to chunk.
#[derive(Default)]
pub(crate) struct Buffers {
    pub stored: Vec<u8>,
    pub raw: Vec<u8>,
    /// Stored bytes of several chunks, and all of them inflated.
    pub several: Vec<Vec<u8>>,
    pub inflated: Vec<u8>,
    /// A chunk of which a part is decoded.
    pub part: Vec<u8>,
    /// At most this many bytes of its memory are in use: the system gives none for the others.
    pub part_nbytes: usize,
    pub scratch: Scratch,
}

impl Buffers {
    /// Buffers larger than this are given back after a read.
    const KEEP_NBYTES: usize = 32 << 20;

    fn trim(&mut self) {
        let own = [&mut self.stored, &mut self.raw, &mut self.inflated];
        for buffer in own.into_iter().chain(&mut self.several) {
            if buffer.capacity() > Self::KEEP_NBYTES {
                *buffer = Vec::new();
            }
        }
        if self.part_nbytes > Self::KEEP_NBYTES {
            (self.part, self.part_nbytes) = (Vec::new(), 0);
        }
        self.scratch.trim(Self::KEEP_NBYTES);
    }
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Run `work` with this thread's buffers.
pub(crate) fn with_buffers<T>(work: impl FnOnce(&mut Buffers) -> T) -> T {
    BUFFERS.with(|cell| match cell.try_borrow_mut() {
        Ok(mut buffers) => {
            let outcome = work(&mut buffers);
            buffers.trim();
            outcome
        }
        // Unreachable while chunk work does not call back into the pool; correct if it
        // ever does.
        Err(_) => work(&mut Buffers::default()),
    })
}

/// A chunk behind filters.
#[derive(Debug, Clone)]
pub(crate) struct StoredChunk {
    pub chunk_index: Dims,
    pub record: ChunkRecord,
}

/// The stored bytes of a chunk, where the file shows them.
#[derive(Clone, Copy)]
pub(crate) struct Mapped<'a> {
    pub map: &'a Map,
    pub bytes: &'a [u8],
    /// Threads that may help to decode it.
    pub helpers: usize,
    pub key: ChunkKey,
    pub read: u64,
}

/// A chunk's bytes as they are in the file.
#[derive(Clone, Copy)]
pub(crate) enum StoredBytes<'a> {
    /// All of them, read.
    Read(&'a [u8]),
    /// Where the file shows them: for chunks in blocks.
    Mapped(Mapped<'a>),
}

impl Dataset {
    /// Decode a chunk into a buffer that the thread reuses.
    pub(crate) fn decode_to(
        &self,
        chunk: &StoredChunk,
        stored: StoredBytes<'_>,
        (raw, scratch): (&mut Vec<u8>, &mut Scratch),
    ) -> Result<(), ReadError> {
        resize(raw, self.chunk_len()?)?;
        self.decode_into(chunk, stored, scratch, raw)
    }

    /// Decode a chunk into memory of its own, to be kept.
    pub(crate) fn decode_new(
        &self,
        chunk: &StoredChunk,
        stored: StoredBytes<'_>,
        scratch: &mut Scratch,
    ) -> Result<Decoded, ReadError> {
        let nbytes = self.chunk_len()?;
        let mut raw = ProcessState::of_this_process().cache().spare(nbytes);
        resize(&mut raw, nbytes)?;
        self.decode_into(chunk, stored, scratch, &mut raw)?;
        Ok(Arc::new(raw))
    }

    /// Bytes of a decoded chunk.
    fn chunk_len(&self) -> Result<usize, ReadError> {
        usize::try_from(self.chunk_nbytes).map_err(|_| ReadError::Memory(Some(self.chunk_nbytes)))
    }

    /// Bytes that a chunk has to decode to: up to the last element that the dataset has in it.
    pub(crate) fn needed_len(&self, chunk_index: &[u64]) -> Result<usize, ReadError> {
        let nbytes =
            self.grid.needed_len(chunk_index).saturating_mul(self.info.element_size as u64);
        usize::try_from(nbytes).map_err(|_| ReadError::Memory(Some(nbytes)))
    }

    /// What a chunk of which this many bytes were decoded lacks of the dataset's elements.
    pub(crate) fn lacking(&self, chunk_index: &[u64], nbytes: usize) -> Option<Lacking> {
        Lacking::of(&self.grid, chunk_index, nbytes as u64, self.info.element_size)
    }

    /// How many bytes the chunk takes in the file, unless they could not hold a chunk at all.
    pub(crate) fn stored_len(&self, chunk: &StoredChunk) -> Result<usize, ReadError> {
        let ChunkRecord { address, stored_nbytes: len, filter_mask } = chunk.record;
        // A claim is checked against the file before much memory is spent on it: a damaged
        // index may claim gigabytes, and so may the chunk's shape.
        if len > CHECKED_NBYTES {
            let end = self.storage.end();
            if address.checked_add(len).is_none_or(|last| last > end) {
                return Err(ReadError::TruncatedChunk { place: self.place(chunk), end });
            }
        }
        let nbytes = usize::try_from(len).map_err(|_| ReadError::Memory(Some(len)))?;
        if let Layout::Chunked { pipeline, .. } = &self.info.layout {
            pipeline
                .check_len(nbytes, filter_mask, self.needed_len(&chunk.chunk_index)?)
                .map_err(|source| ReadError::Decode { place: self.place(chunk), source })?;
        }
        Ok(nbytes)
    }

    /// Fill `stored` with the chunk's bytes as they are in the file.
    pub(crate) fn fetch(&self, chunk: &StoredChunk, stored: &mut Vec<u8>) -> Result<(), ReadError> {
        resize(stored, self.stored_len(chunk)?)?;
        let read = timed(Phase::Storage, || self.storage.read_at(chunk.record.address, stored));
        read.map_err(|error| self.name_chunk(error, chunk))
    }

    /// Say which chunk is cut off; a contiguous dataset's slabs are no chunks of the file.
    pub(crate) fn name_chunk(&self, error: ReadError, chunk: &StoredChunk) -> ReadError {
        match (error, &self.info.layout) {
            (ReadError::Truncated { end, .. }, Layout::Chunked { .. }) => {
                ReadError::TruncatedChunk { place: self.place(chunk), end }
            }
            (ReadError::Request { address, len, message, .. }, Layout::Chunked { .. }) => {
                ReadError::Request { place: Some(self.place(chunk)), address, len, message }
            }
            (other, _) => other,
        }
    }

    /// Decode a chunk into `out`, which is of a chunk's length.
    pub(crate) fn decode_into(
        &self,
        chunk: &StoredChunk,
        stored: StoredBytes<'_>,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(), ReadError> {
        let Layout::Chunked { pipeline, unfiltered_partial_chunks, .. } = &self.info.layout else {
            // Contiguous data never comes here: it has no filters.
            return Ok(());
        };
        let stored = match stored {
            StoredBytes::Read(stored) => stored,
            StoredBytes::Mapped(mapped) => {
                let done = self.decode_mapped(chunk, mapped, scratch, out);
                // Nobody reports that, but reads and decodes it in the other way.
                let source = DecodeError::Damaged { filter: "blockwise" };
                return done.ok_or_else(|| ReadError::Decode { place: self.place(chunk), source });
            }
        };
        ProcessState::of_this_process().count_decoded();
        let unfiltered = *unfiltered_partial_chunks && self.grid.is_partial(&chunk.chunk_index);
        let mask = if unfiltered { u32::MAX } else { chunk.record.filter_mask };
        let mut laps = Laps::begin();
        let done = |filter: FilterKind| laps.end(Phase::Decode(filter));
        let len = pipeline
            .decode_in_steps(stored, mask, scratch, out, done)
            .map_err(|source| ReadError::Decode { place: self.place(chunk), source })?;
        // The last chunk may hold only the elements that there are.
        match (len < out.len()).then(|| self.lacking(&chunk.chunk_index, len)).flatten() {
            Some(lacking) => {
                Err(ReadError::Short { place: self.place(chunk), lacking: Box::new(lacking) })
            }
            None => Ok(()),
        }
    }

    fn place(&self, chunk: &StoredChunk) -> ChunkPlace {
        ChunkPlace {
            chunk_origin: self.grid.origin(&chunk.chunk_index),
            address: chunk.record.address,
            stored_nbytes: chunk.record.stored_nbytes,
        }
    }
}
