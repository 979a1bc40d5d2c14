//! Does a thread inflate a dataset's chunks one after another, or several at the same time?
//!
//! Whether several at a time are faster depends on the data, up to twice as fast or as slow.  So the
//! first chunks that are needed are timed both ways, and the faster one is kept for the dataset: of
//! large chunks of noise their beginnings, of others whole ones.

use chunkwise_codec::{FilterKind, Interleaved, Job, Pipeline, STREAMS, Scratch, resize};
use smallvec::SmallVec;

use crate::dataset::Layout;
use crate::memory::{most_threads, work_nbytes};
use crate::platform::thread_time;
use crate::process::ProcessState;
use crate::profile::{Phase, timed};
use crate::read::decode::{Buffers, StoredBytes, StoredChunk};
use crate::read::inflate_trial::InflateTrial;
use crate::read::reading::{Reading, Source, Waiting};
use crate::read::schedule::batches;
use crate::read::view::TaskView;
use crate::{ChunkRecord, Dataset, ReadError};

/// Smaller chunks are not faster so, and larger ones take too much memory.
const LEAST_NBYTES: u64 = 32 << 10;
const MOST_NBYTES: u64 = 4 << 20;
/// Chunks that compress more than this many times are mostly matches.
const MOST_RATIO: u64 = 3;
/// The beginnings of chunks say enough of those that compress less than this, in percent...
const SAMPLED_PERCENT: u64 = 150;
/// ... and are so large: of each, one part in this many is inflated twice, within bounds.
const SAMPLED_NBYTES: u64 = 1 << 20;
const SAMPLE_SHARE: u64 = 64;
const LEAST_SAMPLED: usize = STREAMS - 1;
const SAMPLE_NBYTES: [u64; 2] = [16 << 10, 64 << 10];
/// Small chunks are taken together up to as many bytes...
const GROUP_NBYTES: u64 = 1 << 20;
/// ... and at most as many.
const GROUP_CHUNKS: u64 = 16;

