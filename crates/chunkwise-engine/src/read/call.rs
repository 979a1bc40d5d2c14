//! How does a selection become bytes in the caller's memory?
//!
//! plan -> for each chunk: look it up -> cache, or fetch and decode -> copy.  What is small
//! or cached is done by the calling thread; the rest is shared with the pool's threads, each
//! with buffers of its own, so that memory stays at a few chunks a thread.

use std::sync::atomic::AtomicBool;

use chunkwise_select::{Plan, Selected};

use crate::crew::PARALLEL_NBYTES;
use crate::dataset::Layout;
use crate::process::ProcessState;
use crate::profile::{Phase, timed};
use crate::read::fields::Fields;
use crate::read::read_map::ReadMap;
use crate::read::reading::Reading;
use crate::read::scatter::fill_run;
use crate::read::tasks::Tasks;
use crate::{Dataset, OnePass, ReadError};

/// Copying fewer bytes than this, out of at most this many chunks, takes less time than
/// waking other threads.
const SMALL_NBYTES: u64 = 1 << 20;
const SMALL_CHUNKS: u64 = 4096;
/// Of chunks in blocks, less than one part in this many is a small one.
const SMALL_SHARE: u64 = 16;
/// Reads of more chunks than this leave no thread idle: nothing is prefetched.
const MOST_FOLLOWED: u64 = 64;

impl Dataset {
    /// Read `selection` into `out`, row-major in its shape; of a union, its elements in
    /// row-major order of the dataset; of a product, in the order of its factors' choices.
    ///
    /// Elements that were never written get the fill value, or are left as they are
    /// when there is none.
    ///
    /// # Errors
    /// When the selection does not fit the dataset or `out`, or bytes are missing or
    /// damaged; `out` is then unspecified.
    pub fn read<'a>(
        &'a self,
        selection: impl Into<Selected<'a>>,
        out: &mut [u8],
    ) -> Result<(), ReadError> {
        self.read_plan(&self.plan(selection)?, out, &AtomicBool::new(false))
    }

    /// Which chunks `selection` touches; a plan over any number of them costs nothing.
    ///
    /// # Errors
    /// When the selection does not fit the dataset.
    pub fn plan<'a>(&'a self, selection: impl Into<Selected<'a>>) -> Result<Plan<'a>, ReadError> {
        Ok(Plan::new(&self.grid, selection)?)
    }

    /// The most bytes that carrying out `plan` may decode and copy, or about as many where of chunks
    /// in blocks small parts are wanted; a single chunk that is cached excepted.
    pub fn work_nbytes(&self, plan: &Plan<'_>) -> u64 {
        if plan.len() == 1 && self.chunk_nbytes >= PARALLEL_NBYTES {
            let key = (self.number, plan.task(0).linear_index());
            if ProcessState::of_this_process().cache().holds(key) {
                return plan.summary().selected_elements * self.info.element_size as u64;
            }
        }
        let chunks = plan.len().saturating_mul(self.chunk_nbytes);
        let selected =
            plan.summary().selected_elements.saturating_mul(self.info.element_size as u64);
        // A small part of chunks in blocks needs some of the blocks: how many, only chunks show.
        let in_part = selected < chunks / SMALL_SHARE && self.is_in_blocks();
        let decoded = if in_part { chunks / SMALL_SHARE * 2 } else { chunks };
        // Elements may be wanted several times, and then be more than their chunks hold.
        decoded.max(selected)
    }

    /// As [`read`](Self::read), for a plan of this dataset; stops before the next chunk
    /// once `cancelled` is set.
    ///
    /// # Errors
    /// Also [`ReadError::Cancelled`].
    pub fn read_plan(
        &self,
        plan: &Plan<'_>,
        out: &mut [u8],
        cancelled: &AtomicBool,
    ) -> Result<(), ReadError> {
        self.read_within(plan, None, out, Call::new(cancelled))
    }

    /// As [`read_plan`](Self::read_plan), of each element these fields alone.
    ///
    /// # Errors
    /// Also [`ReadError::Cancelled`].
    pub fn read_fields(
        &self,
        plan: &Plan<'_>,
        fields: &Fields,
        out: &mut [u8],
        cancelled: &AtomicBool,
    ) -> Result<(), ReadError> {
        self.read_within(plan, Some(fields), out, Call::new(cancelled))
    }

    /// Read, as all of a call or a part of it.
    pub(crate) fn read_within(
        &self,
        plan: &Plan<'_>,
        fields: Option<&Fields>,
        out: &mut [u8],
        call: Call<'_>,
    ) -> Result<(), ReadError> {
        let Call { cancelled, read } = call;
        let size = fields.map_or(self.info.element_size, |fields| fields.size);
        check_destination(plan, size, out)?;
        self.prepare(plan)?;
        if fields.is_none() && self.is_filled(plan, out) {
            return Ok(());
        }
        let chunked = matches!(self.info.layout, Layout::Chunked { .. });
        if chunked && (1..=MOST_FOLLOWED).contains(&plan.len()) {
            self.prefetch(plan, read);
        }
        let map = ReadMap::of(self, plan);
        self.again_without_map(map, |map| {
            let (nbytes, once) = (out.len(), None);
            let reading = Reading { dataset: self, read, nbytes, cancelled, once, fields, map };
            reading.carry_out(plan, Tasks::new(self, plan, out, size))
        })
    }

    /// As [`read_plan`](Self::read_plan), as a part of one pass over the dataset: nothing that
    /// is decoded is kept, and nothing is prefetched.
    ///
    /// # Errors
    /// Also [`ReadError::Cancelled`].
    pub fn read_once(
        &self,
        plan: &Plan<'_>,
        out: &mut [u8],
        cancelled: &AtomicBool,
        pass: OnePass<'_>,
    ) -> Result<(), ReadError> {
        let size = self.info.element_size;
        check_destination(plan, size, out)?;
        self.prepare(plan)?;
        if self.is_filled(plan, out) {
            return Ok(());
        }
        let read = ProcessState::of_this_process().next_read();
        let (once, fields) = (Some(pass), None);
        let far = self.storage.cost().is_remote();
        let alone = plan.len() < 2 || pass.threads < 2 || self.work_nbytes(plan) < PARALLEL_NBYTES;
        // What is lost is listed once.
        let map = if pass.lost.is_some() { ReadMap::none() } else { ReadMap::new() };
        self.again_without_map(map, |map| {
            let nbytes = out.len();
            let reading = Reading { dataset: self, read, nbytes, cancelled, once, fields, map };
            let tasks = Tasks::new(self, plan, out, size);
            if alone && !far {
                return reading.alone(tasks);
            }
            let gain = reading.threads_that_gain(&tasks);
            reading.shared(tasks, gain)
        })
    }

    /// Read with a map; again without it, if the file has shrunk meanwhile.
    fn again_without_map(
        &self,
        map: ReadMap,
        mut read: impl FnMut(&ReadMap) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let done = read(&map);
        if map.is_sound(&*self.storage) { done } else { read(&ReadMap::none()) }
    }

    /// Fill `out` where there are many chunks and none of them was ever written, which need not be
    /// asked of each; whether that was so.
    fn is_filled(&self, plan: &Plan<'_>, out: &mut [u8]) -> bool {
        let Layout::Chunked { index, .. } = &self.info.layout else { return false };
        let unwritten = index.listed().is_some_and(|index| index.written() == 0);
        if !unwritten || plan.len() <= SMALL_CHUNKS {
            return false;
        }
        if let Some(fill) = &self.info.fill {
            timed(Phase::Scatter, || fill_run(out, fill));
        }
        true
    }
}

