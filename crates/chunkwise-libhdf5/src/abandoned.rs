//! What becomes of data that libhdf5 holds and cannot write?
//!
//! A dataset that libhdf5 cannot flush while it closes it is freed, but its handle stays.  The next
//! call that meets the handle follows a dangling pointer, at the latest as the process ends
//! (`tests/upstream/close_unflushed.c`).  So data is flushed while its dataset is still open.  If that
//! fails, the file is given up: what libhdf5 holds for it goes to memory, and closing succeeds.

use chunkwise_engine::platform::give_up;

use crate::api::{Api, hid_t};
use crate::error::because;
use crate::file::descriptor_of;
use crate::handle::Handle;
use crate::{BindError, Unsuited};

/// What libhdf5 may look up in a file that was given up, as it closes it: its first bytes, this many.
const MOST_COPIED: u64 = 1 << 26;

/// Have libhdf5 write what it holds of a dataset; if that fails, the dataset's file is given up.
///
/// # Errors
/// What libhdf5 says.
///
/// # Safety
/// A live dataset of this library; the lock must be held.
pub unsafe fn flush_or_abandon(api: &Api, dataset: hid_t) -> Result<(), BindError> {
    // SAFETY: the caller's contract.
    let flushed = api.checked("H5Dflush", unsafe { (api.H5Dflush)(dataset) }).map(drop);
    if flushed.is_err() {
        // SAFETY: as above.  Where it cannot be given up, closing it may still go well.
        let _ = unsafe { abandon(api, dataset) };
    }
    flushed
}

/// Let libhdf5 write to memory from now on what it holds for the file of an object.
///
/// The file stays as it is now, and its locks are released.
///
/// # Errors
/// Why its descriptor cannot be had, or there is no memory for it.
///
/// # Safety
/// A live object of this library; the lock must be held.
unsafe fn abandon(api: &Api, object: hid_t) -> Result<(), Unsuited> {
    // SAFETY: the caller's contract; every handle is checked.
    let given_up = unsafe {
        let file = Handle::new(api, "H5Iget_file_id", (api.H5Iget_file_id)(object), api.H5Fclose)?;
        // Nobody is in libhdf5 meanwhile, as its lock is held.
        give_up(descriptor_of(api, file.id)?, MOST_COPIED)
    };
    given_up.or_else(|error| because(format!("its file cannot be given up: {error}")))
}
