//! Which cells between random cut planes make up a selection?
//!
//! As paper 003 has its hyperslabs: planes cut each dimension at random places, and of the
//! cells between neighbouring planes each is selected with probability 1/2.

use chunkwise_select::{Axis, Dims, Hyperslab, SelectError, Selection};
use smallvec::SmallVec;
use thiserror::Error;

use crate::permutation::{Permutation, mixed};

/// More cells than this are more than anybody waits for: libhdf5 takes each one by one.
const MOST_CELLS: u64 = 1 << 20;

/// Cut planes that make no cells, or too many.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CellError {
    /// Too few planes to have a cell between them.
    #[error("{0} cut planes have no cell between them: give at least 2")]
    Planes(u64),
    /// More cells between cut planes than anybody can have meant.
    #[error("{planes} cut planes a dimension make more than {most} cells: give fewer")]
    TooManyCells {
        /// Cut planes of each dimension.
        planes: u64,
        /// The most cells.
        most: u64,
    },
    /// An array that nothing can be selected of.
    #[error(transparent)]
    Select(#[from] SelectError),
}

/// Unions of cells between random cut planes, one after another, each drawn by itself.
///
/// A dimension of `n` elements is cut at `planes` different of its `n + 1` boundaries (at all
/// of them where it has fewer), every choice as likely as any other.  An empty union is drawn
/// again, planes and cells.  The same seed gives the same unions on every machine.
#[derive(Debug, Clone)]
pub struct CellWalk {
    shape: Dims,
    planes: u64,
    len: u64,
    seed: u64,
}

impl CellWalk {
    /// `len` unions of cells of an array of `shape`.
    ///
    /// # Errors
    /// When there are fewer than two planes, a dimension is empty, or there are more cells
    /// than anybody can have meant.
    pub fn new(shape: &[u64], planes: u64, len: u64, seed: u64) -> Result<Self, CellError> {
        if planes < 2 {
            return Err(CellError::Planes(planes));
        }
        if let Some(dimension) = shape.iter().position(|&n| n == 0) {
            return Err(SelectError::ZeroSize(dimension).into());
        }
        let cells = shape.iter().try_fold(1u64, |cells, &n| cells.checked_mul(n.min(planes - 1)));
        if cells.is_none_or(|cells| cells > MOST_CELLS) {
            return Err(CellError::TooManyCells { planes, most: MOST_CELLS });
        }
        Ok(Self { shape: shape.into(), planes, len, seed })
    }

    /// Number of unions.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The cells of the `number`-th union, in C order: at least one.
    pub fn cells(&self, number: u64) -> Vec<Hyperslab> {
        (0..)
            .map(|attempt| self.draw(number, attempt))
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }

    /// The `number`-th union.
    ///
    /// # Errors
    /// As [`Selection::union`]; not for as few cells as there may be.
    pub fn selection(&self, number: u64) -> Result<Selection, SelectError> {
        Selection::union(self.shape.len(), self.cells(number))
    }

    /// Elements of the largest union.
    ///
    /// # Errors
    /// When that number does not fit into 64 bits.
    pub fn largest_len(&self) -> Result<u64, SelectError> {
        (0..self.len).try_fold(0, |most, number| {
            // They do not overlap.
            let sizes = self.cells(number).into_iter().map(|cell| cell.len());
            let total = sizes.reduce(|total, size| {
                total?.checked_add(size?).ok_or(SelectError::Overflow("elements selected"))
            });
            Ok(most.max(total.unwrap_or(Ok(0))?))
        })
    }

    fn draw(&self, number: u64, attempt: u64) -> Vec<Hyperslab> {
        let key = |word| mixed(word, attempt, mixed(number, 0, self.seed));
        let cuts: SmallVec<[Vec<u64>; 4]> = (0u64..)
            .zip(&self.shape)
            .map(|(dimension, &n)| {
                let boundaries = Permutation::new(n.saturating_add(1), key(dimension + 1));
                let planes = self.planes.min(n.saturating_add(1));
                let mut cuts: Vec<u64> = (0..planes).map(|i| boundaries.of(i)).collect();
                cuts.sort_unstable();
                cuts
            })
            .collect();
        let cells: u64 = cuts.iter().map(|cuts| cuts.len() as u64 - 1).product();
        let coins = key(0);
        (0..cells)
            .filter(|&cell| mixed(cell, 0, coins) >> 63 == 1)
            .map(|cell| cell_between(&cuts, cell))
            .collect()
    }
}

