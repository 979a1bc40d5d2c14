//! How are many chunks encoded at the same time and committed one after another?
//!
//! Threads take tasks in order and put what they made in its place; the calling thread
//! hands over what is ready at the head, and encodes as well while nothing is.  What
//! waits to be handed over is bounded, so that memory stays at a few chunks a thread.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::crew::share_beside;
use crate::profile::{Phase, timed};
use crate::spare;
use crate::write::{CommitError, Committer, EncodedChunk};

/// Chunks that are handed over together have about this many bytes...
const BATCH_NBYTES: usize = 4 << 20;
/// ... and are this many at most.
const BATCH_CHUNKS: usize = 256;
/// Memory of encoded chunks that may wait behind one that takes longer: encoding is given room
/// for what does not shrink, and keeps it.
const WAITING_NBYTES: usize = spare::MOST_NBYTES;

/// A run of tasks, each of which makes one chunk, or none.
pub struct InOrder<'a, E> {
    /// How many there are.
    pub tasks: u64,
    /// Threads that may help the one that asks.
    pub helpers: usize,
    /// Makes task `i`'s chunk in a chunk whose memory may be used again; gives false where
    /// there is nothing to store.
    pub encode: &'a (dyn Fn(u64, &mut EncodedChunk) -> Result<bool, E> + Sync),
    /// Gets how many tasks are done, on the calling thread.
    pub progress: &'a mut dyn FnMut(u64),
    /// No other task is begun once this is set.
    pub cancelled: &'a AtomicBool,
    /// Memory of former chunks, which is used again and given back: fresh memory is zeroed
    /// by the system.
    pub spare: &'a mut Vec<EncodedChunk>,
}

/// What the calling thread hands chunks to, and what it reports to.
type Handing<'a, 'p> = (&'a mut dyn Committer, &'a mut &'p mut dyn FnMut(u64));

/// What the threads share.
struct State<E> {
    next: u64,
    /// The first task that is not committed.
    head: u64,
    ready: BTreeMap<u64, (bool, EncodedChunk)>,
    waiting_nbytes: usize,
    spare: Vec<EncodedChunk>,
    failure: Option<E>,
    /// The calling thread has left.
    ended: bool,
}

struct Queue<E> {
    state: Mutex<State<E>>,
    changed: Condvar,
}

impl<E> Queue<E> {
    fn locked(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, state: MutexGuard<'g, State<E>>) -> MutexGuard<'g, State<E>> {
        timed(Phase::Waiting, || self.changed.wait(state).unwrap_or_else(PoisonError::into_inner))
    }
}

/// However the calling thread leaves, and also when one panics and so leaves a gap that
/// nobody fills, nobody waits any longer.
struct Leaving<'a, E>(&'a Queue<E>, fn() -> bool);

impl<E> Drop for Leaving<'_, E> {
    fn drop(&mut self) {
        if (self.1)() {
            self.0.locked().ended = true;
            self.0.changed.notify_all();
        }
    }
}

/// What a thread does next.
enum Turn<'g, E> {
    /// Make this task's chunk.
    Encode(u64, EncodedChunk),
    /// Hand these over, the results of this many tasks.
    Commit(Vec<EncodedChunk>, u64),
    /// See again, something has changed.
    Again(MutexGuard<'g, State<E>>),
    Leave,
}

impl<E: Send + From<CommitError>> InOrder<'_, E> {
    /// Encode the tasks' chunks on this thread and on helpers, and commit them in the tasks'
    /// order.
    ///
    /// Whether all was done: false once `cancelled` is set.
    ///
    /// # Errors
    /// The first that encoding or committing gives; chunks before it may be committed.
    pub fn run(&mut self, committer: &mut dyn Committer) -> Result<bool, E> {
        let state = State {
            next: 0,
            head: 0,
            ready: BTreeMap::new(),
            waiting_nbytes: 0,
            spare: std::mem::take(self.spare),
            failure: None,
            ended: false,
        };
        let queue = Queue { state: Mutex::new(state), changed: Condvar::new() };
        let Self { tasks, helpers, encode, progress, cancelled, spare } = self;
        let (tasks, encode, cancelled) = (*tasks, *encode, *cancelled);
        let helpers =
            usize::try_from(tasks.saturating_sub(1)).map_or(*helpers, |n| n.min(*helpers));
        let help = || queue.work(tasks, encode, cancelled, None);
        share_beside(helpers, &help, || {
            let _leaving = Leaving(&queue, || true);
            queue.work(tasks, encode, cancelled, Some((committer, progress)));
        });
        let state = queue.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut kept_nbytes = 0;
        **spare = state.spare;
        spare.retain(|chunk| {
            kept_nbytes += chunk.bytes.capacity();
            kept_nbytes <= WAITING_NBYTES
        });
        match state.failure {
            Some(failure) => Err(failure),
            None => Ok(state.head == tasks),
        }
    }
}

