//! How is a selection put to libhdf5?

use std::ffi::c_int;

use chunkwise_libhdf5::BindError;
use chunkwise_libhdf5::binding::{Api, hid_t};
use chunkwise_select::{Axis, Dims, Hyperslab, Selection};

/// `H5S_seloper_t`
const SELECT_SET: c_int = 0;
const SELECT_OR: c_int = 1;

/// The memory dataspace of the last selection's shape, made anew for one of another shape.
pub(crate) struct MemorySpace<'a> {
    api: &'a Api,
    id: hid_t,
    shape: Dims,
}

impl<'a> MemorySpace<'a> {
    /// None yet.  The library's lock must be held for as long as this lives.
    pub(crate) fn new(api: &'a Api) -> Self {
        Self { api, id: -1, shape: Dims::new() }
    }

    /// Select the elements in `space`, and give the memory space for them.
    ///
    /// A union is put together in the order in which its hyperslabs were given.
    ///
    /// # Safety
    /// `space` must be a live dataspace of the selection's rank, and the lock be held.
    pub(crate) unsafe fn select(
        &mut self,
        space: hid_t,
        selection: &Selection,
    ) -> Result<hid_t, BindError> {
        self.fit(selection.shape())?;
        match selection {
            // SAFETY: the caller's contract.
            Selection::Hyperslab(slab) => unsafe { self.add(space, SELECT_SET, slab)? },
            Selection::Union { slabs, union } => {
                let mut how = SELECT_SET;
                for slab in slabs.iter() {
                    // SAFETY: the caller's contract; a union is of its hyperslabs' rank.
                    unsafe { self.add(space, how, slab)? };
                    how = SELECT_OR;
                }
                if slabs.is_empty() {
                    let nothing = Hyperslab::all(&vec![0; union.rank()]);
                    // SAFETY: the caller's contract.
                    unsafe { self.add(space, SELECT_SET, &nothing)? };
                }
            }
            Selection::Product(_) => {
                let message = "lists, points and masks are no hyperslabs".into();
                return Err(BindError::Call { call: "H5Sselect_hyperslab", message });
            }
        }
        Ok(self.id)
    }

    /// Make the memory space one of this shape.
    fn fit(&mut self, shape: Dims) -> Result<(), BindError> {
        if self.id >= 0 && self.shape == shape {
            return Ok(());
        }
        self.close();
        // SAFETY: an array of as many sizes as it says; the lock is held.
        let id = unsafe {
            (self.api.H5Screate_simple)(shape.len() as c_int, shape.as_ptr(), std::ptr::null())
        };
        self.id = self.api.checked_id("H5Screate_simple", id)?;
        self.shape = shape;
        Ok(())
    }

    fn close(&mut self) {
        if self.id >= 0 {
            // SAFETY: a live dataspace; the lock is held.
            unsafe { (self.api.H5Sclose)(self.id) };
            self.id = -1;
        }
    }

    /// Set the selection of `space` to a hyperslab, or add one to it.
    ///
    /// # Safety
    /// As [`select`](Self::select).
    unsafe fn add(&self, space: hid_t, how: c_int, slab: &Hyperslab) -> Result<(), BindError> {
        let part = |of: fn(&Axis) -> u64| -> Dims { slab.axes().iter().map(of).collect() };
        let (start, stride) = (part(Axis::start), part(Axis::stride));
        let (count, block) = (part(Axis::count), part(Axis::block));
        // SAFETY: arrays of the rank's length; the rest is the caller's contract.
        let status = unsafe {
            (self.api.H5Sselect_hyperslab)(
                space,
                how,
                start.as_ptr(),
                stride.as_ptr(),
                count.as_ptr(),
                block.as_ptr(),
            )
        };
        self.api.checked("H5Sselect_hyperslab", status)?;
        Ok(())
    }
}

impl Drop for MemorySpace<'_> {
    fn drop(&mut self) {
        self.close();
    }
}
