//! Which libnetcdf is called, and how is it found?

use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::NetCdfError;
use crate::api::{Api, SetErrorPrinter};

/// netCDF-C is not thread-safe, and neither is the libhdf5 below it, which two libraries
/// may share: there is one lock for all of them.
static CALLS: Mutex<()> = Mutex::new(());

/// One libnetcdf, bound.
pub struct NetCdf {
    api: Api,
    /// None in a netCDF-C that was built without HDF5.
    set_error_printer: Option<SetErrorPrinter>,
    path: String,
    version: String,
}

impl fmt::Debug for NetCdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NetCdf(netCDF-C {} at {})", self.version, self.path)
    }
}

impl NetCdf {
    /// Load the libnetcdf at `path`, or use it when it is loaded already.
    ///
    /// Libraries that it needs and the loader does not find are looked for beside it, so
    /// that the libnetcdf of netCDF4's wheel (`netcdf4.libs/`) can be given as it is.
    /// The library stays loaded until the process ends.  This crate calls it from one
    /// thread at a time; nobody else may call it, or the libhdf5 that it uses, meanwhile.
    ///
    /// # Errors
    /// When there is no library at `path`, or it is not netCDF-C 4.1 or later.
    pub fn open(path: &str) -> Result<Arc<Self>, NetCdfError> {
        let loaded = Loaded::open(path)?;
        // SAFETY: a library that has all these names is netCDF-C.
        let api = unsafe { Api::resolve(&loaded)? };
        let set_error_printer = loaded.symbol("H5Eset_auto2").ok().map(|found| {
            // SAFETY: libhdf5's function of that name, found through what depends on it,
            // has this signature since 1.8.
            unsafe { std::mem::transmute::<*mut c_void, SetErrorPrinter>(found) }
        });
        // SAFETY: it takes nothing, and gives a constant.
        let said = unsafe { (api.nc_inq_libvers)() };
        let said = if said.is_null() {
            String::new()
        } else {
            // SAFETY: a string that ends with zero and lives as long as the library.
            unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned()
        };
        let version = number_of(&said).to_string();
        Ok(Arc::new(Self { api, set_error_printer, path: path.to_string(), version }))
    }

    /// The version it says it is, such as `4.9.3`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Where it lies.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Call the library while no other thread does.  `work` must not come here again.
    pub(crate) fn locked<T>(&self, work: impl FnOnce(&Api) -> T) -> T {
        let _held = CALLS.lock();
        if let Some(set) = self.set_error_printer {
            // netCDF-C turns libhdf5's printing of errors off for good, but only in the
            // thread that comes first where libhdf5 keeps the setting for each thread.
            // SAFETY: 0 is H5E_DEFAULT, and null turns printing off; the lock is held.
            unsafe { set(0, std::ptr::null(), std::ptr::null_mut()) };
        }
        work(&self.api)
    }
}

/// The number in what `nc_inq_libvers` says: `4.9.0 of Jul 18 2022 17:02:46 $`.
fn number_of(said: &str) -> &str {
    said.split_whitespace().next().unwrap_or("unknown").trim_matches('"')
}

/// A library in this process; never unloaded, so that its functions stay valid.
pub(crate) struct Loaded {
    handle: *mut c_void,
    path: String,
}

impl Loaded {
    /// Load the library at `path`, or find it where it is loaded already.
    pub(crate) fn open(path: &str) -> Result<Self, NetCdfError> {
        let handle = load(path, &mut Vec::new());
        let path = path.to_string();
        match handle {
            Ok(handle) => Ok(Self { handle, path }),
            Err(message) => Err(NetCdfError::Library { path, message }),
        }
    }

    /// Where `symbol` lies; never null.
    pub(crate) fn symbol(&self, symbol: &'static str) -> Result<*mut c_void, NetCdfError> {
        let missing = || NetCdfError::Symbol { path: self.path.clone(), symbol };
        let name = CString::new(symbol).map_err(|_| missing())?;
        // SAFETY: a live handle and a valid string.
        let found = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if found.is_null() { Err(missing()) } else { Ok(found) }
    }
}

/// Load a library, and before it those of its folder that the loader misses.
///
/// The libraries of a Python wheel do not say where the others are: only the extension
/// module that uses them does.  The loader takes what is loaded already by its name.
/// `tried` are the libraries that were loaded for that reason.
fn load(path: &str, tried: &mut Vec<String>) -> Result<*mut c_void, String> {
    let name = CString::new(path).map_err(|reason| reason.to_string())?;
    loop {
        // SAFETY: a valid string; loading libnetcdf runs only its own initialisers and
        // those of what it depends on.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if !handle.is_null() {
            return Ok(handle);
        }
        let message = loader_message();
        match missed_neighbour(path, &message) {
            Some(neighbour) if !tried.contains(&neighbour) => {
                tried.push(neighbour.clone());
                load(&neighbour, tried)?;
            }
            _ => return Err(message),
        }
    }
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
        return "the loader gave no reason".to_string();
    }
    // SAFETY: as above, not null.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        for (said, number) in [
            ("4.9.0 of Jul 18 2022 17:02:46 $", "4.9.0"),
            ("\"4.1.3\" of Jan  1 2012", "4.1.3"),
            ("4.9.4-development of today", "4.9.4-development"),
            ("", "unknown"),
        ] {
            assert_eq!(number_of(said), number);
        }
    }
}