impl<E: From<CommitError>> Queue<E> {
    /// Work until nothing is left; `handing` is the asking thread's.
    fn work(
        &self,
        tasks: u64,
        encode: &(dyn Fn(u64, &mut EncodedChunk) -> Result<bool, E> + Sync),
        cancelled: &AtomicBool,
        mut handing: Option<Handing<'_, '_>>,
    ) {
        let mut state = self.locked();
        loop {
            if cancelled.load(Relaxed) {
                state.ended = true;
                self.changed.notify_all();
            }
            state = match self.turn(state, tasks, handing.is_some()) {
                Turn::Leave => return,
                Turn::Again(state) => state,
                Turn::Encode(task, mut chunk) => {
                    let leaving = Leaving(self, std::thread::panicking);
                    let made = encode(task, &mut chunk);
                    drop(leaving);
                    let mut state = self.locked();
                    match made {
                        Ok(kept) => {
                            state.waiting_nbytes += if kept { chunk.bytes.capacity() } else { 0 };
                            state.ready.insert(task, (kept, chunk));
                            if task == state.head {
                                self.changed.notify_all();
                            }
                        }
                        Err(error) => self.fail(&mut state, error),
                    }
                    state
                }
                Turn::Commit(chunks, done) => {
                    let Some((committer, progress)) = &mut handing else { return };
                    let outcome = if chunks.is_empty() {
                        Ok(())
                    } else {
                        timed(Phase::Commit, || committer.commit(&chunks))
                    };
                    if outcome.is_ok() {
                        progress(done);
                    }
                    let mut state = self.locked();
                    match outcome {
                        Ok(()) => {
                            state.head += done;
                            for chunk in chunks {
                                state.waiting_nbytes -= chunk.bytes.capacity();
                                state.spare.push(chunk);
                            }
                            self.changed.notify_all();
                        }
                        Err(error) => self.fail(&mut state, error.into()),
                    }
                    state
                }
            };
        }
    }

