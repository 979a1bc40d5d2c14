//! What only macOS's loader tells.

use std::ffi::CStr;

/// Paths of the libraries and modules mapped into this process, each once, in the order in
/// which they were loaded.
pub fn loaded_paths() -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    // SAFETY: takes nothing.
    #[allow(deprecated)] // In favour of another crate.
    let count = unsafe { libc::_dyld_image_count() };
    for number in 0..count {
        // SAFETY: null, or a string that ends with zero and stays while the library is loaded.
        #[allow(deprecated)]
        let name = unsafe { libc::_dyld_get_image_name(number) };
        if name.is_null() {
            continue;
        }
        // SAFETY: as above.
        let path = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// A library that is always there, a symbol of one that it needs, and one of its own.
#[cfg(test)]
pub mod for_tests {
    pub const LIBRARY: &str = "/usr/lib/libSystem.B.dylib";
    pub const NEEDED: (&str, &str) = ("puts", "libsystem_c");
    pub const OWN: &str = "dlopen";
}
