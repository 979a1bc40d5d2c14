//! Filters set on property lists, by functions that only tests need.
//!
//! Other crates' tests take this file by its path.

use std::ffi::{c_int, c_uint, c_void};

use chunkwise_libhdf5::Library;
use chunkwise_libhdf5::binding::hid_t;

/// Set a filter by the function `name`, with a level where it takes one.
///
/// # Safety
/// A live creation property list of this library.
pub unsafe fn set_filter(library: &Library, name: &str, dcpl: hid_t, level: Option<c_uint>) {
    let found = library.loaded().symbol(name);
    assert!(!found.is_null());
    // SAFETY: the functions have these signatures in H5Ppublic.h.
    unsafe {
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
