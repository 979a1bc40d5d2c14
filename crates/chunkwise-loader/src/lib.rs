//! How is a C library found and loaded at run time?
//!
//! Nothing of chunkwise links libhdf5 or netCDF-C: there is one right library for a
//! handle, and the version of another is something to be measured.

use std::ffi::c_void;

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod modules;
#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod modules;
#[cfg(unix)]
#[path = "unix.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

pub use modules::loaded_paths;
#[cfg(windows)]
use system as modules;
pub use system::{path_at, symbol_anywhere};

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
        let handle = system::open(path)?;
        Ok(Self { handle, path: path.to_string() })
    }

    /// The library or module at `path` that is loaded already.
    ///
    /// # Errors
    /// When it is not.
    pub fn find(path: &str) -> Result<Self, String> {
        let handle = system::find(path)?;
        Ok(Self { handle, path: path.to_string() })
    }

    /// The library in which `symbol` lies, where this or what it depends on has it.  This
    /// itself where the loader cannot say which.
    pub fn holder(self, symbol: &str) -> Option<Self> {
        let address = self.symbol(symbol);
        if address.is_null() {
            return None;
        }
        let holder = path_at(address as usize).and_then(|path| Self::find(&path).ok());
        // A path may lead elsewhere: the program's is the name it was called by.
        Some(holder.filter(|holder| holder.symbol(symbol) == address).unwrap_or(self))
    }

    /// Where `symbol` lies, in the library or, after it, in what it depends on; null where
    /// nowhere.
    pub fn symbol(&self, symbol: &str) -> *mut c_void {
        system::symbol(self.handle, symbol)
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

#[cfg(test)]
mod tests {
    use super::*;
    use modules::for_tests::{LIBRARY, NEEDED, OWN};

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
        let (paths, needed) = (loaded_paths(), NEEDED.1);
        assert!(paths.iter().any(|path| path.contains(needed)), "{paths:?}");
        assert!(paths.iter().all(|path| !path.is_empty()));
    }

    #[test]
    fn a_symbol_is_held_by_the_library_that_has_it() {
        let open = |path| Loaded::open(path).unwrap_or_else(|why| unreachable!("{why}"));
        let (symbol, library) = NEEDED;
        let holder = open(LIBRARY).holder(symbol);
        assert!(holder.is_some_and(|found| found.path().contains(library)));
        let itself = open(LIBRARY).holder(OWN);
        assert!(itself.is_some_and(|found| found.path().contains(&LIBRARY[..5])));
        assert!(open(LIBRARY).holder("H5open").is_none());
    }

    #[test]
    fn a_name_that_is_nowhere_is_null() {
        let this = Loaded::open(LIBRARY).unwrap_or_else(|why| unreachable!("{why}"));
        assert!(this.symbol("no_such_function_anywhere").is_null());
        assert!(this.symbol("a\0b").is_null());
        assert!(!this.symbol(OWN).is_null());
    }
}
