//! What if a chunk took longer to decode and to encode, and a machine had more processors?
//!
//! With the feature `simulated`, each chunk first takes a while in which the thread sleeps, and so
//! needs no processor.  As many threads as one likes then work as on a machine that has one for
//! each.  No product is built with it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

static CHUNK_NS: AtomicU64 = AtomicU64::new(0);

/// From now on each chunk takes so much longer; no longer, until this was called.
pub fn set_chunk_time(time: Duration) {
    CHUNK_NS.store(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
}

/// Take the time that a chunk takes.
pub(crate) fn wait() {
    let ns = CHUNK_NS.load(Relaxed);
    if ns > 0 {
        std::thread::sleep(Duration::from_nanos(ns));
    }
}
