//! Does a thread inflate a dataset's chunks one after another, or several at the same time?
//!
//! Whether several at a time are faster depends on the data, up to twice as fast or as slow.  So the
//! first chunks that are needed are timed both ways, and the faster one is kept for the dataset.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use chunkwise_codec::{FilterKind, Interleaved, Job, Pipeline, STREAMS, resize};
use smallvec::SmallVec;

use crate::dataset::Layout;
use crate::memory::{most_threads, work_nbytes};
use crate::process::ProcessState;
use crate::profile::{Phase, timed};
use crate::read::decode::{Buffers, StoredBytes, StoredChunk};
use crate::read::reading::{Reading, Source};
use crate::read::schedule::batches;
use crate::read::view::TaskView;
use crate::{ChunkRecord, Dataset, ReadError};

/// Smaller chunks are not faster so, and larger ones take too much memory.
const LEAST_NBYTES: u64 = 32 << 10;
const MOST_NBYTES: u64 = 8 << 20;
/// Chunks that compress more than this many times are mostly matches.
const MOST_RATIO: u64 = 3;
/// Small chunks are taken together up to as many bytes...
const GROUP_NBYTES: u64 = 1 << 20;
/// ... and at most as many.
const GROUP_CHUNKS: u64 = 16;

/// Groups that are timed, in turns one way and the other.
const TIMED_GROUPS: usize = 4;
/// The other way has to be faster by this, in percent of its time.
const LEAST_GAIN_PERCENT: u64 = 5;

/// What is known of a dataset.
#[derive(Debug, Default)]
pub(crate) struct InflateTrial {
    /// Groups that were begun to be timed, and those that ended.
    begun: AtomicUsize,
    ended: AtomicUsize,
    /// Bytes, and processor time in nanoseconds: one after another, at the same time.
    nbytes: [AtomicU64; 2],
    took: [AtomicU64; 2],
}

impl InflateTrial {
    /// How the next group is inflated: whether at the same time, and whether it is timed.  None if it
    /// is to be decoded as all others.
    fn next(&self) -> Option<(bool, bool)> {
        if self.ended.load(Relaxed) >= TIMED_GROUPS {
            return self.is_faster().then_some((true, false));
        }
        let number = self.begun.fetch_add(1, Relaxed);
        (number < TIMED_GROUPS).then_some((number % 2 == 1, true))
    }

    /// A group of so many bytes took so long.
    fn add(&self, together: bool, nbytes: u64, took: u64) {
        self.nbytes[usize::from(together)].fetch_add(nbytes, Relaxed);
        self.took[usize::from(together)].fetch_add(took, Relaxed);
        self.ended.fetch_add(1, Relaxed);
    }

    fn is_faster(&self) -> bool {
        let of = |values: &[AtomicU64; 2]| values.each_ref().map(|v| u128::from(v.load(Relaxed)));
        let ([nbytes, nbytes_together], [took, took_together]) = (of(&self.nbytes), of(&self.took));
        let percent = u128::from(100 + LEAST_GAIN_PERCENT);
        took_together * nbytes * percent <= took * nbytes_together * 100
    }

    /// Whether chunks may still be inflated at the same time.
    fn is_open(&self) -> bool {
        self.ended.load(Relaxed) < TIMED_GROUPS || self.is_faster()
    }
}

/// Processor time of this thread, in nanoseconds: what others do on the machine does not count.
fn thread_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live `timespec`, which is written to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Dataset {
    /// How many chunks a thread should have in its hands, where up to so many threads decode: one,
    /// unless several may be inflated at the same time.
    pub(crate) fn chunks_in_hand(&self, threads: usize) -> u64 {
        let Layout::Chunked { pipeline, .. } = &self.info.layout else { return 1 };
        let of_size = (LEAST_NBYTES..=MOST_NBYTES).contains(&self.chunk_nbytes);
        let gains = of_size
            && pipeline.mask_when_inflated(0).is_some()
            && Interleaved::is_possible()
            && self.inflating.is_open();
        // Each in memory, stored and inflated.
        let streams = STREAMS as u64;
        let room = || most_threads(streams * self.chunk_nbytes, threads, work_nbytes()) >= threads;
        if gains && room() { streams } else { 1 }
    }
}

/// A task, and the chunk that it needs.
pub(crate) type Waiting<'a> = SmallVec<[(TaskView<'a>, StoredChunk); 1]>;

