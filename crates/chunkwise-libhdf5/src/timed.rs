//! How long does libhdf5 itself take to read an array selection by selection?

use std::ffi::c_int;

use chunkwise_engine::{ReadError, WalkBounds, WalkRecord, time_walk};
use chunkwise_select::{Dims, Hyperslab, Walk};

use crate::api::{Api, DEFAULT, hid_t};
use crate::dataset::holds_pointers;
use crate::{BindError, Library};

/// Why a walk stopped.
#[derive(Debug)]
enum WalkError {
    Engine(ReadError),
    Library(BindError),
}

impl From<ReadError> for WalkError {
    fn from(error: ReadError) -> Self {
        Self::Engine(error)
    }
}

/// Read the selections of `walk` from `dataset` with `H5Dread`, as [`time_walk`] says.
///
/// A program that reads blocks selects each in the file's dataspace and gives a
/// memory space of its shape: both calls are timed with the read, as users pay them.
/// The memory space is made once for each shape that differs from the last.
///
/// # Errors
/// What libhdf5 says, in words.
///
/// # Safety
/// `dataset` and `memory_type` must be live handles of this very library, the type's
/// elements of `element_size` bytes.
pub unsafe fn walk_libhdf5(
    library: &Library,
    dataset: hid_t,
    memory_type: hid_t,
    element_size: usize,
    walk: &Walk,
    bounds: WalkBounds,
) -> Result<WalkRecord, String> {
    library.locked(|api| {
        // SAFETY: a live type, by the caller's contract.
        let size = unsafe { (api.H5Tget_size)(memory_type) };
        if size != element_size {
            return Err(format!("an element takes {size} bytes in memory, not {element_size}"));
        }
        // SAFETY: as above.
        match unsafe { holds_pointers(api, memory_type) } {
            Ok(false) => {}
            Ok(true) => return Err("elements of variable length cannot be walked".to_string()),
            Err(error) => return Err(error.to_string()),
        }
        // SAFETY: a live dataset, by the caller's contract.
        let space = unsafe { (api.H5Dget_space)(dataset) };
        let space = api.checked_id("H5Dget_space", space).map_err(|e| e.to_string())?;
        let mut memory = MemorySpace { api, id: -1, shape: Dims::new() };
        // SAFETY: a live dataspace.
        let rank = unsafe { (api.H5Sget_simple_extent_ndims)(space) };
        let outcome = time_walk(walk, element_size, bounds, |slab, out| {
            if usize::try_from(rank) != Ok(slab.rank()) {
                let message = format!("{} dimensions do not fit {rank}", slab.rank());
                return Err(WalkError::Library(BindError::Call { call: "H5Dread", message }));
            }
            // SAFETY: the handles are live, and `out` has room for the slab's elements.
            let read =
                unsafe { read_slab(api, dataset, memory_type, space, &mut memory, slab, out) };
            read.map_err(WalkError::Library)
        });
        // SAFETY: a live dataspace, not used any more.
        unsafe { (api.H5Sclose)(space) };
        outcome.map_err(|error| match error {
            WalkError::Engine(error) => error.to_string(),
            WalkError::Library(error) => error.to_string(),
        })
    })
}

/// The memory dataspace of the last block's shape.
struct MemorySpace<'a> {
    api: &'a Api,
    id: hid_t,
    shape: Dims,
}

impl Drop for MemorySpace<'_> {
    fn drop(&mut self) {
        if self.id >= 0 {
            // SAFETY: a live dataspace; the lock is held as long as walks run.
            unsafe { (self.api.H5Sclose)(self.id) };
        }
    }
}

/// One block.
///
/// # Safety
/// Live handles; `out` must hold the slab's elements; the lock must be held.
unsafe fn read_slab(
    api: &Api,
    dataset: hid_t,
    memory_type: hid_t,
    space: hid_t,
    memory: &mut MemorySpace<'_>,
    slab: &Hyperslab,
    out: &mut [u8],
) -> Result<(), BindError> {
    let shape = slab.shape();
    let part =
        |of: fn(&chunkwise_select::Axis) -> u64| -> Dims { slab.axes().iter().map(of).collect() };
    let (start, stride) = (part(|axis| axis.start()), part(|axis| axis.stride()));
    let (count, block) = (part(|axis| axis.count()), part(|axis| axis.block()));
    // SAFETY: arrays of the rank's length; the rest is the caller's contract.
    unsafe {
        if memory.id < 0 || memory.shape != shape {
            if memory.id >= 0 {
                (api.H5Sclose)(memory.id);
                memory.id = -1;
            }
            let id = (api.H5Screate_simple)(shape.len() as c_int, shape.as_ptr(), std::ptr::null());
            memory.id = api.checked_id("H5Screate_simple", id)?;
            memory.shape = shape;
        }
        let select_set: c_int = 0;
        let status = (api.H5Sselect_hyperslab)(
            space,
            select_set,
            start.as_ptr(),
            stride.as_ptr(),
            count.as_ptr(),
            block.as_ptr(),
        );
        api.checked("H5Sselect_hyperslab", status)?;
        let status =
            (api.H5Dread)(dataset, memory_type, memory.id, space, DEFAULT, out.as_mut_ptr().cast());
        api.checked("H5Dread", status)?;
    }
    Ok(())
}
