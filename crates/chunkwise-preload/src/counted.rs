//! What is counted of what this process reads?
//!
//! All of it is in one place ([`Counted`]), which a forked child leaves to its parent: the child begins
//! with another, so that it reports only its own, and finds no lock that a thread of the parent held.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{SystemTime, UNIX_EPOCH};

use chunkwise_engine::Published;
use chunkwise_libhdf5::LibraryVersion;

use crate::environment;
use crate::queues::{Reader, Writer, collect, queue};
use crate::traced::{Described, Noted, Operation, Tally, Traced, TracedStorage};
use crate::walked::Span;

/// What is counted of one dataset.
#[derive(Default)]
pub struct Line {
    pub reads: Tally,
    pub writes: Tally,
    /// Its place in [`Merged::traced`].
    number: usize,
}

/// A dataset as the program has opened it: all that a trace says of it besides its calls.  Handles for
/// which that is the same share one.
pub struct Opened {
    counted: &'static Counted,
    pub line: &'static Line,
    pub described: Described,
}

/// All that this process counts.
pub struct Counted {
    process: u32,
    /// When its first dataset was looked at: as [`now`] says it, and in seconds of Unix time.
    pub began: (u64, f64),
    /// The version of the libhdf5 of that dataset.
    pub version: OnceLock<LibraryVersion>,
    lines: Mutex<Lines>,
    unbound: Mutex<BTreeMap<String, String>>,
    /// Queues of threads that [`Merged`] does not have yet.
    newcomers: Mutex<Vec<Reader<Noted>>>,
    merged: Mutex<Merged>,
}

/// By file and name.
pub type Lines = BTreeMap<(String, String), (&'static Line, Vec<&'static Opened>)>;

/// What is noted, brought together from all threads.
#[derive(Default)]
pub struct Merged {
    readers: Vec<Reader<Noted>>,
    /// Of each line its reads and its writes.
    traced: Vec<[Traced; 2]>,
}

static COUNTED: Published<Counted> = Published::nothing();

thread_local! {
    /// Where this thread notes its calls, and for which process.
    static OWN: RefCell<Option<(&'static Counted, Writer<Noted>)>> = const { RefCell::new(None) };
    /// Whether this thread has a lock of these, or is about to take one.
    static LOCKS: Cell<bool> = const { Cell::new(false) };
}

/// Do what takes a lock.
fn locking<T>(work: impl FnOnce() -> T) -> T {
    // A thread that ends has nothing to say it in.
    let say = |locks| LOCKS.try_with(|own| own.replace(locks)).unwrap_or(false);
    let before = say(true);
    let done = work();
    say(before);
    done
}

/// Whether this is a signal handler that has interrupted work under one of the locks.
pub fn is_interrupted() -> bool {
    LOCKS.try_with(Cell::get).unwrap_or(false)
}

/// What this process has counted; None if there is nothing.
pub fn get() -> Option<&'static Counted> {
    // One that was forked in another way than by `fork` has its parent's.
    COUNTED.get().filter(|counted| counted.process == std::process::id())
}

/// Runs in the child right after `fork`.
pub fn forget_parent() {
    COUNTED.forget();
}

fn get_or_begin() -> &'static Counted {
    COUNTED.get_or_make(|| {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        Counted {
            process: std::process::id(),
            began: (now(), unix.map_or(0.0, |since| since.as_secs_f64())),
            version: OnceLock::new(),
            lines: Mutex::default(),
            unbound: Mutex::default(),
            newcomers: Mutex::default(),
            merged: Mutex::default(),
        }
    })
}

/// Whatever a panic has left.
fn locked<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A dataset with this file and name.  What is made here stays until the process ends: there is little of
/// it, and threads need not agree on when it goes.
pub fn opened(
    version: LibraryVersion,
    names: (String, String),
    item_nbytes: u64,
    storage: Option<TracedStorage>,
) -> &'static Opened {
    let counted = get_or_begin();
    locking(|| {
        counted.version.get_or_init(|| version);
        let mut lines = locked(&counted.lines);
        let number = lines.len();
        let (line, alike) = lines.entry(names).or_insert_with(|| {
            (Box::leak(Box::new(Line { number, ..Line::default() })), Vec::new())
        });
        let is_it = |one: &&&Opened| {
            one.described.item_nbytes == item_nbytes && one.described.storage == storage
        };
        if let Some(&opened) = alike.iter().find(is_it) {
            return opened;
        }
        let described = Described { number: line.number, item_nbytes, storage };
        let opened = Box::leak(Box::new(Opened { counted, line, described }));
        alike.push(opened);
        opened
    })
}

/// A libhdf5 that the engine cannot be used with.
pub fn unbound(path: &str, reason: &str) {
    if !environment::is_reporting() {
        return;
    }
    let counted = get_or_begin();
    locking(|| {
        let mut unbound = locked(&counted.unbound);
        unbound.entry(path.to_string()).or_insert_with(|| reason.to_string());
    });
}

impl Opened {
    /// When a call for it began and ended, as a trace says it.
    pub fn span(&self, start: u64, end: u64) -> Span {
        let seconds = |nanoseconds: u64| nanoseconds as f64 * 1e-9;
        let since = |when: u64| seconds(when.saturating_sub(self.counted.began.0));
        Span { began: since(start), ended: since(end), within: seconds(end.saturating_sub(start)) }
    }
}

