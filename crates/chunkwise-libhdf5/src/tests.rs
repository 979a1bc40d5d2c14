//! Every libhdf5 that can be found here is bound, and the engine reads with its chunk
//! index what it reads itself.
//!
//! Looked for: the system's (Debian's `libhdf5-103`, 1.10.8) and the wheels' in `.venv`
//! (2.x).  `make test` provides both where it may install packages.

mod committing;

use std::ffi::{CString, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chunkwise_engine::Dataset;
use chunkwise_select::Hyperslab;

use crate::api::{DEFAULT, hid_t, hsize_t};
use crate::{BindError, Library, LibraryVersion, MutexLock, OpenDataset, Properties, Witness};

/// Paths below `folder` whose names begin and end so.
fn matching(folder: &Path, begin: &str, holds: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned());
    let fits = |path: &PathBuf| {
        name(path).is_some_and(|name| name.starts_with(begin) && name.contains(holds))
    };
    entries.flatten().map(|entry| entry.path()).filter(fits).collect()
}

pub(crate) fn libraries() -> Vec<Arc<Library>> {
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

/// Setters that only tests need.
unsafe fn set_filter(library: &Library, name: &str, dcpl: hid_t, level: Option<c_uint>) {
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

const SHAPE: [hsize_t; 2] = [50, 37];
const CHUNK: [hsize_t; 2] = [7, 10];

/// A file with a contiguous dataset, a filtered one whose middle was never written, and
/// an unfiltered one, behind a user block.
fn write_file(library: &Library, path: &Path, user_block: hsize_t) {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    library.locked(|api| {
        // SAFETY: handles are checked before use, pointers live through each call.
        unsafe {
            let fcpl = (api.H5Pcreate)(api.H5P_CLS_FILE_CREATE_ID_g);
            assert!((api.H5Pset_userblock)(fcpl, user_block) >= 0);
            let truncate: c_uint = 2;
            let file = (api.H5Fcreate)(path.as_ptr(), truncate, fcpl, DEFAULT);
            assert!(file >= 0);
            let space = (api.H5Screate_simple)(2, SHAPE.as_ptr(), std::ptr::null());
            let data: Vec<u8> = (0..SHAPE[0] * SHAPE[1]).map(|i| (i % 251) as u8).collect();
            for (name, chunked, filtered) in
                [(c"contiguous", false, false), (c"filtered", true, true), (c"plain", true, false)]
            {
                let dcpl = (api.H5Pcreate)(api.H5P_CLS_DATASET_CREATE_ID_g);
                if chunked {
                    assert!((api.H5Pset_chunk)(dcpl, 2, CHUNK.as_ptr()) >= 0);
                }
                if filtered {
                    set_filter(library, "H5Pset_shuffle", dcpl, None);
                    set_filter(library, "H5Pset_deflate", dcpl, Some(4));
                    set_filter(library, "H5Pset_fletcher32", dcpl, None);
                }
                let byte = api.H5T_NATIVE_UCHAR_g;
                let dataset =
                    (api.H5Dcreate2)(file, name.as_ptr(), byte, space, DEFAULT, dcpl, DEFAULT);
                assert!(dataset >= 0);
                // Rows 0 to 13 and 28 to 49: the chunks between stay unwritten.
                for (first, rows) in [(0, 14), (28, 22)] {
                    let (start, count) = ([first, 0], [rows, SHAPE[1]]);
                    let (null, set) = (std::ptr::null(), 0);
                    let memory = (api.H5Screate_simple)(2, count.as_ptr(), null);
                    let status = (api.H5Sselect_hyperslab)(
                        space,
                        set,
                        start.as_ptr(),
                        null,
                        count.as_ptr(),
                        null,
                    );
                    assert!(status >= 0);
                    let from = data[(first * SHAPE[1]) as usize..].as_ptr().cast();
                    assert!((api.H5Dwrite)(dataset, byte, memory, space, DEFAULT, from) >= 0);
                    (api.H5Sclose)(memory);
                }
                (api.H5Dclose)(dataset);
                (api.H5Pclose)(dcpl);
            }
            (api.H5Sclose)(space);
            (api.H5Pclose)(fcpl);
            assert!((api.H5Fclose)(file) >= 0);
        }
    });
}

fn read_natively(dataset: &Dataset) -> Vec<u8> {
    let mut out = vec![0; (SHAPE[0] * SHAPE[1]) as usize];
    dataset.read(&Hyperslab::all(dataset.shape()), &mut out).unwrap();
    out
}

#[test]
fn each_library_agrees_with_itself_and_the_others() {
    let folder = std::env::temp_dir().join(format!("chunkwise-libhdf5-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let libraries = libraries();
    for (number, writer) in libraries.iter().enumerate() {
        for user_block in [0, 512, 4096] {
            let path = folder.join(format!("{number}-{user_block}.h5"));
            write_file(writer, &path, user_block);
            for reader in &libraries {
                for name in ["contiguous", "filtered", "plain"] {
                    let path = path.to_str().unwrap();
                    let open =
                        OpenDataset::open(Arc::clone(reader), path, name, Properties::default())
                            .unwrap();
                    let dataset = open.describe().unwrap();
                    let oracle = open.read_all((SHAPE[0] * SHAPE[1]) as usize).unwrap();
                    assert_eq!(read_natively(&dataset), oracle, "{path} {name} {reader:?}");
                    assert_eq!(oracle[40], 40);
                    if name != "contiguous" {
                        let missing = dataset.explain(&Hyperslab::all(dataset.shape())).unwrap();
                        assert_eq!((missing.chunks, missing.missing_chunks), (8 * 4, 2 * 4));
                    }
                }
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn conventions_are_those_of_the_version() {
    for library in libraries() {
        let (version, found) = (library.version(), library.conventions());
        assert!(found.arrays_count_largest_extent, "{library:?}");
        // What was seen of these versions; the binding itself never asks the version.
        if version < LibraryVersion(1, 12, 0) {
            assert!(!found.address_includes_user_block, "{library:?}");
        }
        if version >= LibraryVersion(2, 0, 0) {
            assert!(found.address_includes_user_block, "{library:?}");
            assert!(found.has_chunk_iter && !found.chunk_iter_is_scaled, "{library:?}");
        }
    }
}

#[test]
fn what_is_no_libhdf5_is_refused() {
    let bind = |path| Library::from_path(path, Box::new(MutexLock)).unwrap_err();
    assert!(matches!(bind("/nowhere/libhdf5.so"), BindError::Open { .. }));
    assert!(matches!(bind("libm.so.6"), BindError::Symbol { symbol: "H5open", .. }));
}

/// Dataspaces of these extents; the handles of the first in each library are mostly equal.
fn dataspaces(library: &Library, dims: [u64; 2], count: usize) -> Vec<hid_t> {
    library.locked(|api| {
        // SAFETY: two extents, as stated; no largest ones.
        let make = |_| unsafe { (api.H5Screate_simple)(2, dims.as_ptr(), std::ptr::null()) };
        (0..count).map(make).collect()
    })
}

fn close(library: &Library, spaces: &[hid_t]) {
    // SAFETY: handles that `dataspaces` has made.
    library.locked(|api| spaces.iter().for_each(|&id| unsafe { _ = (api.H5Sclose)(id) }));
}

#[test]
fn a_handle_leads_to_the_library_that_made_it() {
    let libraries = libraries();
    let paths: Vec<String> = libraries.iter().map(|one| one.path().to_string()).collect();
    let reversed: Vec<String> = paths.iter().rev().cloned().collect();
    let made: Vec<(&str, [u64; 2], Vec<hid_t>)> = (1..)
        .zip(&libraries)
        .map(|(n, one)| (one.path(), [n, 0xc0de], dataspaces(one, [n, 0xc0de], 64)))
        .collect();
    // Valid in all of them, or what follows shows nothing.
    let (_, _, first) = &made[0];
    let shared = first.iter().filter(|id| made.iter().all(|(_, _, ids)| ids.contains(id)));
    assert!(shared.count() > 0, "{made:?}");
    for (path, dims, ids) in &made {
        for modules in [&paths, &reversed, &vec![]] {
            for &id in &ids[..] {
                let handle = Witness { id, dims };
                let found = Library::from_handle(handle, modules, Box::new(MutexLock)).unwrap();
                let same = std::fs::canonicalize(found.path()).unwrap();
                assert_eq!(same, std::fs::canonicalize(path).unwrap(), "{id} of {modules:?}");
            }
        }
    }
    libraries.iter().zip(&made).for_each(|(one, (_, _, ids))| close(one, ids));
}

#[test]
fn a_handle_of_no_library_is_refused_with_all_that_was_tried() {
    let libraries = libraries();
    let spaces = dataspaces(&libraries[0], [3, 5], 1);
    let modules = ["libnowhere.so".to_string(), "libm.so.6".to_string()];
    let wrong: [(hid_t, &[u64]); 5] =
        [(spaces[0], &[3, 6]), (spaces[0], &[3]), (spaces[0], &[3, 5, 1]), (-1, &[]), (0, &[])];
    for (id, dims) in wrong {
        let handle = Witness { id, dims };
        let refused = Library::from_handle(handle, &modules, Box::new(MutexLock)).unwrap_err();
        assert!(matches!(refused, BindError::NoMaker { .. }));
        let said = refused.to_string();
        assert!(said.contains("libnowhere.so: "), "{said}");
        assert!(said.contains("libm.so.6 leads to no H5open"), "{said}");
        for one in &libraries {
            assert!(said.contains(&format!("is libhdf5 {}, but another", one.version())), "{said}");
        }
    }
    close(&libraries[0], &spaces);
}

#[test]
fn what_cannot_be_opened_says_why() {
    for library in libraries() {
        let open = |path: &str| {
            OpenDataset::open(Arc::clone(&library), path, "x", Properties::default()).unwrap_err()
        };
        let BindError::Call { call, message } = open("/nowhere/file.h5") else {
            panic!("another kind of error")
        };
        assert_eq!(call, "H5Fopen");
        assert!(
            message.contains("unable to open") || message.contains("No such file"),
            "{message}"
        );
        assert!(matches!(open("nul\0in path"), BindError::Call { .. }));
    }
}

#[test]
fn each_load_of_a_chunk_is_one_call_of_each_filter() {
    let (shuffle, deflate, fletcher32) = (2, 1, 3);
    let ids = [shuffle, deflate, fletcher32];
    let folder = std::env::temp_dir().join(format!("chunkwise-tally-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for library in libraries() {
        let path = folder.join("x.h5");
        write_file(&library, &path, 512);
        let open = |name| {
            OpenDataset::open(
                Arc::clone(&library),
                path.to_str().unwrap(),
                name,
                Properties::default(),
            )
            .unwrap()
        };
        let nbytes = (SHAPE[0] * SHAPE[1]) as usize;
        let untallied = open("filtered").read_all(nbytes).unwrap();
        assert_eq!(library.tally(&ids).len(), 3);
        let read = open("filtered");
        assert_eq!(read.chunk_table().unwrap().always_applied(), ids);
        assert_eq!(open("plain").chunk_table().unwrap().filters(), [0; 0]);
        assert!(open("contiguous").chunk_table().is_err());
        // Other tests use the same libraries meanwhile: only what is certain is asked for.
        let before = library.tally(&ids);
        assert_eq!(read.read_all(nbytes).unwrap(), untallied);
        let after = library.tally(&ids);
        for (before, after) in before.iter().zip(&after) {
            // 8 x 4 chunks, of which 2 x 4 were never written.
            assert!(after.decode.count - before.decode.count >= 24, "{library:?} {after:?}");
            assert!(after.decode.time > before.decode.time);
        }
        // Numbers that no filter has, reserved and not.
        assert_eq!(library.tally(&[7, 301, -1, i32::MAX]), []);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
