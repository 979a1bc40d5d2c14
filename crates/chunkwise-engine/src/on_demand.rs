//! Where do a dataset's chunks lie, before anybody has listed them all?
//!
//! To look up the few chunks of a small read takes microseconds; to list a million of them takes a
//! third of a second.  So chunks are looked up as reads need them, until that has cost about as
//! much as the list.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use chunkwise_select::Plan;

use crate::process::ProcessState;
use crate::profile::{Phase, timed};
use crate::published::Published;
use crate::{ChunkIndex, ChunkRecord, ReadError};

/// A chunk index that is in a file, and can be asked for some chunks or for all.
///
/// What is wrong with it is said in words: libhdf5 has to read the dataset then.
pub trait FindChunks: Send + Sync {
    /// Those of the chunks at these row-major positions, in ascending order, that were written.
    ///
    /// # Errors
    /// When the part of the index that leads to them is not as it should be.
    fn find(&self, positions: &[u64]) -> Result<ChunkIndex, String>;

    /// All that were written.
    ///
    /// # Errors
    /// When the index is not as it should be.
    fn list(&self) -> Result<ChunkIndex, String>;
}

/// To look a chunk up takes as long as to list this many, more or less.
const LISTED_MEANWHILE: u64 = 32;
/// More than this are not looked up for one read.
const MOST_LOOKED_UP: u64 = 1 << 16;

/// An index of which some chunks are known, or all.
pub struct OnDemand {
    finder: Box<dyn FindChunks>,
    /// Chunks of the whole grid.
    grid_len: u64,
    /// Questions so far.
    looked_up: AtomicU64,
    /// What this process has found out.
    found: Published<Found>,
    /// What the list came to.  Set once, and without a lock, so that a forked child can use what its
    /// parent has listed.
    listed: Published<Listed>,
}

type Listed = Result<Arc<ChunkIndex>, String>;

/// What one process has looked up.  Its locks may have been held by another thread when the process
/// was forked, so that a child leaves its parent's alone.
struct Found {
    /// The address of the process's state, of which each child has another.
    process: usize,
    /// None for a chunk that was never written.
    known: RwLock<HashMap<u64, Option<ChunkRecord>>>,
    /// Held while all are listed, so that this is done once.
    listing: Mutex<()>,
}

impl OnDemand {
    /// Of a grid of this many chunks.
    pub fn new(finder: Box<dyn FindChunks>, grid_len: u64) -> Self {
        let (found, listed) = (Published::nothing(), Published::nothing());
        Self { finder, grid_len, looked_up: AtomicU64::new(0), found, listed }
    }

    /// All chunks; they are listed now if they were not before.
    ///
    /// # Errors
    /// [`ReadError::Index`].
    pub fn all(&self) -> Result<&Arc<ChunkIndex>, ReadError> {
        let listed = match self.outcome() {
            Some(listed) => listed,
            None => {
                let listing = &self.found().listing;
                let _one = listing.lock().unwrap_or_else(PoisonError::into_inner);
                match self.outcome() {
                    Some(listed) => listed,
                    None => self.publish(timed(Phase::Index, || self.finder.list()).map(Arc::new)),
                }
            }
        };
        listed.as_ref().map_err(|reason| ReadError::Index(reason.clone()))
    }

    /// What was found to be wrong with the index.
    pub(crate) fn unsound(&self) -> Option<&str> {
        self.outcome()?.as_ref().err().map(String::as_str)
    }

    /// All chunks, if they were listed.
    pub(crate) fn listed(&self) -> Option<&ChunkIndex> {
        self.outcome()?.as_deref().ok()
    }

    /// Know where the chunks of a plan lie.
    pub(crate) fn prepare(&self, plan: &Plan<'_>) -> Result<(), ReadError> {
        if let Some(listed) = self.outcome() {
            return listed.as_ref().map(drop).map_err(|reason| ReadError::Index(reason.clone()));
        }
        let wanted = plan.len();
        let looked_up = self.looked_up.fetch_add(wanted.max(1), Relaxed).saturating_add(wanted);
        if wanted > MOST_LOOKED_UP || looked_up.saturating_mul(LISTED_MEANWHILE) > self.grid_len {
            return self.all().map(drop);
        }
        let mut unknown: Vec<u64> = {
            let known = self.found().known.read().unwrap_or_else(PoisonError::into_inner);
            let positions = (0..wanted).map(|number| plan.task(number).linear_index());
            positions.filter(|position| !known.contains_key(position)).collect()
        };
        unknown.sort_unstable();
        unknown.dedup();
        self.look_up(&unknown)
    }

