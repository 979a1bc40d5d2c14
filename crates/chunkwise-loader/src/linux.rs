//! What only Linux's loader tells.

use std::ffi::{CStr, c_void};

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

/// A library that is always there, a symbol of one that it needs, and one of its own.
#[cfg(test)]
pub mod for_tests {
    pub const LIBRARY: &str = "libm.so.6";
    pub const NEEDED: (&str, &str) = ("puts", "libc.so");
    pub const OWN: &str = "cos";
}
