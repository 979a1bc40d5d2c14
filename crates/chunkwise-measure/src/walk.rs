//! Which selections does an access pattern read, one after another?

use chunkwise_select::{Axis, ChunkGrid, Dims, Hyperslab, SelectError, Selection};

use crate::CellWalk;
use crate::permutation::Permutation;

/// In which order the blocks of an array are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// As C stores arrays: the last dimension fastest.
    C,
    /// The dimensions from the slowest to the fastest.
    Axes(Dims),
    /// At random, no block twice; the same seed gives the same order.
    Random {
        /// Which of the orders.
        seed: u64,
    },
}

/// Blocks of an array, clipped at the upper edges, one after another: the access
/// patterns of paper 004 (`1x1x1x717`, `4x30x9x717`) and of `chunkwise bench`.
#[derive(Debug, Clone)]
pub struct BlockWalk {
    grid: ChunkGrid,
    order: Order,
    shuffled: Option<Permutation>,
    len: u64,
}

impl BlockWalk {
    /// Blocks of shape `block` over an array of shape `shape`, in C order.
    ///
    /// # Errors
    /// As [`ChunkGrid::new`]: the ranks differ, or a block has no extent.
    pub fn new(shape: &[u64], block: &[u64]) -> Result<Self, SelectError> {
        Self::ordered(shape, block, Order::C, None)
    }

    /// The same in another order; the first `limit` of them only.
    ///
    /// # Errors
    /// As [`BlockWalk::new`], and when an order of dimensions does not name each once.
    pub fn ordered(
        shape: &[u64],
        block: &[u64],
        order: Order,
        limit: Option<u64>,
    ) -> Result<Self, SelectError> {
        let grid = ChunkGrid::new(shape, block)?;
        let shuffled = match &order {
            Order::C => None,
            Order::Random { seed } => Some(Permutation::new(grid.len(), *seed)),
            Order::Axes(axes) => {
                let mut sorted = axes.clone();
                sorted.sort_unstable();
                if !sorted.iter().copied().eq(0..grid.rank() as u64) {
                    return Err(SelectError::Rank { selection: axes.len(), dataset: grid.rank() });
                }
                None
            }
        };
        let len = limit.map_or(grid.len(), |limit| limit.min(grid.len()));
        Ok(Self { grid, order, shuffled, len })
    }

    /// Number of blocks.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The `number`-th block.
    pub fn block(&self, number: u64) -> Hyperslab {
        let index = match (&self.order, &self.shuffled) {
            (Order::Axes(axes), _) => self.index_by_axes(axes, number),
            (_, Some(shuffled)) => self.grid.chunk_index(shuffled.of(number)),
            _ => self.grid.chunk_index(number),
        };
        let axes = (0..index.len())
            .map(|d| {
                let start = index[d] * self.grid.chunk()[d];
                let len = self.grid.chunk()[d].min(self.grid.shape()[d] - start);
                Axis::range(start, len)
            })
            .collect();
        Hyperslab::from_axes(axes)
    }

    fn index_by_axes(&self, axes: &[u64], mut number: u64) -> Dims {
        let mut index: Dims = smallvec::smallvec![0; self.grid.rank()];
        for &axis in axes.iter().rev() {
            // Checked when the walk was made: each axis is a dimension.
            let d = axis as usize;
            index[d] = number % self.grid.counts()[d];
            number /= self.grid.counts()[d];
        }
        index
    }
}

/// What a timed walk reads: blocks and cells by arithmetic, or selections listed one by one.
#[derive(Debug, Clone)]
pub enum Walk {
    /// Blocks of one shape.
    Blocks(Box<BlockWalk>),
    /// Cells between random cut planes.
    Cells(CellWalk),
    /// Any selections, in the order given.
    Listed(Vec<Selection>),
}

impl Walk {
    /// These selections, in the order given.
    pub fn listed(selections: impl IntoIterator<Item: Into<Selection>>) -> Self {
        Self::Listed(selections.into_iter().map(Into::into).collect())
    }

