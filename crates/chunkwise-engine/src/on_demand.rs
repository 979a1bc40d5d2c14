//! Where do a dataset's chunks lie, before anybody has listed them all?
//!
//! To look up the few chunks of a small read takes microseconds; to list a million of them takes a
//! third of a second.  So chunks are looked up as reads need them, until that has cost about as
//! much as the list.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use chunkwise_select::Plan;

use crate::profile::{Phase, timed};
use crate::{ChunkIndex, ChunkRecord, ReadError};

/// A chunk index that is in a file, and can be asked for some chunks or for all.
///
/// What is wrong with it is told in words: libhdf5 has to read the dataset then.
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

/// To look a chunk up takes as long as to list so many, more or less.
const LISTED_MEANWHILE: u64 = 32;
/// More than this are not looked up for one read.
const MOST_LOOKED_UP: u64 = 1 << 16;

/// An index of which some chunks are known, or all.
pub struct OnDemand {
    finder: Box<dyn FindChunks>,
    /// Chunks of the whole grid.
    grid_len: u64,
    /// None for a chunk that was never written.
    known: RwLock<HashMap<u64, Option<ChunkRecord>>>,
    /// Questions so far.
    asked: AtomicU64,
    listed: OnceLock<Result<Arc<ChunkIndex>, String>>,
}

impl OnDemand {
    /// Of a grid of so many chunks.
    pub fn new(finder: Box<dyn FindChunks>, grid_len: u64) -> Self {
        let (known, asked, listed) = Default::default();
        Self { finder, grid_len, known, asked, listed }
    }

    /// All chunks; they are listed now if they were not before.
    ///
    /// # Errors
    /// [`ReadError::Index`].
    pub fn all(&self) -> Result<&Arc<ChunkIndex>, ReadError> {
        let listed = self.listed.get_or_init(|| {
            timed(Phase::Index, || self.finder.list()).map(Arc::new)
        });
        listed.as_ref().map_err(|reason| ReadError::Index(reason.clone()))
    }

    /// What was found to be wrong with the index.
    pub(crate) fn unsound(&self) -> Option<&str> {
        self.listed.get()?.as_ref().err().map(String::as_str)
    }

    /// All chunks, if they were listed.
    pub(crate) fn listed(&self) -> Option<&ChunkIndex> {
        self.listed.get()?.as_deref().ok()
    }

    /// Know where the chunks of a plan lie.
    pub(crate) fn prepare(&self, plan: &Plan<'_>) -> Result<(), ReadError> {
        if let Some(listed) = self.listed.get() {
            return listed.as_ref().map(drop).map_err(|reason| ReadError::Index(reason.clone()));
        }
        let wanted = plan.len();
        let asked = self.asked.fetch_add(wanted.max(1), Relaxed).saturating_add(wanted);
        if wanted > MOST_LOOKED_UP || asked.saturating_mul(LISTED_MEANWHILE) > self.grid_len {
            return self.all().map(drop);
        }
        let mut unknown: Vec<u64> = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
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
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
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
            let failed = self.listed.get_or_init(|| Err(reason.clone()));
            ReadError::Index(failed.as_ref().err().unwrap_or(&reason).clone())
        })?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.try_reserve(positions.len())?;
        known.extend(positions.iter().map(|&position| (position, found.get(position))));
        Ok(())
    }
}

impl std::fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).len();
        write!(f, "OnDemand({known} of {} known)", self.grid_len)
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
