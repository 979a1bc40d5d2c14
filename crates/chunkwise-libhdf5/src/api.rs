//! Which functions of libhdf5 are called, and with which signatures?
//!
//! Signatures are those of HDF5 1.10 and later (`hid_t` of 64 bits), checked against
//! `H5*public.h`.  Functions that some versions lack are optional.

#![allow(non_camel_case_types, non_snake_case)]

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

/// An object's handle.
pub type hid_t = i64;
/// Negative on failure.
pub type herr_t = c_int;
/// Negative on failure, otherwise false or true.
pub type htri_t = c_int;
/// A size in elements or bytes.
pub type hsize_t = u64;
/// An address in the file; all bits set when undefined.
pub type haddr_t = u64;

/// `HADDR_UNDEF`
pub const HADDR_UNDEF: haddr_t = haddr_t::MAX;
/// `H5P_DEFAULT`, `H5S_ALL`, `H5E_DEFAULT`
pub const DEFAULT: hid_t = 0;

/// Called by `H5Dchunk_iter` for each chunk.
///
/// Early versions pass a 32-bit size: read it as [`crate::ChunkConventions`] says.
pub type ChunkCallback = unsafe extern "C" fn(
    offset: *const hsize_t,
    filter_mask: c_uint,
    address: haddr_t,
    size: hsize_t,
    data: *mut c_void,
) -> c_int;

/// Called by `H5Ewalk2` for each error.
pub type ErrorCallback =
    unsafe extern "C" fn(n: c_uint, error: *const ErrorEntry, data: *mut c_void) -> herr_t;

/// `H5E_error2_t`
#[repr(C)]
pub struct ErrorEntry {
    class: hid_t,
    major: hid_t,
    minor: hid_t,
    line: c_uint,
    function: *const c_char,
    file: *const c_char,
    /// What happened, in words; may be null.
    pub description: *const c_char,
}

/// `H5G_stat_t`
#[repr(C)]
#[derive(Default)]
pub struct ObjectInfo {
    /// The file's number, in two halves.
    pub file: [std::ffi::c_ulong; 2],
    /// The address, in two halves (the second is 0 where a `long` holds it).
    pub address: [std::ffi::c_ulong; 2],
    /// How many links lead to it, by its own count; 0 of one that was deleted.
    pub links: c_uint,
    /// `H5G_obj_t`
    pub class: c_int,
    /// Seconds since 1970; 0 where no time is kept.
    pub modified: libc::time_t,
    link_size: usize,
    header_size: hsize_t,
    header_free: hsize_t,
    messages: c_uint,
    chunks: c_uint,
}

impl ObjectInfo {
    /// Where the object's header lies.
    pub fn address(&self) -> u64 {
        // Two halves where a long has 32 bits only.
        #[allow(clippy::unnecessary_cast)] // A `long` has 32 bits on Windows.
        let [low, high] = self.address.map(|half| half as u64);
        low | high << 32
    }
}

