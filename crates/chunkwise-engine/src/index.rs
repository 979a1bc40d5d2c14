//! Where does each chunk lie, and how many bytes does it take?
//!
//! Memory follows the chunks that were written, never the size of the grid: where less
//! than half of the grid is written, chunks are held by coordinate (20 bytes each),
//! otherwise by position (12 bytes each).  Sizes of 4 GiB and more and filter masks are
//! so rare that they live beside the table.

use std::collections::HashMap;

use thiserror::Error;

/// One written chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkRecord {
    /// Where its bytes lie in the file, user block included.
    pub address: u64,
    /// How many bytes it takes there.
    pub stored_nbytes: u64,
    /// Bit `i` says that filter `i` was not applied.
    pub filter_mask: u32,
}

/// A chunk index that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IndexError {
    /// Two chunks claim the same place in the grid.
    #[error("the chunk index holds chunk number {0} twice")]
    Duplicate(u64),
}

/// Marks a chunk that was never written in a table by position.
const NEVER_WRITTEN: u64 = u64::MAX;
/// Marks a size that is kept in `large`.
const LARGE: u32 = u32::MAX;

/// The written chunks of a dataset, by row-major position in its grid.
#[derive(Debug, Clone, Default)]
pub struct ChunkIndex {
    /// Positions in ascending order, or empty when the table is by position.
    positions: Vec<u64>,
    addresses: Vec<u64>,
    sizes: Vec<u32>,
    large: HashMap<u64, u64>,
    masks: HashMap<u64, u32>,
    by_position: bool,
    written: u64,
    stored_nbytes: u64,
}

impl ChunkIndex {
    /// The chunk at row-major position `position`, or None when it was never written.
    pub fn get(&self, position: u64) -> Option<ChunkRecord> {
        let row = if self.by_position {
            usize::try_from(position).ok()?
        } else {
            self.positions.binary_search(&position).ok()?
        };
        let address = *self.addresses.get(row)?;
        if address == NEVER_WRITTEN {
            return None;
        }
        let size = *self.sizes.get(row)?;
        let stored_nbytes =
            if size == LARGE { *self.large.get(&position)? } else { u64::from(size) };
        let filter_mask =
            if self.masks.is_empty() { 0 } else { self.masks.get(&position).copied().unwrap_or(0) };
        Some(ChunkRecord { address, stored_nbytes, filter_mask })
    }

    /// Number of written chunks.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes of all written chunks together.
    pub fn stored_nbytes(&self) -> u64 {
        self.stored_nbytes
    }

    /// Bytes of memory that the tables take.
    pub fn memory_nbytes(&self) -> usize {
        self.positions.capacity() * 8
            + self.addresses.capacity() * 8
            + self.sizes.capacity() * 4
            + (self.large.capacity() + self.masks.capacity()) * 24
    }
}

/// Collects chunks in any order and makes the index.
#[derive(Debug, Default)]
pub struct ChunkIndexBuilder {
    rows: Vec<(u64, u64, u32)>,
    index: ChunkIndex,
}

impl ChunkIndexBuilder {
    /// Room for `written` chunks; a hint, bounded so that a hostile count costs nothing.
    pub fn with_capacity(written: u64) -> Self {
        let rows = usize::try_from(written.min(1 << 24)).unwrap_or(0);
        Self { rows: Vec::with_capacity(rows), ..Self::default() }
    }

    /// Add the chunk at row-major position `position`.
    pub fn push(&mut self, position: u64, record: ChunkRecord) {
        let size = match u32::try_from(record.stored_nbytes) {
            Ok(size) if size != LARGE => size,
            _ => {
                self.index.large.insert(position, record.stored_nbytes);
                LARGE
            }
        };
        if record.filter_mask != 0 {
            self.index.masks.insert(position, record.filter_mask);
        }
        self.index.stored_nbytes = self.index.stored_nbytes.saturating_add(record.stored_nbytes);
        self.rows.push((position, record.address, size));
    }

    /// The index of a grid of `grid_len` chunks.
    ///
    /// # Errors
    /// When two chunks were pushed for one position.
    pub fn finish(mut self, grid_len: u64) -> Result<ChunkIndex, IndexError> {
        let mut index = self.index;
        index.written = self.rows.len() as u64;
        // libhdf5 lists most index types in order; sorting those is one pass.
        self.rows.sort_by_key(|row| row.0);
        if let Some(pair) = self.rows.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(IndexError::Duplicate(pair[0].0));
        }
        index.by_position = index.written >= grid_len.div_ceil(2) && index.written > 0;
        if let (true, Ok(len)) = (index.by_position, usize::try_from(grid_len)) {
            index.addresses = vec![NEVER_WRITTEN; len];
            index.sizes = vec![0; len];
            for (position, address, size) in self.rows {
                // Positions come from the grid, so that they lie below `grid_len`.
                let row = position as usize;
                index.addresses[row] = address;
                index.sizes[row] = size;
            }
        } else {
            index.by_position = false;
            index.positions = self.rows.iter().map(|row| row.0).collect();
            index.addresses = self.rows.iter().map(|row| row.1).collect();
            index.sizes = self.rows.iter().map(|row| row.2).collect();
        }
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gives_back_what_was_pushed(
            chunks in prop::collection::btree_map(
                0u64..200,
                (0u64..1 << 40, prop_oneof![0u64..1000, Just(u64::from(u32::MAX)), Just(1 << 33)], 0u32..3),
                0..150,
            ),
            backwards in any::<bool>(),
        ) {
            let mut builder = ChunkIndexBuilder::with_capacity(chunks.len() as u64);
            let mut rows: Vec<_> = chunks.iter().collect();
            if backwards {
                rows.reverse();
            }
            for (&position, &(address, stored_nbytes, filter_mask)) in rows {
                builder.push(position, ChunkRecord { address, stored_nbytes, filter_mask });
            }
            let index = builder.finish(200).unwrap();
            prop_assert_eq!(index.written(), chunks.len() as u64);
            prop_assert_eq!(index.stored_nbytes(), chunks.values().map(|c| c.1).sum::<u64>());
            for position in 0..250 {
                let want = chunks.get(&position).map(|&(address, stored_nbytes, filter_mask)| {
                    ChunkRecord { address, stored_nbytes, filter_mask }
                });
                prop_assert_eq!(index.get(position), want);
            }
        }
    }

    #[test]
    fn memory_follows_written_chunks() {
        let record = ChunkRecord { address: 1, stored_nbytes: 2, filter_mask: 0 };
        let mut sparse = ChunkIndexBuilder::with_capacity(u64::MAX >> 40);
        for position in 0..1000 {
            sparse.push(position << 40, record);
        }
        let sparse = sparse.finish(1 << 60).unwrap();
        assert!(sparse.memory_nbytes() <= 24 * 1000);
        assert_eq!(sparse.get(999 << 40), Some(record));
        let mut dense = ChunkIndexBuilder::with_capacity(1000);
        (0..1000).for_each(|position| dense.push(position, record));
        assert!(dense.finish(1000).unwrap().memory_nbytes() <= 12 * 1000);
    }

    #[test]
    fn a_chunk_held_twice_is_refused() {
        let record = ChunkRecord { address: 1, stored_nbytes: 2, filter_mask: 0 };
        let mut builder = ChunkIndexBuilder::default();
        builder.push(3, record);
        builder.push(3, record);
        assert_eq!(builder.finish(10).unwrap_err(), IndexError::Duplicate(3));
    }
}
