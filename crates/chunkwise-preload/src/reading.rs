//! Can the engine answer this `H5Dread`, and does it?
//!
//! It does where the result is the same bytes: elements in memory as they are stored, and transfer
//! properties that change nothing.  All else is passed on, and so is a read that fails: the error,
//! and its stack, are libhdf5's.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use chunkwise_engine::spread;
use chunkwise_libhdf5::binding::{Api, DEFAULT, hid_t};
use chunkwise_select::{Hyperslab, Selection};

use crate::callee::{Bound, Callee};
use crate::datasets::{self, Known, Native};
use crate::spaces::{Reason, Space, space_of};
use crate::wishes;

/// The arguments of `H5Dread`.
#[derive(Clone, Copy)]
pub struct Call {
    pub dataset: hid_t,
    pub memory_type: hid_t,
    pub memory_space: hid_t,
    pub file_space: hid_t,
    pub transfer: hid_t,
    pub buffer: *mut c_void,
}

/// Elements fewer than these make a small read.
const SMALL: i64 = 4096;
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
    if wishes::observe_only() {
        return false;
    }
    let outcome = match (&known.engine, callee.bound()) {
        // SAFETY: as above.
        (Ok(native), Ok(bound)) => unsafe { read(bound, native, call) },
        (Err(reason), _) => Err(Why::from(reason.clone())),
        (_, Err(reason)) => Err(Why::from(reason.to_string())),
    };
    note(&known, &outcome);
    outcome.is_ok()
}

/// Whether it is too little to look at a dataset for.
unsafe fn is_small(callee: &Callee, call: &Call) -> bool {
    if call.file_space == DEFAULT {
        return false;
    }
    let Ok(bound) = callee.bound() else { return true };
    // SAFETY: a handle that is none makes the call fail.
    let len =
        bound.library.locked(|_| unsafe { (bound.more.H5Sget_select_npoints)(call.file_space) });
    len < SMALL
}

fn note(known: &Known, outcome: &Result<u64, Why>) {
    let Some(line) = &known.line else { return };
    match outcome {
        Ok(nbytes) => line.ours(*nbytes),
        Err(why) => line.theirs(&why.0),
    }
}

