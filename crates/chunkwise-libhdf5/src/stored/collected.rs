//! What is looked for in a file, and what was found of it so far?

use chunkwise_engine::{ChunkIndex, ChunkIndexBuilder, ChunkRecord};
use chunkwise_select::{ChunkGrid, Dims};

use super::bytes::Damage;
use crate::chunks::MOST_LISTED;

/// What libhdf5 says of the dataset whose index is wanted.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The address of its object header.
    pub header: u64,
    /// Bytes before the file's address 0.
    pub user_block: u64,
    /// Half of the most children of a version 1 B-tree's node (`H5Pget_istore_k`).
    pub btree_k: u32,
    /// Its grid of chunks.
    pub grid: ChunkGrid,
    /// The largest extent; all bits set where it is unlimited.
    pub max_shape: Dims,
    /// Bytes of an element; None where libhdf5 tells those in memory alone.
    pub element_size: Option<u64>,
    /// Whether it has filters.
    pub filtered: bool,
    /// Whether a program writes to the file (SWMR), whose superblock then says an older end.
    pub grows: bool,
}

/// Collects chunks as an index has them.
pub(super) struct Chunks<'a> {
    pub(super) wanted: &'a Wanted,
    /// Bytes of a stored element.
    pub(super) element_size: u64,
    /// Row-major positions of those that are wanted, ascending; None for all.
    only: Option<&'a [u64]>,
    /// Their places in the grid, in the same order.
    places: Vec<Dims>,
    builder: ChunkIndexBuilder,
    count: u64,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(wanted: &'a Wanted, element_size: u64, only: Option<&'a [u64]>) -> Self {
        let places = only.unwrap_or_default().iter().map(|&at| wanted.grid.chunk_index(at));
        let places = places.collect();
        Self { wanted, element_size, only, places, builder: ChunkIndexBuilder::default(), count: 0 }
    }

    /// Whether all chunks are wanted.
    pub(super) fn wants_all(&self) -> bool {
        self.only.is_none()
    }

    /// The places in the grid of the chunks that are wanted, ascending; None for all.
    pub(super) fn places(&self) -> Option<&[Dims]> {
        self.only.map(|_| &*self.places)
    }

    /// Whether a chunk is wanted that lies at or after the first place, and before the second.
    pub(super) fn wants_between(&self, begin: Option<&[u64]>, end: Option<&[u64]>) -> bool {
        let Some(places) = self.places() else { return true };
        let at = begin.map_or(0, |begin| places.partition_point(|place| place.as_slice() < begin));
        places.get(at).is_some_and(|place| end.is_none_or(|end| place.as_slice() < end))
    }

    /// All that were added.
    pub(super) fn finish(self) -> Result<ChunkIndex, Damage> {
        Ok(self.builder.finish(self.wanted.grid.len())?)
    }

    /// Add the chunk at this place of the grid, which may be outside of the present extent.
    pub(super) fn add(&mut self, index: &[u64], record: ChunkRecord) -> Result<(), Damage> {
        let Some(position) = self.wanted.grid.linear_index(index) else { return Ok(()) };
        if self.only.is_some_and(|only| only.binary_search(&position).is_err()) {
            return Ok(());
        }
        self.count += 1;
        if self.count > MOST_LISTED {
            return Err(Damage("its chunks are more than can be indexed in memory".into()));
        }
        let address = record.address.saturating_add(self.wanted.user_block);
        Ok(self.builder.push(position, ChunkRecord { address, ..record })?)
    }

    /// Bytes of a chunk that is stored as it is.
    pub(super) fn chunk_nbytes(&self) -> u64 {
        self.wanted.grid.chunk_len().saturating_mul(self.element_size)
    }
}
