//! Which chunks does a selection touch, and what is copied out of each?
//!
//! A plan is arithmetic, on a hyperslab in `slab_plan.rs`, on a union in `union_plan.rs`, on
//! lists, points and masks in `product_plan.rs`; who carries it out need not know which of
//! them it is.

use crate::product_plan::{ProductPlan, ProductTask};
use crate::slab_plan::{SlabPlan, SlabTask};
use crate::union_plan::{UnionPlan, UnionTask};
use crate::{ChunkGrid, Dims, SelectError, Selected};

/// What a selection asks of a chunked dataset: an indexable sequence of
/// [`ChunkTask`]s in row-major order of chunks.
///
/// Making a plan costs memory for each dimension, each span of a union, each point of a
/// list, and each chunk that a mask touches; never for each chunk otherwise.
#[derive(Debug, Clone)]
pub struct Plan<'a>(Kind<'a>);

#[derive(Debug, Clone)]
enum Kind<'a> {
    Hyperslab(SlabPlan<'a>),
    Union(UnionPlan<'a>),
    Product(ProductPlan<'a>),
}

/// A plan in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Chunks touched, written or not.
    pub chunks: u64,
    /// Elements selected.
    pub selected_elements: u64,
    /// Elements in all chunks touched: what is decoded if nothing is cached.
    pub decoded_elements: u64,
}

impl<'a> Plan<'a> {
    /// Plan the reading of `selection` from a dataset cut by `grid`.
    ///
    /// # Errors
    /// When the ranks differ, a union reaches beyond the dataset, a product was made for
    /// another shape, or the selection is too large to count.
    pub fn new(
        grid: &'a ChunkGrid,
        selection: impl Into<Selected<'a>>,
    ) -> Result<Self, SelectError> {
        Ok(Self(match selection.into() {
            Selected::Hyperslab(slab) => Kind::Hyperslab(SlabPlan::new(grid, slab)?),
            Selected::Union(union) => Kind::Union(UnionPlan::new(grid, union)?),
            Selected::Product(product) => Kind::Product(ProductPlan::new(grid, product)?),
        }))
    }

    /// Number of chunks touched.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Kind::Hyperslab(plan) => plan.len(),
            Kind::Union(plan) => plan.len(),
            Kind::Product(plan) => plan.len(),
        }
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The `number`-th task; `number` must be below [`len`](Self::len).
    pub fn task(&self, number: u64) -> ChunkTask<'_> {
        ChunkTask(match &self.0 {
            Kind::Hyperslab(plan) => KindOfTask::Hyperslab(plan.task(number)),
            Kind::Union(plan) => KindOfTask::Union(plan.task(number)),
            Kind::Product(plan) => KindOfTask::Product(plan.task(number)),
        })
    }

    /// Elements wanted of the chunk at `chunk_index`; 0 when the plan does not touch it.
    pub fn selected_of(&self, chunk_index: &[u64]) -> u64 {
        match &self.0 {
            Kind::Hyperslab(plan) => plan.selected_of(chunk_index),
            Kind::Union(plan) => plan.selected_of(chunk_index),
            Kind::Product(plan) => plan.selected_of(chunk_index),
        }
    }

    /// All tasks, in order.
    pub fn tasks(&self) -> impl Iterator<Item = ChunkTask<'_>> {
        (0..self.len()).map(|number| self.task(number))
    }

    /// The plan in figures, without walking it.
    pub fn summary(&self) -> Summary {
        match &self.0 {
            Kind::Hyperslab(plan) => plan.summary(),
            Kind::Union(plan) => plan.summary(),
            Kind::Product(plan) => plan.summary(),
        }
    }
}

/// One chunk of a [`Plan`], and the elements wanted from it.
#[derive(Debug, Clone)]
pub struct ChunkTask<'p>(KindOfTask<'p>);

