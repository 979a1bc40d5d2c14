//! What do all reads of one process share, and what happens after `fork`?
//!
//! The pool's threads do not exist in a forked child and a lock may have been held by
//! one of them, so that nothing of the parent's state can be used there.  Each process
//! therefore has a state of its own, found by comparing process numbers; the parent's
//! is left alone (its memory is shared until written, and never freed).

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;

use crate::cache::{CacheStats, ChunkCache};
use crate::limits::{default_cache_nbytes, thread_limit};

/// What the reads of one process share.
pub struct ProcessState {
    pid: u32,
    /// Decoded chunks of all datasets.
    pub cache: Mutex<ChunkCache>,
    /// None where one thread is all there is, or the system gives no more.
    pool: OnceLock<Option<ThreadPool>>,
    /// Numbers reads, so that the cache can tell them apart.
    reads: AtomicU64,
}

static STATE: AtomicPtr<ProcessState> = AtomicPtr::new(std::ptr::null_mut());

impl ProcessState {
    fn new() -> Self {
        Self {
            pid: std::process::id(),
            cache: Mutex::new(ChunkCache::new(default_cache_nbytes())),
            pool: OnceLock::new(),
            reads: AtomicU64::new(0),
        }
    }

    /// The state of the process that asks.
    pub fn of_this_process() -> &'static Self {
        let pid = std::process::id();
        loop {
            let current = STATE.load(Ordering::Acquire);
            // SAFETY: STATE holds null or a pointer from Box::into_raw below, which is
            // never freed.
            if let Some(state) = unsafe { current.as_ref() }
                && state.pid == pid
            {
                return state;
            }
            let fresh = Box::into_raw(Box::new(Self::new()));
            if STATE.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire).is_err()
            {
                // SAFETY: `fresh` came from Box::into_raw and was not published.
                drop(unsafe { Box::from_raw(fresh) });
            }
        }
    }

    /// The pool, made when first needed; None means: work on the calling thread.
    pub fn pool(&self) -> Option<&ThreadPool> {
        self.pool
            .get_or_init(|| {
                let threads = thread_limit();
                if threads < 2 {
                    return None;
                }
                let named = |i| format!("chunkwise-{i}");
                ThreadPoolBuilder::new().num_threads(threads).thread_name(named).build().ok()
            })
            .as_ref()
    }

    /// A number for a read that begins now.
    pub fn next_read(&self) -> u64 {
        self.reads.fetch_add(1, Ordering::Relaxed)
    }
}

/// What the cache of this process holds and has done.
pub fn cache_stats() -> CacheStats {
    ProcessState::of_this_process().cache.lock().stats()
}

/// Threads that reading uses in this process.
pub fn thread_count() -> usize {
    ProcessState::of_this_process().pool().map_or(1, ThreadPool::current_num_threads)
}
