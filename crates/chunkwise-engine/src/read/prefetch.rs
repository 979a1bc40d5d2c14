//! Which chunks will be wanted next, and who decodes them meanwhile?
//!
//! A program that walks through a dataset (a row, a time step, a tile at a time) wants the
//! same few chunks for many steps, then others that lie as far on in the grid as those did.
//! Where two steps were alike, or led to the very next chunk, the chunks of the next ones
//! are prefetched: decoded on threads that are idle, into the cache.

use std::sync::{Arc, Weak};

use chunkwise_select::Plan;

use crate::Dataset;
use crate::cache_entry::ENTRY_NBYTES;
use crate::dataset::Placement;
use crate::process::ProcessState;
use crate::read::decode::{StoredBytes, StoredChunk, with_buffers};
use crate::settings::Setting;

impl Dataset {
    /// Have the chunks decoded that will be wanted after those of `plan`, if it leaves
    /// threads idle; `read` is its number.
    pub(crate) fn prefetch(&self, plan: &Plan<'_>, read: u64) {
        let count = plan.len();
        let first = plan.task(0).linear_index();
        let last = if count == 1 { first } else { plan.task(count - 1).linear_index() };
        let Some(step) = self.pattern.step_from(first, last) else { return };
        if self.is_part_of_blocks(plan, first) {
            // Who needs a part of each chunk, decoded by itself, is not helped by whole ones; who has
            // walked through the one before will walk through the next.
            let before = (self.number, first.wrapping_sub(step));
            if !ProcessState::of_this_process().cache().holds(before) {
                return;
            }
        }
        if Setting::PrefetchNbytes.value() == 0 {
            return;
        }
        let state = ProcessState::of_this_process();
        let Some(pool) = state.pool() else { return };
        let threads = pool.current_num_threads();
        let chunks = state.cache().prefetch_depth(threads) as u64;
        if chunks == 0 || count > threads as u64 {
            return;
        }
        // Reads ahead, so that each thread has a chunk.
        let reads = chunks.div_ceil(count);
        // What is prefetched must not drive out what is being read.
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
                    self.prefetch_chunk(next, read, &pool);
                }
            }
        }
    }

    /// Whether a part is wanted of the first chunk, at `position`, which is stored in blocks.
    fn is_part_of_blocks(&self, plan: &Plan<'_>, position: u64) -> bool {
        let task = plan.task(0);
        if task.takes_all() {
            return false;
        }
        let chunk_index = task.chunk_index();
        match self.placement(position, &chunk_index) {
            Ok(Placement::Filtered(record)) => {
                self.has_blocks(&StoredChunk { chunk_index, record })
            }
            _ => false,
        }
    }

    /// Have one chunk decoded by a thread of the pool.
    fn prefetch_chunk(&self, position: u64, read: u64, pool: &rayon::ThreadPool) {
        let state = ProcessState::of_this_process();
        let chunk_index = self.grid.chunk_index(position);
        let key = (self.number, position);
        if state.cache().holds(key) {
            return;
        }
        // What is wrong with it is reported to the reader that wants it.
        let Ok(Placement::Filtered(record)) = self.placement(position, &chunk_index) else {
            return;
        };
        let Some(decoding) = state.in_flight.begin(key) else { return };
        // A dataset that is closed meanwhile is not kept open for this; nor is a chunk kept
        // that a reader has decoded while the pool was busy.
        let (dataset, decoding) = (Weak::clone(&self.itself), Arc::downgrade(&decoding));
        pool.spawn(move || {
            let Some(decoding) = decoding.upgrade() else { return };
            let state = ProcessState::of_this_process();
            let chunk = StoredChunk { chunk_index, record };
            state.in_flight.run(key, &decoding, || {
                let dataset = dataset.upgrade()?;
                let decoded = with_buffers(|buffers| {
                    dataset.fetch(&chunk, &mut buffers.stored)?;
                    let stored = StoredBytes::Read(&buffers.stored);
                    dataset.decode_new(&chunk, stored, &mut buffers.scratch)
                });
                let decoded = decoded.ok()?;
                state.cache().put_prefetched(key, Arc::clone(&decoded), read);
                Some(decoded)
            });
        });
    }
}
