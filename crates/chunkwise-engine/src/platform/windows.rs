//! What Windows does.
//!
//! A file here has one position for all that share its handle, reads that state their position move it,
//! and libhdf5 relies on it: so libhdf5's own handle is never read from, but another of the same file.
//!
//! Files are not mapped: nobody could shorten a file while we have it mapped, and a page that is lost
//! with a network would end the process.

use std::borrow::Cow;
use std::ffi::{OsString, c_int, c_void};
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::{AsRawHandle, BorrowedHandle, FromRawHandle, IntoRawHandle, RawHandle};
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_BASIC_INFO, FILE_FLAG_DELETE_ON_CLOSE, FILE_GENERIC_READ,
    FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, FileBasicInfo, GetDiskFreeSpaceExW,
    GetFileInformationByHandle, GetFileInformationByHandleEx, GetFinalPathNameByHandleW,
    ReOpenFile,
};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use windows_sys::Win32::System::Threading::GetCurrentThread;
use windows_sys::Win32::System::WindowsProgramming::QueryThreadCycleTime;

use super::{Descriptor, FileKey, Identity};

impl Identity {
    /// Of an open file.
    ///
    /// # Errors
    /// The system's.
    pub fn of(file: &File) -> io::Result<Self> {
        let found = information(file)?;
        let mut times = FILE_BASIC_INFO::default();
        let size = size_of::<FILE_BASIC_INFO>() as u32;
        // SAFETY: an open file, and room of that size.
        let status = unsafe {
            let place = (&raw mut times).cast();
            GetFileInformationByHandleEx(file.as_raw_handle(), FileBasicInfo, place, size)
        };
        if status == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            key: key_in(&found),
            len: whole(found.nFileSizeHigh, found.nFileSizeLow),
            modified: (times.LastWriteTime, 0),
            changed: (times.ChangeTime, 0),
            manner: (found.dwFileAttributes, 0, 0, u64::from(found.nNumberOfLinks)),
        })
    }

    /// Of the file at a path.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Self::of(&File::open(path)?)
    }
}

/// Which file is open.
pub(crate) fn key_of(file: &File) -> io::Result<FileKey> {
    information(file).map(|found| key_in(&found))
}

fn information(file: &File) -> io::Result<BY_HANDLE_FILE_INFORMATION> {
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: an open file, and a struct that is filled in.
    match unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(found),
    }
}

fn key_in(found: &BY_HANDLE_FILE_INFORMATION) -> FileKey {
    (u64::from(found.dwVolumeSerialNumber), whole(found.nFileIndexHigh, found.nFileIndexLow))
}

