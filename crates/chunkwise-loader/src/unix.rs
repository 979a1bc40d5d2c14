//! How the loader of Linux and macOS is called.

use std::ffi::{CStr, CString, c_void};
use std::path::Path;

/// Load a library, or find it where it is loaded.
pub fn open(path: &str) -> Result<*mut c_void, String> {
    load(path, &mut Vec::new())
}

/// A library that is loaded already.
pub fn find(path: &str) -> Result<*mut c_void, String> {
    dlopen(path, libc::RTLD_NOW | libc::RTLD_NOLOAD)
}

/// Where a symbol lies, in a library or, after it, in what it depends on; null where nowhere.
pub fn symbol(handle: *mut c_void, symbol: &str) -> *mut c_void {
    let Ok(name) = CString::new(symbol) else { return std::ptr::null_mut() };
    // SAFETY: a live handle, or the loader's own for all that is offered; a valid string.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}

/// Where a symbol lies that the program or a library offers to all.
pub fn symbol_anywhere(name: &str) -> *mut c_void {
    symbol(libc::RTLD_DEFAULT, name)
}

/// Load a library, and before it those of its folder that the loader misses.
///
/// The libraries of a Python wheel do not say where the others are: only the extension
/// module that uses them does.  The loader takes what is loaded already by its name.
/// `tried` are the libraries that were loaded for that reason.
fn load(path: &str, tried: &mut Vec<String>) -> Result<*mut c_void, String> {
    loop {
        let message = match dlopen(path, libc::RTLD_NOW | libc::RTLD_LOCAL) {
            Ok(handle) => return Ok(handle),
            Err(message) => message,
        };
        match missed_neighbour(path, &message) {
            Some(neighbour) if !tried.contains(&neighbour) => {
                tried.push(neighbour.clone());
                load(&neighbour, tried)?;
            }
            _ => return Err(message),
        }
    }
}

fn dlopen(path: &str, flags: libc::c_int) -> Result<*mut c_void, String> {
    let name = CString::new(path).map_err(|reason| reason.to_string())?;
    // SAFETY: a valid string; loading a library runs only its own initialisers and those
    // of what it depends on.
    let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
    if handle.is_null() { Err(loader_message()) } else { Ok(handle) }
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
        // With RTLD_NOLOAD there is no message when the library is just not loaded.
        return "it is not loaded in this process".to_string();
    }
    // SAFETY: as above, not null.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The path of the library in which an address lies.
pub fn path_at(address: usize) -> Option<String> {
    let mut place = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked about; the loader fills the record where it knows it.
    let path = unsafe {
        if libc::dladdr(address as *const c_void, place.as_mut_ptr()) == 0 {
            return None;
        }
        place.assume_init().dli_fname
    };
    // SAFETY: null, or a string that ends with zero and stays while the library is loaded.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_beside_the_library_is_a_neighbour() {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/src/nothing.so");
        let missed = |name| missed_neighbour(here, &format!("{name}: cannot open"));
        assert!(missed("lib.rs").is_some_and(|path| path.ends_with("/src/lib.rs")));
        assert_eq!(missed("gone.so"), None);
        assert_eq!(missed("../src/lib.rs"), None);
        assert_eq!(missed_neighbour("nothing.so", "lib.rs: cannot open"), None);
    }
}
