//! Where do the elements of a box come from, and were they ever written?

use std::sync::{Arc, Mutex, PoisonError};

use chunkwise_codec::DecodeError;
use chunkwise_engine::{
    ChunkIndex, Dataset, Layout, LostChunk, OnePass, ReadError, fill_run, zeroed,
};
use chunkwise_libhdf5::StoredBoxes;
use chunkwise_select::ChunkGrid;

use crate::cells::Extent;
use crate::checksum::checksum;
use crate::{CopyError, Progress};

/// A dataset that is copied.
pub struct Source {
    /// What reads it; None where libhdf5 does.
    pub engine: Option<Arc<Dataset>>,
    /// libhdf5's own way to it.
    pub boxes: StoredBoxes,
    /// Bytes of an element.
    pub element_size: usize,
    /// An element that was never written; None where it may be anything.
    pub fill: Option<Vec<u8>>,
    /// Its chunks, and which were written; None without chunks.
    pub written: Option<(ChunkGrid, Arc<ChunkIndex>)>,
    /// Whether elements that were never written need not be written either.
    pub stays_sparse: bool,
    /// Stored bytes that may be fetched before they are decoded.
    pub ahead_nbytes: u64,
    /// Where chunks are listed that cannot be read; None: they are errors.
    pub lost: Option<Mutex<Vec<LostChunk>>>,
}

/// What reading took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Chunks that went through filters.
    pub decodes: u64,
    /// Stored bytes.
    pub stored_nbytes: u64,
}

impl Source {
    /// Read a box to `out`, row-major; elements that were never written are the fill value, or
    /// zeros where there is none.
    pub fn read(
        &self,
        extent: &Extent,
        out: &mut [u8],
        threads: usize,
        progress: &Progress,
    ) -> Result<Cost, CopyError> {
        if progress.is_cancelled() {
            return Err(CopyError::Cancelled);
        }
        let Some(dataset) = &self.engine else { return self.read_by_library(extent, out) };
        let selection = extent.selection(dataset.shape())?;
        let figures = dataset.explain(&selection)?;
        if dataset.leaves_missing_untouched() && (figures.missing_chunks > 0 || self.is_unwritten())
        {
            out.fill(0);
        }
        let plan = dataset.plan(&selection)?;
        let pass = OnePass { threads, ahead_nbytes: self.ahead_nbytes, lost: self.lost.as_ref() };
        let read = dataset.read_once(&plan, out, &progress.cancelled, pass);
        match read {
            // What only libhdf5 makes sense of.
            Err(ReadError::Decode { source: DecodeError::Unsupported { .. }, .. }) => {
                return self.read_by_library(extent, out);
            }
            Err(ReadError::Cancelled) => return Err(CopyError::Cancelled),
            read => read?,
        }
        Ok(Cost { decodes: figures.filtered_chunks, stored_nbytes: figures.stored_nbytes })
    }

    fn read_by_library(&self, extent: &Extent, out: &mut [u8]) -> Result<Cost, CopyError> {
        // What libhdf5 leaves untouched is not what the buffer held before.
        out.fill(0);
        let failed = match self.boxes.read(&extent.origin, &extent.shape, out) {
            Ok(()) => return Ok(Cost { decodes: 0, stored_nbytes: out.len() as u64 }),
            Err(error) => error.to_string(),
        };
        let (Some(lost), Some((grid, index))) = (&self.lost, &self.written) else {
            return Err(CopyError::Library { origin: extent.origin.clone(), message: failed });
        };
        // Chunk by chunk, to find out which of them it is.
        let chunks = extent.touches(grid);
        for number in 0..chunks.len() {
            let position = chunks.position(grid, number);
            let chunk = Extent::of_chunk(grid, position);
            let part = chunk.within(extent);
            let nbytes = part.nbytes(self.element_size);
            let len = usize::try_from(nbytes).map_err(|_| ReadError::Memory(Some(nbytes)))?;
            let mut elements = zeroed(len)?;
            if let Err(error) = self.boxes.read(&part.origin, &part.shape, &mut elements) {
                if let Some(fill) = &self.fill {
                    fill_run(&mut elements, fill);
                } else {
                    elements.fill(0);
                }
                let record = index.get(position);
                let (address, len) = record.map_or((0, 0), |at| (at.address, at.stored_nbytes));
                let error = ReadError::Io { address, len, message: error.to_string() };
                let one = LostChunk { chunk_origin: chunk.origin, error };
                lost.lock().unwrap_or_else(PoisonError::into_inner).push(one);
            }
            part.put(&elements, extent, out, self.element_size);
        }
        Ok(Cost { decodes: 0, stored_nbytes: out.len() as u64 })
    }

