//! How are many small datasets copied side by side, and still written one after another?
//!
//! Each is read and encoded by one thread.  What it comes to is handed over when all datasets
//! before it are written: so the chunks of each lie together, and in the order in which a single
//! thread would have written them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use chunkwise_libhdf5::{Library, hid_t};

use crate::copy::{CopyResult, Request, copy};
use crate::turns::Turns;
use crate::{CopyError, Progress};

/// One of many datasets.
pub struct Task {
    /// Handle of the source.
    pub source: hid_t,
    /// Handle of the target.
    pub target: hid_t,
    /// Looked at by the thread that waits for all; each dataset counts for itself.
    pub progress: Progress,
}

/// Wakes those who wait, also when a thread panics.
struct Ending<'a>(&'a Turns, bool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.end();
        }
    }
}

/// Copy each task's dataset with what `request` makes of its number, on this many threads.
///
/// # Errors
/// The first that went wrong, with its number; the others are stopped.
///
/// # Safety
/// Live handles of datasets of this library, which stay so until this returns.
pub unsafe fn copy_side_by_side<'a>(
    library: &Arc<Library>,
    tasks: &'a [Task],
    threads: usize,
    request: &(dyn Fn(usize, &'a Progress) -> Request<'a> + Sync),
) -> Result<Vec<CopyResult>, (usize, CopyError)> {
    let (turns, next) = (Turns::default(), AtomicUsize::new(0));
    let results: Mutex<Vec<(usize, Result<CopyResult, CopyError>)>> = Mutex::default();
    let work = || {
        let mut ending = Ending(&turns, false);
        loop {
            let number = next.fetch_add(1, Relaxed);
            let Some(task) = tasks.get(number) else { break };
            let turn = turns.turn(number);
            let request =
                Request { turn: Some(turn), threads: 1, ..request(number, &task.progress) };
            // SAFETY: the caller's contract.
            let copied = unsafe { copy(library, task.source, task.target, &request) };
            let copied = copied.and_then(|copied| turn.pass().map(|()| copied));
            let failed = copied.is_err();
            results.lock().unwrap_or_else(PoisonError::into_inner).push((number, copied));
            if failed {
                tasks.iter().for_each(|task| task.progress.cancel());
                return;
            }
        }
        ending.1 = true;
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(tasks.len()) {
            // Where the system has no thread to give, fewer do it.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    // What went wrong comes before what was stopped for it.
    results.sort_by_key(|(number, result)| {
        (!result.is_err(), matches!(result, Err(CopyError::Cancelled)), *number)
    });
    let all = results.len() == tasks.len();
    let copied = results
        .into_iter()
        .map(|(number, result)| result.map_err(|error| (number, error)))
        .collect::<Result<Vec<_>, _>>()?;
    if all { Ok(copied) } else { Err((0, CopyError::Cancelled)) }
}
