//! Which chunks does a union touch, and what is copied out of each?

use std::sync::Arc;

use smallvec::SmallVec;

use crate::spans::{Node, Span, chunks_of};
use crate::{ChunkGrid, Dims, SelectError, Strip, Summary, Union};

/// A plan of a union: the chunks it touches are a union as well, of places in the grid.
#[derive(Debug, Clone)]
pub(crate) struct UnionPlan<'a> {
    grid: &'a ChunkGrid,
    union: &'a Union,
    chunks: Union,
}

impl<'a> UnionPlan<'a> {
    pub(crate) fn new(grid: &'a ChunkGrid, union: &'a Union) -> Result<Self, SelectError> {
        if grid.rank() != union.rank() {
            return Err(SelectError::Rank { selection: union.rank(), dataset: grid.rank() });
        }
        if let Some((_, ends)) = union.bounds() {
            for (dimension, (&end, &size)) in ends.iter().zip(grid.shape()).enumerate() {
                if end > size {
                    return Err(SelectError::BeyondShape { end, dimension, size });
                }
            }
        }
        let touched = union.root().map(|root| chunks_of(root, grid.chunk())).transpose()?;
        Ok(Self { grid, union, chunks: Union::from_root(union.rank(), touched) })
    }

    pub(crate) fn len(&self) -> u64 {
        self.chunks.len()
    }

    pub(crate) fn task(&self, number: u64) -> UnionTask<'_> {
        let chunk_index = self.chunks.element(number).unwrap_or_default();
        self.task_of(chunk_index)
    }

    fn task_of(&self, chunk_index: Dims) -> UnionTask<'_> {
        let mut task = UnionTask {
            grid: self.grid,
            root: self.union.root(),
            begin: chunk_index.iter().zip(self.grid.chunk()).map(|(i, c)| i * c).collect(),
            end: Dims::new(),
            chunk_index,
            wanted: 0,
        };
        let ends = task.begin.iter().zip(self.grid.chunk());
        task.end = ends.zip(self.grid.shape()).map(|((b, c), &n)| (b + c).min(n)).collect();
        task.wanted = task.root.map_or(0, |root| task.count(root, 0));
        task
    }

    pub(crate) fn selected_of(&self, chunk_index: &[u64]) -> u64 {
        if self.chunks.contains(chunk_index) { self.task_of(chunk_index.into()).wanted } else { 0 }
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary {
            chunks: self.len(),
            selected_elements: self.union.len(),
            decoded_elements: self.len().saturating_mul(self.grid.chunk_len()),
        }
    }
}

/// One chunk of a [`UnionPlan`], and the elements wanted from it.
#[derive(Debug, Clone)]
pub(crate) struct UnionTask<'p> {
    grid: &'p ChunkGrid,
    root: Option<&'p Arc<Node>>,
    chunk_index: Dims,
    /// The chunk's first element, and one past its last within the dataset, a dimension.
    begin: Dims,
    end: Dims,
    wanted: u64,
}

impl UnionTask<'_> {
    pub(crate) fn chunk_index(&self) -> Dims {
        self.chunk_index.clone()
    }

    pub(crate) fn linear_index(&self) -> u64 {
        let counts = self.grid.counts();
        self.chunk_index.iter().zip(counts).fold(0, |linear, (i, n)| linear * n + i)
    }

    pub(crate) fn selected_elements(&self) -> u64 {
        self.wanted
    }

    pub(crate) fn takes_all(&self) -> bool {
        self.wanted == self.end.iter().zip(&self.begin).map(|(e, b)| e - b).product::<u64>()
    }

    pub(crate) fn lands_whole_at(&self) -> Option<u64> {
        if self.wanted != self.grid.chunk_len() {
            return None;
        }
        // Elements keep their order: between a first and a last place that are so far
        // apart there is room for this chunk's elements only.
        let last: Dims = self.end.iter().map(|end| end - 1).collect();
        let (first, last) = (self.root?.rank_of(&self.begin)?, self.root?.rank_of(&last)?);
        (last - first == self.wanted - 1).then_some(first)
    }

    pub(crate) fn for_each_strip(&self, visit: impl FnMut(Strip)) {
        self.strips(false, visit);
    }

    pub(crate) fn for_each_strip_in_order(&self, visit: impl FnMut(Strip)) {
        self.strips(true, visit);
    }

    /// Elements wanted below `node`, which cuts dimension `d`.
    fn count(&self, node: &Node, d: usize) -> u64 {
        if d == self.begin.len() {
            return 1;
        }
        let spans = node.within(self.begin[d], self.end[d]).iter();
        spans.map(|span| self.part(span, d).len() * self.count(&span.below, d + 1)).sum()
    }

    /// The part of a span that lies in the chunk.
    fn part(&self, span: &Span, d: usize) -> SpanPart {
        let start = span.start.max(self.begin[d]);
        SpanPart { start, end: span.end.min(self.end[d]), skipped: start - span.start }
    }

    fn strips(&self, in_order: bool, mut visit: impl FnMut(Strip)) {
        let Some(root) = self.root else { return };
        let mut walk = StripWalk { task: self, in_order, visit: &mut visit };
        match self.begin.len() {
            // Without dimensions there is one element.
            0 => visit(Strip::run(0, 0, 1)),
            1 => walk.rows(root, Rows { src: 0, dst: 0, count: 1, src_step: 0, dst_step: 0 }),
            _ => walk.below(root, 0, 0, 0),
        }
    }
}

