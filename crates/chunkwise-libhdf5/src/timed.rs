//! How long does libhdf5 itself take to read an array selection by selection?

use chunkwise_engine::{ReadError, WalkBounds, WalkRecord, time_walk};
use chunkwise_select::{Selection, Walk};

use crate::api::{Api, DEFAULT, hid_t};
use crate::dataset::holds_pointers;
use crate::selecting::MemorySpace;
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
/// memory space of its shape: both calls are timed with the read, as users pay them, and
/// so is each call that adds a hyperslab to a union, read into memory of one dimension.
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
        let mut memory = MemorySpace::new(api);
        // SAFETY: a live dataspace.
        let rank = unsafe { (api.H5Sget_simple_extent_ndims)(space) };
        let outcome = time_walk(walk, element_size, bounds, |selection, out| {
            if usize::try_from(rank) != Ok(selection.rank()) {
                let message = format!("{} dimensions do not fit {rank}", selection.rank());
                return Err(WalkError::Library(BindError::Call { call: "H5Dread", message }));
            }
            // SAFETY: the handles are live, and `out` has room for what is selected.
            let read = unsafe {
                read_selection(api, dataset, memory_type, space, &mut memory, selection, out)
            };
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

/// One selection.
///
/// # Safety
/// Live handles; `out` must hold the selection's elements; the lock must be held.
unsafe fn read_selection(
    api: &Api,
    dataset: hid_t,
    memory_type: hid_t,
    space: hid_t,
    memory: &mut MemorySpace<'_>,
    selection: &Selection,
    out: &mut [u8],
) -> Result<(), BindError> {
    // SAFETY: the caller's contract.
    unsafe {
        let memory = memory.select(space, selection)?;
        let status =
            (api.H5Dread)(dataset, memory_type, memory, space, DEFAULT, out.as_mut_ptr().cast());
        api.checked("H5Dread", status)?;
    }
    Ok(())
}
