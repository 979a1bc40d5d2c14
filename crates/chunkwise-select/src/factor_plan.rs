//! Which chunks does one factor of a selection touch, and what does it want of each?
//!
//! A factor sees the dimensions it stands for and no others: an array of its own, with
//! chunks of its own.  `product_plan.rs` puts the factors together.

use crate::axis_chunks::AxisChunks;
use crate::bits::Bits;
use crate::product::Factor;
use crate::{Axis, ChunkGrid, Dims, SelectError};

/// Neighbours in the chunk that are neighbours in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where it begins in the chunk, row-major.
    pub src: u64,
    /// Which of the factor's choices it begins with.
    pub dst: u64,
    pub len: u64,
}

/// Elements at equal distances in the chunk, and neighbours in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Regular {
    pub src: u64,
    pub dst: u64,
    pub src_step: u64,
    /// The last of them in the chunk comes first in the result.
    pub backwards: bool,
}

/// A factor's chunks.
#[derive(Debug, Clone)]
pub(crate) struct FactorPlan<'a> {
    grid: ChunkGrid,
    /// Number of choices.
    pub out_len: u64,
    kind: Kind<'a>,
}

#[derive(Debug, Clone)]
enum Kind<'a> {
    Axis {
        axis: &'a Axis,
        backwards: bool,
        chunks: AxisChunks,
    },
    /// All runs, chunk by chunk, their places counted through all chunks; and for each
    /// chunk touched, its number and which of the runs is its first.
    Points {
        runs: Vec<Run>,
        starts: Vec<(u64, usize)>,
    },
    /// Each chunk touched, and how many elements of it are wanted.
    Mask {
        bits: &'a Bits,
        rows: MaskRows,
        touched: Vec<(u64, u64)>,
    },
}

impl<'a> FactorPlan<'a> {
    /// Plan a factor over dimensions of these sizes, cut into chunks of these.
    pub(crate) fn new(
        factor: &'a Factor,
        shape: &[u64],
        chunk: &[u64],
    ) -> Result<Self, SelectError> {
        let grid = ChunkGrid::new(shape, chunk)?;
        let kind = match factor {
            Factor::Axis { axis, backwards } => {
                let chunks = AxisChunks::new(axis, grid.chunk_len());
                Kind::Axis { axis, backwards: *backwards, chunks }
            }
            Factor::Points { places, .. } => {
                let runs = runs_by_chunk(&grid, places)?;
                let mut starts: Vec<(u64, usize)> = Vec::new();
                for (first, run) in runs.iter().enumerate() {
                    let number = run.src / grid.chunk_len();
                    if starts.last().is_none_or(|last| last.0 != number) {
                        starts.push((number, first));
                    }
                }
                Kind::Points { runs, starts }
            }
            Factor::Mask { bits, .. } => {
                let rows = MaskRows::new(&grid)?;
                let touched = rows.count(bits);
                Kind::Mask { bits, rows, touched }
            }
        };
        Ok(Self { out_len: factor.len(), grid, kind })
    }

    /// Number of chunks touched.
    pub(crate) fn len(&self) -> u64 {
        match &self.kind {
            Kind::Axis { chunks, .. } => chunks.len(),
            Kind::Points { starts, .. } => starts.len() as u64,
            Kind::Mask { touched, .. } => touched.len() as u64,
        }
    }

    /// Number of chunks there are.
    pub(crate) fn grid_len(&self) -> u64 {
        self.grid.len()
    }

    /// Elements in a chunk.
    pub(crate) fn chunk_len(&self) -> u64 {
        self.grid.chunk_len()
    }

    /// Number of dimensions.
    pub(crate) fn rank(&self) -> usize {
        self.grid.rank()
    }

    /// The part of the `number`-th chunk touched, which there must be.
    pub(crate) fn part(&self, number: u64) -> FactorPart<'_> {
        match &self.kind {
            Kind::Axis { axis, chunks, .. } => {
                let chunk = chunks.get(number, axis, self.grid.chunk_len());
                self.part_of_axis(axis, chunk)
            }
            Kind::Points { runs, starts } => {
                let (chunk, first) = starts[number as usize];
                let end = starts.get(number as usize + 1).map_or(runs.len(), |next| next.1);
                let runs = &runs[first..end];
                let wanted = runs.iter().map(|run| run.len).sum();
                FactorPart { plan: self, chunk, first: 0, wanted, runs }
            }
            Kind::Mask { touched, .. } => {
                let (chunk, wanted) = touched[number as usize];
                FactorPart { plan: self, chunk, first: 0, wanted, runs: &[] }
            }
        }
    }

    fn part_of_axis(&self, axis: &Axis, chunk: u64) -> FactorPart<'_> {
        let len = self.grid.chunk_len();
        let first = axis.rank_of(chunk * len);
        let wanted = axis.rank_of((chunk + 1).saturating_mul(len)) - first;
        FactorPart { plan: self, chunk, first, wanted, runs: &[] }
    }

    /// Elements wanted of the chunk at `chunk_index`.
    pub(crate) fn selected_of(&self, chunk_index: &[u64]) -> u64 {
        let Some(chunk) = self.grid.linear_index(chunk_index) else { return 0 };
        match &self.kind {
            Kind::Axis { axis, .. } => self.part_of_axis(axis, chunk).wanted,
            Kind::Points { starts, .. } => {
                let found = starts.binary_search_by_key(&chunk, |start| start.0);
                found.map_or(0, |number| self.part(number as u64).wanted)
            }
            Kind::Mask { touched, .. } => {
                let found = touched.binary_search_by_key(&chunk, |one| one.0);
                found.map_or(0, |number| touched[number].1)
            }
        }
    }
}

