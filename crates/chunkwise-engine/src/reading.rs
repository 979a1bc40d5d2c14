//! How are a plan's tasks carried out, by one thread or by several?

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;

use chunkwise_codec::Scratch;
use chunkwise_select::{ChunkTask, Plan};
use smallvec::SmallVec;

use crate::cache_entry::ChunkKey;
use crate::crew::share;
use crate::dataset::Placement;
use crate::decode::{Buffers, StoredBytes, StoredChunk, with_buffers};
use crate::fetch::{FetchAhead, Fetched, FetchedFirst};
use crate::fields::Fields;
use crate::memory::{most_threads, work_nbytes};
use crate::process::{ProcessState, thread_count};
use crate::profile::{Phase, timed};
use crate::read_map::ReadMap;
use crate::repeated::{is_small, leaves_room, was_wanted_whole};
use crate::runs::{RawRead, raw_batches};
use crate::scatter::SharedResult;
use crate::schedule::{Batch, Batches, Segments, batches};
use crate::settings::Setting;
use crate::{ChunkRecord, Dataset, OnePass, ReadError, Storage};

/// From so many bytes on, several threads work on a chunk, or a part of it: less takes as long as
/// they take to come.
pub(crate) const SHARED_NBYTES: u64 = 1 << 20;

/// Tasks of a plan, by number.
pub(crate) enum Numbers<'a> {
    /// So many, from the first on.
    All(u64),
    /// These, in ascending order.
    These(&'a [u64]),
}

impl Numbers<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::All(len) => *len,
            Self::These(numbers) => numbers.len() as u64,
        }
    }

    /// Those of a segment.
    fn segment(&self, segment: Range<u64>) -> impl Iterator<Item = u64> {
        segment.map(|i| match self {
            Self::All(_) => i,
            Self::These(numbers) => numbers[i as usize],
        })
    }
}

/// Where the stored bytes of a segment come from.
enum Source<'s, 'scope> {
    /// The storage, when they are needed.
    Storage(&'s dyn Storage),
    /// What was fetched ahead, or else the storage.
    Ahead {
        ahead: &'scope FetchAhead<'scope>,
        scope: &'scope Scope<'scope, 's>,
        segment: u64,
        fetched: Vec<Fetched>,
    },
}

impl Source<'_, '_> {
    /// The bytes of a batch.
    fn read<'b>(&'b self, batch: &Batch, stored: &'b mut Vec<u8>) -> Result<&'b [u8], ReadError> {
        match self {
            Self::Storage(storage) => {
                let nbytes = usize::try_from(batch.nbytes);
                let nbytes = nbytes.map_err(|_| ReadError::Memory(Some(batch.nbytes)))?;
                chunkwise_codec::resize(stored, nbytes)?;
                storage.read_at(batch.address, stored)?;
                Ok(stored)
            }
            Self::Ahead { ahead, scope, segment, fetched } => {
                if let Some(bytes) = fetched.iter().find_map(|one| one.of(batch)) {
                    return Ok(bytes);
                }
                ahead.read(scope, *segment, batch, stored)?;
                Ok(stored)
            }
        }
    }

    /// What was fetched ahead.
    fn fetched(&self) -> &[Fetched] {
        match self {
            Self::Storage(_) => &[],
            Self::Ahead { fetched, .. } => fetched,
        }
    }
}

/// One read.
pub(crate) struct Reading<'a> {
    pub dataset: &'a Dataset,
    pub plan: &'a Plan<'a>,
    /// Its number.
    pub read: u64,
    pub result: SharedResult<'a>,
    pub cancelled: &'a AtomicBool,
    /// Where it is a part of one pass over the dataset.
    pub once: Option<OnePass<'a>>,
    /// Where some fields of each element are wanted.
    pub fields: Option<&'a Fields>,
    /// Out of which short runs are copied.
    pub map: &'a ReadMap,
}

impl<'a> Reading<'a> {
    /// Carry these tasks out on the calling thread.
    ///
    /// # Safety
    /// Nobody else may carry them out, or touch their elements of the result, meanwhile.
    pub unsafe fn alone(&self, numbers: &Numbers<'_>) -> Result<(), ReadError> {
        let source = Source::Storage(&*self.dataset.storage);
        // A short read has nothing to share, and begins no threads.
        let helped = numbers.len() == 1 && self.has_much_to_share();
        let helpers = if helped { self.most_threads() - 1 } else { 0 };
        with_buffers(|buffers| {
            // In segments, as what waits to be fetched takes memory.
            let segments = Segments::new(numbers.len(), self.dataset.chunk_nbytes, 1);
            for segment in 0..segments.count() {
                let numbers = numbers.segment(segments.tasks(segment));
                // SAFETY: the caller's contract.
                unsafe { self.segment(numbers, &source, buffers, helpers)? };
            }
            Ok(())
        })
    }

