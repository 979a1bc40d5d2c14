//! With which libraries, and into which files, do the tests write?

use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::NetCdf;
use crate::api::{Writing, functions};
use chunkwise_loader::Loaded;

functions! {
    /// What only tests need.
    struct Opaque since "4.1" {
        fn nc_def_opaque(c_int, usize, *const c_char, *mut c_int) -> c_int;
    }
}

/// Paths in `folder` whose names begin and end so.
fn matching(folder: &Path, begin: &str, holds: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let fits = |path: &PathBuf| {
        name(path).is_some_and(|name| name.starts_with(begin) && name.contains(holds))
    };
    entries.flatten().map(|entry| entry.path()).filter(fits).collect()
}

pub(super) fn libraries() -> Vec<Arc<NetCdf>> {
    let mut paths = Vec::new();
    for folder in matching(Path::new("/usr/lib"), "", "-linux-gnu") {
        // One of the names of one library.
        paths.extend(matching(&folder, "libnetcdf.so.", "").into_iter().take(1));
    }
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    for python in matching(&venv, "python3", "") {
        paths.extend(matching(&python.join("site-packages/netcdf4.libs"), "libnetcdf-", ".so"));
    }
    if paths.is_empty() {
        eprintln!("skipped: no libnetcdf found; `make dev` installs one with netCDF4");
    }
    paths.iter().map(|path| NetCdf::open(&path.to_string_lossy()).unwrap()).collect()
}

/// A folder that is removed when dropped.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("chunkwise-netcdf-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A file being written by the library under test; closed when dropped.
pub(super) struct NewFile<'a> {
    library: &'a NetCdf,
    calls: &'a Writing,
    pub(super) id: c_int,
}

impl<'a> NewFile<'a> {
    pub(super) fn create(library: &'a NetCdf, path: &str, mode: c_int) -> Self {
        let mut file = Self { library, calls: library.writing.as_ref().unwrap(), id: 0 };
        let path = CString::new(path).unwrap();
        file.id = file.made(|calls, id| unsafe { (calls.nc_create)(path.as_ptr(), mode, id) });
        file
    }

    /// The id that a call gives.
    pub(super) fn made(&self, call: impl FnOnce(&Writing, *mut c_int) -> c_int) -> c_int {
        let mut id = 0;
        self.done(|calls| call(calls, &raw mut id));
        id
    }

    pub(super) fn done(&self, call: impl FnOnce(&Writing) -> c_int) {
        let outcome = self.library.locked(|api| api.outcome(call(self.calls)));
        assert_eq!(outcome, Ok(()));
    }

    pub(super) fn group(&self, parent: c_int, name: &str) -> c_int {
        let name = CString::new(name).unwrap();
        self.made(|calls, id| unsafe { (calls.nc_def_grp)(parent, name.as_ptr(), id) })
    }

    /// An opaque type of five bytes.
    pub(super) fn opaque(&self, name: &str) -> c_int {
        let loaded = Loaded::open(self.library.path()).unwrap();
        // SAFETY: it is netCDF-C.
        let calls = unsafe { Opaque::resolve(&loaded).unwrap() };
        let name = CString::new(name).unwrap();
        self.made(|_, id| unsafe { (calls.nc_def_opaque)(self.id, 5, name.as_ptr(), id) })
    }

    /// The dimensions `d0`, `d1`, ... of these lengths; zero is unlimited.
    pub(super) fn dimensions(&self, group: c_int, shape: &[u64]) -> Vec<c_int> {
        let dimension = |(d, &len): (usize, &u64)| {
            let name = CString::new(format!("d{d}")).unwrap();
            self.made(|calls, id| unsafe {
                (calls.nc_def_dim)(group, name.as_ptr(), len as usize, id)
            })
        };
        shape.iter().enumerate().map(dimension).collect()
    }

    pub(super) fn variable(
        &self,
        group: c_int,
        name: &str,
        type_id: c_int,
        dimensions: &[c_int],
    ) -> c_int {
        let name = CString::new(name).unwrap();
        let (rank, dimensions) = (dimensions.len() as c_int, dimensions.as_ptr());
        self.made(|calls, id| unsafe {
            (calls.nc_def_var)(group, name.as_ptr(), type_id, rank, dimensions, id)
        })
    }

    pub(super) fn end_definitions(&self) {
        self.done(|calls| unsafe { (calls.nc_enddef)(self.id) });
    }

    pub(super) fn put<T>(&self, group: c_int, variable: c_int, shape: &[u64], values: &[T]) {
        assert_eq!(values.len() as u64, shape.iter().product::<u64>());
        let start = vec![0; shape.len()];
        let count: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
        let (start, count, values) = (start.as_ptr(), count.as_ptr(), values.as_ptr());
        self.done(|calls| unsafe {
            (calls.nc_put_vara)(group, variable, start, count, values.cast())
        });
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        // SAFETY: a file of this library, not used any more.
        self.library.locked(|api| unsafe { (api.nc_close)(self.id) });
    }
}
