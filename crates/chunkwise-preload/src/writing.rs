//! Can the engine carry out this `H5Dwrite`, or a part of it?
//!
//! Chunks that one call covers whole are encoded on all threads and put into the file by
//! `H5Dwrite_chunk` before the call returns; what lies around them is written by libhdf5.  Nothing
//! waits, so that whatever the program does next finds what it would have found.  A write that
//! fails is passed on as a whole: the error is libhdf5's.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use chunkwise_codec::FilterKind;
use chunkwise_engine::{WholeChunks, convert_all};
use chunkwise_libhdf5::binding::{Api, Handle, hid_t};
use chunkwise_libhdf5::{BindError, describe_for_writing, look_again, opened_locally};
use chunkwise_select::{Axis, Selection};

use crate::arithmetic::Usual;
use crate::call::{Call, Destination, has_fewer, is_small, wanted};
use crate::callee::{Bound, Callee};
use crate::datasets::{self, Known, Whole, chunk_cache};
use crate::environment;
use crate::why::{Why, reason_of};

/// What libhdf5 encodes in the time that it takes to look what a write covers, and to begin.
const SMALLEST_NBYTES: u64 = 128 << 10;
/// The same where all filters are fast.
const SMALLEST_FAST_NBYTES: u64 = 1 << 20;
/// What is converted as a whole before it is encoded.
const MOST_CONVERTED: u64 = 1 << 30;

/// Whether the call was carried out.
///
/// # Safety
/// The program's own call of this library's `H5Dwrite`.
pub unsafe fn answer(callee: &Callee, call: &Call) -> bool {
    // A panic must not reach the program: libhdf5 then writes.
    // SAFETY: the caller's contract.
    catch_unwind(AssertUnwindSafe(|| unsafe { answered(callee, call) })).unwrap_or(false)
}

unsafe fn answered(callee: &Callee, call: &Call) -> bool {
    if call.buffer.is_null() || !environment::write() || environment::observe_only() {
        return false;
    }
    // SAFETY: the caller's contract.
    let known = unsafe { datasets::known(callee, call.dataset, || is_small(callee, call)) };
    let (Some(known), Ok(bound)) = (known, callee.bound()) else { return false };
    // SAFETY: as above.
    let outcome = unsafe { write(bound, &known, call) };
    if let Some(line) = known.line() {
        match &outcome {
            Ok(nbytes) => line.writes.ours(*nbytes),
            Err(why) => line.writes.theirs(&why.0),
        }
    }
    outcome.is_ok()
}

/// Count one of several datasets that libhdf5 writes by one call.
///
/// # Safety
/// The program's own call of this library's `H5Dwrite_multi`.
pub unsafe fn count_among_others(callee: &Callee, call: &Call) {
    // SAFETY: the caller's contract.
    let known = || unsafe { datasets::known(callee, call.dataset, || false) };
    let known = catch_unwind(AssertUnwindSafe(known)).ok().flatten();
    if let Some(line) = known.and_then(|known| known.line()) {
        line.writes.theirs("several datasets are written by one call");
    }
}

