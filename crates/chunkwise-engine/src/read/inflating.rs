//! Does a thread inflate a dataset's chunks one after another, or several at the same time?
//!
//! Whether several at a time are faster depends on the data, up to twice as fast or as slow.  So the
//! first chunks that are needed are timed both ways, and the faster one is kept for the dataset.

use chunkwise_codec::{FilterKind, Interleaved, Job, Pipeline, STREAMS, resize};
use smallvec::SmallVec;

use crate::dataset::Layout;
use crate::memory::{most_threads, work_nbytes};
use crate::platform::thread_time;
use crate::process::ProcessState;
use crate::profile::{Phase, timed};
use crate::read::decode::{Buffers, StoredBytes, StoredChunk};
use crate::read::reading::{Reading, Source, Waiting};
use crate::read::schedule::batches;
use crate::read::view::TaskView;
use crate::{ChunkRecord, Dataset, ReadError};

/// Smaller chunks are not faster so, and larger ones take too much memory.
const LEAST_NBYTES: u64 = 32 << 10;
const MOST_NBYTES: u64 = 4 << 20;
/// Chunks that compress more than this many times are mostly matches.
const MOST_RATIO: u64 = 3;
/// Small chunks are taken together up to as many bytes...
const GROUP_NBYTES: u64 = 1 << 20;
/// ... and at most as many.
const GROUP_CHUNKS: u64 = 16;

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
        let before = timed_group.then(thread_time);
        timed(Phase::Decode(FilterKind::Deflate), || scratch.inflate(&mut jobs, together));
        if let Some(before) = before {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chunkwise_codec::{EncodeScratch, Encoder, Encoding, Filter, Step};
    use chunkwise_select::Hyperslab;

    use super::*;
    use crate::read::inflate_trial::TIMED_GROUPS;
    use crate::{ChunkIndexBuilder, DatasetInfo, MemoryStorage};

    const CHUNK: [u64; 2] = [16, 1000];
    const CHUNKS: u64 = 80;

    /// Noise, in chunks that are deflated; every seventh is not, the last one has too many rows, and
    /// one may be damaged.
    fn dataset(shuffle: bool, damaged: Option<u64>) -> (Arc<Dataset>, Vec<u8>) {
        let shape = [CHUNK[0] * CHUNKS - 5, CHUNK[1]];
        let element = |i: u64| {
            let noise = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
            ((noise & 0xffff) as u32 | 0x4140_0000).to_le_bytes()
        };
        let array: Vec<u8> = (0..CHUNK[0] * CHUNKS * CHUNK[1]).flat_map(element).collect();
        let shuffling = shuffle.then_some(Encoder::Shuffle { element_size: 4 });
        let encoders: Vec<_> = shuffling.into_iter().chain([Encoder::deflate(6)]).collect();
        let filters = encoders.iter().map(|encoder| match encoder {
            Encoder::Shuffle { element_size } => Filter::Shuffle { element_size: *element_size },
            _ => Filter::Deflate,
        });
        let pipeline = Pipeline::new(filters.collect());
        let steps = encoders.into_iter().map(|encoder| Step { encoder, optional: true });
        let (encoding, mut scratch) = (Encoding::new(steps.collect()), EncodeScratch::default());
        let (mut storage, mut index) = (vec![1; 50], ChunkIndexBuilder::default());
        let chunk_nbytes = array.len() / CHUNKS as usize;
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
            chunk: CHUNK.as_slice().into(),
            pipeline,
            unfiltered_partial_chunks: false,
            index: index.finish(CHUNKS).unwrap().into(),
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
        assert_eq!(dataset.inflating.next(), together.then_some((true, false)));
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
