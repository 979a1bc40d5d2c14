//! Which chunks does a thread take at a time, and which stored bytes are read together?
//!
//! Arithmetic only: given the same plan, index and threads it says the same.

use std::ops::Range;

use smallvec::SmallVec;

use crate::storage::joined;
use crate::{ChunkRecord, StorageCost};

/// A thread takes about this many bytes of (decoded) chunks at a time...
const SEGMENT_NBYTES: u64 = 512 << 10;
/// ... and at most this many chunks.
const SEGMENT_CHUNKS: u64 = 256;
/// There are at least this many pieces for each thread, so that all end at about the same time.
const SEGMENTS_A_THREAD: u64 = 8;

/// ... unless these are to have several chunks each: fewer pieces are made as even as can be.
const LEAST_SEGMENTS_A_THREAD: u64 = 4;

/// How many neighbouring tasks of `tasks` a thread takes at a time.
fn segment_len(tasks: u64, chunk_nbytes: u64, threads: u64) -> u64 {
    let large = (SEGMENT_NBYTES / chunk_nbytes.max(1)).clamp(1, SEGMENT_CHUNKS);
    large.min((tasks / (SEGMENTS_A_THREAD * threads)).max(1))
}

/// The last segments, of which there is one for each thread, are divided into this many.
const LAST_PARTS: u64 = 4;

/// The tasks of a read, in pieces that threads take one after the other.
///
/// The last ones are smaller, so that threads that began late, or were held up, end with the others.
#[derive(Debug, Clone, Copy)]
pub struct Segments {
    tasks: u64,
    /// Tasks in each, and how many such there are...
    len: u64,
    large: u64,
    /// ... before those of this many tasks.
    last_len: u64,
}

impl Segments {
    /// For `threads` that take them at the same time, and are faster with up to `several` tasks in
    /// hand, however large their chunks are.
    pub fn new(tasks: u64, chunk_nbytes: u64, threads: usize, several: u64) -> Self {
        let shared = threads > 1;
        let threads = threads.max(1) as u64;
        let len = segment_len(tasks, chunk_nbytes, threads).max(several);
        if several > 1 && tasks < LEAST_SEGMENTS_A_THREAD * threads * several {
            return Self::even(tasks, threads, several);
        }
        let last = if shared { len.saturating_mul(threads).min(tasks) } else { 0 };
        let large = (tasks - last).div_ceil(len);
        Self { tasks, len, large, last_len: (len / LAST_PARTS).max(several.div_ceil(2)) }
    }

    /// Few tasks: every thread gets as many segments, which differ by one task at most.
    fn even(tasks: u64, threads: u64, most: u64) -> Self {
        let count = (tasks.div_ceil(threads * most) * threads).min(tasks).max(1);
        let len = tasks.div_ceil(count).max(1);
        let last_len = (len - 1).max(1);
        Self { tasks, len, large: tasks.saturating_sub(count * (len - 1)), last_len }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.large
            + self.tasks.saturating_sub(self.large.saturating_mul(self.len)).div_ceil(self.last_len)
    }

    /// The most tasks in one.
    pub fn most(&self) -> u64 {
        if self.large > 0 { self.len } else { self.last_len }
    }

    /// The tasks of one, from where to where.
    pub fn tasks(&self, number: u64) -> Range<u64> {
        let begin = |number: u64| {
            let (large, rest) = (number.min(self.large), number.saturating_sub(self.large));
            let begin = large.saturating_mul(self.len);
            begin.saturating_add(rest.saturating_mul(self.last_len)).min(self.tasks)
        };
        begin(number)..begin(number.saturating_add(1))
    }
}

/// Stored chunks that are read in one go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Which of the chunks it begins with, and how many follow each other in it.
    pub first: usize,
    pub count: usize,
    /// Where its bytes begin, and how many there are, gaps included.
    pub address: u64,
    pub nbytes: u64,
}

/// The batches of one segment.
pub type Batches = SmallVec<[Batch; 4]>;

