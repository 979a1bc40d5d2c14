//! Which libhdf5 is called, and how is it found?

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::{Arc, OnceLock, Weak};
use std::{fmt, io};

use chunkwise_engine::FileStorage;
use chunkwise_engine::platform::{Descriptor, FileKey, Identity, borrowed};
use chunkwise_loader::{Loaded, loaded_paths};
use parking_lot::Mutex;

use crate::api::{Api, DEFAULT, ErrorEntry, hid_t};
use crate::maker::{self, Witness};
use crate::probe::{ChunkConventions, probe};
use crate::{BindError, LibraryLock, LibraryVersion, Unsuited};

/// The first version that lists chunks (`H5Dget_chunk_info_by_coord`).
const OLDEST: LibraryVersion = LibraryVersion(1, 10, 5);

/// One libhdf5, bound: its functions, its lock, and what its version does its own way.
pub struct Library {
    api: Api,
    loaded: Loaded,
    lock: Box<dyn LibraryLock>,
    version: LibraryVersion,
    conventions: ChunkConventions,
    /// Storage of the files in use, by device and inode: datasets of one file share a
    /// descriptor.
    files: Mutex<HashMap<FileKey, Weak<FileStorage>>>,
    /// The driver of plain local files, once it was needed.
    sec2: OnceLock<hid_t>,
}

/// What binding finds out about a library.
struct Started {
    api: Api,
    version: LibraryVersion,
    conventions: ChunkConventions,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Library(HDF5 {} at {})", self.version, self.path())
    }
}

impl Library {
    /// The libhdf5 that made a handle: one to which the loaded `modules` lead (h5py's own
    /// extension modules), or another that this process has loaded.
    ///
    /// `lock` is held throughout, also while libraries are looked at that turn out to be others.
    ///
    /// # Errors
    /// When no library that can be bound knows the handle.
    pub fn from_handle(
        handle: Witness<'_>,
        modules: &[String],
        lock: Box<dyn LibraryLock>,
    ) -> Result<Self, BindError> {
        let (loaded, started) = maker::find(modules, |loaded| {
            let started = Self::start(&loaded, &*lock, Some(handle))?;
            Ok((loaded, started))
        })?;
        Ok(Self::of(loaded, started, lock))
    }

    /// Load the libhdf5 at `path`, or use it when it is loaded already.
    ///
    /// # Errors
    /// When there is no library at `path`, or it is not libhdf5 1.10.5 or later.
    pub fn from_path(path: &str, lock: Box<dyn LibraryLock>) -> Result<Self, BindError> {
        Self::bind(path, Loaded::open(path), lock)
    }

    /// The one libhdf5 that this process has loaded.
    ///
    /// # Errors
    /// When there is none, or more than one, as when the wheels of h5py and netCDF4 meet.
    pub fn from_process(lock: Box<dyn LibraryLock>) -> Result<Self, BindError> {
        let mut paths = loaded_libraries();
        match (paths.pop(), paths.is_empty()) {
            (None, _) => Err(BindError::None),
            (Some(path), true) => Self::bind(&path, Loaded::find(&path), lock),
            (Some(path), false) => {
                paths.push(path);
                Err(BindError::Several(paths))
            }
        }
    }

    fn bind(
        path: &str,
        loaded: Result<Loaded, String>,
        lock: Box<dyn LibraryLock>,
    ) -> Result<Self, BindError> {
        let loaded =
            loaded.map_err(|message| BindError::Open { path: path.to_string(), message })?;
        let started = Self::start(&loaded, &*lock, None)?;
        Ok(Self::of(loaded, started, lock))
    }

    fn of(loaded: Loaded, started: Started, lock: Box<dyn LibraryLock>) -> Self {
        let Started { api, version, conventions } = started;
        let (files, sec2) = (Mutex::default(), OnceLock::new());
        Self { api, loaded, lock, version, conventions, files, sec2 }
    }

    /// Resolve, see whether it made the handle that is given, and probe.
    fn start(
        loaded: &Loaded,
        lock: &dyn LibraryLock,
        handle: Option<Witness<'_>>,
    ) -> Result<Started, BindError> {
        let mut started = Err(BindError::None);
        lock.with(&mut || {
            // SAFETY: the library is never unloaded, and its lock is held.
            started = unsafe { Self::start_locked(loaded, handle) };
        });
        started
    }

