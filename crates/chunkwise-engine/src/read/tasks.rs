//! Which tasks does a thread carry out, and where do their chunks lie?
//!
//! Each task is given once, with the elements of the result that it fills: here stands the `unsafe`
//! of reading.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use chunkwise_select::{ChunkTask, Dims, Plan};

use crate::dataset::Placement;
use crate::read::scatter::SharedResult;
use crate::read::schedule::Segments;
use crate::read::view::TaskView;
use crate::{Dataset, ReadError};

/// Where the chunk of a task lies.
pub(crate) struct Placed {
    /// Its position in row-major order of the grid.
    pub position: u64,
    pub chunk_index: Dims,
    pub placement: Result<Placement, ReadError>,
}

/// Tasks of a plan that are to be carried out, each once.
pub(crate) struct Tasks<'a> {
    dataset: &'a Dataset,
    plan: &'a Plan<'a>,
    result: SharedResult<'a>,
    /// Bytes of an element of the result.
    size: usize,
    numbers: Numbers,
}

/// Which tasks of a plan.
enum Numbers {
    /// So many, from the first on.
    All(u64),
    /// These, each once, and where their chunks lie if that was looked up.
    These(Vec<(u64, Option<Placement>)>),
}

impl<'a> Tasks<'a> {
    /// All tasks of a plan, which fill `out` with elements of `size` bytes.
    pub fn new(dataset: &'a Dataset, plan: &'a Plan<'a>, out: &'a mut [u8], size: usize) -> Self {
        let (result, numbers) = (SharedResult::new(out), Numbers::All(plan.len()));
        Self { dataset, plan, result, size, numbers }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        match &self.numbers {
            Numbers::All(len) => *len,
            Numbers::These(numbers) => numbers.len() as u64,
        }
    }

    /// One of them, from 0 to [`len`](Self::len).
    fn number(&self, at: u64) -> (u64, Option<Placement>) {
        match &self.numbers {
            Numbers::All(_) => (at, None),
            Numbers::These(numbers) => numbers[at as usize],
        }
    }

    fn look_at(&self, at: u64) -> (ChunkTask<'a>, Placed) {
        let (number, known) = self.number(at);
        let task = self.plan.task(number);
        let (position, chunk_index) = (task.linear_index(), task.chunk_index());
        let look_up = || self.dataset.placement(position, &chunk_index);
        let placement = known.map_or_else(look_up, Ok);
        (task, Placed { position, chunk_index, placement })
    }

    /// One of them, to be carried out.
    ///
    /// # Safety
    /// Only once for each of them, or when an earlier view of it is gone.
    unsafe fn take(&self, at: u64) -> (TaskView<'a>, Placed) {
        let (task, placed) = self.look_at(at);
        // SAFETY: all views of the result come from here, for tasks of one plan, of which no
        // number is there twice; for each, the caller's contract.
        (unsafe { TaskView::new(task, self.result, self.size) }, placed)
    }

    /// Those that `done` does not carry out.
    pub fn without(mut self, done: impl Fn(&mut TaskView<'_>, &Placed) -> bool) -> Self {
        let left = (0..self.len()).filter_map(|at| {
            // SAFETY: each once, and no view outlives its turn.
            let (mut view, placed) = unsafe { self.take(at) };
            (!done(&mut view, &placed)).then(|| (self.number(at).0, placed.placement.ok()))
        });
        self.numbers = Numbers::These(left.collect());
        self
    }

    /// In segments, which so many threads take one after the other.
    pub fn for_threads(self, threads: usize) -> SharedTasks<'a> {
        let segments = Segments::new(self.len(), self.dataset.chunk_nbytes, threads);
        SharedTasks { tasks: self, segments, next: AtomicU64::new(0) }
    }
}

/// Tasks that threads take in segments.
pub(crate) struct SharedTasks<'a> {
    tasks: Tasks<'a>,
    segments: Segments,
    /// The segment that is taken next.
    next: AtomicU64,
}

impl<'a> SharedTasks<'a> {
    /// How the tasks are divided.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The tasks of a segment, whoever carries them out.
    pub fn look_at(&self, segment: u64) -> impl Iterator<Item = (ChunkTask<'a>, Placed)> {
        self.segments.tasks(segment).map(|at| self.tasks.look_at(at))
    }

    /// The next segment; None when all are taken.
    pub fn take(&self) -> Option<TakenTasks<'_, 'a>> {
        let segment = self.next.fetch_add(1, Relaxed);
        let left = self.segments.tasks(segment);
        (segment < self.segments.count()).then_some(TakenTasks { of: self, segment, left })
    }
}

/// A segment that one thread has taken: its tasks, to be carried out.
pub(crate) struct TakenTasks<'s, 'a> {
    of: &'s SharedTasks<'a>,
    segment: u64,
    left: Range<u64>,
}

impl TakenTasks<'_, '_> {
    /// Its number.
    pub fn segment(&self) -> u64 {
        self.segment
    }
}

impl<'a> Iterator for TakenTasks<'_, 'a> {
    type Item = (TaskView<'a>, Placed);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.left.next()?;
        // SAFETY: each segment is taken once, and so is each of its tasks.
        Some(unsafe { self.of.tasks.take(at) })
    }
}
