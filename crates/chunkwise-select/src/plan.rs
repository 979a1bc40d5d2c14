//! Which chunks does a selection touch, and what is copied out of each?
//!
//! A plan is arithmetic, on a hyperslab in `slab_plan.rs`, on a union in `union_plan.rs`, on
//! lists, points and masks in `product_plan.rs`; who carries it out need not know which of
//! them it is.

use crate::product_plan::{ProductPlan, ProductTask};
use crate::slab_plan::{SlabPlan, SlabTask};
use crate::union_plan::{UnionPlan, UnionTask};
use crate::{ChunkGrid, Dims, SelectError, Selected, Strip, Summary};

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

macro_rules! of_each_kind {
    ($kind:ident, $this:ident, $one:ident => $what:expr) => {
        match &$this.0 {
            $kind::Hyperslab($one) => $what,
            $kind::Union($one) => $what,
            $kind::Product($one) => $what,
        }
    };
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
        of_each_kind!(Kind, self, plan => plan.len())
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
        of_each_kind!(Kind, self, plan => plan.selected_of(chunk_index))
    }

    /// All tasks, in order.
    pub fn tasks(&self) -> impl Iterator<Item = ChunkTask<'_>> {
        (0..self.len()).map(|number| self.task(number))
    }

    /// The plan in figures, without walking it.
    pub fn summary(&self) -> Summary {
        of_each_kind!(Kind, self, plan => plan.summary())
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
        of_each_kind!(KindOfTask, self, task => task.chunk_index())
    }

    /// Position of the chunk in row-major order of the grid.
    pub fn linear_index(&self) -> u64 {
        of_each_kind!(KindOfTask, self, task => task.linear_index())
    }

    /// Number of elements wanted from this chunk; one that is wanted several times counts
    /// each time.
    pub fn selected_elements(&self) -> u64 {
        of_each_kind!(KindOfTask, self, task => task.selected_elements())
    }

    /// Whether every element of the chunk that lies within the dataset is wanted.
    pub fn takes_all(&self) -> bool {
        of_each_kind!(KindOfTask, self, task => task.takes_all())
    }

    /// When the whole chunk, edges included, lands in the result as one run: where it
    /// begins there, in elements.  Such a chunk can be decoded in place.
    pub fn lands_whole_at(&self) -> Option<u64> {
        of_each_kind!(KindOfTask, self, task => task.lands_whole_at())
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
        of_each_kind!(KindOfTask, self, task => task.for_each_strip(visit))
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