    /// Number of selections.
    pub fn len(&self) -> u64 {
        match self {
            Self::Blocks(walk) => walk.len(),
            Self::Cells(walk) => walk.len(),
            Self::Listed(selections) => selections.len() as u64,
        }
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first `operations` selections are known to cover the array.
    pub fn is_whole_array(&self, operations: u64) -> bool {
        match self {
            Self::Blocks(walk) => operations >= walk.grid.len() && walk.len() == walk.grid.len(),
            Self::Cells(_) | Self::Listed(_) => false,
        }
    }

    /// The `number`-th selection; None beyond the last.
    pub fn get(&self, number: u64) -> Option<Selection> {
        match self {
            Self::Blocks(walk) => (number < walk.len()).then(|| walk.block(number).into()),
            Self::Cells(walk) if number < walk.len() => walk.selection(number).ok(),
            Self::Cells(_) => None,
            Self::Listed(selections) => selections.get(usize::try_from(number).ok()?).cloned(),
        }
    }

    /// Elements of the largest selection.
    ///
    /// # Errors
    /// When that number does not fit into 64 bits.
    pub fn largest_len(&self) -> Result<u64, SelectError> {
        match self {
            Self::Blocks(walk) => {
                // Clipped blocks are smaller than this, and it is smaller than the array.
                let grid = &walk.grid;
                let mut sides = grid.chunk().iter().zip(grid.shape()).map(|(&c, &n)| c.min(n));
                sides
                    .try_fold(1u64, u64::checked_mul)
                    .ok_or(SelectError::Overflow("elements in a block"))
            }
            Self::Cells(walk) => walk.largest_len(),
            Self::Listed(selections) => {
                selections.iter().try_fold(0, |most, one| Ok(most.max(one.len()?)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first elements of the blocks, in order.
    fn starts(walk: &BlockWalk) -> Vec<Vec<u64>> {
        (0..walk.len())
            .map(|n| walk.block(n).axes().iter().map(|axis| axis.start()).collect())
            .collect()
    }

    proptest! {
        #[test]
        fn every_order_tiles_the_array_once(
            shape in proptest::collection::vec(1u64..7, 1..4),
            block in proptest::collection::vec(1u64..4, 3),
            seed in any::<u64>(),
        ) {
            let block = &block[..shape.len()];
            let reversed: Dims = (0..shape.len() as u64).rev().collect();
            for order in [Order::C, Order::Axes(reversed), Order::Random { seed }] {
                let walk = BlockWalk::ordered(&shape, block, order, None).unwrap();
                let mut seen = vec![0u8; shape.iter().product::<u64>() as usize];
                for number in 0..walk.len() {
                    let slab = walk.block(number);
                    let mut places = vec![0u64];
                    for (axis, &n) in slab.axes().iter().zip(&shape) {
                        places = places
                            .iter()
                            .flat_map(|p| (0..axis.len()).map(move |i| p * n + axis.index_of(i)))
                            .collect();
                    }
                    for place in places {
                        seen[place as usize] += 1;
                    }
                }
                prop_assert!(seen.iter().all(|&times| times == 1));
            }
        }
    }

    #[test]
    fn axes_name_the_slowest_first() {
        let by = |axes: &[u64]| {
            let order = Order::Axes(Dims::from_slice(axes));
            starts(&BlockWalk::ordered(&[2, 3], &[1, 1], order, Some(3)).unwrap())
        };
        assert_eq!(by(&[0, 1]), [[0, 0], [0, 1], [0, 2]]);
        assert_eq!(by(&[1, 0]), [[0, 0], [1, 0], [0, 1]]);
        for wrong in [&[0, 0][..], &[0], &[0, 2], &[0, 1, 2]] {
            let order = Order::Axes(Dims::from_slice(wrong));
            assert!(BlockWalk::ordered(&[2, 3], &[1, 1], order, None).is_err());
        }
    }

    #[test]
    fn all_blocks_are_the_whole_array() {
        let limited = |limit| {
            Walk::Blocks(Box::new(BlockWalk::ordered(&[7], &[2], Order::C, limit).unwrap()))
        };
        assert!(limited(None).is_whole_array(4));
        assert!(!limited(None).is_whole_array(3));
        assert!(!limited(Some(3)).is_whole_array(4));
    }

    #[test]
    fn a_seed_is_an_order() {
        let by = |seed| {
            let order = Order::Random { seed };
            starts(&BlockWalk::ordered(&[1000], &[1], order, Some(20)).unwrap())
        };
        assert_eq!(by(1), by(1));
        assert_ne!(by(1), by(2));
    }

    #[test]
    fn listed_selections_come_as_they_are() {
        let slab =
            |start| Selection::from(Hyperslab::new(&[10], &[start], &[2], &[2], &[1]).unwrap());
        let walk = Walk::listed([slab(5), slab(0)]);
        assert_eq!((walk.len(), walk.largest_len().unwrap()), (2, 2));
        assert!(!walk.is_whole_array(2));
        assert_eq!(walk.get(0), Some(slab(5)));
        assert_eq!(walk.get(2), None);
    }
}
