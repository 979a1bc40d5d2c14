//! Is there space in the file system for what is about to be written?
//!
//! What libhdf5 has begun to write and could not leaves a file that says it is longer than it
//! is, which nobody opens.  So it is asked before.

use std::ffi::c_int;
use std::os::fd::AsRawFd;

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
    // SAFETY: both functions fill what they are given; zeros are valid values of both.
    let (space, limit) = unsafe {
        let mut space: libc::statvfs = std::mem::zeroed();
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::fstatvfs(descriptor, &raw mut space) != 0
            || libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) != 0
        {
            return None;
        }
        (space, limit.rlim_cur)
    };
    if let Some(free) = free_nbytes(&space).filter(|&free| free < wanted) {
        return Some(format!(
            "too little space on the device: {free} bytes are free, and {wanted} are needed, \
             {MARGIN_NBYTES} of them for indexes and headers"
        ));
    }
    if limit != libc::RLIM_INFINITY && end.saturating_add(wanted) > limit {
        return Some(format!("no file may be larger than {limit} bytes here (RLIMIT_FSIZE)"));
    }
    None
}

/// The free bytes of a file system; None where it states a size of 0, as some mounts do that do not tell.
fn free_nbytes(space: &libc::statvfs) -> Option<u64> {
    let nbytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
    (nbytes(space.f_blocks) > 0).then(|| nbytes(space.f_bavail))
}

/// The descriptor of a plain local file, and where the file ends.
///
/// # Safety
/// A live dataset of this library, with the lock held; the descriptor is open as long as the
/// dataset's file.
unsafe fn file_of(api: &Api, dataset: hid_t) -> Option<(c_int, u64)> {
    // SAFETY: the caller's contract; every handle is checked.
    unsafe {
        let file = (api.H5Iget_file_id)(dataset);
        let file = Handle::new(api, "H5Iget_file_id", file, api.H5Fclose).ok()?;
        let descriptor = descriptor_of(api, file.id).ok()?.as_raw_fd();
        let mut end: hsize_t = 0;
        api.checked("H5Fget_filesize", (api.H5Fget_filesize)(file.id, &raw mut end)).ok()?;
        Some((descriptor, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_zero_is_an_unknown_one() {
        // SAFETY: zeros are valid values.
        let mut space: libc::statvfs = unsafe { std::mem::zeroed() };
        assert_eq!(free_nbytes(&space), None);
        (space.f_frsize, space.f_blocks) = (512, 8);
        assert_eq!(free_nbytes(&space), Some(0));
        space.f_bavail = 3;
        assert_eq!(free_nbytes(&space), Some(3 * 512));
    }
}
