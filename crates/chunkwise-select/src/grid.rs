//! How is a dataset cut into chunks?

use crate::{Dims, MAX_RANK, SelectError};

/// The grid of chunks over a dataset; chunks at the upper edges reach beyond it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkGrid {
    shape: Dims,
    chunk: Dims,
    counts: Dims,
}

impl ChunkGrid {
    /// The grid over `shape` (elements a dimension) with chunks of shape `chunk`.
    ///
    /// # Errors
    /// When the ranks differ, a chunk has no extent, or there are more chunks, or
    /// elements in a chunk, than 64 bits can count.
    pub fn new(shape: &[u64], chunk: &[u64]) -> Result<Self, SelectError> {
        if shape.len() > MAX_RANK {
            return Err(SelectError::TooManyDimensions(shape.len()));
        }
        if shape.len() != chunk.len() {
            return Err(SelectError::Rank { selection: chunk.len(), dataset: shape.len() });
        }
        // So that the element after the last chunk can be counted, too.
        if shape.iter().chain(chunk).any(|&n| n > i64::MAX as u64) {
            return Err(SelectError::Overflow("elements in a dimension"));
        }
        if let Some(dimension) = chunk.iter().position(|&c| c == 0) {
            return Err(SelectError::ZeroSize(dimension));
        }
        let counts: Dims = shape.iter().zip(chunk).map(|(&n, &c)| n.div_ceil(c)).collect();
        let product = |dims: &[u64]| dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
        // A zero anywhere makes the product zero, whatever the other dimensions are.
        if !counts.contains(&0) && product(&counts).is_none() {
            return Err(SelectError::Overflow("chunks"));
        }
        if product(chunk).is_none() {
            return Err(SelectError::Overflow("elements in a chunk"));
        }
        Ok(Self { shape: shape.into(), chunk: chunk.into(), counts })
    }

