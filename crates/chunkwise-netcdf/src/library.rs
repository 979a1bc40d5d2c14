//! Which libnetcdf is called, and how is it found?

use std::ffi::{CStr, c_void};
use std::fmt;
use std::sync::Arc;

use chunkwise_loader::Loaded;
use parking_lot::Mutex;

use crate::NetCdfError;
use crate::api::{Api, Copying, Filters, SetErrorPrinter, Szip, Writing};

/// netCDF-C is not thread-safe, and neither is the libhdf5 below it, which two libraries
/// may share: there is one lock for all of them.
static CALLS: Mutex<()> = Mutex::new(());

/// One libnetcdf, bound.
pub struct NetCdf {
    api: Api,
    // Errors, which name the symbol, in a netCDF-C that is too old for them.
    pub(crate) writing: Result<Writing, NetCdfError>,
    pub(crate) copying: Result<Copying, NetCdfError>,
    pub(crate) szip: Result<Szip, NetCdfError>,
    pub(crate) filters: Result<Filters, NetCdfError>,
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
        let loaded = Loaded::open(path)
            .map_err(|message| NetCdfError::Library { path: path.to_string(), message })?;
        // SAFETY: a library that has all these names is netCDF-C.
        let api = unsafe { Api::resolve(&loaded)? };
        // SAFETY: as above, for all four.
        let (writing, copying) = unsafe { (Writing::resolve(&loaded), Copying::resolve(&loaded)) };
        // SAFETY: as above.
        let (szip, filters) = unsafe { (Szip::resolve(&loaded), Filters::resolve(&loaded)) };
        let found = loaded.symbol("H5Eset_auto2");
        // SAFETY: libhdf5's function of that name, found through what depends on it, has
        // this signature since 1.8.
        let set_error_printer = (!found.is_null())
            .then(|| unsafe { std::mem::transmute::<*mut c_void, SetErrorPrinter>(found) });
        // SAFETY: it takes nothing, and gives a constant.
        let said = unsafe { (api.nc_inq_libvers)() };
        let said = if said.is_null() {
            String::new()
        } else {
            // SAFETY: a string that ends with zero and lives as long as the library.
            unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned()
        };
        let version = number_of(&said).to_string();
        let path = path.to_string();
        Ok(Arc::new(Self {
            api,
            writing,
            copying,
            szip,
            filters,
            set_error_printer,
            path,
            version,
        }))
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