impl Dataset {
    /// How many chunks a thread may have in its hands, where up to this many threads decode: one,
    /// unless several may be inflated at the same time.
    fn chunks_in_hand(&self, threads: usize) -> u64 {
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

    /// Whether a chunk's beginning shows which way of inflating is faster.
    fn tells_by_its_beginning(&self, pipeline: &Pipeline, record: &ChunkRecord) -> bool {
        let nbytes = self.chunk_nbytes;
        // Shuffled bytes begin with those that compress least.
        let mask = pipeline.mask_when_inflated(record.filter_mask);
        nbytes >= SAMPLED_NBYTES
            && mask.is_some_and(|mask| pipeline.is_identity(mask))
            && record.stored_nbytes.saturating_mul(SAMPLED_PERCENT) > nbytes.saturating_mul(100)
    }

    /// How many chunks a thread should have in its hands in a read of this many, of which some are these.
    pub(crate) fn chunks_in_hand_of(
        &self,
        chunks: u64,
        some: &[ChunkRecord],
        threads: usize,
    ) -> u64 {
        let Layout::Chunked { pipeline, .. } = &self.info.layout else { return 1 };
        let little = |chunk: &ChunkRecord| {
            chunk.stored_nbytes.saturating_mul(MOST_RATIO) > self.chunk_nbytes
        };
        let group_nbytes = (STREAMS as u64).saturating_mul(self.chunk_nbytes);
        let dear = || {
            self.inflating.is_undecided()
                && InflateTrial::is_too_dear(chunks, group_nbytes)
                && !some.iter().all(|chunk| self.tells_by_its_beginning(pipeline, chunk))
        };
        if chunks > 1 && some.iter().any(little) && !dear() {
            self.chunks_in_hand(threads)
        } else {
            1
        }
    }

    /// How much of each of these chunks shows which way of inflating is faster; None where whole ones
    /// have to be timed, or nothing has.
    fn sample_nbytes(&self, pipeline: &Pipeline, records: &[ChunkRecord]) -> Option<usize> {
        let sampled = records.len() >= LEAST_SAMPLED
            && records.iter().all(|chunk| self.tells_by_its_beginning(pipeline, chunk))
            && self.inflating.is_undecided();
        let [least, most] = SAMPLE_NBYTES;
        sampled.then_some((self.chunk_nbytes / SAMPLE_SHARE).clamp(least, most) as usize)
    }

    /// Inflate the beginnings of chunks both ways, and note how long it takes.
    fn time_sample(
        &self,
        stored: &[&[u8]],
        sample_nbytes: usize,
        (out, scratch): (&mut Vec<u8>, &mut Scratch),
    ) -> Result<(), ReadError> {
        let stored = &stored[..stored.len().min(STREAMS)];
        let nbytes = stored.len() * sample_nbytes;
        // What it is set to now costs no time later.
        grow(out, nbytes)?;
        out[..nbytes].fill(0);
        let took = [false, true].map(|together| {
            let parts = out.chunks_exact_mut(sample_nbytes).zip(stored);
            let jobs = parts.map(|(out, &stored)| Job { stored, out, done: false });
            let mut jobs: SmallVec<[Job<'_>; STREAMS]> = jobs.collect();
            let before = thread_time();
            timed(Phase::Decode(FilterKind::Deflate), || scratch.inflate(&mut jobs, together));
            thread_time().saturating_sub(before)
        });
        self.inflating.add_sample(nbytes as u64, took);
        Ok(())
    }
}

/// At least this many bytes; fresh memory is not written before it is needed.
fn grow(buffer: &mut Vec<u8>, nbytes: usize) -> Result<(), ReadError> {
    if buffer.capacity() < nbytes {
        *buffer = Vec::new();
    }
    if buffer.len() < nbytes {
        resize(buffer, nbytes)?;
    }
    Ok(())
}

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
        if waiting.len() < 2 || self.dataset.chunks_in_hand(1) == 1 {
            return Ok(());
        }
        let undecided = self.dataset.inflating.is_undecided();
        let most = if undecided { 0 } else { GROUP_NBYTES / self.dataset.chunk_nbytes };
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
        let records: SmallVec<[ChunkRecord; GROUP_CHUNKS as usize]> =
            group.iter().map(|(_, chunk)| chunk.record).collect();
        let sample = dataset.sample_nbytes(pipeline, &records);
        // What fewer gain is not timed.
        let too_few = if dataset.inflating.is_undecided() { STREAMS } else { 2 };
        if sample.is_none() && group.len() < too_few {
            return Ok(none);
        }
        let group_nbytes = (group.len() as u64).saturating_mul(dataset.chunk_nbytes);
        let way = || dataset.inflating.next(group.len(), group_nbytes);
        let known = if sample.is_none() { way() } else { None };
        if sample.is_none() && known.is_none() {
            return Ok(none);
        }
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
        if let Some(sample_nbytes) = sample {
            dataset.time_sample(&stored, sample_nbytes, (&mut *inflated, &mut *scratch))?;
        }
        let Some((together, timed_group)) = known.or_else(way) else { return Ok(none) };
        let nbytes = dataset.chunk_nbytes as usize;
        let in_place: SmallVec<[bool; GROUP_CHUNKS as usize]> = group
            .iter()
            .zip(&masks)
            .map(|((view, _), &mask)| {
                pipeline.is_identity(mask)
                    && self.fields.is_none()
                    && view.task().lands_whole_at().is_some()
                    && self.passes(view)
            })
            .collect();
        let needed = in_place.iter().filter(|&&in_place| !in_place).count() * nbytes;
        grow(inflated, needed)?;
        let mut jobs: SmallVec<[Job<'_>; GROUP_CHUNKS as usize]> = SmallVec::new();
        let mut buffers = inflated.chunks_exact_mut(nbytes);
        for (((view, _), stored), &in_place) in group.iter_mut().zip(stored).zip(&in_place) {
            let out = if in_place { view.whole() } else { buffers.next() };
            jobs.push(Job { stored, out: out.unwrap_or_default(), done: false });
        }
        let before = timed_group.then(thread_time);
        timed(Phase::Decode(FilterKind::Deflate), || scratch.inflate(&mut jobs, together));
        if let Some(before) = before {
            let took = thread_time().saturating_sub(before);
            dataset.inflating.add(together, (jobs.len() * nbytes) as u64, took);
        }
        let done: SmallVec<[bool; GROUP_CHUNKS as usize]> =
            jobs.iter().map(|job| job.done).collect();
        drop(jobs);
        let mut buffers = inflated.chunks_exact(nbytes);
        for (number, (view, chunk)) in group.iter_mut().enumerate() {
            let buffer = if in_place[number] { None } else { buffers.next() };
            if !done[number] {
                continue;
            }
            let Some(buffer) = buffer else {
                ProcessState::of_this_process().count_decoded();
                continue;
            };
            self.check_cancelled()?;
            let record = ChunkRecord { filter_mask: masks[number], ..chunk.record };
            let chunk = StoredChunk { record, chunk_index: chunk.chunk_index.clone() };
            let bytes = StoredBytes::Read(buffer);
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
        let key = (self.dataset.number, view.task().linear_index());
        let gains = chunk.record.stored_nbytes.saturating_mul(MOST_RATIO)
            > self.dataset.chunk_nbytes
            && !ProcessState::of_this_process().in_flight.has(key);
        pipeline.mask_when_inflated(chunk.record.filter_mask).filter(|_| gains)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chunkwise_codec::{Deflate, EncodeScratch, Encoder, Encoding, Filter, Shuffle, Step};
    use chunkwise_select::Hyperslab;

    use super::*;
    use crate::process::thread_count;
    use crate::read::inflate_trial::TIMED_GROUPS;
    use crate::{ChunkIndexBuilder, DatasetInfo, MemoryStorage};

    const CHUNK: [u64; 2] = [16, 1000];
    const CHUNKS: u64 = 200;

    /// Noise, in chunks that are deflated; every seventh is not, the last one has too many rows, and
    /// one may be damaged.
    fn dataset(shuffle: bool, damaged: Option<u64>) -> (Arc<Dataset>, Vec<u8>) {
        dataset_of(CHUNK, CHUNKS, 0xffff, shuffle, damaged)
    }

    /// Of this many such chunks, with noise in these bits.
    fn dataset_of(
        chunk: [u64; 2],
        chunks: u64,
        bits: u32,
        shuffle: bool,
        damaged: Option<u64>,
    ) -> (Arc<Dataset>, Vec<u8>) {
        let shape = [chunk[0] * chunks - 5, chunk[1]];
        let element = |i: u64| {
            let noise = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
            ((noise as u32 & bits) | 0x4140_0000).to_le_bytes()
        };
        let array: Vec<u8> = (0..chunk[0] * chunks * chunk[1]).flat_map(element).collect();
        let shuffling = shuffle.then_some(Encoder::Shuffle(Shuffle { element_size: 4 }));
        let encoders: Vec<_> = shuffling.into_iter().chain([Encoder::deflate(6)]).collect();
        let filters = encoders.iter().map(|encoder| match encoder {
            Encoder::Shuffle(Shuffle { element_size }) => {
                Filter::Shuffle(Shuffle { element_size: *element_size })
            }
            _ => Filter::Deflate(Deflate),
        });
        let pipeline = Pipeline::new(filters.collect());
        let steps = encoders.into_iter().map(|encoder| Step { encoder, optional: true });
        let (encoding, mut scratch) = (Encoding::new(steps.collect()), EncodeScratch::default());
        let (mut storage, mut index) = (vec![1; 50], ChunkIndexBuilder::default());
        let chunk_nbytes = array.len() / chunks as usize;
        for (position, raw) in (0..).zip(array.chunks(chunk_nbytes)) {
            let mut stored = Vec::new();
            let mut filter_mask = encoding.encode(raw, &mut scratch, &mut stored).unwrap();
            if position % 7 == 3 {
                (stored, filter_mask) = (raw.to_vec(), u32::MAX);
            }
            if damaged == Some(position) {
                let middle = stored.len() / 2;
                stored[middle] ^= 4;
            }
            let (address, stored_nbytes) = (storage.len() as u64, stored.len() as u64);
            storage.extend(stored);
            let record = ChunkRecord { address, stored_nbytes, filter_mask };
            index.push(position, record).unwrap();
        }
        let layout = Layout::Chunked {
            chunk: chunk.as_slice().into(),
            pipeline,
            unfiltered_partial_chunks: false,
            index: index.finish(chunks).unwrap().into(),
        };
        let info =
            DatasetInfo { shape: shape.as_slice().into(), element_size: 4, fill: None, layout };
        let dataset = Dataset::new(info, Arc::new(MemoryStorage(storage))).unwrap();
        (dataset, array[..(shape[0] * shape[1] * 4) as usize].to_vec())
    }

    /// As if all groups were timed.
    fn decide(dataset: &Dataset, together: bool) {
        for number in 0..TIMED_GROUPS {
            let other = number % 2 == 1;
            dataset.inflating.add(other, 1000, if other == together { 1000 } else { 3000 });
        }
        let way = dataset.inflating.next(4, 1000);
        assert_eq!(way.map(|(together, _)| together), together.then_some(true));
    }

    #[test]
    fn either_way_gives_the_same() {
        for shuffle in [false, true] {
            for together in [None, Some(false), Some(true)] {
                let (dataset, array) = dataset(shuffle, None);
                if let Some(together) = together {
                    decide(&dataset, together);
                }
                let mut out = vec![0; array.len()];
                dataset.read(&Hyperslab::all(dataset.shape()), &mut out).unwrap();
                assert!(out == array);
                // Parts of many chunks, which are kept.
                let (rows, columns) = (dataset.shape()[0] / 4, 30);
                let slab = Hyperslab::new(
                    dataset.shape(),
                    &[1, 100],
                    &[4, 1],
                    &[rows - 1, columns],
                    &[1, 1],
                );
                let mut out = vec![0; ((rows - 1) * columns * 4) as usize];
                for _ in 0..2 {
                    out.fill(9);
                    dataset.read(&slab.clone().unwrap(), &mut out).unwrap();
                    for (row, found) in out.chunks_exact(columns as usize * 4).enumerate() {
                        let begin = ((row * 4 + 1) * CHUNK[1] as usize + 100) * 4;
                        assert!(*found == array[begin..][..found.len()]);
                    }
                }
            }
        }
    }

    /// Few chunks of noise, each large: whether they are inflated together is known by their
    /// beginnings.
    #[test]
    fn a_sample_tells_of_few_large_chunks() {
        for damaged in [None, Some(4)] {
            let (dataset, array) = dataset_of([64, 5000], 11, 0xff_ffff, false, damaged);
            let mut out = vec![0; array.len()];
            let read = dataset.read(&Hyperslab::all(dataset.shape()), &mut out);
            assert_eq!(read.is_err(), damaged.is_some());
            assert!(damaged.is_some() || out == array);
            // With one thread or with many, some thread had four of them.
            let sampled = !dataset.inflating.is_undecided();
            assert!(sampled || !Interleaved::is_possible() || thread_count() > 2);
        }
    }

    #[test]
    fn damage_is_named_as_ever() {
        for shuffle in [false, true] {
            let errors = [false, true].map(|together| {
                let (dataset, array) = dataset(shuffle, Some(41));
                decide(&dataset, together);
                let mut out = vec![0; array.len()];
                dataset.read(&Hyperslab::all(dataset.shape()), &mut out).unwrap_err().to_string()
            });
            assert!(errors[0] == errors[1] && errors[0].contains("[656, 0]"), "{errors:?}");
        }
    }
}
