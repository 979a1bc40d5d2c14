//! How are the elements of a dataset copied that are no plain bytes?
//!
//! Through libhdf5, a bounded slab of whole chunks at a time: what elements hold elsewhere in
//! memory comes and goes with each slab.

use std::time::Instant;

use chunkwise_libhdf5::binding::{
    Api, DEFAULT, Handle, chunk_options, hid_t, shape_of, written_in,
};
use chunkwise_libhdf5::{Library, Unsuited, flush_or_abandon};
use chunkwise_select::{ChunkGrid, Dims};

use super::copier::Copier;
use super::error::{Fault, Writing};
use super::hdf5::Hdf5;
use super::references::Places;
use super::values::Elements;

/// Bytes of a slab, unless a single chunk is larger.
const SLAB_NBYTES: u64 = 16 << 20;

/// Plain data of up to this many bytes is copied with its dataset: handing it over takes longer.
const SMALL_NBYTES: u64 = 64 << 10;

/// Whether this many elements are few bytes.
///
/// # Safety
/// A live type; the lock must be held.
pub(super) unsafe fn small(api: &Api, datatype: hid_t, count: i64) -> bool {
    // SAFETY: the caller's contract.
    let size = unsafe { (api.H5Tget_size)(datatype) } as u64;
    count.unsigned_abs().saturating_mul(size) <= SMALL_NBYTES
}

/// Which slabs a dataset is copied in, and how far that is.
pub(super) struct Slabs {
    pub(super) shape: Dims,
    block: Dims,
    /// Where slabs begin that hold anything; None for all of them.
    origins: Option<std::vec::IntoIter<Dims>>,
    next: Option<Dims>,
    /// Whether nobody knows which chunks were written.
    pub(super) unlisted: bool,
    /// References that led nowhere.
    pub(super) lost: u64,
    /// Boxes that cannot be read, and why.
    pub(super) missing: Vec<(Dims, Dims, Fault)>,
    chunk: Option<Dims>,
}

impl Slabs {
    /// Of a dataset that is chunked so, or not at all.
    fn new(shape: Dims, chunk: Option<&Dims>, element_nbytes: u64) -> Self {
        let ones: Dims = smallvec::smallvec![1; shape.len()];
        let unit = chunk.unwrap_or(&ones);
        let mut block: Dims =
            unit.iter().zip(&shape).map(|(&c, &s)| c.clamp(1, s.max(1))).collect();
        let mut nbytes = block.iter().fold(element_nbytes.max(1), |n, &b| n.saturating_mul(b));
        for axis in (0..shape.len()).rev() {
            let most = (SLAB_NBYTES / nbytes).max(1);
            let grown = block[axis].saturating_mul(most).min(shape[axis].max(1));
            nbytes = (nbytes / block[axis]).saturating_mul(grown);
            block[axis] = grown;
            if grown < shape[axis] {
                break;
            }
        }
        let next = Some(smallvec::smallvec![0; shape.len()]);
        let (missing, chunk) = (Vec::new(), chunk.cloned());
        Self { shape, block, origins: None, next, unlisted: false, lost: 0, missing, chunk }
    }

    /// Of these chunks alone.
    fn chunks(shape: Dims, chunk: Dims, origins: Vec<Dims>) -> Self {
        let (origins, missing) = (Some(origins.into_iter()), Vec::new());
        let (block, chunk) = (chunk.clone(), Some(chunk));
        Self { shape, block, origins, next: None, unlisted: false, lost: 0, missing, chunk }
    }

    /// Those of an open dataset.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn of(
        hdf5: Hdf5<'_>,
        source: hid_t,
        library: &Library,
    ) -> Result<Self, Fault> {
        const CHUNKED: i32 = 2;
        let Hdf5 { api, .. } = hdf5;
        // SAFETY: the caller's contract; handles are checked.
        unsafe {
            let datatype = (api.H5Dget_type)(source);
            let datatype = Handle::new(api, "H5Dget_type", datatype, api.H5Tclose)?;
            let element_nbytes = (api.H5Tget_size)(datatype.id) as u64;
            let (shape, max_shape) = match shape_of(api, source) {
                Ok(found) => found,
                // Scalar: the only other space that has elements.
                Err(Unsuited::Reason(_)) => (Dims::new(), Dims::new()),
                Err(Unsuited::Failed(error)) => return Err(error.into()),
            };
            let dcpl = (api.H5Dget_create_plist)(source);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            if (api.H5Pget_layout)(dcpl.id) != CHUNKED {
                return Ok(Self::new(shape, None, element_nbytes));
            }
            let chunk = match chunk_options(api, dcpl.id, shape.len()) {
                Ok(options) => options.chunk,
                Err(unsuited) => return Err(Fault::reading(unsuited.to_string())),
            };
            let listed = ChunkGrid::new(&shape, &chunk).ok().and_then(|grid| {
                let index = written_in(library, api, source, &grid, &max_shape).ok()?;
                let all = index.written() == grid.len();
                let origin = |position| {
                    let found = grid.chunk_index(position);
                    found.iter().zip(&chunk).map(|(&index, &chunk)| index * chunk).collect()
                };
                Some((!all).then(|| index.positions().map(origin).collect::<Vec<Dims>>()))
            });
            Ok(match listed {
                Some(Some(origins)) => Self::chunks(shape, chunk, origins),
                Some(None) => Self::new(shape, Some(&chunk), element_nbytes),
                None => {
                    let all = Self::new(shape, Some(&chunk), element_nbytes);
                    Self { unlisted: true, ..all }
                }
            })
        }
    }

    /// Where the next one begins, and how many elements it has in each dimension.
    pub(super) fn advance(&mut self) -> Option<(Dims, Dims)> {
        let start = match &mut self.origins {
            Some(origins) => origins.next()?,
            None => self.next.take()?,
        };
        let sizes = start.iter().zip(&self.block).zip(&self.shape);
        let count = sizes.map(|((&start, &block), &shape)| block.min(shape - start)).collect();
        if self.origins.is_none() {
            let mut after = start.clone();
            for axis in (0..after.len()).rev() {
                after[axis] += self.block[axis];
                if after[axis] < self.shape[axis] {
                    self.next = Some(after);
                    break;
                }
                after[axis] = 0;
            }
        }
        Some((start, count))
    }
}

