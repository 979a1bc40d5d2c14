//! How is a C library found and loaded at run time?
//!
//! Nothing of chunkwise links libhdf5 or netCDF-C: there is one right library for a
//! handle, and the version of another is something to be measured.

use std::ffi::{CStr, CString, c_void};
use std::path::Path;

/// A library in this process; never unloaded, so that its functions stay valid.
#[derive(Debug)]
pub struct Loaded {
    handle: *mut c_void,
    path: String,
}

impl Loaded {
    /// Load the library at `path`, or find it where it is loaded already.
    ///
    /// Libraries that it needs and the loader does not find are looked for beside it, so
    /// that a library of a Python wheel (`h5py.libs/`, `netcdf4.libs/`) can be given as
    /// it is.  Its functions are not offered to what is loaded later.
    ///
    /// # Errors
    /// The loader's own words: no such file, another architecture, no library at all.
    pub fn open(path: &str) -> Result<Self, String> {
        let handle = load(path, &mut Vec::new())?;
        Ok(Self { handle, path: path.to_string() })
    }

    /// The library or module at `path` that is loaded already.
    ///
    /// # Errors
    /// When it is not.
    pub fn find(path: &str) -> Result<Self, String> {
        let handle = dlopen(path, libc::RTLD_NOW | libc::RTLD_NOLOAD)?;
        Ok(Self { handle, path: path.to_string() })
    }

    /// The library in which `symbol` lies, where this or what it depends on has it.  This
    /// itself where the loader cannot say which.
    pub fn holder(self, symbol: &str) -> Option<Self> {
        let address = self.symbol(symbol);
        if address.is_null() {
            return None;
        }
        let holder = path_at(address).and_then(|path| Self::find(&path).ok());
        // A path may lead elsewhere: the program's is the name it was called by.
        Some(holder.filter(|holder| holder.symbol(symbol) == address).unwrap_or(self))
    }

    /// Where `symbol` lies, in the library or, after it, in what it depends on; null where
    /// nowhere.
    pub fn symbol(&self, symbol: &str) -> *mut c_void {
        let Ok(name) = CString::new(symbol) else { return std::ptr::null_mut() };
        // SAFETY: a live handle and a valid string.
        unsafe { libc::dlsym(self.handle, name.as_ptr()) }
    }

    /// The path that was given.
    pub fn path(&self) -> &str {
        &self.path
    }
}

// SAFETY: a handle names a library that is never unloaded; looking symbols up may be done
// by any number of threads at the same time.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

/// Paths of the libraries and modules mapped into this process, each once, in the order in
/// which they were loaded.
pub fn loaded_paths() -> Vec<String> {
    unsafe extern "C" fn collect(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        data: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: the loader passes a live record, and `data` is the vector below.
        let (info, paths) = unsafe { (&*info, &mut *data.cast::<Vec<String>>()) };
        if !info.dlpi_name.is_null() {
            // SAFETY: a string that ends with zero, alive during this call.
            let path = unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy().into_owned();
            // The program itself has no name.
            if !path.is_empty() && !paths.contains(&path) {
                paths.push(path);
            }
        }
        0
    }
    let mut paths: Vec<String> = Vec::new();
    // SAFETY: the callback and its data fit each other.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut paths).cast()) };
    paths
}

/// The path of the library in which an address lies.
fn path_at(address: *const c_void) -> Option<String> {
    let mut place = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked about; the loader fills the record where it knows it.
    let path = unsafe {
        if libc::dladdr(address, place.as_mut_ptr()) == 0 {
            return None;
        }
        place.assume_init().dli_fname
    };
    // SAFETY: null, or a string that ends with zero and stays while the library is loaded.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned())
}

/// Load a library, and before it those of its folder that the loader misses.
///
/// The libraries of a Python wheel do not say where the others are: only the extension
/// module that uses them does.  The loader takes what is loaded already by its name.
/// `tried` are the libraries that were loaded for that reason.
fn load(path: &str, tried: &mut Vec<String>) -> Result<*mut c_void, String> {
    loop {
        let message = match dlopen(path, libc::RTLD_NOW | libc::RTLD_LOCAL) {
            Ok(handle) => return Ok(handle),
            Err(message) => message,
        };
        match missed_neighbour(path, &message) {
            Some(neighbour) if !tried.contains(&neighbour) => {
                tried.push(neighbour.clone());
                load(&neighbour, tried)?;
            }
            _ => return Err(message),
        }
    }
}

fn dlopen(path: &str, flags: libc::c_int) -> Result<*mut c_void, String> {
    let name = CString::new(path).map_err(|reason| reason.to_string())?;
    // SAFETY: a valid string; loading a library runs only its own initialisers and those
    // of what it depends on.
    let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
    if handle.is_null() { Err(loader_message()) } else { Ok(handle) }
}

/// The library beside `path` that the loader says it misses:
/// `libhdf5-ba270836.so.310: cannot open shared object file: ...`.
fn missed_neighbour(path: &str, message: &str) -> Option<String> {
    let (missed, _) = message.split_once(':')?;
    let (folder, _) = path.rsplit_once('/')?;
    let neighbour = format!("{folder}/{missed}");
    (!missed.contains('/') && Path::new(&neighbour).is_file()).then_some(neighbour)
}

/// The loader's last message.
fn loader_message() -> String {
    // SAFETY: dlerror gives null or a string valid until the next call in this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        // With RTLD_NOLOAD there is no message when the library is just not loaded.
        return "it is not loaded in this process".to_string();
    }
    // SAFETY: as above, not null.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_beside_the_library_is_a_neighbour() {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/src/nothing.so");
        let missed = |name| missed_neighbour(here, &format!("{name}: cannot open"));
        assert!(missed("lib.rs").is_some_and(|path| path.ends_with("/src/lib.rs")));
        assert_eq!(missed("gone.so"), None);
        assert_eq!(missed("../src/lib.rs"), None);
        assert_eq!(missed_neighbour("nothing.so", "lib.rs: cannot open"), None);
    }

    #[test]
    fn what_cannot_be_loaded_has_a_reason() {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs");
        for path in ["/nowhere/libnothing.so", source, "a\0b"] {
            assert!(Loaded::open(path).is_err_and(|message| !message.is_empty()), "{path}");
        }
        assert!(Loaded::find("/nowhere/libnothing.so").is_err_and(|message| !message.is_empty()));
    }

    #[test]
    fn what_is_loaded_has_a_path() {
        let paths = loaded_paths();
        assert!(paths.iter().any(|path| path.contains("libc.so")), "{paths:?}");
        assert!(paths.iter().all(|path| !path.is_empty()));
    }

    #[test]
    fn a_symbol_is_held_by_the_library_that_has_it() {
        let open = |path| Loaded::open(path).unwrap_or_else(|why| unreachable!("{why}"));
        // libm depends on libc.
        let holder = open("libm.so.6").holder("puts");
        assert!(holder.is_some_and(|found| found.path().contains("libc.so")));
        let itself = open("libm.so.6").holder("cos");
        assert!(itself.is_some_and(|found| found.path().contains("libm.so")));
        assert!(open("libm.so.6").holder("H5open").is_none());
    }

    #[test]
    fn a_name_that_is_nowhere_is_null() {
        let this = Loaded::open("libc.so.6").unwrap_or_else(|why| unreachable!("{why}"));
        assert!(this.symbol("no_such_function_anywhere").is_null());
        assert!(this.symbol("a\0b").is_null());
        assert!(!this.symbol("dlsym").is_null() || !this.symbol("malloc").is_null());
    }
}
