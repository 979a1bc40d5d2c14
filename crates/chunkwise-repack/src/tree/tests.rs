//! A tree is copied within each libhdf5 that can be found here, and read back by it.

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_uint};
use std::path::Path;

use chunkwise_libhdf5::Library;
use chunkwise_libhdf5::binding::{Api, DEFAULT, ObjectInfo, hid_t, hsize_t};

use super::api::TreeApi;
use super::{Leads, TreeCopy, TreeError};
use crate::libraries::libraries;

const GROUPS: usize = 300;

fn calls(library: &Library) -> TreeApi {
    // SAFETY: the library is never unloaded, and H5open may be called at any time.
    unsafe { TreeApi::resolve(library.path(), |name| library.loaded().symbol(name)).unwrap() }
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn path_text(path: &Path) -> CString {
    text(path.to_str().unwrap())
}

/// Write one dataset of a type, and give its handle.
unsafe fn dataset(api: &Api, at: hid_t, name: &str, datatype: hid_t, data: &[u64]) -> hid_t {
    let count = [data.len() as hsize_t];
    // SAFETY: live handles, by the caller's contract; as many elements as there are.
    unsafe {
        let space = (api.H5Screate_simple)(1, count.as_ptr(), std::ptr::null());
        let made =
            (api.H5Dcreate2)(at, text(name).as_ptr(), datatype, space, DEFAULT, DEFAULT, DEFAULT);
        assert!(made >= 0, "{name}");
        let all = (DEFAULT, DEFAULT, DEFAULT);
        let status = (api.H5Dwrite)(made, datatype, all.0, all.1, all.2, data.as_ptr().cast());
        assert!(status >= 0, "{name}");
        (api.H5Sclose)(space);
        made
    }
}

/// A deep file with a cycle, a committed type that two datasets use, and references, in a
/// dataset and in an attribute.
unsafe fn write(api: &Api, tree: &TreeApi, path: &Path) {
    let truncate: c_uint = 2;
    // SAFETY: handles are checked before use.
    unsafe {
        let file = (api.H5Fcreate)(path_text(path).as_ptr(), truncate, DEFAULT, DEFAULT);
        assert!(file >= 0);
        let datatype = (api.H5Tcopy)(api.H5T_NATIVE_UCHAR_g);
        let name = text("type");
        let commit = tree.H5Tcommit2;
        assert!(commit(file, name.as_ptr(), datatype, DEFAULT, DEFAULT, DEFAULT) >= 0);
        let mut deepest = (tree.H5Gcreate2)(file, c"top".as_ptr(), DEFAULT, DEFAULT, DEFAULT);
        for _ in 1..GROUPS {
            let name = c"g".as_ptr();
            let next = (tree.H5Gcreate2)(deepest, name, DEFAULT, DEFAULT, DEFAULT);
            assert!(next >= 0);
            (tree.H5Oclose)(deepest);
            deepest = next;
        }
        let status = (tree.H5Lcreate_hard)(
            file,
            c"/top".as_ptr(),
            deepest,
            c"up".as_ptr(),
            DEFAULT,
            DEFAULT,
        );
        assert!(status >= 0);
        for name in ["one", "two"] {
            (api.H5Dclose)(dataset(api, deepest, name, datatype, &[7]));
        }
        let mut references = [0u64; 3];
        for (number, name) in [c"/top", c"/type"].into_iter().enumerate() {
            let place = (&raw mut references[number]).cast();
            assert!((tree.H5Rcreate)(place, file, name.as_ptr(), 0, -1) >= 0);
        }
        let kind = tree.H5T_STD_REF_OBJ_g;
        let made = dataset(api, file, "references", kind, &references);
        let space = (api.H5Dget_space)(made);
        let name = c"references".as_ptr();
        let attribute = (tree.H5Acreate2)(made, name, kind, space, DEFAULT, DEFAULT);
        assert!((tree.H5Awrite)(attribute, kind, references.as_ptr().cast()) >= 0);
        (tree.H5Aclose)(attribute);
        (api.H5Sclose)(space);
        (api.H5Dclose)(made);
        (tree.H5Oclose)(deepest);
        (api.H5Tclose)(datatype);
        assert!((api.H5Fclose)(file) >= 0);
    }
}

/// Addresses that references hold: those of the dataset, then those of its attribute.
unsafe fn references(api: &Api, tree: &TreeApi, file: hid_t) -> [u64; 6] {
    let mut found = [0; 6];
    // SAFETY: a live file, and room for three of each.
    unsafe {
        let made = (api.H5Dopen2)(file, c"references".as_ptr(), DEFAULT);
        let kind = tree.H5T_STD_REF_OBJ_g;
        let place = found.as_mut_ptr();
        let all = (DEFAULT, DEFAULT, DEFAULT);
        assert!((api.H5Dread)(made, kind, all.0, all.1, all.2, place.cast()) >= 0);
        let attribute = (tree.H5Aopen)(made, c"references".as_ptr(), DEFAULT);
        assert!((tree.H5Aread)(attribute, kind, place.add(3).cast()) >= 0);
        (tree.H5Aclose)(attribute);
        (api.H5Dclose)(made);
    }
    found
}

#[test]
fn each_library_copies_a_tree() {
    let folder = std::env::temp_dir().join(format!("chunkwise-tree-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for library in libraries() {
        let tree = calls(&library);
        let (from, to) = (folder.join("from.h5"), folder.join("to.h5"));
        // SAFETY: handles are checked before use, and of this library.
        let (source, target) = library.locked(|api| unsafe {
            write(api, &tree, &from);
            let source = (api.H5Fopen)(path_text(&from).as_ptr(), 0, DEFAULT);
            let target = (api.H5Fcreate)(path_text(&to).as_ptr(), 2, DEFAULT, DEFAULT);
            assert!(source >= 0 && target >= 0, "{library:?}");
            (source, target)
        });
        let mut progress = |_: u64, _: u64| true;
        // SAFETY: live files of this library.
        let mut copy = unsafe {
            TreeCopy::new(&library, source, target, HashMap::new(), &[], None, &mut progress)
                .unwrap()
        };
        assert_eq!(copy.source_name(), from.to_str().unwrap());
        // Two bytes are copied at once.
        assert!(copy.datasets().is_empty());
        copy.finish(&mut progress).unwrap();
        assert!(copy.warnings().is_empty(), "{:?}", copy.warnings());
        drop(copy);
        library.locked(|api| {
            // SAFETY: as above.
            unsafe {
                let info = |name: &CString| {
                    let mut info = ObjectInfo::default();
                    let status = (api.H5Gget_objinfo)(target, name.as_ptr(), true, &raw mut info);
                    assert!(status >= 0, "{library:?}: {name:?}");
                    info.address()
                };
                let deepest = format!("/top{}", "/g".repeat(GROUPS - 1));
                let (top, datatype) = (info(&text("/top")), info(&text("/type")));
                assert_eq!(info(&text(&format!("{deepest}/up"))), top);
                let expected = [top, datatype, 0, top, datatype, 0];
                assert_eq!(references(api, &tree, target), expected, "{library:?}");
                for name in ["one", "two"] {
                    let path = text(&format!("{deepest}/{name}"));
                    let made = (api.H5Dopen2)(target, path.as_ptr(), DEFAULT);
                    let used = (api.H5Dget_type)(made);
                    let hdf5 = super::Hdf5 { api, tree: &tree };
                    assert_eq!(hdf5.address(used).unwrap(), datatype);
                    (api.H5Tclose)(used);
                    (api.H5Dclose)(made);
                }
                assert!((api.H5Fclose)(source) >= 0 && (api.H5Fclose)(target) >= 0);
            }
        });
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_copy_that_is_stopped_closes_what_it_opened() {
    let folder = std::env::temp_dir().join(format!("chunkwise-stop-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for library in libraries() {
        let tree = calls(&library);
        let (from, to) = (folder.join("from.h5"), folder.join("to.h5"));
        // SAFETY: handles are checked before use, and of this library.
        let (source, target) = library.locked(|api| unsafe {
            write(api, &tree, &from);
            let source = (api.H5Fopen)(path_text(&from).as_ptr(), 0, DEFAULT);
            let target = (api.H5Fcreate)(path_text(&to).as_ptr(), 2, DEFAULT, DEFAULT);
            (source, target)
        });
        // SAFETY: live files of this library.
        let stopped = unsafe {
            TreeCopy::new(&library, source, target, HashMap::new(), &[], None, &mut |_, _| false)
        };
        assert_eq!(stopped.unwrap_err(), TreeError::Stopped);
        library.locked(|api| {
            let count = |file: hid_t| {
                const ALL: c_uint = 0x1f;
                let found = library.loaded().symbol("H5Fget_obj_count");
                // SAFETY: the function has this signature in H5Fpublic.h.
                unsafe {
                    let count: unsafe extern "C" fn(hid_t, c_uint) -> isize =
                        std::mem::transmute(found);
                    count(file, ALL)
                }
            };
            assert_eq!((count(source), count(target)), (1, 1), "{library:?}");
            // SAFETY: live files that nothing else closes.
            let closed: [c_int; 2] = unsafe { [(api.H5Fclose)(source), (api.H5Fclose)(target)] };
            assert_eq!(closed, [0, 0]);
        });
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A group to which a reference alone leads, with a dataset in it, and a dataset of a type that
/// has no name.
unsafe fn write_unlinked(api: &Api, tree: &TreeApi, path: &Path) {
    // SAFETY: handles are checked before use.
    unsafe {
        let file = (api.H5Fcreate)(path_text(path).as_ptr(), 2, DEFAULT, DEFAULT);
        let hidden = (tree.H5Gcreate_anon)(file, DEFAULT, DEFAULT);
        assert!(file >= 0 && hidden >= 0);
        assert!((tree.H5Oincr_refcount)(hidden) >= 0);
        let datatype = (api.H5Tcopy)(api.H5T_NATIVE_UCHAR_g);
        assert!((tree.H5Tcommit_anon)(file, datatype, DEFAULT, DEFAULT) >= 0);
        (api.H5Dclose)(dataset(api, hidden, "inside", api.H5T_NATIVE_UCHAR_g, &[7]));
        (api.H5Dclose)(dataset(api, file, "typed", datatype, &[7]));
        let mut references = [0u64; 4];
        for number in [1, 3] {
            let place = (&raw mut references[number]).cast();
            assert!((tree.H5Rcreate)(place, hidden, c".".as_ptr(), 0, -1) >= 0);
        }
        let kind = tree.H5T_STD_REF_OBJ_g;
        (api.H5Dclose)(dataset(api, file, "references", kind, &references));
        (api.H5Tclose)(datatype);
        (tree.H5Oclose)(hidden);
        assert!((api.H5Fclose)(file) >= 0);
    }
}

#[test]
fn objects_without_links_are_found_and_copied_without_links() {
    let folder = std::env::temp_dir().join(format!("chunkwise-unlinked-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for library in libraries() {
        let tree = calls(&library);
        let (from, to) = (folder.join("from.h5"), folder.join("to.h5"));
        // SAFETY: handles are checked before use, and of this library.
        let (source, target, holders) = library.locked(|api| unsafe {
            write_unlinked(api, &tree, &from);
            let source = (api.H5Fopen)(path_text(&from).as_ptr(), 0, DEFAULT);
            let target = (api.H5Fcreate)(path_text(&to).as_ptr(), 2, DEFAULT, DEFAULT);
            let open = |name: &CString| (api.H5Dopen2)(source, name.as_ptr(), DEFAULT);
            (source, target, [open(&text("references")), open(&text("typed"))])
        });
        let leads = Leads::new(&library).unwrap();
        // SAFETY: live handles of this library.
        let found = holders.map(|id| unsafe { leads.of(id) }.unwrap());
        let places: [Vec<_>; 2] =
            found.each_ref().map(|one| one.iter().map(|lead| lead.element).collect());
        assert_eq!(places, [vec![Some((1, 0))], vec![None]], "{library:?}");
        let unlinked: Vec<_> = found.iter().map(|one| (one[0].address, b"->".to_vec())).collect();
        let mut progress = |_: u64, _: u64| true;
        // SAFETY: live files of this library.
        let mut copy = unsafe {
            TreeCopy::new(&library, source, target, HashMap::new(), &unlinked, None, &mut progress)
                .unwrap()
        };
        copy.finish(&mut progress).unwrap();
        assert!(copy.warnings().is_empty(), "{:?}", copy.warnings());
        let moved = copy.moved(unlinked[0].0).unwrap();
        drop(copy);
        // SAFETY: live handles of this library, which are closed once.
        unsafe {
            assert_eq!(leads.open(target, 1 << 40), None);
            library.locked(|api| {
                for id in holders {
                    (api.H5Dclose)(id);
                }
                assert!((api.H5Fclose)(source) >= 0 && (api.H5Fclose)(target) >= 0);
            });
            // What nothing counts would be gone by now.
            let target = library.locked(|api| (api.H5Fopen)(path_text(&to).as_ptr(), 0, DEFAULT));
            let open = leads.open(target, moved).unwrap();
            library.locked(|api| {
                let mut info = ObjectInfo::default();
                let name = text("inside");
                assert!((api.H5Gget_objinfo)(open, name.as_ptr(), true, &raw mut info) >= 0);
                let kind = tree.H5T_STD_REF_OBJ_g;
                let made = (api.H5Dopen2)(target, c"references".as_ptr(), DEFAULT);
                let mut values = [0u64; 4];
                let place = values.as_mut_ptr().cast();
                assert!((api.H5Dread)(made, kind, DEFAULT, DEFAULT, DEFAULT, place) >= 0);
                assert_eq!(values, [0, moved, 0, moved], "{library:?}");
                (api.H5Dclose)(made);
                (tree.H5Oclose)(open);
                assert!((api.H5Fclose)(target) >= 0);
            });
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
