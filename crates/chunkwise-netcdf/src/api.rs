//! Which functions of netCDF-C are called, and with which signatures?
//!
//! Signatures are those of `netcdf.h`, the same since netCDF-C 4.1.

use std::ffi::{CStr, c_char, c_float, c_int, c_void};

use crate::NetCdfError;

/// `NC_NOERR`; failures are negative (netCDF-C's) or positive (the system's `errno`).
const NO_ERROR: c_int = 0;
/// `NC_NOWRITE`
pub(crate) const READ_ONLY: c_int = 0;
/// `NC_BYTE`: the first of the numbers and characters.
pub(crate) const FIRST_PLAIN_TYPE: c_int = 1;
/// `NC_UINT64`: the last of them; strings and the file's own types come after.
pub(crate) const LAST_PLAIN_TYPE: c_int = 11;
/// `NC_MAX_NAME`, without the zero that ends a name.
pub(crate) const LONGEST_NAME: usize = 256;

/// Declare the functions of a library, looked up all at once.
macro_rules! functions {
    (
        $(#[$meta:meta])*
        struct $name:ident { $(fn $function:ident($($arg:ty),* $(,)?) -> $ret:ty;)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[allow(non_snake_case)]
        pub(crate) struct $name {
            $(pub(crate) $function: unsafe extern "C" fn($($arg),*) -> $ret,)*
        }

        impl $name {
            /// Look every function up.
            ///
            /// # Errors
            /// When the library lacks one.
            ///
            /// # Safety
            /// What the library has under these names must be netCDF-C's functions.
            pub(crate) unsafe fn resolve(
                library: &chunkwise_loader::Loaded,
            ) -> Result<Self, crate::NetCdfError> {
                let look_up = |symbol: &'static str| {
                    let found = library.symbol(symbol);
                    if found.is_null() {
                        let path = library.path().to_string();
                        return Err(crate::NetCdfError::Symbol { path, symbol });
                    }
                    Ok(found)
                };
                Ok(Self {
                    // SAFETY: the symbol of that name has that signature in every
                    // netCDF-C from 4.1 on, and is never unloaded.
                    $($function: unsafe {
                        std::mem::transmute::<
                            *mut std::ffi::c_void,
                            unsafe extern "C" fn($($arg),*) -> $ret,
                        >(look_up(stringify!($function))?)
                    },)*
                })
            }
        }
    };
}
#[cfg(test)]
pub(crate) use functions;

functions! {
    /// The functions of one libnetcdf.
    ///
    /// Calling any of them is unsafe: ids must be those of files open in this very
    /// library, pointers must be valid for what the function does with them, and no
    /// other thread may be in the library (see [`crate::NetCdf::locked`]).
    struct Api {
        fn nc_inq_libvers() -> *const c_char;
        fn nc_strerror(c_int) -> *const c_char;
        fn nc_open(*const c_char, c_int, *mut c_int) -> c_int;
        fn nc_close(c_int) -> c_int;
        fn nc_inq_grp_full_ncid(c_int, *const c_char, *mut c_int) -> c_int;
        fn nc_inq_varid(c_int, *const c_char, *mut c_int) -> c_int;
        fn nc_inq_varndims(c_int, c_int, *mut c_int) -> c_int;
        fn nc_inq_vartype(c_int, c_int, *mut c_int) -> c_int;
        fn nc_inq_vardimid(c_int, c_int, *mut c_int) -> c_int;
        fn nc_inq_dimlen(c_int, c_int, *mut usize) -> c_int;
        fn nc_inq_type(c_int, c_int, *mut c_char, *mut usize) -> c_int;
        fn nc_set_var_chunk_cache(c_int, c_int, usize, usize, c_float) -> c_int;
        fn nc_get_var_chunk_cache(c_int, c_int, *mut usize, *mut usize, *mut c_float) -> c_int;
        fn nc_get_vara(c_int, c_int, *const usize, *const usize, *mut c_void) -> c_int;
        fn nc_get_vars(c_int, c_int, *const usize, *const usize, *const isize, *mut c_void) -> c_int;
    }
}

/// `H5Eset_auto2` of the libhdf5 below: sets who prints the errors of this thread.
pub(crate) type SetErrorPrinter =
    unsafe extern "C" fn(stack: i64, function: *const c_void, data: *mut c_void) -> c_int;

impl Api {
    /// Nothing, or netCDF-C's words for why a call failed.
    pub(crate) fn outcome(&self, status: c_int) -> Result<(), String> {
        if status == NO_ERROR {
            return Ok(());
        }
        // SAFETY: any number may be asked about.
        let text = unsafe { (self.nc_strerror)(status) };
        if text.is_null() {
            return Err(format!("error {status}"));
        }
        // SAFETY: a string that ends with zero, valid until the next call.
        Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    /// Nothing, or the error of this call.
    pub(crate) fn checked(&self, call: &'static str, status: c_int) -> Result<(), NetCdfError> {
        self.outcome(status).map_err(|message| NetCdfError::Call { call, message })
    }
}
