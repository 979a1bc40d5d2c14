//! Which chunks have been written in part, or are not in the file yet, and which go first?
//!
//! What is here was written by somebody and exists nowhere else: nothing leaves before it is
//! committed.

use std::collections::{BTreeMap, TryReserveError};

use chunkwise_codec::resize;
use chunkwise_select::Dims;

use crate::write::coverage::Coverage;

/// A chunk that is not in the file as it should be.
#[derive(Debug)]
pub(super) struct DirtyChunk {
    /// Its elements; where they are not covered, anything.
    pub(super) raw: Vec<u8>,
    /// Those that were written since it came in.
    pub(super) covered: Coverage,
    /// When it was last written to.
    touched: u64,
    /// Nothing of it can be missing any more.
    full: bool,
}

impl DirtyChunk {
    fn nbytes(&self) -> usize {
        self.raw.len() + self.covered.nbytes()
    }
}

/// Dirty chunks by their places in the grid, and so in the order in which they are committed.
#[derive(Debug, Default)]
pub(super) struct DirtyChunks {
    chunks: BTreeMap<Dims, DirtyChunk>,
    held_nbytes: usize,
    full_nbytes: usize,
    clock: u64,
    /// Memory of chunks that have gone: fresh memory is zeroed by the system.
    spare: Vec<Vec<u8>>,
}

/// Buffers that are kept for the next chunks.
const MOST_SPARE: usize = 8;

impl DirtyChunks {
    /// Bytes held, what tells which elements are covered included.
    pub(super) fn held_nbytes(&self) -> usize {
        self.held_nbytes
    }

    /// Those of them in chunks to which nothing is missing.
    pub(super) fn full_nbytes(&self) -> usize {
        self.full_nbytes
    }

    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(super) fn get(&self, chunk_index: &[u64]) -> Option<&DirtyChunk> {
        self.chunks.get(chunk_index)
    }

    /// Change the chunk at `chunk_index`, which comes in with `nbytes` bytes and `len` elements
    /// if it is not here; it is full once `all` of them are covered.
    pub(super) fn change(
        &mut self,
        chunk_index: &Dims,
        (nbytes, len, all): (usize, u64, u64),
        change: impl FnOnce(&mut DirtyChunk),
    ) -> Result<(), TryReserveError> {
        if !self.chunks.contains_key(chunk_index) {
            let mut raw = self.spare.pop().unwrap_or_default();
            resize(&mut raw, nbytes)?;
            raw.truncate(nbytes);
            let covered = Coverage::none(len);
            let chunk = DirtyChunk { raw, covered, touched: 0, full: false };
            self.held_nbytes += chunk.nbytes();
            self.chunks.insert(chunk_index.clone(), chunk);
        }
        self.clock += 1;
        if let Some(chunk) = self.chunks.get_mut(chunk_index) {
            change(chunk);
            chunk.touched = self.clock;
            if !chunk.full && chunk.covered.elements() == all {
                chunk.full = true;
                self.full_nbytes += chunk.nbytes();
            }
        }
        Ok(())
    }

    /// The chunk is in the file, or not wanted there any more.
    pub(super) fn remove(&mut self, chunk_index: &[u64]) {
        let Some(chunk) = self.chunks.remove(chunk_index) else { return };
        self.held_nbytes -= chunk.nbytes();
        self.full_nbytes -= if chunk.full { chunk.nbytes() } else { 0 };
        if self.spare.len() < MOST_SPARE {
            self.spare.push(chunk.raw);
        }
    }

    /// Give back memory that no chunk needs.
    pub(super) fn trim(&mut self) {
        self.spare = Vec::new();
    }

    /// All of them, in file order.
    pub(super) fn all(&self) -> Vec<Dims> {
        self.chunks.keys().cloned().collect()
    }

    /// Those to which nothing is missing, in file order.
    pub(super) fn full(&self) -> Vec<Dims> {
        let full = self.chunks.iter().filter(|(_, chunk)| chunk.full);
        full.map(|(chunk_index, _)| chunk_index.clone()).collect()
    }

    /// Those that have to go for at most `most_nbytes` to stay, in file order: first those to which
    /// nothing is missing, then those that were not written to for longest.
    pub(super) fn due(&self, most_nbytes: usize) -> Vec<Dims> {
        let mut chunks: Vec<_> = self.chunks.iter().collect();
        chunks.sort_by_key(|(_, chunk)| (!chunk.full, chunk.touched));
        let mut left = self.held_nbytes;
        let mut due = Vec::new();
        for (chunk_index, chunk) in chunks {
            if left <= most_nbytes && !chunk.full {
                break;
            }
            left -= chunk.nbytes();
            due.push(chunk_index.clone());
        }
        due.sort_unstable();
        due
    }

    /// The dataset has another extent: chunks that `keep` refuses are gone, and `all` tells of
    /// the others how many of their elements have to be covered.
    pub(super) fn resized(
        &mut self,
        keep: impl Fn(&Dims) -> bool,
        change: impl Fn(&Dims, &mut Coverage) -> u64,
    ) {
        let gone: Vec<Dims> = self.chunks.keys().filter(|at| !keep(at)).cloned().collect();
        for chunk_index in &gone {
            self.remove(chunk_index);
        }
        self.full_nbytes = 0;
        for (chunk_index, chunk) in &mut self.chunks {
            chunk.full = change(chunk_index, &mut chunk.covered) == chunk.covered.elements();
            self.full_nbytes += if chunk.full { chunk.nbytes() } else { 0 };
        }
    }
}