    /// The chunk at a position; it is looked up where no plan has prepared it.
    pub(crate) fn get(&self, position: u64) -> Result<Option<ChunkRecord>, ReadError> {
        if let Some(index) = self.listed() {
            return Ok(index.get(position));
        }
        loop {
            let known = self.found().known.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(&record) = known.get(&position) {
                return Ok(record);
            }
            drop(known);
            self.look_up(&[position])?;
        }
    }

    fn look_up(&self, positions: &[u64]) -> Result<(), ReadError> {
        if positions.is_empty() {
            return Ok(());
        }
        let found = timed(Phase::Index, || self.finder.find(positions)).map_err(|reason| {
            // Of an index that leads astray, no part is trusted any more.
            let failed = self.publish(Err(reason.clone()));
            ReadError::Index(failed.as_ref().err().unwrap_or(&reason).clone())
        })?;
        let mut known = self.found().known.write().unwrap_or_else(PoisonError::into_inner);
        known.try_reserve(positions.len())?;
        known.extend(positions.iter().map(|&position| (position, found.get(position))));
        Ok(())
    }

    /// What the list came to, or why there will be none.
    fn outcome(&self) -> Option<&Listed> {
        self.listed.get()
    }

    /// Have all know what the list came to; gives what they know, which may have come first.
    fn publish(&self, outcome: Listed) -> &Listed {
        self.listed.get_or_make(|| outcome)
    }

    /// What this process has found out.
    fn found(&self) -> &Found {
        let process = std::ptr::from_ref(ProcessState::of_this_process()).addr();
        // The parent's is left to it.
        self.found.get_or_replace(
            |found| found.process == process,
            || {
                let (known, listing) = Default::default();
                Found { process, known, listing }
            },
        )
    }
}

impl std::fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OnDemand({} asked of {})", self.looked_up.load(Relaxed), self.grid_len)
    }
}

/// Where the chunks of a dataset lie.
#[derive(Debug, Clone)]
pub enum Chunks {
    /// All are known.
    Listed(Arc<ChunkIndex>),
    /// They are looked up as reads need them.
    OnDemand(Arc<OnDemand>),
}

impl Chunks {
    /// All of them; they are listed now if they were not before.
    ///
    /// # Errors
    /// [`ReadError::Index`].
    pub fn all(&self) -> Result<&Arc<ChunkIndex>, ReadError> {
        match self {
            Self::Listed(index) => Ok(index),
            Self::OnDemand(some) => some.all(),
        }
    }

    /// All of them, if they were listed.
    pub(crate) fn listed(&self) -> Option<&ChunkIndex> {
        match self {
            Self::Listed(index) => Some(index),
            Self::OnDemand(some) => some.listed(),
        }
    }

    /// Know where the chunks of a plan lie.
    pub(crate) fn prepare(&self, plan: &Plan<'_>) -> Result<(), ReadError> {
        match self {
            Self::Listed(_) => Ok(()),
            Self::OnDemand(some) => some.prepare(plan),
        }
    }

    /// The chunk at a position.
    pub(crate) fn get(&self, position: u64) -> Result<Option<ChunkRecord>, ReadError> {
        match self {
            Self::Listed(index) => Ok(index.get(position)),
            Self::OnDemand(some) => some.get(position),
        }
    }
}

