//! What is looked for in a file, and what was found of it so far?

use chunkwise_engine::{ChunkIndex, ChunkIndexBuilder, ChunkRecord};
use chunkwise_select::ChunkGrid;

use super::bytes::Damage;
use crate::chunks::MOST_LISTED;

/// What libhdf5 says of the dataset whose index is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The address of its object header.
    pub header: u64,
    /// Bytes before the file's address 0.
    pub user_block: u64,
    /// Half of the most children of a version 1 B-tree's node (`H5Pget_istore_k`).
    pub btree_k: u32,
    /// Its grid of chunks.
    pub grid: &'a ChunkGrid,
    /// The largest extent; all bits set where it is unlimited.
    pub max_shape: &'a [u64],
    /// Bytes of an element; None where libhdf5 tells those in memory alone.
    pub element_size: Option<u64>,
    /// Whether it has filters.
    pub filtered: bool,
}

/// Collects chunks as an index has them.
pub(super) struct Chunks<'a> {
    pub(super) wanted: &'a Wanted<'a>,
    /// Bytes of a stored element.
    pub(super) element_size: u64,
    builder: ChunkIndexBuilder,
    count: u64,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(wanted: &'a Wanted<'a>, element_size: u64) -> Self {
        Self { wanted, element_size, builder: ChunkIndexBuilder::default(), count: 0 }
    }

    /// All that were added.
    pub(super) fn finish(self) -> Result<ChunkIndex, Damage> {
        Ok(self.builder.finish(self.wanted.grid.len())?)
    }

    /// Add the chunk at this place of the grid, which may be outside of the present extent.
    pub(super) fn add(&mut self, index: &[u64], record: ChunkRecord) -> Result<(), Damage> {
        let Some(position) = self.wanted.grid.linear_index(index) else { return Ok(()) };
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
