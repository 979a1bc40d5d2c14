//! How does Ctrl-C end long work that runs without the GIL?

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use chunkwise_engine::platform::on_main_thread;
use pyo3::prelude::*;

/// Work on at least this many bytes answers to Ctrl-C.
const INTERRUPTIBLE_NBYTES: u64 = 64 << 20;
/// How often it looks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Do `work` on about `nbytes` bytes without the GIL; it stops early once the flag that it
/// is given is set, and `wake` has ended what it waits for.  None where it ended without an answer.
///
/// # Errors
/// A signal handler's exception, such as KeyboardInterrupt; by then the work has ended.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    nbytes: u64,
    wake: impl Fn() + Send,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<Option<T>> {
    let cancelled = AtomicBool::new(false);
    // Python runs signal handlers in the main thread only.
    if nbytes < INTERRUPTIBLE_NBYTES || !on_main_thread() {
        return Ok(Some(py.detach(|| work(&cancelled))));
    }
    py.detach(|| watched(&cancelled, wake, work))
}

/// Work on a thread of its own, while this one looks after Python's signals.
fn watched<T: Send>(
    cancelled: &AtomicBool,
    wake: impl Fn() + Send,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<Option<T>> {
    // Handed over through a cell, so that it is still here if no thread can be had.
    let work = Mutex::new(Some(work));
    let run = || {
        let work = work.lock().ok().and_then(|mut work| work.take());
        work.map(|work| work(cancelled))
    };
    let run = &run;
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let spawned = std::thread::Builder::new().spawn_scoped(scope, move || sender.send(run()));
        if spawned.is_err() {
            return Ok(run());
        }
        loop {
            match receiver.recv_timeout(SIGNAL_INTERVAL) {
                Ok(outcome) => return Ok(outcome),
                Err(RecvTimeoutError::Timeout) => {
                    // None while the interpreter shuts down: nobody to interrupt then.
                    let signals = Python::try_attach(|py| py.check_signals());
                    if let Some(Err(interrupt)) = signals {
                        // The scope waits for the thread, which stops at the next chunk.
                        cancelled.store(true, Ordering::Relaxed);
                        // Again and again: a thread may have begun to wait just now.
                        loop {
                            wake();
                            let ended = receiver.recv_timeout(SIGNAL_INTERVAL);
                            if !matches!(ended, Err(RecvTimeoutError::Timeout)) {
                                return Err(interrupt);
                            }
                        }
                    }
                }
                // Only a panic ends the thread without an answer; the scope passes it on.
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    })
}
