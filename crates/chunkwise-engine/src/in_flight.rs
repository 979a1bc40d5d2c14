//! How is a chunk decoded once, when several threads want it at the same time?

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::cache_entry::{ChunkKey, Decoded};
use crate::profile::{Phase, timed};

/// Where the decoding of a chunk stands.
enum Progress {
    /// No thread has begun.
    Queued,
    /// A thread is at it.
    Running,
    /// It is over; None when it failed.
    Over(Option<Decoded>),
}

/// A chunk that is being decoded, or is going to be.
pub struct Decoding {
    progress: Mutex<Progress>,
    over: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while holding these, and a chunk that is lost is decoded again.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The chunks that are being decoded in this process, each by one thread, for all who want
/// it; and how many they are, which is known without the lock.
#[derive(Default)]
pub struct InFlight(Mutex<HashMap<ChunkKey, Arc<Decoding>>>, AtomicUsize);

impl InFlight {
    /// Enter a decoding to come; None when the chunk has one already.
    pub fn begin(&self, key: ChunkKey) -> Option<Arc<Decoding>> {
        match lock(&self.0).entry(key) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                self.1.fetch_add(1, Relaxed);
                Some(Arc::clone(place.insert(Decoding::new(Progress::Queued))))
            }
        }
    }

    /// Whether somebody decodes the chunk, or is going to, as far as one look tells.
    pub fn has(&self, key: ChunkKey) -> bool {
        // Mostly there is none, and all threads would wait for the lock for each chunk.
        self.1.load(Relaxed) > 0 && lock(&self.0).contains_key(&key)
    }

    /// The chunk, decoded by `work` unless another thread is at it already: its outcome is
    /// waited for.  A decoding that no thread has begun is taken over, as it might wait for this
    /// very thread.
    ///
    /// # Errors
    /// What `work` gives.
    pub fn decoded<E>(
        &self,
        key: ChunkKey,
        work: impl FnOnce() -> Result<Decoded, E>,
    ) -> Result<Decoded, E> {
        let decoding = loop {
            let decoding = {
                let mut in_flight = lock(&self.0);
                match in_flight.entry(key) {
                    Entry::Vacant(place) => {
                        self.1.fetch_add(1, Relaxed);
                        break Arc::clone(place.insert(Decoding::new(Progress::Running)));
                    }
                    Entry::Occupied(place) => Arc::clone(place.get()),
                }
            };
            let mut progress = lock(&decoding.progress);
            if matches!(*progress, Progress::Queued) {
                *progress = Progress::Running;
                drop(progress);
                break decoding;
            }
            while matches!(*progress, Progress::Running) {
                progress = timed(Phase::Waiting, || decoding.over.wait(progress))
                    .unwrap_or_else(PoisonError::into_inner);
            }
            // The thread that failed has the error; this thread finds out for itself.
            if let Progress::Over(Some(decoded)) = &*progress {
                return Ok(Arc::clone(decoded));
            }
        };
        let mut end = End { in_flight: self, key, decoding: &decoding, decoded: None };
        let decoded = work()?;
        end.decoded = Some(Arc::clone(&decoded));
        Ok(decoded)
    }

    /// Carry a queued decoding out, unless a reader has taken it over.
    pub fn run(&self, key: ChunkKey, decoding: &Decoding, work: impl FnOnce() -> Option<Decoded>) {
        {
            let mut progress = lock(&decoding.progress);
            if !matches!(*progress, Progress::Queued) {
                return;
            }
            *progress = Progress::Running;
        }
        // Ends the decoding also when the work panics: readers must not wait for ever.
        let mut end = End { in_flight: self, key, decoding, decoded: None };
        end.decoded = work();
    }
}

impl Decoding {
    fn new(progress: Progress) -> Arc<Self> {
        Arc::new(Self { progress: Mutex::new(progress), over: Condvar::new() })
    }
}

struct End<'a> {
    in_flight: &'a InFlight,
    key: ChunkKey,
    decoding: &'a Decoding,
    decoded: Option<Decoded>,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        *lock(&self.decoding.progress) = Progress::Over(self.decoded.take());
        self.decoding.over.notify_all();
        if lock(&self.in_flight.0).remove(&self.key).is_some() {
            self.in_flight.1.fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    fn chunk(byte: u8) -> Result<Decoded, ()> {
        Ok(Arc::new(vec![byte]))
    }

    #[test]
    fn readers_of_one_chunk_decode_it_once() {
        let in_flight = InFlight::default();
        let (times, now) = (AtomicU64::new(0), AtomicU64::new(0));
        let together = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    together.wait();
                    let got = in_flight.decoded((1, 2), || {
                        assert_eq!(now.fetch_add(1, Ordering::Relaxed), 0);
                        times.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(50));
                        now.fetch_sub(1, Ordering::Relaxed);
                        chunk(7)
                    });
                    assert_eq!(got, chunk(7));
                });
            }
        });
        // Again for a thread that came so late that the one before had ended; never two at a time.
        assert!(times.into_inner() < 8);
        assert!(lock(&in_flight.0).is_empty());
    }

    #[test]
    fn each_reader_hears_of_a_failure() {
        let in_flight = InFlight::default();
        assert_eq!(in_flight.decoded((1, 2), || Err("damaged")), Err("damaged"));
        assert_eq!(in_flight.decoded((1, 2), || Err("damaged")), Err("damaged"));
        assert!(lock(&in_flight.0).is_empty());
    }

    /// The pool may come to a decoding long after a reader took it over: what that has decoded is
    /// not kept until then.
    #[test]
    fn a_decoding_that_is_over_is_gone() {
        let in_flight = InFlight::default();
        let queued = Arc::downgrade(&in_flight.begin((1, 2)).unwrap());
        assert!(queued.upgrade().is_some());
        assert_eq!(in_flight.decoded((1, 2), || chunk(7)), chunk(7));
        assert!(queued.upgrade().is_none());
    }

    #[test]
    fn a_decoding_that_nobody_began_is_taken_over() {
        let in_flight = InFlight::default();
        let decoding = in_flight.begin((1, 2)).unwrap();
        assert!(in_flight.begin((1, 2)).is_none());
        assert_eq!(in_flight.decoded((1, 2), || chunk(7)), chunk(7));
        in_flight.run((1, 2), &decoding, || panic!("taken over, and carried out all the same"));
        assert!(in_flight.begin((1, 2)).is_some());
    }

    #[test]
    fn a_reader_waits_for_a_running_decoding_and_gets_its_chunk() {
        let in_flight = InFlight::default();
        let decoding = in_flight.begin((1, 2)).unwrap();
        std::thread::scope(|scope| {
            let (begun, wait) = std::sync::mpsc::channel();
            let (in_flight, decoding) = (&in_flight, &decoding);
            scope.spawn(move || {
                in_flight.run((1, 2), decoding, || {
                    begun.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(20));
                    Some(Arc::new(vec![7]))
                });
            });
            wait.recv().unwrap();
            // The decoding may be over before this thread looks: then it is done anew.
            assert_eq!(in_flight.decoded((1, 2), || chunk(7)), chunk(7));
        });
        assert!(lock(&in_flight.0).is_empty());
    }

    #[test]
    fn a_decoding_that_panics_ends() {
        let in_flight = InFlight::default();
        let decoding = in_flight.begin((1, 2)).unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            in_flight.run((1, 2), &decoding, || panic!("on purpose"));
        }));
        assert!(panicked.is_err());
        assert_eq!(in_flight.decoded((1, 2), || chunk(7)), chunk(7));
        assert!(lock(&in_flight.0).is_empty());
    }
}
