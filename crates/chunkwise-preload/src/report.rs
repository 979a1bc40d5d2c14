//! What was read, by whom, and why not by the engine?
//!
//! `CHUNKWISE_REPORT` asks for it: `-` for standard error, or a file to which each process adds
//! its part when it ends.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::FromRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use crate::counted::{self, Counted};
use crate::traced::Tally;
use crate::{callee, datasets, environment, trace};

/// Standard error, kept for the end: programs close theirs before.
static STANDARD_ERROR: OnceLock<(File, Option<Identity>)> = OnceLock::new();

/// Device and inode.
type Identity = (u64, u64);

fn identity(file: &File) -> Option<Identity> {
    file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Called by the loader before the program begins.
extern "C" fn begin() {
    datasets::watch_forks();
    // What is found once is found now: no forked child finds another thread in the midst of it.
    environment::look();
    if environment::report() == Some("-") {
        // Above the numbers that programs give to files themselves; not for what it starts.
        // SAFETY: no memory is passed.
        let kept = unsafe { libc::fcntl(2, libc::F_DUPFD_CLOEXEC, 100) };
        if kept >= 0 {
            // SAFETY: made above, and nobody else's.
            let kept = unsafe { File::from_raw_fd(kept) };
            let whose = identity(&kept);
            let _ = STANDARD_ERROR.set((kept, whose));
        }
    }
}

/// Called by the loader when the process ends as programs do.
extern "C" fn finish() {
    if counted::is_interrupted() {
        return;
    }
    let counted = counted::get();
    if let (Some(folder), Some(counted)) = (environment::trace(), counted) {
        trace::finish(folder, counted);
    }
    let Some(to) = environment::report() else { return };
    let text = text(counted);
    if text.is_empty() {
        return;
    }
    // Nobody is left who could read of a failure.
    let _ = if to == "-" {
        // A program may have closed it, and opened a file of its own under its number.
        match STANDARD_ERROR.get() {
            Some((kept, whose)) if identity(kept) == *whose => {
                let mut kept = kept;
                kept.write_all(text.as_bytes())
            }
            _ => std::io::stderr().write_all(text.as_bytes()),
        }
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

fn text(counted: Option<&Counted>) -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let who = format!("chunkwise: {} (process {})", program.to_string_lossy(), std::process::id());
    let mut text = String::new();
    let Some(counted) = counted else {
        let run = std::env::var("CHUNKWISE_RUN").ok();
        // Only of the program itself: most of what it starts has nothing to do with HDF5.
        if run.as_deref() == Some(&std::process::id().to_string()) {
            let what = if callee::ANY_CALL.load(Ordering::Relaxed) {
                "read and wrote no dataset"
            } else {
                "made no call of HDF5 that could be seen: it does not use HDF5, is linked \
                 statically with it, looks its functions up by itself, or its files are no HDF5 \
                 files (netCDF-3)"
            };
            let _ = writeln!(text, "{who} {what}.");
        }
        return text;
    };
    let _ = writeln!(text, "{who}:");
    for ((file, dataset), (line, _)) in counted.lines().iter() {
        let parts = [part("read", &line.reads), part("write", &line.writes)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let _ = writeln!(text, "  {file}: {dataset}: {}", parts.join("; "));
    }
    for (path, reason) in counted.unbound().iter() {
        let _ = writeln!(text, "  {path} is left alone: {reason}");
    }
    text
}

/// `3 reads by chunkwise (0.5 MiB), 1 by libhdf5: why`; None without any.
fn part(verb: &str, tally: &Tally) -> Option<String> {
    let (ours, nbytes, theirs) = tally.counts();
    let mib = nbytes as f64 / f64::from(1 << 20);
    let calls = |n: u64| format!("{n} {verb}{}", if n == 1 { "" } else { "s" });
    let (_, reason) = tally.by_whom();
    match (ours, theirs) {
        (0, 0) => None,
        (0, _) => Some(format!("{} by libhdf5: {reason}", calls(theirs))),
        (_, 0) => Some(format!("{} by chunkwise ({mib:.1} MiB)", calls(ours))),
        _ => Some(format!(
            "{} by chunkwise ({mib:.1} MiB), {theirs} by libhdf5: {reason}",
            calls(ours)
        )),
    }
}
