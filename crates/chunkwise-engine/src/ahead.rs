//! Which chunks will be wanted next, and who decodes them meanwhile?
//!
//! A program that walks through a dataset in small steps (a row at a time) wants one chunk
//! after another, each for many steps.  When two chunks in a row were wanted, those
//! that follow are decoded ahead, one on each of the pool's threads, into the cache.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use crate::Dataset;
use crate::cache::{ChunkKey, Decoded, ENTRY_NBYTES};
use crate::dataset::Placement;
use crate::decode::StoredChunk;
use crate::process::ProcessState;
use crate::profile::{Phase, timed};

/// Where the decoding of a chunk stands.
enum Progress {
    /// No thread has begun.
    Queued,
    /// A thread of the pool is at it.
    Running,
    /// It is over; None when it failed, or when the reader took the chunk over.
    Over(Option<Decoded>),
}

/// A chunk that is being decoded ahead.
struct Job {
    progress: Mutex<Progress>,
    over: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while holding these, and a chunk that is lost is decoded again.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The chunks that are being decoded ahead in this process.
#[derive(Default)]
pub struct Jobs(Mutex<HashMap<ChunkKey, Arc<Job>>>);

impl Jobs {
    /// Enter a new job; None when the chunk has one already.
    fn begin(&self, key: ChunkKey) -> Option<Arc<Job>> {
        let mut jobs = lock(&self.0);
        if jobs.contains_key(&key) {
            return None;
        }
        let job = Arc::new(Job { progress: Mutex::new(Progress::Queued), over: Condvar::new() });
        jobs.insert(key, Arc::clone(&job));
        Some(job)
    }

    /// The chunk, when it is being decoded: waits for a thread that is at it, and takes the
    /// job over when none has begun (it might wait for this very thread).  None means
    /// that the caller has to look elsewhere.
    pub fn wait_for(&self, key: ChunkKey) -> Option<Decoded> {
        let job = Arc::clone(lock(&self.0).get(&key)?);
        let mut progress = lock(&job.progress);
        loop {
            match &*progress {
                Progress::Queued => {
                    *progress = Progress::Over(None);
                    lock(&self.0).remove(&key);
                    return None;
                }
                Progress::Running => {
                    progress = timed(Phase::Waiting, || job.over.wait(progress))
                        .unwrap_or_else(PoisonError::into_inner);
                }
                Progress::Over(decoded) => return decoded.clone(),
            }
        }
    }

    /// Carry a job out, unless a reader has taken it over.
    fn run(&self, key: ChunkKey, job: &Job, work: impl FnOnce() -> Option<Decoded>) {
        {
            let mut progress = lock(&job.progress);
            if !matches!(*progress, Progress::Queued) {
                return;
            }
            *progress = Progress::Running;
        }
        // Ends the job also when the work panics: readers must not wait for ever.
        let mut end = End { jobs: self, key, job, decoded: None };
        end.decoded = work();
    }
}

struct End<'a> {
    jobs: &'a Jobs,
    key: ChunkKey,
    job: &'a Job,
    decoded: Option<Decoded>,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        *lock(&self.job.progress) = Progress::Over(self.decoded.take());
        self.job.over.notify_all();
        lock(&self.jobs.0).remove(&self.key);
    }
}

impl Dataset {
    /// A read wants a part of the chunk at `position` and nothing else: when the one before
    /// it was wanted last, have those after it decoded.
    pub(crate) fn read_ahead(&self, position: u64, read: u64) {
        if self.last_wanted.load(Ordering::Relaxed) == position {
            return;
        }
        let before = self.last_wanted.swap(position, Ordering::Relaxed);
        if before.checked_add(1) != Some(position) {
            return;
        }
        let state = ProcessState::of_this_process();
        let Some(pool) = state.pool() else { return };
        let ahead = state.cache().worth_ahead(pool.current_num_threads()) as u64;
        if ahead == 0 {
            return;
        }
        // What is decoded ahead must not drive out what is being read.
        let cost = self.chunk_nbytes.saturating_add(ENTRY_NBYTES as u64);
        let budget = state.cache().stats().budget_nbytes as u64;
        if cost.saturating_mul(2 * (ahead + 1)) > budget {
            return;
        }
        for next in (position + 1..self.grid.len()).take(ahead as usize) {
            let chunk_index = self.grid.chunk_index(next);
            let key = (self.number, next);
            let Placement::Filtered(record) = self.placement(next, &chunk_index) else { continue };
            if state.cache().holds(key) {
                continue;
            }
            let Some(job) = state.jobs.begin(key) else { continue };
            // A dataset that is closed meanwhile is not kept open for this.
            let dataset = Weak::clone(&self.itself);
            pool.spawn(move || {
                let state = ProcessState::of_this_process();
                let chunk = StoredChunk { chunk_index, record };
                state.jobs.run(key, &job, || {
                    let decoded = dataset.upgrade()?.decode_new(&chunk).ok()?;
                    state.cache().put_ahead(key, Arc::clone(&decoded), read);
                    Some(decoded)
                });
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_job_that_nobody_began_is_taken_over() {
        let jobs = Jobs::default();
        let job = jobs.begin((1, 2)).unwrap();
        assert!(jobs.begin((1, 2)).is_none());
        assert!(jobs.wait_for((1, 2)).is_none());
        jobs.run((1, 2), &job, || panic!("taken over, and carried out all the same"));
        assert!(jobs.wait_for((1, 2)).is_none());
        assert!(jobs.begin((1, 2)).is_some());
    }

    #[test]
    fn a_reader_waits_for_a_running_job_and_gets_its_chunk() {
        let jobs = Jobs::default();
        let job = jobs.begin((1, 2)).unwrap();
        std::thread::scope(|scope| {
            let (begun, wait) = std::sync::mpsc::channel();
            let (jobs, job) = (&jobs, &job);
            scope.spawn(move || {
                jobs.run((1, 2), job, || {
                    begun.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(20));
                    Some(Arc::new(vec![7]))
                });
            });
            wait.recv().unwrap();
            // None only if the job was over before this thread looked.
            let got = jobs.wait_for((1, 2));
            assert!(got.is_none_or(|chunk| *chunk == [7]));
        });
        assert!(lock(&jobs.0).is_empty());
    }

    #[test]
    fn a_job_that_panics_ends() {
        let jobs = Jobs::default();
        let job = jobs.begin((1, 2)).unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            jobs.run((1, 2), &job, || panic!("on purpose"));
        }));
        assert!(panicked.is_err());
        assert!(jobs.wait_for((1, 2)).is_none());
        assert!(lock(&jobs.0).is_empty());
    }
}
