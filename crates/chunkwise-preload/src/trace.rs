//! What does a program ask of which dataset, and how long does it wait for that?
//!
//! `CHUNKWISE_TRACE` names a folder, into which each process writes what it has read when it ends.
//! With `CHUNKWISE_OBSERVE` nothing is answered here: times are those of the program's libhdf5.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use chunkwise_libhdf5::binding::{DEFAULT, herr_t, shape_of};
use chunkwise_libhdf5::{LibraryVersion, decodes};
use chunkwise_select::Hyperslab;

use crate::call::Call;
use crate::callee::{Bound, Callee};
use crate::counted::{Line, Operation, Tally, Traced};
use crate::datasets::{Known, TracedStorage};
use crate::walked::Span;
use crate::{datasets, reading, spaces, wishes};

/// Whether the program has ever changed the extents of a dataset (`H5Dset_extent`).
pub static RESIZED: AtomicBool = AtomicBool::new(false);
/// The version of the libhdf5 of the first call that was traced.
static VERSION: OnceLock<LibraryVersion> = OnceLock::new();

/// Carry a call out, and note what it asked for and how long it took.
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
    let storage = known.as_ref().and_then(|known| known.traced.as_ref());
    let before = decoded(storage);
    let start = Start::now();
    let (status, answered) = carry_out();
    let span = start.ended();
    if status >= 0
        && let Some(known) = &known
    {
        noted(|| {
            let decodes =
                (answered == Answered::ByLibhdf5).then(|| decoded_since(&before, storage));
            // SAFETY: as above, of a call that went well.
            let asked = unsafe { asked(callee, known, call)? };
            note(operation, known, &asked, span, decodes.as_ref())
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
    let start = Start::now();
    let is_answered = answer();
    let span = start.ended();
    if is_answered && let Some(known) = &known {
        noted(|| {
            // SAFETY: as above.
            let asked = unsafe { asked(callee, known, call)? };
            note(Operation::Read, known, &asked, span, None)
        });
    }
    is_answered
}

/// Have libhdf5 read or write several datasets by one call, and note what was asked of each: the time is
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
    let known: Vec<Option<Arc<Known>>> = known.collect();
    let known =
        || known.iter().zip(calls).filter_map(|(known, call)| Some((known.as_ref()?, call)));
    let before: Vec<Decodes> = known().map(|(known, _)| decoded(known.traced.as_ref())).collect();
    let start = Start::now();
    let status = carry_out();
    let span = start.ended();
    if status < 0 {
        return status;
    }
    noted(|| {
        // SAFETY: as above, of a call that went well.
        let parts =
            known().map(|(known, call)| Some((known, unsafe { asked(callee, known, call)? })));
        let parts: Vec<(&Arc<Known>, Asked<'_>)> = parts.collect::<Option<_>>()?;
        let nbytes: f64 = parts.iter().map(|(known, asked)| asked.nbytes(known) as f64).sum();
        for (i, ((known, asked), before)) in parts.iter().zip(&before).enumerate() {
            let share = if nbytes > 0.0 { asked.nbytes(known) as f64 / nbytes } else { 0.0 };
            let mut decodes = decoded_since(before, known.traced.as_ref());
            let slots = known.traced.iter().flat_map(|storage| &storage.filters);
            for (decoded, slot) in decodes.iter_mut().zip(slots) {
                let has_it = |known: &Known| {
                    let storage = known.traced.as_ref();
                    storage.is_some_and(|storage| storage.filters.contains(slot))
                };
                let touched = |(known, asked): &(&Arc<Known>, Asked<'_>)| match has_it(known) {
                    true => asked.touched(known).max(1),
                    false => 0,
                };
                let sum = |parts: &[_]| parts.iter().map(touched).fold(0, u64::saturating_add);
                let (first, last, all) = (sum(&parts[..i]), sum(&parts[..=i]), sum(&parts[..]));
                *decoded = (part(decoded.0, first, last, all), part(decoded.1, first, last, all));
            }
            let own = Span { within: span.within * share, ..span };
            note(operation, known, asked, own, Some(&decodes));
        }
        Some(())
    });
    status
}

/// What of a number falls to `first..last` of so many, such that nothing is lost of it in all.
fn part(number: u64, first: u64, last: u64, of: u64) -> u64 {
    let up_to = |n: u64| (u128::from(number) * u128::from(n) / u128::from(of.max(1))) as u64;
    up_to(last).saturating_sub(up_to(first))
}

/// # Safety
/// As [`timed`].
unsafe fn known(callee: &Callee, call: &Call) -> Option<Arc<Known>> {
    // A panic must not reach the program, here and below: the read is not traced then.
    // SAFETY: the caller's contract.
    let found = || unsafe { datasets::known(callee, call.dataset, || false) };
    catch_unwind(AssertUnwindSafe(found)).ok().flatten()
}

/// Note what a read asked for.
fn noted(work: impl FnOnce() -> Option<()>) {
    let _ = catch_unwind(AssertUnwindSafe(work));
}

/// When a call began, by this process's clock and since the first that was traced.
struct Start(Instant, Instant);

impl Start {
    fn now() -> Self {
        let first = began().0;
        Self(Instant::now(), first)
    }

    fn ended(&self) -> Span {
        let within = self.0.elapsed().as_secs_f64();
        let began = self.0.duration_since(self.1).as_secs_f64();
        Span { began, ended: began + within, within }
    }
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

fn decoded_since(before: &Decodes, storage: Option<&TracedStorage>) -> Decodes {
    let mut decodes = decoded(storage);
    let filters = storage.map_or(0, |storage| storage.filters.len());
    for (now, before) in decodes.iter_mut().zip(before).take(filters) {
        *now = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
    }
    decodes
}

/// What a read asked for.
struct Asked<'a> {
    /// Extents of the dataset.
    shape: Cow<'a, [u64]>,
    /// What of it, where that is a regular hyperslab.
    slab: Option<Hyperslab>,
    /// Elements.
    len: u64,
}

impl Asked<'_> {
    fn nbytes(&self, known: &Known) -> u64 {
        self.len.saturating_mul(known.item_nbytes)
    }

    /// Chunks that are touched, as far as that is known.
    fn touched(&self, known: &Known) -> u64 {
        let chunks = self.slab.as_ref().zip(known.traced.as_ref());
        chunks.map_or(0, |(slab, storage)| touched(slab, &storage.chunk))
    }
}

/// # Safety
/// As [`timed`], of a call that went well.
unsafe fn asked<'a>(callee: &Callee, known: &'a Known, call: &Call) -> Option<Asked<'a>> {
    let bound = callee.bound().ok()?;
    VERSION.get_or_init(|| bound.library.version());
    // SAFETY: the caller's contract; it was read with just now, so that nothing fails, and leaves
    // no error to the program.
    let (shape, (slab, len)) = unsafe {
        let shape = shape_now(bound, known, call);
        let asked = match call.file_space {
            // A scalar, too, is all or nothing.
            space if space == DEFAULT || shape.is_empty() => {
                let whole = Hyperslab::all(&shape);
                let len = whole.len().unwrap_or(0);
                (Some(whole), len)
            }
            space => spaces::asked(&bound.more, space),
        };
        (shape, asked)
    };
    // Of contiguous data libhdf5 takes dataspaces of other dimensions, too.
    let slab = slab.filter(|slab| slab.rank() == shape.len());
    Some(Asked { shape, slab, len })
}