/// Put chunks together that lie next to each other, in the order in which they are wanted, as far as
/// one request brings them sooner than two.
pub fn batches(chunks: &[ChunkRecord], cost: StorageCost) -> Batches {
    let gap_nbytes = cost.gap_nbytes();
    let mut found = Batches::new();
    for (number, chunk) in chunks.iter().enumerate() {
        if let Some(batch) = found.last_mut()
            && let Some(nbytes) = joined(
                (batch.address, batch.nbytes),
                (chunk.address, chunk.stored_nbytes),
                (gap_nbytes, cost.request_nbytes),
            )
        {
            batch.count += 1;
            batch.nbytes = nbytes;
            continue;
        }
        let (address, nbytes) = (chunk.address, chunk.stored_nbytes);
        found.push(Batch { first: number, count: 1, address, nbytes });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOCAL: StorageCost = StorageCost::LOCAL;
    const BATCH_NBYTES: u64 = LOCAL.request_nbytes;

    fn record(address: u64, stored_nbytes: u64) -> ChunkRecord {
        ChunkRecord { address, stored_nbytes, filter_mask: 0 }
    }

    #[test]
    fn neighbours_are_read_together_up_to_a_bound() {
        let near: Vec<_> = (0..300).map(|i| record(1000 + i * 5000, 4900)).collect();
        let found = batches(&near, LOCAL);
        assert_eq!(found.iter().map(|batch| batch.count).sum::<usize>(), 300);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|batch| batch.nbytes <= BATCH_NBYTES));
        // Far apart, backwards, overlapping, and beyond what can be: each alone.
        let odd = [record(5, 10), record(1 << 20, 10), record(9, 10), record(12, 90)];
        assert_eq!(batches(&odd, LOCAL).len(), 4);
        let end = [record(u64::MAX - 3, 9), record(u64::MAX, u64::MAX)];
        assert_eq!(batches(&end, LOCAL).len(), 2);
    }

    proptest! {
        #[test]
        fn every_chunk_is_in_one_batch_that_holds_it(
            chunks in prop::collection::vec((0u64..1 << 22, 0u64..1 << 19), 0..60),
        ) {
            let chunks: Vec<_> = chunks.into_iter().map(|(a, n)| record(a, n)).collect();
            let mut next = 0;
            for batch in batches(&chunks, LOCAL) {
                prop_assert_eq!(batch.first, next);
                prop_assert!(batch.count == 1 || batch.nbytes <= BATCH_NBYTES);
                for chunk in &chunks[batch.first..][..batch.count] {
                    prop_assert!(chunk.address >= batch.address);
                    let end = chunk.address + chunk.stored_nbytes;
                    prop_assert!(end <= batch.address + batch.nbytes);
                }
                next += batch.count;
            }
            prop_assert_eq!(next, chunks.len());
        }
    }

    proptest! {
        #[test]
        fn every_task_is_in_one_segment(
            tasks in 0u64..5000,
            chunk_nbytes in 1u64..1 << 21,
            threads in 1usize..130,
            several in 1u64..5,
        ) {
            let segments = Segments::new(tasks, chunk_nbytes, threads, several);
            let mut next = 0;
            for number in 0..segments.count() {
                let part = segments.tasks(number);
                prop_assert_eq!(part.start, next);
                prop_assert!(part.end > part.start && part.end - part.start <= segments.most());
                next = part.end;
            }
            prop_assert_eq!(next, tasks);
            prop_assert!(segments.tasks(u64::MAX).is_empty());
        }
    }

    #[test]
    fn the_last_segments_are_smaller() {
        let segments = Segments::new(16 * 1024, 1000, 64, 1);
        assert_eq!((segments.tasks(0), segments.count()), (0..32, 448 + 64 * 4));
        assert_eq!(segments.tasks(segments.count() - 1), 16 * 1024 - 8..16 * 1024);
        assert_eq!(Segments::new(16 * 1024, 1000, 1, 1).count(), 64);
        // Still two at a time where several are faster.
        let segments = Segments::new(365, 1 << 20, 2, 4);
        let lens: Vec<_> =
            (0..segments.count()).map(|n| segments.tasks(n)).map(|s| s.end - s.start).collect();
        assert_eq!((lens[0], &lens[lens.len() - 4..]), (4, &[4, 2, 2, 1][..]));
    }

    #[test]
    fn few_tasks_are_shared_evenly() {
        let lens = |tasks, threads| {
            let segments = Segments::new(tasks, 3 << 20, threads, 4);
            (0..segments.count())
                .map(|number| segments.tasks(number).end - segments.tasks(number).start)
                .collect::<Vec<_>>()
        };
        assert_eq!(lens(15, 2), [4, 4, 4, 3]);
        assert_eq!(lens(9, 2), [3, 2, 2, 2]);
        assert_eq!(lens(3, 2), [2, 1]);
        assert_eq!(lens(2, 2), [1, 1]);
        assert_eq!(lens(40, 16), [[3; 8], [2; 8]].concat());
        assert_eq!(lens(5, 64), [1; 5]);
        assert_eq!(lens(6, 1), [3, 3]);
        assert_eq!(lens(0, 2), [0; 0]);
    }

    #[test]
    fn large_chunks_are_taken_one_by_one() {
        assert_eq!(segment_len(1000, 10 << 20, 2), 1);
        assert_eq!(segment_len(12_000, 10_000, 2), 52);
        assert_eq!(segment_len(20, 10_000, 2), 1);
        assert_eq!(segment_len(1 << 40, 1, 64), SEGMENT_CHUNKS);
        assert_eq!(Segments::new(1000, 10 << 20, 2, 4).most(), 4);
    }
}
