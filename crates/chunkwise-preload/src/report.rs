//! What was read, by whom, and why not by the engine?
//!
//! `CHUNKWISE_REPORT` asks for it: `-` for standard error, or a file to which each process adds
//! its part when it ends.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::FromRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::callee;
use crate::trace::{self, Traced};

/// What is counted of one dataset.
#[derive(Default)]
pub struct Line {
    ours: AtomicU64,
    ours_nbytes: AtomicU64,
    theirs: AtomicU64,
    reason: Mutex<String>,
    traced: Mutex<Traced>,
}

impl Line {
    /// A read of so many bytes by the engine.
    pub fn ours(&self, nbytes: u64) {
        self.ours.fetch_add(1, Ordering::Relaxed);
        self.ours_nbytes.fetch_add(nbytes, Ordering::Relaxed);
    }

    /// Look at what is traced of it, or change it.
    pub fn traced(&self, work: impl FnOnce(&mut Traced)) {
        trace::locked(&self.traced, work);
    }

    /// Reads by the engine, and the first reason for one that was passed on.
    pub fn by_whom(&self) -> (u64, String) {
        let mut reason = String::new();
        trace::locked(&self.reason, |first| reason.clone_from(first));
        (self.ours.load(Ordering::Relaxed), reason)
    }

    /// A read that was passed on, for the first time seen for this reason.
    pub fn theirs(&self, reason: &str) {
        self.theirs.fetch_add(1, Ordering::Relaxed);
        let mut first = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_empty() {
            reason.clone_into(&mut first);
        }
    }
}

type Lines = BTreeMap<(String, String), Arc<Line>>;

static LINES: Mutex<Lines> = Mutex::new(BTreeMap::new());
static UNBOUND: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

fn wanted() -> Option<&'static str> {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    WANTED
        .get_or_init(|| std::env::var("CHUNKWISE_REPORT").ok())
        .as_deref()
        .filter(|to| !to.is_empty())
}

/// Whether somebody wants to know.
pub fn is_wanted() -> bool {
    wanted().is_some() || trace::is_wanted()
}

/// Whether this process was forked from one that has counted already.
pub static FORKED: AtomicBool = AtomicBool::new(false);

/// The line of a dataset, by its file and name.
pub fn line(names: (String, String)) -> Arc<Line> {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if FORKED.swap(false, Ordering::Relaxed) {
        lines.clear();
    }
    Arc::clone(lines.entry(names).or_default())
}

/// A libhdf5 that the engine cannot be used with.
pub fn unbound(path: &str, reason: &str) {
    if is_wanted() {
        let mut unbound = UNBOUND.lock().unwrap_or_else(PoisonError::into_inner);
        unbound.entry(path.to_string()).or_insert_with(|| reason.to_string());
    }
}

/// Standard error, kept for the end: programs close theirs before.
static STANDARD_ERROR: AtomicI32 = AtomicI32::new(-1);

/// Called by the loader before the program begins.
extern "C" fn begin() {
    if wanted() == Some("-") {
        // Above the numbers that programs give to files themselves; not for what it starts.
        // SAFETY: no memory is passed.
        let kept = unsafe { libc::fcntl(2, libc::F_DUPFD_CLOEXEC, 100) };
        STANDARD_ERROR.store(kept, Ordering::Relaxed);
    }
}

/// Called by the loader when the process ends as programs do.
extern "C" fn finish() {
    if FORKED.load(Ordering::Relaxed) {
        // All that was counted is the parent's.
        return;
    }
    if trace::is_wanted() {
        let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        if !lines.is_empty() {
            trace::finish(lines.iter().map(|(names, line)| (names, &**line)));
        }
    }
    let Some(to) = wanted() else { return };
    let text = text();
    if text.is_empty() {
        return;
    }
    let kept = STANDARD_ERROR.load(Ordering::Relaxed);
    // Nobody is left to be told of a failure.
    let _ = if to == "-" {
        // SAFETY: ours, or no descriptor at all, to which writing fails.
        let mut file = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(kept.max(2)) });
        file.write_all(text.as_bytes())
    } else {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(to);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
    };
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;
#[used]
#[unsafe(link_section = ".fini_array")]
static FINISH: extern "C" fn() = finish;

fn text() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let who = format!("chunkwise: {} (process {})", program.to_string_lossy(), std::process::id());
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let unbound = UNBOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    if lines.is_empty() && unbound.is_empty() {
        let asked = std::env::var("CHUNKWISE_RUN").ok();
        // Only of the program itself: most of what it starts has nothing to do with HDF5.
        if asked.as_deref() == Some(&std::process::id().to_string()) {
            let what = if callee::ANY_CALL.load(Ordering::Relaxed) {
                "read no dataset"
            } else {
                "made no call of HDF5 that could be seen: it does not use HDF5, is linked \
                 statically with it, or looks its functions up by itself"
            };
            let _ = writeln!(text, "{who} {what}.");
        }
        return text;
    }
    let _ = writeln!(text, "{who} read:");
    for ((file, dataset), line) in lines.iter() {
        let (ours, nbytes) =
            (line.ours.load(Ordering::Relaxed), line.ours_nbytes.load(Ordering::Relaxed));
        let theirs = line.theirs.load(Ordering::Relaxed);
        let _ = write!(text, "  {file}: {dataset}: ");
        if ours > 0 {
            let mib = nbytes as f64 / f64::from(1 << 20);
            let _ = write!(text, "{ours} reads by chunkwise ({mib:.1} MiB)");
        }
        if theirs > 0 {
            let and = if ours > 0 { ", " } else { "" };
            let reason = line.reason.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = write!(text, "{and}{theirs} by libhdf5: {reason}");
        }
        text.push('\n');
    }
    for (path, reason) in unbound.iter() {
        let _ = writeln!(text, "  {path} is left alone: {reason}");
    }
    text
}
