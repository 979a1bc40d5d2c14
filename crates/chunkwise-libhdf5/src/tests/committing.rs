//! What `H5Dwrite_chunk` gets wrong, the committer does not: reads on the same handle and after
//! opening anew give what was committed last.

use std::ffi::{CString, c_int, c_uint};
use std::path::Path;
use std::sync::Arc;

use chunkwise_codec::{EncodeScratch, Encoder, Encoding, Step};
use chunkwise_engine::{ChunkStore, Committer, EncodedChunk};

use chunkwise_libhdf5::binding::{DEFAULT, hid_t, hsize_t};
use chunkwise_libhdf5::{ChunkCommitter, Library, LibraryVersion, describe_for_writing};

use super::libraries::libraries;
use super::set_filter::set_filter;

const CHUNK: usize = 64;
const CHUNKS: usize = 3;

/// A new file, and a dataset of one row of chunks with deflate, both open.
fn create(library: &Library, path: &Path, latest: bool) -> (hid_t, hid_t) {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    library.locked(|api| {
        // SAFETY: handles are checked before use, pointers live through each call.
        unsafe {
            let fapl = (api.H5Pcreate)(api.H5P_CLS_FILE_ACCESS_ID_g);
            let newest = if library.version() < LibraryVersion(1, 12, 0) { 2 } else { 4 };
            let low = if latest { newest as c_int } else { 0 };
            assert!((api.H5Pset_libver_bounds)(fapl, low, newest) >= 0);
            let truncate: c_uint = 2;
            let file = (api.H5Fcreate)(path.as_ptr(), truncate, DEFAULT, fapl);
            assert!(file >= 0, "{path:?}");
            let shape = [(CHUNK * CHUNKS) as hsize_t];
            let space = (api.H5Screate_simple)(1, shape.as_ptr(), std::ptr::null());
            let dcpl = (api.H5Pcreate)(api.H5P_CLS_DATASET_CREATE_ID_g);
            assert!((api.H5Pset_chunk)(dcpl, 1, [CHUNK as hsize_t].as_ptr()) >= 0);
            set_filter(library, "H5Pset_deflate", dcpl, Some(1));
            let byte = api.H5T_NATIVE_UCHAR_g;
            let dataset =
                (api.H5Dcreate2)(file, c"x".as_ptr(), byte, space, DEFAULT, dcpl, DEFAULT);
            assert!(dataset >= 0);
            (api.H5Pclose)(dcpl);
            (api.H5Pclose)(fapl);
            (api.H5Sclose)(space);
            (file, dataset)
        }
    })
}

/// The same file and dataset, open for reading.
fn reopen(library: &Library, path: &Path) -> (hid_t, hid_t) {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: handles are checked before use, pointers live through each call.
    library.locked(|api| unsafe {
        let file = (api.H5Fopen)(path.as_ptr(), 0, DEFAULT);
        assert!(file >= 0, "{path:?}");
        let dataset = (api.H5Dopen2)(file, c"x".as_ptr(), DEFAULT);
        assert!(dataset >= 0);
        (file, dataset)
    })
}

fn close(library: &Library, (file, dataset): (hid_t, hid_t)) {
    // SAFETY: live handles of this library.
    library.locked(|api| unsafe {
        assert!((api.H5Dclose)(dataset) >= 0 && (api.H5Fclose)(file) >= 0);
    });
}

/// Read everything on this handle.
fn read(library: &Library, dataset: hid_t) -> Vec<u8> {
    let mut out = vec![0u8; CHUNK * CHUNKS];
    library.locked(|api| {
        let (byte, to) = (api.H5T_NATIVE_UCHAR_g, out.as_mut_ptr().cast());
        // SAFETY: a live dataset of this many bytes.
        let status = unsafe { (api.H5Dread)(dataset, byte, DEFAULT, DEFAULT, DEFAULT, to) };
        api.checked("H5Dread", status).unwrap();
    });
    out
}

