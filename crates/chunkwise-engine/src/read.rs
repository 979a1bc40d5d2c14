//! How does a selection become bytes in the caller's memory?
//!
//! plan -> for each chunk: look it up -> cache, or fetch and decode -> copy.  One chunk
//! is read on the calling thread; several are shared among the pool's threads, each
//! with buffers of its own, so that memory stays at a few chunks a thread.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chunkwise_codec::{DecodeError, Scratch, resize};
use chunkwise_select::{ChunkTask, Hyperslab, Plan};
use rayon::prelude::*;

use crate::dataset::{Layout, Placement};
use crate::process::ProcessState;
use crate::runs::read_raw;
use crate::scatter::{SharedResult, copy_strip, fill_strip};
use crate::{ChunkPlace, ChunkRecord, Dataset, ReadError};

/// What a thread reuses from chunk to chunk.
#[derive(Default)]
struct Buffers {
    stored: Vec<u8>,
    raw: Vec<u8>,
    scratch: Scratch,
}

impl Buffers {
    /// Buffers larger than this are given back after a read.
    const KEEP_NBYTES: usize = 32 << 20;

    fn trim(&mut self) {
        for buffer in [&mut self.stored, &mut self.raw] {
            if buffer.capacity() > Self::KEEP_NBYTES {
                *buffer = Vec::new();
            }
        }
        self.scratch.trim(Self::KEEP_NBYTES);
    }
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Fewer bytes than this are not worth waking other threads for.
const PARALLEL_NBYTES: u64 = 128 << 10;

impl Dataset {
    /// Read `slab` into `out`, row-major in the selection's shape.
    ///
    /// Elements that were never written get the fill value, or are left as they are
    /// when there is none.
    ///
    /// # Errors
    /// When the selection does not fit the dataset or `out`, or bytes are missing or
    /// damaged; `out` is then unspecified.
    pub fn read(&self, slab: &Hyperslab, out: &mut [u8]) -> Result<(), ReadError> {
        self.read_plan(&self.plan(slab)?, out, &AtomicBool::new(false))
    }

    /// Which chunks `slab` touches; a plan over any number of them costs nothing.
    ///
    /// # Errors
    /// When the selection does not fit the dataset.
    pub fn plan<'a>(&'a self, slab: &'a Hyperslab) -> Result<Plan<'a>, ReadError> {
        Ok(Plan::new(&self.grid, slab)?)
    }

    /// The most bytes that carrying out `plan` may decode and copy.
    pub fn work_nbytes(&self, plan: &Plan<'_>) -> u64 {
        plan.len().saturating_mul(self.chunk_nbytes)
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
        if plan.len() < 2 || self.work_nbytes(plan) < PARALLEL_NBYTES {
            return (0..plan.len()).try_for_each(one);
        }
        match state.pool() {
            None => (0..plan.len()).try_for_each(one),
            Some(pool) => pool.install(|| (0..plan.len()).into_par_iter().try_for_each(one)),
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
                if let Some(fill) = &self.info.fill {
                    task.for_each_strip(|strip| {
                        // SAFETY: the caller's contract.
                        let filled = unsafe { fill_strip(result, &strip, fill) };
                        debug_assert!(filled.is_some(), "a plan's strips lie within the result");
                    });
                }
                Ok(())
            }
            Placement::Raw { address } => with_buffers(|buffers| {
                // SAFETY: the caller's contract.
                let read = unsafe {
                    read_raw(&*self.storage, address, task, size, result, &mut buffers.stored)
                };
                let stored_nbytes = self.chunk_nbytes;
                let record = ChunkRecord { address, stored_nbytes, filter_mask: 0 };
                read.map_err(|error| self.name_chunk(error, task, record))
            }),
            // SAFETY: the caller's contract.
            Placement::Filtered(record) => unsafe {
                self.read_filtered(task, position, record, read, result)
            },
        }
    }

