//! How is it known later that what was written is what was read?

use std::sync::{Mutex, PoisonError};

use chunkwise_select::{ChunkGrid, Dims};
use twox_hash::XxHash3_64;

use crate::CopyError;
use crate::cells::Extent;

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

    /// Those of the cells from element `begin` to `end` of a dimension, as if they were all of a
    /// dataset.
    ///
    /// # Errors
    /// When these are not where cells begin, or the dataset's end.
    pub fn part(&self, axis: usize, begin: u64, end: u64) -> Result<Self, CopyError> {
        let refused = || CopyError::Refused("a dataset is divided where chunks begin".into());
        let shape = self.shape.as_ref().ok_or_else(refused)?;
        let (&length, &side) = shape.get(axis).zip(self.cell.get(axis)).ok_or_else(refused)?;
        let starts = |at: u64| side > 0 && at.is_multiple_of(side);
        if begin > end || end > length || !starts(begin) || !(starts(end) || end == length) {
            return Err(refused());
        }
        let grid = ChunkGrid::new(shape, &self.cell)?;
        let mut part_shape = shape.clone();
        part_shape[axis] = end - begin;
        let part = ChunkGrid::new(&part_shape, &self.cell)?;
        let within = |&(position, sum): &(u64, u64)| {
            let mut origin = Extent::of_chunk(&grid, position).origin;
            if !(begin..end).contains(&origin[axis]) {
                return None;
            }
            origin[axis] -= begin;
            Some((part.linear_index_of_origin(&origin)?, sum))
        };
        let cells = self.cells.iter().filter_map(within).collect();
        Ok(Self { shape: Some(part_shape), cell: self.cell.clone(), taken: self.taken, cells })
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_the_whole(
            sides in prop::collection::vec((1_u64..9, 1_u64..5), 1..4),
            axis in any::<prop::sample::Index>(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let shape: Dims = sides.iter().map(|(length, _)| *length).collect();
            let cell: Dims = sides.iter().map(|(_, side)| *side).collect();
            let grid = ChunkGrid::new(&shape, &cell).unwrap();
            let axis = axis.index(shape.len());
            // A cell's sum says where it begins.
            let sum = |origin: &[u64]| origin.iter().fold(7, |sum, at| sum * 31 + at);
            let origin_of = |grid: &ChunkGrid, at| Extent::of_chunk(grid, at).origin;
            let count: u64 = sides.iter().map(|(length, side)| length.div_ceil(*side)).product();
            let cells = (0..count).map(|at| (at, sum(&origin_of(&grid, at)))).collect();
            let whole =
                Checksums { shape: Some(shape.clone()), cell: cell.clone(), taken: Taken::OfElements, cells };
            let chunks = shape[axis].div_ceil(cell[axis]);
            let mut bounds: Vec<u64> =
                cuts.iter().map(|cut| cut.index(chunks as usize) as u64 * cell[axis]).collect();
            bounds.extend([0, shape[axis]]);
            bounds.sort_unstable();
            let mut found = Vec::new();
            for pair in bounds.windows(2) {
                let part = whole.part(axis, pair[0], pair[1]).unwrap();
                let mut part_shape = shape.clone();
                part_shape[axis] = pair[1] - pair[0];
                prop_assert_eq!(part.shape.as_ref(), Some(&part_shape));
                prop_assert!(part.cells.windows(2).all(|two| two[0].0 < two[1].0));
                let grid = ChunkGrid::new(&part_shape, &cell).unwrap();
                for (at, known) in &part.cells {
                    let mut origin = origin_of(&grid, *at);
                    origin[axis] += pair[0];
                    prop_assert_eq!(sum(&origin), *known);
                    found.push(*known);
                }
            }
            found.sort_unstable();
            let mut all: Vec<u64> = whole.cells.iter().map(|(_, sum)| *sum).collect();
            all.sort_unstable();
            prop_assert_eq!(found, all);
            if cell[axis] > 1 && shape[axis] > 1 {
                prop_assert!(whole.part(axis, 1, shape[axis]).is_err());
            }
        }
    }
}
