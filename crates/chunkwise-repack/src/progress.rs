//! How far is the work, and shall it go on?

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Counted by those who work, looked at by the thread that waits for them.
#[derive(Debug, Default)]
pub struct Progress {
    /// Raw bytes of the target that are done.
    pub done_nbytes: AtomicU64,
    /// Stored bytes of the source that were read.
    pub read_nbytes: AtomicU64,
    /// Stored bytes that were written.
    pub written_nbytes: AtomicU64,
    /// Everything stops at the next chunk once this is set.
    pub cancelled: AtomicBool,
}

impl Progress {
    /// Raw bytes done, stored bytes read, stored bytes written.
    pub fn figures(&self) -> (u64, u64, u64) {
        let Self { done_nbytes, read_nbytes, written_nbytes, .. } = self;
        (done_nbytes.load(Relaxed), read_nbytes.load(Relaxed), written_nbytes.load(Relaxed))
    }

    /// Let everything stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Whether everything stops.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }
}
