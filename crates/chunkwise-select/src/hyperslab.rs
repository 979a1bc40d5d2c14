//! Which elements does a regular hyperslab select, and in which order?

use smallvec::SmallVec;

use crate::{Dims, MAX_RANK, SelectError};

/// One dimension of a hyperslab: `count` blocks of `block` elements, the first at
/// `start`, each `stride` after the one before.
///
/// Blocks never overlap (`stride >= block`) and `block` is at least 1; `count` may
/// be 0.  A selection without gaps is always held as a single block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    start: u64,
    stride: u64,
    count: u64,
    block: u64,
}

impl Axis {
    /// The half-open range `start..start + len`.
    pub fn range(start: u64, len: u64) -> Self {
        if len == 0 {
            return Self { start, stride: 1, count: 0, block: 1 };
        }
        Self { start, stride: len, count: 1, block: len }
    }

    /// `count` blocks of `block` elements; `dimension` and `size` are for the error.
    pub(crate) fn new(
        (start, stride, count, block): (u64, u64, u64, u64),
        dimension: usize,
        size: u64,
    ) -> Result<Self, SelectError> {
        if count == 0 || block == 0 {
            return Ok(Self::range(start.min(size), 0));
        }
        if count > 1 && stride < block {
            return Err(SelectError::Overlap { dimension, stride, block });
        }
        let end = (count - 1)
            .checked_mul(stride)
            .and_then(|last| last.checked_add(start))
            .and_then(|last| last.checked_add(block))
            .ok_or(SelectError::Overflow("elements selected"))?;
        if end > size {
            return Err(SelectError::BeyondShape { end, dimension, size });
        }
        if count == 1 || stride == block {
            return Ok(Self::range(start, count * block));
        }
        Ok(Self { start, stride, count, block })
    }

    /// `count` single elements (at least two), `stride` (at least two) apart, which
    /// the caller knows to lie within the dataset.
    pub(crate) fn strided(start: u64, stride: u64, count: u64) -> Self {
        Self { start, stride, count, block: 1 }
    }

    /// Number of elements selected.
    pub fn len(&self) -> u64 {
        self.count * self.block
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Where the `position`-th selected element lies in the dataset.
    pub fn index_of(&self, position: u64) -> u64 {
        self.start + (position / self.block) * self.stride + position % self.block
    }

    /// How many selected elements lie before element `index` of the dataset.
    pub fn rank_of(&self, index: u64) -> u64 {
        if index <= self.start {
            return 0;
        }
        let past = index - self.start;
        let blocks = past / self.stride;
        if blocks >= self.count {
            return self.len();
        }
        blocks * self.block + (past % self.stride).min(self.block)
    }

    /// Elements from the start of one block to the start of the next.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// The first element selected.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Number of blocks.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Elements in each block.
    pub fn block(&self) -> u64 {
        self.block
    }

    /// Whether the selected elements are neighbours, without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.count <= 1
    }
}

/// A regular hyperslab: the product of one [`Axis`] a dimension, slowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hyperslab {
    axes: SmallVec<[Axis; 4]>,
}

impl Hyperslab {
    /// Everything in an array of this shape.
    pub fn all(shape: &[u64]) -> Self {
        Self { axes: shape.iter().map(|&len| Axis::range(0, len)).collect() }
    }

    /// As `H5Sselect_hyperslab`: `count` blocks of `block` elements, `stride` apart.
    ///
    /// # Errors
    /// When the ranks differ, when blocks overlap, or when the selection reaches
    /// beyond `shape`.
    pub fn new(
        shape: &[u64],
        start: &[u64],
        stride: &[u64],
        count: &[u64],
        block: &[u64],
    ) -> Result<Self, SelectError> {
        if shape.len() > MAX_RANK {
            return Err(SelectError::TooManyDimensions(shape.len()));
        }
        for part in [start, stride, count, block] {
            if part.len() != shape.len() {
                return Err(SelectError::Rank { selection: part.len(), dataset: shape.len() });
            }
        }
        let axes = (0..shape.len())
            .map(|d| Axis::new((start[d], stride[d], count[d], block[d]), d, shape[d]))
            .collect::<Result<_, _>>()?;
        Ok(Self { axes })
    }

    /// From axes that are known to lie within the dataset.
    pub fn from_axes(axes: SmallVec<[Axis; 4]>) -> Self {
        Self { axes }
    }

    /// The dimensions, slowest first.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.axes.len()
    }

    /// Shape of the result, slowest dimension first.
    pub fn shape(&self) -> Dims {
        self.axes.iter().map(Axis::len).collect()
    }

    /// Number of elements selected.
    ///
    /// # Errors
    /// When that number does not fit into 64 bits.
    pub fn len(&self) -> Result<u64, SelectError> {
        // Zero anywhere wins over an overflow elsewhere.
        if self.is_empty() {
            return Ok(0);
        }
        self.axes
            .iter()
            .try_fold(1u64, |n, axis| n.checked_mul(axis.len()))
            .ok_or(SelectError::Overflow("elements selected"))
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.axes.iter().any(Axis::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn index_and_rank_agree_with_a_list(
            start in 0u64..20, extra in 0u64..6, count in 0u64..8, block in 1u64..6,
        ) {
            let stride = block + extra;
            let axis = Axis::new((start, stride, count, block), 0, 1000).unwrap();
            let listed: Vec<u64> =
                (0..count).flat_map(|i| (0..block).map(move |j| start + i * stride + j)).collect();
            prop_assert_eq!(axis.len(), listed.len() as u64);
            for (position, &index) in listed.iter().enumerate() {
                prop_assert_eq!(axis.index_of(position as u64), index);
            }
            for index in 0..200 {
                let before = listed.iter().filter(|&&i| i < index).count() as u64;
                prop_assert_eq!(axis.rank_of(index), before);
            }
        }
    }

    #[test]
    fn impossible_hyperslabs_are_refused() {
        let slab = |start, stride, count, block| {
            Hyperslab::new(&[10], &[start], &[stride], &[count], &[block])
        };
        assert!(matches!(slab(0, 1, 2, 3), Err(SelectError::Overlap { .. })));
        assert!(matches!(slab(8, 1, 1, 3), Err(SelectError::BeyondShape { end: 11, .. })));
        assert!(matches!(slab(1, u64::MAX, 2, 1), Err(SelectError::Overflow(_))));
        assert!(slab(10, 1, 0, 1).unwrap().is_empty());
        assert!(matches!(
            Hyperslab::new(&[10], &[0, 0], &[1], &[1], &[1]),
            Err(SelectError::Rank { .. })
        ));
    }
}
