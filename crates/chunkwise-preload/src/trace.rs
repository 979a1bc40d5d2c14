//! What does a program ask of which dataset, and how long does it wait for that?
//!
//! `CHUNKWISE_TRACE` names a folder, into which each process writes what it has read when it ends.
//! With `CHUNKWISE_OBSERVE` nothing is answered here: times are those of the program's libhdf5.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use chunkwise_libhdf5::binding::{DEFAULT, herr_t, shape_of};
use chunkwise_libhdf5::{LibraryVersion, decodes};
use chunkwise_select::{Dims, Hyperslab};

use crate::call::Call;
use crate::callee::{Bound, Callee};
use crate::chosen::Chosen;
use crate::counted::{self, Counted};
use crate::datasets::{Held, Known};

use crate::traced::{Counts, Decodes, Noted, Operation, TracedStorage, quoted, touched};
use crate::walked::Span;
use crate::{datasets, environment, reading, selected, spaces};

/// Whether the program has ever changed the extents of a dataset (`H5Dset_extent`).
pub static RESIZED: AtomicBool = AtomicBool::new(false);

/// Carry a call out, and note what it selected and how long it took.
///
/// # Safety
/// The program's own call of this library's `H5Dread` or `H5Dwrite`; `carry_out` says by whom it was
/// answered.
pub unsafe fn timed(
    operation: Operation,
    callee: &Callee,
    call: &Call,
    carry_out: impl FnOnce() -> (herr_t, Answered),
) -> herr_t {
    // SAFETY: the caller's contract.
    let known = unsafe { known(callee, call) };
    let storage = known.as_ref().and_then(|known| known.storage());
    let before = storage.map(decoded);
    let start = counted::now();
    let (status, answered) = carry_out();
    let end = counted::now();
    if status >= 0
        && let Some(known) = &known
    {
        noted(|| {
            let decodes = match (storage, &before) {
                (Some(storage), Some(before)) if answered == Answered::ByLibhdf5 => {
                    Some(decoded_since(before, storage))
                }
                _ => None,
            };
            // SAFETY: as above, of a call that went well.
            let request = unsafe { request_of(callee, known, call)? };
            note(operation, known, request, known.opened?.span(start, end), decodes)
        });
    }
    status
}

/// As [`timed`], of a dataset that is read by one call with others, and is left to that call unless
/// `answer` answers it; says whether it does.
///
/// # Safety
/// As [`timed`].
pub unsafe fn tried(callee: &Callee, call: &Call, answer: impl FnOnce() -> bool) -> bool {
    // SAFETY: the caller's contract.
    let known = unsafe { known(callee, call) };
    let start = counted::now();
    let is_answered = answer();
    let end = counted::now();
    if is_answered && let Some(known) = &known {
        noted(|| {
            // SAFETY: as above.
            let request = unsafe { request_of(callee, known, call)? };
            note(Operation::Read, known, request, known.opened?.span(start, end), None)
        });
    }
    is_answered
}