/// What a factor wants of one chunk.
#[derive(Debug, Clone)]
pub(crate) struct FactorPart<'p> {
    plan: &'p FactorPlan<'p>,
    /// The chunk's number among those of the factor's dimensions.
    pub chunk: u64,
    /// Of an axis: how many elements are selected in the chunks before.
    first: u64,
    /// Number of elements, repeated ones counted each time.
    pub wanted: u64,
    /// Of points: the chunk's runs.
    runs: &'p [Run],
}

impl FactorPart<'_> {
    /// Grid coordinates of the chunk in the factor's dimensions.
    pub(crate) fn chunk_index(&self) -> Dims {
        self.plan.grid.chunk_index(self.chunk)
    }

    /// Whether every element of the chunk that lies within the dataset is wanted.
    pub(crate) fn takes_all(&self) -> bool {
        let (begin, end) = extent(&self.plan.grid, self.chunk);
        let extent = begin.iter().zip(&end).map(|(b, e)| e - b).product();
        // Only points can be repeated.
        self.wanted >= extent && (self.runs.is_empty() || distinct(self.runs) == extent)
    }

    /// When the part is of elements at equal distances: the first one of them in the chunk, and
    /// the first of their places in the result.
    pub(crate) fn regular(&self) -> Option<Regular> {
        if let Kind::Axis { axis, backwards, .. } = &self.plan.kind
            && (axis.is_contiguous() || axis.block() == 1)
        {
            let src = axis.index_of(self.first) - self.chunk * self.plan.grid.chunk_len();
            let src_step = if axis.is_contiguous() { 1 } else { axis.stride() };
            let dst = if *backwards { axis.len() - self.first - self.wanted } else { self.first };
            return Some(Regular { src, dst, src_step, backwards: *backwards });
        }
        let Run { src, dst, .. } = self.single()?;
        Some(Regular { src, dst, src_step: 1, backwards: false })
    }

    /// The run that is the whole part, if one is.
    pub(crate) fn single(&self) -> Option<Run> {
        let mut first = None;
        self.visit_runs(&mut |run| {
            first = Some(run);
            false
        });
        first.filter(|run| run.len == self.wanted)
    }

    /// How many runs there are, at most.
    pub(crate) fn most_runs(&self) -> u64 {
        if self.runs.is_empty() { self.wanted } else { self.runs.len() as u64 }
    }

    /// Call `visit` with each run, none of which begins in the chunk before one that came
    /// earlier, until it returns false; false if it did.
    pub(crate) fn visit_runs(&self, visit: &mut dyn FnMut(Run) -> bool) -> bool {
        match &self.plan.kind {
            Kind::Axis { axis, backwards, .. } => self.visit_axis(axis, *backwards, visit),
            Kind::Points { .. } => {
                let begin = self.chunk * self.plan.grid.chunk_len();
                self.runs.iter().all(|run| visit(Run { src: run.src - begin, ..*run }))
            }
            Kind::Mask { bits, rows, .. } => rows.visit_runs(self.chunk, bits, visit),
        }
    }

    fn visit_axis(&self, axis: &Axis, backwards: bool, visit: &mut dyn FnMut(Run) -> bool) -> bool {
        let begin = self.chunk * self.plan.grid.chunk_len();
        let end = self.first + self.wanted;
        let mut at = self.first;
        while at < end {
            let src = axis.index_of(at) - begin;
            let (dst, len) = if backwards {
                (axis.len() - 1 - at, 1)
            } else {
                (at, (axis.block() - at % axis.block()).min(end - at))
            };
            if !visit(Run { src, dst, len }) {
                return false;
            }
            at += len;
        }
        true
    }
}

/// Elements of runs in order of their places, each counted once.
fn distinct(runs: &[Run]) -> u64 {
    let (mut count, mut end) = (0, 0);
    for run in runs {
        let (first, last) = (run.src.max(end), run.src + run.len);
        count += last.saturating_sub(first);
        end = end.max(last);
    }
    count
}

