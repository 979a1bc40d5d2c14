//! What does a program ask of which dataset, and how long does it wait for that?
//!
//! `CHUNKWISE_TRACE` names a folder, into which each process writes what it has read when it ends.
//! With `CHUNKWISE_OBSERVE` nothing is answered here: times are those of the program's libhdf5.

use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use chunkwise_libhdf5::binding::{DEFAULT, herr_t};
use chunkwise_select::{Hyperslab, Selection};

use crate::callee::Callee;
use crate::reading::Call;
use crate::report::Line;
use crate::walked::Walked;
use crate::{datasets, spaces};

/// What one dataset was asked for.
#[derive(Debug, Default)]
pub struct Traced {
    shape: Vec<u64>,
    item_nbytes: u64,
    reads: u64,
    nbytes: u64,
    seconds: f64,
    walked: Walked,
}

/// The folder for what is traced; None without one.
pub fn folder() -> Option<&'static str> {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    WANTED
        .get_or_init(|| std::env::var("CHUNKWISE_TRACE").ok())
        .as_deref()
        .filter(|folder| !folder.is_empty())
}

/// Whether somebody wants to know.
pub fn is_wanted() -> bool {
    folder().is_some()
}

/// Whether the engine is not to answer.
pub fn observes_only() -> bool {
    static ONLY: OnceLock<bool> = OnceLock::new();
    *ONLY.get_or_init(|| std::env::var_os("CHUNKWISE_OBSERVE").is_some_and(|v| !v.is_empty()))
}

/// Carry a call out, and note what it asked for and how long it took.
///
/// # Safety
/// The program's own call of this library's `H5Dread`.
pub unsafe fn timed(callee: &Callee, call: &Call, carry_out: impl FnOnce() -> herr_t) -> herr_t {
    let start = Instant::now();
    let status = carry_out();
    let seconds = start.elapsed().as_secs_f64();
    if status >= 0 {
        // SAFETY: the caller's contract.
        unsafe { note(callee, call, seconds) };
    }
    status
}

/// # Safety
/// As [`timed`].
unsafe fn note(callee: &Callee, call: &Call, seconds: f64) -> Option<()> {
    // SAFETY: the caller's contract.
    let known = unsafe { datasets::known(callee, call.dataset, || false)? };
    let line = known.line.as_ref()?;
    let bound = callee.bound().ok()?;
    let space = bound.library.locked(|api| {
        let space = call.file_space;
        // SAFETY: a handle that is none makes the calls fail.
        (space != DEFAULT).then(|| unsafe { spaces::space_of(api, &bound.more, space) })
    });
    let whole;
    let (slab, len) = match &space {
        None => {
            whole = Hyperslab::all(&known.shape);
            (Some(&whole), whole.len().unwrap_or(0))
        }
        Some(Ok(space)) => match &space.selected {
            Selection::Hyperslab(slab) => (Some(slab), space.len),
            _ => (None, space.len),
        },
        Some(Err(_)) => (None, 0),
    };
    line.traced(|traced| {
        traced.shape = known.shape.to_vec();
        traced.item_nbytes = known.item_nbytes;
        traced.reads += 1;
        traced.nbytes = traced.nbytes.saturating_add(len.saturating_mul(known.item_nbytes));
        traced.seconds += seconds;
        traced.walked.note(&known.shape, slab);
    });
    Some(())
}

/// Write what was traced, as JSON, into the folder.
pub fn finish<'l>(lines: impl Iterator<Item = (&'l (String, String), &'l Line)>) {
    let Some(folder) = folder() else { return };
    let program = std::env::args_os().next().unwrap_or_default();
    let mut text = format!(
        "{{\"program\": {}, \"process\": {}, \"datasets\": [",
        quoted(&program.to_string_lossy()),
        std::process::id()
    );
    for (i, ((file, dataset), line)) in lines.enumerate() {
        let file = std::fs::canonicalize(file)
            .map_or_else(|_| file.clone(), |path| path.to_string_lossy().into_owned());
        let (ours, reason) = line.by_whom();
        line.traced(|traced| {
            let _ = write!(
                text,
                "{}{{\"file\": {}, \"dataset\": {}, \"shape\": {:?}, \"item_nbytes\": {}, \
                 \"reads\": {}, \"nbytes\": {}, \"seconds\": {:e}, \"by_chunkwise\": {ours}, \
                 \"reason\": {}, {}}}",
                if i > 0 { ", " } else { "" },
                quoted(&file),
                quoted(dataset),
                traced.shape,
                traced.item_nbytes,
                traced.reads,
                traced.nbytes,
                traced.seconds,
                quoted(&reason),
                traced.walked.json(),
            );
        });
    }
    text.push_str("]}\n");
    // Nobody is left to be told of a failure; the reader misses the file.
    let _ = std::fs::write(format!("{folder}/{}.json", std::process::id()), text);
}

/// A string as JSON has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// What is counted, locked; by a thread that forked another process it may be locked for ever.
pub fn locked<T>(place: &Mutex<T>, work: impl FnOnce(&mut T)) {
    for _ in 0..10_000 {
        match place.try_lock() {
            Ok(mut held) => return work(&mut held),
            Err(std::sync::TryLockError::Poisoned(held)) => {
                return work(&mut held.into_inner());
            }
            Err(std::sync::TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_escaped() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
    }
}