    /// Nothing at all was written.
    fn is_unwritten(&self) -> bool {
        let unallocated = |dataset: &Arc<Dataset>| {
            matches!(dataset.info().layout, Layout::Contiguous { address: None })
        };
        self.engine.as_ref().is_some_and(unallocated)
            || self.written.as_ref().is_some_and(|(_, index)| index.written() == 0)
    }

    /// A checksum of where its data lie in the file: addresses, sizes and masks of all chunks.
    /// None where that is not known, or they lie in other files.
    pub fn whereabouts(&self) -> Option<u64> {
        let mut bytes = Vec::new();
        if let Some((_, index)) = &self.written {
            for position in index.positions() {
                let record = index.get(position)?;
                let mask = u64::from(record.filter_mask);
                for number in [position, record.address, record.stored_nbytes, mask] {
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
            }
        } else {
            let Layout::Contiguous { address } = self.engine.as_ref()?.info().layout else {
                return None;
            };
            bytes.extend_from_slice(&address.unwrap_or(u64::MAX).to_le_bytes());
        }
        Some(checksum(&bytes))
    }

    /// Whether any element of a box has to be written.
    pub fn has_any(&self, extent: &Extent) -> bool {
        if !self.stays_sparse {
            return true;
        }
        let Some((grid, index)) = &self.written else { return !self.is_unwritten() };
        if index.written() == grid.len() {
            return true;
        }
        let chunks = extent.touches(grid);
        (0..chunks.len()).any(|number| index.get(chunks.position(grid, number)).is_some())
    }

    /// Positions in `grid`, in order, of the boxes in which something has to be written; None for
    /// all of them.
    pub fn boxes_of(&self, grid: &ChunkGrid) -> Option<Vec<u64>> {
        if !self.stays_sparse {
            return None;
        }
        let Some((chunks, index)) = &self.written else {
            return self.is_unwritten().then(Vec::new);
        };
        if index.written() == chunks.len() {
            return None;
        }
        let mut found: Vec<u64> = Vec::new();
        let mut sorted = 0;
        for position in index.positions() {
            let boxes = Extent::of_chunk(chunks, position).touches(grid);
            found.extend((0..boxes.len()).map(|number| boxes.position(grid, number)));
            // Many chunks may touch the same boxes.
            if found.len() > 2 * sorted + 4096 {
                found.sort_unstable();
                found.dedup();
                sorted = found.len();
            }
        }
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    /// Chunks that could not be read, each once.
    pub fn lost_chunks(&self) -> Vec<LostChunk> {
        let Some(lost) = &self.lost else { return Vec::new() };
        let mut found = lost.lock().unwrap_or_else(PoisonError::into_inner).clone();
        found.sort_by(|a, b| a.chunk_origin.cmp(&b.chunk_origin));
        found.dedup_by(|a, b| a.chunk_origin == b.chunk_origin);
        found
    }

    /// How many chunks were found unreadable so far.
    pub fn lost_count(&self) -> usize {
        self.lost
            .as_ref()
            .map_or(0, |lost| lost.lock().unwrap_or_else(PoisonError::into_inner).len())
    }
}
