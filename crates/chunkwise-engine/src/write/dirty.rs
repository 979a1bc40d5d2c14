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
    /// The file has had it: a program that is killed after it was overwritten there, and before a
    /// flush, leaves neither what it was nor what it is.
    stored: bool,
}

/// Which chunks go first when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// Nothing is gained by waiting.
    Ready,
    /// It waits for a flush only.
    Kept,
    /// Something is missing that would have to be read.
    Partial,
}

impl DirtyChunk {
    fn nbytes(&self) -> usize {
        self.raw.len() + self.covered.nbytes()
    }

    fn turn(&self) -> Turn {
        match (self.full, self.stored) {
            (false, _) => Turn::Partial,
            (true, true) => Turn::Kept,
            (true, false) => Turn::Ready,
        }
    }

    fn is_ready(&self) -> bool {
        self.turn() == Turn::Ready
    }
}

/// Dirty chunks by their places in the grid, and so in the order in which they are committed.
#[derive(Debug, Default)]
pub(super) struct DirtyChunks {
    chunks: BTreeMap<Dims, DirtyChunk>,
    held_nbytes: usize,
    ready_nbytes: usize,
    clock: u64,
    /// Memory of chunks that have gone: fresh memory is zeroed by the system.
    spare: Vec<Vec<u8>>,
    spare_nbytes: usize,
}

/// Buffers that are kept for the next chunks.
const MOST_SPARE: usize = 8;

impl DirtyChunks {
    /// Bytes held, with what says which elements are covered.
    pub(super) fn held_nbytes(&self) -> usize {
        self.held_nbytes
    }

    /// Those of them in chunks that wait for nothing.
    pub(super) fn ready_nbytes(&self) -> usize {
        self.ready_nbytes
    }

    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(super) fn get(&self, chunk_index: &[u64]) -> Option<&DirtyChunk> {
        self.chunks.get(chunk_index)
    }

    /// Whether the file has had the chunk; None where it is not here.
    pub(super) fn is_stored(&self, chunk_index: &[u64]) -> Option<bool> {
        self.chunks.get(chunk_index).map(|chunk| chunk.stored)
    }

    /// Change the chunk at `chunk_index`, which comes in with `nbytes` bytes and `len` elements
    /// if it is not here, and `stored` in the file or not; it is full once `all` elements are
    /// covered.
    pub(super) fn change(
        &mut self,
        chunk_index: &Dims,
        stored: bool,
        (nbytes, len, all): (usize, u64, u64),
        change: impl FnOnce(&mut DirtyChunk),
    ) -> Result<(), TryReserveError> {
        if !self.chunks.contains_key(chunk_index) {
            let mut raw = self.spare.pop().unwrap_or_default();
            self.spare_nbytes -= raw.capacity();
            resize(&mut raw, nbytes)?;
            raw.truncate(nbytes);
            let covered = Coverage::none(len);
            let chunk = DirtyChunk { raw, covered, touched: 0, full: false, stored };
            self.held_nbytes += chunk.nbytes();
            self.chunks.insert(chunk_index.clone(), chunk);
        }
        self.clock += 1;
        if let Some(chunk) = self.chunks.get_mut(chunk_index) {
            change(chunk);
            chunk.touched = self.clock;
            if !chunk.full && chunk.covered.elements() == all {
                chunk.full = true;
                self.ready_nbytes += if chunk.is_ready() { chunk.nbytes() } else { 0 };
            }
        }
        Ok(())
    }

    /// The chunk is in the file, or not wanted there any more; its memory is kept for others where
    /// that and what is held stay within `most_nbytes`.
    pub(super) fn remove(&mut self, chunk_index: &[u64], most_nbytes: usize) {
        let Some(chunk) = self.chunks.remove(chunk_index) else { return };
        self.held_nbytes -= chunk.nbytes();
        self.ready_nbytes -= if chunk.is_ready() { chunk.nbytes() } else { 0 };
        let kept = self.held_nbytes.saturating_add(self.spare_nbytes + chunk.raw.capacity());
        if self.spare.len() < MOST_SPARE && kept <= most_nbytes {
            self.spare_nbytes += chunk.raw.capacity();
            self.spare.push(chunk.raw);
        }
    }

    /// Give back memory that no chunk needs.
    pub(super) fn trim(&mut self) {
        (self.spare, self.spare_nbytes) = (Vec::new(), 0);
    }

    /// All of them, in file order.
    pub(super) fn all(&self) -> Vec<Dims> {
        self.chunks.keys().cloned().collect()
    }

    /// Those that wait for nothing, in file order.
    pub(super) fn ready(&self) -> Vec<Dims> {
        let ready = self.chunks.iter().filter(|(_, chunk)| chunk.is_ready());
        ready.map(|(chunk_index, _)| chunk_index.clone()).collect()
    }

    /// Those that have to go for at most `most_nbytes` to stay, in file order, and all that wait
    /// for nothing: first these, then those to which nothing is missing, of each kind those that
    /// were not written to for longest.
    pub(super) fn due(&self, most_nbytes: usize) -> Vec<Dims> {
        let mut chunks: Vec<_> = self.chunks.iter().collect();
        chunks.sort_by_key(|(_, chunk)| (chunk.turn(), chunk.touched));
        let mut left = self.held_nbytes;
        let mut due = Vec::new();
        for (chunk_index, chunk) in chunks {
            if left <= most_nbytes && !chunk.is_ready() {
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
            self.remove(chunk_index, 0);
        }
        self.ready_nbytes = 0;
        for (chunk_index, chunk) in &mut self.chunks {
            chunk.full = change(chunk_index, &mut chunk.covered) == chunk.covered.elements();
            self.ready_nbytes += if chunk.is_ready() { chunk.nbytes() } else { 0 };
        }
    }
}
