//! What do many files hold, each listed by one of several threads?

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chunkwise_engine::FileStorage;
use chunkwise_engine::platform::{is_locked, open_without_waiting};

use crate::listing::Entry;
use crate::metadata::Metadata;

/// No other file is begun while this many names wait to be taken, which have to fit memory together,
/// or after this time, when a program looks for signals.
const MOST_NAMES: usize = 1 << 16;
const MOST_TIME: Duration = Duration::from_millis(50);

/// Of all threads, the one that takes.
const THIS: usize = 0;

/// All names in a file, as of [`Metadata::listing`], with no chunk counted; None, too, where it is
/// being written, and an error where it cannot be opened.
pub type Listed = io::Result<Option<Vec<Entry>>>;

/// Many files, which all threads list and one takes, in their order.
pub struct Listings {
    paths: Vec<PathBuf>,
    state: Mutex<State>,
    /// A file was listed.
    listed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many files were begun.
    begun: usize,
    /// Those of them that nobody took, and which thread has listed them: None while it does.
    ready: VecDeque<Option<(usize, Listed)>>,
    /// What was taken, by thread.  Each frees its own: others would wait for its allocator.
    spent: Vec<Vec<Listed>>,
    /// Names in these.
    names: usize,
    /// Until when others are begun.
    until: Option<Instant>,
}

impl State {
    fn is_in_time(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() < until)
    }
}

