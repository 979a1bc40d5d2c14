//! When does a read copy its bytes out of a memory map, and was everything there?
//!
//! A short run costs some hundred nanoseconds by a positioned read, and a tenth of it out of a map.
//! One map serves all runs of a read, on all threads, and is looked at once, at the end: where the file
//! has shrunk meanwhile, the whole read is done again without it, by positioned reads, which tell what is
//! missing.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use chunkwise_select::Plan;

use crate::dataset::Placement;
use crate::platform::Map;
use crate::{Dataset, Storage};

/// From so many chunks on, of which...
const MANY_CHUNKS: u64 = 8;
/// ... at most so many bytes each are wanted on average, all are copied out of the map once that has
/// paid ([`short_runs`](super::short_runs))...
const SHORT_NBYTES: u64 = 4096;
/// ... and if so many runs, here and there, are in memory: what has to be read from a device comes in
/// larger parts by a map than a short run needs.
const PROBES: u64 = 4;

/// The map of one read.
pub(crate) struct ReadMap {
    /// None where there is none, or it is not to be used.
    map: OnceLock<Option<Arc<Map>>>,
    single_runs: bool,
    /// One past the last byte taken from it.
    end: AtomicU64,
}

impl ReadMap {
    /// One that is taken from the storage when it is first wanted.
    pub fn new() -> Self {
        Self { map: OnceLock::new(), single_runs: false, end: AtomicU64::new(0) }
    }

    /// For a read that does without.
    pub fn none() -> Self {
        Self { map: OnceLock::from(None), ..Self::new() }
    }

    /// For a plan: also for runs that are alone in their chunks, where these are short and many, and
    /// worth it.
    pub fn of(dataset: &Dataset, plan: &Plan<'_>) -> Self {
        let map = Self::new();
        let single_runs = map.is_worth_it(dataset, plan);
        Self { single_runs, ..map }
    }

    fn is_worth_it(&self, dataset: &Dataset, plan: &Plan<'_>) -> bool {
        let size = dataset.info.element_size as u64;
        let nbytes = plan.summary().selected_elements.saturating_mul(size);
        if plan.len() < MANY_CHUNKS || nbytes / SHORT_NBYTES > plan.len() || dataset.is_filtered() {
            return false;
        }
        dataset.short_runs.map_pays(plan.len())
            && (0..PROBES).all(|probe| {
                let task = plan.task(plan.len() / PROBES * probe);
                let placed = dataset.placement(task.linear_index(), &task.chunk_index());
                let Ok(Placement::Raw { address }) = placed else { return false };
                let mut first = None;
                task.for_each_strip_in_order(|strip| {
                    first.get_or_insert(strip.src);
                });
                let address = address.saturating_add(first.unwrap_or(0).saturating_mul(size));
                let storage = &*dataset.storage;
                self.bytes_from(storage, address).is_some()
                    && storage.read_at_once(address, &mut [0])
            })
    }

    /// Whether a run that is alone in its chunk is copied out of it.
    pub fn serves_single_runs(&self) -> bool {
        self.single_runs
    }

    /// The bytes of `storage` from an address on, as far as they are mapped.
    pub fn bytes_from(&self, storage: &dyn Storage, address: u64) -> Option<&[u8]> {
        let map = self.map.get_or_init(|| storage.map()).as_ref()?;
        map.bytes().get(usize::try_from(address).ok()?..)
    }

    /// Bytes up to `end` were taken.
    pub fn took_until(&self, end: u64) {
        self.end.fetch_max(end, Relaxed);
    }

    /// Whether all that was taken was there.
    pub fn is_sound(&self, storage: &dyn Storage) -> bool {
        let end = self.end.load(Relaxed);
        // The file's last page may have lost its end without anybody noticing.
        end == 0
            || self.map.get().is_some_and(|map| {
                map.as_ref().is_some_and(|map| map.is_intact() && storage.end() >= end)
            })
    }
}