    /// What comes next; waits when there is nothing to do yet.
    fn turn<'g>(
        &'g self,
        mut state: MutexGuard<'g, State<E>>,
        tasks: u64,
        hands_over: bool,
    ) -> Turn<'g, E> {
        if state.ended || state.failure.is_some() || state.head == tasks {
            return Turn::Leave;
        }
        let head = state.head;
        if hands_over && state.ready.contains_key(&head) {
            let (mut chunks, mut done, mut nbytes) = (Vec::new(), 0, 0);
            while nbytes < BATCH_NBYTES
                && chunks.len() < BATCH_CHUNKS
                && let Some((kept, chunk)) = state.ready.remove(&(head + done))
            {
                done += 1;
                if kept {
                    nbytes += chunk.bytes.len();
                    chunks.push(chunk);
                } else {
                    state.spare.push(chunk);
                }
            }
            return Turn::Commit(chunks, done);
        }
        // The chunk at the head is made whatever waits: all others wait for it.
        if state.next < tasks && (state.waiting_nbytes < WAITING_NBYTES || state.next == head) {
            let task = state.next;
            state.next += 1;
            let chunk = state.spare.pop().unwrap_or_default();
            return Turn::Encode(task, chunk);
        }
        if state.next == tasks && !hands_over {
            return Turn::Leave;
        }
        Turn::Again(self.wait(state))
    }

    /// The first failure counts.
    fn fail(&self, state: &mut State<E>, error: E) {
        state.failure.get_or_insert(error);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what it is given; refuses the chunk with this origin.
    #[derive(Default)]
    struct Kept {
        origins: Vec<u64>,
        refused: Option<u64>,
    }

    impl Committer for Kept {
        fn commit(&mut self, chunks: &[EncodedChunk]) -> Result<(), CommitError> {
            for chunk in chunks {
                let origin = chunk.chunk_origin[0];
                if self.refused == Some(origin) {
                    return Err(CommitError {
                        chunk_origin: chunk.chunk_origin.clone(),
                        stored_nbytes: chunk.bytes.len() as u64,
                        message: "refused".to_string(),
                    });
                }
                self.origins.push(origin);
            }
            Ok(())
        }
    }

    /// Of 300 tasks each third stores nothing; some take longer, and some make much.
    fn run(
        kept: &mut Kept,
        cancelled: &AtomicBool,
        failing: Option<u64>,
    ) -> (Result<bool, CommitError>, u64) {
        let mut reported = 0;
        let encode = |task: u64, chunk: &mut EncodedChunk| {
            if task % 50 == 7 {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            chunk.chunk_origin = [task].into_iter().collect();
            chunk.bytes.clear();
            chunk.bytes.resize(if task.is_multiple_of(7) { 1 << 20 } else { 10 }, 1);
            if failing == Some(task) {
                let chunk_origin = chunk.chunk_origin.clone();
                return Err(CommitError { chunk_origin, stored_nbytes: 0, message: String::new() });
            }
            Ok(!task.is_multiple_of(3))
        };
        let outcome = InOrder {
            tasks: 300,
            helpers: 3,
            encode: &encode,
            progress: &mut |done| reported += done,
            cancelled,
            spare: &mut Vec::new(),
        }
        .run(kept);
        (outcome, reported)
    }

    #[test]
    fn chunks_are_committed_in_order_and_once() {
        let mut kept = Kept::default();
        let (outcome, reported) = run(&mut kept, &AtomicBool::new(false), None);
        assert_eq!((outcome, reported), (Ok(true), 300));
        assert_eq!(kept.origins, (0..300).filter(|task| task % 3 != 0).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_ends_it() {
        for n in [1u64, 100, 299] {
            let mut kept = Kept { refused: Some(n), ..Kept::default() };
            let (outcome, _) = run(&mut kept, &AtomicBool::new(false), None);
            assert_eq!(outcome.is_err(), n % 3 != 0);
            assert!(kept.origins.iter().all(|&origin| n % 3 == 0 || origin < n));
            let (outcome, _) = run(&mut Kept::default(), &AtomicBool::new(false), Some(n));
            assert_eq!(outcome.unwrap_err().chunk_origin[0], n);
        }
    }

    #[test]
    fn it_can_be_cancelled() {
        let (outcome, reported) = run(&mut Kept::default(), &AtomicBool::new(true), None);
        assert_eq!((outcome, reported), (Ok(false), 0));
    }

    #[test]
    fn nothing_to_do_is_done() {
        let mut run = InOrder::<CommitError> {
            tasks: 0,
            helpers: 3,
            encode: &|_, _| Ok(true),
            progress: &mut |_| (),
            cancelled: &AtomicBool::new(false),
            spare: &mut Vec::new(),
        };
        assert_eq!(run.run(&mut Kept::default()), Ok(true));
    }

    #[test]
    fn a_panic_leaves_nobody_waiting() {
        for failing in [0, 5, 200] {
            let encode = |task: u64, _: &mut EncodedChunk| {
                if task == failing {
                    std::panic::resume_unwind(Box::new("on purpose"));
                }
                Ok::<bool, CommitError>(false)
            };
            let cancelled = AtomicBool::new(false);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let progress = &mut |_| ();
                let run = InOrder {
                    tasks: 300,
                    helpers: 3,
                    encode: &encode,
                    progress,
                    cancelled: &cancelled,
                    spare: &mut Vec::new(),
                };
                { run }.run(&mut Kept::default())
            }));
            assert!(outcome.is_err());
        }
    }
}