/// The first element of a chunk, and one past its last within the dataset, a dimension.
fn extent(grid: &ChunkGrid, chunk: u64) -> (Dims, Dims) {
    let begin = grid.origin(&grid.chunk_index(chunk));
    let end = begin.iter().zip(grid.chunk()).zip(grid.shape());
    let end = end.map(|((&b, &c), &n)| b.saturating_add(c).min(n)).collect();
    (begin, end)
}

/// The runs of points, in order of chunks and of places in them; `src` counts through the
/// chunks, each after the one before.
fn runs_by_chunk(grid: &ChunkGrid, places: &[u64]) -> Result<Vec<Run>, SelectError> {
    let chunk_len = grid.chunk_len();
    if grid.len().checked_mul(chunk_len).is_none() {
        return Err(SelectError::Overflow("elements in all chunks"));
    }
    // How a place is cut into coordinates: size, chunk, chunks and elements of one from one
    // index to the next, slowest last.
    let (mut chunks_unit, mut element_unit) = (1, 1);
    let mut steps: smallvec::SmallVec<[_; 4]> = smallvec::SmallVec::new();
    for d in (0..grid.rank()).rev() {
        steps.push((grid.shape()[d], grid.chunk()[d], chunks_unit, element_unit));
        chunks_unit *= grid.counts()[d];
        element_unit *= grid.chunk()[d];
    }
    let key_of = |mut place: u64| {
        if grid.rank() == 1 {
            return place;
        }
        let (mut chunk, mut within) = (0, 0);
        for &(size, len, chunks_unit, element_unit) in &steps {
            let index = place % size;
            place /= size;
            chunk += index / len * chunks_unit;
            within += index % len * element_unit;
        }
        chunk * chunk_len + within
    };
    let mut runs: Vec<Run> = Vec::with_capacity(places.len());
    for (dst, &place) in places.iter().enumerate() {
        let src = key_of(place);
        if let Some(last) = runs.last_mut()
            && last.src + last.len == src
            && src % chunk_len != 0
        {
            last.len += 1;
        } else {
            runs.push(Run { src, dst: dst as u64, len: 1 });
        }
    }
    runs.sort_unstable_by_key(|run| (run.src, run.dst));
    Ok(runs)
}

/// The rows of a masked array: dimensions that are not cut by chunks are one with the next.
#[derive(Debug, Clone)]
struct MaskRows {
    grid: ChunkGrid,
}

impl MaskRows {
    fn new(grid: &ChunkGrid) -> Result<Self, SelectError> {
        let (mut shape, mut chunk) = (Dims::new(), Dims::new());
        // Slowest last, until all are there.
        for (&size, &len) in grid.shape().iter().zip(grid.chunk()).rev() {
            match (shape.last_mut(), chunk.last_mut()) {
                (Some(row), Some(part)) if row == part => {
                    *row *= size;
                    *part *= len;
                }
                _ => {
                    shape.push(size);
                    chunk.push(len);
                }
            }
        }
        shape.reverse();
        chunk.reverse();
        Ok(Self { grid: ChunkGrid::new(&shape, &chunk)? })
    }

    /// The chunks with set bits, and how many each has.
    fn count(&self, bits: &Bits) -> Vec<(u64, u64)> {
        let mut touched = Vec::new();
        for chunk in 0..self.grid.len() {
            let mut count = 0;
            self.visit(chunk, |begin, end, _| {
                count += bits.count(begin, end);
                true
            });
            if count > 0 {
                touched.push((chunk, count));
            }
        }
        touched
    }

    fn visit_runs(&self, chunk: u64, bits: &Bits, visit: &mut dyn FnMut(Run) -> bool) -> bool {
        self.visit(chunk, |begin, end, src| {
            let mut dst = bits.rank(begin);
            bits.visit_runs(begin, end, |start, len| {
                let run = Run { src: src + (start - begin), dst, len };
                dst += len;
                visit(run)
            })
        })
    }

    /// Call `visit` with each row of a chunk, its first bit, one past its last, and where it
    /// begins in the chunk, until it returns false; false if it did.
    fn visit(&self, chunk: u64, mut visit: impl FnMut(u64, u64, u64) -> bool) -> bool {
        let grid = &self.grid;
        let (first, end) = extent(grid, chunk);
        // A mask has at least one dimension.
        let last = grid.rank() - 1;
        let mut at = first.clone();
        loop {
            let (mut bit, mut src) = (0, 0);
            for d in 0..=last {
                bit = bit * grid.shape()[d] + at[d];
                src = src * grid.chunk()[d] + (at[d] - first[d]);
            }
            if !visit(bit, bit + (end[last] - first[last]), src) {
                return false;
            }
            let mut d = last;
            loop {
                if d == 0 {
                    return true;
                }
                d -= 1;
                at[d] += 1;
                if at[d] < end[d] {
                    break;
                }
                at[d] = first[d];
            }
        }
    }
}
