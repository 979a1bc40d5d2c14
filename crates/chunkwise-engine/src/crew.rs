//! Who works on a read beside the thread that called for it?
//!
//! The reader itself begins at once; threads of the pool join it as they come free.  It
//! waits for those that have begun, never for one that has not: a pool that is busy with
//! other reads holds nobody up.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::process::ProcessState;
use crate::profile::{Phase, timed};

/// Reading fewer bytes than this is not worth waking other threads for.
pub const PARALLEL_NBYTES: u64 = 128 << 10;

/// Work that is shared, and who is at it.
struct Gate {
    /// Lives at least until the gate is closed and everybody has left.
    work: *const (dyn Fn() + Sync),
    entered: Mutex<Entered>,
    left: Condvar,
}

struct Entered {
    open: bool,
    inside: usize,
    /// What a thread of the pool panicked with.
    panic: Option<Box<dyn Any + Send>>,
}

// SAFETY: `work` is only called by those inside, for whom `share` waits; it is Sync.
unsafe impl Send for Gate {}
// SAFETY: as above.
unsafe impl Sync for Gate {}

impl Gate {
    fn entered(&self) -> MutexGuard<'_, Entered> {
        // Nothing panics while holding it.
        self.entered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread of the pool has come free.
    fn help(&self) {
        {
            let mut entered = self.entered();
            if !entered.open {
                return;
            }
            entered.inside += 1;
        }
        // SAFETY: inside, so that `share` has not returned.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (*self.work)() }));
        let mut entered = self.entered();
        entered.inside -= 1;
        entered.panic = outcome.err().or(entered.panic.take());
        self.left.notify_all();
    }
}

/// Closes the gate and waits until everybody has left, also when the work panics.
struct Closing<'a>(&'a Gate);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let mut entered = self.0.entered();
        entered.open = false;
        if entered.inside > 0 {
            let somebody = |entered: &mut Entered| entered.inside > 0;
            // Nothing panics while holding it; and the guard goes either way.
            drop(timed(Phase::Waiting, || self.0.left.wait_while(entered, somebody)));
        }
    }
}

/// Do `work` on this thread, and at the same time on up to `helpers` threads of the pool;
/// returns when all that began have ended.
///
/// `work` has to take pieces until none is left: how many threads come is not known.
pub fn share(helpers: usize, work: &(dyn Fn() + Sync)) {
    share_beside(helpers, work, work);
}

/// As [`share`], where the thread that asks does `own`, which must not need that anybody
/// comes, and must make those that came end.
pub fn share_beside(helpers: usize, work: &(dyn Fn() + Sync), own: impl FnOnce()) {
    // Work of the pool does not wait for the pool.
    let alone = helpers == 0 || rayon::current_thread_index().is_some();
    let pool = if alone { None } else { ProcessState::of_this_process().pool() };
    let Some(pool) = pool else { return own() };
    // SAFETY: only the lifetime is forgotten; `Closing` keeps this function from returning,
    // or unwinding, while anybody may still call it.
    let erased: *const (dyn Fn() + Sync + 'static) =
        unsafe { std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) };
    let entered = Mutex::new(Entered { open: true, inside: 0, panic: None });
    let gate = Arc::new(Gate { work: erased, entered, left: Condvar::new() });
    for _ in 0..helpers.min(pool.current_num_threads().saturating_sub(1)) {
        let gate = Arc::clone(&gate);
        pool.spawn(move || gate.help());
    }
    let closing = Closing(&gate);
    own();
    drop(closing);
    let panic = gate.entered().panic.take();
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

/// Pieces of work that threads take one after the other, until none is left or one has failed.
pub struct Pieces<I, E>(Mutex<Left<I, E>>);

struct Left<I, E> {
    /// None where nobody is to take another.
    pieces: Option<I>,
    failure: Option<E>,
}

impl<I: Iterator, E> Pieces<I, E> {
    /// Those that `pieces` gives.
    pub fn new(pieces: I) -> Self {
        Self(Mutex::new(Left { pieces: Some(pieces), failure: None }))
    }

    /// Do `work` with each piece that this thread comes to take.
    pub fn each(&self, mut work: impl FnMut(I::Item) -> Result<(), E>) {
        let left = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = || left().pieces.as_mut().and_then(Iterator::next);
        while let Some(piece) = next() {
            if let Err(error) = work(piece) {
                let mut left = left();
                left.pieces = None;
                left.failure.get_or_insert(error);
            }
        }
    }

    /// The first error, once no thread is at work.
    pub fn outcome(self) -> Result<(), E> {
        let left = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        left.failure.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn every_piece_is_done_once_whoever_comes() {
        for _ in 0..200 {
            let (next, sum) = (AtomicU64::new(0), AtomicU64::new(0));
            share(3, &|| {
                while let piece @ 0..100 = next.fetch_add(1, Relaxed) {
                    sum.fetch_add(piece, Relaxed);
                }
            });
            assert_eq!(sum.into_inner(), 99 * 100 / 2);
        }
    }

    #[test]
    fn after_an_error_no_piece_is_taken() {
        for last in [0, 60, 200] {
            let pieces = Pieces::new(0..100);
            let sum = AtomicU64::new(0);
            share(3, &|| {
                pieces.each(|piece| {
                    sum.fetch_add(piece, Relaxed);
                    if piece < last { Ok(()) } else { Err(piece) }
                });
            });
            let outcome = pieces.outcome();
            assert_eq!(outcome.is_err(), last < 100);
            // Others may have been at a piece or two.
            assert!(outcome.is_err_and(|piece| piece < last + 4) || sum.into_inner() == 4950);
        }
    }

    #[test]
    fn a_panic_waits_for_the_others_and_is_passed_on() {
        let inside = AtomicU64::new(0);
        let work = || {
            inside.fetch_add(1, Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(5));
            inside.fetch_sub(1, Relaxed);
            resume_unwind(Box::new("on purpose"));
        };
        for _ in 0..20 {
            let outcome = catch_unwind(AssertUnwindSafe(|| share(3, &work)));
            assert!(outcome.is_err());
            assert_eq!(inside.load(Relaxed), 0);
        }
        // Of the pool's threads alone.
        let theirs = || {
            std::thread::sleep(std::time::Duration::from_millis(2));
            if rayon::current_thread_index().is_some() {
                resume_unwind(Box::new("on purpose"));
            }
        };
        let pool = ProcessState::of_this_process().pool();
        if pool.is_some_and(|pool| pool.current_num_threads() > 1) {
            let mut tries = (0..100).map(|_| catch_unwind(AssertUnwindSafe(|| share(3, &theirs))));
            assert!(tries.any(|outcome| outcome.is_err()));
        }
    }
}