#[derive(Debug, Clone)]
enum KindOfTask<'p> {
    Hyperslab(SlabTask<'p>),
    Union(UnionTask<'p>),
    Product(ProductTask<'p>),
}

impl ChunkTask<'_> {
    /// Grid coordinates of the chunk.
    pub fn chunk_index(&self) -> Dims {
        match &self.0 {
            KindOfTask::Hyperslab(task) => task.chunk_index(),
            KindOfTask::Union(task) => task.chunk_index(),
            KindOfTask::Product(task) => task.chunk_index(),
        }
    }

    /// Position of the chunk in row-major order of the grid.
    pub fn linear_index(&self) -> u64 {
        match &self.0 {
            KindOfTask::Hyperslab(task) => task.linear_index(),
            KindOfTask::Union(task) => task.linear_index(),
            KindOfTask::Product(task) => task.linear_index(),
        }
    }

    /// Number of elements wanted from this chunk; one that is wanted several times counts
    /// each time.
    pub fn selected_elements(&self) -> u64 {
        match &self.0 {
            KindOfTask::Hyperslab(task) => task.selected_elements(),
            KindOfTask::Union(task) => task.selected_elements(),
            KindOfTask::Product(task) => task.selected_elements(),
        }
    }

    /// Whether every element of the chunk that lies within the dataset is wanted.
    pub fn takes_all(&self) -> bool {
        match &self.0 {
            KindOfTask::Hyperslab(task) => task.takes_all(),
            KindOfTask::Union(task) => task.takes_all(),
            KindOfTask::Product(task) => task.takes_all(),
        }
    }

    /// When the whole chunk, edges included, lands in the result as one run: where it
    /// begins there, in elements.  Such a chunk can be decoded in place.
    pub fn lands_whole_at(&self) -> Option<u64> {
        match &self.0 {
            KindOfTask::Hyperslab(task) => task.lands_whole_at(),
            KindOfTask::Union(task) => task.lands_whole_at(),
            KindOfTask::Product(task) => task.lands_whole_at(),
        }
    }

    /// When its strips in order are so many and so short that finding out about each costs more
    /// than moving the elements between them: over how many elements of the chunk they may
    /// lie, from its first one on.
    pub fn scattered_over(&self) -> Option<u64> {
        match &self.0 {
            KindOfTask::Hyperslab(_) | KindOfTask::Union(_) => None,
            KindOfTask::Product(task) => task.scattered_over(),
        }
    }

    /// Call `visit` with each strip to copy; all strips of a plan together cover each element
    /// of the result exactly once.
    pub fn for_each_strip(&self, visit: impl FnMut(Strip)) {
        match &self.0 {
            KindOfTask::Hyperslab(task) => task.for_each_strip(visit),
            KindOfTask::Union(task) => task.for_each_strip(visit),
            KindOfTask::Product(task) => task.for_each_strip(visit),
        }
    }

    /// As [`for_each_strip`](Self::for_each_strip), each strip beginning in the chunk
    /// where the one before has ended, or later: what reads from storage wants to move
    /// forward.  There may be more of them.  Elements that are wanted several times are the
    /// exception: strips with them may overlap, or go back to where earlier ones began.
    pub fn for_each_strip_in_order(&self, visit: impl FnMut(Strip)) {
        match &self.0 {
            KindOfTask::Hyperslab(task) => task.for_each_strip(visit),
            KindOfTask::Union(task) => task.for_each_strip_in_order(visit),
            KindOfTask::Product(task) => task.for_each_strip_in_order(visit),
        }
    }
}

/// `count` runs of `len` elements each; offsets and steps are in elements, `src`
/// from the start of the chunk (row-major in the chunk's shape), `dst` from the start
/// of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strip {
    /// Where the first run begins in the chunk.
    pub src: u64,
    /// Where the first run begins in the result.
    pub dst: u64,
    /// Elements in a run.
    pub len: u64,
    /// Number of runs.
    pub count: u64,
    /// Elements from one run to the next in the chunk.
    pub src_step: u64,
    /// Elements from one run to the next in the result.
    pub dst_step: u64,
    /// The runs come in the result in the opposite order: the last one at `dst`.
    pub backwards: bool,
}

impl Strip {
    /// `len` elements that are neighbours on both sides.
    pub(crate) fn run(src: u64, dst: u64, len: u64) -> Self {
        Self { src, dst, len, count: 1, src_step: 0, dst_step: 0, backwards: false }
    }

    /// Where each element lies in the chunk and in the result, in the order of the chunk.
    pub fn places(self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.count).flat_map(move |run| {
            let place = if self.backwards { self.count - 1 - run } else { run };
            let (src, dst) = (self.src + run * self.src_step, self.dst + place * self.dst_step);
            (0..self.len).map(move |i| (src + i, dst + i))
        })
    }

    /// Some of the runs: `count` of them, after the first `skipped` ones in the chunk.
    #[must_use]
    pub fn part(self, skipped: u64, count: u64) -> Self {
        let before = if self.backwards { self.count - skipped - count } else { skipped };
        Self {
            src: self.src + skipped * self.src_step,
            dst: self.dst + before * self.dst_step,
            count,
            ..self
        }
    }

    /// Runs that follow each other without gaps on both sides become one.
    pub(crate) fn merged(self) -> Self {
        let gapless = self.src_step == self.len && self.dst_step == self.len;
        if self.count > 1 && gapless && !self.backwards {
            return Self::run(self.src, self.dst, self.len * self.count);
        }
        self
    }
}
