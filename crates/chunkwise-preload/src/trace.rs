//! What does a program ask of which dataset, and how long does it wait for that?
//!
//! `CHUNKWISE_TRACE` names a folder, into which each process writes what it has read when it ends.
//! With `CHUNKWISE_OBSERVE` nothing is answered here: times are those of the program's libhdf5.

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use chunkwise_libhdf5::binding::{DEFAULT, herr_t, hid_t};
use chunkwise_libhdf5::decodes;
use chunkwise_select::{Hyperslab, Selection};

use crate::callee::Callee;
use crate::counted::{Line, Operation, Tally, Traced};
use crate::datasets::{Known, TracedStorage};
use crate::walked::Span;
use crate::{datasets, spaces, wishes};

/// Carry a call out, and note what it asked for and how long it took.
///
/// # Safety
/// The program's own call of this library's `H5Dread` or `H5Dwrite`; `carry_out` says by whom it was
/// answered.
pub unsafe fn timed(
    operation: Operation,
    callee: &Callee,
    dataset: hid_t,
    file_space: hid_t,
    carry_out: impl FnOnce() -> (herr_t, Answered),
) -> herr_t {
    // SAFETY: the caller's contract.
    let known = unsafe { datasets::known(callee, dataset, || false) };
    let storage = known.as_ref().and_then(|known| known.traced.as_ref());
    let before = decoded(storage);
    let first = began().0;
    let start = Instant::now();
    let (status, answered) = carry_out();
    let (began, within) =
        (start.duration_since(first).as_secs_f64(), start.elapsed().as_secs_f64());
    let span = Span { began, ended: began + within, within };
    if status >= 0
        && let Some(known) = &known
    {
        let decodes = (answered == Answered::ByLibhdf5).then(|| {
            let mut decodes = decoded(storage);
            for (now, before) in decodes.iter_mut().zip(&before) {
                *now = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
            }
            decodes
        });
        // SAFETY: as above, of a call that went well.
        unsafe { note(operation, callee, known, file_space, span, decodes.as_ref()) };
    }
    status
}

/// When the first traced call began: by this process's clock, and in seconds of Unix time.
fn began() -> &'static (Instant, f64) {
    static BEGAN: OnceLock<(Instant, f64)> = OnceLock::new();
    BEGAN.get_or_init(|| {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        (Instant::now(), unix.map_or(0.0, |since| since.as_secs_f64()))
    })
}

/// By whom a call was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    Here,
    ByLibhdf5,
}

/// So many filters of a dataset are told.
const MOST_FILTERS: usize = 6;
/// By filter: how often it has decoded, and for how many nanoseconds.
type Decodes = [(u64, u64); MOST_FILTERS];

fn decoded(storage: Option<&TracedStorage>) -> Decodes {
    let mut found = Decodes::default();
    if let Some(storage) = storage {
        for (one, filter) in found.iter_mut().zip(&storage.filters) {
            *one = decodes(filter.number);
        }
    }
    found
}

/// # Safety
/// As [`timed`], of a call that went well.
unsafe fn note(
    operation: Operation,
    callee: &Callee,
    known: &Known,
    file_space: hid_t,
    span: Span,
    decodes: Option<&Decodes>,
) -> Option<()> {
    let line = known.line.as_ref()?;
    let bound = callee.bound().ok()?;
    // It was used just now: nothing fails, and leaves no error to the program.
    let space = (file_space != DEFAULT)
        // SAFETY: a live handle.
        .then(|| unsafe { spaces::space_of(&bound.more, file_space) });
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
    line.traced(operation, |traced| {
        if traced.calls == 0 {
            traced.shape = known.shape.to_vec();
            traced.item_nbytes = known.item_nbytes;
            traced.chunk = known.traced.as_ref().map_or_else(Vec::new, |it| it.chunk.to_vec());
        }
        traced.calls += 1;
        traced.nbytes = traced.nbytes.saturating_add(len.saturating_mul(known.item_nbytes));
        traced.seconds += span.within;
        traced.walked.note(&known.shape, slab, span);
        if let (Some(storage), Some(decodes)) = (&known.traced, decodes) {
            note_chunks(traced, storage, slab, decodes);
        }
    });
    Some(())
}

