//! What does a program ask of which dataset, and how long does it wait for that?
//!
//! `CHUNKWISE_TRACE` names a folder, into which each process writes what it has read when it ends.
//! With `CHUNKWISE_OBSERVE` nothing is answered here: times are those of the program's libhdf5.

use std::fmt::Write as _;
use std::time::Instant;

use chunkwise_libhdf5::binding::{DEFAULT, herr_t, hid_t};
use chunkwise_select::{Hyperslab, Selection};

use crate::callee::Callee;
use crate::counted::Line;
use crate::{datasets, spaces, wishes};

/// Carry a call out, and note what it asked for and how long it took.
///
/// # Safety
/// The program's own call of this library's `H5Dread`.
pub unsafe fn timed(
    callee: &Callee,
    dataset: hid_t,
    file_space: hid_t,
    carry_out: impl FnOnce() -> herr_t,
) -> herr_t {
    let start = Instant::now();
    let status = carry_out();
    let seconds = start.elapsed().as_secs_f64();
    if status >= 0 {
        // SAFETY: the caller's contract.
        unsafe { note(callee, dataset, file_space, seconds) };
    }
    status
}

/// # Safety
/// As [`timed`].
unsafe fn note(callee: &Callee, dataset: hid_t, file_space: hid_t, seconds: f64) -> Option<()> {
    // SAFETY: the caller's contract.
    let known = unsafe { datasets::known(callee, dataset, || false)? };
    let line = known.line.as_ref()?;
    let bound = callee.bound().ok()?;
    let space = bound.library.locked(|api| {
        // SAFETY: a handle that is none makes the calls fail.
        (file_space != DEFAULT).then(|| unsafe { spaces::space_of(api, &bound.more, file_space) })
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
    let Some(folder) = wishes::trace() else { return };
    let program = std::env::args_os().next().unwrap_or_default();
    let mut text = format!(
        "{{\"program\": {}, \"process\": {}, \"datasets\": [",
        quoted(&program.to_string_lossy()),
        std::process::id()
    );
    for (i, ((file, dataset), line)) in lines.enumerate() {
        let file = std::fs::canonicalize(file)
            .map_or_else(|_| file.clone(), |path| path.to_string_lossy().into_owned());
        let (ours, reason) = line.reads.by_whom();
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

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_escaped() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
    }
}
