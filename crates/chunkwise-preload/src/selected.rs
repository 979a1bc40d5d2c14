//! What does a thread know of the dataspaces whose selections it sets again and again?
//!
//! A program that reads piece by piece often sets the selection of one dataspace before each read.  To ask
//! libhdf5 for it takes longer than all else that a trace does for a call.  So a box is remembered as it
//! is set.  All functions that change a dataspace come here.  Their arguments do not say how many dimensions
//! it has: it is a dataset's that was read before, or libhdf5 says it the first time.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::callee::Callee;
use crate::chosen::{Boxed, MOST_RANK};
use crate::{datasets, spaces};
use chunkwise_libhdf5::binding::{hid_t, hsize_t};

/// This many dataspaces are remembered by a thread, each in the place that its handle says.
const OWN_LEN: usize = 4;

/// A dataspace.
#[derive(Clone, Copy)]
struct Remembered {
    callee: usize,
    space: hid_t,
    /// Of what is known of handles.
    generation: u64,
    rank: usize,
    /// The box that this thread has selected.
    selected: Option<Boxed>,
}

const NOTHING: Remembered =
    Remembered { callee: 0, space: -1, generation: 0, rank: 0, selected: None };

thread_local! {
    static OWN: RefCell<[Remembered; OWN_LEN]> = const { RefCell::new([NOTHING; OWN_LEN]) };
}

const SETTERS_LEN: usize = 256;
/// Which thread has changed a dataspace last, if it remembers that; 0 otherwise.  Dataspaces share these,
/// and those that do so share a place in `OWN`, too: a thread that finds itself here has done nothing
/// else to any of them since.
static SETTERS: [AtomicUsize; SETTERS_LEN] = [const { AtomicUsize::new(0) }; SETTERS_LEN];

fn setter(space: hid_t) -> &'static AtomicUsize {
    &SETTERS[space as usize % SETTERS_LEN]
}

/// Look at what this thread remembers in the place of a dataspace, with what identifies the thread.
#[inline]
fn with<T>(space: hid_t, work: impl FnOnce(&mut Remembered, usize) -> T) -> Option<T> {
    let found = OWN.try_with(|own| {
        let thread = std::ptr::from_ref(own) as usize;
        let mut own = own.try_borrow_mut().ok()?;
        Some(work(&mut own[space as usize % OWN_LEN], thread))
    });
    found.ok().flatten()
}

impl Remembered {
    fn is_of(&self, callee: &Callee, space: hid_t) -> bool {
        self.space == space
            && self.callee == std::ptr::from_ref(callee) as usize
            && self.generation == datasets::generation()
    }
}

/// Note that a dataspace has this many dimensions.
pub fn learn(callee: &Callee, space: hid_t, rank: usize) {
    if rank <= MOST_RANK {
        let callee = std::ptr::from_ref(callee) as usize;
        let generation = datasets::generation();
        with(space, |own, _| *own = Remembered { callee, space, generation, rank, selected: None });
    }
}

/// Note that a dataspace was changed.
pub fn change(space: hid_t) {
    with(space, |own, _| own.selected = None);
    setter(space).store(0, Ordering::Relaxed);
}

/// Note that a dataspace has this selection alone.
///
/// # Safety
/// Start, stride, count and block are those of a call of `H5Sselect_hyperslab` that went well.
pub unsafe fn set(callee: &Callee, space: hid_t, parts: [*const hsize_t; 4]) {
    let thread = with(space, |own, thread| {
        own.selected = None;
        if own.is_of(callee, space) {
            // SAFETY: the caller's contract; it has this many dimensions.
            own.selected = unsafe { a_box(own.rank, parts) };
        }
        if own.selected.is_some() { thread } else { 0 }
    });
    setter(space).store(thread.unwrap_or(0), Ordering::Relaxed);
}

/// A hyperslab of at most this many dimensions, where it has no gaps.
///
/// # Safety
/// Each is null or has `rank` numbers.
unsafe fn a_box(rank: usize, parts: [*const hsize_t; 4]) -> Option<Boxed> {
    let [start, stride, count, block] = parts;
    if start.is_null() || count.is_null() {
        return None;
    }
    let mut axes = [(0, 0); MOST_RANK];
    for (d, axis) in axes.iter_mut().enumerate().take(rank) {
        // SAFETY: the caller's contract.
        let of = |part: *const hsize_t| if part.is_null() { 1 } else { unsafe { *part.add(d) } };
        let (stride, count, block) = (of(stride), of(count), of(block));
        if count != 1 && stride != block {
            return None;
        }
        // One without an end (`H5S_UNLIMITED`) has no length either.
        let len = count.checked_mul(block).filter(|&len| len > 0 && len < hsize_t::MAX)?;
        *axis = (of(start), len);
    }
    Some(Boxed { rank, axes })
}

/// What this thread has selected of a dataspace, and how many elements these are; None where it does not
/// remember it.
#[inline]
pub fn known(callee: &Callee, space: hid_t) -> Option<(Boxed, u64)> {
    // An offset moves what is selected.
    if spaces::MOVED.load(Ordering::Relaxed) {
        return None;
    }
    let found = with(space, |own, thread| {
        let is_own = setter(space).load(Ordering::Relaxed) == thread;
        own.selected.filter(|_| is_own && own.is_of(callee, space))
    });
    let found = found.flatten()?;
    let lens = found.axes[..found.rank].iter().map(|axis| axis.1);
    Some((found, lens.into_iter().try_fold(1u64, u64::checked_mul)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(rank: usize, parts: [&[u64]; 4]) -> Option<Vec<(u64, u64)>> {
        let parts =
            parts.map(|part| if part.is_empty() { std::ptr::null() } else { part.as_ptr() });
        // SAFETY: none, or a number for each dimension.
        unsafe { a_box(rank, parts) }.map(|found| found.axes[..rank].to_vec())
    }

    #[test]
    fn a_box_has_no_gaps_and_an_end() {
        let two = Some(vec![(3, 5), (0, 8)]);
        assert_eq!(boxed(2, [&[3, 0], &[], &[5, 8], &[]]), two);
        assert_eq!(boxed(2, [&[3, 0], &[1, 4], &[5, 2], &[1, 4]]), two);
        assert_eq!(boxed(2, [&[3, 0], &[9, 9], &[1, 1], &[5, 8]]), two);
        assert_eq!(boxed(2, [&[3, 0], &[1, 5], &[5, 2], &[1, 4]]), None);
        assert_eq!(boxed(1, [&[3], &[2], &[5], &[]]), None);
        assert_eq!(boxed(1, [&[3], &[], &[0], &[]]), None);
        assert_eq!(boxed(1, [&[3], &[], &[u64::MAX], &[]]), None);
        assert_eq!(boxed(1, [&[3], &[2], &[u64::MAX], &[2]]), None);
    }
}
