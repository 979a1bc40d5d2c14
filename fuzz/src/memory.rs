//! Does work take memory in proportion, and time?
//!
//! Every allocation of this program is counted, by whichever thread.  What C libraries
//! allocate themselves is not: the codecs' working memory is theirs, and of fixed size.

#![allow(clippy::panic)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is left to the system's allocator; counting touches no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        count(unsafe { System.alloc(layout) }, 0, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        count(unsafe { System.alloc_zeroed(layout) }, 0, layout.size())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        count(unsafe { System.realloc(pointer, layout, size) }, layout.size(), size)
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Count what was `old` bytes long and is `new` now, unless there was no memory for it.
fn count(pointer: *mut u8, old: usize, new: usize) -> *mut u8 {
    if !pointer.is_null() {
        let now = NOW.fetch_add(new, Ordering::Relaxed).wrapping_add(new);
        PEAK.fetch_max(now, Ordering::Relaxed);
        NOW.fetch_sub(old, Ordering::Relaxed);
    }
    pointer
}

/// Do `work`, which may have at most `most` bytes more at any time than there were before.
///
/// # Panics
/// When it had more.
pub(crate) fn within<T>(most: usize, work: impl FnOnce() -> T) -> T {
    // One at a time: the counters are everybody's.
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let outcome = work();
    let taken = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    drop(one);
    assert!(taken <= most, "{taken} bytes of memory were taken where {most} are plenty");
    outcome
}

/// What reading the metadata of a file may take, whatever it claims.
const MOST_NBYTES: usize = 64 << 20;
/// Files up to this size take at most this processor time.
const SMALL_LEN: usize = 4 << 10;
const MOST_TIME: Duration = Duration::from_secs(1);

/// Do `work` on a file of this many bytes, within the bounds that hold for it.
///
/// # Panics
/// When it took more.
pub(crate) fn small<T>(file_len: usize, work: impl FnOnce() -> T) -> T {
    let before = processor_time();
    let outcome = within(MOST_NBYTES, work);
    let taken = processor_time().zip(before).map_or(Duration::ZERO, |(now, then)| now - then);
    assert!(file_len > SMALL_LEN || taken <= MOST_TIME, "a small file took {taken:?}");
    outcome
}

/// The processor time of this thread; None where the system does not say it.
fn processor_time() -> Option<Duration> {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    said.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}
