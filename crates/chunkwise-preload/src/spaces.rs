//! Which elements does a dataspace handle select, and in which order?
//!
//! HDF5 pairs the elements of two selections one by one: those of hyperslabs in row-major order,
//! points in the order in which they were given.  The engine gives them in the same order.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use chunkwise_libhdf5::binding::{hid_t, hsize_t};
use chunkwise_select::{
    Axis, Dims, Hyperslab, MAX_RANK, Product, ProductBuilder, Selected, Selection,
};

use crate::more::More;

/// What a dataspace handle says.
pub struct Space {
    /// Its extents, slowest dimension first.
    pub shape: Dims,
    /// What of them is selected.
    pub selected: Selection,
    /// Number of elements selected.
    pub len: u64,
}

/// Why a call is passed on, in words for the report.
pub type Reason = &'static str;

/// Whether the program has ever moved a selection (`H5Soffset_simple`).
pub static MOVED: AtomicBool = AtomicBool::new(false);
/// Whether the program has ever selected points (`H5Sselect_elements`).
pub static PICKED: AtomicBool = AtomicBool::new(false);

/// More blocks or points than this are listed by libhdf5 more slowly than it reads them.
const MOST_PARTS: i64 = 1 << 20;

const POINTS: c_int = 1;
const HYPERSLABS: c_int = 2;
const ALL: c_int = 3;

/// What `space` selects; a reason where the engine cannot read it.
///
/// # Safety
/// The handle is the caller's of this library, valid or not.
pub unsafe fn space_of(more: &More, space: hid_t) -> Result<Space, Reason> {
    const UNKNOWN: Reason = "a dataspace that libhdf5 does not explain";
    // SAFETY: the caller's contract.
    let shape = unsafe { extents(more, space) }.ok_or(UNKNOWN)?;
    if shape.is_empty() {
        return Err("a scalar or null dataspace");
    }
    // SAFETY: as above.
    let class = unsafe { (more.H5Sget_select_type)(space) };
    let Parts { selected, begins, ends } = match class {
        ALL => Parts::of(Hyperslab::all(&shape)),
        // SAFETY: as above.
        HYPERSLABS => unsafe { hyperslabs(more, space, &shape)? },
        // SAFETY: as above.
        POINTS => unsafe { points(more, space, &shape)? },
        _ => return Err(UNKNOWN),
    };
    let len = selected.len().map_err(|_| UNKNOWN)?;
    if len == 0 {
        return Err("nothing is selected");
    }
    // SAFETY: as above.
    if MOVED.load(Ordering::Relaxed) && !unsafe { is_in_place(more, space, &begins, &ends) } {
        return Err("a selection that is moved by an offset");
    }
    Ok(Space { shape, selected, len })
}

/// As [`space_of`], of memory.
///
/// # Safety
/// As [`space_of`].
pub unsafe fn places_of(more: &More, space: hid_t) -> Result<Space, Reason> {
    // SAFETY: the caller's contract.
    let found = unsafe { space_of(more, space)? };
    if let Selection::Product(_) = found.selected {
        let rank = found.shape.len();
        // SAFETY: as above.
        let listed = unsafe { points_of(more, space, rank)? };
        // The element that is put there last stays, which need not be the last one selected.
        if repeats(&listed, rank) {
            return Err("a place in memory that is selected twice");
        }
    }
    Ok(found)
}

/// Whether one of some points of this many dimensions comes twice.
fn repeats(listed: &[hsize_t], rank: usize) -> bool {
    let mut points: Vec<&[hsize_t]> = listed.chunks_exact(rank).collect();
    points.sort_unstable();
    points.windows(2).any(|pair| pair[0] == pair[1])
}

/// The points that a selection of points has, one after the other.
///
/// # Safety
/// As [`space_of`]; a selection of points.
unsafe fn points_of(more: &More, space: hid_t, rank: usize) -> Result<Vec<hsize_t>, Reason> {
    // SAFETY: room for as many points as there are.
    unsafe {
        let points = (more.H5Sget_select_npoints)(space);
        list(points, rank, |out| {
            (more.H5Sget_select_elem_pointlist)(space, 0, points as hsize_t, out)
        })
    }
}

