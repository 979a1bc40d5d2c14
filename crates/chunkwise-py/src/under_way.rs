//! Which reads of a dataset are under way, and how does a program that closes its file wait for
//! them?
//!
//! libhdf5 holds its lock while it reads, so that closing a file waits for reads of other threads.
//! The engine reads without that lock: it counts its reads instead.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use chunkwise_engine::process_number;
use pyo3::prelude::*;

/// How often a program that waits looks again, and for signals.
const INTERVAL: Duration = Duration::from_millis(1);

thread_local! {
    /// Reads that this thread has begun.
    static MINE: Cell<u32> = const { Cell::new(0) };
}

/// Reads of a dataset that are under way.
#[derive(Debug, Default)]
pub struct UnderWay {
    /// How many, and in the upper half the number of the process that began them: a forked child
    /// has none of its parent's threads.
    reads: AtomicU64,
    ended: AtomicBool,
}

/// A read that is under way until this is dropped.
#[derive(Debug)]
pub struct Read<'a>(&'a UnderWay);

const COUNT: u64 = u32::MAX as u64;

impl UnderWay {
    /// Begin a read; None after [`end`](Self::end).
    pub fn begin(&self) -> Option<Read<'_>> {
        let process = this_process();
        let one_more = |reads: u64| Some(process | (of_process(reads, process) + 1));
        // It always succeeds.
        let _ = self.reads.fetch_update(SeqCst, SeqCst, one_more);
        MINE.set(MINE.get() + 1);
        let read = Read(self);
        // After it was counted: who ends the reads meanwhile waits for this one, or is seen here.
        (!self.ended.load(SeqCst)).then_some(read)
    }

    /// Let no other read begin, and with `wait` return when those under way have ended; at once
    /// where this thread has begun one itself, whose signal handler this then is.
    ///
    /// # Errors
    /// What a signal handler raises, such as KeyboardInterrupt.
    pub fn end(&self, py: Python<'_>, wait: bool) -> PyResult<()> {
        self.ended.store(true, SeqCst);
        let process = this_process();
        while wait && MINE.get() == 0 && of_process(self.reads.load(SeqCst), process) > 0 {
            py.detach(|| std::thread::sleep(INTERVAL));
            py.check_signals()?;
        }
        Ok(())
    }
}

impl Drop for Read<'_> {
    fn drop(&mut self) {
        MINE.set(MINE.get().saturating_sub(1));
        let process = this_process();
        let one_less = |reads: u64| (of_process(reads, process) > 0).then(|| reads - 1);
        // None of another process is counted.
        let _ = self.0.reads.fetch_update(SeqCst, SeqCst, one_less);
    }
}

fn this_process() -> u64 {
    u64::from(process_number()) << 32
}

/// How many of these reads are this process's.
fn of_process(reads: u64, process: u64) -> u64 {
    if reads & !COUNT == process { reads & COUNT } else { 0 }
}
