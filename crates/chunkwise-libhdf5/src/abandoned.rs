//! What becomes of data that libhdf5 holds and cannot write?
//!
//! A dataset that libhdf5 cannot flush while it closes it is freed, but its handle stays.  The next
//! call that meets the handle follows a dangling pointer, at the latest as the process ends
//! (`tests/upstream/close_unflushed.c`).  So data is flushed while its dataset is still open.  If that
//! fails, the file is given up: what libhdf5 holds for it goes to memory, and closing succeeds.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::api::{Api, hid_t};
use crate::error::because;
use crate::file::descriptor_of;
use crate::handle::Handle;
use crate::{BindError, Unsuited};

/// What libhdf5 may look up in a file that was given up, as it closes it: its first bytes, so many.
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
    let (_file, descriptor) = unsafe {
        let file = Handle::new(api, "H5Iget_file_id", (api.H5Iget_file_id)(object), api.H5Fclose)?;
        let descriptor = descriptor_of(api, file.id)?.as_raw_fd();
        (file, descriptor)
    };
    match into_memory(descriptor) {
        Ok(()) => Ok(()),
        Err(error) => because(format!("its file cannot be given up: {error}")),
    }
}

/// Put memory in the place of a descriptor, with what the file begins with.
fn into_memory(descriptor: RawFd) -> io::Result<()> {
    // Not by its name in libc, which an old one lacks.
    // SAFETY: a valid string; a descriptor of our own, or -1.
    let memory = unsafe {
        let memory = libc::syscall(libc::SYS_memfd_create, c"given up".as_ptr(), libc::MFD_CLOEXEC);
        let memory = RawFd::try_from(memory).unwrap_or(-1);
        if memory < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(memory)
    };
    let mut memory = File::from(memory);
    // With a position of its own.  What cannot be read libhdf5 finds empty, and says so.
    if let Ok(file) = File::open(format!("/proc/self/fd/{descriptor}")) {
        let _ = io::copy(&mut file.take(MOST_COPIED), &mut memory);
    }
    // SAFETY: both are open; nobody is in libhdf5 meanwhile, as its lock is held.
    match unsafe { libc::dup3(memory.as_raw_fd(), descriptor, libc::O_CLOEXEC) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn what_is_written_afterwards_does_not_reach_the_file() {
        let path = std::env::temp_dir().join(format!("abandoned-{}", std::process::id()));
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.write_all(b"before").unwrap();
        into_memory(file.as_raw_fd()).unwrap();
        file.write_all_at(b"after", 6).unwrap();
        let mut found = [0; 11];
        file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(&found, b"beforeafter");
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        std::fs::remove_file(&path).unwrap();
    }
}
