//! What do all reads of one process share, and what happens after `fork`?
//!
//! The pool's threads do not exist in a forked child, and a lock may have been held by
//! one of them, so that nothing of the parent's state can be used there.  The child
//! therefore begins with none and makes its own; the parent's copy is left alone (its
//! memory is shared until written, and never freed).

use std::num::NonZero;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
// Not parking_lot's, whose queues of waiting threads a forked child would inherit.
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::cache::{CacheStats, ChunkCache};
use crate::in_flight::InFlight;
use crate::platform::{give_back_memory, in_forked_children, take_no_signals};
use crate::published::Published;
use crate::settings::Setting;
use crate::spare::SpareMemory;

/// What the reads of one process share.
pub struct ProcessState {
    /// Another one in a forked child.
    number: u32,
    /// Decoded chunks of all datasets.
    cache: Mutex<ChunkCache>,
    pool: Mutex<Pool>,
    /// Chunks that are being decoded.
    pub in_flight: InFlight,
    /// Memory of chunks that were encoded and handed over.
    pub spare: SpareMemory,
    /// Chunks decoded, and blocks of those of which a part was.
    decoded: AtomicU64,
    decoded_blocks: AtomicU64,
    /// Numbers reads, so that the cache can distinguish them.
    reads: AtomicU64,
}

/// The threads that decode.
enum Pool {
    /// Not needed so far.
    Unmade,
    /// One thread is all there is, or the system gives no more.
    None,
    /// This many.
    Made(Arc<ThreadPool>),
}

static STATE: Published<ProcessState> = Published::nothing();
static AT_FORK: Once = Once::new();
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Runs in the child right after `fork`, where little more than this store is allowed.
extern "C" fn forget_parent() {
    STATE.forget();
}

impl ProcessState {
    fn new() -> Self {
        Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            cache: Mutex::new(ChunkCache::new(Setting::CacheNbytes.value())),
            pool: Mutex::new(Pool::Unmade),
            in_flight: InFlight::default(),
            spare: SpareMemory::default(),
            decoded: AtomicU64::new(0),
            decoded_blocks: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        }
    }

    /// The state of the process that asks.
    pub fn of_this_process() -> &'static Self {
        STATE.get().unwrap_or_else(Self::begin)
    }

    #[cold]
    fn begin() -> &'static Self {
        AT_FORK.call_once(|| in_forked_children(forget_parent));
        STATE.get_or_make(Self::new)
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

    /// Note that blocks of a chunk are decoded, and the others are not.
    pub fn count_decoded_blocks(&self, blocks: u64) {
        self.decoded_blocks.fetch_add(blocks, Ordering::Relaxed);
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
    let decoded_blocks = state.decoded_blocks.load(Ordering::Relaxed);
    CacheStats { decoded, decoded_blocks, ..state.cache().stats() }
}

fn make_pool() -> Pool {
    let threads = Setting::Threads.value();
    if threads < 2 {
        return Pool::None;
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("chunkwise-{i}"))
        .start_handler(|_| take_no_signals())
        // Work done ahead that panics is lost, and done again by the reader.
        .panic_handler(|_| {})
        .build();
    pool.map_or(Pool::None, |pool| Pool::Made(Arc::new(pool)))
}

/// A number of this process that its forked children do not have: what threads of the parent have
/// begun is known by it.
pub fn process_number() -> u32 {
    ProcessState::of_this_process().number
}

/// Threads that one read uses in this process.
pub fn thread_count() -> usize {
    ProcessState::of_this_process().pool().map_or(1, |pool| pool.current_num_threads())
}

/// The value of a setting in force, without starting any thread for that.
pub fn in_force(setting: Setting) -> usize {
    if setting == Setting::Threads {
        match &*ProcessState::of_this_process().locked_pool() {
            Pool::Made(pool) => return pool.current_num_threads(),
            Pool::None => return 1,
            Pool::Unmade => {}
        }
    }
    setting.value()
}

/// From now on let each read use this many threads; None: as many as may be.
pub fn set_threads(threads: Option<NonZero<usize>>) {
    change(Setting::Threads, threads.map(NonZero::get));
}

/// Change a setting for this process, None for its default; gives what was chosen before.
///
/// A smaller cache lets go of chunks at once.  Reads and writes that have begun keep what they
/// began with.
pub fn change(setting: Setting, value: Option<usize>) -> Option<usize> {
    let former = setting.choose(value);
    apply(setting);
    former
}

/// Change what is in force while nothing is chosen, None for what the machine has; of threads,
/// the most.
pub fn set_default(setting: Setting, value: Option<usize>) {
    setting.choose_default(value);
    apply(setting);
}

fn apply(setting: Setting) {
    let state = ProcessState::of_this_process();
    match setting {
        Setting::Threads => {
            let mut pool = state.locked_pool();
            let made = match &*pool {
                Pool::Made(pool) => pool.current_num_threads(),
                Pool::Unmade | Pool::None => 0,
            };
            // Those who change back and forth need no new threads.
            if made != setting.value() {
                *pool = Pool::Unmade;
            }
        }
        Setting::CacheNbytes => {
            let freed = {
                let mut cache = state.cache();
                let held = cache.stats().held_nbytes;
                // Looked at under the lock, so that the last of several who change it counts.
                cache.set_budget(setting.value());
                held - cache.stats().held_nbytes
            };
            if freed > 0 {
                give_back_memory();
            }
        }
        // Looked at by who begins to read or write.
        Setting::WriteBufferNbytes | Setting::PrefetchNbytes => {}
    }
}

/// Let go of all chunks that are kept for later reads.
pub fn cache_clear() {
    ProcessState::of_this_process().cache().clear();
    give_back_memory();
}