/// Why a call is passed on.
struct Why(std::borrow::Cow<'static, str>);

impl From<Reason> for Why {
    fn from(reason: Reason) -> Self {
        Self(reason.into())
    }
}

impl From<String> for Why {
    fn from(reason: String) -> Self {
        Self(reason.into())
    }
}

/// Read; the bytes that were.
///
/// # Safety
/// As [`answer`].
unsafe fn read(bound: &Bound, native: &Native, call: &Call) -> Result<u64, Why> {
    let dataset = &native.dataset;
    let (selected, destination) = bound.library.locked(|api| -> Result<_, Why> {
        // SAFETY: the caller's contract.
        unsafe {
            check_type(api, native, call.memory_type)?;
            check_transfer(bound, call.transfer)?;
            let of = |space| space_of(api, &bound.more, space);
            let (file, memory) = match (call.file_space, call.memory_space) {
                (DEFAULT, DEFAULT) => (None, None),
                (DEFAULT, memory) => (None, Some(of(memory)?)),
                (file, DEFAULT) => (Some(of(file)?), None),
                (file, memory) => (Some(of(file)?), Some(of(memory)?)),
            };
            paired(dataset.shape(), file, memory).map_err(Why::from)
        }
    })?;
    let size = dataset.element_size() as u64;
    let len = selected.len().map_err(|error| error.to_string())?;
    let nbytes = len.checked_mul(size).ok_or("more bytes than can be counted")?;
    let failed = |error: chunkwise_engine::ReadError| Why::from(error.to_string());
    let count = usize::try_from(nbytes).map_err(|_| "more bytes than memory has")?;
    match destination {
        Destination::Run(first) => {
            let offset = first.checked_mul(size).and_then(|offset| usize::try_from(offset).ok());
            let offset = offset.ok_or("a place beyond memory")?;
            // SAFETY: the program vouches for the selected elements of its buffer.
            let out = unsafe {
                std::slice::from_raw_parts_mut(call.buffer.cast::<u8>().add(offset), count)
            };
            dataset.read(&selected, out).map_err(failed)?;
        }
        Destination::Scattered(memory) => {
            if nbytes > MOST_BETWEEN {
                return Err("very much, to be scattered over memory".into());
            }
            if dataset.leaves_missing_untouched() {
                return Err("elements without a value, to be scattered over memory".into());
            }
            let mut between = chunkwise_engine::zeroed(count).map_err(|_| "memory is short")?;
            dataset.read(&selected, &mut between).map_err(failed)?;
            // SAFETY: as above.
            unsafe {
                let (size, places) = (dataset.element_size(), &memory.selected);
                spread(&memory.shape, call.buffer.cast(), size, places, &between)
                    .map_err(failed)?;
            }
        }
    }
    Ok(nbytes)
}

/// # Safety
/// As [`answer`].
unsafe fn check_type(api: &Api, native: &Native, memory_type: hid_t) -> Result<(), Reason> {
    // SAFETY: a handle that is none makes the call fail.
    match unsafe { (api.H5Tequal)(native.file_type, memory_type) } {
        1.. => Ok(()),
        0 => Err("its type is converted"),
        _ => Err("an invalid type"),
    }
}

/// Whether transfer properties are those by default.
///
/// # Safety
/// As [`answer`].
unsafe fn check_transfer(bound: &Bound, transfer: hid_t) -> Result<(), Reason> {
    let default = bound.more.H5P_LST_DATASET_XFER_ID_g;
    // SAFETY: a handle that is none makes the call fail.
    let equals = || unsafe { (bound.more.H5Pequal)(transfer, default) } > 0;
    if transfer == DEFAULT || transfer == default || equals() {
        return Ok(());
    }
    Err("transfer properties that are not the default ones")
}

/// Where the elements go in the program's memory.
enum Destination {
    /// One after the other, after so many.
    Run(u64),
    /// To these places of an array.
    Scattered(Box<Space>),
}

/// What is read, and where it goes: HDF5's rules for dataspaces that are not given.
fn paired(
    shape: &[u64],
    file: Option<Space>,
    memory: Option<Space>,
) -> Result<(Selection, Destination), Reason> {
    if file.as_ref().is_some_and(|space| *space.shape != *shape) {
        return Err("a dataspace of another shape than the dataset's");
    }
    // Neither: all of it.  No memory space: the file's.  No file space: all of it.
    let memory = match (&file, memory) {
        (None, None) => return Ok((Hyperslab::all(shape).into(), Destination::Run(0))),
        (Some(file), None) => {
            Space { shape: shape.into(), selected: file.selected.clone(), len: file.len }
        }
        (_, Some(memory)) => memory,
    };
    let selected = file.map_or_else(|| Hyperslab::all(shape).into(), |file| file.selected);
    if selected.len() != Ok(memory.len) {
        return Err("two dataspaces with different numbers of elements");
    }
    let destination = match run(&memory) {
        Some(first) => Destination::Run(first),
        None => Destination::Scattered(Box::new(memory)),
    };
    Ok((selected, destination))
}

/// The first element of a selection whose elements lie one after the other.
fn run(space: &Space) -> Option<u64> {
    let Selection::Hyperslab(slab) = &space.selected else { return None };
    let mut first: u64 = 0;
    // Whether all dimensions from here on inwards are taken whole.
    let mut single_before = true;
    for (axis, &size) in slab.axes().iter().zip(&space.shape) {
        if !axis.is_contiguous() {
            return None;
        }
        if !single_before && axis.len() != size {
            return None;
        }
        single_before = single_before && axis.len() == 1;
        first = first.checked_mul(size)?.checked_add(axis.start())?;
    }
    Some(first)
}