/// Indexes `start..end` of a span, `skipped` after its first.
struct SpanPart {
    start: u64,
    end: u64,
    skipped: u64,
}

impl SpanPart {
    fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// Rows of the last dimension of which the same elements are wanted: where the first of
/// them begins in the chunk and its elements in the result, and how far on the next ones.
#[derive(Clone, Copy)]
struct Rows {
    src: u64,
    dst: u64,
    count: u64,
    src_step: u64,
    dst_step: u64,
}

struct StripWalk<'a, V> {
    task: &'a UnionTask<'a>,
    in_order: bool,
    visit: &'a mut V,
}

impl<V: FnMut(Strip)> StripWalk<'_, V> {
    /// Everything below `node`, which cuts dimension `d`, not the last; `src` and `dst` are
    /// where the outer indexes lead to in the chunk and in the result.
    fn below(&mut self, node: &Node, d: usize, src: u64, dst: u64) {
        let (task, rank) = (self.task, self.task.begin.len());
        let unit: u64 = task.grid.chunk()[d + 1..].iter().product();
        for span in node.within(task.begin[d], task.end[d]) {
            let part = task.part(span, d);
            let len = span.below.len;
            let src = src + (part.start - task.begin[d]) * unit;
            let dst = dst + span.before + part.skipped * len;
            if d + 2 == rank {
                let count = part.len();
                self.rows(&span.below, Rows { src, dst, count, src_step: unit, dst_step: len });
            } else {
                for i in 0..part.len() {
                    self.below(&span.below, d + 1, src + i * unit, dst + i * len);
                }
            }
        }
    }

    /// The same elements, those of `node`, of several rows.
    fn rows(&mut self, node: &Node, rows: Rows) {
        let last = self.task.begin.len() - 1;
        let begin = self.task.begin[last];
        let spans = node.within(begin, self.task.end[last]);
        // From the row's beginning in the chunk and in the result.
        let runs = spans.iter().map(|span| {
            let part = self.task.part(span, last);
            (part.start - begin, span.before + part.skipped, part.len())
        });
        let row = regular(runs.clone());
        // Many rows of few runs are done run by run, few rows of many runs row by row.
        let by_runs = spans.len() as u64 <= rows.count.saturating_mul(row.len() as u64);
        if rows.count > 1 && (spans.len() == 1 || (by_runs && !self.in_order)) {
            for (src, dst, len) in runs {
                let (src, dst) = (rows.src + src, rows.dst + dst);
                let Rows { count, src_step, dst_step, .. } = rows;
                let strip = Strip { src, dst, len, count, src_step, dst_step, backwards: false };
                (self.visit)(strip.merged());
            }
            return;
        }
        for i in 0..rows.count {
            let (src, dst) = (rows.src + i * rows.src_step, rows.dst + i * rows.dst_step);
            for strip in &row {
                (self.visit)(Strip { src: src + strip.src, dst: dst + strip.dst, ..*strip });
            }
        }
    }
}

/// The runs of a row (where each begins in the chunk and in the result, and its length),
/// those together in a strip that are equally long and equally far apart.
fn regular(runs: impl Iterator<Item = (u64, u64, u64)>) -> SmallVec<[Strip; 4]> {
    let mut row: SmallVec<[Strip; 4]> = SmallVec::new();
    for (src, dst, len) in runs {
        if let Some(strip) = row.last_mut().filter(|strip| strip.len == len) {
            let step = src - strip.src - (strip.count - 1) * strip.src_step;
            if strip.count == 1 || step == strip.src_step {
                // Within a row, runs are neighbours in the result.
                *strip = Strip { count: strip.count + 1, src_step: step, dst_step: len, ..*strip };
                continue;
            }
        }
        row.push(Strip::run(src, dst, len));
    }
    row
}
