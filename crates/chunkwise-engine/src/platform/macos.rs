//! What only macOS does.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::{Descriptor, FileKey, key_of};

/// Where the kernel lists what this process has open.
pub(super) const OPEN_FILES: &str = "/dev/fd";

/// The path of an open file.
pub(crate) fn path_of(file: &File) -> io::Result<PathBuf> {
    let mut path = [0u8; libc::PATH_MAX as usize];
    // SAFETY: as many bytes as the call may fill.
    let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETPATH, path.as_mut_ptr()) };
    if status == -1 {
        return Err(io::Error::last_os_error());
    }
    let path = CStr::from_bytes_until_nul(&path).map_err(io::Error::other)?;
    Ok(OsStr::from_bytes(path.to_bytes()).into())
}

/// Open anew what a number has open, if that is this file.
///
/// A duplicate would share locks (`flock`), which libhdf5 takes.
pub(crate) fn reopened(number: isize, key: FileKey) -> Option<File> {
    let number = i32::try_from(number).ok()?;
    // SAFETY: only looked at: where the number is another file's by now, the key says so.
    let theirs = ManuallyDrop::new(unsafe { File::from_raw_fd(number) });
    if key_of(&theirs).ok()? != key {
        return None;
    }
    let own = File::open(path_of(&theirs).ok()?).ok()?;
    (key_of(&own).ok()? == key).then_some(own)
}

/// Fill `out` from the page cache: there is no call that would not wait for the device.
pub(crate) fn read_cached(_: &File, _: u64, _: &mut [u8]) -> bool {
    false
}

/// There are no huge pages to be had on request.
pub(crate) fn advise_huge_pages(_: &mut [u8]) {}

/// The allocator gives back by itself.
pub(crate) fn give_back_memory() {}

/// Whether this is the thread with which the process began.
pub fn on_main_thread() -> bool {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::pthread_main_np() != 0 }
}

/// The free bytes of a file system; None where it states a size of 0.
pub(super) fn free_of(space: &libc::statvfs) -> Option<u64> {
    let nbytes = |blocks: libc::fsblkcnt_t| u64::from(blocks).saturating_mul(space.f_frsize);
    (nbytes(space.f_blocks) > 0).then(|| nbytes(space.f_bavail))
}

/// An empty file that no name leads to.
pub(super) fn memory_file() -> io::Result<File> {
    let name =
        format!("chunkwise-given-up-{}-{:?}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Let a descriptor lead to another file.
pub(super) fn put_in_place_of(file: &File, descriptor: Descriptor) -> io::Result<()> {
    // SAFETY: no memory is passed; that it is open is the caller's contract.
    match unsafe { libc::dup2(file.as_raw_fd(), descriptor) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
