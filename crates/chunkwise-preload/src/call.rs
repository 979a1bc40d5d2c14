//! What does a call of the program say: which elements, and which places in memory?

use std::ffi::c_void;

use chunkwise_engine::Conversion;
use chunkwise_libhdf5::binding::{DEFAULT, hid_t};
use chunkwise_select::{Hyperslab, Selection};

use crate::arithmetic::Usual;
use crate::callee::{Bound, Callee};
use crate::conversions;
use crate::datasets::Known;
use crate::more::KIND_BIT;
use crate::spaces::{Reason, Space, places_of, space_of};
use crate::why::Why;

/// The arguments of `H5Dread`, and of `H5Dwrite`.
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
const SMALL: u64 = 4096;
/// Whether it is too little to look at a dataset for.
///
/// # Safety
/// The program's own call of this library.
pub unsafe fn is_small(callee: &Callee, call: &Call) -> bool {
    // SAFETY: the caller's contract.
    callee.bound().map_or(true, |bound| unsafe { has_fewer(bound, call, SMALL) })
}

/// Whether a call has fewer elements than this; false where that takes more to find out.
///
/// # Safety
/// As [`is_small`].
pub unsafe fn has_fewer(bound: &Bound, call: &Call, elements: u64) -> bool {
    if call.file_space == DEFAULT {
        return false;
    }
    // Of a dataspace the second call does not fail, so that no error has to be silenced: that takes
    // longer than both.
    const DATASPACE: hid_t = 4;
    let space = call.file_space;
    // SAFETY: any number may be given.
    if space >> KIND_BIT != DATASPACE || unsafe { (bound.more.H5Iis_valid)(space) } <= 0 {
        return true;
    }
    // SAFETY: a live dataspace.
    let len = unsafe { (bound.more.H5Sget_select_npoints)(space) };
    u64::try_from(len).map_or(true, |len| len < elements)
}

/// How the elements of a call for a dataset of this shape are converted, if they are, which they
/// are, and where they are in memory.
///
/// # Safety
/// The program's own call of this library, for the dataset that is `known`.
pub unsafe fn wanted(
    bound: &Bound,
    known: &Known,
    shape: &[u64],
    call: &Call,
    writing: bool,
    usual: &Usual,
) -> Result<(Option<Conversion>, Selection, Destination), Why> {
    bound.library.locked(|api| {
        let (types, file_type, memory_type) = (&known.types, known.file_type, call.memory_type);
        // SAFETY: the caller's contract.
        unsafe {
            let conversion =
                conversions::between(api, bound, types, file_type, memory_type, writing, usual)?;
            check_transfer(bound, call.transfer)?;
            let (selected, destination) = selections(bound, shape, call)?;
            Ok((conversion, selected, destination))
        }
    })
}

/// The selections of a call for a dataset of this shape.
///
/// # Safety
/// The program's own call of this library; its lock must be held.
unsafe fn selections(
    bound: &Bound,
    shape: &[u64],
    call: &Call,
) -> Result<(Selection, Destination), Reason> {
    // SAFETY: the caller's contract.
    let of = |space| unsafe { space_of(&bound.more, space) };
    // SAFETY: as above.
    let to = |space| unsafe { places_of(&bound.more, space) };
    let (file, memory) = match (call.file_space, call.memory_space) {
        (DEFAULT, DEFAULT) => (None, None),
        (DEFAULT, memory) => (None, Some(to(memory)?)),
        (file, DEFAULT) => (Some(of(file)?), None),
        (file, memory) => (Some(of(file)?), Some(to(memory)?)),
    };
    paired(shape, file, memory)
}

/// Whether transfer properties are those by default.
///
/// # Safety
/// The program's own handles, valid or not.
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
pub enum Destination {
    /// One after the other, after this many.
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
