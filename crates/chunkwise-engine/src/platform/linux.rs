//! What only Linux does.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::path::{Path, PathBuf};

use super::{Descriptor, FileKey, Identity, key_of, number_of};

/// Where the kernel lists what this process has open.
pub(super) const OPEN_FILES: &str = "/proc/self/fd";

/// The kernel's name for what a descriptor of this process has open.
fn name_of(descriptor: isize) -> String {
    format!("{OPEN_FILES}/{descriptor}")
}

/// The path of an open file.
pub(crate) fn path_of(file: &File) -> io::Result<PathBuf> {
    std::fs::read_link(name_of(number_of(file)))
}

/// Open anew what a number has open, if that is this file: also one that was renamed or removed.
///
/// A duplicate would share locks (`flock`), which libhdf5 takes.
pub(crate) fn reopened(number: isize, key: FileKey) -> Option<File> {
    // The number may be another file's by now, or a pipe's, which is not to be opened; so it is
    // looked at first.
    let theirs = name_of(number);
    if Identity::at(Path::new(&theirs)).ok()?.key != key {
        return None;
    }
    File::open(&theirs).ok().filter(|file| key_of(file).is_ok_and(|found| found == key))
}

/// Fill `out` from the page cache; false if not all of it is there.
pub(crate) fn read_cached(file: &File, address: u64, out: &mut [u8]) -> bool {
    let Ok(offset) = i64::try_from(address) else { return false };
    let part = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
    // SAFETY: one part, which is `out`, exclusively borrowed; the descriptor is open.
    let read = unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, offset, libc::RWF_NOWAIT) };
    usize::try_from(read) == Ok(out.len())
}

/// Ask for huge pages for memory that was not touched yet.
pub(crate) fn advise_huge_pages(buffer: &mut [u8]) {
    const PAGE: usize = 4096;
    let skip = buffer.as_ptr().align_offset(PAGE);
    let whole = buffer.len().saturating_sub(skip) / PAGE * PAGE;
    // SAFETY: whole pages within the buffer; the advice does not change what they hold,
    // and that it may be refused does not matter.
    unsafe {
        libc::madvise(buffer.as_mut_ptr().add(skip).cast(), whole, libc::MADV_HUGEPAGE);
    }
}

/// Let the system have memory that was freed, which the allocator would keep for the next time.
pub(crate) fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: may be called at any time, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Whether this is the thread with which the process began.
pub fn on_main_thread() -> bool {
    // SAFETY: neither call takes anything or fails.
    unsafe { libc::getpid() == libc::gettid() }
}

/// The free bytes of a file system; None where it states a size of 0, as some mounts do that do not
/// tell.
pub(super) fn free_of(space: &libc::statvfs) -> Option<u64> {
    let nbytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
    (nbytes(space.f_blocks) > 0).then(|| nbytes(space.f_bavail))
}

/// An empty file in memory.
pub(super) fn memory_file() -> io::Result<File> {
    // Not by its name in libc, which an old one lacks.
    // SAFETY: a valid string; a descriptor of our own, or -1.
    unsafe {
        let memory = libc::syscall(libc::SYS_memfd_create, c"given up".as_ptr(), libc::MFD_CLOEXEC);
        match RawFd::try_from(memory) {
            Ok(memory @ 0..) => Ok(File::from_raw_fd(memory)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Let a descriptor lead to another file.
pub(super) fn put_in_place_of(file: &File, descriptor: Descriptor) -> io::Result<()> {
    // SAFETY: no memory is passed; that it is open is the caller's contract.
    match unsafe { libc::dup3(file.as_raw_fd(), descriptor, libc::O_CLOEXEC) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_zero_is_an_unknown_one() {
        // SAFETY: zeros are valid values.
        let mut space: libc::statvfs = unsafe { std::mem::zeroed() };
        assert_eq!(free_of(&space), None);
        (space.f_frsize, space.f_blocks) = (512, 8);
        assert_eq!(free_of(&space), Some(0));
        space.f_bavail = 3;
        assert_eq!(free_of(&space), Some(3 * 512));
    }
}
