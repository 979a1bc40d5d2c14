//! How do selections of a dataset become its chunks, each encoded as few times as can be?
//!
//! A chunk that one write covers whole is encoded from the caller's memory.  One that is
//! covered in part is merged with what comes later, among the dirty chunks, until nothing of
//! it is missing, the budget is used up, or everything is flushed.  What a chunk holds in the
//! file already is only read when it has to be committed with something missing.
//!
//! A chunk that is in the file already waits for a flush, too, as long as the budget allows:
//! overwriting it moves it, and until a flush the index on storage leads to its former place,
//! which others are given.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use chunkwise_codec::{Effort, Encoding, Tuning};
use chunkwise_select::{ChunkGrid, ChunkTask, Dims, Plan, SelectError, Selected};

use crate::profile::{Phase, TIMED_NBYTES, timed};
use crate::settings::Setting;
use crate::write::chunk_maker::{CallersData, ChunkJob};
use crate::write::coverage::Coverage;
use crate::write::dirty::{DirtyChunk, DirtyChunks};
use crate::write::edges::{for_each_beyond, reach};
use crate::write::encoder_choice::EncoderChoice;
use crate::write::gather::{gather_members, gather_strip};
use crate::write::{ChunkStore, WriteError, WriteInfo, WriteStats};

/// Writes one chunked dataset.
///
/// Nobody else may write to the dataset while it holds dirty chunks, nor read from it; see
/// [`flush`](Self::flush).  A writer that is dropped forgets what it holds.
pub struct DatasetWriter {
    pub(super) info: WriteInfo,
    pub(super) grid: ChunkGrid,
    pub(super) chunk_nbytes: usize,
    pub(super) store: Box<dyn ChunkStore>,
    pub(super) dirty: DirtyChunks,
    pub(super) effort: Effort,
    /// The encoding in use and what was chosen, once there were chunks to choose by.
    pub(super) tuned: Option<(Encoding, Option<Tuning>)>,
    pub(super) choice: EncoderChoice,
    pub(super) stats: WriteStats,
    /// None: what the process may use.
    budget_nbytes: Option<usize>,
    /// Whose it is: a forked child has a copy.
    process: u32,
}

/// Chunks to which nothing is missing wait until they take this fraction of the budget, so
/// that several threads have something to encode.
const READY_FRACTION: usize = 4;

/// Tasks of a write whose chunks are looked up in the file at once: taking the library's lock
/// costs more than to ask.
const ASKED_AT_ONCE: u64 = 1 << 10;

impl DatasetWriter {
    /// A writer of the dataset with these facts, whose dirty chunks take at most `budget_nbytes`
    /// (and those in work), None for what [`Setting::WriteBufferNbytes`] says at the time;
    /// deflate's encoder is chosen by `effort`.
    ///
    /// # Errors
    /// When the shapes do not fit together, or a chunk cannot be held in memory.
    pub fn new(
        info: WriteInfo,
        store: Box<dyn ChunkStore>,
        budget_nbytes: impl Into<Option<usize>>,
        effort: Effort,
    ) -> Result<Self, WriteError> {
        let grid = ChunkGrid::new(&info.shape, &info.chunk)?;
        let nbytes = grid.chunk_len().saturating_mul(info.element_size as u64);
        let chunk_nbytes = usize::try_from(nbytes).ok().filter(|&n| n <= isize::MAX as usize);
        Ok(Self {
            grid,
            chunk_nbytes: chunk_nbytes.ok_or(WriteError::Memory(nbytes))?,
            store,
            dirty: DirtyChunks::default(),
            effort,
            tuned: None,
            choice: EncoderChoice::default(),
            stats: WriteStats::default(),
            budget_nbytes: budget_nbytes.into(),
            process: std::process::id(),
            info,
        })
    }

    /// Elements in each dimension.
    pub fn shape(&self) -> &[u64] {
        self.grid.shape()
    }

    /// The most bytes that dirty chunks may take.
    pub(super) fn budget(&self) -> usize {
        self.budget_nbytes.unwrap_or_else(|| Setting::WriteBufferNbytes.value())
    }

    /// Bytes of dirty chunks.
    pub fn held_nbytes(&self) -> usize {
        self.dirty.held_nbytes()
    }

    /// Chunks that are not in the file as they should be.
    pub fn dirty_chunks(&self) -> usize {
        self.dirty.len()
    }

    /// What was done so far.
    pub fn stats(&self) -> WriteStats {
        self.stats
    }

    /// Which encoder of deflate was chosen; None before there was a chunk, or a choice.
    pub fn tuning(&self) -> Option<&Tuning> {
        self.tuned.as_ref().and_then(|(_, tuning)| tuning.as_ref())
    }

