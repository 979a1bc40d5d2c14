//! Datasets opened by every libhdf5 that can be found here: the engine reads with its chunk index
//! what it reads itself, and its calls of filters are counted.

#![allow(clippy::unwrap_used)]

#[path = "../../chunkwise-libhdf5/src/tests/libraries.rs"]
mod libraries;
#[path = "../../chunkwise-libhdf5/src/tests/set_filter.rs"]
mod set_filter;

use std::ffi::{CString, c_uint};
use std::path::Path;
use std::sync::Arc;

use chunkwise_engine::Dataset;
use chunkwise_libhdf5::binding::{DEFAULT, hsize_t};
use chunkwise_libhdf5::{BindError, Library, tally};
use chunkwise_measure::{OpenDataset, Properties};
use chunkwise_select::Hyperslab;

use self::libraries::libraries;
use self::set_filter::set_filter;

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
        assert_eq!(tally(&library, &ids).len(), 3);
        let read = open("filtered");
        assert_eq!(read.chunk_table().unwrap().always_applied(), ids);
        assert_eq!(open("plain").chunk_table().unwrap().filters(), [0; 0]);
        assert!(open("contiguous").chunk_table().is_err());
        // Other tests use the same libraries meanwhile: only what is certain is asked for.
        let before = tally(&library, &ids);
        assert_eq!(read.read_all(nbytes).unwrap(), untallied);
        let after = tally(&library, &ids);
        for (before, after) in before.iter().zip(&after) {
            // 8 x 4 chunks, of which 2 x 4 were never written.
            assert!(after.decode.count - before.decode.count >= 24, "{library:?} {after:?}");
            assert!(after.decode.time > before.decode.time);
        }
        // Numbers that no filter has, reserved and not.
        assert_eq!(tally(&library, &[7, 301, -1, i32::MAX]), []);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
