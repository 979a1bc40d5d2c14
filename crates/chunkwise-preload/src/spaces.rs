//! Which elements does a dataspace handle select, and in which order?
//!
//! HDF5 pairs the elements of two selections one by one: those of hyperslabs in row-major order,
//! points in the order in which they were given.  The engine gives them in the same order.

use std::ffi::c_int;
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

/// More blocks or points than this are listed by libhdf5 more slowly than it reads them.
const MOST_PARTS: i64 = 1 << 20;

const POINTS: c_int = 1;
const HYPERSLABS: c_int = 2;
const ALL: c_int = 3;

/// What `space` selects; a reason where the engine cannot be asked for it.
///
/// # Safety
/// The handle is the caller's of this library, valid or not.
pub unsafe fn space_of(more: &More, space: hid_t) -> Result<Space, Reason> {
    const UNKNOWN: Reason = "a dataspace that libhdf5 does not explain";
    let mut dims: [hsize_t; MAX_RANK] = [0; MAX_RANK];
    // SAFETY: room for as many dimensions as there can be; a null pointer is allowed.
    let rank =
        unsafe { (more.H5Sget_simple_extent_dims)(space, dims.as_mut_ptr(), std::ptr::null_mut()) };
    let rank = usize::try_from(rank).map_err(|_| UNKNOWN)?;
    let shape = Dims::from_slice(dims.get(..rank).ok_or(UNKNOWN)?);
    if rank == 0 {
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
    let mut parts = [[0 as hsize_t; MAX_RANK]; 4];
    let [start, stride, count, block] = &mut parts;
    // SAFETY: room for every dimension.
    let status = unsafe {
        (more.H5Sget_regular_hyperslab)(
            space,
            start.as_mut_ptr(),
            stride.as_mut_ptr(),
            count.as_mut_ptr(),
            block.as_mut_ptr(),
        )
    };
    // It fails where the selection is not regular.
    if status >= 0 {
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
    // SAFETY: room for as many points as there are.
    let listed = unsafe {
        let points = (more.H5Sget_select_npoints)(space);
        list(points, rank, |out| {
            (more.H5Sget_select_elem_pointlist)(space, 0, points as hsize_t, out)
        })?
    };
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

/// Whether a selection lies where its parts say: only its bounds tell of an offset
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