/// Declare a table of functions that are looked up in a libhdf5, such as [`Api`].
///
/// For rooms that call what nobody else needs.  The signatures are the caller's to get right:
/// those of every libhdf5 from 1.10.5 on.
#[macro_export]
macro_rules! functions {
    (
        $(#[$doc:meta])* $table:ident;
        required { $($(#[$m:meta])* fn $name:ident($($arg:ty),* $(,)?) -> $ret:ty;)* }
        optional { $(fn $oname:ident($($oarg:ty),* $(,)?) -> $oret:ty;)* }
        globals { $($global:ident,)* }
    ) => {
        $(#[$doc])*
        ///
        /// Calling any of them is unsafe: handles must be live handles of this very
        /// library, pointers must be valid for what the function does with them, and the
        /// library's lock must be held (see `Library::locked`).
        #[derive(Debug)]
        #[non_exhaustive]
        pub struct $table {
            $(
                #[doc = concat!("`", stringify!($name), "`")]
                $(#[$m])*
                pub $name: unsafe extern "C" fn($($arg),*) -> $ret,
            )*
            $(
                #[doc = concat!("`", stringify!($oname), "`, where this version has it")]
                pub $oname: Option<unsafe extern "C" fn($($oarg),*) -> $oret>,
            )*
            $(
                #[doc = concat!("`", stringify!($global), "`")]
                pub $global: $crate::binding::hid_t,
            )*
        }

        impl $table {
            /// Look everything up with `symbol`, which gives a symbol's address or null.
            ///
            /// # Errors
            /// When the library lacks one of the functions that are required.
            ///
            /// # Safety
            /// `symbol` must look names up in a libhdf5 that stays loaded.
            pub unsafe fn resolve(
                path: &str,
                symbol: impl Fn(&'static str) -> *mut std::ffi::c_void,
            ) -> Result<Self, $crate::BindError> {
                use std::ffi::c_void;

                use $crate::BindError;
                use $crate::binding::{herr_t, hid_t};

                let required = |name: &'static str| {
                    let found = symbol(name);
                    if found.is_null() {
                        return Err(BindError::Symbol { path: path.to_string(), symbol: name });
                    }
                    Ok(found)
                };
                let open = required("H5open")?;
                // SAFETY: H5open takes nothing, gives a herr_t, and may be called any
                // number of times.  It sets the constants that are read below.
                let opened = unsafe {
                    std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> herr_t>(open)()
                };
                if opened < 0 {
                    return Err(BindError::Call {
                        call: "H5open",
                        message: "the library could not be started".to_string(),
                    });
                }
                Ok(Self {
                    // SAFETY: the symbol of that name has that signature in every libhdf5
                    // from 1.10.5 on.
                    $($name: unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) -> $ret>(
                            required(stringify!($name))?,
                        )
                    },)*
                    $($oname: {
                        let found = symbol(stringify!($oname));
                        // SAFETY: as above, where the symbol exists at all.
                        (!found.is_null()).then(|| unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($oarg),*) -> $oret,
                            >(found)
                        })
                    },)*
                    // SAFETY: these are variables of type hid_t, set by H5open.
                    $($global: unsafe {
                        let place = required(stringify!($global))?;
                        $crate::binding::constant(place, stringify!($global))
                    },)*
                })
            }
        }
    };
}

/// The value of a libhdf5's variable at `place`, called `name`.
///
/// Where a program that is linked with the library uses the variable itself, the linker may have
/// moved it into the program (a copy relocation), and the one in the library is never set.
///
/// # Safety
/// A variable of type `hid_t` of a library that was started.
pub unsafe fn constant(place: *mut c_void, name: &'static str) -> hid_t {
    // SAFETY: the caller's contract.
    unsafe {
        let value = *place.cast::<hid_t>();
        if value >= 0 {
            return value;
        }
        let moved = chunkwise_loader::symbol_anywhere(name);
        if moved.is_null() { value } else { *moved.cast::<hid_t>() }
    }
}

functions! {
    /// The functions and constants of one libhdf5.
    Api;
    required {
        fn H5get_libversion(*mut c_uint, *mut c_uint, *mut c_uint) -> herr_t;
        fn H5Eset_auto2(hid_t, *const c_void, *mut c_void) -> herr_t;
        fn H5Eget_auto2(hid_t, *mut *const c_void, *mut *mut c_void) -> herr_t;
        fn H5Eauto_is_v2(hid_t, *mut c_uint) -> herr_t;
        fn H5Ewalk2(hid_t, c_int, ErrorCallback, *mut c_void) -> herr_t;
        fn H5Eclear2(hid_t) -> herr_t;
        fn H5Iget_file_id(hid_t) -> hid_t;
        fn H5Iget_ref(hid_t) -> c_int;
        fn H5Gget_objinfo(hid_t, *const c_char, bool, *mut ObjectInfo) -> herr_t;
        fn H5Fopen(*const c_char, c_uint, hid_t) -> hid_t;
        fn H5Fcreate(*const c_char, c_uint, hid_t, hid_t) -> hid_t;
        fn H5Fflush(hid_t, c_int) -> herr_t;
        fn H5Fclose(hid_t) -> herr_t;
        fn H5Fget_intent(hid_t, *mut c_uint) -> herr_t;
        fn H5Fget_access_plist(hid_t) -> hid_t;
        fn H5Fget_create_plist(hid_t) -> hid_t;
        fn H5Fget_vfd_handle(hid_t, hid_t, *mut *mut c_void) -> herr_t;
        fn H5Fget_filesize(hid_t, *mut hsize_t) -> herr_t;
        fn H5Pcreate(hid_t) -> hid_t;
        fn H5Pclose(hid_t) -> herr_t;
        fn H5Pget_driver(hid_t) -> hid_t;
        fn H5Pget_driver_info(hid_t) -> *const c_void;
        fn H5Pset_fapl_core(hid_t, usize, c_uint) -> herr_t;
        fn H5Pset_fapl_sec2(hid_t) -> herr_t;
        fn H5Pset_libver_bounds(hid_t, c_int, c_int) -> herr_t;
        fn H5Pset_sieve_buf_size(hid_t, usize) -> herr_t;
        fn H5Pset_meta_block_size(hid_t, hsize_t) -> herr_t;
        fn H5Pset_small_data_block_size(hid_t, hsize_t) -> herr_t;
        fn H5Pset_alignment(hid_t, hsize_t, hsize_t) -> herr_t;
        fn H5Pset_page_buffer_size(hid_t, usize, c_uint, c_uint) -> herr_t;
        fn H5Pset_file_space_strategy(hid_t, c_int, c_uint, hsize_t) -> herr_t;
        fn H5Pset_chunk_cache(hid_t, usize, usize, f64) -> herr_t;
        fn H5Pget_chunk_cache(hid_t, *mut usize, *mut usize, *mut f64) -> herr_t;
        fn H5Pset_alloc_time(hid_t, c_int) -> herr_t;
        fn H5Pset_fill_time(hid_t, c_int) -> herr_t;
        fn H5Pset_buffer(hid_t, usize, *mut c_void, *mut c_void) -> herr_t;
        fn H5Pset_create_intermediate_group(hid_t, c_uint) -> herr_t;
        fn H5Pset_userblock(hid_t, hsize_t) -> herr_t;
        fn H5Pget_userblock(hid_t, *mut hsize_t) -> herr_t;
        fn H5Pget_layout(hid_t) -> c_int;
        fn H5Pget_chunk(hid_t, c_int, *mut hsize_t) -> c_int;
        fn H5Pset_chunk(hid_t, c_int, *const hsize_t) -> herr_t;
        fn H5Pget_chunk_opts(hid_t, *mut c_uint) -> herr_t;
        fn H5Pget_external_count(hid_t) -> c_int;
        fn H5Pget_nfilters(hid_t) -> c_int;
        fn H5Pget_filter2(hid_t, c_uint, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint) -> c_int;
        fn H5Pfill_value_defined(hid_t, *mut c_int) -> herr_t;
        fn H5Pget_fill_value(hid_t, hid_t, *mut c_void) -> herr_t;
        fn H5Pget_fill_time(hid_t, *mut c_int) -> herr_t;
        fn H5Dcreate2(hid_t, *const c_char, hid_t, hid_t, hid_t, hid_t, hid_t) -> hid_t;
        fn H5Dopen2(hid_t, *const c_char, hid_t) -> hid_t;
        fn H5Dclose(hid_t) -> herr_t;
        fn H5Dflush(hid_t) -> herr_t;
        fn H5Dget_create_plist(hid_t) -> hid_t;
        fn H5Dget_access_plist(hid_t) -> hid_t;
        fn H5Dget_type(hid_t) -> hid_t;
        fn H5Dget_space(hid_t) -> hid_t;
        fn H5Dget_offset(hid_t) -> haddr_t;
        fn H5Dget_space_status(hid_t, *mut c_int) -> herr_t;
        fn H5Dget_storage_size(hid_t) -> hsize_t;
        fn H5Dread(hid_t, hid_t, hid_t, hid_t, hid_t, *mut c_void) -> herr_t;
        fn H5Dwrite(hid_t, hid_t, hid_t, hid_t, hid_t, *const c_void) -> herr_t;
        fn H5Dwrite_chunk(hid_t, hid_t, u32, *const hsize_t, usize, *const c_void) -> herr_t;
        fn H5Dget_chunk_storage_size(hid_t, *const hsize_t, *mut hsize_t) -> herr_t;
        fn H5Dget_num_chunks(hid_t, hid_t, *mut hsize_t) -> herr_t;
        fn H5Dget_chunk_info(hid_t, hid_t, hsize_t, *mut hsize_t, *mut c_uint, *mut haddr_t, *mut hsize_t) -> herr_t;
        fn H5Dget_chunk_info_by_coord(hid_t, *const hsize_t, *mut c_uint, *mut haddr_t, *mut hsize_t) -> herr_t;
        fn H5Screate_simple(c_int, *const hsize_t, *const hsize_t) -> hid_t;
        fn H5Sclose(hid_t) -> herr_t;
        fn H5Sget_simple_extent_type(hid_t) -> c_int;
        fn H5Sget_simple_extent_npoints(hid_t) -> i64;
        fn H5Sget_simple_extent_ndims(hid_t) -> c_int;
        fn H5Sget_simple_extent_dims(hid_t, *mut hsize_t, *mut hsize_t) -> c_int;
        fn H5Sselect_hyperslab(hid_t, c_int, *const hsize_t, *const hsize_t, *const hsize_t, *const hsize_t) -> herr_t;
        fn H5Tcopy(hid_t) -> hid_t;
        fn H5Tclose(hid_t) -> herr_t;
        fn H5Tequal(hid_t, hid_t) -> htri_t;
        fn H5Tget_size(hid_t) -> usize;
        fn H5Tget_native_type(hid_t, c_int) -> hid_t;
        fn H5Tget_class(hid_t) -> c_int;
        fn H5Tget_super(hid_t) -> hid_t;
        fn H5Tget_nmembers(hid_t) -> c_int;
        fn H5Tget_member_type(hid_t, c_uint) -> hid_t;
        fn H5Tis_variable_str(hid_t) -> htri_t;
    }
    optional {
        // Where deprecated functions were not left out.
        fn H5Eget_auto1(*mut *const c_void, *mut *mut c_void) -> herr_t;
        fn H5Eset_auto1(*const c_void, *mut c_void) -> herr_t;
        // From 1.10.10, 1.12.3 and 1.14.0 on.
        fn H5Dchunk_iter(hid_t, hid_t, ChunkCallback, *mut c_void) -> herr_t;
        // Up to 1.14; 2.0 has it under the second name.
        fn H5Dread_chunk(hid_t, hid_t, *const hsize_t, *mut u32, *mut c_void) -> herr_t;
        fn H5Dread_chunk1(hid_t, hid_t, *const hsize_t, *mut u32, *mut c_void) -> herr_t;
        // For developers (H5Ddevelop.h), exported by every version from 1.10.0 on.
        fn H5Dget_chunk_index_type(hid_t, *mut c_int) -> herr_t;
        // From 1.10.2 on.
        fn H5FDdriver_query(hid_t, *mut c_ulong) -> herr_t;
    }
    globals {
        H5P_CLS_FILE_CREATE_ID_g,
        H5P_CLS_FILE_ACCESS_ID_g,
        H5P_CLS_DATASET_CREATE_ID_g,
        H5P_CLS_DATASET_ACCESS_ID_g,
        H5P_CLS_DATASET_XFER_ID_g,
        H5P_CLS_LINK_CREATE_ID_g,
        H5T_NATIVE_UCHAR_g,
    }
}
