//! How the loader of Windows is called.

use std::ffi::{CString, c_char, c_void};
use std::os::windows::ffi::OsStrExt;
use std::path::Path;

use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_PIN, GetModuleFileNameW,
    GetModuleHandleA, GetModuleHandleExW, GetProcAddress, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS,
    LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR, LoadLibraryExW,
};
use windows_sys::Win32::System::ProcessStatus::EnumProcessModules;
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// Load a library, or find it where it is loaded; what it needs is looked for beside it.
pub fn open(path: &str) -> Result<*mut c_void, String> {
    let flags = LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    let absolute = std::path::absolute(path).map_err(|error| error.to_string())?;
    // Without a folder it is a library of the system's.
    let name = if path.contains(['/', '\\']) { wide(&absolute) } else { wide(Path::new(path)) };
    let flags = if path.contains(['/', '\\']) { flags } else { LOAD_LIBRARY_SEARCH_DEFAULT_DIRS };
    // SAFETY: a string that ends with zero; loading a library runs only its own initialisers and
    // those of what it depends on.
    let handle = unsafe { LoadLibraryExW(name?.as_ptr(), std::ptr::null_mut(), flags) };
    if handle.is_null() { Err(std::io::Error::last_os_error().to_string()) } else { Ok(handle) }
}

/// A library that is loaded already.
pub fn find(path: &str) -> Result<*mut c_void, String> {
    let name = wide(Path::new(path))?;
    let mut handle: HMODULE = std::ptr::null_mut();
    // Never unloaded from now on.
    // SAFETY: a string that ends with zero, and room for the handle.
    let found = unsafe {
        GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN, name.as_ptr(), &raw mut handle)
    };
    if found == 0 { Err("it is not loaded in this process".to_string()) } else { Ok(handle) }
}

/// Where a symbol lies, in a library or, after it, in those that it imports; null where nowhere.
pub fn symbol(handle: *mut c_void, symbol: &str) -> *mut c_void {
    let Ok(name) = CString::new(symbol) else { return std::ptr::null_mut() };
    // SAFETY: a module that stays loaded, and those that it keeps loaded.
    let in_module = |module| unsafe {
        GetProcAddress(module, name.as_ptr().cast())
            .map_or(std::ptr::null_mut(), |found| found as *mut c_void)
    };
    let found = in_module(handle);
    if !found.is_null() {
        return found;
    }
    // SAFETY: as above.
    let imported = unsafe { imports(handle.cast()) };
    let found = imported.into_iter().map(in_module).find(|found| !found.is_null());
    found.unwrap_or(std::ptr::null_mut())
}

/// The modules that a loaded one imports from.
///
/// # Safety
/// A module that stays loaded.
unsafe fn imports(module: *const u8) -> Vec<HMODULE> {
    /// Bytes of an entry of the table of imports, and of its fields.
    const ENTRY: usize = 20;
    const NAME: usize = 12;
    /// Where the headers say what is where: of a file of 64 bits.
    const HEADERS: usize = 0x3C;
    const TABLE: usize = 24 + 112 + 8;
    // SAFETY: the loader has mapped the module with its headers and its table of imports, which ends
    // with an entry without a name; names end with zero.
    unsafe {
        let word = |at: usize| module.add(at).cast::<u32>().read_unaligned() as usize;
        let table = word(word(HEADERS) + TABLE);
        if table == 0 {
            return Vec::new();
        }
        let names = (0..).map(|entry| word(table + entry * ENTRY + NAME));
        let found = names.take_while(|&name| name != 0).map(|name| {
            let name: *const c_char = module.add(name).cast();
            GetModuleHandleA(name.cast())
        });
        found.filter(|module| !module.is_null()).collect()
    }
}

/// Where a symbol lies that is offered to all: there is no such thing here.
pub fn symbol_anywhere(_: &str) -> *mut c_void {
    std::ptr::null_mut()
}

/// Paths of the libraries and modules mapped into this process, each once, in the order in
/// which they were loaded.
pub fn loaded_paths() -> Vec<String> {
    let mut modules: Vec<HMODULE> = vec![std::ptr::null_mut(); 4096];
    let size = |count: usize| u32::try_from(count * size_of::<HMODULE>()).unwrap_or(u32::MAX);
    let mut needed = 0;
    // SAFETY: room for as many as are said.
    let listed = unsafe {
        let room = size(modules.len());
        EnumProcessModules(GetCurrentProcess(), modules.as_mut_ptr(), room, &raw mut needed)
    };
    if listed == 0 {
        return Vec::new();
    }
    modules.truncate(needed as usize / size_of::<HMODULE>());
    let mut paths: Vec<String> = Vec::new();
    // The first is the program itself.
    for path in modules.into_iter().skip(1).filter_map(path_of) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// The path of the library in which an address lies.
pub fn path_at(address: usize) -> Option<String> {
    let mut handle: HMODULE = std::ptr::null_mut();
    let flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN;
    // SAFETY: any address may be given, and there is room for the handle.
    let found = unsafe { GetModuleHandleExW(flags, address as *const u16, &raw mut handle) };
    if found == 0 { None } else { path_of(handle) }
}

fn path_of(module: HMODULE) -> Option<String> {
    let mut path = [0u16; 1 << 15];
    let room = u32::try_from(path.len()).unwrap_or(u32::MAX);
    // SAFETY: room for as many as are said.
    let length = unsafe { GetModuleFileNameW(module, path.as_mut_ptr(), room) } as usize;
    (length > 0).then(|| String::from_utf16_lossy(&path[..length]))
}

fn wide(path: &Path) -> Result<Vec<u16>, String> {
    let name: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
    match name.iter().position(|&unit| unit == 0) {
        Some(end) if end + 1 == name.len() => Ok(name),
        _ => Err("its path holds a zero".to_string()),
    }
}

/// A library that is always there, a symbol of one that it needs, and one of its own.
#[cfg(test)]
pub mod for_tests {
    pub const LIBRARY: &str = "kernel32.dll";
    pub const NEEDED: (&str, &str) = ("NtClose", "ntdll.dll");
    pub const OWN: &str = "GetProcAddress";
}