    /// Decode a chunk, unless it is cached, and copy what is wanted.
    ///
    /// # Safety
    /// As [`read_task`](Self::read_task).
    unsafe fn read_filtered(
        &self,
        task: &ChunkTask<'_>,
        position: u64,
        record: ChunkRecord,
        read: u64,
        result: &SharedResult<'_>,
    ) -> Result<(), ReadError> {
        let size = self.info.element_size;
        let copy = |chunk: &[u8]| {
            task.for_each_strip(|strip| {
                // SAFETY: the caller's contract.
                let copied = unsafe { copy_strip(chunk, result, &strip, size) };
                debug_assert!(copied.is_some(), "a plan's strips lie within chunk and result");
            });
        };
        let key = (self.number, position);
        let state = ProcessState::of_this_process();
        if let Some(chunk) = state.cache().get(key, read) {
            copy(&chunk);
            return Ok(());
        }
        let nbytes = usize::try_from(self.chunk_nbytes)
            .map_err(|_| ReadError::Memory(Some(self.chunk_nbytes)))?;
        with_buffers(|buffers| {
            let Buffers { stored, raw, scratch } = buffers;
            self.fetch(task, record, stored)?;
            if let Layout::Chunked { pipeline, .. } = &self.info.layout {
                let could = pipeline.check_len(stored.len(), record.filter_mask, nbytes);
                could.map_err(|source| ReadError::Decode {
                    place: self.place(task, record),
                    source,
                })?;
            }
            // A chunk that is wanted whole is not wanted again by the same walk: it is
            // decoded in place, or through a buffer that is reused, and not kept.
            if task.takes_all() {
                let whole = task.lands_whole_at().and_then(|begin| {
                    // SAFETY: the caller's contract; the task is this one run.
                    unsafe { result.part(begin * size as u64, self.chunk_nbytes) }
                });
                if let Some(out) = whole {
                    return self.decode(task, record, stored, scratch, out);
                }
                resize(raw, nbytes)?;
                self.decode(task, record, stored, scratch, raw)?;
                copy(raw);
                return Ok(());
            }
            let mut chunk = Vec::new();
            resize(&mut chunk, nbytes)?;
            self.decode(task, record, stored, scratch, &mut chunk)?;
            copy(&chunk);
            state.cache().put(key, Arc::new(chunk), read);
            Ok(())
        })
    }

    /// Fill `stored` with the chunk's bytes as they are in the file.
    fn fetch(
        &self,
        task: &ChunkTask<'_>,
        record: ChunkRecord,
        stored: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let len = record.stored_nbytes;
        // Filters add little to a chunk that does not shrink.  A claim far beyond that
        // is checked against the file before memory is spent on it.
        if len > self.chunk_nbytes.saturating_add(1 << 20) {
            let end = self.storage.end();
            if record.address.checked_add(len).is_none_or(|last| last > end) {
                return Err(ReadError::TruncatedChunk { place: self.place(task, record), end });
            }
        }
        let nbytes = usize::try_from(len).map_err(|_| ReadError::Memory(Some(len)))?;
        resize(stored, nbytes)?;
        let read = self.storage.read_at(record.address, stored);
        read.map_err(|error| self.name_chunk(error, task, record))
    }

    /// Say which chunk is cut off; a contiguous dataset's slabs are no chunks of the file.
    fn name_chunk(&self, error: ReadError, task: &ChunkTask<'_>, record: ChunkRecord) -> ReadError {
        match (error, &self.info.layout) {
            (ReadError::Truncated { end, .. }, Layout::Chunked { .. }) => {
                ReadError::TruncatedChunk { place: self.place(task, record), end }
            }
            (other, _) => other,
        }
    }

    fn decode(
        &self,
        task: &ChunkTask<'_>,
        record: ChunkRecord,
        stored: &[u8],
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(), ReadError> {
        let Layout::Chunked { pipeline, unfiltered_partial_chunks, .. } = &self.info.layout else {
            // Contiguous data never comes here: it has no filters.
            return Ok(());
        };
        let short = DecodeError::TooShort { len: stored.len(), expected: out.len() };
        let decoded = if *unfiltered_partial_chunks && self.grid.is_partial(&task.chunk_index()) {
            Err(short)
        } else {
            pipeline.decode(stored, record.filter_mask, scratch, out)
        };
        decoded.map_err(|source| ReadError::Decode { place: self.place(task, record), source })
    }

    fn place(&self, task: &ChunkTask<'_>, record: ChunkRecord) -> ChunkPlace {
        let chunk_index = task.chunk_index();
        ChunkPlace {
            chunk_origin: chunk_index.iter().zip(self.grid.chunk()).map(|(i, c)| i * c).collect(),
            address: record.address,
            stored_nbytes: record.stored_nbytes,
        }
    }
}

/// Run `work` with this thread's buffers.
fn with_buffers<T>(work: impl FnOnce(&mut Buffers) -> T) -> T {
    BUFFERS.with(|cell| match cell.try_borrow_mut() {
        Ok(mut buffers) => {
            let outcome = work(&mut buffers);
            buffers.trim();
            outcome
        }
        // Unreachable while chunk work does not call back into the pool; correct if it
        // ever does.
        Err(_) => work(&mut Buffers::default()),
    })
}