    /// # Safety
    /// The library's lock must be held.
    unsafe fn start_locked(
        loaded: &Loaded,
        handle: Option<Witness<'_>>,
    ) -> Result<Started, BindError> {
        let path = loaded.path();
        // SAFETY: a libhdf5, as it has H5open, that stays loaded.
        let api = unsafe { Api::resolve(path, |symbol| loaded.symbol(symbol))? };
        let (mut major, mut minor, mut release): (c_uint, c_uint, c_uint) = (0, 0, 0);
        // SAFETY: three valid pointers, as the function wants.
        unsafe { (api.H5get_libversion)(&raw mut major, &raw mut minor, &raw mut release) };
        let version = LibraryVersion(major, minor, release);
        if version < OLDEST {
            return Err(BindError::TooOld { path: path.to_string(), version });
        }
        let quiet = Quiet::new(&api);
        // SAFETY: the lock is held by the caller.
        if handle.is_some_and(|handle| unsafe { !handle.is_known_to(&api) }) {
            return Err(BindError::Another { path: path.to_string(), version });
        }
        // SAFETY: as above.
        let conventions = unsafe { probe(&api)? };
        drop(quiet);
        Ok(Started { api, version, conventions })
    }

    /// The version it says it is.
    pub fn version(&self) -> LibraryVersion {
        self.version
    }

    /// Where it lies, or where what was given instead does (a library that needs it).
    pub fn path(&self) -> &str {
        self.loaded.path()
    }

    /// Where its symbols are looked up, for those who need more than [`Api`] has.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// The driver of plain local files; found out once.
    pub(crate) fn sec2(
        &self,
        find: impl Fn() -> Result<hid_t, Unsuited>,
    ) -> Result<hid_t, Unsuited> {
        match self.sec2.get() {
            Some(&known) => Ok(known),
            None => find().map(|found| *self.sec2.get_or_init(|| found)),
        }
    }

    /// How this version speaks of chunks.
    pub fn conventions(&self) -> ChunkConventions {
        self.conventions
    }

    /// Storage of the file that libhdf5 has opened as `descriptor`, shared by its datasets.
    ///
    /// # Safety
    /// The descriptor must be open.
    pub(crate) unsafe fn storage_of(&self, descriptor: Descriptor) -> io::Result<Arc<FileStorage>> {
        // SAFETY: the caller's contract.
        let theirs = unsafe { borrowed(descriptor)? };
        let key = Identity::of(&theirs)?.key;
        let mut files = self.files.lock();
        let known = files.get(&key).and_then(Weak::upgrade);
        if let Some(storage) = known.filter(|storage| storage.is_of(&theirs)) {
            return Ok(storage);
        }
        // Those of closed files go before the table grows.
        if files.len() == files.capacity() {
            files.retain(|_, storage| storage.strong_count() > 0);
        }
        let storage = FileStorage::reopening(&theirs)?;
        files.insert(key, Arc::downgrade(&storage));
        Ok(storage)
    }

    /// Call the library while holding its lock, with its own printing of errors off.
    pub fn locked<T>(&self, work: impl FnOnce(&Api) -> T) -> T {
        let mut work = Some(work);
        let outcome = RefCell::new(None);
        self.lock.with(&mut || {
            if let Some(work) = work.take() {
                let _quiet = Quiet::new(&self.api);
                *outcome.borrow_mut() = Some(work(&self.api));
            }
        });
        match outcome.into_inner() {
            Some(outcome) => outcome,
            // A lock that does not run what it is given breaks its contract.
            None => unreachable!("LibraryLock::with did not run its work"),
        }
    }
}

/// libhdf5 prints its error stack unless set otherwise, a setting that belongs to
/// all users of the library: it is put back afterwards.
struct Quiet<'a> {
    api: &'a Api,
    /// Which kind of handler was turned off.
    kind: Kind,
    function: *const c_void,
    data: *mut c_void,
}

/// Handlers of one kind cannot be read as those of the other: to try is an error that the
/// program's handler is called for.
#[derive(Clone, Copy)]
enum Kind {
    /// `H5Eset_auto1`
    First,
    /// `H5Eset_auto2`
    Second,
    /// None was found.
    Unknown,
}

impl<'a> Quiet<'a> {
    fn new(api: &'a Api) -> Self {
        let (mut function, mut data) = (std::ptr::null(), std::ptr::null_mut());
        let mut is_second: c_uint = 1;
        // SAFETY: valid pointers; null turns printing off.  The lock is held.
        let kind = unsafe {
            (api.H5Eauto_is_v2)(DEFAULT, &raw mut is_second);
            match (is_second, api.H5Eget_auto1, api.H5Eset_auto1) {
                (0, Some(get), Some(set)) if get(&raw mut function, &raw mut data) >= 0 => {
                    set(std::ptr::null(), std::ptr::null_mut());
                    Kind::First
                }
                (1.., ..) if (api.H5Eget_auto2)(DEFAULT, &raw mut function, &raw mut data) >= 0 => {
                    (api.H5Eset_auto2)(DEFAULT, std::ptr::null(), std::ptr::null_mut());
                    Kind::Second
                }
                _ => Kind::Unknown,
            }
        };
        Self { api, kind, function, data }
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        let Self { api, kind, function, data } = *self;
        // SAFETY: what was found, put back under the same hold of the lock.
        unsafe {
            match (kind, api.H5Eset_auto1) {
                (Kind::First, Some(set)) => set(function, data),
                (Kind::Second, _) => (api.H5Eset_auto2)(DEFAULT, function, data),
                _ => 0,
            }
        };
    }
}

