//! Which file holds a dataset, and how are its bytes had without libhdf5?

use std::ffi::{c_uint, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use chunkwise_engine::platform::{Descriptor, FileKey, Identity, borrowed};
use chunkwise_engine::{GrowingStorage, Storage};

use crate::api::{Api, DEFAULT, hid_t, hsize_t};
use crate::error::because;
use crate::handle::Handle;
use crate::{Library, Unsuited};

/// With which a file begins, or what follows its user block.
const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// The bytes of a file, and the size of its user block.
type Opened = (Arc<dyn Storage>, u64);

/// Which file it is, and when it was last written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Which file.
    pub key: FileKey,
    len: u64,
    modified: (i64, i64),
}

/// What is known of how a file's bytes are had.
#[derive(Clone, Copy, Default)]
pub struct FileBytes<'a> {
    /// It is a plain local file (the sec2 driver), which takes long to ask.
    pub plain: bool,
    /// It is none, and this holds its bytes.
    pub storage: Option<&'a Arc<dyn Storage>>,
}

/// The file's bytes, as the engine reads them.
///
/// # Errors
/// The reason why they cannot be read without libhdf5.
///
/// # Safety
/// A live handle of this library.
pub unsafe fn storage_of(library: &Library, dataset: hid_t) -> Result<Arc<dyn Storage>, Unsuited> {
    // SAFETY: the lock is held, the rest is the caller's contract.
    library
        .locked(|api| unsafe { open_storage(library, api, dataset, FileBytes::default()) })
        .map(|(storage, _)| storage)
}

/// The stamp of the file that holds an object, or is one; None where libhdf5 gives no descriptor.
///
/// # Safety
/// A live handle of this library.
pub unsafe fn file_stamp(library: &Library, object: hid_t) -> Option<FileStamp> {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract; the object keeps the
        // file open, and with it the descriptor, which is not closed here.
        let theirs = unsafe {
            let file = (api.H5Iget_file_id)(object);
            let file = Handle::new(api, "H5Iget_file_id", file, api.H5Fclose).ok()?;
            let descriptor = descriptor_of(api, file.id).ok()?;
            borrowed(descriptor).ok()?
        };
        let Identity { key, len, modified, .. } = Identity::of(&theirs).ok()?;
        Some(FileStamp { key, len, modified })
    })
}

/// The descriptor of an open file, which is open as long as the file is.
///
/// # Safety
/// A live file of this library; the lock must be held.
pub(crate) unsafe fn descriptor_of(api: &Api, file: hid_t) -> Result<Descriptor, Unsuited> {
    // SAFETY: the caller's contract.
    unsafe {
        check_driver(api, file, sec2_of(api)?)?;
        descriptor_by_sec2(api, file)
    }
}

/// Refuse a file of another driver: only this one's handle is known to be a descriptor of the
/// file itself.
///
/// # Safety
/// A live file of this library; the lock must be held.
unsafe fn check_driver(api: &Api, file: hid_t, sec2: hid_t) -> Result<(), Unsuited> {
    // SAFETY: the caller's contract; every handle is checked.
    unsafe {
        let fapl = (api.H5Fget_access_plist)(file);
        let fapl = Handle::new(api, "H5Fget_access_plist", fapl, api.H5Pclose)?;
        if (api.H5Pget_driver)(fapl.id) != sec2 {
            return because("the file is not opened with the sec2 driver (plain local files)");
        }
    }
    Ok(())
}

/// As [`descriptor_of`], of a file that has this driver.
///
/// # Safety
/// As [`descriptor_of`].
unsafe fn descriptor_by_sec2(api: &Api, file: hid_t) -> Result<Descriptor, Unsuited> {
    // SAFETY: the caller's contract; a valid pointer.
    unsafe {
        let mut handle: *mut c_void = std::ptr::null_mut();
        let status = (api.H5Fget_vfd_handle)(file, DEFAULT, &raw mut handle);
        api.checked("H5Fget_vfd_handle", status)?;
        if handle.is_null() {
            return because("its driver gives no file descriptor");
        }
        // The sec2 driver's handle points at its descriptor, open as long as the file.
        Ok(*handle.cast::<Descriptor>())
    }
}

/// What a driver of this number was given when the file that holds `dataset` was opened with it; None
/// of a file of another driver.
///
/// # Safety
/// A live dataset of this library.  What the pointer leads to is the driver's, which keeps it as long
/// as the file is open.
pub unsafe fn driver_info(
    library: &Library,
    dataset: hid_t,
    driver: hid_t,
) -> Option<NonNull<c_void>> {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract; every handle is checked.
        unsafe {
            let file = (api.H5Iget_file_id)(dataset);
            let file = Handle::new(api, "H5Iget_file_id", file, api.H5Fclose).ok()?;
            let fapl = (api.H5Fget_access_plist)(file.id);
            let fapl = Handle::new(api, "H5Fget_access_plist", fapl, api.H5Pclose).ok()?;
            if (api.H5Pget_driver)(fapl.id) != driver {
                return None;
            }
            NonNull::new((api.H5Pget_driver_info)(fapl.id).cast_mut())
        }
    })
}