fn whole(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The system's number for an open file, as [`reopened`] takes it.
pub(crate) fn number_of(file: &File) -> isize {
    file.as_raw_handle() as isize
}

/// The path of an open file.
pub(crate) fn path_of(file: &File) -> io::Result<PathBuf> {
    let mut path = [0u16; 1 << 15];
    // SAFETY: an open file, and room for as many as are said.
    let length = unsafe {
        GetFinalPathNameByHandleW(file.as_raw_handle(), path.as_mut_ptr(), path.len() as u32, 0)
    };
    match path.get(..length as usize) {
        Some(path) if length > 0 => Ok(OsString::from_wide(path).into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Open anew what a number has open, if that is this file.
pub(crate) fn reopened(number: isize, key: FileKey) -> Option<File> {
    let all = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    // SAFETY: where the number is none of a file, or another's by now, the call fails, or the key says
    // so; the handle is our own.
    let file = unsafe {
        let handle = ReOpenFile(number as RawHandle, FILE_GENERIC_READ, all, 0);
        if handle == INVALID_HANDLE_VALUE {
            return None;
        }
        File::from_raw_handle(handle)
    };
    (key_of(&file).ok()? == key).then_some(file)
}

/// Fill `out` with the file's bytes from `address` on.
///
/// # Errors
/// `UnexpectedEof` when the file ends before, `InvalidInput` for an address that no file has.
pub fn read_exact_at(file: &File, mut out: &mut [u8], mut address: u64) -> io::Result<()> {
    while !out.is_empty() {
        check_address(address)?;
        match file.seek_read(out, address) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                out = out.split_at_mut(count).1;
                address = address.saturating_add(count as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Write bytes to the file from `address` on.
///
/// # Errors
/// The system's.
pub fn write_all_at(file: &File, mut bytes: &[u8], mut address: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        check_address(address)?;
        match file.seek_write(bytes, address) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                address = address.saturating_add(count as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Some addresses beyond what a file can have mean something else.
fn check_address(address: u64) -> io::Result<()> {
    i64::try_from(address).map(drop).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Fill `out` from the page cache: there is no call that would not wait for the device.
pub(crate) fn read_cached(_: &File, _: u64, _: &mut [u8]) -> bool {
    false
}

/// The file that a descriptor of somebody else has open; not closed with this.
///
/// # Errors
/// When there is none.
///
/// # Safety
/// The descriptor must be open as long as the file is used.
pub unsafe fn borrowed(descriptor: Descriptor) -> io::Result<ManuallyDrop<File>> {
    let runtime = Runtime::found()?;
    // SAFETY: a function of that signature; the caller's contract.
    let handle = unsafe { (runtime.get_osfhandle)(descriptor) };
    if handle == INVALID_HANDLE_VALUE as isize || handle == NO_FILE {
        return Err(io::Error::from_raw_os_error(BAD_HANDLE));
    }
    // SAFETY: the handle behind an open descriptor.
    Ok(ManuallyDrop::new(unsafe { File::from_raw_handle(handle as RawHandle) }))
}

/// `ERROR_INVALID_HANDLE`
const BAD_HANDLE: i32 = 6;
/// What the C library has for a standard stream that leads nowhere.
const NO_FILE: isize = -2;

/// A handle of our own for what a descriptor has open, which shares its position.
///
/// # Errors
/// When it is not open.
pub fn duplicate(descriptor: Descriptor) -> io::Result<File> {
    // SAFETY: open as long as this call takes.
    let theirs = unsafe { borrowed(descriptor)? };
    // SAFETY: as above.
    let theirs = unsafe { BorrowedHandle::borrow_raw(theirs.as_raw_handle()) };
    Ok(theirs.try_clone_to_owned()?.into())
}

/// A file of our own to read what a borrowed one has open, whatever position that has.
///
/// # Errors
/// The system's.
pub fn readable_copy(file: &File) -> io::Result<File> {
    let key = key_of(file)?;
    reopened(number_of(file), key).ok_or_else(io::Error::last_os_error)
}

/// Handles are not closed behind our back by their numbers.
pub(crate) fn above_others(file: File) -> File {
    file
}

/// The most files that the process may have open: as many as memory holds.
pub(crate) fn most_open_files() -> usize {
    usize::MAX
}

/// The size that no file may exceed; None where there is no such limit.
pub fn most_file_nbytes() -> Option<u64> {
    None
}

/// The free bytes of the file system that holds a file; None where nobody can tell.
pub fn free_nbytes(file: &File) -> Option<u64> {
    use std::os::windows::ffi::OsStrExt;
    let path = path_of(file).ok()?;
    let folder: Vec<u16> = path.parent()?.as_os_str().encode_wide().chain([0]).collect();
    let (mut free, none) = (0, std::ptr::null_mut());
    // SAFETY: a string that ends with zero, and room for the figure.
    let status = unsafe { GetDiskFreeSpaceExW(folder.as_ptr(), &raw mut free, none, none) };
    (status != 0).then_some(free)
}

/// Open a file for reading.
///
/// # Errors
/// The system's.
pub fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Whether somebody has locked a file, so that libhdf5 would not open it: here it locks none.
pub fn is_locked(_: &File) -> bool {
    false
}

/// A path as libhdf5 and netCDF-C take it: UTF-8.
pub fn path_bytes(path: &Path) -> Cow<'_, [u8]> {
    match path.to_string_lossy() {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// A path that libhdf5 gave.
pub fn path_from(bytes: &[u8]) -> Cow<'_, Path> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(Path::new(text)),
        Cow::Owned(text) => Cow::Owned(text.into()),
    }
}

/// Nothing forks.
pub(crate) fn in_forked_children(_: extern "C" fn()) {}

/// Threads are not given signals.
pub(crate) fn take_no_signals() {}

/// Processor time of this thread, in cycles of it: what others do on the machine does not count.
pub(crate) fn thread_time() -> u64 {
    let mut cycles = 0;
    // SAFETY: this thread, and room for the figure.
    if unsafe { QueryThreadCycleTime(GetCurrentThread(), &raw mut cycles) } != 0 && cycles > 0 {
        return cycles;
    }
    static BEGUN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGUN.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}

/// There are no huge pages to be had on request.
pub(crate) fn advise_huge_pages(_: &mut [u8]) {}

/// The allocator gives back by itself.
pub(crate) fn give_back_memory() {}

/// Whether this may be the thread with which the process began: nobody can tell.
pub fn on_main_thread() -> bool {
    true
}

/// A map of a file, which there is none of here.
#[derive(Debug)]
pub struct Map(std::convert::Infallible);

impl Map {
    /// None: see above.
    pub fn new(_: &File) -> Option<Self> {
        None
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        match self.0 {}
    }

    /// Whether all that was touched so far was there.
    pub fn is_intact(&self) -> bool {
        match self.0 {}
    }
}

pub(crate) fn faults_are_handled() -> bool {
    false
}

/// Put another file in the place of a descriptor, with what its file begins with, at most this many
/// bytes: what is written to it from now on does not reach the file.  The other one goes when it is
/// closed.
///
/// # Errors
/// When there is no room for it.
///
/// # Safety
/// The descriptor must be open, and nobody may use it meanwhile.
pub unsafe fn give_up(descriptor: Descriptor, copied_nbytes: u64) -> io::Result<()> {
    let runtime = Runtime::found()?;
    let name = format!("chunkwise-{}-{descriptor}", std::process::id());
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true);
    options.custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
    let mut other = options.open(std::env::temp_dir().join(name))?;
    // SAFETY: the caller's contract.
    let theirs = unsafe { borrowed(descriptor)? };
    if copied_nbytes > 0
        && let Ok(file) = readable_copy(&theirs)
    {
        let _ = io::copy(&mut file.take(copied_nbytes), &mut other);
    }
    other.flush()?;
    // SAFETY: functions of these signatures; the descriptor that is made owns the handle.
    unsafe {
        let made = (runtime.open_osfhandle)(other.into_raw_handle() as isize, READ_WRITE | BINARY);
        let put = (runtime.dup2)(made, descriptor);
        (runtime.close)(made);
        if put == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// `_O_RDWR`, `_O_BINARY`
const READ_WRITE: c_int = 2;
const BINARY: c_int = 0x8000;

/// The descriptors under which this process has the file at a path open: nobody can tell.
pub fn descriptors_of(_: &Path) -> Vec<Descriptor> {
    Vec::new()
}

/// The C library of Python's and h5py's builds, which numbers their files; ours is linked with another.
struct Runtime {
    get_osfhandle: unsafe extern "C" fn(c_int) -> isize,
    open_osfhandle: unsafe extern "C" fn(isize, c_int) -> c_int,
    dup2: unsafe extern "C" fn(c_int, c_int) -> c_int,
    close: unsafe extern "C" fn(c_int) -> c_int,
}

impl Runtime {
    fn found() -> io::Result<Self> {
        let missing = || io::Error::other("ucrtbase.dll is not loaded in this process");
        // SAFETY: a name that ends with zero; the library is never unloaded.
        let library = unsafe { GetModuleHandleA(c"ucrtbase.dll".as_ptr().cast()) };
        if library.is_null() {
            return Err(missing());
        }
        let symbol = |name: &std::ffi::CStr| {
            // SAFETY: a library that is loaded, and a name that ends with zero.
            let found = unsafe { GetProcAddress(library, name.as_ptr().cast()) };
            found.map(|found| found as *mut c_void).ok_or_else(missing)
        };
        // SAFETY: the functions of these names have these signatures.
        unsafe {
            use std::mem::transmute;
            Ok(Self {
                get_osfhandle: transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> isize>(
                    symbol(c"_get_osfhandle")?,
                ),
                open_osfhandle: transmute::<*mut c_void, unsafe extern "C" fn(isize, c_int) -> c_int>(
                    symbol(c"_open_osfhandle")?,
                ),
                dup2: transmute::<*mut c_void, unsafe extern "C" fn(c_int, c_int) -> c_int>(
                    symbol(c"_dup2")?,
                ),
                close: transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> c_int>(symbol(
                    c"_close",
                )?),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use windows_sys::Win32::System::LibraryLoader::LoadLibraryA;

    use super::*;

    fn scratch(name: &str) -> (PathBuf, File) {
        let path = std::env::temp_dir().join(format!("chunkwise-{name}-{}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        (path, file)
    }

    #[test]
    fn another_handle_of_a_file_leaves_its_position_alone() {
        let (path, mut file) = scratch("position");
        file.write_all(b"0123456789").unwrap();
        let identity = Identity::of(&file).unwrap();
        assert_eq!((identity.key, identity.len), (key_of(&file).unwrap(), 10));
        let other = reopened(number_of(&file), identity.key).unwrap();
        write_all_at(&file, b"xy", 4).unwrap();
        file.seek(io::SeekFrom::Start(7)).unwrap();
        let mut found = [0; 4];
        read_exact_at(&other, &mut found, 3).unwrap();
        assert_eq!((&found, file.stream_position().unwrap()), (b"3xy6", 7));
        let beyond = read_exact_at(&other, &mut found, u64::MAX - 1).unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::InvalidInput);
        assert!(reopened(number_of(&file), (0, 0)).is_none());
        drop((file, other));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_is_written_afterwards_does_not_reach_a_file_that_was_given_up() {
        // SAFETY: a name that ends with zero.
        unsafe { LoadLibraryA(c"ucrtbase.dll".as_ptr().cast()) };
        let (path, file) = scratch("abandoned");
        write_all_at(&file, b"before", 0).unwrap();
        let runtime = Runtime::found().unwrap();
        // SAFETY: functions of these signatures; the descriptor owns the handle from here on.
        let (descriptor, theirs) = unsafe {
            let made =
                (runtime.open_osfhandle)(file.into_raw_handle() as isize, READ_WRITE | BINARY);
            give_up(made, 1 << 20).unwrap();
            (made, borrowed(made).unwrap())
        };
        write_all_at(&theirs, b"after", 6).unwrap();
        let mut found = [0; 11];
        read_exact_at(&theirs, &mut found, 0).unwrap();
        assert_eq!(&found, b"beforeafter");
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        // SAFETY: as above.
        unsafe { (runtime.close)(descriptor) };
        std::fs::remove_file(&path).unwrap();
    }
}
