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

impl ChunkRecord {
    /// Its bytes, of all that a file has.
    pub(crate) fn bytes_of<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        let begin = usize::try_from(self.address).ok()?;
        let len = usize::try_from(self.stored_nbytes).ok()?;
        file.get(begin..begin.checked_add(len)?)
    }
}

/// A chunk index that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IndexError {
    /// Two chunks claim the same place in the grid.
    #[error("the chunk index holds chunk number {0} twice")]
    Duplicate(u64),
    /// A chunk outside the grid.
    #[error("the chunk index holds chunk number {0}, of a grid that has fewer")]
    Outside(u64),
    /// More chunks than memory can index.
    #[error("there is no memory for the chunk index")]
    Memory,
}

impl From<std::collections::TryReserveError> for IndexError {
    fn from(_: std::collections::TryReserveError) -> Self {
        Self::Memory
    }
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
    furthest: u64,
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

    /// Positions of the written chunks, in ascending order.
    pub fn positions(&self) -> impl Iterator<Item = u64> {
        let rows = 0..self.addresses.len();
        let written = rows.filter(|&row| self.addresses[row] != NEVER_WRITTEN);
        written.map(|row| if self.by_position { row as u64 } else { self.positions[row] })
    }

    /// Number of written chunks.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes of all written chunks together.
    pub fn stored_nbytes(&self) -> u64 {
        self.stored_nbytes
    }

    /// Where the last byte of any chunk ends, as the chunks say.
    pub fn furthest(&self) -> u64 {
        self.furthest
    }

    /// Every bit that is set in the filter mask of some chunk.
    pub fn any_mask(&self) -> u32 {
        self.masks.values().fold(0, |any, mask| any | mask)
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
    index: ChunkIndex,
    /// Whether positions have come in ascending order so far, as libhdf5 lists them for
    /// all but some B-trees.
    unsorted: bool,
}

impl ChunkIndexBuilder {
    /// Room for `written` chunks.
    ///
    /// # Errors
    /// When there is no memory for this many.
    pub fn with_capacity(written: u64) -> Result<Self, IndexError> {
        let mut builder = Self::default();
        let room = usize::try_from(written).map_err(|_| IndexError::Memory)?;
        builder.index.positions.try_reserve_exact(room)?;
        builder.index.addresses.try_reserve_exact(room)?;
        builder.index.sizes.try_reserve_exact(room)?;
        Ok(builder)
    }

    /// Add the chunk at row-major position `position`.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn push(&mut self, position: u64, record: ChunkRecord) -> Result<(), IndexError> {
        // One below the mark for a chunk that was never written: no file reaches it.
        let address = record.address.min(NEVER_WRITTEN - 1);
        let index = &mut self.index;
        index.positions.try_reserve(1)?;
        index.addresses.try_reserve(1)?;
        index.sizes.try_reserve(1)?;
        let size = match u32::try_from(record.stored_nbytes) {
            Ok(size) if size != LARGE => size,
            _ => {
                index.large.try_reserve(1)?;
                index.large.insert(position, record.stored_nbytes);
                LARGE
            }
        };
        if record.filter_mask != 0 {
            index.masks.try_reserve(1)?;
            index.masks.insert(position, record.filter_mask);
        }
        self.unsorted |= index.positions.last().is_some_and(|&last| last > position);
        index.stored_nbytes = index.stored_nbytes.saturating_add(record.stored_nbytes);
        index.furthest = index.furthest.max(address.saturating_add(record.stored_nbytes));
        index.positions.push(position);
        index.addresses.push(address);
        index.sizes.push(size);
        Ok(())
    }

    /// The index of a grid of `grid_len` chunks.
    ///
    /// # Errors
    /// When two chunks were pushed for one position, one for none of the grid, or memory
    /// ends.
    pub fn finish(self, grid_len: u64) -> Result<ChunkIndex, IndexError> {
        let mut index = self.index;
        index.written = index.positions.len() as u64;
        if self.unsorted {
            let mut rows: Vec<(u64, u64, u32)> = Vec::new();
            rows.try_reserve_exact(index.positions.len())?;
            rows.extend(
                (0..index.positions.len())
                    .map(|row| (index.positions[row], index.addresses[row], index.sizes[row])),
            );
            rows.sort_unstable_by_key(|row| row.0);
            for (row, (position, address, size)) in rows.into_iter().enumerate() {
                index.positions[row] = position;
                index.addresses[row] = address;
                index.sizes[row] = size;
            }
        }
        if let Some(pair) = index.positions.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(IndexError::Duplicate(pair[0]));
        }
        if let Some(&last) = index.positions.last().filter(|&&last| last >= grid_len) {
            return Err(IndexError::Outside(last));
        }
        if index.written == 0 || index.written < grid_len.div_ceil(2) {
            return Ok(index);
        }
        index.by_position = true;
        if index.written < grid_len {
            let len = usize::try_from(grid_len).map_err(|_| IndexError::Memory)?;
            let (mut addresses, mut sizes) = (Vec::new(), Vec::new());
            addresses.try_reserve_exact(len)?;
            sizes.try_reserve_exact(len)?;
            addresses.resize(len, NEVER_WRITTEN);
            sizes.resize(len, 0);
            for (row, &position) in index.positions.iter().enumerate() {
                addresses[position as usize] = index.addresses[row];
                sizes[position as usize] = index.sizes[row];
            }
            (index.addresses, index.sizes) = (addresses, sizes);
        }
        // With every chunk written, a row is its own position.
        index.positions = Vec::new();
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
            let mut builder = ChunkIndexBuilder::with_capacity(chunks.len() as u64).unwrap();
            let mut rows: Vec<_> = chunks.iter().collect();
            if backwards {
                rows.reverse();
            }
            for (&position, &(address, stored_nbytes, filter_mask)) in rows {
                builder.push(position, ChunkRecord { address, stored_nbytes, filter_mask }).unwrap();
            }
            let index = builder.finish(200).unwrap();
            prop_assert_eq!(index.written(), chunks.len() as u64);
            prop_assert!(index.positions().eq(chunks.keys().copied()));
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
        let mut sparse = ChunkIndexBuilder::with_capacity(1000).unwrap();
        for position in 0..1000 {
            sparse.push(position << 40, record).unwrap();
        }
        let sparse = sparse.finish(1 << 60).unwrap();
        assert!(sparse.memory_nbytes() <= 24 * 1000);
        assert_eq!(sparse.get(999 << 40), Some(record));
        let mut dense = ChunkIndexBuilder::with_capacity(1000).unwrap();
        (0..1000).for_each(|position| dense.push(position, record).unwrap());
        assert!(dense.finish(1000).unwrap().memory_nbytes() <= 12 * 1000);
    }

    #[test]
    fn impossible_indexes_are_refused() {
        assert!(matches!(ChunkIndexBuilder::with_capacity(1 << 60), Err(IndexError::Memory)));
        let record = ChunkRecord { address: 1, stored_nbytes: 2, filter_mask: 0 };
        let mut builder = ChunkIndexBuilder::default();
        builder.push(3, record).unwrap();
        builder.push(3, record).unwrap();
        assert_eq!(builder.finish(10).unwrap_err(), IndexError::Duplicate(3));
        let mut builder = ChunkIndexBuilder::default();
        builder.push(10, record).unwrap();
        assert_eq!(builder.finish(10).unwrap_err(), IndexError::Outside(10));
    }
}