impl From<ChunkIndex> for Chunks {
    fn from(index: ChunkIndex) -> Self {
        Self::Listed(Arc::new(index))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use chunkwise_select::{ChunkGrid, Hyperslab};
    use proptest::prelude::*;

    use super::*;
    use crate::ChunkIndexBuilder;

    const GRID: u64 = 10_000;

    /// Every third chunk is written; asks are written down.
    struct Thirds {
        lookups: Arc<Mutex<Vec<Vec<u64>>>>,
        damaged: bool,
    }

    fn record(position: u64) -> Option<ChunkRecord> {
        let (address, stored_nbytes) = (position * 10, 1 + position % 7);
        position.is_multiple_of(3).then_some(ChunkRecord { address, stored_nbytes, filter_mask: 0 })
    }

    fn index(positions: impl Iterator<Item = u64>) -> Result<ChunkIndex, String> {
        let mut builder = ChunkIndexBuilder::default();
        for position in positions {
            if let Some(record) = record(position) {
                builder.push(position, record).map_err(|error| error.to_string())?;
            }
        }
        builder.finish(GRID).map_err(|error| error.to_string())
    }

    impl FindChunks for Thirds {
        fn find(&self, positions: &[u64]) -> Result<ChunkIndex, String> {
            self.lookups.lock().unwrap().push(positions.to_vec());
            if self.damaged {
                Err("it is damaged".into())
            } else {
                index(positions.iter().copied())
            }
        }

        fn list(&self) -> Result<ChunkIndex, String> {
            self.lookups.lock().unwrap().push(Vec::new());
            if self.damaged { Err("all is damaged".into()) } else { index(0..GRID) }
        }
    }

    type Lookups = Arc<Mutex<Vec<Vec<u64>>>>;

    fn thirds(damaged: bool) -> (OnDemand, Lookups) {
        let lookups = Lookups::default();
        let finder = Thirds { lookups: Arc::clone(&lookups), damaged };
        (OnDemand::new(Box::new(finder), GRID), lookups)
    }

    fn prepare(some: &OnDemand, start: u64, count: u64) -> Result<(), ReadError> {
        let grid = ChunkGrid::new(&[GRID], &[1]).unwrap();
        let slab = Hyperslab::new(&[GRID], &[start], &[1], &[count], &[1]).unwrap();
        some.prepare(&Plan::new(&grid, &slab).unwrap())
    }

    proptest! {
        #[test]
        fn chunks_are_those_of_the_list(
            reads in prop::collection::vec((0..GRID, 1u64..40), 1..30),
        ) {
            let (some, lookups) = thirds(false);
            for (start, count) in reads {
                let count = count.min(GRID - start);
                prepare(&some, start, count).unwrap();
                let before = lookups.lock().unwrap().len();
                for position in start..start + count {
                    prop_assert_eq!(some.get(position), Ok(record(position)));
                }
                // Nothing had to be looked up any more.
                prop_assert_eq!(lookups.lock().unwrap().len(), before);
            }
        }
    }

    #[test]
    fn chunks_are_asked_for_once_and_listed_when_that_is_cheaper() {
        let (some, lookups) = thirds(false);
        prepare(&some, 5, 2).unwrap();
        prepare(&some, 4, 3).unwrap();
        assert_eq!(*lookups.lock().unwrap(), [vec![5, 6], vec![4]]);
        assert!(some.listed().is_none());
        prepare(&some, 0, GRID / LISTED_MEANWHILE).unwrap();
        assert_eq!(lookups.lock().unwrap().last(), Some(&Vec::new()));
        assert!(some.listed().is_some());
        prepare(&some, 0, GRID).unwrap();
        assert_eq!(some.get(9), Ok(record(9)));
        assert_eq!(lookups.lock().unwrap().len(), 3);
    }

    #[test]
    fn a_chunk_that_nobody_prepared_is_looked_up() {
        let (some, lookups) = thirds(false);
        assert_eq!(some.get(12), Ok(record(12)));
        assert_eq!(some.get(13), Ok(None));
        assert_eq!(lookups.lock().unwrap().len(), 2);
    }

    #[test]
    fn small_reads_do_not_look_chunks_up_for_ever() {
        let (some, _) = thirds(false);
        for _ in 0..=GRID / LISTED_MEANWHILE {
            prepare(&some, 7, 1).unwrap();
        }
        assert!(some.listed().is_some());
    }

    #[test]
    fn what_is_damaged_is_never_asked_again() {
        let (some, lookups) = thirds(true);
        let damaged = Err(ReadError::Index("it is damaged".into()));
        assert_eq!(prepare(&some, 5, 2), damaged);
        assert_eq!(prepare(&some, 0, GRID), damaged);
        assert_eq!(some.all().map(drop), damaged);
        assert_eq!(some.unsound(), Some("it is damaged"));
        assert_eq!(lookups.lock().unwrap().len(), 1);
    }
}