/// The cell of this number, counted in C order.
fn cell_between(cuts: &[Vec<u64>], mut number: u64) -> Hyperslab {
    let mut axes: SmallVec<[Axis; 4]> = cuts
        .iter()
        .rev()
        .map(|cuts| {
            let along = cuts.len() as u64 - 1;
            // Below the number of cuts, by the remainder.
            let place = (number % along) as usize;
            number /= along;
            Axis::range(cuts[place], cuts[place + 1] - cuts[place])
        })
        .collect();
    axes.reverse();
    Hyperslab::from_axes(axes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn walk(shape: &[u64], planes: u64, seed: u64) -> CellWalk {
        CellWalk::new(shape, planes, 100, seed).unwrap()
    }

    proptest! {
        #[test]
        fn cells_are_apart_and_within_the_array(
            shape in prop::collection::vec(1u64..9, 1..5),
            planes in 2u64..6, seed in any::<u64>(), number in 0u64..100,
        ) {
            let walk = walk(&shape, planes, seed);
            let cells = walk.cells(number);
            prop_assert!(!cells.is_empty());
            for cell in &cells {
                for (axis, &n) in cell.axes().iter().zip(&shape) {
                    prop_assert!(!axis.is_empty() && axis.start() + axis.len() <= n);
                }
            }
            // A union counts each element once: as many as the cells have together.
            let apart: u64 = cells.iter().map(|cell| cell.len().unwrap()).sum();
            prop_assert_eq!(walk.selection(number).unwrap().len().unwrap(), apart);
            prop_assert!(apart <= walk.largest_len().unwrap());
        }

        #[test]
        fn a_seed_is_a_sequence(seed in any::<u64>(), number in 0u64..1000) {
            let shape = [1000, 1000];
            prop_assert_eq!(walk(&shape, 5, seed).cells(number), walk(&shape, 5, seed).cells(number));
            prop_assert_ne!(walk(&shape, 5, seed).cells(number), walk(&shape, 5, !seed).cells(number));
            prop_assert_ne!(
                walk(&shape, 5, seed).cells(number), walk(&shape, 5, seed).cells(number + 1)
            );
        }
    }

    #[test]
    fn planes_lie_anywhere_and_half_of_the_cells_are_taken() {
        let (n, planes, draws) = (1000u64, 20u64, 2000u64);
        let walk = CellWalk::new(&[n], planes, draws, 7).unwrap();
        let (mut taken, mut covered, mut first) = (0, 0, 0);
        for number in 0..draws {
            let cells = walk.cells(number);
            taken += cells.len() as u64;
            covered += cells.iter().map(|cell| cell.len().unwrap()).sum::<u64>();
            first += cells[0].axes()[0].start();
        }
        let mean = |sum: u64| sum as f64 / draws as f64;
        // Of 19 cells; of a range that spans 19/21 of the array.
        assert!((mean(taken) - 9.5).abs() < 0.2, "{}", mean(taken));
        assert!((mean(covered) - 0.5 * 19.0 / 21.0 * n as f64).abs() < 10.0, "{}", mean(covered));
        // The first plane at 1/21, and the first cell taken two cells on, on average.
        assert!((mean(first) - 2.0 / 21.0 * n as f64).abs() < 10.0, "{}", mean(first));
    }

    #[test]
    fn two_planes_have_one_cell_between_them() {
        let walk = walk(&[30, 20], 2, 3);
        assert!((0..100).all(|number| walk.cells(number).len() == 1));
    }

    #[test]
    fn the_draws_are_what_they_were() {
        // Results that are compared over the years rest on it.
        let starts = |cell: &Hyperslab| -> Vec<(u64, u64)> {
            cell.axes().iter().map(|axis| (axis.start(), axis.len())).collect()
        };
        let cells = CellWalk::new(&[100, 50], 3, 1, 42).unwrap().cells(0);
        let found: Vec<_> = cells.iter().map(starts).collect();
        assert_eq!(found, [[(21, 15), (14, 26)], [(36, 4), (40, 1)]]);
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        assert_eq!(CellWalk::new(&[5], 1, 1, 0).unwrap_err(), CellError::Planes(1));
        assert_eq!(CellWalk::new(&[5, 0], 2, 1, 0).unwrap_err(), SelectError::ZeroSize(1).into());
        let many = CellError::TooManyCells { planes: 2000, most: MOST_CELLS };
        assert_eq!(CellWalk::new(&[5000, 5000], 2000, 1, 0).unwrap_err(), many);
        // Short dimensions have fewer.
        assert!(CellWalk::new(&[5, 5, 5, 5], 2000, 1, 0).is_ok());
    }
}
