//! How is it known later that what was written is what was read?

use std::sync::{Mutex, PoisonError};

use chunkwise_select::Dims;
use twox_hash::XxHash3_64;

/// A checksum of some bytes: XXH3, 64 bits.
pub fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// What a checksum was taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// A cell's elements within the dataset, row-major.
    OfElements,
    /// A chunk's stored bytes.
    OfStoredBytes,
}

/// Checksums of everything that was written of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksums {
    /// The dataset's shape; None where it has no elements.
    pub(crate) shape: Option<Dims>,
    /// Shape of a cell.
    pub(crate) cell: Dims,
    pub(crate) taken: Taken,
    /// Position of a cell in their grid, and its checksum; in ascending order.
    pub(crate) cells: Vec<(u64, u64)>,
}

impl Checksums {
    /// How many cells they are of.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }
}

/// Collects checksums from many threads.
#[derive(Debug, Default)]
pub struct Collector(Mutex<Vec<(u64, u64)>>);

impl Collector {
    /// Add a cell's.
    pub fn add(&self, position: u64, checksum: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((position, checksum));
    }

    /// All of them, in order.
    pub fn finish(self) -> Vec<(u64, u64)> {
        let mut cells = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        cells.sort_unstable();
        cells
    }
}
