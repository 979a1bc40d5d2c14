//! When do short runs, each in another piece of a dataset, pay for a memory map?

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A piece comes into the map when it is first touched, which takes as long as this many positioned reads.
const RUNS_A_PIECE: u64 = 8;
const PIECE_NBYTES: u64 = 64 << 10;

/// The short runs of a dataset that were read, each in another piece of it than the one before.
///
/// Positioned reads are right for few of them, a map for many. Nobody knows how many will follow, so the
/// map is used once as much was spent on positioned reads as on touching each piece of the map.
pub(crate) struct ShortRuns {
    pieces: u64,
    runs: AtomicU64,
}

impl ShortRuns {
    /// None yet, of a dataset of this many bytes.
    pub fn new(nbytes: u64) -> Self {
        Self { pieces: nbytes / PIECE_NBYTES, runs: AtomicU64::new(0) }
    }

    /// Whether runs that begin this many bytes apart lie in different pieces.
    pub fn are_far_apart(nbytes: u64) -> bool {
        nbytes >= PIECE_NBYTES
    }

    /// Count some more runs; whether a map pays for them.
    pub fn map_pays(&self, runs: u64) -> bool {
        self.runs.fetch_add(runs, Relaxed) / RUNS_A_PIECE >= self.pieces
    }
}