/// Nanoseconds by a clock that only goes on.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Note a call.  This waits for nobody.
#[inline]
pub fn note(opened: &'static Opened, noted: impl FnOnce() -> Noted) {
    let counted = opened.counted;
    if !COUNTED.get().is_some_and(|now| std::ptr::eq(now, counted)) {
        // A callback has forked within this call, which is the parent's.
        return;
    }
    let mut noted = Some(noted);
    let is_full = OWN.try_with(|own| {
        let mut own = own.try_borrow_mut().ok()?;
        let (_, writer) = match &mut *own {
            Some(own) if std::ptr::eq(own.0, counted) => own,
            own => own.insert((counted, counted.writer())),
        };
        noted.take().map(|noted| writer.write(noted))
    });
    if let Some(noted) = noted {
        // The thread is at its end, and has no place of its own any more.
        counted.writer().write(noted);
    }
    if is_full.ok().flatten() == Some(true) {
        counted.merge();
    }
}

impl Counted {
    /// A queue for a thread.
    fn writer(&self) -> Writer<Noted> {
        let (writer, reader) = queue();
        locking(|| locked(&self.newcomers).push(reader));
        writer
    }

    /// Bring together what all threads have noted, unless another one does that.
    fn merge(&self) {
        locking(|| match self.merged.try_lock() {
            Ok(mut merged) => self.merge_into(&mut merged),
            Err(TryLockError::Poisoned(merged)) => self.merge_into(&mut merged.into_inner()),
            // It takes this thread's calls, or they are taken next time.
            Err(TryLockError::WouldBlock) => {}
        });
    }

    fn merge_into(&self, merged: &mut Merged) {
        let Merged { readers, traced } = merged;
        readers.append(&mut locked(&self.newcomers));
        let ended = |noted: &Noted| noted.span.ended;
        collect(readers, ended, |noted| {
            let number = noted.dataset.number;
            if traced.len() <= number {
                traced.resize_with(number + 1, Default::default);
            }
            traced[number][noted.operation as usize].add(noted);
        });
    }

    /// What is counted of each dataset.
    pub fn lines(&self) -> MutexGuard<'_, Lines> {
        locked(&self.lines)
    }

    /// The libraries that the engine cannot be used with, and why.
    pub fn unbound(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        locked(&self.unbound)
    }

    /// All that is noted until now.
    pub fn merged(&self) -> MutexGuard<'_, Merged> {
        let mut merged = locked(&self.merged);
        self.merge_into(&mut merged);
        merged
    }
}

impl Merged {
    /// What is noted of the reads or the writes of a line; None if that is nothing.
    pub fn traced(&self, line: &Line, operation: Operation) -> Option<&Traced> {
        let traced = &self.traced.get(line.number)?[operation as usize];
        (!traced.is_empty()).then_some(traced)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use chunkwise_select::{Dims, Hyperslab};

    use super::*;

    const VERSION: LibraryVersion = LibraryVersion(1, 14, 0);

    fn dataset(name: &str) -> &'static Opened {
        opened(VERSION, ("file".to_string(), name.to_string()), 4, None)
    }

    /// Note reads of one row after another, of as many rows.
    fn read_rows(opened: &'static Opened, count: u64) {
        for row in 0..count {
            let start = now();
            note(opened, || Noted {
                dataset: &opened.described,
                operation: Operation::Read,
                shape: Dims::from_slice(&[count]),
                chosen: Hyperslab::new(&[count], &[row], &[1], &[1], &[1]).ok().into(),
                nbytes: 4,
                span: opened.span(start, now()),
                decodes: None,
            });
        }
    }

    fn calls(merged: &Merged, opened: &Opened) -> Option<String> {
        let traced = merged.traced(opened.line, Operation::Read)?;
        let json = traced.json(&opened.line.reads);
        Some(json.split(", ").find(|part| part.starts_with("\"calls\""))?.to_string())
    }

    #[test]
    fn calls_are_noted_while_another_thread_merges() {
        let opened = dataset("merging");
        let merging = locked(&opened.counted.merged);
        let others = (0..4).map(|_| thread::spawn(|| read_rows(opened, 1000)));
        // They end, though this one merges all the time.
        others.collect::<Vec<_>>().into_iter().for_each(|other| assert!(other.join().is_ok()));
        drop(merging);
        let merged = opened.counted.merged();
        assert_eq!(calls(&merged, opened).as_deref(), Some("\"calls\": 4000"));
        assert!(merged.traced(opened.line, Operation::Write).is_none());
    }

    #[test]
    fn a_child_waits_for_no_thread_of_its_parent() {
        let theirs = dataset("parent");
        read_rows(theirs, 10);
        let parent = theirs.counted;
        // SAFETY: the child calls only what a program may, and ends without unwinding.
        let child = unsafe {
            let held = (
                locked(&parent.merged),
                locked(&parent.lines),
                locked(&parent.unbound),
                locked(&parent.newcomers),
            );
            let child = libc::fork();
            if child == 0 {
                libc::alarm(60);
                let own = dataset("child");
                // One that the parent has begun is not the child's.
                read_rows(theirs, 10);
                read_rows(own, 1000);
                let merged = own.counted.merged();
                let is_right = calls(&merged, own).as_deref() == Some("\"calls\": 1000")
                    && own.counted.lines().len() == 1
                    && own.counted.unbound().is_empty()
                    && get().is_some_and(|counted| std::ptr::eq(counted, own.counted));
                libc::_exit(i32::from(!is_right));
            }
            drop(held);
            child
        };
        let mut status = -1;
        // SAFETY: a place for the answer.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "it waited for ever, or reported what is not its own");
        assert_eq!(calls(&parent.merged(), theirs).as_deref(), Some("\"calls\": 10"));
    }
}