/// The extents of a dataset.  Those that the engine reads keep them.
///
/// # Safety
/// As [`asked`].
unsafe fn shape_now<'a>(bound: &Bound, known: &'a Known, call: &Call) -> Cow<'a, [u64]> {
    if known.engine.is_ok() || !RESIZED.load(Ordering::Relaxed) {
        return Cow::Borrowed(&known.shape);
    }
    // SAFETY: the caller's contract.
    let found = bound.library.locked(|api| unsafe { shape_of(api, call.dataset) });
    found.map_or(Cow::Borrowed(&known.shape), |(shape, _)| Cow::Owned(shape.to_vec()))
}

fn note(
    operation: Operation,
    known: &Known,
    asked: &Asked<'_>,
    span: Span,
    decodes: Option<&Decodes>,
) -> Option<()> {
    let line = known.line.as_ref()?;
    if operation == Operation::Read && wishes::observe_only() {
        reading::count_observed(known);
    }
    let Asked { shape, slab, .. } = asked;
    line.traced(operation, |traced| {
        if *traced.shape != **shape {
            traced.shape = shape.to_vec();
        }
        if traced.calls == 0 {
            traced.item_nbytes = known.item_nbytes;
            traced.chunk = known.traced.as_ref().map_or_else(Vec::new, |it| it.chunk.to_vec());
            traced.cache = known.traced.as_ref().map_or((0, 0), |it| it.cache);
        }
        traced.calls += 1;
        traced.nbytes = traced.nbytes.saturating_add(asked.nbytes(known));
        traced.seconds += span.within;
        traced.walked.note(shape, slab.as_ref(), span);
        if let (Some(storage), Some(decodes)) = (&known.traced, decodes) {
            note_chunks(traced, storage, slab.as_ref(), decodes);
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
        "{{\"program\": {}, \"process\": {}, \"hdf5\": {}, \"began\": {:.6}, \"datasets\": [",
        quoted(&program.to_string_lossy()),
        std::process::id(),
        quoted(&VERSION.get().map_or_else(String::new, LibraryVersion::to_string)),
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
    if comma.is_empty() {
        return;
    }
    text.push_str("]}\n");
    // Nobody is left to be told of a failure; the reader misses the file.
    let _ = std::fs::write(format!("{folder}/{}.json", std::process::id()), text);
}

fn json(traced: &Traced, tally: &Tally) -> String {
    let (ours, reason) = tally.by_whom();
    format!(
        "\"shape\": {:?}, \"item_nbytes\": {}, \"calls\": {}, \"nbytes\": {}, \"seconds\": {:e}, \
         \"by_chunkwise\": {ours}, \"reason\": {}, \"chunk\": {:?}, \
         \"cache_nslots\": {}, \"cache_nbytes\": {}, \"chunks\": {}, \
         \"touched\": {}, \"loaded\": {}, \"filters\": [{}], {}",
        traced.shape,
        traced.item_nbytes,
        traced.calls,
        traced.nbytes,
        traced.seconds,
        quoted(&reason),
        traced.chunk,
        traced.cache.0,
        traced.cache.1,
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
    use super::{part, quoted};

    #[test]
    fn names_are_escaped() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
    }

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
