//! Which blocks does an access pattern read, one after another?

use crate::{Axis, Hyperslab, SelectError};

/// A block shape walked over an array in C order, clipped at the upper edges: the
/// access patterns of paper 004 (`1x1x1x717`, `4x30x9x717`) and of `chunkwise bench`.
#[derive(Debug, Clone)]
pub struct BlockWalk {
    grid: crate::ChunkGrid,
}

impl BlockWalk {
    /// Blocks of shape `block` over an array of shape `shape`.
    ///
    /// # Errors
    /// As [`ChunkGrid::new`](crate::ChunkGrid::new): the ranks differ, or a block has no extent.
    pub fn new(shape: &[u64], block: &[u64]) -> Result<Self, SelectError> {
        Ok(Self { grid: crate::ChunkGrid::new(shape, block)? })
    }

    /// Number of blocks.
    pub fn len(&self) -> u64 {
        self.grid.len()
    }

    /// Whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.grid.is_empty()
    }

    /// The `number`-th block.
    pub fn block(&self, number: u64) -> Hyperslab {
        let index = self.grid.chunk_index(number);
        let axes = (0..index.len())
            .map(|d| {
                let start = index[d] * self.grid.chunk()[d];
                let len = self.grid.chunk()[d].min(self.grid.shape()[d] - start);
                Axis::range(start, len)
            })
            .collect();
        Hyperslab::from_axes(axes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_tile_the_array_once() {
        let walk = BlockWalk::new(&[5, 4], &[2, 3]).unwrap();
        let mut seen = [0u8; 20];
        for number in 0..walk.len() {
            let slab = walk.block(number);
            for r in 0..slab.axes()[0].len() {
                for c in 0..slab.axes()[1].len() {
                    let (r, c) = (slab.axes()[0].index_of(r), slab.axes()[1].index_of(c));
                    seen[(r * 4 + c) as usize] += 1;
                }
            }
        }
        assert_eq!(seen, [1; 20]);
    }
}