/// What elements are copied from, and to.
struct CopiedElements<'a> {
    source: hid_t,
    target: hid_t,
    datatype: hid_t,
    places: Option<&'a Places>,
    space: hid_t,
}

/// Select a slab in a dataset's space; gives a space in memory for it.
///
/// # Safety
/// As [`Hdf5`] says; the slab has the rank of the space.
pub(super) unsafe fn select(
    hdf5: Hdf5<'_>,
    space: hid_t,
    start: &Dims,
    count: &Dims,
) -> Result<Handle, Fault> {
    const SELECT_SET: i32 = 0;
    let Hdf5 { api, .. } = hdf5;
    let null = std::ptr::null();
    // SAFETY: the caller's contract; handles are checked.
    unsafe {
        let (at, dims) = (start.as_ptr(), count.as_ptr());
        let status = (api.H5Sselect_hyperslab)(space, SELECT_SET, at, null, dims, null);
        api.checked("H5Sselect_hyperslab", status)?;
        let memory = (api.H5Screate_simple)(count.len() as i32, dims, null);
        Ok(Handle::new(api, "H5Screate_simple", memory, api.H5Sclose)?)
    }
}

impl Copier<'_> {
    /// Copy plain elements at once.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn copy_whole(
        &self,
        source: hid_t,
        target: hid_t,
        datatype: hid_t,
        space: hid_t,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's contract; two handles that stay the caller's.
        unsafe { self.copy_selected(source, target, datatype, None, space, space) }.map(|_| ())
    }

    /// Copy slabs until `deadline`; gives whether that was all.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn copy_slabs(
        &self,
        address: u64,
        slabs: &mut Slabs,
        deadline: Instant,
    ) -> Result<bool, Fault> {
        let Hdf5 { api, .. } = self.hdf5;
        let Some(&moved) = self.made.moved.get(&address) else { return Ok(true) };
        // SAFETY: the caller's contract; handles are checked, selections have the rank.
        unsafe {
            let source = self.hdf5.open(self.source, address)?;
            let target = self.hdf5.open(self.target, moved).writing()?;
            let datatype = (api.H5Dget_type)(source.id);
            let datatype = Handle::new(api, "H5Dget_type", datatype, api.H5Tclose)?;
            let space = (api.H5Dget_space)(source.id);
            let space = Handle::new(api, "H5Dget_space", space, api.H5Sclose)?;
            let places = Places::of(self.hdf5, datatype.id)?;
            let places = places.as_ref();
            loop {
                let Some((start, count)) = slabs.advance() else { return Ok(true) };
                let (source, target, datatype) = (source.id, target.id, datatype.id);
                let pair = CopiedElements { source, target, datatype, places, space: space.id };
                match self.copy_box(&pair, &slabs.shape, &start, &count) {
                    Ok(lost) => slabs.lost += lost,
                    Err(fault) if self.made.lost.wanted && fault.is_reading() => {
                        if let Some(fault) =
                            self.copy_in_parts(&pair, slabs, &start, &count, fault)?
                        {
                            slabs.missing.push((start, count, fault));
                        }
                    }
                    Err(fault) => return Err(fault),
                }
                if Instant::now() >= deadline {
                    return Ok(false);
                }
            }
        }
    }

    /// Copy a box of elements; gives how many references led nowhere.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn copy_box(
        &self,
        pair: &CopiedElements<'_>,
        shape: &Dims,
        start: &Dims,
        count: &Dims,
    ) -> Result<u64, Fault> {
        let CopiedElements { source, target, datatype, places, space } = *pair;
        // SAFETY: the caller's contract; selections have the rank.
        unsafe {
            if shape.is_empty() {
                return self.copy_selected(source, target, datatype, places, space, space);
            }
            let memory = select(self.hdf5, space, start, count)?;
            self.copy_selected(source, target, datatype, places, memory.id, space)
        }
    }

    /// Copy what can be read of a box that cannot be read at once: its halves, their halves, and so
    /// on.  Where nothing of it can be read, gives why.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn copy_in_parts(
        &self,
        pair: &CopiedElements<'_>,
        slabs: &mut Slabs,
        start: &Dims,
        count: &Dims,
        fault: Fault,
    ) -> Result<Option<Fault>, Fault> {
        let unit = |axis: usize| slabs.chunk.as_ref().map_or(1, |chunk| chunk[axis].max(1));
        let in_chunk = (0..count.len()).all(|axis| count[axis] <= unit(axis));
        let axis = match in_chunk {
            false => (0..count.len()).find(|&axis| count[axis] > unit(axis)),
            true => (0..count.len()).find(|&axis| count[axis] > 1),
        };
        let Some(axis) = axis.filter(|_| !(in_chunk && fault.is_of_filter())) else {
            return Ok(Some(fault));
        };
        let unit = if in_chunk { 1 } else { unit(axis) };
        let half = count[axis].div_ceil(unit).div_ceil(2) * unit;
        let mut lost: Vec<(Dims, Dims, Fault)> = Vec::new();
        for (begin, len) in [(0, half), (half, count[axis] - half)] {
            let (mut start, mut count) = (start.clone(), count.clone());
            (start[axis], count[axis]) = (start[axis] + begin, len);
            // SAFETY: the caller's contract.
            unsafe {
                match self.copy_box(pair, &slabs.shape, &start, &count) {
                    Ok(led_nowhere) => slabs.lost += led_nowhere,
                    Err(fault) if fault.is_reading() => {
                        let found = self.copy_in_parts(pair, slabs, &start, &count, fault)?;
                        lost.extend(found.map(|fault| (start, count, fault)));
                    }
                    Err(fault) => return Err(fault),
                }
            }
        }
        if lost.len() == 2 {
            return Ok(lost.pop().map(|(_, _, fault)| fault));
        }
        slabs.missing.extend(lost);
        Ok(None)
    }

    /// Copy selected elements of a dataset; gives how many references led nowhere.
    ///
    /// # Safety
    /// As [`Hdf5`] says; all of `memory` is selected, as much as of `space`.
    unsafe fn copy_selected(
        &self,
        source: hid_t,
        target: hid_t,
        datatype: hid_t,
        places: Option<&Places>,
        memory: hid_t,
        space: hid_t,
    ) -> Result<u64, Fault> {
        let Hdf5 { api, .. } = self.hdf5;
        // SAFETY: the caller's contract; there is room for all elements.
        unsafe {
            let count = (api.H5Sget_simple_extent_npoints)(memory);
            let count = api.checked_id("H5Sget_simple_extent_npoints", count)?.unsigned_abs();
            let mut elements = Elements::new(self.hdf5, datatype, memory, count)?;
            elements.fill(|place| {
                let status = (api.H5Dread)(source, datatype, memory, space, DEFAULT, place);
                api.checked("H5Dread", status)?;
                Ok(())
            })?;
            let lost = match places {
                Some(places) => elements.retarget(self, places)?,
                None => 0,
            };
            let from = elements.as_ptr();
            let status = (api.H5Dwrite)(target, datatype, memory, space, DEFAULT, from);
            let written = api.checked("H5Dwrite", status).map(drop);
            let flushed = flush_or_abandon(api, target);
            written.and(flushed).writing()?;
            Ok(lost)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_element_is_in_one_slab_of_bounded_size(
            dims in prop::collection::vec((0u64..40, 1u64..50), 0..4),
            element_nbytes in prop::sample::select(vec![1u64, 16, 100_000, 1 << 25]),
        ) {
            let shape: Dims = dims.iter().map(|&(shape, _)| shape).collect();
            let chunk: Dims = dims.iter().map(|&(_, chunk)| chunk).collect();
            let mut slabs = Slabs::new(shape.clone(), Some(&chunk), element_nbytes);
            let total: u64 = shape.iter().product();
            let mut seen = 0;
            let mut before = None;
            while let Some((start, count)) = slabs.advance() {
                let len: u64 = count.iter().product();
                let inside = |(axis, &at): (usize, &u64)| at % chunk[axis] == 0 || at == 0;
                prop_assert!(start.iter().enumerate().all(inside));
                let one: u64 = chunk.iter().product::<u64>() * element_nbytes;
                prop_assert!(len * element_nbytes <= SLAB_NBYTES.max(one));
                prop_assert!(before.is_none_or(|before| before < start));
                seen += len;
                before = Some(start);
            }
            prop_assert_eq!(seen, total);
        }
    }
}
