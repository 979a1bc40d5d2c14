//! Which functions of netCDF-C are called, and with which signatures?
//!
//! Signatures are those of `netcdf.h`, the same since netCDF-C 4.1, or since the version
//! that is named where functions came later.  What is not there is missed only by
//! whoever calls it.

use std::ffi::{CStr, c_char, c_float, c_int, c_uint, c_void};

use crate::NetCdfError;

/// `NC_NOERR`; failures are negative (netCDF-C's) or positive (the system's `errno`).
const NO_ERROR: c_int = 0;
/// `NC_NOWRITE`
pub(crate) const READ_ONLY: c_int = 0;
/// `NC_NOCLOBBER`, and what is added to it for a format: `NC_NETCDF4`, `NC_64BIT_OFFSET`,
/// `NC_64BIT_DATA`.
pub(crate) const NEW_FILE: c_int = 0x4;
pub(crate) const NETCDF4: c_int = 0x1000;
pub(crate) const OFFSET_64BIT: c_int = 0x200;
pub(crate) const DATA_64BIT: c_int = 0x20;
/// `NC_CHUNKED` and `NC_CONTIGUOUS`
pub(crate) const CHUNKED: c_int = 0;
pub(crate) const CONTIGUOUS: c_int = 1;
/// `NC_ENDIAN_LITTLE` and `NC_ENDIAN_BIG`
pub(crate) const LITTLE_ENDIAN: c_int = 1;
pub(crate) const BIG_ENDIAN: c_int = 2;
/// `NC_EEXIST`
pub(crate) const ALREADY_EXISTS: c_int = -35;
/// `NC_ENOFILTER`
pub(crate) const NO_SUCH_FILTER: c_int = -136;
/// `NC_BYTE`: the first of the numbers and characters.
pub(crate) const FIRST_PLAIN_TYPE: c_int = 1;
/// `NC_DOUBLE`: the last of those that netCDF-3 knows.
pub(crate) const LAST_NETCDF3_TYPE: c_int = 6;
/// `NC_UINT64`: the last of them; strings and the file's own types come after.
pub(crate) const LAST_PLAIN_TYPE: c_int = 11;
/// `NC_MAX_NAME`, without the zero that ends a name.
pub(crate) const LONGEST_NAME: usize = 256;

/// Declare functions of a library that came with one version, looked up all at once.
macro_rules! functions {
    (
        $(#[$meta:meta])*
        struct $name:ident since $since:literal {
            $(fn $function:ident($($arg:ty),* $(,)?) -> $ret:ty;)*
        }
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
                        return Err(crate::NetCdfError::Symbol { path, symbol, since: $since });
                    }
                    Ok(found)
                };
                Ok(Self {
                    // SAFETY: the symbol of that name has that signature in every
                    // netCDF-C from that version on, and is never unloaded.
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
    struct Api since "4.1" {
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

functions! {
    /// What it takes to write.  The contract is that of [`Api`].
    struct Writing since "4.1" {
        fn nc_create(*const c_char, c_int, *mut c_int) -> c_int;
        fn nc_set_default_format(c_int, *mut c_int) -> c_int;
        fn nc_def_grp(c_int, *const c_char, *mut c_int) -> c_int;
        fn nc_def_dim(c_int, *const c_char, usize, *mut c_int) -> c_int;
        fn nc_def_var(c_int, *const c_char, c_int, c_int, *const c_int, *mut c_int) -> c_int;
        fn nc_def_var_chunking(c_int, c_int, c_int, *const usize) -> c_int;
        fn nc_def_var_deflate(c_int, c_int, c_int, c_int, c_int) -> c_int;
        fn nc_def_var_endian(c_int, c_int, c_int) -> c_int;
        fn nc_def_var_fill(c_int, c_int, c_int, *const c_void) -> c_int;
        fn nc_def_var_fletcher32(c_int, c_int, c_int) -> c_int;
        fn nc_enddef(c_int) -> c_int;
        fn nc_put_vara(c_int, c_int, *const usize, *const usize, *const c_void) -> c_int;
        fn nc_put_vars(c_int, c_int, *const usize, *const usize, *const isize, *const c_void) -> c_int;
        fn nc_sync(c_int) -> c_int;
        fn nc_abort(c_int) -> c_int;
    }
}

functions! {
    /// What it takes to copy a whole file.  The contract is that of [`Api`].
    struct Copying since "4.1" {
        fn nc_inq(c_int, *mut c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int;
        fn nc_inq_dim(c_int, c_int, *mut c_char, *mut usize) -> c_int;
        fn nc_inq_var(
            c_int, c_int, *mut c_char, *mut c_int, *mut c_int, *mut c_int, *mut c_int,
        ) -> c_int;
        fn nc_inq_attname(c_int, c_int, c_int, *mut c_char) -> c_int;
        fn nc_copy_att(c_int, c_int, *const c_char, c_int, c_int) -> c_int;
    }
}

functions! {
    /// What szip takes.  The contract is that of [`Api`].
    struct Szip since "4.7.4" {
        fn nc_def_var_szip(c_int, c_int, c_int, c_int) -> c_int;
    }
}

functions! {
    /// What filters without a function of their own take, and more than one filter: since
    /// that version a variable may have several, and tells their order.  The contract is
    /// that of [`Api`].
    struct Filters since "4.8" {
        fn nc_def_var_filter(c_int, c_int, c_uint, usize, *const c_uint) -> c_int;
        fn nc_inq_var_filter_ids(c_int, c_int, *mut usize, *mut c_uint) -> c_int;
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