/// Have libhdf5 read or write several datasets by one call, and note what was selected of each: the time is
/// divided by bytes, and what was decoded by the chunks that each touches.
///
/// # Safety
/// As [`timed`], of each.
pub unsafe fn together(
    operation: Operation,
    callee: &Callee,
    calls: &[Call],
    carry_out: impl FnOnce() -> herr_t,
) -> herr_t {
    // SAFETY: the caller's contract.
    let known = calls.iter().map(|call| unsafe { known(callee, call) });
    let known: Vec<Option<Held>> = known.collect();
    let known =
        || known.iter().zip(calls).filter_map(|(known, call)| Some((known.as_ref()?, call)));
    let before: Vec<_> = known().map(|(known, _)| known.storage().map(decoded)).collect();
    let start = counted::now();
    let status = carry_out();
    let end = counted::now();
    if status < 0 {
        return status;
    }
    noted(|| {
        // SAFETY: as above, of a call that went well.
        let parts =
            known().map(|(known, call)| Some((known, unsafe { request_of(callee, known, call)? })));
        let parts: Vec<(&Held, Request<'_>)> = parts.collect::<Option<_>>()?;
        let nbytes: f64 = parts.iter().map(|(known, request)| request.nbytes(known) as f64).sum();
        let mut shares = Vec::new();
        for (i, ((known, request), before)) in parts.iter().zip(&before).enumerate() {
            let share = if nbytes > 0.0 { request.nbytes(known) as f64 / nbytes } else { 0.0 };
            let since = |(storage, before)| decoded_since(before, storage);
            let mut decodes = known.storage().zip(before.as_ref()).map(since);
            let slots = known.storage().into_iter().flat_map(|storage| &storage.filters);
            for (decoded, slot) in
                decodes.iter_mut().flatten().flat_map(|counts| &mut **counts).zip(slots)
            {
                let has_it = |known: &Known| {
                    known.storage().is_some_and(|storage| storage.filters.contains(slot))
                };
                let touched = |(known, request): &(&Held, Request<'_>)| match has_it(known) {
                    true => request.touched(known).max(1),
                    false => 0,
                };
                let sum = |parts: &[_]| parts.iter().map(touched).fold(0, u64::saturating_add);
                let (first, last, all) = (sum(&parts[..i]), sum(&parts[..=i]), sum(&parts[..]));
                *decoded = (part(decoded.0, first, last, all), part(decoded.1, first, last, all));
            }
            shares.push((share, decodes));
        }
        for ((known, request), (share, decodes)) in parts.into_iter().zip(shares) {
            let Some(opened) = known.opened else { continue };
            let span = opened.span(start, end);
            let own = Span { within: span.within * share, ..span };
            note(operation, known, request, own, decodes);
        }
        Some(())
    });
    status
}

/// What of a number falls to `first..last` of this many, such that nothing is lost of it in all.
fn part(number: u64, first: u64, last: u64, of: u64) -> u64 {
    let up_to = |n: u64| (u128::from(number) * u128::from(n) / u128::from(of.max(1))) as u64;
    up_to(last).saturating_sub(up_to(first))
}

/// # Safety
/// As [`timed`].
unsafe fn known(callee: &Callee, call: &Call) -> Option<Held> {
    // A panic must not reach the program, here and below: the read is not traced then.
    // SAFETY: the caller's contract.
    let found = || unsafe { datasets::known(callee, call.dataset, || false) };
    catch_unwind(AssertUnwindSafe(found)).ok().flatten()
}

/// Note what a read selected.
fn noted(work: impl FnOnce() -> Option<()>) {
    let _ = catch_unwind(AssertUnwindSafe(work));
}

/// By whom a call was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    Here,
    ByLibhdf5,
}

fn decoded(storage: &TracedStorage) -> Counts {
    let mut found = Counts::default();
    for (one, filter) in found.iter_mut().zip(&storage.filters) {
        *one = decodes(filter.number);
    }
    found
}

/// What was decoded since; mostly nothing.
fn decoded_since(before: &Counts, storage: &TracedStorage) -> Decodes {
    let now = || storage.filters.iter().map(|filter| decodes(filter.number)).zip(before);
    if now().all(|(now, before)| now.0 == before.0) {
        return None;
    }
    let mut counts = Box::new(Counts::default());
    for (count, (now, before)) in counts.iter_mut().zip(now()) {
        *count = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
    }
    Some(counts)
}

/// What a read selected.
struct Request<'a> {
    /// Extents of the dataset.
    shape: Cow<'a, [u64]>,
    /// What of it.
    chosen: Chosen,
    /// Elements.
    len: u64,
}

impl Request<'_> {
    fn nbytes(&self, known: &Known) -> u64 {
        self.len.saturating_mul(known.item_nbytes)
    }

    /// Chunks that are touched, as far as that is known.
    fn touched(&self, known: &Known) -> u64 {
        let chunks = self.chosen.slab().zip(known.storage());
        chunks.map_or(0, |(slab, storage)| touched(&slab, &storage.chunk))
    }
}

