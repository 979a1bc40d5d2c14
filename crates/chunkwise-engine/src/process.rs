//! What do all reads of one process share, and what happens after `fork`?
//!
//! The pool's threads do not exist in a forked child, and a lock may have been held by
//! one of them, so that nothing of the parent's state can be used there.  The child
//! therefore begins with none and makes its own; the parent's copy is left alone (its
//! memory is shared until written, and never freed).

use std::num::NonZero;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
// Not parking_lot's, whose queues of waiting threads a forked child would inherit.
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::cache::{CacheStats, ChunkCache};
use crate::jobs::Jobs;
use crate::limits::{default_cache_nbytes, thread_limit};

/// What the reads of one process share.
pub struct ProcessState {
    /// Decoded chunks of all datasets.
    cache: Mutex<ChunkCache>,
    pool: Mutex<Pool>,
    /// Chunks that are being decoded.
    pub jobs: Jobs,
    /// Chunks decoded.
    decoded: AtomicU64,
    /// Numbers reads, so that the cache can tell them apart.
    reads: AtomicU64,
}

/// The threads that decode.
enum Pool {
    /// Not needed so far.
    Unmade,
    /// One thread is all there is, or the system gives no more.
    None,
    /// So many.
    Made(Arc<ThreadPool>),
}

/// What [`set_threads`] was told, here and in children; 0 for nothing.
static WANTED_THREADS: AtomicUsize = AtomicUsize::new(0);

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
            pool: Mutex::new(Pool::Unmade),
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

    /// Note that a chunk is decoded.
    pub fn count_decoded(&self) {
        self.decoded.fetch_add(1, Ordering::Relaxed);
    }

    /// The pool, made when first needed; None means: work on the calling thread.
    pub fn pool(&self) -> Option<Arc<ThreadPool>> {
        let mut pool = self.locked_pool();
        if matches!(*pool, Pool::Unmade) {
            *pool = make_pool();
        }
        match &*pool {
            Pool::Made(pool) => Some(Arc::clone(pool)),
            Pool::Unmade | Pool::None => None,
        }
    }

    fn locked_pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
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

fn make_pool() -> Pool {
    let threads = match WANTED_THREADS.load(Ordering::Relaxed) {
        0 => thread_limit(),
        wanted => wanted,
    };
    if threads < 2 {
        return Pool::None;
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("chunkwise-{i}"))
        // Work done ahead that panics is lost, and done again by the reader.
        .panic_handler(|_| {})
        .build();
    pool.map_or(Pool::None, |pool| Pool::Made(Arc::new(pool)))
}

/// Threads that one read uses in this process.
pub fn thread_count() -> usize {
    ProcessState::of_this_process().pool().map_or(1, |pool| pool.current_num_threads())
}

/// From now on let each read use so many threads; None: as many as [`thread_limit`] says.
///
/// Reads that have begun keep those they have.
pub fn set_threads(threads: Option<NonZero<usize>>) {
    WANTED_THREADS.store(threads.map_or(0, NonZero::get), Ordering::Relaxed);
    *ProcessState::of_this_process().locked_pool() = Pool::Unmade;
}
