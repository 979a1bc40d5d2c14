//! Every libhdf5 that can be found here.
//!
//! Looked for: the system's (Debian's `libhdf5-103`, 1.10.8) and the wheels' in `.venv`
//! (2.x).  `make test` provides both where it may install packages.  Other crates' tests
//! take this file by its path.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chunkwise_libhdf5::{Library, MutexLock};

/// Paths below `folder` whose names begin and end so.
fn matching(folder: &Path, begin: &str, holds: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let fits = |path: &PathBuf| {
        name(path).is_some_and(|name| name.starts_with(begin) && name.contains(holds))
    };
    entries.flatten().map(|entry| entry.path()).filter(fits).collect()
}

pub fn libraries() -> Vec<Arc<Library>> {
    let mut paths = Vec::new();
    for folder in matching(Path::new("/usr/lib"), "", "-linux-gnu") {
        // One of the names of one library.
        paths.extend(matching(&folder, "libhdf5_serial.so.", "").into_iter().take(1));
    }
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    for python in matching(&venv, "python3", "") {
        paths.extend(matching(&python.join("site-packages/h5py.libs"), "libhdf5-", ".so"));
    }
    assert!(!paths.is_empty(), "no libhdf5 found: run `make dev` or `make tools`");
    let bind = |path: &PathBuf| {
        Arc::new(Library::from_path(&path.to_string_lossy(), Box::new(MutexLock)).unwrap())
    };
    paths.iter().map(bind).collect()
}
