//! Where do the blocks of a chunk go that are boxes of an array?
//!
//! Blocks are in row-major order, and so are the elements of each.  Those at the end of a
//! dimension may reach beyond it; all are stored in full.

use std::ops::Range;

/// An array in one chunk, cut into blocks.
#[derive(Debug)]
pub(crate) struct Grid {
    shape: Vec<usize>,
    block: Vec<usize>,
    /// Blocks along each dimension.
    counts: Vec<usize>,
    element_size: usize,
}

impl Grid {
    /// An array of `shape`, which is the chunk's as well; None where the blocks are larger,
    /// or nothing.
    pub(super) fn new(
        mut shape: Vec<usize>,
        mut block: Vec<usize>,
        element_size: usize,
    ) -> Option<Self> {
        let fit = shape.iter().zip(&block).all(|(s, b)| (1..=*s).contains(b));
        if shape.is_empty() || !fit || element_size == 0 {
            return None;
        }
        let mut counts: Vec<usize> =
            shape.iter().zip(&block).map(|(c, b)| c.div_ceil(*b)).collect();
        // Dimensions that no block divides count as one with the dimension before.
        while let ([.., outer, last], [.., outer_block, last_block]) =
            (&mut shape[..], &mut block[..])
            && last == last_block
            && counts.last() == Some(&1)
        {
            *outer = outer.checked_mul(*last)?;
            *outer_block = outer_block.checked_mul(*last)?;
            shape.pop();
            block.pop();
            counts.pop();
        }
        Some(Self { shape, block, counts, element_size })
    }

    /// Bytes of all blocks.
    pub(super) fn nbytes(&self) -> Option<usize> {
        product(&self.counts, self.block_nbytes()?)
    }

    /// Bytes of a block.
    pub(super) fn block_nbytes(&self) -> Option<usize> {
        product(&self.block, self.element_size)
    }

    /// Bytes of the array.
    pub(super) fn wanted_nbytes(&self) -> Option<usize> {
        product(&self.shape, self.element_size)
    }

    pub(crate) fn blocks(&self) -> usize {
        self.counts.iter().product()
    }

    /// The bytes of the array that a block is, if they are one run.
    pub(crate) fn run_of(&self, number: usize) -> Option<Range<usize>> {
        let (&[shape], &[block]) = (&self.shape[..], &self.block[..]) else { return None };
        let begin = number * block;
        (begin + block <= shape)
            .then(|| begin * self.element_size..(begin + block) * self.element_size)
    }

    /// Copy what lies in the array of a decoded block; `out` is the array from byte `from` on.
    pub(crate) fn put(&self, number: usize, block: &[u8], from: usize, out: &mut [u8]) {
        self.visit(0, number, 0, 0, &mut |within, at, nbytes| {
            let at = at - from;
            out[at..at + nbytes].copy_from_slice(&block[within..within + nbytes]);
        });
    }

    /// The same of those bytes alone that are in `runs`: bytes of the array, in order and apart.
    pub(crate) fn put_some(
        &self,
        number: usize,
        block: &[u8],
        runs: &[Range<usize>],
        out: &mut [u8],
    ) {
        self.visit_some(0, number, 0, 0, runs, &mut |within, bytes| {
            out[bytes.clone()].copy_from_slice(&block[within..within + bytes.len()]);
        });
    }

    /// How many ranges of the array are each made up by blocks in a row.
    pub(crate) fn slabs(&self) -> usize {
        self.counts[..=self.cut_dimension()].iter().product()
    }

    /// Such a range, in bytes, and the numbers of its blocks.
    pub(crate) fn slab(&self, number: usize) -> (Range<usize>, Range<usize>) {
        let dim = self.cut_dimension();
        let blocks: usize = self.counts[dim + 1..].iter().product();
        let row: usize = self.shape[dim + 1..].iter().product::<usize>() * self.element_size;
        let (outer, at) = (number / self.counts[dim], number % self.counts[dim]);
        let begin = at * self.block[dim];
        let end = (begin + self.block[dim]).min(self.shape[dim]);
        let rows = outer * self.shape[dim];
        ((rows + begin) * row..(rows + end) * row, number * blocks..(number + 1) * blocks)
    }

    /// The first dimension along which a block has more than one element, or the last of all:
    /// blocks that lie beside each other in the dimensions after it make up whole rows of it.
    fn cut_dimension(&self) -> usize {
        self.block.iter().position(|&len| len > 1).unwrap_or(self.block.len() - 1)
    }

