//! How are elements of any type read, led to the copied objects, and written again?

use std::ffi::c_void;

use chunkwise_libhdf5::binding::{DEFAULT, hid_t};

use super::copier::Copier;
use super::error::{Fault, Writing, buffer};
use super::hdf5::Hdf5;
use super::references::Places;

/// Elements in memory, in the type and number of `space`; what they hold elsewhere in memory
/// is given back when they are dropped.
pub(super) struct Elements<'a> {
    hdf5: Hdf5<'a>,
    datatype: hid_t,
    space: hid_t,
    element_nbytes: usize,
    bytes: Vec<u8>,
    read: bool,
}

impl<'a> Elements<'a> {
    /// Room for all elements that a simple or scalar space selects.
    ///
    /// # Safety
    /// As [`Hdf5`] says, until this is dropped.
    pub(super) unsafe fn new(
        hdf5: Hdf5<'a>,
        datatype: hid_t,
        space: hid_t,
        count: u64,
    ) -> Result<Self, Fault> {
        // SAFETY: the caller's contract.
        let element_nbytes = unsafe { (hdf5.api.H5Tget_size)(datatype) };
        let nbytes = count.saturating_mul(element_nbytes as u64);
        let bytes = buffer(nbytes)?;
        Ok(Self { hdf5, datatype, space, element_nbytes, bytes, read: false })
    }

    /// Where to read them to, by a call that succeeds entirely or fails.
    pub(super) fn fill(
        &mut self,
        read: impl FnOnce(*mut c_void) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        read(self.bytes.as_mut_ptr().cast())?;
        self.read = true;
        Ok(())
    }

    /// Where to write them from.
    pub(super) fn as_ptr(&self) -> *const c_void {
        self.bytes.as_ptr().cast()
    }

    /// Lead their references to the copied objects; gives how many led nowhere.
    ///
    /// # Safety
    /// As [`Hdf5`] says; `places` is of their type.
    pub(super) unsafe fn retarget(
        &mut self,
        copier: &Copier<'_>,
        places: &Places,
    ) -> Result<u64, Fault> {
        let mut lost = 0;
        for element in self.each() {
            // SAFETY: the caller's contract; they have been read.
            lost += unsafe { copier.retarget(places, element)? };
        }
        Ok(lost)
    }

    /// Each of them, in their order.
    pub(super) fn each(&mut self) -> impl Iterator<Item = *mut u8> {
        self.bytes.chunks_exact_mut(self.element_nbytes.max(1)).map(<[u8]>::as_mut_ptr)
    }
}

impl Drop for Elements<'_> {
    fn drop(&mut self) {
        // What a read that failed has left behind is not known.
        if self.read {
            // SAFETY: elements as libhdf5 has read them, with live handles of their type and
            // space; the lock is held wherever there are elements.
            unsafe {
                (self.hdf5.tree.H5Dvlen_reclaim)(
                    self.datatype,
                    self.space,
                    DEFAULT,
                    self.bytes.as_mut_ptr().cast(),
                );
            }
        }
    }
}

impl Copier<'_> {
    /// Copy what an attribute holds, to one of the same type and space; gives how many
    /// references led nowhere.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn copy_value(
        &self,
        source: hid_t,
        target: hid_t,
        datatype: hid_t,
        space: hid_t,
        places: Option<&Places>,
    ) -> Result<u64, Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract; there is room for all elements.
        unsafe {
            let count = (api.H5Sget_simple_extent_npoints)(space);
            let count = api.checked_id("H5Sget_simple_extent_npoints", count)?.unsigned_abs();
            if count == 0 {
                return Ok(0);
            }
            let mut elements = Elements::new(self.hdf5, datatype, space, count)?;
            elements.fill(|place| {
                api.checked("H5Aread", (tree.H5Aread)(source, datatype, place))?;
                Ok(())
            })?;
            let lost = match places {
                Some(places) => elements.retarget(self, places)?,
                None => 0,
            };
            let status = (tree.H5Awrite)(target, datatype, elements.as_ptr());
            api.checked("H5Awrite", status).writing()?;
            Ok(lost)
        }
    }
}