/// What of a dataset a read by this dataspace selects, as a trace shows it: the hyperslab, where
/// it is a regular one, and the number of elements.
///
/// No call fails here of a dataspace with which a read went well, as libhdf5 prints those that do; and
/// there are few calls, as each takes as long as all else here.
///
/// # Safety
/// As [`space_of`].
pub unsafe fn hyperslab_of(more: &More, space: hid_t) -> (Option<Hyperslab>, u64) {
    // SAFETY: the caller's contract.
    unsafe {
        let len = u64::try_from((more.H5Sget_select_npoints)(space)).unwrap_or(0);
        if len == 0 {
            return (None, 0);
        }
        // Points that fill a box may be some of it twice.
        let are_points = || (more.H5Sget_select_type)(space) == POINTS;
        let slab = match a_box(more, space, len) {
            Some(slab) => (!PICKED.load(Ordering::Relaxed) || !are_points()).then_some(slab),
            None if (more.H5Sget_select_type)(space) != HYPERSLABS => None,
            None if (more.H5Sis_regular_hyperslab)(space) <= 0 => None,
            // Its parts do not say where it was moved to.
            None => regular(more, space).filter(|slab| {
                let begins: Dims = slab.axes().iter().map(Axis::start).collect();
                !MOVED.load(Ordering::Relaxed)
                    || is_in_place(more, space, &begins, &Selected::from(slab).ends())
            }),
        };
        (slab, len)
    }
}

/// What is selected, where that is `len` elements without gaps.
///
/// # Safety
/// As [`space_of`]; something is selected.
unsafe fn a_box(more: &More, space: hid_t, len: u64) -> Option<Hyperslab> {
    let mut first = [MaybeUninit::<hsize_t>::uninit(); MAX_RANK];
    // No element has that index.
    let mut last = [hsize_t::MAX; MAX_RANK];
    // SAFETY: room for every dimension.
    let status =
        unsafe { (more.H5Sget_select_bounds)(space, first.as_mut_ptr().cast(), last.as_mut_ptr()) };
    if status < 0 {
        return None;
    }
    let rank = last.iter().take_while(|&&last| last < hsize_t::MAX).count();
    let axis = |d: usize| {
        // SAFETY: libhdf5 has written both, of each dimension.
        let first = unsafe { first[d].assume_init() };
        Axis::range(first, last[d].saturating_sub(first) + 1)
    };
    let volume = (0..rank).try_fold(1u64, |volume, d| volume.checked_mul(axis(d).len()));
    (volume == Some(len)).then(|| Hyperslab::from_axes((0..rank).map(axis).collect()))
}

/// # Safety
/// As [`space_of`].
unsafe fn extents(more: &More, space: hid_t) -> Option<Dims> {
    let mut dims: [hsize_t; MAX_RANK] = [0; MAX_RANK];
    // SAFETY: room for as many dimensions as there can be; a null pointer is allowed.
    let rank =
        unsafe { (more.H5Sget_simple_extent_dims)(space, dims.as_mut_ptr(), std::ptr::null_mut()) };
    let rank = usize::try_from(rank).ok()?;
    dims.get(..rank).map(Dims::from_slice)
}

/// A regular hyperslab, wherever its dataspace ends.
///
/// # Safety
/// As [`space_of`].
unsafe fn regular(more: &More, space: hid_t) -> Option<Hyperslab> {
    const ANYWHERE: [hsize_t; MAX_RANK] = [hsize_t::MAX; MAX_RANK];
    // SAFETY: the caller's contract.
    let parts = unsafe { regular_parts(more, space)? };
    // Blocks have at least one element.
    let rank = parts[3].iter().take_while(|&&block| block > 0).count();
    let [start, stride, count, block] = parts.each_ref().map(|part| &part[..rank]);
    Hyperslab::new(&ANYWHERE[..rank], start, stride, count, block).ok()
}

/// Start, stride, count and block of a regular hyperslab in each dimension; None of another one,
/// which libhdf5 takes for an error.
///
/// # Safety
/// As [`space_of`].
unsafe fn regular_parts(more: &More, space: hid_t) -> Option<[[hsize_t; MAX_RANK]; 4]> {
    let mut parts = [[0; MAX_RANK]; 4];
    let [start, stride, count, block] = parts.each_mut().map(|part| part.as_mut_ptr());
    // SAFETY: room for every dimension.
    let status = unsafe { (more.H5Sget_regular_hyperslab)(space, start, stride, count, block) };
    (status >= 0).then_some(parts)
}

/// A selection, and in each dimension its first element and one past its last.
struct Parts {
    selected: Selection,
    begins: Dims,
    ends: Dims,
}

impl Parts {
    fn of(slab: Hyperslab) -> Self {
        let begins = slab.axes().iter().map(Axis::start).collect();
        let ends = Selected::from(&slab).ends();
        Self { selected: slab.into(), begins, ends }
    }
}