/// One of the ways in which a chunk is stored, and what it holds then.
fn encoded(at: usize, kind: usize) -> (EncodedChunk, Vec<u8>) {
    let mut chunk = EncodedChunk::default();
    chunk.chunk_origin.push((at * CHUNK) as u64);
    let noise = |i: usize| (i * 151 + i * i * 7 + kind + at) as u8;
    let raw: Vec<u8> =
        (0..CHUNK).map(|i| if kind < 2 { noise(i) } else { (kind + at) as u8 }).collect();
    if kind < 2 {
        // Without its filter.
        chunk.filter_mask = 1;
        chunk.bytes.clone_from(&raw);
        return (chunk, raw);
    }
    let encoder = Encoder::from_hdf5(1, &[1]).unwrap();
    let deflate = Encoding::new(vec![Step { encoder, optional: true }]);
    deflate.encode(&raw, &mut EncodeScratch::default(), &mut chunk.bytes).unwrap();
    if kind == 3 {
        // As long as without the filter: what follows a zlib stream is ignored.
        chunk.bytes.resize(CHUNK, 0);
    }
    (chunk, raw)
}

#[test]
fn masks_are_right_whatever_was_there() {
    let folder = std::env::temp_dir().join(format!("chunkwise-committing-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (number, library) in libraries().into_iter().enumerate() {
        for latest in [false, true] {
            let path = folder.join(format!("{number}-{latest}.h5"));
            let open = create(&library, &path, latest);
            // SAFETY: open until the end of the test.
            let mut committer = unsafe { ChunkCommitter::new(Arc::clone(&library), open.1) };
            let mut expected = vec![0; CHUNK * CHUNKS];
            // Of each pair of kinds one after the other, on one chunk and on several.
            for pair in 0..16 {
                for (step, kind) in [pair / 4, pair % 4].into_iter().enumerate() {
                    let ats = if step == 0 { 0..1 } else { pair % CHUNKS..CHUNKS };
                    let made: Vec<_> = ats.map(|at| encoded(at, kind)).collect();
                    let chunks: Vec<_> = made.iter().map(|(chunk, _)| chunk.clone()).collect();
                    committer.commit(&chunks).unwrap();
                    for (chunk, raw) in made {
                        let begin = chunk.chunk_origin[0] as usize;
                        expected[begin..begin + CHUNK].copy_from_slice(&raw);
                        let mut bytes = Vec::new();
                        let mask = committer.stored(&chunk.chunk_origin, &mut bytes).unwrap();
                        assert_eq!(mask, Some(chunk.filter_mask), "{library:?} {pair}");
                        assert_eq!(bytes, chunk.bytes);
                    }
                    // All chunks are in libhdf5's own cache from now on.
                    assert_eq!(read(&library, open.1), expected, "{library:?} {latest} {pair}");
                }
            }
            close(&library, open);
            let again = reopen(&library, &path);
            assert_eq!(read(&library, again.1), expected, "{library:?} {latest}");
            close(&library, again);
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_was_never_written_holds_nothing() {
    let folder = std::env::temp_dir().join(format!("chunkwise-unwritten-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for library in libraries() {
        let open = create(&library, &folder.join("x.h5"), false);
        // SAFETY: open until the end of the test.
        let byte = library.locked(|api| api.H5T_NATIVE_UCHAR_g);
        // SAFETY: as above.
        let (info, mut store) = unsafe { describe_for_writing(&library, open.1, byte) }.unwrap();
        assert_eq!((&*info.shape, &*info.chunk), (&[192][..], &[64][..]));
        assert_eq!(info.encoding.steps().len(), 1);
        assert_eq!(store.stored(&[64], &mut Vec::new()), Ok(None));
        store.commit(&[encoded(0, 2).0]).unwrap();
        assert_eq!(store.stored(&[64], &mut Vec::new()), Ok(None));
        assert_eq!(store.stored(&[0], &mut Vec::new()), Ok(Some(0)));
        // Beyond the extent nothing can be written, and the file stays whole.
        let mut beyond = encoded(0, 2).0;
        beyond.chunk_origin[0] = 192;
        let error = store.commit(&[beyond]).unwrap_err();
        assert_eq!(&*error.chunk_origin, &[192]);
        close(&library, open);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