    /// The dataset has this shape now.
    ///
    /// Dirty chunks that lie outside it are forgotten, as those in the file are.
    ///
    /// # Errors
    /// When that is no shape of the dataset.
    pub fn set_shape(&mut self, shape: &[u64]) -> Result<(), WriteError> {
        if shape == self.grid.shape() {
            return Ok(());
        }
        let grid = ChunkGrid::new(shape, self.grid.chunk())?;
        self.grid = grid;
        let (grid, most) = (&self.grid, &self.info.max_shape);
        self.dirty.resized(
            |chunk_index| grid.linear_index(chunk_index).is_some(),
            |chunk_index, covered| {
                let within = reach(grid.shape(), grid.chunk(), chunk_index);
                for_each_beyond(&within, grid.chunk(), &mut |at, len| covered.remove(at, len));
                reach(most, grid.chunk(), chunk_index).iter().product()
            },
        );
        Ok(())
    }

    /// Write `data`, the selection's elements in its order, in C order and as they are stored.
    ///
    /// An element that is selected several times holds one of its values.  What fails or is
    /// cancelled may be written in part.
    ///
    /// # Errors
    /// When the selection does not fit the dataset or the data, and when a chunk cannot be
    /// encoded or committed; all that was written before stays, and can be flushed.
    pub fn write<'s>(
        &mut self,
        selection: impl Into<Selected<'s>>,
        data: &[u8],
        cancelled: &AtomicBool,
    ) -> Result<(), WriteError> {
        self.write_bytes(selection.into(), data, None, cancelled)
    }

    /// The same, of each element only the bytes in `members`; the others keep what they hold.
    ///
    /// `data` has whole elements nevertheless.  Chunks are first completed by what is in the
    /// file.
    ///
    /// # Errors
    /// As [`write`](Self::write); also when what a chunk holds cannot be read.
    pub fn write_members<'s>(
        &mut self,
        selection: impl Into<Selected<'s>>,
        data: &[u8],
        members: &[Range<usize>],
        cancelled: &AtomicBool,
    ) -> Result<(), WriteError> {
        self.write_bytes(selection.into(), data, Some(members), cancelled)
    }

    fn write_bytes(
        &mut self,
        selection: Selected<'_>,
        data: &[u8],
        members: Option<&[Range<usize>]>,
        cancelled: &AtomicBool,
    ) -> Result<(), WriteError> {
        self.check_process()?;
        let grid = self.grid.clone();
        let plan = plan(&grid, selection)?;
        let size = self.info.element_size as u64;
        let selected = plan.summary().selected_elements.saturating_mul(size);
        if selected != data.len() as u64 {
            return Err(WriteError::Source { selected, given: data.len() as u64 });
        }
        let mut jobs = Vec::new();
        for first in (0..plan.len()).step_by(ASKED_AT_ONCE as usize) {
            let tasks = first..(first + ASKED_AT_ONCE).min(plan.len());
            let stored = self.are_stored(&plan, tasks.clone());
            for (number, stored) in tasks.zip(stored) {
                let task = plan.task(number);
                let chunk_index = task.chunk_index();
                let whole =
                    members.is_none() && task.takes_all() && self.stays_within(&chunk_index);
                if whole && !(stored && self.has_room(&chunk_index)) {
                    jobs.push(ChunkJob { chunk_index, task: Some(number) });
                    continue;
                }
                if members.is_some() {
                    self.complete(&chunk_index, stored)?;
                }
                if (data.len() as u64) < TIMED_NBYTES {
                    self.merge(&task, &chunk_index, stored, data, members)?;
                } else {
                    let merge = || self.merge(&task, &chunk_index, stored, data, members);
                    timed(Phase::Scatter, merge)?;
                }
                if self.dirty.held_nbytes() > self.budget() {
                    // More than has to, so that several threads have something to encode.
                    let due = self.dirty.due(self.budget() / 2);
                    self.commit(due.into_iter().map(ChunkJob::dirty).collect(), None, cancelled)?;
                }
            }
        }
        if self.dirty.ready_nbytes() > self.budget() / READY_FRACTION {
            // Those that the write covers whole go straight.
            let straight = jobs.len();
            jobs.extend(self.dirty.ready().into_iter().map(ChunkJob::dirty));
            jobs.sort_by(|a, b| a.chunk_index.cmp(&b.chunk_index).then(b.task.cmp(&a.task)));
            jobs.dedup_by(|dirty, first| dirty.chunk_index == first.chunk_index);
            debug_assert!(jobs.len() >= straight);
        }
        self.commit(jobs, Some(CallersData { plan: &plan, data }), cancelled)
    }

    /// Which of a plan's tasks write to chunks that are in the file, and may move in it.
    fn are_stored(&mut self, plan: &Plan<'_>, tasks: Range<u64>) -> Vec<bool> {
        if self.info.encoding.steps().is_empty() {
            // As long as it was, a chunk stays where it is.
            return tasks.map(|_| false).collect();
        }
        let indices: Vec<Dims> = tasks.map(|number| plan.task(number).chunk_index()).collect();
        let unknown = indices.iter().filter(|at| self.dirty.is_stored(at).is_none());
        let origins: Vec<Dims> = unknown.map(|at| self.grid.origin(at)).collect();
        let stored = if origins.is_empty() { Vec::new() } else { self.store.are_stored(&origins) };
        let mut stored = stored.into_iter();
        let known = |at: &Dims| self.dirty.is_stored(at).or_else(|| stored.next());
        indices.iter().map(known).map(|stored| stored.unwrap_or(false)).collect()
    }

    /// Commit all dirty chunks, in file order.
    ///
    /// # Errors
    /// When a chunk cannot be encoded or committed; those that are not committed stay.
    pub fn flush(&mut self, cancelled: &AtomicBool) -> Result<(), WriteError> {
        if self.dirty.len() == 0 {
            return Ok(());
        }
        self.check_process()?;
        let jobs = self.dirty.all().into_iter().map(ChunkJob::dirty).collect();
        self.commit(jobs, None, cancelled)?;
        self.dirty.trim();
        Ok(())
    }

    /// Forget all dirty chunks.
    pub fn forget(&mut self) {
        self.dirty = DirtyChunks::default();
    }

    fn check_process(&self) -> Result<(), WriteError> {
        if std::process::id() == self.process { Ok(()) } else { Err(WriteError::Forked) }
    }

    /// Whether the chunk can get no more elements than it has: one that may grow with the
    /// dataset waits for what is appended.
    fn stays_within(&self, chunk_index: &[u64]) -> bool {
        let reach = |extent| reach(extent, self.grid.chunk(), chunk_index);
        reach(self.grid.shape()) == reach(&self.info.max_shape)
    }

    /// Whether the chunk may wait for a flush among the dirty ones.
    fn has_room(&self, chunk_index: &[u64]) -> bool {
        let nbytes = Coverage::nbytes_of(self.grid.chunk_len()).saturating_add(self.chunk_nbytes);
        let held = self.held_nbytes().saturating_add(nbytes);
        held <= self.budget() || self.dirty.get(chunk_index).is_some()
    }

    /// Put the task's elements into its dirty chunk.
    fn merge(
        &mut self,
        task: &ChunkTask<'_>,
        chunk_index: &Dims,
        stored: bool,
        data: &[u8],
        members: Option<&[Range<usize>]>,
    ) -> Result<(), WriteError> {
        let size = self.info.element_size;
        self.change(chunk_index, stored, |chunk| {
            task.for_each_strip(|strip| {
                let copied = match members {
                    None => gather_strip(data, &mut chunk.raw, &strip, size),
                    Some(members) => gather_members(data, &mut chunk.raw, &strip, size, members),
                };
                debug_assert!(copied.is_some(), "a plan's strips lie within data and chunk");
                for run in 0..strip.count {
                    chunk.covered.add(strip.src + run * strip.src_step, strip.len);
                }
            });
        })
    }

    /// Change a dirty chunk, which comes in if it is not here, `stored` in the file or not.
    pub(super) fn change(
        &mut self,
        chunk_index: &Dims,
        stored: bool,
        change: impl FnOnce(&mut DirtyChunk),
    ) -> Result<(), WriteError> {
        let all = reach(&self.info.max_shape, self.grid.chunk(), chunk_index).iter().product();
        let measures = (self.chunk_nbytes, self.grid.chunk_len(), all);
        let changed = self.dirty.change(chunk_index, stored, measures, change);
        changed.map_err(|_| WriteError::Memory(self.chunk_nbytes as u64))
    }
}

/// The plan of a selection that lies within the dataset.
fn plan<'a>(grid: &'a ChunkGrid, selection: Selected<'a>) -> Result<Plan<'a>, WriteError> {
    let plan = Plan::new(grid, selection)?;
    let bounds = selection.ends().into_iter().zip(grid.shape());
    for (dimension, (end, &size)) in bounds.enumerate() {
        if end > size && !plan.is_empty() {
            return Err(SelectError::BeyondShape { end, dimension, size }.into());
        }
    }
    Ok(plan)
}

impl std::fmt::Debug for DatasetWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { grid, dirty, .. } = self;
        write!(f, "DatasetWriter({:?}, {} dirty chunks)", grid.shape(), dirty.len())
    }
}
