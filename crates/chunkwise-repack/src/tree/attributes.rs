//! How are an object's attributes copied?
//!
//! All of them are made at once, in their order, because an object may keep that order.
//! Those that hold references get their values at the end, when every object has its copy.

use std::ffi::CStr;

use chunkwise_libhdf5::BindError;
use chunkwise_libhdf5::binding::{DEFAULT, Handle, hid_t};

use super::copier::{Copier, Later};
use super::error::{Fault, Writing};
use super::hdf5::Hdf5;
use super::lost::crashes;
use super::references::Places;

/// `H5S_class_t`
pub(super) const NULL_SPACE: i32 = 2;

impl Copier<'_> {
    /// Copy attributes and comment of an object; `ocpl` are its creation properties.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn dress(
        &mut self,
        address: u64,
        source: hid_t,
        target: hid_t,
        ocpl: hid_t,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's contract.
        unsafe {
            if let Err(fault) = self.hdf5.copy_comment(source, target) {
                self.go_on(address, fault.of(comment))?;
            }
            if let Err(fault) = self.can_list_attributes(address, source) {
                return self.dress_natively(address, target, fault, &[]);
            }
            let mut failed = None;
            let mut go_on = |error: BindError| {
                failed = Some(error);
                Ok(())
            };
            let names = self.hdf5.attribute_names(source, ocpl, &mut go_on)?;
            for name in &names {
                if let Err(fault) = self.copy_attribute(address, source, target, name) {
                    self.lose_attribute(address, target, name, fault)?;
                }
            }
            if let Some(error) = failed {
                return self.dress_natively(address, target, error.into(), &names);
            }
        }
        Ok(())
    }

    /// Whether attributes can be listed, where what is damaged is left out: a libhdf5 before 2.0
    /// may crash when it lists them, and fails to look for one.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn can_list_attributes(&self, address: u64, object: hid_t) -> Result<(), Fault> {
        let lost = &self.made.lost;
        if !lost.wanted {
            return Ok(());
        }
        if lost.known.attributes.contains(&address) {
            return Err(crashes());
        }
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract; a name that no attribute has.
        let status = unsafe { (tree.H5Aexists)(object, c"\x01".as_ptr()) };
        api.checked("H5Aexists", status)?;
        Ok(())
    }

    /// Leave out an attribute, of which there may be a copy without a value.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn lose_attribute(
        &mut self,
        address: u64,
        target: hid_t,
        name: &CStr,
        fault: Fault,
    ) -> Result<(), Fault> {
        let (object, of) = (self.printable(address), name.to_string_lossy());
        let lost = &mut self.made.lost;
        lost.leave_out(&object, Some(&*of), None, fault)
            .map_err(|fault| fault.of(|| part(name)))?;
        // SAFETY: the caller's contract; one that is not there is an error of no consequence.
        unsafe { (self.hdf5.tree.H5Adelete)(target, name.as_ptr()) };
        Ok(())
    }

    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn copy_attribute(
        &mut self,
        address: u64,
        source: hid_t,
        target: hid_t,
        name: &CStr,
    ) -> Result<(), Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract; handles are checked.
        unsafe {
            let Opened { attribute, datatype, space } = self.attribute(source, name)?;
            let acpl = (tree.H5Aget_create_plist)(attribute.id);
            let acpl = Handle::new(api, "H5Aget_create_plist", acpl, api.H5Pclose)?;
            let made = self.committed(datatype.id)?;
            let copy = (tree.H5Acreate2)(target, name.as_ptr(), made, space.id, acpl.id, DEFAULT);
            let copy =
                Handle::new(api, "H5Acreate2", copy, tree.H5Aclose).writing().map_err(|fault| {
                    fault.because("attributes of 64 KiB and more need a newer file format")
                })?;
            if (api.H5Sget_simple_extent_type)(space.id) == NULL_SPACE {
                return Ok(());
            }
            if Places::of(self.hdf5, datatype.id)?.is_some() {
                let name = name.to_owned();
                self.made.later.push(Later::Attribute { object: address, name });
                return Ok(());
            }
            self.copy_value(attribute.id, copy.id, datatype.id, space.id, None)?;
        }
        Ok(())
    }

    /// Give an attribute whose references can be led to copies now its value.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn fill_attribute(&mut self, object: u64, name: &CStr) -> Result<u64, Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        let Some(&moved) = self.made.moved.get(&object) else { return Ok(0) };
        // SAFETY: the caller's contract; handles are checked.
        unsafe {
            let source = self.hdf5.open(self.source, object)?;
            let target = self.hdf5.open(self.target, moved).writing()?;
            let Opened { attribute, datatype, space } = self.attribute(source.id, name)?;
            let copy = (tree.H5Aopen)(target.id, name.as_ptr(), DEFAULT);
            let copy = Handle::new(api, "H5Aopen", copy, tree.H5Aclose).writing()?;
            let places = Places::of(self.hdf5, datatype.id)?;
            self.copy_value(attribute.id, copy.id, datatype.id, space.id, places.as_ref())
        }
    }

    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn attribute(&self, object: hid_t, name: &CStr) -> Result<Opened, Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract; handles are checked.
        unsafe {
            let attribute = (tree.H5Aopen)(object, name.as_ptr(), DEFAULT);
            let attribute = Handle::new(api, "H5Aopen", attribute, tree.H5Aclose)?;
            let datatype = (tree.H5Aget_type)(attribute.id);
            let datatype = Handle::new(api, "H5Aget_type", datatype, api.H5Tclose)?;
            let space = (tree.H5Aget_space)(attribute.id);
            let space = Handle::new(api, "H5Aget_space", space, api.H5Sclose)?;
            Ok(Opened { attribute, datatype, space })
        }
    }
}

/// An attribute with its type and space.
struct Opened {
    attribute: Handle,
    datatype: Handle,
    space: Handle,
}

/// An attribute in words that follow its object's name.
pub(super) fn part(name: &CStr) -> String {
    format!("its attribute '{}'", name.to_string_lossy())
}

fn comment() -> String {
    "its comment".to_string()
}