/// Write; the bytes that were written here.
///
/// # Safety
/// As [`answer`].
unsafe fn write(bound: &Bound, known: &Known, call: &Call) -> Result<u64, Why> {
    if known.written_by_libhdf5.load(Ordering::Relaxed) {
        return Err("what its file allows has changed".into());
    }
    if known.whole.get().is_none() {
        // Not while others wait: looking may itself wait for the library that they are in.  Of two
        // who look at the same time, the first one counts.
        // SAFETY: the caller's contract.
        let _ = known.whole.set(unsafe { look(bound, known, call.dataset) });
    }
    let whole = known.whole.get().ok_or("it was not looked at")?;
    let whole = whole.as_ref().map_err(|reason| Why::from(reason.clone()))?;
    // The thread that has it may be waiting for the library that this thread is in.
    let mut whole = whole.try_lock().map_err(|_| "another thread writes it")?;
    let Whole { chunks, committer, cache_nbytes } = &mut *whole;
    let least = environment::least_write().unwrap_or_else(|| smallest(chunks));
    // SAFETY: as above.
    if unsafe { has_fewer(bound, call, least / known.item_nbytes.max(1)) } {
        return Err("little is written".into());
    }
    // SAFETY: as above.
    let grid = unsafe { look_again(&bound.library, call.dataset, chunks.info()) };
    let grid = grid.inspect_err(|_| known.written_by_libhdf5.store(true, Ordering::Relaxed))?;
    let usual = Usual::begin();
    let (conversion, selected, destination) =
        // SAFETY: the caller's contract.
        unsafe { wanted(bound, known, grid.shape(), call, true, &usual)? };
    chunks.set_grid(grid);
    let Selection::Hyperslab(slab) = &selected else { return Err("not a box".into()) };
    let Destination::Run(first) = destination else {
        return Err("gathered from places in memory".into());
    };
    // In the program's memory.
    let size = conversion.map_or(known.item_nbytes, |conversion| conversion.from_size() as u64);
    let count = |n: u64| n.checked_mul(size).and_then(|nbytes| usize::try_from(nbytes).ok());
    let len = slab.len().ok().and_then(count).ok_or("more bytes than memory has")?;
    let offset = count(first).ok_or("a place beyond memory")?;
    let nbytes = len as u64;
    // What is less may stay in libhdf5's cache until the dataset has grown.
    let growing = nbytes / size * known.item_nbytes > *cache_nbytes;
    let part = chunks.whole_part(slab, growing).ok_or("no chunk is written whole")?;
    if nbytes < least {
        return Err("little is written".into());
    }
    // SAFETY: the program vouches for the elements of its buffer.
    let start = unsafe { call.buffer.cast::<u8>().add(offset) };
    // SAFETY: as above.
    let data = unsafe { std::slice::from_raw_parts(start, len) };
    let converted = match &conversion {
        None => None,
        Some(_) if nbytes > MOST_CONVERTED => return Err("very much, to be converted".into()),
        Some(conversion) => {
            let count = len / conversion.from_size() * conversion.to_size();
            let mut made = chunkwise_engine::zeroed(count).map_err(|_| "memory is short")?;
            convert_all(conversion, data, &mut made).ok_or("its type is converted")?;
            Some(made)
        }
    };
    let data = converted.as_deref().unwrap_or(data);
    // SAFETY: the program's own handle.
    unsafe { committer.set_handle(call.dataset) };
    chunks.write(slab, growing, data, committer).map_err(|error| error.to_string())?;
    let all: Vec<Range<u64>> = slab.axes().iter().map(bounds).collect();
    bound.library.locked(|api| -> Result<(), Why> {
        for rest in around(&all, &part) {
            // SAFETY: as above.
            unsafe { write_rest(api, call, start, &all, &rest) }
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    })?;
    Ok(nbytes)
}

fn bounds(axis: &Axis) -> Range<u64> {
    axis.start()..axis.start() + axis.len()
}

/// The least that is worth it.
fn smallest(chunks: &WholeChunks) -> u64 {
    use FilterKind::{Bitshuffle, Blosc, Blosc2, Fletcher32, Lz4, Lzf, Nbit, Shuffle};
    const FAST: [FilterKind; 8] = [Bitshuffle, Blosc, Blosc2, Fletcher32, Lz4, Lzf, Nbit, Shuffle];
    match chunks.info().encoding.steps().iter().all(|step| FAST.contains(&step.kind())) {
        true => SMALLEST_FAST_NBYTES,
        false => SMALLEST_NBYTES,
    }
}

/// # Safety
/// As [`answer`].
unsafe fn look(bound: &Bound, known: &Known, dataset: hid_t) -> Result<Mutex<Whole>, String> {
    // SAFETY: the caller's contract; the user of the committer gives it a handle first.
    let described = unsafe {
        opened_locally(&bound.library, dataset)
            .and_then(|()| describe_for_writing(&bound.library, dataset, known.file_type))
    };
    let (info, committer) = described.map_err(reason_of)?;
    if info.encoding.steps().is_empty() {
        return Err("it has no filters".to_string());
    }
    let chunks = WholeChunks::new(info).map_err(|error| error.to_string())?;
    // SAFETY: a live dataset.
    let cache = bound.library.locked(|api| unsafe { chunk_cache(api, dataset) });
    let (_, cache_nbytes) = cache.map_err(|error| error.to_string())?;
    Ok(Mutex::new(Whole { chunks, committer, cache_nbytes }))
}

/// The boxes that make up what of a box lies around a part of it: two a dimension at most.
fn around(all: &[Range<u64>], part: &[Range<u64>]) -> Vec<Vec<Range<u64>>> {
    let mut boxes = Vec::new();
    let mut rest = all.to_vec();
    for (d, inner) in part.iter().enumerate() {
        for side in [all[d].start..inner.start, inner.end..all[d].end] {
            if !side.is_empty() {
                let mut outside = rest.clone();
                outside[d] = side;
                boxes.push(outside);
            }
        }
        rest[d] = inner.clone();
    }
    boxes
}

/// Have libhdf5 write a part of a box, of which `start` has all elements.
///
/// # Safety
/// As [`answer`]; the lock must be held.
unsafe fn write_rest(
    api: &Api,
    call: &Call,
    start: *const u8,
    all: &[Range<u64>],
    part: &[Range<u64>],
) -> Result<(), BindError> {
    let lens = |ranges: &[Range<u64>]| ranges.iter().map(|r| r.end - r.start).collect::<Vec<_>>();
    let begins: Vec<u64> = part.iter().map(|range| range.start).collect();
    let here: Vec<u64> = part.iter().zip(all).map(|(p, a)| p.start - a.start).collect();
    let (dims, counts) = (lens(all), lens(part));
    let null = std::ptr::null();
    const SET: i32 = 0;
    // SAFETY: live handles, and as many numbers as there are dimensions.
    unsafe {
        let file = (api.H5Dget_space)(call.dataset);
        let file = Handle::new(api, "H5Dget_space", file, api.H5Sclose)?;
        let select = |space, begins: &[u64]| {
            let status =
                (api.H5Sselect_hyperslab)(space, SET, begins.as_ptr(), null, counts.as_ptr(), null);
            api.checked("H5Sselect_hyperslab", status)
        };
        select(file.id, &begins)?;
        let memory = (api.H5Screate_simple)(dims.len() as i32, dims.as_ptr(), null);
        let memory = Handle::new(api, "H5Screate_simple", memory, api.H5Sclose)?;
        select(memory.id, &here)?;
        let status = (api.H5Dwrite)(
            call.dataset,
            call.memory_type,
            memory.id,
            file.id,
            call.transfer,
            start.cast(),
        );
        api.checked("H5Dwrite", status).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::around;

    #[test]
    fn boxes_around_a_part_are_all_of_the_rest_once() {
        let (all, part) = ([2..9, 0..5, 4..6], [4..8, 0..4, 4..6]);
        let mut seen = std::collections::HashSet::new();
        let mut add = |ranges: &[std::ops::Range<u64>]| {
            for i in ranges[0].clone() {
                for j in ranges[1].clone() {
                    for k in ranges[2].clone() {
                        assert!(seen.insert((i, j, k)));
                    }
                }
            }
        };
        let boxes = around(&all, &part);
        assert_eq!(boxes.len(), 3);
        boxes.iter().for_each(|one| add(one));
        add(&part);
        assert_eq!(seen.len(), 7 * 5 * 2);
    }
}
