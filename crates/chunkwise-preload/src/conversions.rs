//! Does the engine make the same of elements of another type as the program's libhdf5 does?
//!
//! Of integers and floats it mostly does.  What libhdf5 makes of NaNs, of numbers out of range and
//! between two others differs from version to version, so it is tried: before two types are first
//! converted here, both convert the numbers where something may happen.  Where one bit differs,
//! libhdf5 converts.

use std::ffi::{c_int, c_void};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use chunkwise_engine::{Conversion, NumberKind, NumberType, convert_all, edge_numbers};
use chunkwise_libhdf5::binding::{Api, DEFAULT, hid_t};

use crate::arithmetic::Usual;
use crate::callee::{Bound, Callee};
use crate::spaces::Reason;

/// Whether the program has, or removes, conversions between numbers (`H5Tregister`).
pub static CHANGED: AtomicBool = AtomicBool::new(false);

const INTEGER: c_int = 0;
const FLOAT: c_int = 1;

const CONVERTED: Reason = "its type is converted";

/// What was found out of types in memory for one dataset: they are few.
#[derive(Default)]
pub struct Types(RwLock<Vec<Seen>>);

/// The program's types may change under their handles, so that a copy is kept.
struct Seen {
    copy: hid_t,
    writing: bool,
    found: Result<Conversion, Reason>,
}

const MOST_TYPES: usize = 8;

impl Types {
    /// The copies, to be closed; the next conversion begins anew.
    pub fn take(&self) -> Vec<hid_t> {
        // Where another thread has it, copies stay open: there are few.
        let taken = self.0.try_write().map(|mut seen| std::mem::take(&mut *seen));
        taken.unwrap_or_default().iter().map(|seen| seen.copy).collect()
    }
}

/// How elements are converted between memory and the file; None where they are the same.  In `usual`
/// arithmetic both convert what they are compared by.
///
/// # Safety
/// The program's own `memory_type`, valid or not, and a live `file_type`.
pub unsafe fn between(
    api: &Api,
    bound: &Bound,
    types: &Types,
    file_type: hid_t,
    memory_type: hid_t,
    writing: bool,
    usual: &Usual,
) -> Result<Option<Conversion>, Reason> {
    // SAFETY: a handle that is none makes the call fail.
    match unsafe { (api.H5Tequal)(file_type, memory_type) } {
        1.. => return Ok(None),
        0 => {}
        _ => return Err("an invalid type"),
    }
    if CHANGED.load(Ordering::Relaxed) {
        return Err("the program has conversions of its own");
    }
    if usual.differs() {
        return Err("its type is converted, and the program computes in an arithmetic of its own");
    }
    // Locks are only tried: a forked child may find one locked for ever.
    if let Ok(seen) = types.0.try_read() {
        for one in seen.iter().filter(|one| one.writing == writing) {
            // SAFETY: as above.
            if unsafe { (api.H5Tequal)(one.copy, memory_type) } > 0 {
                return one.found.map(Some);
            }
        }
    }
    // SAFETY: as above.
    let found = unsafe { find(api, bound, file_type, memory_type, writing) };
    if let Ok(mut seen) = types.0.try_write()
        && seen.len() < MOST_TYPES
    {
        // SAFETY: as above.
        let copy = unsafe { (api.H5Tcopy)(memory_type) };
        if copy >= 0 {
            seen.push(Seen { copy, writing, found });
        }
    }
    found.map(Some)
}

/// # Safety
/// As [`between`].
unsafe fn find(
    api: &Api,
    bound: &Bound,
    file_type: hid_t,
    memory_type: hid_t,
    writing: bool,
) -> Result<Conversion, Reason> {
    let (from, to) = if writing { (memory_type, file_type) } else { (file_type, memory_type) };
    // SAFETY: two live types.
    let (source, target) = unsafe { (number(api, bound, from), number(api, bound, to)) };
    let (source, target) = source.zip(target).ok_or(CONVERTED)?;
    let conversion = Conversion::of_numbers(source, target).ok_or(CONVERTED)?;
    let alike = || {
        let numbers = edge_numbers(source);
        // SAFETY: as above.
        unsafe { is_alike(bound, &conversion, &numbers, from, to) }
    };
    let alike = bound.probed((source, target), alike);
    if alike { Ok(conversion) } else { Err("its type is converted otherwise by this libhdf5") }
}

