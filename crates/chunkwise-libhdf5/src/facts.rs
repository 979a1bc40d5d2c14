//! What is known of a dataset as it is stored, for those who copy one into another?

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use chunkwise_engine::Storage;
use chunkwise_select::Dims;

use crate::api::{Api, hid_t};
use crate::dataset::{
    Handle, StatedFilter, because, chunk_options, fill_of, filters_of, holds_pointers,
    open_storage, shape_of,
};
use crate::{Described, Library, Unsuited, describe};

/// A filter's number, flags and client data.
pub type StoredFilter = (c_int, u32, Vec<u32>);

/// A dataset as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetFacts {
    /// Elements in each dimension, slowest first; empty for a scalar, None without any
    /// element at all (a null dataspace).
    pub shape: Option<Dims>,
    /// Shape of a chunk; None for other layouts.
    pub chunk: Option<Dims>,
    /// Filters in pipeline order.
    pub filters: Vec<StoredFilter>,
    /// Chunks that reach beyond the dataset's edge are stored without filters.
    pub unfiltered_partial_chunks: bool,
    /// Bytes of a stored element.
    pub element_size: usize,
    /// The bytes of an element that was never written; None where it may be anything.
    pub fill: Option<Vec<u8>>,
    /// Stored bytes point elsewhere in the file: variable length, references.
    pub holds_pointers: bool,
}

/// Which file it is, and when it was last written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    identity: (u64, u64),
    len: u64,
    modified: (i64, i64),
}

/// The facts of the dataset `dataset`.
///
/// # Errors
/// When a call fails.
///
/// # Safety
/// A live handle of this library.
pub unsafe fn facts_of(library: &Library, dataset: hid_t) -> Result<DatasetFacts, Unsuited> {
    const NULL: c_int = 2; // H5S_NULL
    const SCALAR: c_int = 0; // H5S_SCALAR
    const CHUNKED: c_int = 2; // H5D_CHUNKED
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let space = (api.H5Dget_space)(dataset);
            let space = Handle::new(api, "H5Dget_space", space, api.H5Sclose)?;
            let shape = match (api.H5Sget_simple_extent_type)(space.id) {
                NULL => None,
                SCALAR => Some(Dims::new()),
                _ => Some(shape_of(api, dataset)?.0),
            };
            let datatype =
                Handle::new(api, "H5Dget_type", (api.H5Dget_type)(dataset), api.H5Tclose)?;
            let element_size = match (api.H5Tget_size)(datatype.id) {
                0 => return Err(api.failed("H5Tget_size").into()),
                size => size,
            };
            let holds_pointers = holds_pointers(api, datatype.id)?;
            let dcpl = (api.H5Dget_create_plist)(dataset);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            let fill = if holds_pointers {
                None
            } else {
                fill_of(api, dcpl.id, datatype.id, element_size)?.0
            };
            let mut facts = DatasetFacts {
                shape,
                chunk: None,
                filters: Vec::new(),
                unfiltered_partial_chunks: false,
                element_size,
                fill,
                holds_pointers,
            };
            let rank = facts.shape.as_ref().map_or(0, |shape| shape.len());
            if rank > 0 && (api.H5Pget_layout)(dcpl.id) == CHUNKED {
                let options = chunk_options(api, dcpl.id, rank)?;
                let filters = filters_of(api, dcpl.id, options.filters)?;
                let stated = |filter: StatedFilter| (filter.id, filter.flags, filter.cd_values);
                facts.filters = filters.into_iter().map(stated).collect();
                facts.unfiltered_partial_chunks = options.unfiltered_partial_chunks;
                facts.chunk = Some(options.chunk);
            }
            Ok(facts)
        }
    })
}

/// Whether two datasets store elements of the same type.
///
/// # Errors
/// When a call fails.
///
/// # Safety
/// Two live handles of this library.
pub unsafe fn same_stored_type(library: &Library, a: hid_t, b: hid_t) -> Result<bool, Unsuited> {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let a = Handle::new(api, "H5Dget_type", (api.H5Dget_type)(a), api.H5Tclose)?;
            let b = Handle::new(api, "H5Dget_type", (api.H5Dget_type)(b), api.H5Tclose)?;
            Ok(api.checked("H5Tequal", (api.H5Tequal)(a.id, b.id))? > 0)
        }
    })
}

/// As [`describe`], with elements in memory as they are stored.
///
/// # Errors
/// The reason why libhdf5 has to read this dataset.
///
/// # Safety
/// A live handle of this library.
pub unsafe fn describe_as_stored(library: &Library, dataset: hid_t) -> Described {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let datatype =
                Handle::new(api, "H5Dget_type", (api.H5Dget_type)(dataset), api.H5Tclose)?;
            describe(library, dataset, datatype.id)
        }
    })
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
    library.locked(|api| unsafe { open_storage(library, api, dataset) }).map(|(storage, _)| storage)
}

/// The stamp of the file that holds `dataset`; None where libhdf5 gives no descriptor.
///
/// # Safety
/// A live handle of this library.
pub unsafe fn file_stamp(library: &Library, dataset: hid_t) -> Option<FileStamp> {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract; the dataset keeps the
        // file open, and with it the descriptor, which is not closed here.
        let metadata = unsafe {
            let file = (api.H5Iget_file_id)(dataset);
            let file = Handle::new(api, "H5Iget_file_id", file, api.H5Fclose).ok()?;
            let descriptor = descriptor_of(api, file.id).ok()?;
            let file = ManuallyDrop::new(File::from_raw_fd(descriptor.as_raw_fd()));
            file.metadata().ok()?
        };
        Some(FileStamp {
            identity: (metadata.dev(), metadata.ino()),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    })
}

/// The descriptor of an open file, which is open as long as the file is.
///
/// # Safety
/// A live file of this library that outlives the descriptor; the lock must be held.
pub(crate) unsafe fn descriptor_of<'f>(api: &Api, file: hid_t) -> Result<BorrowedFd<'f>, Unsuited> {
    // SAFETY: the caller's contract; every handle is checked.
    unsafe {
        let fapl = (api.H5Fget_access_plist)(file);
        let fapl = Handle::new(api, "H5Fget_access_plist", fapl, api.H5Pclose)?;
        // Only this driver's handle is known to be a descriptor of the file itself.
        let local = (api.H5Pcreate)(api.H5P_CLS_FILE_ACCESS_ID_g);
        let local = Handle::new(api, "H5Pcreate", local, api.H5Pclose)?;
        api.checked("H5Pset_fapl_sec2", (api.H5Pset_fapl_sec2)(local.id))?;
        if (api.H5Pget_driver)(fapl.id) != (api.H5Pget_driver)(local.id) {
            return because("the file is not opened with the sec2 driver (plain local files)");
        }
        let mut handle: *mut c_void = std::ptr::null_mut();
        let status = (api.H5Fget_vfd_handle)(file, fapl.id, &raw mut handle);
        api.checked("H5Fget_vfd_handle", status)?;
        if handle.is_null() {
            return because("its driver gives no file descriptor");
        }
        // The sec2 driver's handle points at its descriptor, open as long as the file.
        Ok(BorrowedFd::borrow_raw(*handle.cast::<c_int>()))
    }
}