impl Api {
    /// The innermost message of the error stack, which is then cleared.
    ///
    /// As every use of this table, with the library's lock held.
    pub fn failed(&self, call: &'static str) -> BindError {
        unsafe extern "C" fn keep(
            _n: c_uint,
            error: *const ErrorEntry,
            data: *mut c_void,
        ) -> c_int {
            // SAFETY: libhdf5 passes a live entry, and `data` is the string below.
            let (error, message) = unsafe { (&*error, &mut *data.cast::<String>()) };
            if !error.description.is_null() {
                // SAFETY: a string that ends with zero, alive during this call.
                let text = unsafe { CStr::from_ptr(error.description) };
                *message = text.to_string_lossy().into_owned();
            }
            0
        }
        let mut message = String::new();
        // SAFETY: the callback and its data fit each other; 0 is H5E_WALK_UPWARD, which
        // visits the innermost error first, 1 is H5E_WALK_DOWNWARD, which visits it last.
        unsafe {
            (self.H5Ewalk2)(DEFAULT, 1, keep, (&raw mut message).cast());
            (self.H5Eclear2)(DEFAULT);
        }
        if message.is_empty() {
            message = "libhdf5 gave no reason".to_string();
        }
        BindError::Call { call, message }
    }

    /// A handle, or the reason why there is none.
    ///
    /// # Errors
    /// As [`failed`](Self::failed).
    #[inline]
    pub fn checked_id(&self, call: &'static str, id: hid_t) -> Result<hid_t, BindError> {
        if id < 0 { Err(self.failed(call)) } else { Ok(id) }
    }

    /// What a call gave, or the reason why it failed.
    ///
    /// # Errors
    /// As [`failed`](Self::failed).
    #[inline]
    pub fn checked(&self, call: &'static str, status: c_int) -> Result<c_int, BindError> {
        if status < 0 { Err(self.failed(call)) } else { Ok(status) }
    }
}

/// Paths of the libhdf5 libraries mapped into this process, without the high-level and
/// Fortran interfaces, each once.
fn loaded_libraries() -> Vec<String> {
    loaded_paths().into_iter().filter(|path| is_libhdf5(path)).collect()
}

/// Whether a file's name is that of libhdf5 itself: `libhdf5.so.200`,
/// `libhdf5-9e18f0c6.so.320.0.0` (wheels), `libhdf5_serial.so.103`, `libhdf5_openmpi...`;
/// `libhdf5.310.dylib`; `hdf5.dll`.
fn is_libhdf5(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = match name.strip_suffix(".dll") {
        Some(stem) => stem.trim_start_matches("lib").strip_prefix("hdf5"),
        None => name
            .split_once(".so")
            .or_else(|| name.split_once(".dylib"))
            .and_then(|(stem, _)| stem.strip_prefix("libhdf5")),
    };
    let Some(stem) = stem else { return false };
    let other = ["_hl", "_fortran", "hl_fortran", "_cpp", "_f90", "_tools", "_java"];
    !other.iter().any(|part| stem.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libhdf5_is_told_from_its_neighbours() {
        for yes in [
            "/usr/lib/libhdf5.so.200",
            "/x/h5py.libs/libhdf5-9e18f0c6.so.320.0.0",
            "libhdf5_serial.so.103.3.1",
            "/usr/lib/libhdf5_openmpi.so.103",
            "/x/h5py/.dylibs/libhdf5.310.dylib",
            r"C:\x\h5py\hdf5.dll",
            "hdf5-7b2d.dll",
        ] {
            assert!(is_libhdf5(yes), "{yes}");
        }
        for no in [
            "/x/libhdf5_hl-69da89c9.so.320.0.0",
            "/usr/lib/libhdf5_serial_hl.so.100",
            "/usr/lib/libhdf5_serialhl_fortran.so.100",
            "/x/h5py/h5d.cpython-311-x86_64-linux-gnu.so",
            "/x/libhdf5.settings",
            r"C:\x\h5py\hdf5_hl.dll",
            "/x/libhdf5_hl.310.dylib",
            "",
        ] {
            assert!(!is_libhdf5(no), "{no}");
        }
    }
}