impl Reading<'_> {
    /// Inflate chunks at the same time where that is faster, and carry their tasks out; those that are
    /// left are to be decoded one by one.
    pub(crate) fn inflate_together(
        &self,
        waiting: &mut Waiting<'_>,
        source: &Source<'_, '_>,
        buffers: &mut Buffers,
    ) -> Result<(), ReadError> {
        let Layout::Chunked { pipeline, unfiltered_partial_chunks: false, .. } =
            &self.dataset.info.layout
        else {
            return Ok(());
        };
        if waiting.len() < STREAMS || self.dataset.chunks_in_hand(1) == 1 {
            return Ok(());
        }
        let most = GROUP_NBYTES / self.dataset.chunk_nbytes;
        let most = most.clamp(STREAMS as u64, GROUP_CHUNKS) as usize;
        let mut done: SmallVec<[bool; GROUP_CHUNKS as usize]> = SmallVec::new();
        for group in waiting.chunks_mut(most) {
            let inflated = self.inflate_group(pipeline, group, source, buffers)?;
            done.extend(inflated);
        }
        let mut done = done.into_iter();
        waiting.retain(|_| !done.next().unwrap_or(false));
        Ok(())
    }

    /// Which of a group were carried out.
    fn inflate_group(
        &self,
        pipeline: &Pipeline,
        group: &mut [(TaskView<'_>, StoredChunk)],
        source: &Source<'_, '_>,
        buffers: &mut Buffers,
    ) -> Result<SmallVec<[bool; GROUP_CHUNKS as usize]>, ReadError> {
        let dataset = self.dataset;
        let none = SmallVec::from_elem(false, group.len());
        let masks =
            group.iter().map(|(view, chunk)| self.mask_when_inflated(pipeline, view, chunk));
        let Some(masks) = masks.collect::<Option<SmallVec<[u32; GROUP_CHUNKS as usize]>>>() else {
            return Ok(none);
        };
        if group.len() < STREAMS {
            return Ok(none);
        }
        let Some((together, timed_group)) = dataset.inflating.next() else { return Ok(none) };
        let records: SmallVec<[ChunkRecord; GROUP_CHUNKS as usize]> =
            group.iter().map(|(_, chunk)| chunk.record).collect();
        let Buffers { several, inflated, raw, scratch, .. } = buffers;
        let batches = batches(&records, dataset.storage.cost());
        several.resize_with(batches.len().max(several.len()), Vec::new);
        let mut stored: SmallVec<[&[u8]; GROUP_CHUNKS as usize]> = SmallVec::new();
        for (batch, buffer) in batches.iter().zip(several) {
            let Ok(bytes) = timed(Phase::Storage, || source.read(batch, buffer)) else {
                // One by one, to find out which of them it is.
                return Ok(none);
            };
            for record in &records[batch.first..][..batch.count] {
                let begin = (record.address - batch.address) as usize;
                stored.push(&bytes[begin..][..record.stored_nbytes as usize]);
            }
        }
        let nbytes = dataset.chunk_nbytes as usize;
        resize(inflated, group.len() * nbytes)?;
        let mut jobs: SmallVec<[Job<'_>; GROUP_CHUNKS as usize]> = SmallVec::new();
        let mut in_place: SmallVec<[bool; GROUP_CHUNKS as usize]> = SmallVec::new();
        let buffers = inflated.chunks_exact_mut(nbytes);
        for ((((view, _), stored), buffer), &mask) in
            group.iter_mut().zip(stored).zip(buffers).zip(&masks)
        {
            let direct = pipeline.is_identity(mask) && self.fields.is_none() && self.passes(view);
            let out = if direct { view.whole() } else { None };
            in_place.push(out.is_some());
            jobs.push(Job { stored, out: out.unwrap_or(buffer), done: false });
        }
        let before = thread_time();
        timed(Phase::Decode(FilterKind::Deflate), || scratch.inflate(&mut jobs, together));
        if timed_group {
            let took = thread_time().saturating_sub(before);
            dataset.inflating.add(together, (jobs.len() * nbytes) as u64, took);
        }
        let done: SmallVec<[bool; GROUP_CHUNKS as usize]> =
            jobs.iter().map(|job| job.done).collect();
        drop(jobs);
        for (number, (view, chunk)) in group.iter_mut().enumerate() {
            if !done[number] {
                continue;
            }
            if in_place[number] {
                ProcessState::of_this_process().count_decoded();
                continue;
            }
            self.check_cancelled()?;
            let record = ChunkRecord { filter_mask: masks[number], ..chunk.record };
            let chunk = StoredChunk { record, chunk_index: chunk.chunk_index.clone() };
            let bytes = StoredBytes::Read(&inflated[number * nbytes..][..nbytes]);
            self.finish(view, &chunk, bytes, (&mut *raw, &mut *scratch))
                .or_else(|error| self.lose(view, error))?;
        }
        Ok(done)
    }

    /// The filter mask of a chunk after it was inflated, if that may be done beside others.
    fn mask_when_inflated(
        &self,
        pipeline: &Pipeline,
        view: &TaskView<'_>,
        chunk: &StoredChunk,
    ) -> Option<u32> {
        let ChunkRecord { stored_nbytes, filter_mask, .. } = chunk.record;
        let key = (self.dataset.number, view.task().linear_index());
        let gains = stored_nbytes.saturating_mul(MOST_RATIO) > self.dataset.chunk_nbytes
            && !ProcessState::of_this_process().in_flight.has(key);
        pipeline.mask_when_inflated(filter_mask).filter(|_| gains)
    }
}
