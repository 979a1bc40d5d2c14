//! What Linux and macOS do alike.

mod map;

use std::borrow::Cow;
use std::ffi::{OsStr, c_int};
use std::fs::File;
use std::io::{self, Read};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

pub use map::Map;
pub(crate) use map::faults_are_handled;

use super::identity::{key_of, number_of};
use super::own::{OPEN_FILES, free_of, memory_file, put_in_place_of, reopened};
use super::{Descriptor, Identity};

/// Fill `out` with the file's bytes from `address` on.
///
/// # Errors
/// `UnexpectedEof` when the file ends before, `InvalidInput` for an address that no file has.
pub fn read_exact_at(file: &File, out: &mut [u8], address: u64) -> io::Result<()> {
    file.read_exact_at(out, address)
}

/// Write bytes to the file from `address` on.
///
/// # Errors
/// The system's.
pub fn write_all_at(file: &File, bytes: &[u8], address: u64) -> io::Result<()> {
    file.write_all_at(bytes, address)
}

/// The file that a descriptor of somebody else has open; not closed with this.
///
/// # Errors
/// When there is none.
///
/// # Safety
/// The descriptor must be open as long as the file is used.
pub unsafe fn borrowed(descriptor: Descriptor) -> io::Result<ManuallyDrop<File>> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the caller's contract.
    Ok(ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) }))
}

/// A descriptor of our own for what another has open, which shares its position and its locks.
///
/// # Errors
/// When it is not open.
pub fn duplicate(descriptor: Descriptor) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it is not -1, and is only duplicated, which the system refuses where it is not open.
    Ok(unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned()?.into())
}

/// A file of our own to read what a borrowed one has open, whatever position that has.
///
/// # Errors
/// The system's.
pub fn readable_copy(file: &File) -> io::Result<File> {
    // Our reads state their position, and leave the common one alone.
    file.try_clone()
}

/// The same file under a number that the system gives to others last; the same number where that
/// cannot be.
pub(crate) fn above_others(file: File) -> File {
    let lowest = (most_open_files() / 2).min(1 << 19);
    let Ok(lowest) = libc::c_int::try_from(lowest) else { return file };
    // SAFETY: no memory is passed.
    let high = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest) };
    // SAFETY: a descriptor that was made above, and that nobody else has.
    if high >= 0 { unsafe { File::from_raw_fd(high) } } else { file }
}

/// The most files that the process may have open.
pub(crate) fn most_open_files() -> usize {
    // SAFETY: fills the struct it is given.
    let limit = limit_by(|limit| unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, limit) });
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// The size that no file may exceed; None where there is no such limit.
pub fn most_file_nbytes() -> Option<u64> {
    // SAFETY: fills the struct it is given.
    let limit = limit_by(|limit| unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, limit) });
    limit.filter(|&limit| limit != libc::RLIM_INFINITY)
}

fn limit_by(ask: impl FnOnce(*mut libc::rlimit) -> c_int) -> Option<libc::rlim_t> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    (ask(&raw mut limit) == 0).then_some(limit.rlim_cur)
}

/// The free bytes of the file system that holds a file; None where nobody can tell.
pub fn free_nbytes(file: &File) -> Option<u64> {
    // SAFETY: zeros are valid values, and the function fills them in.
    let (status, space) = unsafe {
        let mut space: libc::statvfs = std::mem::zeroed();
        (libc::fstatvfs(file.as_raw_fd(), &raw mut space), space)
    };
    if status == 0 { free_of(&space) } else { None }
}

/// Open a file for reading; of a pipe that means no waiting for a writer.
///
/// # Errors
/// The system's.
pub fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// Whether somebody else, perhaps in this process, has locked a file for writing, so that libhdf5
/// would not open it.
pub fn is_locked(file: &File) -> bool {
    // SAFETY: a descriptor that is open.
    let lock = |how| unsafe { libc::flock(file.as_raw_fd(), how) } == 0;
    // Some file systems have no locks.
    let refused = || io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock;
    match lock(libc::LOCK_SH | libc::LOCK_NB) {
        true => !lock(libc::LOCK_UN),
        false => refused(),
    }
}

