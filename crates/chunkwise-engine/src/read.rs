//! How does a selection become bytes in the caller's memory?
//!
//! plan -> for each chunk: look it up -> cache, or fetch and decode -> copy.  One chunk
//! is read on the calling thread; several are shared among the pool's threads, each
//! with buffers of its own, so that memory stays at a few chunks a thread.

use std::sync::atomic::{AtomicBool, Ordering};

use chunkwise_select::{ChunkTask, Plan, Selected};
use rayon::prelude::*;

use crate::dataset::Placement;
use crate::decode::{StoredChunk, with_buffers};
use crate::process::ProcessState;
use crate::profile::{Phase, timed};
use crate::runs::read_raw;
use crate::scatter::{SharedResult, copy_strip, fill_strip};
use crate::{ChunkRecord, Dataset, ReadError};

/// Fewer bytes than this are not worth waking other threads for.
const PARALLEL_NBYTES: u64 = 128 << 10;
/// Copying fewer bytes than this, out of at most so many chunks, takes less time than
/// waking other threads.
const SMALL_NBYTES: u64 = 128 << 10;
const SMALL_CHUNKS: u64 = 4096;
/// Copying fewer bytes than this is never timed, as two looks at the clock take as long.
const TIMED_NBYTES: u64 = 4 << 10;

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

    /// The most bytes that carrying out `plan` may decode and copy, a single chunk that is
    /// cached excepted.
    pub fn work_nbytes(&self, plan: &Plan<'_>) -> u64 {
        if plan.len() == 1 && self.chunk_nbytes >= PARALLEL_NBYTES {
            let key = (self.number, plan.task(0).linear_index());
            if ProcessState::of_this_process().cache().holds(key) {
                return plan.summary().selected_elements * self.info.element_size as u64;
            }
        }
        let decoded = plan.len().saturating_mul(self.chunk_nbytes);
        // Elements may be wanted several times, and then be more than their chunks hold.
        decoded.max(plan.summary().selected_elements.saturating_mul(self.info.element_size as u64))
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
        let size = self.info.element_size as u64;
        let selected = plan.summary().selected_elements.checked_mul(size);
        let selected = selected.ok_or(ReadError::Memory(None))?;
        if selected != out.len() as u64 {
            return Err(ReadError::Destination { selected, destination: out.len() as u64 });
        }
        let state = ProcessState::of_this_process();
        let read = state.next_read();
        let result = SharedResult::new(out);
        let one = |number: u64| {
            if cancelled.load(Ordering::Relaxed) {
                return Err(ReadError::Cancelled);
            }
            // SAFETY: the tasks of a plan cover disjoint elements of the result.
            unsafe { self.read_task(&plan.task(number), read, &result) }
        };
        if plan.len() == 1 {
            let task = plan.task(0);
            if !task.takes_all() {
                self.read_ahead(task.linear_index(), read);
            }
        }
        if plan.len() < 2 || self.work_nbytes(plan) < PARALLEL_NBYTES {
            return (0..plan.len()).try_for_each(one);
        }
        let Some(pool) = state.pool() else { return (0..plan.len()).try_for_each(one) };
        if selected >= SMALL_NBYTES || plan.len() > SMALL_CHUNKS {
            return timed(Phase::Waiting, || {
                pool.install(|| (0..plan.len()).into_par_iter().try_for_each(one))
            });
        }
        // A small read of chunks that are mostly cached is over before another thread wakes:
        // only what has to be decoded is worth sharing.
        let left: Vec<u64> = (0..plan.len())
            .filter(|&number| {
                // SAFETY: as above; one task after the other.
                !unsafe { self.read_cached(&plan.task(number), read, &result) }
            })
            .collect();
        match left.as_slice() {
            [] => Ok(()),
            &[number] => one(number),
            left => timed(Phase::Waiting, || {
                pool.install(|| left.par_iter().try_for_each(|&number| one(number)))
            }),
        }
    }

    /// Copy one chunk's part if that needs neither storage nor decoding; false if it does.
    ///
    /// # Safety
    /// As [`read_task`](Self::read_task).
    unsafe fn read_cached(
        &self,
        task: &ChunkTask<'_>,
        read: u64,
        result: &SharedResult<'_>,
    ) -> bool {
        let position = task.linear_index();
        match self.placement(position, &task.chunk_index()) {
            Placement::Missing => {
                // SAFETY: the caller's contract.
                unsafe { self.fill(task, result) };
                true
            }
            Placement::Raw { .. } => false,
            Placement::Filtered(_) => {
                let mut cache = ProcessState::of_this_process().cache();
                let key = (self.number, position);
                let found = if cache.holds(key) { cache.get(key, read) } else { None };
                drop(cache);
                if let Some(chunk) = &found {
                    // SAFETY: the caller's contract.
                    unsafe { self.copy(task, chunk, result) };
                }
                found.is_some()
            }
        }
    }

    /// Set the task's elements to the fill value, if there is one.
    ///
    /// # Safety
    /// As [`read_task`](Self::read_task).
    unsafe fn fill(&self, task: &ChunkTask<'_>, result: &SharedResult<'_>) {
        let Some(fill) = &self.info.fill else { return };
        timed(Phase::Scatter, || {
            task.for_each_strip(|strip| {
                // SAFETY: the caller's contract.
                let filled = unsafe { fill_strip(result, &strip, fill) };
                debug_assert!(filled.is_some(), "a plan's strips lie within the result");
            });
        });
    }

    /// Copy the task's elements out of its decoded chunk.
    ///
    /// # Safety
    /// As [`read_task`](Self::read_task).
    unsafe fn copy(&self, task: &ChunkTask<'_>, chunk: &[u8], result: &SharedResult<'_>) {
        let size = self.info.element_size as u64;
        let copy_strips = || {
            task.for_each_strip(|strip| {
                // SAFETY: the caller's contract.
                let copied = unsafe { copy_strip(chunk, result, &strip, self.info.element_size) };
                debug_assert!(copied.is_some(), "a plan's strips lie within chunk and result");
            });
        };
        if task.selected_elements() * size < TIMED_NBYTES {
            copy_strips();
        } else {
            timed(Phase::Scatter, copy_strips);
        }
    }

    /// Read one chunk's part.
    ///
    /// # Safety
    /// No other thread may touch the task's elements of `result` meanwhile.
    unsafe fn read_task(
        &self,
        task: &ChunkTask<'_>,
        read: u64,
        result: &SharedResult<'_>,
    ) -> Result<(), ReadError> {
        let size = self.info.element_size;
        let position = task.linear_index();
        let chunk_index = task.chunk_index();
        match self.placement(position, &chunk_index) {
            Placement::Missing => {
                // SAFETY: the caller's contract.
                unsafe { self.fill(task, result) };
                Ok(())
            }
            Placement::Raw { address } => with_buffers(|buffers| {
                // SAFETY: the caller's contract.
                let read = unsafe {
                    read_raw(&*self.storage, address, task, size, result, &mut buffers.stored)
                };
                read.map_err(|error| {
                    let stored_nbytes = self.chunk_nbytes;
                    let record = ChunkRecord { address, stored_nbytes, filter_mask: 0 };
                    self.name_chunk(error, &StoredChunk { chunk_index, record })
                })
            }),
            // SAFETY: the caller's contract.
            Placement::Filtered(record) => unsafe {
                let chunk = StoredChunk { chunk_index, record };
                self.read_filtered(task, position, &chunk, read, result)
            },
        }
    }

    /// Decode a chunk, unless it is cached or being decoded ahead, and copy what is wanted.
    ///
    /// # Safety
    /// As [`read_task`](Self::read_task).
    unsafe fn read_filtered(
        &self,
        task: &ChunkTask<'_>,
        position: u64,
        chunk: &StoredChunk,
        read: u64,
        result: &SharedResult<'_>,
    ) -> Result<(), ReadError> {
        let size = self.info.element_size;
        // SAFETY: the caller's contract.
        let copy = |chunk: &[u8]| unsafe { self.copy(task, chunk, result) };
        let key = (self.number, position);
        let state = ProcessState::of_this_process();
        if let Some(decoded) = state.cached(key, read) {
            copy(&decoded);
            return Ok(());
        }
        // A chunk that is wanted whole is not wanted again by the same walk: it is
        // decoded in place, or through a buffer that is reused, and not kept.
        if task.takes_all() {
            let whole = task.lands_whole_at().and_then(|begin| {
                // SAFETY: the caller's contract; the task is this one run.
                unsafe { result.part(begin * size as u64, self.chunk_nbytes) }
            });
            return match whole {
                Some(out) => self.decode_into(chunk, out),
                None => self.decode_and(chunk, copy),
            };
        }
        let decoded = self.decode_new(chunk)?;
        copy(&decoded);
        state.cache().put(key, decoded, read);
        Ok(())
    }
}
