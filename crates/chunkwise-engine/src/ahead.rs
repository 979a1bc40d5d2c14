//! Which chunks will be wanted next, and who decodes them meanwhile?
//!
//! A program that walks through a dataset (a row, a time step, a tile at a time) wants the
//! same few chunks for many steps, then others that lie as far on in the grid as those did.
//! Where two steps were alike, or led to the very next chunk, the chunks of the next ones
//! are decoded ahead on threads that are idle, into the cache.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use chunkwise_select::Plan;

use crate::Dataset;
use crate::cache::ENTRY_NBYTES;
use crate::dataset::Placement;
use crate::decode::{StoredChunk, with_buffers};
use crate::process::ProcessState;

/// What the reads of a dataset have wanted lately.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// Position of the first chunk of the last read that wanted other chunks than the one
    /// before; looked at without the lock.
    first: AtomicU64,
    steps: Mutex<Steps>,
}

#[derive(Debug)]
struct Steps {
    first: u64,
    last: u64,
    /// From the first chunk of one read to that of the next, modulo 2^64; 0 at the beginning.
    step: u64,
}

impl Pattern {
    pub(crate) fn new() -> Self {
        // No chunk comes after this one.
        let nowhere = u64::MAX;
        let steps = Mutex::new(Steps { first: nowhere, last: nowhere, step: 0 });
        Self { first: AtomicU64::new(nowhere), steps }
    }

    /// A read wants chunks from `first` to `last`: how far on the next one will be, if that
    /// can be told.
    fn step_from(&self, first: u64, last: u64) -> Option<u64> {
        if self.first.load(Relaxed) == first {
            return None;
        }
        // Another reader of the same dataset is at it: whose pattern is it, then?
        let mut steps = self.steps.try_lock().ok()?;
        let step = first.wrapping_sub(steps.first);
        let alike = last.wrapping_sub(steps.last) == step;
        let follows = steps.last.checked_add(1) == Some(first);
        let told = alike && (step == steps.step || follows);
        *steps = Steps { first, last, step };
        self.first.store(first, Relaxed);
        told.then_some(step)
    }
}

impl Dataset {
    /// Have the chunks decoded that will be wanted after those of `plan`, if it leaves
    /// threads idle; `read` is its number.
    pub(crate) fn read_ahead(&self, plan: &Plan<'_>, read: u64) {
        let count = plan.len();
        let first = plan.task(0).linear_index();
        let last = if count == 1 { first } else { plan.task(count - 1).linear_index() };
        let Some(step) = self.pattern.step_from(first, last) else { return };
        let state = ProcessState::of_this_process();
        let Some(pool) = state.pool() else { return };
        let threads = pool.current_num_threads();
        let chunks = state.cache().worth_ahead(threads) as u64;
        if chunks == 0 || count > threads as u64 {
            return;
        }
        // Reads ahead, so that each thread has a chunk.
        let reads = chunks.div_ceil(count);
        // What is decoded ahead must not drive out what is being read.
        let cost = self.chunk_nbytes.saturating_add(ENTRY_NBYTES as u64);
        let budget = state.cache().stats().budget_nbytes as u64;
        if cost.saturating_mul(2 * count * (reads + 1)) > budget {
            return;
        }
        for ahead in 1..=reads {
            for number in 0..count {
                let position = plan.task(number).linear_index();
                let next = position.wrapping_add(step.wrapping_mul(ahead));
                if next < self.grid.len() {
                    self.decode_ahead(next, read, &pool);
                }
            }
        }
    }

    /// Have one chunk decoded by a thread of the pool.
    fn decode_ahead(&self, position: u64, read: u64, pool: &rayon::ThreadPool) {
        let state = ProcessState::of_this_process();
        let chunk_index = self.grid.chunk_index(position);
        let key = (self.number, position);
        let Placement::Filtered(record) = self.placement(position, &chunk_index) else { return };
        if state.cache().holds(key) {
            return;
        }
        let Some(job) = state.jobs.begin(key) else { return };
        // A dataset that is closed meanwhile is not kept open for this; nor is a chunk kept
        // that a reader has decoded while the pool was busy.
        let (dataset, job) = (Weak::clone(&self.itself), Arc::downgrade(&job));
        pool.spawn(move || {
            let Some(job) = job.upgrade() else { return };
            let state = ProcessState::of_this_process();
            let chunk = StoredChunk { chunk_index, record };
            state.jobs.run(key, &job, || {
                let dataset = dataset.upgrade()?;
                let decoded = with_buffers(|buffers| {
                    dataset.fetch(&chunk, &mut buffers.stored)?;
                    dataset.decode_new(&chunk, &buffers.stored, &mut buffers.scratch)
                });
                let decoded = decoded.ok()?;
                state.cache().put_ahead(key, Arc::clone(&decoded), read);
                Some(decoded)
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_are_alike_tell_the_next() {
        let walk = |reads: &[(u64, u64)]| {
            let pattern = Pattern::new();
            reads.iter().map(|&(first, last)| pattern.step_from(first, last)).collect::<Vec<_>>()
        };
        // A row at a time, several of them in each chunk.
        assert_eq!(walk(&[(0, 0), (0, 0), (1, 1), (1, 1)]), [None, None, Some(1), None]);
        // Two chunks wide, and the next two.
        assert_eq!(walk(&[(4, 5), (6, 7)]), [None, Some(2)]);
        // Down a column of a grid ten chunks wide: told by the second step, also upwards.
        assert_eq!(walk(&[(3, 3), (13, 13), (23, 23)]), [None, None, Some(10)]);
        let up = 10u64.wrapping_neg();
        assert_eq!(walk(&[(23, 23), (13, 13), (3, 3)]), [None, None, Some(up)]);
        // Here and there.
        assert_eq!(walk(&[(3, 3), (17, 17), (4, 4), (9, 9)]), [None; 4]);
        // Of another size than the one before.
        assert_eq!(walk(&[(0, 1), (2, 2), (3, 3)]), [None, None, Some(1)]);
    }
}