/// Whether a file is opened as a plain local one; otherwise why libhdf5 has to do everything.
///
/// # Errors
/// That reason: another driver, such as MPI's.
///
/// # Safety
/// A live dataset of this library.
pub unsafe fn opened_locally(library: &Library, dataset: hid_t) -> Result<(), Unsuited> {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let (file, _) = file_of(api, dataset)?;
            descriptor_of(api, file.id).map(drop)
        }
    })
}

/// The number of the driver of plain local files, the same as long as the library is there.
///
/// # Safety
/// The lock must be held.
unsafe fn sec2_of(api: &Api) -> Result<hid_t, Unsuited> {
    // SAFETY: the caller's contract; every handle is checked.
    unsafe {
        let local = (api.H5Pcreate)(api.H5P_CLS_FILE_ACCESS_ID_g);
        let local = Handle::new(api, "H5Pcreate", local, api.H5Pclose)?;
        api.checked("H5Pset_fapl_sec2", (api.H5Pset_fapl_sec2)(local.id))?;
        Ok((api.H5Pget_driver)(local.id))
    }
}

/// A descriptor of the file that holds the dataset, made from libhdf5's own, and the size
/// of that file's user block.  The path is never opened again: it may lead elsewhere by now.
pub(crate) unsafe fn open_storage(
    library: &Library,
    api: &Api,
    dataset: hid_t,
    bytes: FileBytes<'_>,
) -> Result<Opened, Unsuited> {
    // SAFETY: the caller's contract.
    unsafe {
        let (file, is_writable) = file_of(api, dataset)?;
        if is_writable {
            return because(
                "the file is open for writing: what is in libhdf5's buffers is not on disk",
            );
        }
        storage_in(library, api, &file, bytes)
    }
}

/// As [`open_storage`], of a file that is read along with its writer (SWMR); None where it is not.
///
/// # Safety
/// As [`open_storage`].
pub(crate) unsafe fn open_growing(
    library: &Library,
    api: &Api,
    dataset: hid_t,
) -> Result<Option<Opened>, Unsuited> {
    // SAFETY: the caller's contract.
    unsafe {
        let (file, intent) = intent_of(api, dataset)?;
        if intent & (RDWR | SWMR) != SWMR_READ {
            return Ok(None);
        }
        let (storage, user_block) = storage_in(library, api, &file, FileBytes::default())?;
        Ok(Some((Arc::new(GrowingStorage(storage)), user_block)))
    }
}

/// The bytes of an open file, and the size of its user block.
///
/// # Safety
/// A live file of this library; the lock must be held.
unsafe fn storage_in(
    library: &Library,
    api: &Api,
    file: &Handle,
    bytes: FileBytes<'_>,
) -> Result<Opened, Unsuited> {
    // SAFETY: the caller's contract; every handle is checked.
    unsafe {
        let storage = match bytes.storage {
            Some(given) => Arc::clone(given),
            None => {
                if !bytes.plain {
                    check_driver(api, file.id, library.sec2(|| sec2_of(api))?)?;
                }
                let descriptor = descriptor_by_sec2(api, file.id)?;
                match library.storage_of(descriptor) {
                    Ok(storage) => storage as Arc<dyn Storage>,
                    Err(error) => {
                        return because(format!("no descriptor of its file can be had: {error}"));
                    }
                }
            }
        };
        let mut user_block: hsize_t = 0;
        // libhdf5 looks at the file's beginning first; to ask it means to copy a list of properties.
        let mut first = [0; SIGNATURE.len()];
        if storage.read_metadata(0, &mut first).is_err() || first != SIGNATURE {
            let fcpl = (api.H5Fget_create_plist)(file.id);
            let fcpl = Handle::new(api, "H5Fget_create_plist", fcpl, api.H5Pclose)?;
            api.checked("H5Pget_userblock", (api.H5Pget_userblock)(fcpl.id, &raw mut user_block))?;
        }
        Ok((storage, user_block))
    }
}

/// Flags of an opened file (`H5F_ACC_RDWR`, `H5F_ACC_SWMR_WRITE` and `H5F_ACC_SWMR_READ`).
const RDWR: c_uint = 1;
const SWMR: c_uint = 0x20 | SWMR_READ;
const SWMR_READ: c_uint = 0x40;

/// The file that holds a dataset, and whether it is open for writing; a reason where that is
/// for SWMR.
///
/// # Safety
/// A live dataset of this library, with the lock held.
pub(crate) unsafe fn file_of(api: &Api, dataset: hid_t) -> Result<(Handle, bool), Unsuited> {
    // SAFETY: the caller's contract.
    let (file, intent) = unsafe { intent_of(api, dataset)? };
    if intent & SWMR != 0 {
        return because("the file is open for SWMR");
    }
    Ok((file, intent & RDWR != 0))
}

/// The file that holds a dataset, and the flags with which it was opened.
///
/// # Safety
/// A live dataset of this library, with the lock held.
pub(crate) unsafe fn intent_of(api: &Api, dataset: hid_t) -> Result<(Handle, c_uint), Unsuited> {
    let mut intent: c_uint = 0;
    // SAFETY: the caller's contract; every handle is checked.
    unsafe {
        // Not the file through which it was reached: an external link leads elsewhere.
        let file = (api.H5Iget_file_id)(dataset);
        let file = Handle::new(api, "H5Iget_file_id", file, api.H5Fclose)?;
        api.checked("H5Fget_intent", (api.H5Fget_intent)(file.id, &raw mut intent))?;
        Ok((file, intent))
    }
}