    /// Bytes of a block that lie in a row.
    pub(crate) fn row_len(&self) -> usize {
        self.block.last().map_or(0, |len| len * self.element_size)
    }

    /// Mark the blocks in which these bytes of the array are, at least one.
    pub(crate) fn mark(&self, bytes: Range<usize>, marks: &mut [bool]) {
        let end = bytes.end.div_ceil(self.element_size);
        self.mark_elements(0, 0, bytes.start / self.element_size..end, marks);
    }

    /// The same along dimension `dim` and those after it, in the blocks from `first` on that are
    /// beside each other there.
    fn mark_elements(&self, dim: usize, first: usize, elements: Range<usize>, marks: &mut [bool]) {
        let (inner, stride): (usize, usize) =
            (self.counts[dim + 1..].iter().product(), self.shape[dim + 1..].iter().product());
        let (begin, last) = (elements.start / stride, (elements.end - 1) / stride);
        let mut row = begin;
        while row <= last {
            let from = if row == begin { elements.start % stride } else { 0 };
            let to = if row == last { (elements.end - 1) % stride + 1 } else { stride };
            let block = row / self.block[dim];
            let number = (first + block) * inner;
            let whole = from == 0 && to == stride;
            if whole {
                marks[number..number + inner].fill(true);
            } else {
                self.mark_elements(
                    dim + 1,
                    (first + block) * self.counts[dim + 1],
                    from..to,
                    marks,
                );
            }
            // Other rows of the same blocks tell nothing new.
            row = if whole { (block + 1) * self.block[dim] } else { row + 1 };
        }
    }

    /// Copy a block out of the array; what is beyond the array stays as it is.
    pub(crate) fn take(&self, number: usize, array: &[u8], block: &mut [u8]) {
        self.visit(0, number, 0, 0, &mut |within, at, nbytes| {
            block[within..within + nbytes].copy_from_slice(&array[at..at + nbytes]);
        });
    }

    /// Tell of each run that a block shares with the array: its first byte in the block, in
    /// the array, and its bytes.  Along dimension `dim` and those after it, from element
    /// `within` of the block and `at` of the array; `number` counts blocks of these dimensions.
    fn visit(
        &self,
        dim: usize,
        number: usize,
        within: usize,
        at: usize,
        run: &mut impl FnMut(usize, usize, usize),
    ) {
        let inner: usize = self.counts[dim + 1..].iter().product();
        let begin = number / inner % self.counts[dim] * self.block[dim];
        let len = self.block[dim].min(self.shape[dim].saturating_sub(begin));
        let size = self.element_size;
        if dim + 1 == self.shape.len() {
            return run(within * size, (at + begin) * size, len * size);
        }
        let block_stride: usize = self.block[dim + 1..].iter().product();
        let stride: usize = self.shape[dim + 1..].iter().product();
        for i in 0..len {
            self.visit(dim + 1, number, within + i * block_stride, at + (begin + i) * stride, run);
        }
    }

    /// As [`visit`](Self::visit), of what is in `runs`: rows without any are passed over at once.
    fn visit_some(
        &self,
        dim: usize,
        number: usize,
        within: usize,
        at: usize,
        runs: &[Range<usize>],
        run: &mut impl FnMut(usize, Range<usize>),
    ) {
        let (inner, block_stride, stride): (usize, usize, usize) = (
            self.counts[dim + 1..].iter().product(),
            self.block[dim + 1..].iter().product(),
            self.shape[dim + 1..].iter().product(),
        );
        let begin = number / inner % self.counts[dim] * self.block[dim];
        let len = self.block[dim].min(self.shape[dim].saturating_sub(begin));
        let size = self.element_size;
        let end = (at + (begin + len) * stride) * size;
        let mut row = (at + begin * stride) * size;
        while row < end {
            let runs = &runs[runs.partition_point(|run| run.end <= row)..];
            let Some(first) = runs.first().filter(|run| run.start < end) else { return };
            if dim + 1 == self.shape.len() {
                let bytes = first.start.max(row)..first.end.min(end);
                row = bytes.end;
                let from = (at + begin) * size;
                run(within * size + bytes.start - from, bytes);
                continue;
            }
            // The row in which the next run begins, or this one.
            let number_of_row = (first.start.max(row) / size - at) / stride;
            let i = number_of_row - begin;
            let at = at + number_of_row * stride;
            self.visit_some(dim + 1, number, within + i * block_stride, at, runs, run);
            row = (at + stride) * size;
        }
    }
}

fn product(numbers: &[usize], first: usize) -> Option<usize> {
    numbers.iter().try_fold(first, |product, &n| product.checked_mul(n))
}
