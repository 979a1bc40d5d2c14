//! Can the engine answer this `H5Dread`, and does it?
//!
//! It does where the result is the same bytes: elements in memory as they are stored, or numbers that
//! it converts as libhdf5 does, and transfer properties that change nothing.  All else is passed on, and so is a read that fails: the error,
//! and its stack, are libhdf5's.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

use chunkwise_engine::{AnyDataset, FieldBytes, Fields, Layout, Made, spread};

use crate::arithmetic::Usual;
use crate::call::{Call, Destination, has_fewer, is_small, wanted};
use crate::callee::{Bound, Callee};
use crate::datasets::{self, Known};
use crate::why::Why;
use crate::{elsewhere, environment};

/// What is read in pieces in between when it is scattered over the program's memory.
const MOST_BETWEEN: u64 = 1 << 30;

/// Whether the engine has carried the call out.
///
/// # Safety
/// The program's own call of this library's `H5Dread`.
pub unsafe fn answer(callee: &Callee, call: &Call) -> bool {
    // A panic must not reach the program: libhdf5 then answers.
    // SAFETY: the caller's contract.
    catch_unwind(AssertUnwindSafe(|| unsafe { answered(callee, call) })).unwrap_or(false)
}

unsafe fn answered(callee: &Callee, call: &Call) -> bool {
    if call.buffer.is_null() {
        return false;
    }
    // SAFETY: the caller's contract.
    let known = unsafe { datasets::known(callee, call.dataset, || is_small(callee, call)) };
    let Some(known) = known else { return false };
    if environment::observe_only() {
        count_observed(&known);
        return false;
    }
    let outcome = match (&known.engine, callee.bound()) {
        // SAFETY: as above.
        (Ok(source), Ok(bound)) => unsafe { read(bound, source, &known, call) },
        (Err(reason), _) => Err(Why::from(reason.clone())),
        (_, Err(reason)) => Err(Why::from(reason.to_string())),
    };
    note(&known, &outcome);
    outcome.is_ok()
}

/// Count a read that is left to libhdf5 whatever it is, with the reason why it would be otherwise.
pub fn count_observed(known: &Known) {
    if let (Err(reason), Some(line)) = (&known.engine, known.line()) {
        line.reads.theirs(reason);
    }
}

/// Why a call is left to libhdf5 that selects too little, if it does.
///
/// # Safety
/// As [`answer`].
unsafe fn too_little(
    bound: &Bound,
    source: &AnyDataset,
    known: &Known,
    call: &Call,
) -> Option<Why> {
    let (least, all) = (known.least, u64::MAX);
    let AnyDataset::Stored(dataset) = source else { return None };
    // SAFETY: the caller's contract.
    if least == 0 || (least < all && !unsafe { has_fewer(bound, call, least) }) {
        return None;
    }
    let why = match dataset.info().layout {
        Layout::Contiguous { .. } => {
            "less than 1 MiB of contiguous data, which libhdf5 reads as fast"
        }
        Layout::Chunked { .. } => "a few chunks of at most 1 KiB, which libhdf5 reads faster",
    };
    Some(why.into())
}

fn note(known: &Known, outcome: &Result<u64, Why>) {
    let Some(line) = known.line() else { return };
    match outcome {
        Ok(nbytes) => line.reads.ours(*nbytes),
        Err(why) => line.reads.theirs(&why.0),
    }
}

/// Read; the bytes that were.
///
/// # Safety
/// As [`answer`].
unsafe fn read(bound: &Bound, source: &AnyDataset, known: &Known, call: &Call) -> Result<u64, Why> {
    // SAFETY: the caller's contract.
    if let Some(why) = unsafe { too_little(bound, source, known, call) } {
        return Err(why);
    }
    if let Some(mapped) = &known.mapped
        // SAFETY: as above.
        && let Some(why) = unsafe { elsewhere::why_not_now(bound, mapped) }
    {
        return Err(why);
    }
    let usual = Usual::begin();
    let (conversion, selected, destination) =
        // SAFETY: the caller's contract.
        unsafe { wanted(bound, known, source.shape(), call, false, &usual)? };
    if conversion.is_some() && source.leaves_missing_untouched() {
        return Err("elements without a value, to be converted".into());
    }
    let fields = conversion.map(|conversion| {
        let part = FieldBytes { src: 0, dst: 0, made: Made::Converted(conversion) };
        Fields::new(source.element_size(), conversion.to_size(), vec![part])
    });
    let failed = |error: chunkwise_engine::ReadError| Why::from(error.to_string());
    let fields = fields.transpose().map_err(failed)?;
    // In the program's memory.
    let item_nbytes = conversion.map_or(source.element_size(), |conversion| conversion.to_size());
    let size = item_nbytes as u64;
    let len = selected.len().map_err(|error| error.to_string())?;
    let nbytes = len.checked_mul(size).ok_or("more bytes than can be counted")?;
    let read = |out: &mut [u8]| -> Result<(), Why> {
        source.read(&selected, fields.as_ref(), out, &AtomicBool::new(false)).map_err(failed)
    };
    let count = usize::try_from(nbytes).map_err(|_| "more bytes than memory has")?;
    match destination {
        Destination::Run(first) => {
            let offset = first.checked_mul(size).and_then(|offset| usize::try_from(offset).ok());
            let offset = offset.ok_or("a place beyond memory")?;
            // SAFETY: the program vouches for the selected elements of its buffer.
            let out = unsafe {
                std::slice::from_raw_parts_mut(call.buffer.cast::<u8>().add(offset), count)
            };
            read(out)?;
        }
        Destination::Scattered(memory) => {
            if nbytes > MOST_BETWEEN {
                return Err("very much, to be scattered over memory".into());
            }
            if source.leaves_missing_untouched() {
                return Err("elements without a value, to be scattered over memory".into());
            }
            let mut between = chunkwise_engine::zeroed(count).map_err(|_| "memory is short")?;
            read(&mut between)?;
            // SAFETY: as above.
            unsafe {
                let (size, places) = (item_nbytes, &memory.selected);
                spread(&memory.shape, call.buffer.cast(), size, places, &between)
                    .map_err(failed)?;
            }
        }
    }
    Ok(nbytes)
}
