//! Is there space in the file system for what is about to be written?
//!
//! What libhdf5 has begun to write and could not leaves a file that says it is longer than it
//! is, which nobody opens.  So this is looked up before.

use chunkwise_engine::platform::{Descriptor, borrowed, free_nbytes, most_file_nbytes};

use crate::api::{Api, hid_t, hsize_t};
use crate::file::descriptor_of;
use crate::handle::Handle;

/// Left for libhdf5's own writes: indexes, headers, and what it flushes when it closes.
const MARGIN_NBYTES: u64 = 1 << 20;

/// Why `nbytes` more of a dataset do not fit into its file; None where they do, or nobody can
/// tell.
///
/// # Safety
/// A live handle of this library, with the lock held.
pub(crate) unsafe fn no_space(api: &Api, dataset: hid_t, nbytes: u64) -> Option<String> {
    // SAFETY: the caller's contract; every handle is checked.
    let (descriptor, end) = unsafe { file_of(api, dataset)? };
    let wanted = nbytes.saturating_add(MARGIN_NBYTES);
    // SAFETY: open as long as the dataset's file.
    let file = unsafe { borrowed(descriptor).ok()? };
    if let Some(free) = free_nbytes(&file).filter(|&free| free < wanted) {
        return Some(format!(
            "too little space on the device: {free} bytes are free, and {wanted} are needed, \
             {MARGIN_NBYTES} of them for indexes and headers"
        ));
    }
    if let Some(limit) = most_file_nbytes().filter(|&limit| end.saturating_add(wanted) > limit) {
        return Some(format!("no file may be larger than {limit} bytes here (RLIMIT_FSIZE)"));
    }
    None
}

/// The descriptor of a plain local file, and where the file ends.
///
/// # Safety
/// A live dataset of this library, with the lock held; the descriptor is open as long as the
/// dataset's file.
unsafe fn file_of(api: &Api, dataset: hid_t) -> Option<(Descriptor, u64)> {
    // SAFETY: the caller's contract; every handle is checked.
    unsafe {
        let file = (api.H5Iget_file_id)(dataset);
        let file = Handle::new(api, "H5Iget_file_id", file, api.H5Fclose).ok()?;
        let descriptor = descriptor_of(api, file.id).ok()?;
        let mut end: hsize_t = 0;
        api.checked("H5Fget_filesize", (api.H5Fget_filesize)(file.id, &raw mut end)).ok()?;
        Some((descriptor, end))
    }
}
