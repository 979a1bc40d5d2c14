//! How is a group made with the creation properties that another has?

use std::ffi::c_uint;

use chunkwise_libhdf5::BindError;
use chunkwise_libhdf5::binding::{Api, DEFAULT, Handle, filters_of, hid_t, list};

use super::copier::Copier;
use super::error::{Fault, Writing};
use super::hdf5::Hdf5;
use super::inventory::{FOUND, Link};

/// A function that tells two numbers of a property list, and one that sets them.
type GetTwo = unsafe extern "C" fn(hid_t, *mut c_uint, *mut c_uint) -> i32;
type SetTwo = unsafe extern "C" fn(hid_t, c_uint, c_uint) -> i32;
/// The same for one number.
type GetOne = unsafe extern "C" fn(hid_t, *mut c_uint) -> i32;
type SetOne = unsafe extern "C" fn(hid_t, c_uint) -> i32;

impl Copier<'_> {
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn make_group(
        &mut self,
        address: u64,
        source: hid_t,
        place: Option<(hid_t, &Link)>,
    ) -> Result<(), Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract; handles are checked.
        unsafe {
            let gcpl = (tree.H5Gget_create_plist)(source);
            let gcpl = match Handle::new(api, "H5Gget_create_plist", gcpl, api.H5Pclose) {
                Ok(gcpl) => gcpl,
                Err(error) => {
                    // What is in it may be sound.
                    self.go_on(address, Fault::from(error).of(|| "its properties".into()))?;
                    list(api, tree.H5P_CLS_GROUP_CREATE_ID_g)?
                }
            };
            let of = self.like(gcpl.id)?;
            self.keep_times(address, source, of.id)?;
            let copy = match place {
                Some((group, link)) => {
                    let (name, lcpl) = (link.name.as_ptr(), self.lists.of(link));
                    (tree.H5Gcreate2)(group, name, lcpl, of.id, DEFAULT)
                }
                None => (tree.H5Gcreate_anon)(self.target, of.id, DEFAULT),
            };
            let copy = Handle::new(api, "H5Gcreate2", copy, tree.H5Oclose).writing()?;
            self.keep(address, copy.id, place.is_none())?;
            self.dress(address, source, copy.id, gcpl.id)
        }
    }

    /// Make the group of objects without a name.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn make_found_group(
        &mut self,
        group: hid_t,
        link: &Link,
    ) -> Result<(), Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        let (name, lcpl) = (link.name.as_ptr(), self.lists.of(link));
        // SAFETY: the caller's contract; handles are checked.
        unsafe {
            let made = (tree.H5Gcreate2)(group, name, lcpl, DEFAULT, DEFAULT);
            let made = Handle::new(api, "H5Gcreate2", made, tree.H5Oclose).writing()?;
            let moved = self.hdf5.address(made.id).writing()?;
            self.made.moved.insert(FOUND, moved);
        }
        Ok(())
    }

    /// A list with the same group creation properties.  Not the list itself: that of a group
    /// with many links also holds where their index lies in its own file.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn like(&self, gcpl: hid_t) -> Result<Handle, BindError> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract.
        unsafe {
            let made = list(api, tree.H5P_CLS_GROUP_CREATE_ID_g)?;
            let one = |get: GetOne, set: SetOne| {
                let mut value = 0;
                api.checked("H5Pget", get(gcpl, &raw mut value))?;
                api.checked("H5Pset", set(made.id, value))
            };
            let two = |get: GetTwo, set: SetTwo| {
                let (mut first, mut second) = (0, 0);
                api.checked("H5Pget", get(gcpl, &raw mut first, &raw mut second))?;
                api.checked("H5Pset", set(made.id, first, second))
            };
            one(tree.H5Pget_link_creation_order, tree.H5Pset_link_creation_order)?;
            one(tree.H5Pget_attr_creation_order, tree.H5Pset_attr_creation_order)?;
            two(tree.H5Pget_link_phase_change, tree.H5Pset_link_phase_change)?;
            two(tree.H5Pget_attr_phase_change, tree.H5Pset_attr_phase_change)?;
            two(tree.H5Pget_est_link_info, tree.H5Pset_est_link_info)?;
            let mut hint = 0;
            let status = (tree.H5Pget_local_heap_size_hint)(gcpl, &raw mut hint);
            api.checked("H5Pget_local_heap_size_hint", status)?;
            let status = (tree.H5Pset_local_heap_size_hint)(made.id, hint);
            api.checked("H5Pset_local_heap_size_hint", status)?;
            let mut times = true;
            let status = (tree.H5Pget_obj_track_times)(gcpl, &raw mut times);
            api.checked("H5Pget_obj_track_times", status)?;
            let status = (tree.H5Pset_obj_track_times)(made.id, times);
            api.checked("H5Pset_obj_track_times", status)?;
            self.add_filters(api, gcpl, made.id)?;
            Ok(made)
        }
    }

    /// Filters of the heap in which a group keeps its links.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn add_filters(&self, api: &Api, gcpl: hid_t, made: hid_t) -> Result<(), BindError> {
        // SAFETY: the caller's contract; all of the client data.
        unsafe {
            let count = api.checked("H5Pget_nfilters", (api.H5Pget_nfilters)(gcpl))?;
            for filter in filters_of(api, gcpl, count.unsigned_abs())? {
                let values = &filter.cd_values;
                let set = self.hdf5.tree.H5Pset_filter;
                let status = set(made, filter.id, filter.flags, values.len(), values.as_ptr());
                api.checked("H5Pset_filter", status)?;
            }
        }
        Ok(())
    }
}
