//! Which sources does a virtual dataset have that the program reads, and are they still those?
//!
//! They are found by the bytes of their files (`chunkwise_metadata::Mapped`): libhdf5 opens none of
//! them for it, and need not have their filters.

use std::ffi::{c_char, c_uint};

use chunkwise_engine::platform::{Identity, open_without_waiting};
use chunkwise_libhdf5::binding::{Api, Handle, ObjectInfo, hid_t, shape_of};
use chunkwise_libhdf5::{Unsuited, file_stamp, storage_of};
use chunkwise_metadata::{Mapped, Metadata};

use crate::callee::Bound;
use crate::why::{Why, reason_of};

/// `H5F_OBJ_FILE`
const FILES: c_uint = 1;
/// `H5F_OBJ_ALL`: of whatever file.
const OF_ANY: hid_t = 0x1F;
const FOR_WRITING: c_uint = 1;
/// This many files of a program are looked at.
const MOST_FILES: usize = 64;

/// The sources of a virtual dataset whose file the program has open as `name`.
///
/// # Safety
/// A live dataset of this library, whose lock must be held.
pub unsafe fn mapped(bound: &Bound, api: &Api, id: hid_t, name: &str) -> Result<Mapped, String> {
    if std::env::var_os("HDF5_VDS_PREFIX").is_some() {
        return Err("HDF5_VDS_PREFIX says where its sources are".into());
    }
    // SAFETY: the caller's contract.
    let gap = unsafe { gap_of(bound, api, id) }.map_err(reason_of)?;
    // SAFETY: as above.
    let (shape, storage) = unsafe {
        let shape = shape_of(api, id).map_err(reason_of)?.0;
        (shape, storage_of(&bound.library, id).map_err(reason_of)?)
    };
    let own = std::path::absolute(name).map_err(|error| error.to_string())?;
    // libhdf5 knows where the process was when the file was opened.
    let found = open_without_waiting(&own).and_then(|file| Identity::of(&file));
    // SAFETY: as above.
    let theirs = unsafe { file_stamp(&bound.library, id) };
    if found.ok().zip(theirs).is_none_or(|(found, theirs)| found.key != theirs.key) {
        return Err("its file is not found by its name".into());
    }
    let mut info = ObjectInfo::default();
    // SAFETY: as above; a string and a place for the answer.
    let status = unsafe { (api.H5Gget_objinfo)(id, c".".as_ptr(), false, &raw mut info) };
    api.checked("H5Gget_objinfo", status).map_err(|error| error.to_string())?;
    let metadata = Metadata::of_storage(storage).ok_or("its file is unusual")?;
    metadata.mapped(info.address(), &own, &shape, gap)
}

/// How many sources may be missing before there are no more; a reason where the program sees the
/// dataset in another way than by default.
///
/// # Safety
/// As [`mapped`].
unsafe fn gap_of(bound: &Bound, api: &Api, id: hid_t) -> Result<u64, Unsuited> {
    const LAST_AVAILABLE: i32 = 1;
    let (mut view, mut gap, mut prefix) = (0, 0, [0 as c_char; 2]);
    // SAFETY: the caller's contract; valid pointers.
    let prefix_len = unsafe {
        let list = (api.H5Dget_access_plist)(id);
        let list = Handle::new(api, "H5Dget_access_plist", list, api.H5Pclose)?;
        let more = &bound.more;
        let status = (more.H5Pget_virtual_view)(list.id, &raw mut view);
        api.checked("H5Pget_virtual_view", status)?;
        let status = (more.H5Pget_virtual_printf_gap)(list.id, &raw mut gap);
        api.checked("H5Pget_virtual_printf_gap", status)?;
        (more.H5Pget_virtual_prefix)(list.id, prefix.as_mut_ptr(), prefix.len())
    };
    if view != LAST_AVAILABLE {
        return Err(Unsuited::Reason("it is viewed up to the first missing source".into()));
    }
    match prefix_len {
        0 => Ok(gap),
        _ => Err(Unsuited::Reason("the program says where its sources are".into())),
    }
}

/// Why libhdf5 has to read it now, if it does: something has come that was missing, or the program
/// writes to a source.
///
/// # Safety
/// The lock of the library must be held.
pub unsafe fn why_not_now(bound: &Bound, mapped: &Mapped) -> Option<Why> {
    if !mapped.absent.is_absent() {
        return Some("a source that was missing, or its file, has changed".into());
    }
    bound.library.locked(|api| {
        let mut files = [0; MOST_FILES];
        // SAFETY: the caller's contract; room for this many.
        let count = unsafe {
            let count = (bound.more.H5Fget_obj_count)(OF_ANY, FILES);
            (bound.more.H5Fget_obj_ids)(OF_ANY, FILES, MOST_FILES, files.as_mut_ptr());
            usize::try_from(count).unwrap_or(usize::MAX)
        };
        if count > MOST_FILES {
            return Some("the program has many files open".into());
        }
        let is_written = |&file: &hid_t| {
            let mut intent = 0;
            // SAFETY: an open file, a place for the answer.
            let status = unsafe { (api.H5Fget_intent)(file, &raw mut intent) };
            if status >= 0 && intent & FOR_WRITING == 0 {
                return false;
            }
            // SAFETY: as above.
            let found = unsafe { file_stamp(&bound.library, file) };
            found.is_none_or(|found| mapped.files.contains(&found.key))
        };
        let written = files[..count].iter().any(is_written);
        written.then(|| "a file that it leads to is open for writing".into())
    })
}
