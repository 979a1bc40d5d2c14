//! How does a target chunk come to be, once its elements can be had?

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chunkwise_codec::{EncodeScratch, Encoding, resize};
use chunkwise_engine::{EncodedChunk, ReadError, encode_chunk};

use crate::boxes::{ArrayBox, copy_box};
use crate::cells::{Cells, Extent};
use crate::checksum::checksum;
use crate::journal::Records;
use crate::{CopyError, Progress};

/// What a cell is made into.
#[derive(Debug, Clone)]
pub enum Form {
    /// A chunk's stored bytes.
    Chunk {
        encoding: Encoding,
        /// Chunks that reach beyond the shape pass no filter.
        unfiltered_partial_chunks: bool,
        /// An element beyond the shape.
        padding: Vec<u8>,
    },
    /// Its elements within the shape, which libhdf5 writes.
    Elements,
}

/// Buffers of one thread.
#[derive(Default)]
struct Buffers {
    packed: Vec<u8>,
    raw: Vec<u8>,
    encoded: Vec<u8>,
    scratch: EncodeScratch,
}

/// Makes cells, on any thread.
pub struct Maker<'a> {
    pub cells: &'a Cells,
    pub form: Form,
    /// What earlier work left, and where this work is noted.
    pub records: Option<&'a Records<'a>>,
    pub progress: &'a Progress,
    /// Threads that have no cell of their own, and help to encode large ones.
    pub helpers: usize,
    buffers: Mutex<Vec<Buffers>>,
}

impl<'a> Maker<'a> {
    pub fn new(
        cells: &'a Cells,
        form: Form,
        records: Option<&'a Records<'a>>,
        progress: &'a Progress,
        helpers: usize,
    ) -> Self {
        Self { cells, form, records, progress, helpers, buffers: Mutex::default() }
    }

    /// Make the cell at `position`; `elements` fills a buffer with its elements within the shape,
    /// row-major.
    pub fn make(
        &self,
        position: u64,
        elements: impl FnOnce(&Extent, &mut [u8]) -> Result<(), CopyError>,
        chunk: &mut EncodedChunk,
    ) -> Result<(), CopyError> {
        if self.progress.is_cancelled() {
            return Err(CopyError::Cancelled);
        }
        let extent = Extent::of_chunk(&self.cells.grid, position);
        chunk.chunk_origin = extent.origin.clone();
        let nbytes = extent.nbytes(self.cells.size);
        if !self.records.is_some_and(|records| records.replay(&extent.origin, chunk)) {
            let popped = self.locked().pop();
            let mut buffers = popped.unwrap_or_default();
            let made = self.encode(&extent, nbytes, elements, chunk, &mut buffers);
            self.locked().push(buffers);
            made?;
        }
        if let Some(records) = self.records {
            records.note(&extent.origin, checksum(&chunk.bytes));
        }
        self.progress.done_nbytes.fetch_add(nbytes, Relaxed);
        Ok(())
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Buffers>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fill the chunk.
    fn encode(
        &self,
        extent: &Extent,
        nbytes: u64,
        elements: impl FnOnce(&Extent, &mut [u8]) -> Result<(), CopyError>,
        chunk: &mut EncodedChunk,
        buffers: &mut Buffers,
    ) -> Result<(), CopyError> {
        let nbytes = usize::try_from(nbytes).map_err(|_| ReadError::Memory(Some(nbytes)))?;
        let Buffers { packed, raw, encoded, scratch } = buffers;
        let is_whole = extent.shape.as_slice() == self.cells.grid.chunk();
        chunk.filter_mask = 0;
        let take = |out: &mut Vec<u8>| -> Result<(), CopyError> {
            resize(out, nbytes).map_err(ReadError::from)?;
            elements(extent, out)
        };
        let Form::Chunk { encoding, unfiltered_partial_chunks, padding } = &self.form else {
            return take(&mut chunk.bytes);
        };
        let is_filtered = !encoding.steps().is_empty() && (is_whole || !unfiltered_partial_chunks);
        let full: &mut Vec<u8> = match (is_whole, is_filtered) {
            (true, false) => return take(&mut chunk.bytes),
            (true, true) => {
                take(raw)?;
                raw
            }
            (false, _) => {
                take(packed)?;
                let full = if is_filtered { raw } else { &mut chunk.bytes };
                self.pad(extent, packed, padding, full)?;
                full
            }
        };
        if is_filtered {
            // Into a buffer of the thread: encoders want room for the worst case, and what
            // waits to be written should take no more than it holds.
            let mask = encode_chunk(encoding, full, scratch, self.helpers, encoded);
            chunk.filter_mask = mask.map_err(|source| CopyError::Encode {
                chunk_origin: extent.origin.clone(),
                source,
            })?;
            chunk.bytes.clear();
            if chunk.bytes.capacity() > encoded.len() + encoded.len() / 4 {
                chunk.bytes = Vec::new();
            }
            resize(&mut chunk.bytes, encoded.len()).map_err(ReadError::from)?;
            chunk.bytes.copy_from_slice(encoded);
        }
        Ok(())
    }

    /// A whole chunk of elements that reach to the shape's edge, and padding beyond.
    fn pad(
        &self,
        extent: &Extent,
        packed: &[u8],
        padding: &[u8],
        full: &mut Vec<u8>,
    ) -> Result<(), CopyError> {
        let size = self.cells.size;
        let chunk = self.cells.grid.chunk();
        let nbytes = self.cells.grid.chunk_len().saturating_mul(size as u64);
        let nbytes = usize::try_from(nbytes).map_err(|_| ReadError::Memory(Some(nbytes)))?;
        resize(full, nbytes).map_err(ReadError::from)?;
        chunkwise_engine::fill_run(full, padding);
        let zeros: Vec<u64> = chunk.iter().map(|_| 0).collect();
        let from = ArrayBox { shape: &extent.shape, at: &zeros };
        let to = ArrayBox { shape: chunk, at: &zeros };
        copy_box(&extent.shape, size, (packed, from), (full, to))
            .ok_or_else(|| CopyError::Refused("a chunk does not fit the dataset".into()))
    }
}