    /// Shape of the dataset.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Shape of a chunk.
    pub fn chunk(&self) -> &[u64] {
        &self.chunk
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of chunks along each dimension.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of chunks in the grid, written or not.
    pub fn len(&self) -> u64 {
        if self.counts.contains(&0) { 0 } else { self.counts.iter().product() }
    }

    /// Whether the dataset has no elements, and so no chunks.
    pub fn is_empty(&self) -> bool {
        self.counts.contains(&0)
    }

    /// Elements in a chunk, those beyond the dataset's edge included.
    pub fn chunk_len(&self) -> u64 {
        self.chunk.iter().product()
    }

    /// Position in row-major order of the chunk at grid coordinates `chunk_index`,
    /// or None when it lies outside the grid.
    pub fn linear_index(&self, chunk_index: &[u64]) -> Option<u64> {
        if chunk_index.len() != self.rank() {
            return None;
        }
        chunk_index
            .iter()
            .zip(&self.counts)
            .try_fold(0u64, |linear, (&i, &n)| (i < n).then(|| linear * n + i))
    }

    /// As [`linear_index`](Self::linear_index), from the element where a chunk begins;
    /// None also when no chunk begins there.
    pub fn linear_index_of_origin(&self, chunk_origin: &[u64]) -> Option<u64> {
        if chunk_origin.len() != self.rank() {
            return None;
        }
        (0..self.rank()).try_fold(0u64, |linear, d| {
            let (i, rest) = (chunk_origin[d] / self.chunk[d], chunk_origin[d] % self.chunk[d]);
            (rest == 0 && i < self.counts[d]).then(|| linear * self.counts[d] + i)
        })
    }

    /// Grid coordinates of the chunk at position `linear` in row-major order.
    pub fn chunk_index(&self, mut linear: u64) -> Dims {
        let mut index: Dims = smallvec::smallvec![0; self.rank()];
        for d in (0..self.rank()).rev() {
            index[d] = linear % self.counts[d];
            linear /= self.counts[d];
        }
        index
    }

    /// The first element of the chunk at `chunk_index`.
    pub fn origin(&self, chunk_index: &[u64]) -> Dims {
        chunk_index.iter().zip(&self.chunk).map(|(i, c)| i * c).collect()
    }

    /// Whether the chunk at `chunk_index` reaches beyond the dataset's edge.
    pub fn is_partial(&self, chunk_index: &[u64]) -> bool {
        (0..self.rank()).any(|d| (chunk_index[d] + 1) * self.chunk[d] > self.shape[d])
    }

    /// Elements of the chunk at `chunk_index`, in row-major order, up to the last that the dataset
    /// has: those after them lie beyond its edge.
    pub fn needed_len(&self, chunk_index: &[u64]) -> u64 {
        let within = self.within(chunk_index);
        if within.contains(&0) {
            return 0;
        }
        let last = within.iter().zip(&self.chunk).fold(0, |at, (&n, &c)| at * c + n - 1);
        last + 1
    }

    /// The elements that a chunk lacks of which only the first `held` are stored: where the first
    /// of those that the dataset has lies in it, and how many there are.  None where there is none.
    pub fn lacking(&self, chunk_index: &[u64], held: u64) -> Option<(Dims, u64)> {
        let within = self.within(chunk_index);
        let all: u64 = within.iter().product();
        if held >= self.needed_len(chunk_index) {
            return None;
        }
        // Coordinates of the first that is not stored, and the elements of the dataset before it.
        let (mut rest, mut step, mut before) = (held, self.chunk_len(), 0);
        let mut inner = all;
        for (&n, &c) in within.iter().zip(&self.chunk) {
            (step, inner) = (step / c, inner / n);
            let at = rest / step;
            rest %= step;
            before += at.min(n) * inner;
            if at >= n {
                break;
            }
        }
        let (mut number, mut first) = (before, within.clone());
        for d in (0..self.rank()).rev() {
            first[d] = chunk_index[d] * self.chunk[d] + number % within[d];
            number /= within[d];
        }
        Some((first, all - before))
    }

    /// Whether the element in place `at`, in row-major order, of a chunk is one of the dataset.
    pub fn has(&self, chunk_index: &[u64], mut at: u64) -> bool {
        let within = self.within(chunk_index);
        within.iter().zip(&self.chunk).rev().all(|(&n, &c)| {
            let place = at % c;
            at /= c;
            place < n
        })
    }

    /// How far the dataset reaches into a chunk.
    fn within(&self, chunk_index: &[u64]) -> Dims {
        let dims = self.shape.iter().zip(&self.chunk).zip(chunk_index);
        dims.map(|((&n, &c), &i)| n.saturating_sub(i.saturating_mul(c)).min(c)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_index_round_trips() {
        let grid = ChunkGrid::new(&[5, 7, 3], &[2, 3, 3]).unwrap();
        assert_eq!(grid.counts(), &[3, 3, 1]);
        for linear in 0..grid.len() {
            let index = grid.chunk_index(linear);
            assert_eq!(grid.linear_index(&index), Some(linear));
            assert_eq!(grid.linear_index_of_origin(&grid.origin(&index)), Some(linear));
        }
        assert_eq!(grid.linear_index(&[3, 0, 0]), None);
        assert_eq!(grid.linear_index_of_origin(&[1, 0, 0]), None);
        assert!(grid.is_partial(&[2, 0, 0]) && !grid.is_partial(&[1, 1, 0]));
    }

    #[test]
    fn impossible_grids_are_refused() {
        assert!(matches!(ChunkGrid::new(&[4], &[0]), Err(SelectError::ZeroSize(0))));
        assert!(matches!(
            ChunkGrid::new(&[1 << 40, 1 << 40], &[1, 1]),
            Err(SelectError::Overflow("chunks"))
        ));
        assert!(matches!(ChunkGrid::new(&[4, 4], &[2]), Err(SelectError::Rank { .. })));
        assert!(ChunkGrid::new(&[0, 1 << 62, 1 << 62], &[1, 1, 1]).unwrap().is_empty());
        assert!(ChunkGrid::new(&[u64::MAX], &[1]).is_err());
    }

    proptest::proptest! {
        #[test]
        fn what_a_short_chunk_lacks_is_what_the_dataset_has_after_it(
            dims in proptest::collection::vec((1u64..9, 1u64..6), 1..4),
            at in proptest::prelude::any::<proptest::sample::Index>(),
            held in 0u64..130,
        ) {
            let (shape, chunk): (Vec<u64>, Vec<u64>) = dims.into_iter().unzip();
            let grid = ChunkGrid::new(&shape, &chunk).unwrap();
            let index = grid.chunk_index(at.index(grid.len() as usize) as u64);
            let place = |mut number: u64| {
                let mut place: Dims = index.clone();
                for d in (0..grid.rank()).rev() {
                    place[d] = index[d] * chunk[d] + number % chunk[d];
                    number /= chunk[d];
                }
                place
            };
            let inside = |place: &Dims| (0..grid.rank()).all(|d| place[d] < shape[d]);
            let there: Vec<u64> = (0..grid.chunk_len()).filter(|&n| inside(&place(n))).collect();
            for number in 0..grid.chunk_len() {
                proptest::prop_assert_eq!(grid.has(&index, number), there.contains(&number));
            }
            proptest::prop_assert_eq!(grid.needed_len(&index), there.last().unwrap() + 1);
            let lost: Vec<u64> = there.into_iter().filter(|&number| number >= held).collect();
            let expected = lost.first().map(|&first| (place(first), lost.len() as u64));
            proptest::prop_assert_eq!(grid.lacking(&index, held), expected);
        }
    }
}
