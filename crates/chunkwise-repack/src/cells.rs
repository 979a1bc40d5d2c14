//! Which elements belong to which target chunk?

use chunkwise_select::{ChunkGrid, Dims, Hyperslab, SelectError};

use crate::boxes::{ArrayBox, copy_box};

/// The pieces that a target is made of: its chunks, or boxes of it where it has none.
#[derive(Debug, Clone)]
pub struct Cells {
    /// Where they lie.
    pub grid: ChunkGrid,
    /// Bytes of an element.
    pub size: usize,
}

/// A box of a dataset, within its shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// Element where it begins.
    pub origin: Dims,
    /// Elements in each dimension.
    pub shape: Dims,
}

impl Extent {
    /// The chunk of `grid` at `position`, as far as it lies within the shape.
    pub fn of_chunk(grid: &ChunkGrid, position: u64) -> Self {
        let origin = grid.origin(&grid.chunk_index(position));
        let room = grid.shape().iter().zip(&origin).map(|(n, at)| n - at);
        let shape = room.zip(grid.chunk()).map(|(room, &len)| room.min(len)).collect();
        Self { origin, shape }
    }

    /// As a selection of an array of shape `within`.
    ///
    /// # Errors
    /// When it does not lie there.
    pub fn selection(&self, within: &[u64]) -> Result<Hyperslab, SelectError> {
        let ones: Dims = self.shape.iter().map(|_| 1).collect();
        Hyperslab::new(within, &self.origin, &self.shape, &ones, &self.shape)
    }

    /// Bytes of its elements of `size` bytes.
    pub fn nbytes(&self, size: usize) -> u64 {
        self.shape.iter().fold(size as u64, |n, &d| n.saturating_mul(d))
    }

    /// The part of it that lies within another.
    pub fn within(&self, other: &Self) -> Self {
        let ends = |one: &Self, d: usize| one.origin[d] + one.shape[d];
        let both = (0..self.origin.len()).map(|d| {
            let begin = self.origin[d].max(other.origin[d]);
            (begin, ends(self, d).min(ends(other, d)).saturating_sub(begin))
        });
        let (origin, shape) = both.unzip();
        Self { origin, shape }
    }

    /// Copy its elements out of `from`, those of a box that it lies in; None where it does not.
    pub fn take(&self, from: &[u8], outer: &Self, out: &mut [u8], size: usize) -> Option<()> {
        let (at, zeros) = self.place_in(outer)?;
        let inside = ArrayBox { shape: &outer.shape, at: &at };
        let whole = ArrayBox { shape: &self.shape, at: &zeros };
        copy_box(&self.shape, size, (from, inside), (out, whole))
    }

    /// Copy its elements to their place in `out`, those of a box that it lies in; None where it
    /// does not.
    pub fn put(&self, elements: &[u8], outer: &Self, out: &mut [u8], size: usize) -> Option<()> {
        let (at, zeros) = self.place_in(outer)?;
        let inside = ArrayBox { shape: &outer.shape, at: &at };
        let whole = ArrayBox { shape: &self.shape, at: &zeros };
        copy_box(&self.shape, size, (elements, whole), (out, inside))
    }

    /// Where it begins in a box that it lies in, and as many zeros.
    fn place_in(&self, outer: &Self) -> Option<(Dims, Dims)> {
        let at = self.origin.iter().zip(&outer.origin).map(|(n, from)| n.checked_sub(*from));
        Some((at.collect::<Option<_>>()?, self.origin.iter().map(|_| 0).collect()))
    }

    /// The chunks of `grid` that it touches: the first in each dimension, and how many.
    pub fn touches(&self, grid: &ChunkGrid) -> Chunks {
        let dims = self.origin.iter().zip(&self.shape).zip(grid.chunk());
        let (first, count) = dims
            .map(|((&at, &len), &chunk)| {
                let first = at / chunk;
                (first, (at + len).div_ceil(chunk) - first)
            })
            .unzip();
        Chunks { first, count }
    }
}

/// A box of a grid of chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    first: Dims,
    count: Dims,
}

impl Chunks {
    /// How many chunks there are.
    pub fn len(&self) -> u64 {
        self.count.iter().fold(1, |n, &d| n.saturating_mul(d))
    }

    /// The position in `grid` of its `number`-th chunk.
    pub fn position(&self, grid: &ChunkGrid, mut number: u64) -> u64 {
        let mut index = self.first.clone();
        for d in (0..index.len()).rev() {
            index[d] += number % self.count[d];
            number /= self.count[d];
        }
        index.iter().zip(grid.counts()).fold(0, |linear, (i, n)| linear * n + i)
    }
}