    /// Carry these tasks out on as many threads as are free.
    ///
    /// # Safety
    /// As [`alone`](Self::alone).
    pub unsafe fn shared(&self, numbers: &Numbers<'_>) -> Result<(), ReadError> {
        let dataset = self.dataset;
        let most_ahead = self.once.map_or(u64::MAX, |once| once.ahead_nbytes);
        let most = self.most_threads();
        let threads = most_threads(dataset.chunk_nbytes, most, work_nbytes());
        let parts = Segments::new(numbers.len(), dataset.chunk_nbytes, threads);
        let segments = parts.count();
        // Those that have no chunk of their own to decode help with the others'.
        let helpers = most - threads.min(usize::try_from(segments).unwrap_or(most));
        let to_fetch = |segment: u64| self.to_fetch(numbers.segment(parts.tasks(segment)));
        let nbytes = parts.most().saturating_mul(dataset.chunk_nbytes);
        let ahead = FetchAhead::new(&*dataset.storage, (segments, nbytes), most_ahead, &to_fetch);
        let (next, failure) = (AtomicU64::new(0), Mutex::new(None));
        std::thread::scope(|scope| {
            // However this ends: the scope waits for those who fetch.
            let _end = ahead.ends();
            ahead.begin_where_slow(scope);
            share(threads - 1, &|| {
                with_buffers(|buffers| {
                    loop {
                        let segment = next.fetch_add(1, Relaxed);
                        if segment >= segments {
                            return;
                        }
                        let fetched = ahead.take(segment);
                        let source = Source::Ahead { ahead: &ahead, scope, segment, fetched };
                        let numbers = numbers.segment(parts.tasks(segment));
                        // SAFETY: the caller's contract; each segment is taken once.
                        let done = unsafe { self.segment(numbers, &source, buffers, helpers) };
                        if let Err(error) = done {
                            // Nobody takes another.
                            next.store(segments, Relaxed);
                            failure
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .get_or_insert(error);
                            return;
                        }
                    }
                });
            });
        });
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), Err)
    }

    /// Whether a single task can be worth more than one thread: a long run, or a chunk in blocks.
    fn has_much_to_share(&self) -> bool {
        let (run_nbytes, chunk_nbytes) = (self.result.nbytes() as u64, self.dataset.chunk_nbytes);
        run_nbytes >= SHARED_NBYTES
            || (chunk_nbytes >= SHARED_NBYTES && self.dataset.is_in_blocks())
    }

    /// Threads that may work on it, this one included.
    fn most_threads(&self) -> usize {
        thread_count().min(self.once.map_or(usize::MAX, |once| once.threads)).max(1)
    }

    /// Copy whatever needs neither storage nor decoding; gives the tasks that are left.
    ///
    /// # Safety
    /// As [`alone`](Self::alone).
    pub unsafe fn cached(&self) -> Vec<u64> {
        let left = |number: &u64| {
            let task = self.plan.task(*number);
            match self.dataset.placement(task.linear_index(), &task.chunk_index()) {
                // SAFETY: the caller's contract.
                Ok(Placement::Missing) => unsafe { self.fill(&task) },
                // Who carries it out meets the error.
                Ok(Placement::Raw { .. }) | Err(_) => return true,
                Ok(Placement::Filtered(_)) => {
                    let key = (self.dataset.number, task.linear_index());
                    let mut cache = ProcessState::of_this_process().cache();
                    // Those that are not there are looked for again, and count as missed then.
                    let found = if cache.holds(key) { cache.get(key, self.read) } else { None };
                    drop(cache);
                    let Some(chunk) = found else { return true };
                    // SAFETY: the caller's contract.
                    unsafe { self.copy(&task, &chunk) };
                }
            }
            false
        };
        (0..self.plan.len()).filter(left).collect()
    }

    /// What a segment has to read from storage.
    fn to_fetch(&self, numbers: impl Iterator<Item = u64>) -> Batches {
        let dataset = self.dataset;
        let cost = dataset.storage.cost();
        let mut raw = Batches::new();
        let records = numbers.filter_map(|number| {
            let task = self.plan.task(number);
            let (position, chunk_index) = (task.linear_index(), task.chunk_index());
            let record = match dataset.placement(position, &chunk_index) {
                Ok(Placement::Filtered(record)) => record,
                Ok(Placement::Raw { address }) if cost.is_remote() => {
                    let size = dataset.info.element_size as u64;
                    raw.extend(raw_batches(&task, (address, size), cost));
                    return None;
                }
                _ => return None,
            };
            let cached = ProcessState::of_this_process().cache().holds((dataset.number, position));
            let chunk = StoredChunk { chunk_index, record };
            // Of blocks, those that are wanted are not known before.
            let in_part = || !cost.is_remote() && !task.takes_all() && dataset.has_blocks(&chunk);
            (!cached && !in_part() && dataset.stored_len(&chunk).is_ok()).then_some(record)
        });
        let mut found = batches(&records.collect::<SmallVec<[ChunkRecord; 8]>>(), cost);
        found.append(&mut raw);
        found
    }

    /// Carry neighbouring tasks out, reading what lies together at once.
    ///
    /// # Safety
    /// As [`alone`](Self::alone).
    unsafe fn segment(
        &self,
        numbers: impl Iterator<Item = u64>,
        source: &Source<'_, '_>,
        buffers: &mut Buffers,
        helpers: usize,
    ) -> Result<(), ReadError> {
        let mut waiting: SmallVec<[(ChunkTask<'_>, StoredChunk); 1]> = SmallVec::new();
        for number in numbers {
            self.check_cancelled()?;
            let task = self.plan.task(number);
            // SAFETY: the caller's contract.
            let begun = unsafe { self.begin(&task, source.fetched(), buffers, helpers) };
            let sound = begun.and_then(|chunk| {
                chunk.as_ref().map_or(Ok(0), |chunk| self.dataset.stored_len(chunk))?;
                Ok(chunk)
            });
            match sound {
                Ok(Some(chunk)) => waiting.push((task, chunk)),
                Ok(None) => {}
                // SAFETY: the caller's contract.
                Err(error) => unsafe { self.lose(&task, error)? },
            }
        }
        let records: SmallVec<[ChunkRecord; 4]> =
            waiting.iter().map(|(_, chunk)| chunk.record).collect();
        let Buffers { stored, raw, scratch, .. } = buffers;
        for batch in batches(&records, self.dataset.storage.cost()) {
            let members = &waiting[batch.first..][..batch.count];
            match timed(Phase::Storage, || source.read(&batch, stored)) {
                Ok(bytes) => {
                    for (task, chunk) in members {
                        self.check_cancelled()?;
                        let begin = (chunk.record.address - batch.address) as usize;
                        let bytes = &bytes[begin..][..chunk.record.stored_nbytes as usize];
                        let bytes = StoredBytes::Read(bytes);
                        // SAFETY: the caller's contract.
                        unsafe {
                            self.finish(task, chunk, bytes, (&mut *raw, &mut *scratch))
                                .or_else(|error| self.lose(task, error))?;
                        }
                    }
                }
                // One by one, to find out which of them it is.
                Err(_) => {
                    for (task, chunk) in members {
                        let fetched = self.dataset.fetch(chunk, stored);
                        // SAFETY: the caller's contract.
                        unsafe {
                            fetched
                                .and_then(|()| {
                                    let stored = StoredBytes::Read(stored);
                                    self.finish(task, chunk, stored, (&mut *raw, &mut *scratch))
                                })
                                .or_else(|error| self.lose(task, error))?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn check_cancelled(&self) -> Result<(), ReadError> {
        if self.cancelled.load(Relaxed) { Err(ReadError::Cancelled) } else { Ok(()) }
    }

    /// Carry a task out, unless its chunk has to be decoded: gives that chunk.
    ///
    /// # Safety
    /// As [`alone`](Self::alone).
    unsafe fn begin(
        &self,
        task: &ChunkTask<'_>,
        fetched: &[Fetched],
        buffers: &mut Buffers,
        helpers: usize,
    ) -> Result<Option<StoredChunk>, ReadError> {
        let dataset = self.dataset;
        let buffer = &mut buffers.stored;
        let (position, chunk_index) = (task.linear_index(), task.chunk_index());
        match dataset.placement(position, &chunk_index)? {
            Placement::Missing => {
                // SAFETY: the caller's contract.
                unsafe { self.fill(task) };
                Ok(None)
            }
            Placement::Raw { address } => {
                let size = dataset.info.element_size as u64;
                let (result, fields) = (&self.result, self.fields);
                let fetched_first = FetchedFirst { fetched, storage: &*dataset.storage };
                let storage: &dyn Storage =
                    if fetched.is_empty() { &*dataset.storage } else { &fetched_first };
                let map = self.map;
                let raw = RawRead { storage, address, size, result, fields, map, helpers };
                // SAFETY: the caller's contract.
                let read = unsafe { raw.read(task, buffer) };
                read.map(|()| None).map_err(|error| {
                    let stored_nbytes = dataset.chunk_nbytes;
                    let record = ChunkRecord { address, stored_nbytes, filter_mask: 0 };
                    dataset.name_chunk(error, &StoredChunk { chunk_index, record })
                })
            }
            Placement::Filtered(record) => {
                let key = (dataset.number, position);
                let found = ProcessState::of_this_process().cache().get(key, self.read);
                let Some(chunk) = found else {
                    let chunk = StoredChunk { chunk_index, record };
                    // SAFETY: the caller's contract.
                    let done = unsafe { self.by_blocks(task, &chunk, buffers, helpers) };
                    return Ok((!done).then_some(chunk));
                };
                // SAFETY: the caller's contract.
                unsafe { self.copy(task, &chunk) };
                Ok(None)
            }
        }
    }

    /// Whether a chunk that is wanted whole may be wanted again, and there is room for it.
    fn may_return(&self, key: ChunkKey) -> bool {
        let nbytes = self.result.nbytes();
        leaves_room(nbytes, Setting::CacheNbytes.value())
            && (is_small(nbytes) || was_wanted_whole(key))
    }

    /// Decode a chunk, unless another thread is at it, and copy what is wanted.
    ///
    /// # Safety
    /// As [`alone`](Self::alone).
    pub(crate) unsafe fn finish(
        &self,
        task: &ChunkTask<'_>,
        chunk: &StoredChunk,
        stored: StoredBytes<'_>,
        (raw, scratch): (&mut Vec<u8>, &mut Scratch),
    ) -> Result<(), ReadError> {
        let dataset = self.dataset;
        let state = ProcessState::of_this_process();
        let key: ChunkKey = (dataset.number, task.linear_index());
        // A chunk that a large read wants whole is not wanted again by the same walk: it is
        // decoded in place, or through a buffer that is reused, and not kept.
        let kept = || {
            self.once.is_none()
                && (!task.takes_all() || self.may_return(key))
                && state.cache().would_keep(dataset.chunk_nbytes, self.read)
        };
        if !state.in_flight.has(key) && !kept() {
            let whole = task.lands_whole_at().filter(|_| self.fields.is_none());
            let whole = whole.and_then(|begin| {
                let begin = begin * dataset.info.element_size as u64;
                // SAFETY: the caller's contract; the task is this one run.
                unsafe { self.result.part(begin, dataset.chunk_nbytes) }
            });
            let some = |error: ReadError, decoded: &mut [u8]| {
                if self.lose_some(task, &error, decoded) { Ok(()) } else { Err(error) }
            };
            if let Some(out) = whole {
                let decoded = dataset.decode_into(chunk, stored, scratch, out);
                return decoded.or_else(|error| some(error, out));
            }
            dataset.decode_to(chunk, stored, (raw, scratch)).or_else(|error| some(error, raw))?;
            // SAFETY: the caller's contract.
            unsafe { self.copy(task, raw) };
            return Ok(());
        }
        let decoded = state.in_flight.decoded(key, || {
            // It may have been decoded since it was looked for.
            let mut cache = state.cache();
            if cache.holds(key)
                && let Some(found) = cache.get(key, self.read)
            {
                return Ok(found);
            }
            drop(cache);
            let decoded = dataset.decode_new(chunk, stored, scratch)?;
            state.cache().put(key, Arc::clone(&decoded), self.read);
            Ok::<_, ReadError>(decoded)
        })?;
        // SAFETY: the caller's contract.
        unsafe { self.copy(task, &decoded) };
        Ok(())
    }
}
