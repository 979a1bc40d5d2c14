//! Filters set on property lists, by functions that only tests need.
//!
//! Other crates' tests take this file by its path.

use std::ffi::{CString, c_int, c_uint, c_void};

use chunkwise_libhdf5::Library;
use chunkwise_libhdf5::binding::hid_t;

/// Set a filter by the function `name`, with a level where it takes one.
///
/// # Safety
/// A live creation property list of this library.
pub unsafe fn set_filter(library: &Library, name: &str, dcpl: hid_t, level: Option<c_uint>) {
    let (path, name) = (CString::new(library.path()).unwrap(), CString::new(name).unwrap());
    // SAFETY: the library is loaded; the functions have these signatures in H5Ppublic.h.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        let found = libc::dlsym(handle, name.as_ptr());
        assert!(!found.is_null());
        let status =
            match level {
                Some(level) => std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(hid_t, c_uint) -> c_int,
                >(found)(dcpl, level),
                None => std::mem::transmute::<*mut c_void, unsafe extern "C" fn(hid_t) -> c_int>(
                    found,
                )(dcpl),
            };
        assert!(status >= 0);
    }
}