/// Which numbers a type is of; None of another type, and of numbers that are stored in some other way.
///
/// # Safety
/// A live type.
unsafe fn number(api: &Api, bound: &Bound, of: hid_t) -> Option<NumberType> {
    let more = &bound.more;
    let big = cfg!(target_endian = "big");
    // SAFETY: the caller's contract.
    unsafe {
        let class = (api.H5Tget_class)(of);
        let size = (api.H5Tget_size)(of);
        let is = |constant: hid_t| (api.H5Tequal)(of, constant) > 0;
        let found = |kind, little: hid_t, large: hid_t| {
            // Of one byte both are equal.
            let swapped = if is(little) {
                size > 1 && big
            } else if is(large) {
                size > 1 && !big
            } else {
                return None;
            };
            Some(NumberType { kind, size, swapped })
        };
        let integer = |signed: [hid_t; 2], unsigned: [hid_t; 2]| {
            found(NumberKind::Signed, signed[0], signed[1])
                .or_else(|| found(NumberKind::Unsigned, unsigned[0], unsigned[1]))
        };
        match (class, size) {
            (INTEGER, 1) => integer(
                [more.H5T_STD_I8LE_g, more.H5T_STD_I8BE_g],
                [more.H5T_STD_U8LE_g, more.H5T_STD_U8BE_g],
            ),
            (INTEGER, 2) => integer(
                [more.H5T_STD_I16LE_g, more.H5T_STD_I16BE_g],
                [more.H5T_STD_U16LE_g, more.H5T_STD_U16BE_g],
            ),
            (INTEGER, 4) => integer(
                [more.H5T_STD_I32LE_g, more.H5T_STD_I32BE_g],
                [more.H5T_STD_U32LE_g, more.H5T_STD_U32BE_g],
            ),
            (INTEGER, 8) => integer(
                [more.H5T_STD_I64LE_g, more.H5T_STD_I64BE_g],
                [more.H5T_STD_U64LE_g, more.H5T_STD_U64BE_g],
            ),
            (FLOAT, 4) => found(NumberKind::Float, more.H5T_IEEE_F32LE_g, more.H5T_IEEE_F32BE_g),
            (FLOAT, 8) => found(NumberKind::Float, more.H5T_IEEE_F64LE_g, more.H5T_IEEE_F64BE_g),
            _ => None,
        }
    }
}

/// Whether libhdf5 makes of these numbers what the engine makes of them.
///
/// # Safety
/// Two live types, between which `conversion` converts.
unsafe fn is_alike(
    bound: &Bound,
    conversion: &Conversion,
    numbers: &[u8],
    from: hid_t,
    to: hid_t,
) -> bool {
    let (from_size, to_size) = (conversion.from_size(), conversion.to_size());
    let count = numbers.len() / from_size;
    let mut ours = vec![0; count * to_size];
    if count == 0 || convert_all(conversion, numbers, &mut ours).is_none() {
        return false;
    }
    let mut theirs = vec![0; count * from_size.max(to_size)];
    theirs[..numbers.len()].copy_from_slice(numbers);
    let none: *mut c_void = std::ptr::null_mut();
    // SAFETY: room for all elements before and behind; numbers need no background.
    let status = unsafe {
        (bound.more.H5Tconvert)(from, to, count, theirs.as_mut_ptr().cast(), none, DEFAULT)
    };
    status >= 0 && theirs[..ours.len()] == *ours
}

/// Note that the program has changed conversions, if that is about numbers.
///
/// # Safety
/// The program's own types, with which that went well; negative ones stand for every type.
pub unsafe fn note_change(callee: &Callee, from: hid_t, to: hid_t) {
    let may_be_number = |of: hid_t| {
        // SAFETY: the caller's contract.
        of < 0 || callee.class.is_none_or(|class| unsafe { matches!(class(of), INTEGER | FLOAT) })
    };
    if may_be_number(from) && may_be_number(to) {
        CHANGED.store(true, Ordering::Relaxed);
    }
}