impl Reading<'_> {
    /// Carry all tasks of a plan out.
    fn carry_out(&self, plan: &Plan<'_>, tasks: Tasks<'_>) -> Result<(), ReadError> {
        let dataset = self.dataset;
        let far = dataset.storage.cost().is_remote();
        if !far && (plan.len() < 2 || dataset.work_nbytes(plan) < PARALLEL_NBYTES) {
            return self.alone(tasks);
        }
        // Asked once: to ask whether bytes are at hand makes the system read ahead there.
        let gain = self.threads_that_gain(&tasks);
        if !far && (gain == 1 || self.is_in_order(&tasks, gain)) {
            return self.alone(tasks);
        }
        if self.nbytes as u64 >= SMALL_NBYTES || plan.len() > SMALL_CHUNKS {
            return self.shared(tasks, gain);
        }
        // A small read of chunks that are mostly cached is over before another thread
        // wakes: only what has to be decoded is worth sharing.
        let left = self.without_cached(tasks);
        match left.len() {
            0 => Ok(()),
            1 if !far => self.alone(left),
            _ => self.shared(left, gain),
        }
    }
}

/// What all parts of one call have in common.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub cancelled: &'a AtomicBool,
    /// Its number: the cache drops nothing for a call that this call has used or brought.
    read: u64,
}

impl<'a> Call<'a> {
    pub fn new(cancelled: &'a AtomicBool) -> Self {
        Self { cancelled, read: ProcessState::of_this_process().next_read() }
    }
}

/// Refuse a destination that does not hold the elements selected, of `size` bytes each.
fn check_destination(plan: &Plan<'_>, size: usize, out: &[u8]) -> Result<(), ReadError> {
    let selected = plan.summary().selected_elements.checked_mul(size as u64);
    let selected = selected.ok_or(ReadError::Memory(None))?;
    if selected == out.len() as u64 {
        return Ok(());
    }
    Err(ReadError::Destination { selected, destination: out.len() as u64 })
}
