//! Every libhdf5 that can be found here is bound, and commits chunks as it should.

mod committing;
mod libraries;
mod set_filter;

use std::sync::Barrier;

use chunkwise_libhdf5::{
    BindError, Library, LibraryLock, LibraryVersion, MutexLock, Witness, hid_t,
};

use self::libraries::libraries;

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

/// The library's own lock alone, as where each thread of a program comes with its first call.
struct NoLock;

impl LibraryLock for NoLock {
    fn with(&self, work: &mut dyn FnMut()) {
        work();
    }
}

/// Whether this libhdf5 may be called by several threads at once.
fn is_threadsafe(library: &Library) -> bool {
    let function = library.loaded().symbol("H5is_library_threadsafe");
    let mut answer = false;
    if !function.is_null() {
        // SAFETY: this is its signature in every version; it takes no lock that is held.
        unsafe {
            let function: unsafe extern "C" fn(*mut bool) -> i32 = std::mem::transmute(function);
            assert!(function(&raw mut answer) >= 0);
        }
    }
    answer
}

#[test]
fn threads_bind_at_the_same_time() {
    for library in libraries().iter().filter(|library| is_threadsafe(library)) {
        let barrier = Barrier::new(8);
        let bind = || {
            barrier.wait();
            Library::from_path(library.path(), Box::new(NoLock)).map(|bound| bound.conventions())
        };
        std::thread::scope(|scope| {
            let started: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..20).map(|_| bind()).collect::<Vec<_>>()))
                .collect();
            for found in started.into_iter().flat_map(|thread| thread.join().unwrap()) {
                assert_eq!(found.unwrap(), library.conventions());
            }
        });
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