/// # Safety
/// As [`timed`], of a call that went well.
unsafe fn request_of<'a>(callee: &Callee, known: &'a Known, call: &Call) -> Option<Request<'a>> {
    let bound = callee.bound().ok()?;
    // SAFETY: the caller's contract; it was read with just now, so that nothing fails, and leaves
    // no error to the program.
    let shape = unsafe { shape_now(bound, known, call) };
    let (chosen, len) = match call.file_space {
        // A scalar, too, is all or nothing.
        space if space == DEFAULT || shape.is_empty() => {
            let whole = Hyperslab::all(&shape);
            let len = whole.len().unwrap_or(0);
            (Some(whole).into(), len)
        }
        space => match selected::known(callee, space) {
            Some((boxed, len)) => (Chosen::Box(boxed), len),
            None => {
                // SAFETY: as above.
                let (slab, len) = unsafe { spaces::hyperslab_of(&bound.more, space) };
                if let Some(slab) = &slab {
                    selected::learn(callee, space, slab.rank());
                }
                (slab.into(), len)
            }
        },
    };
    // Of contiguous data libhdf5 takes dataspaces of other dimensions, too.
    let chosen = if chosen.rank() == Some(shape.len()) { chosen } else { Chosen::Odd };
    Some(Request { shape, chosen, len })
}

/// The extents of a dataset.  Those that the engine reads keep them.
///
/// # Safety
/// As [`request_of`].
unsafe fn shape_now<'a>(bound: &Bound, known: &'a Known, call: &Call) -> Cow<'a, [u64]> {
    if known.engine.is_ok() || !RESIZED.load(Ordering::Relaxed) {
        return Cow::Borrowed(&known.shape);
    }
    // SAFETY: the caller's contract.
    let found = bound.library.locked(|api| unsafe { shape_of(api, call.dataset) });
    found.map_or(Cow::Borrowed(&known.shape), |(shape, _)| Cow::Owned(shape.to_vec()))
}

#[inline]
fn note(
    operation: Operation,
    known: &Known,
    mut request: Request<'_>,
    span: Span,
    mut decodes: Option<Decodes>,
) -> Option<()> {
    let opened = known.opened?;
    if operation == Operation::Read && environment::observe_only() {
        reading::count_observed(known);
    }
    let nbytes = request.nbytes(known);
    // Made in the place where it stays: copies would take longer than all else here.
    counted::note(opened, || Noted {
        dataset: &opened.described,
        operation,
        shape: Dims::from_slice(&request.shape),
        chosen: std::mem::replace(&mut request.chosen, Chosen::Odd),
        nbytes,
        span,
        decodes: decodes.take(),
    });
    Some(())
}

/// Write what was traced, as JSON, into the folder.
pub fn finish(folder: &str, counted: &Counted) {
    let program = std::env::args_os().next().unwrap_or_default();
    let mut text = format!(
        "{{\"program\": {}, \"process\": {}, \"hdf5\": {}, \"began\": {:.6}, \"datasets\": [",
        quoted(&program.to_string_lossy()),
        std::process::id(),
        quoted(&counted.version.get().map_or_else(String::new, LibraryVersion::to_string)),
        counted.began.1,
    );
    let mut comma = "";
    let merged = counted.merged();
    for ((file, dataset), (line, _)) in counted.lines().iter() {
        let file = std::fs::canonicalize(file)
            .map_or_else(|_| file.clone(), |path| path.to_string_lossy().into_owned());
        let operations =
            [("read", Operation::Read, &line.reads), ("write", Operation::Write, &line.writes)];
        for (name, operation, tally) in operations {
            if let Some(traced) = merged.traced(line, operation) {
                let _ = write!(
                    text,
                    "{comma}{{\"operation\": \"{name}\", \"file\": {}, \"dataset\": {}, {}}}",
                    quoted(&file),
                    quoted(dataset),
                    traced.json(tally),
                );
                comma = ", ";
            }
        }
    }
    if comma.is_empty() {
        return;
    }
    text.push_str("]}\n");
    // Nobody is left who could read of a failure; the reader misses the file.
    let _ = std::fs::write(format!("{folder}/{}.json", std::process::id()), text);
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn nothing_is_lost_where_a_number_is_divided() {
        let ends = [0, 3, 3, 10, 11];
        let shares: Vec<u64> =
            ends.windows(2).map(|ends| part(100, ends[0], ends[1], 11)).collect();
        assert_eq!(shares.iter().sum::<u64>(), 100);
        assert_eq!((shares[0], shares[1]), (27, 0));
        assert_eq!(part(5, 0, 0, 0), 0);
    }
}
