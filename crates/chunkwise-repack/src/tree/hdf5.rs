//! How is an object found by its address, and what is asked of every object?

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use chunkwise_libhdf5::BindError;
use chunkwise_libhdf5::binding::{Api, Handle, ObjectInfo, hid_t, hsize_t};

use super::api::{LinkCallback, TreeApi};
use super::error::Fault;

/// Both tables, while the library's lock is held.
///
/// Its methods are unsafe for one reason: handles must be live handles of this library.
#[derive(Clone, Copy)]
pub(super) struct Hdf5<'a> {
    pub(super) api: &'a Api,
    pub(super) tree: &'a TreeApi,
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Group,
    Dataset,
    Datatype,
}

/// `H5_INDEX_NAME`, `H5_INDEX_CRT_ORDER`
const BY_NAME: c_int = 0;
const BY_CREATION: c_int = 1;
/// `H5_ITER_INC`, `H5_ITER_NATIVE`
const INCREASING: c_int = 0;
const AS_STORED: c_int = 2;
/// `H5P_CRT_ORDER_TRACKED`
const TRACKED: u32 = 1;

impl Hdf5<'_> {
    /// How links and attributes are listed of which a damaged index does not give all.
    pub(super) const OTHER_ORDERS: [(c_int, c_int); 3] =
        [(BY_NAME, AS_STORED), (BY_CREATION, AS_STORED), (BY_NAME, INCREASING)];

    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn open(self, file: hid_t, address: u64) -> Result<Handle, BindError> {
        // SAFETY: the caller's contract; libhdf5 checks the address.
        unsafe {
            let id = (self.tree.H5Oopen_by_addr)(file, address);
            Handle::new(self.api, "H5Oopen_by_addr", id, self.tree.H5Oclose)
        }
    }

    /// Facts of the object `name` of a group, or with `.` of an object itself.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn info(self, at: hid_t, name: &CStr) -> Result<ObjectInfo, BindError> {
        let mut info = ObjectInfo::default();
        // SAFETY: the caller's contract, and room for the facts.  Not H5Oget_info1: it reads
        // whole chunk indexes.
        let status = unsafe { (self.api.H5Gget_objinfo)(at, name.as_ptr(), false, &raw mut info) };
        self.api.checked("H5Gget_objinfo", status)?;
        Ok(info)
    }

    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn address(self, object: hid_t) -> Result<u64, BindError> {
        // SAFETY: the caller's contract.
        Ok(unsafe { self.info(object, c".")? }.address())
    }

    /// Call back for each link, in order of creation where the group keeps it.
    ///
    /// # Safety
    /// As [`Hdf5`] says; `data` is what the callback takes it for.
    pub(super) unsafe fn each_link(
        self,
        group: hid_t,
        callback: LinkCallback,
        data: *mut c_void,
    ) -> Result<(), BindError> {
        let mut flags = 0;
        // SAFETY: the caller's contract; valid pointers.
        unsafe {
            let gcpl = (self.tree.H5Gget_create_plist)(group);
            let gcpl = Handle::new(self.api, "H5Gget_create_plist", gcpl, self.api.H5Pclose)?;
            let status = (self.tree.H5Pget_link_creation_order)(gcpl.id, &raw mut flags);
            self.api.checked("H5Pget_link_creation_order", status)?;
            let index = if flags & TRACKED == 0 { BY_NAME } else { BY_CREATION };
            self.each_link_by(group, index, INCREASING, callback, data)
        }
    }

    /// Call back for each link that an index gives, in some order.
    ///
    /// # Safety
    /// As [`Hdf5`] says; `data` is what the callback takes it for.
    pub(super) unsafe fn each_link_by(
        self,
        group: hid_t,
        index: c_int,
        order: c_int,
        callback: LinkCallback,
        data: *mut c_void,
    ) -> Result<(), BindError> {
        let Some(iterate) = self.tree.H5Literate2.or(self.tree.H5Literate) else {
            let path = String::from("libhdf5");
            return Err(BindError::Symbol { path, symbol: "H5Literate2" });
        };
        let mut from: hsize_t = 0;
        // SAFETY: the caller's contract; a valid pointer.
        let status = unsafe { iterate(group, index, order, &raw mut from, callback, data) };
        self.api.checked("H5Literate", status)?;
        Ok(())
    }

    /// Names of an object's attributes: in order of creation where it keeps that (`ocpl` are
    /// its creation properties), otherwise as they are stored, which is how most tools list
    /// them.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn attribute_names(
        self,
        object: hid_t,
        ocpl: hid_t,
        lost: &mut dyn FnMut(BindError) -> Result<(), Fault>,
    ) -> Result<Vec<CString>, Fault> {
        let add = add_name;
        let mut names: Vec<CString> = Vec::new();
        let mut flags = 0;
        let mut from: hsize_t = 0;
        // SAFETY: the caller's contract; the callback and its data fit each other.
        unsafe {
            let status = (self.tree.H5Pget_attr_creation_order)(ocpl, &raw mut flags);
            self.api.checked("H5Pget_attr_creation_order", status)?;
            let (index, order) = match flags & TRACKED {
                0 => (BY_NAME, AS_STORED),
                _ => (BY_CREATION, INCREASING),
            };
            let iterate = self.tree.H5Aiterate2;
            let status = iterate(object, index, order, &raw mut from, add, (&raw mut names).cast());
            if let Err(error) = self.api.checked("H5Aiterate2", status) {
                lost(error)?;
                for (index, order) in Self::OTHER_ORDERS {
                    let (mut more, mut from): (Vec<CString>, hsize_t) = (Vec::new(), 0);
                    iterate(object, index, order, &raw mut from, add, (&raw mut more).cast());
                    more.retain(|name| !names.contains(name));
                    names.append(&mut more);
                }
            }
        }
        Ok(names)
    }

    /// Names of an object's attributes, as they are stored.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn attribute_names_as_stored(
        self,
        object: hid_t,
    ) -> Result<Vec<CString>, BindError> {
        let mut names: Vec<CString> = Vec::new();
        let mut from: hsize_t = 0;
        // SAFETY: the caller's contract; the callback and its data fit each other.
        unsafe {
            let (iterate, list) = (self.tree.H5Aiterate2, (&raw mut names).cast());
            let status = iterate(object, BY_NAME, AS_STORED, &raw mut from, add_name, list);
            self.api.checked("H5Aiterate2", status)?;
        }
        Ok(names)
    }

    /// Copy an object's comment, if it has one.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn copy_comment(self, source: hid_t, target: hid_t) -> Result<(), Fault> {
        use super::error::{Writing, buffer};
        // SAFETY: the caller's contract; room for the comment and the zero that ends it.
        unsafe {
            let length = (self.tree.H5Oget_comment)(source, std::ptr::null_mut(), 0);
            let length = self.api.checked_id("H5Oget_comment", length as hid_t)?;
            if length == 0 {
                return Ok(());
            }
            let mut comment = buffer(length.unsigned_abs() + 1)?;
            (self.tree.H5Oget_comment)(source, comment.as_mut_ptr().cast(), comment.len());
            let status = (self.tree.H5Oset_comment)(target, comment.as_ptr().cast());
            self.api.checked("H5Oset_comment", status).writing()?;
        }
        Ok(())
    }

    /// The name under which a file was opened.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn file_name(self, file: hid_t) -> Result<Vec<u8>, BindError> {
        // SAFETY: the caller's contract; room for the name and the zero that ends it.
        unsafe {
            let length = (self.tree.H5Fget_name)(file, std::ptr::null_mut(), 0);
            let length = self.api.checked_id("H5Fget_name", length as hid_t)?;
            let mut name = vec![0; usize::try_from(length).unwrap_or(0) + 1];
            (self.tree.H5Fget_name)(file, name.as_mut_ptr().cast(), name.len());
            name.pop();
            Ok(name)
        }
    }
}

unsafe extern "C" fn add_name(
    _object: hid_t,
    name: *const c_char,
    _info: *const c_void,
    data: *mut c_void,
) -> c_int {
    // SAFETY: libhdf5 passes a live string, and `data` is a list of these.
    unsafe { (*data.cast::<Vec<CString>>()).push(CStr::from_ptr(name).to_owned()) };
    0
}

/// What an object is; None for what this libhdf5 does not know either.
pub(super) fn kind_of(info: &ObjectInfo) -> Option<Kind> {
    match info.class {
        0 => Some(Kind::Group),
        1 => Some(Kind::Dataset),
        2 => Some(Kind::Datatype),
        _ => None,
    }
}