impl Listings {
    /// Of these files, in this order.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths, state: Mutex::default(), listed: Condvar::new() }
    }

    /// Let `take` have what was not taken yet, one file after the other, while other threads list
    /// what follows: at least one if there is one, and as many as may be.  So does this thread,
    /// `aside`, while it has to wait.
    ///
    /// # Errors
    /// That of `take`: the next call goes on after that file.
    pub fn each<E>(
        &self,
        threads: usize,
        aside: impl Fn(&(dyn Fn() + Sync)),
        mut take: impl FnMut(&mut Listed) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.state();
        let threads = threads.min(self.paths.len() - state.begun).max(1);
        state.until = Some(Instant::now() + MOST_TIME);
        state.spent.resize_with(threads, Vec::new);
        drop(state);
        let outcome = std::thread::scope(|scope| {
            for thread in 1..threads {
                // Where the system has no thread to give, fewer do it.
                let work = move || while self.list_one(thread) {};
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            let outcome = loop {
                if let Some((by, mut listed)) = self.next() {
                    let taken = take(&mut listed);
                    let mut state = self.state();
                    // None of a thread of an earlier call.
                    if let Some(spent) = state.spent.get_mut(by) {
                        spent.push(listed);
                    }
                    if taken.is_err() || !state.is_in_time() {
                        break taken;
                    }
                } else if self.is_at_end() {
                    break Ok(());
                } else {
                    aside(&|| {
                        if !self.list_one(THIS) {
                            self.wait(|state| matches!(state.ready.front(), Some(None)));
                        }
                    });
                }
            };
            self.state().until = None;
            aside(&|| self.wait(|state| state.ready.iter().any(Option::is_none)));
            outcome
        });
        self.state().spent.clear();
        outcome
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_at_end(&self) -> bool {
        let state = self.state();
        state.ready.is_empty() && state.begun == self.paths.len()
    }

    /// The next file, if it was listed.
    fn next(&self) -> Option<(usize, Listed)> {
        let mut state = self.state();
        let found = state.ready.front_mut()?.take()?;
        state.ready.pop_front();
        state.names -= count(&found.1);
        Some(found)
    }

    /// List the next file that nobody began, if one may be begun; a taker needs one.
    fn list_one(&self, thread: usize) -> bool {
        let spent = self.state().spent.get_mut(thread).map(std::mem::take);
        drop(spent);
        let mut state = self.state();
        let is_needed = thread == THIS && state.ready.is_empty();
        let Some(path) = self.paths.get(state.begun) else { return false };
        if !(is_needed || state.names < MOST_NAMES && state.is_in_time()) {
            return false;
        }
        // Left to libhdf5 if this one panics: nobody waits for ever.
        let (number, listed) = (state.begun, Ok(None));
        let mut place = Place { listings: self, number, thread, listed };
        state.begun += 1;
        state.ready.push_back(None);
        drop(state);
        place.listed = listing(path);
        true
    }

    fn wait(&self, not_yet: impl Fn(&State) -> bool) {
        let ready = self.listed.wait_while(self.state(), |state| not_yet(state));
        drop(ready.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Where the listing of a file goes.
struct Place<'l> {
    listings: &'l Listings,
    number: usize,
    thread: usize,
    listed: Listed,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let listed = std::mem::replace(&mut self.listed, Ok(None));
        let mut state = self.listings.state();
        state.names += count(&listed);
        let taken = state.begun - state.ready.len();
        state.ready[self.number - taken] = Some((self.thread, listed));
        drop(state);
        self.listings.listed.notify_all();
    }
}

fn count(listed: &Listed) -> usize {
    listed.as_ref().map_or(0, |entries| entries.as_ref().map_or(0, Vec::len))
}

fn listing(path: &Path) -> Listed {
    let file = open_without_waiting(path)?;
    // libhdf5 refuses what somebody writes to: half of that may not have come to the file yet.
    if is_locked(&file) {
        return Ok(None);
    }
    // It is opened once: nothing is read of it later.
    let metadata = Metadata::of_storage(Arc::new(FileStorage::new(file)));
    Ok(metadata.and_then(|metadata| metadata.entries(false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of them, and the files that each call gave; every `fails`th is an error.
    fn all(paths: &[PathBuf], threads: usize, fails: usize) -> (Vec<Listed>, Vec<usize>) {
        let listings = Listings::new(paths.to_vec());
        let (mut found, mut calls) = (Vec::new(), Vec::new());
        loop {
            let before = found.len();
            let outcome = listings.each(
                threads,
                |work| work(),
                |listed| {
                    found.push(std::mem::replace(listed, Ok(None)));
                    if found.len().is_multiple_of(fails) { Err(found.len()) } else { Ok(()) }
                },
            );
            assert!(outcome.is_ok_and(|()| true) || found.len().is_multiple_of(fails));
            if found.len() == before {
                return (found, calls);
            }
            calls.push(found.len() - before);
        }
    }

    #[test]
    fn each_file_has_its_place_whoever_lists_it() {
        let folder = std::env::temp_dir().join(format!("chunkwise-many-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let paths: Vec<_> = (0..40).map(|number| folder.join(number.to_string())).collect();
        for path in paths.iter().step_by(2) {
            std::fs::write(path, b"no HDF5 file").unwrap();
        }
        for threads in [0, 1, 2, 7, 100] {
            for fails in [1, 3, 41] {
                let (listed, calls) = all(&paths, threads, fails);
                assert_eq!(listed.len(), paths.len());
                assert!(calls.iter().all(|files| *files <= fails));
                for (number, listed) in listed.iter().enumerate() {
                    assert_eq!(matches!(listed, Ok(None)), number % 2 == 0);
                    assert_eq!(listed.is_err(), number % 2 == 1);
                }
            }
        }
        assert!(all(&[], 2, 1).0.is_empty());
        // A folder is no file.
        assert!(!matches!(all(std::slice::from_ref(&folder), 2, 2).0[..], [Ok(Some(_))]));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_panic_keeps_nobody_waiting() {
        let listings = Listings::new(vec![PathBuf::from("x")]);
        let outcome = std::panic::catch_unwind(|| {
            let mut state = listings.state();
            state.begun = 1;
            state.ready.push_back(None);
            drop(state);
            let _place = Place { listings: &listings, number: 0, thread: 1, listed: Ok(None) };
            panic!();
        });
        assert!(outcome.is_err());
        assert!(matches!(listings.next(), Some((1, Ok(None)))));
    }
}