/// # Safety
/// As [`space_of`]; a selection of hyperslabs.
unsafe fn hyperslabs(more: &More, space: hid_t, shape: &[u64]) -> Result<Parts, Reason> {
    const ODD: Reason = "a selection of hyperslabs that reaches beyond its dataspace";
    let rank = shape.len();
    // SAFETY: the caller's contract.
    if let Some(parts) = unsafe { regular_parts(more, space) } {
        let [start, stride, count, block] = parts.each_ref().map(|part| &part[..rank]);
        let slab = Hyperslab::new(shape, start, stride, count, block);
        return slab.map(Parts::of).map_err(|_| ODD);
    }
    // SAFETY: room for as many blocks as there are, each its first and last element.
    let listed = unsafe {
        let blocks = (more.H5Sget_select_hyper_nblocks)(space);
        list(blocks, rank * 2, |out| {
            (more.H5Sget_select_hyper_blocklist)(space, 0, blocks as hsize_t, out)
        })?
    };
    let slabs = listed.chunks_exact(rank * 2).map(|corners| {
        let (first, last) = corners.split_at(rank);
        let axes = first.iter().zip(last).zip(shape).map(|((&first, &last), &size)| {
            let len = last.checked_sub(first).and_then(|len| len.checked_add(1))?;
            (last < size).then(|| Axis::range(first, len))
        });
        axes.collect::<Option<_>>().map(Hyperslab::from_axes)
    });
    let slabs: Vec<_> = slabs.collect::<Option<_>>().ok_or(ODD)?;
    let selected = Selection::union(rank, slabs).map_err(|_| ODD)?;
    let Selection::Union { union, .. } = &selected else { return Err(ODD) };
    let (begins, ends) = union.bounds().ok_or(ODD)?;
    Ok(Parts { selected, begins, ends })
}

/// # Safety
/// As [`space_of`]; a selection of points.
unsafe fn points(more: &More, space: hid_t, shape: &[u64]) -> Result<Parts, Reason> {
    const ODD: Reason = "a selection of points that reaches beyond its dataspace";
    let rank = shape.len();
    // SAFETY: the caller's contract.
    let listed = unsafe { points_of(more, space, rank)? };
    let mut columns = vec![Vec::with_capacity(listed.len() / rank); rank];
    for point in listed.chunks_exact(rank) {
        for (column, &index) in columns.iter_mut().zip(point) {
            column.push(i64::try_from(index).map_err(|_| ODD)?);
        }
    }
    let bound = |least: bool| -> Option<Dims> {
        let of = |column: &Vec<i64>| match least {
            true => column.iter().min().map(|&first| first as u64),
            false => column.iter().max().map(|&last| last as u64 + 1),
        };
        columns.iter().map(of).collect()
    };
    let (begins, ends) = (bound(true).ok_or(ODD)?, bound(false).ok_or(ODD)?);
    let columns: Vec<&[i64]> = columns.iter().map(Vec::as_slice).collect();
    let product = Product::of(shape).points(&columns).and_then(ProductBuilder::finish);
    Ok(Parts { selected: Selection::Product(product.map_err(|_| ODD)?), begins, ends })
}

/// `count` records of `width` numbers, as `fill` gives them.
fn list(
    count: i64,
    width: usize,
    fill: impl FnOnce(*mut hsize_t) -> c_int,
) -> Result<Vec<hsize_t>, Reason> {
    if !(1..=MOST_PARTS).contains(&count) {
        return Err("a selection of very many blocks or points");
    }
    let mut listed = vec![0; count as usize * width];
    if fill(listed.as_mut_ptr()) < 0 {
        return Err("a selection that libhdf5 does not list");
    }
    Ok(listed)
}

/// Whether a selection lies where its parts say: only its bounds show an offset
/// (`H5Soffset_simple`).
///
/// # Safety
/// As [`space_of`].
unsafe fn is_in_place(more: &More, space: hid_t, begins: &[u64], ends: &[u64]) -> bool {
    let (mut first, mut last) = ([0 as hsize_t; MAX_RANK], [0 as hsize_t; MAX_RANK]);
    // SAFETY: room for every dimension.
    let status =
        unsafe { (more.H5Sget_select_bounds)(space, first.as_mut_ptr(), last.as_mut_ptr()) };
    let meets = |d: usize| begins[d] == first[d] && last[d].checked_add(1) == Some(ends[d]);
    status >= 0 && begins.len() == ends.len() && (0..begins.len()).all(meets)
}
