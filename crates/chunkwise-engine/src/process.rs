//! What do all reads of one process share, and what happens after `fork`?
//!
//! The pool's threads do not exist in a forked child, and a lock may have been held by
//! one of them, so that nothing of the parent's state can be used there.  The child
//! therefore begins with none and makes its own; the parent's copy is left alone (its
//! memory is shared until written, and never freed).

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
// Not parking_lot's, whose queues of waiting threads a forked child would inherit.
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::ahead::Jobs;
use crate::cache::{CacheStats, ChunkCache, ChunkKey, Decoded};
use crate::limits::{default_cache_nbytes, thread_limit};

/// What the reads of one process share.
pub struct ProcessState {
    /// Decoded chunks of all datasets.
    cache: Mutex<ChunkCache>,
    /// None where one thread is all there is, or the system gives no more.
    pool: OnceLock<Option<ThreadPool>>,
    /// Chunks that are being decoded ahead.
    pub jobs: Jobs,
    /// Chunks decoded.
    decoded: AtomicU64,
    /// Numbers reads, so that the cache can tell them apart.
    reads: AtomicU64,
}

static STATE: AtomicPtr<ProcessState> = AtomicPtr::new(std::ptr::null_mut());
static AT_FORK: Once = Once::new();

/// Runs in the child right after `fork`, where little more than this store is allowed.
extern "C" fn forget_parent() {
    STATE.store(std::ptr::null_mut(), Ordering::Release);
}

impl ProcessState {
    fn new() -> Self {
        Self {
            cache: Mutex::new(ChunkCache::new(default_cache_nbytes())),
            pool: OnceLock::new(),
            jobs: Jobs::default(),
            decoded: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        }
    }

    /// The state of the process that asks.
    pub fn of_this_process() -> &'static Self {
        // SAFETY: STATE holds null or a pointer from Box::into_raw below, which is never
        // freed.
        match unsafe { STATE.load(Ordering::Acquire).as_ref() } {
            Some(state) => state,
            None => Self::begin(),
        }
    }

    #[cold]
    fn begin() -> &'static Self {
        AT_FORK.call_once(|| {
            // SAFETY: a function that lives as long as the program and does one store.
            unsafe { libc::pthread_atfork(None, None, Some(forget_parent)) };
        });
        let fresh = Box::into_raw(Box::new(Self::new()));
        let null = std::ptr::null_mut();
        match STATE.compare_exchange(null, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: `fresh` came from Box::into_raw, and is never freed once published.
            Ok(_) => unsafe { &*fresh },
            Err(other) => {
                // SAFETY: `fresh` was not published; `other` was, and is never freed.
                unsafe {
                    drop(Box::from_raw(fresh));
                    &*other
                }
            }
        }
    }

    /// The cache, locked.
    pub fn cache(&self) -> MutexGuard<'_, ChunkCache> {
        // Nothing panics while holding it; what it holds would be intact all the same.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The chunk, from the cache or from a thread that is decoding it ahead.
    pub fn cached(&self, key: ChunkKey, read: u64) -> Option<Decoded> {
        let found = self.cache().get(key, read);
        // A job that ends between the two looks has left its chunk in the cache.
        found.or_else(|| self.jobs.wait_for(key)).or_else(|| {
            let mut cache = self.cache();
            if cache.holds(key) { cache.get(key, read) } else { None }
        })
    }

    /// Note that a chunk is decoded.
    pub fn count_decoded(&self) {
        self.decoded.fetch_add(1, Ordering::Relaxed);
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
                ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .thread_name(named)
                    // Work done ahead that panics is lost, and done again by the reader.
                    .panic_handler(|_| {})
                    .build()
                    .ok()
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
    let state = ProcessState::of_this_process();
    let decoded = state.decoded.load(Ordering::Relaxed);
    CacheStats { decoded, ..state.cache().stats() }
}

/// Threads that reading uses in this process.
pub fn thread_count() -> usize {
    ProcessState::of_this_process().pool().map_or(1, ThreadPool::current_num_threads)
}