/// Note what libhdf5 did with chunks.
fn note_chunks(
    traced: &mut Traced,
    storage: &TracedStorage,
    slab: Option<&Hyperslab>,
    decodes: &Decodes,
) {
    if traced.filters.is_empty() {
        let across = |(&size, &chunk): (&u64, &u64)| size.div_ceil(chunk.max(1));
        traced.chunks =
            traced.shape.iter().zip(&storage.chunk).map(across).fold(1, u64::saturating_mul);
        let told = storage.filters.iter().take(MOST_FILTERS);
        traced.filters = told.map(|filter| (filter.name.clone(), 0, 0)).collect();
    }
    // A chunk that is loaded is decoded once by each filter that was not left out for it.
    let loaded = decodes.iter().map(|decoded| decoded.0).max().unwrap_or(0);
    traced.loaded += loaded;
    traced.touched += slab.map_or(loaded, |slab| touched(slab, &storage.chunk)).max(loaded);
    for (filter, decoded) in traced.filters.iter_mut().zip(decodes) {
        filter.1 += decoded.0;
        filter.2 += decoded.1;
    }
}

/// Chunks that a box touches; of one with gaps between its blocks, no fewer.
fn touched(slab: &Hyperslab, chunk: &[u64]) -> u64 {
    let along = slab.axes().iter().zip(chunk).map(|(axis, &chunk)| {
        let chunk = chunk.max(1);
        let Some(last) = axis.len().checked_sub(1) else { return 0 };
        let spanned = axis.index_of(last) / chunk - axis.start() / chunk + 1;
        spanned.min(axis.count().saturating_mul(axis.block().div_ceil(chunk) + 1))
    });
    along.fold(1, u64::saturating_mul)
}

/// Write what was traced, as JSON, into the folder.
pub fn finish<'l>(lines: impl Iterator<Item = (&'l (String, String), &'l Line)>) {
    let Some(folder) = wishes::trace() else { return };
    let program = std::env::args_os().next().unwrap_or_default();
    let mut text = format!(
        "{{\"program\": {}, \"process\": {}, \"began\": {:.6}, \"datasets\": [",
        quoted(&program.to_string_lossy()),
        std::process::id(),
        began().1,
    );
    let mut comma = "";
    for ((file, dataset), line) in lines {
        let file = std::fs::canonicalize(file)
            .map_or_else(|_| file.clone(), |path| path.to_string_lossy().into_owned());
        let operations =
            [("read", Operation::Read, &line.reads), ("write", Operation::Write, &line.writes)];
        for (name, operation, tally) in operations {
            line.traced(operation, |traced| {
                if traced.calls > 0 {
                    let _ = write!(
                        text,
                        "{comma}{{\"operation\": \"{name}\", \"file\": {}, \"dataset\": {}, {}}}",
                        quoted(&file),
                        quoted(dataset),
                        json(traced, tally),
                    );
                    comma = ", ";
                }
            });
        }
    }
    text.push_str("]}\n");
    // Nobody is left to be told of a failure; the reader misses the file.
    let _ = std::fs::write(format!("{folder}/{}.json", std::process::id()), text);
}

fn json(traced: &Traced, tally: &Tally) -> String {
    let (ours, reason) = tally.by_whom();
    format!(
        "\"shape\": {:?}, \"item_nbytes\": {}, \"calls\": {}, \"nbytes\": {}, \"seconds\": {:e}, \
         \"by_chunkwise\": {ours}, \"reason\": {}, \"chunk\": {:?}, \"chunks\": {}, \
         \"touched\": {}, \"loaded\": {}, \"filters\": [{}], {}",
        traced.shape,
        traced.item_nbytes,
        traced.calls,
        traced.nbytes,
        traced.seconds,
        quoted(&reason),
        traced.chunk,
        traced.chunks,
        traced.touched,
        traced.loaded,
        filters(&traced.filters),
        traced.walked.json(),
    )
}

fn filters(filters: &[(String, u64, u64)]) -> String {
    let one = |(name, decodes, nanoseconds): &(String, u64, u64)| {
        let seconds = *nanoseconds as f64 / 1e9;
        let name = quoted(name);
        format!("{{\"name\": {name}, \"decodes\": {decodes}, \"seconds\": {seconds:e}}}")
    };
    filters.iter().map(one).collect::<Vec<_>>().join(", ")
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
