//! How are a plan's tasks carried out, by one thread or by several?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::Scope;

use chunkwise_codec::Scratch;
use chunkwise_select::ChunkTask;
use smallvec::SmallVec;

use crate::cache_entry::ChunkKey;
use crate::crew::{Pieces, share};
use crate::dataset::{Layout, Placement};
use crate::memory::{most_threads, work_nbytes};
use crate::process::{ProcessState, thread_count};
use crate::profile::{Phase, timed};
use crate::read::decode::{Buffers, StoredBytes, StoredChunk, with_buffers};
use crate::read::fetch::{FetchAhead, Fetched, FetchedFirst};
use crate::read::fields::Fields;
use crate::read::read_map::ReadMap;
use crate::read::repeated::{is_small, leaves_room, was_wanted_whole};
use crate::read::runs::{RawRead, raw_batches, threads_that_gain};
use crate::read::schedule::{Batch, Batches, batches};
use crate::read::tasks::{Placed, TakenTasks, Tasks};
use crate::read::view::TaskView;
use crate::settings::Setting;
use crate::{ChunkRecord, Dataset, OnePass, ReadError, Storage};

/// From so many bytes on, several threads work on a chunk, or a part of it: less takes as long as
/// they take to come.
pub(crate) const SHARED_NBYTES: u64 = 1 << 20;

/// A task, and the chunk that it needs.
pub(crate) type Waiting<'a> = SmallVec<[(TaskView<'a>, StoredChunk); 1]>;

/// Where the stored bytes of a segment come from.
pub(crate) enum Source<'s, 'scope> {
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
    pub(crate) fn read<'b>(
        &'b self,
        batch: &Batch,
        stored: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], ReadError> {
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
    /// Its number.
    pub read: u64,
    /// Bytes of its result.
    pub nbytes: usize,
    pub cancelled: &'a AtomicBool,
    /// Where it is a part of one pass over the dataset.
    pub once: Option<OnePass<'a>>,
    /// Where some fields of each element are wanted.
    pub fields: Option<&'a Fields>,
    /// Out of which short runs are copied.
    pub map: &'a ReadMap,
}