/// A path as libhdf5 and netCDF-C take it.
pub fn path_bytes(path: &Path) -> Cow<'_, [u8]> {
    Cow::Borrowed(path.as_os_str().as_bytes())
}

/// A path that libhdf5 gave.
pub fn path_from(bytes: &[u8]) -> Cow<'_, Path> {
    Cow::Borrowed(Path::new(OsStr::from_bytes(bytes)))
}

/// Have `forget` called in each forked child, right after `fork`, where little more than a store is
/// allowed.
pub(crate) fn in_forked_children(forget: extern "C" fn()) {
    // SAFETY: a function that lives as long as the program.
    unsafe { libc::pthread_atfork(None, None, Some(forget)) };
}

/// Let this thread take no signals but those of its own faults: a program's handlers run on the
/// program's own threads.
///
/// A fault whose signal is blocked ends the process, and a map of a file that shrinks is one.
pub(crate) fn take_no_signals() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let faults = [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];
    // SAFETY: the first call fills the set, others change it; the last reads it, and changes this
    // thread alone.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        for fault in faults {
            libc::sigdelset(all.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
}

/// Processor time of this thread, in nanoseconds: what others do on the machine does not count.
pub(crate) fn thread_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live `timespec`, which is written to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Put memory in the place of a descriptor, with what its file begins with, at most this many bytes:
/// what is written to it from now on does not reach the file.
///
/// # Errors
/// When there is no memory for it.
///
/// # Safety
/// The descriptor must be open, and nobody may use it meanwhile.
pub unsafe fn give_up(descriptor: Descriptor, copied_nbytes: u64) -> io::Result<()> {
    let mut memory = memory_file()?;
    // With a position of its own.  What cannot be read libhdf5 finds empty, and says so.
    // SAFETY: the caller's contract.
    let theirs = unsafe { borrowed(descriptor)? };
    if copied_nbytes > 0
        && let Some(file) = key_of(&theirs).ok().and_then(|key| reopened(number_of(&theirs), key))
    {
        let _ = io::copy(&mut file.take(copied_nbytes), &mut memory);
    }
    put_in_place_of(&memory, descriptor)
}

/// The descriptors under which this process has the file at a path open.
pub fn descriptors_of(path: &Path) -> Vec<Descriptor> {
    let key = |path: &Path| Identity::at(path).map(|found| found.key);
    let (Ok(file), Ok(open)) = (key(path), std::fs::read_dir(OPEN_FILES)) else {
        return Vec::new();
    };
    let number = |entry: std::fs::DirEntry| {
        let is_it = key(&entry.path()).is_ok_and(|found| found == file);
        is_it.then(|| entry.file_name().to_string_lossy().parse().ok()).flatten()
    };
    open.flatten().filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_thread_takes_its_faults_even_where_its_parent_took_none() {
        let thread = std::thread::spawn(|| {
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: each call fills the set, or reads it after that; the masks are this thread's.
            unsafe {
                libc::sigfillset(set.as_mut_ptr());
                libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
                take_no_signals();
                libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr());
                [libc::SIGBUS, libc::SIGSEGV, libc::SIGINT, libc::SIGTERM]
                    .map(|signal| libc::sigismember(set.as_ptr(), signal))
            }
        });
        assert_eq!(thread.join().unwrap(), [0, 0, 1, 1]);
    }

    #[test]
    fn what_is_written_afterwards_does_not_reach_a_file_that_was_given_up() {
        let path = std::env::temp_dir().join(format!("abandoned-{}", std::process::id()));
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.write_all(b"before").unwrap();
        // SAFETY: open, and used by nobody else.
        unsafe { give_up(file.as_raw_fd(), 1 << 20).unwrap() };
        file.write_all_at(b"after", 6).unwrap();
        let mut found = [0; 11];
        file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(&found, b"beforeafter");
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        std::fs::remove_file(&path).unwrap();
    }
}
