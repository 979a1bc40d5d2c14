//! Which tasks does a thread carry out, and where do their chunks lie?
//!
//! Each task is given once, with the elements of the result that it fills: here stands the `unsafe`
//! of reading.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use chunkwise_select::{ChunkTask, Dims, Plan};
use smallvec::SmallVec;

use crate::dataset::Placement;
use crate::read::scatter::SharedResult;
use crate::read::schedule::Segments;
use crate::read::view::TaskView;
use crate::{ChunkRecord, Dataset, ReadError};

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
    /// This many, from the first on.
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

    /// Where the chunk of one of them lies.
    #[inline]
    fn placed(&self, at: u64, task: &ChunkTask<'_>) -> Placed {
        let (position, chunk_index) = (task.linear_index(), task.chunk_index());
        let placement = match self.number(at).1 {
            Some(known) => Ok(known),
            None => self.dataset.placement(position, &chunk_index),
        };
        Placed { position, chunk_index, placement }
    }

    /// One of them, to be carried out.
    ///
    /// # Safety
    /// Only once for each of them, or when an earlier view of it is gone.
    #[inline]
    unsafe fn view(&self, at: u64) -> TaskView<'a> {
        // SAFETY: all views of the result come from here, for tasks of one plan, of which no
        // number is there twice; for each, the caller's contract.
        unsafe { TaskView::new(self.plan.task(self.number(at).0), self.result, self.size) }
    }

    /// Those that `done` does not carry out.
    pub fn without(mut self, done: impl Fn(&mut TaskView<'_>, &Placed) -> bool) -> Self {
        let left = (0..self.len()).filter_map(|at| {
            // SAFETY: each once, and no view outlives its turn.
            let mut view = unsafe { self.view(at) };
            let placed = self.placed(at, view.task());
            (!done(&mut view, &placed)).then(|| (self.number(at).0, placed.placement.ok()))
        });
        self.numbers = Numbers::These(left.collect());
        self
    }

    /// Where the first and the last chunk lie, if they, and so probably all between them, are copied
    /// straight into the result.
    pub fn ends_as_they_are(&self) -> Option<[u64; 2]> {
        let address = |at: u64| {
            let task = self.plan.task(self.number(at).0);
            match self.placed(at, &task).placement {
                Ok(Placement::Raw { address }) => Some((task.lands_whole_at().is_some(), address)),
                _ => None,
            }
        };
        // The last one may reach beyond the dataset.
        let ((lands_whole, first), (_, last)) = (address(0)?, address(self.len().checked_sub(1)?)?);
        lands_whole.then_some([first, last])
    }

    /// A few of the chunks that are to be decoded.
    fn some_records(&self) -> SmallVec<[ChunkRecord; 3]> {
        let record = |at: u64| {
            let task = self.plan.task(self.number(at).0);
            match self.placed(at, &task).placement {
                Ok(Placement::Filtered(record)) => Some(record),
                _ => None,
            }
        };
        let len = self.len();
        let some = if len > 1 { &[0, len / 2, len - 1][..] } else { &[] };
        some.iter().filter_map(|&at| record(at)).collect()
    }

    /// In segments, which this many threads take one after the other.
    pub fn for_threads(self, threads: usize) -> SharedTasks<'a> {
        let some = self.some_records();
        let several = self.dataset.chunks_in_hand_of(self.len(), &some, threads);
        let segments = Segments::new(self.len(), self.dataset.chunk_nbytes, threads, several);
        SharedTasks { tasks: self, segments, several: several > 1, next: AtomicU64::new(0) }
    }
}

/// Tasks that threads take in segments.
pub(crate) struct SharedTasks<'a> {
    tasks: Tasks<'a>,
    segments: Segments,
    /// Whether several chunks may be inflated at the same time.
    several: bool,
    /// The segment that is taken next.
    next: AtomicU64,
}

impl<'a> SharedTasks<'a> {
    /// How the tasks are divided.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The tasks of a segment, whichever thread carries them out.
    pub fn look_at(&self, segment: u64) -> impl Iterator<Item = (ChunkTask<'a>, Placed)> {
        self.segments.tasks(segment).map(|at| {
            let task = self.tasks.plan.task(self.tasks.number(at).0);
            let placed = self.tasks.placed(at, &task);
            (task, placed)
        })
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

impl<'a> TakenTasks<'_, 'a> {
    /// Its number.
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// Whether several of its chunks may be inflated at the same time.
    pub fn several(&self) -> bool {
        self.of.several
    }

    /// Call `carry_out` with each task.  They are large, and so are not moved.
    #[inline]
    pub fn each(
        self,
        mut carry_out: impl FnMut(TaskView<'a>, Placed) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let tasks = &self.of.tasks;
        for at in self.left {
            // SAFETY: each segment is taken once, and so is each of its tasks.
            let view = unsafe { tasks.view(at) };
            let placed = tasks.placed(at, view.task());
            carry_out(view, placed)?;
        }
        Ok(())
    }
}