impl Reading<'_> {
    /// Carry tasks out on the calling thread.
    pub fn alone(&self, tasks: Tasks<'_>) -> Result<(), ReadError> {
        let source = Source::Storage(&*self.dataset.storage);
        // A short read has nothing to share, and begins no threads.  Of contiguous data, one thread
        // has slab after slab read by all of them.
        let helped = self.has_much_to_share() && (tasks.len() == 1 || self.is_contiguous());
        let helpers = if helped { self.most_threads() - 1 } else { 0 };
        // In segments, as what waits to be fetched takes memory.
        let tasks = tasks.for_threads(1);
        with_buffers(|buffers| {
            while let Some(segment) = tasks.take() {
                self.segment(segment, &source, buffers, helpers)?;
            }
            Ok(())
        })
    }

    /// Carry tasks out on as many threads as are free.
    pub fn shared(&self, tasks: Tasks<'_>, threads_that_gain: usize) -> Result<(), ReadError> {
        let dataset = self.dataset;
        let most_ahead = self.once.map_or(u64::MAX, |once| once.ahead_nbytes);
        let most = self.most_threads().min(threads_that_gain);
        let threads = most_threads(dataset.chunk_nbytes, most, work_nbytes());
        let tasks = tasks.for_threads(threads);
        let count = tasks.segments().count();
        // Those that have no chunk of their own to decode help with the others'.
        let helpers = most - threads.min(usize::try_from(count).unwrap_or(most));
        let to_fetch = |segment: u64| self.to_fetch(tasks.look_at(segment));
        let nbytes = tasks.segments().most().saturating_mul(dataset.chunk_nbytes);
        let ahead = FetchAhead::new(&*dataset.storage, (count, nbytes), most_ahead, &to_fetch);
        let segments = Pieces::new(std::iter::from_fn(|| tasks.take()));
        std::thread::scope(|scope| {
            // However this ends: the scope waits for those who fetch.
            let _end = ahead.ends();
            ahead.begin_where_slow(scope);
            share(threads - 1, &|| {
                with_buffers(|buffers| {
                    segments.each(|taken| {
                        let segment = taken.segment();
                        let fetched = ahead.take(segment);
                        let source = Source::Ahead { ahead: &ahead, scope, segment, fetched };
                        self.segment(taken, &source, buffers, helpers)
                    });
                });
            });
        });
        segments.outcome()
    }

    /// Whether a single task can be worth more than one thread: a long run, or a chunk in blocks.
    fn has_much_to_share(&self) -> bool {
        let (run_nbytes, chunk_nbytes) = (self.nbytes as u64, self.dataset.chunk_nbytes);
        run_nbytes >= SHARED_NBYTES
            || (chunk_nbytes >= SHARED_NBYTES && self.dataset.is_in_blocks())
    }

    /// How many threads gain, if all that they do is to copy into fresh memory.
    pub fn threads_that_gain(&self, tasks: &Tasks<'_>) -> usize {
        let storage = &*self.dataset.storage;
        let small = self.dataset.chunk_nbytes < SHARED_NBYTES;
        if small || self.fields.is_some() || storage.cost().is_remote() {
            return usize::MAX;
        }
        let ends = tasks.ends_as_they_are();
        ends.map_or(usize::MAX, |ends| threads_that_gain(storage, ends, self.nbytes))
    }

    /// Whether all that it does is to read contiguous bytes from a disk, in their order.
    pub fn is_in_order(&self, tasks: &Tasks<'_>, threads_that_gain: usize) -> bool {
        let straight = self.is_contiguous() && self.fields.is_none();
        straight && threads_that_gain == usize::MAX && tasks.ends_as_they_are().is_some()
    }

    fn is_contiguous(&self) -> bool {
        matches!(self.dataset.info.layout, Layout::Contiguous { .. })
    }

    /// Threads that may work on it, this one included.
    fn most_threads(&self) -> usize {
        thread_count().min(self.once.map_or(usize::MAX, |once| once.threads)).max(1)
    }

    /// Copy whatever needs neither storage nor decoding; gives the tasks that are left.
    pub fn without_cached<'t>(&self, tasks: Tasks<'t>) -> Tasks<'t> {
        tasks.without(|view, placed| {
            match placed.placement {
                Ok(Placement::Missing) => self.fill(view),
                // Who carries it out meets the error.
                Ok(Placement::Raw { .. }) | Err(_) => return false,
                Ok(Placement::Filtered(_)) => {
                    let key = (self.dataset.number, placed.position);
                    let mut cache = ProcessState::of_this_process().cache();
                    // Those that are not there are looked for again, and count as missed then.
                    let found = if cache.holds(key) { cache.get(key, self.read) } else { None };
                    drop(cache);
                    let Some(chunk) = found else { return false };
                    self.copy(view, &chunk);
                }
            }
            true
        })
    }

    /// What these tasks have to read from storage.
    fn to_fetch<'t>(&self, tasks: impl Iterator<Item = (ChunkTask<'t>, Placed)>) -> Batches {
        let dataset = self.dataset;
        let cost = dataset.storage.cost();
        let mut raw = Batches::new();
        let records = tasks.filter_map(|(task, placed)| {
            let record = match placed.placement {
                Ok(Placement::Filtered(record)) => record,
                Ok(Placement::Raw { address }) if cost.is_remote() => {
                    let size = dataset.info.element_size as u64;
                    raw.extend(raw_batches(&task, (address, size), cost));
                    return None;
                }
                _ => return None,
            };
            let key = (dataset.number, placed.position);
            let cached = ProcessState::of_this_process().cache().holds(key);
            let chunk = StoredChunk { chunk_index: placed.chunk_index, record };
            // Of blocks, those that are wanted are not known before.
            let in_part = || !cost.is_remote() && !task.takes_all() && dataset.has_blocks(&chunk);
            (!cached && !in_part() && dataset.stored_len(&chunk).is_ok()).then_some(record)
        });
        let mut found = batches(&records.collect::<SmallVec<[ChunkRecord; 8]>>(), cost);
        found.append(&mut raw);
        found
    }

    /// Carry neighbouring tasks out, reading what lies together at once.
    fn segment(
        &self,
        tasks: TakenTasks<'_, '_>,
        source: &Source<'_, '_>,
        buffers: &mut Buffers,
        helpers: usize,
    ) -> Result<(), ReadError> {
        let (mut waiting, several) = (Waiting::new(), tasks.several());
        tasks.each(|mut view, placed| {
            self.check_cancelled()?;
            let begun = self.begin(&mut view, placed, source.fetched(), buffers, helpers);
            let sound = begun.and_then(|chunk| {
                chunk.as_ref().map_or(Ok(0), |chunk| self.dataset.stored_len(chunk))?;
                Ok(chunk)
            });
            match sound {
                Ok(Some(chunk)) => waiting.push((view, chunk)),
                Ok(None) => {}
                Err(error) => self.lose(&mut view, error)?,
            }
            Ok(())
        })?;
        if several {
            self.inflate_together(&mut waiting, source, buffers)?;
        }
        let records: SmallVec<[ChunkRecord; 4]> =
            waiting.iter().map(|(_, chunk)| chunk.record).collect();
        let Buffers { stored, raw, scratch, .. } = buffers;
        for batch in batches(&records, self.dataset.storage.cost()) {
            let members = &mut waiting[batch.first..][..batch.count];
            match timed(Phase::Storage, || source.read(&batch, stored)) {
                Ok(bytes) => {
                    for (view, chunk) in members {
                        self.check_cancelled()?;
                        let begin = (chunk.record.address - batch.address) as usize;
                        let bytes = &bytes[begin..][..chunk.record.stored_nbytes as usize];
                        let bytes = StoredBytes::Read(bytes);
                        self.finish(view, chunk, bytes, (&mut *raw, &mut *scratch))
                            .or_else(|error| self.lose(view, error))?;
                    }
                }
                // One by one, to find out which of them it is.
                Err(_) => {
                    for (view, chunk) in members {
                        self.dataset
                            .fetch(chunk, stored)
                            .and_then(|()| {
                                let stored = StoredBytes::Read(stored);
                                self.finish(view, chunk, stored, (&mut *raw, &mut *scratch))
                            })
                            .or_else(|error| self.lose(view, error))?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), ReadError> {
        if self.cancelled.load(Relaxed) { Err(ReadError::Cancelled) } else { Ok(()) }
    }

    /// Carry a task out, unless its chunk has to be decoded: gives that chunk.
    fn begin(
        &self,
        view: &mut TaskView<'_>,
        placed: Placed,
        fetched: &[Fetched],
        buffers: &mut Buffers,
        helpers: usize,
    ) -> Result<Option<StoredChunk>, ReadError> {
        let dataset = self.dataset;
        let Placed { position, chunk_index, placement } = placed;
        match placement? {
            Placement::Missing => {
                self.fill(view);
                Ok(None)
            }
            Placement::Raw { address } => {
                let size = dataset.info.element_size as u64;
                let (fields, map) = (self.fields, self.map);
                let fetched_first = FetchedFirst { fetched, storage: &*dataset.storage };
                let storage: &dyn Storage =
                    if fetched.is_empty() { &*dataset.storage } else { &fetched_first };
                let short_runs = &dataset.short_runs;
                let raw = RawRead { storage, address, size, fields, map, short_runs, helpers };
                let read = raw.read(view, &mut buffers.stored);
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
                    let done = self.by_blocks(view, &chunk, buffers, helpers);
                    return Ok((!done).then_some(chunk));
                };
                self.copy(view, &chunk);
                Ok(None)
            }
        }
    }

    /// Whether a chunk that is wanted whole may be wanted again, and there is room for it.
    fn may_return(&self, key: ChunkKey) -> bool {
        leaves_room(self.nbytes, Setting::CacheNbytes.value())
            && (is_small(self.nbytes) || was_wanted_whole(key))
    }

    /// Whether a task's chunk is decoded for this read alone.  A chunk that a large read wants whole is
    /// not wanted again by the same walk: it is decoded in place, or through a buffer that is reused, and
    /// not kept.
    pub(crate) fn passes(&self, view: &TaskView<'_>) -> bool {
        let state = ProcessState::of_this_process();
        let key: ChunkKey = (self.dataset.number, view.task().linear_index());
        let kept = || {
            self.once.is_none()
                && (!view.task().takes_all() || self.may_return(key))
                && state.cache().would_keep(self.dataset.chunk_nbytes, self.read)
        };
        !state.in_flight.has(key) && !kept()
    }

    /// Decode a chunk, unless another thread is at it, and copy what is wanted.
    pub(crate) fn finish(
        &self,
        view: &mut TaskView<'_>,
        chunk: &StoredChunk,
        stored: StoredBytes<'_>,
        (raw, scratch): (&mut Vec<u8>, &mut Scratch),
    ) -> Result<(), ReadError> {
        let dataset = self.dataset;
        let state = ProcessState::of_this_process();
        let key: ChunkKey = (dataset.number, view.task().linear_index());
        if self.passes(view) {
            let some = |error: ReadError, decoded: &mut [u8]| {
                if self.lose_some(chunk, &error, decoded) { Ok(()) } else { Err(error) }
            };
            let whole = if self.fields.is_none() { view.whole() } else { None };
            if let Some(out) = whole {
                let decoded = dataset.decode_into(chunk, stored, scratch, out);
                return decoded.or_else(|error| some(error, out));
            }
            dataset.decode_to(chunk, stored, (raw, scratch)).or_else(|error| some(error, raw))?;
            self.copy(view, raw);
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
        self.copy(view, &decoded);
        Ok(())
    }
}
