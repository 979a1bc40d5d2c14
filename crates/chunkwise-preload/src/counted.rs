//! What is counted of what this process reads?

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::walked::Walked;
use crate::wishes;

/// What is counted of one dataset.
#[derive(Default)]
pub struct Line {
    pub reads: Tally,
    pub writes: Tally,
    reads_traced: Mutex<Traced>,
    writes_traced: Mutex<Traced>,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
}

impl Line {
    /// Look at what is traced of its reads or writes, or change it.
    pub fn traced(&self, operation: Operation, work: impl FnOnce(&mut Traced)) {
        match operation {
            Operation::Read => locked(&self.reads_traced, work),
            Operation::Write => locked(&self.writes_traced, work),
        }
    }
}

/// Calls of one kind.
#[derive(Default)]
pub struct Tally {
    ours: AtomicU64,
    ours_nbytes: AtomicU64,
    theirs: AtomicU64,
    /// The first reason for a call that was passed on.
    reason: OnceLock<String>,
}

impl Tally {
    /// A call that the engine has carried out, with so many bytes.
    pub fn ours(&self, nbytes: u64) {
        self.ours.fetch_add(1, Ordering::Relaxed);
        self.ours_nbytes.fetch_add(nbytes, Ordering::Relaxed);
    }

    /// Calls and bytes by the engine, and calls that were passed on.
    pub fn counts(&self) -> (u64, u64, u64) {
        let [ours, nbytes, theirs] = [&self.ours, &self.ours_nbytes, &self.theirs]
            .map(|count| count.load(Ordering::Relaxed));
        (ours, nbytes, theirs)
    }

    /// Calls by the engine, and the first reason for one that was passed on.
    pub fn by_whom(&self) -> (u64, String) {
        let reason = self.reason.get().cloned().unwrap_or_default();
        (self.ours.load(Ordering::Relaxed), reason)
    }

    /// A call that was passed on, for a reason of which the first is kept.
    pub fn theirs(&self, reason: &str) {
        self.theirs.fetch_add(1, Ordering::Relaxed);
        self.reason.get_or_init(|| reason.to_string());
    }
}

/// By file and name.
type Lines = BTreeMap<(String, String), Arc<Line>>;

pub static LINES: Mutex<Lines> = Mutex::new(BTreeMap::new());
pub static UNBOUND: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// Whether this process was forked from one that has counted already.
pub static FORKED: AtomicBool = AtomicBool::new(false);

/// The line of a dataset, by its file and name.
pub fn line(names: (String, String)) -> Arc<Line> {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if FORKED.swap(false, Ordering::Relaxed) {
        lines.clear();
    }
    Arc::clone(lines.entry(names).or_default())
}

/// A libhdf5 that the engine cannot be used with.
pub fn unbound(path: &str, reason: &str) {
    if wishes::tell() {
        let mut unbound = UNBOUND.lock().unwrap_or_else(PoisonError::into_inner);
        unbound.entry(path.to_string()).or_insert_with(|| reason.to_string());
    }
}

/// What one dataset was asked for, or given.
#[derive(Debug, Default)]
pub struct Traced {
    pub shape: Vec<u64>,
    pub item_nbytes: u64,
    pub calls: u64,
    pub nbytes: u64,
    pub seconds: f64,
    pub walked: Walked,
    /// The shape of its chunks; empty without chunks.
    pub chunk: Vec<u64>,
    /// Slots and bytes of the program's chunk cache; 0 without chunks.
    pub cache: (u64, u64),
    /// Chunks of the dataset.
    pub chunks: u64,
    /// Of calls of libhdf5: chunks that they touched, and that it loaded.
    pub touched: u64,
    pub loaded: u64,
    /// By filter: its name, how often it decoded, and for how many nanoseconds.
    pub filters: Vec<(String, u64, u64)>,
}

/// What is counted, locked; by a thread that forked another process it may be locked for ever.
fn locked<T>(place: &Mutex<T>, work: impl FnOnce(&mut T)) {
    for _ in 0..10_000 {
        match place.try_lock() {
            Ok(mut held) => return work(&mut held),
            Err(std::sync::TryLockError::Poisoned(held)) => {
                return work(&mut held.into_inner());
            }
            Err(std::sync::TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}
