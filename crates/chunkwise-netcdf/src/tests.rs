//! Every libnetcdf that can be found here reads back what it has written itself.
//!
//! Looked for: the system's (Debian's `libnetcdf19`) and that of netCDF4's wheel in
//! `.venv`.  Where there is none, the tests say so and pass.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each call takes ids that the calls before gave and pointers that live through it"
)]

mod formats;
mod put;
mod writing;

use std::ffi::{CString, c_int};
use std::sync::Arc;
use std::time::Duration;

use chunkwise_codec::crc32;
use chunkwise_engine::ReadError;
use chunkwise_measure::{BlockWalk, Order, Walk, WalkBounds, WalkRecord};
use chunkwise_select::{Hyperslab, SelectError, Selection};
use proptest::prelude::*;

use crate::{ChunkCache, NetCdf, NetCdfError, OpenVariable};

use writing::{NewFile, Scratch, libraries};

/// `NC_NETCDF4`
const NETCDF4: c_int = 0x1000;
/// The formats of netCDF-3: classic, `NC_64BIT_OFFSET`, `NC_64BIT_DATA`.
const NETCDF3: [c_int; 3] = [0, 0x200, 0x20];
const NC_INT: c_int = 4;
const NC_STRING: c_int = 12;
/// Bytes of `NC_BYTE` to `NC_UINT64`.
const SIZES: [usize; 11] = [1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8];

const SHAPE: [u64; 3] = [7, 10, 13];
const CHUNK: [usize; 3] = [3, 4, 13];
const ALL: WalkBounds = WalkBounds { max_operations: u64::MAX, max_time: Duration::MAX };

/// The value of each element of the array that the tests read.
fn value_at(place: u64) -> i32 {
    (place as i32).wrapping_mul(-7_654_321)
}

/// Write the array as `/inner/deep/values` (deflated) and `values` (in a netCDF-3 file,
/// only that).
fn write_array(library: &NetCdf, path: &str, mode: c_int) {
    let file = NewFile::create(library, path, mode);
    let values: Vec<i32> = (0..SHAPE.iter().product()).map(value_at).collect();
    let dimensions = file.dimensions(file.id, &SHAPE);
    let plain = file.variable(file.id, "values", NC_INT, &dimensions);
    let mut deflated = None;
    if mode == NETCDF4 {
        let group = file.group(file.group(file.id, "inner"), "deep");
        let variable = file.variable(group, "values", NC_INT, &dimensions);
        let chunked = 0;
        file.done(|calls| unsafe {
            (calls.nc_def_var_chunking)(group, variable, chunked, CHUNK.as_ptr())
        });
        file.done(|calls| unsafe { (calls.nc_def_var_deflate)(group, variable, 1, 1, 4) });
        deflated = Some((group, variable));
    }
    file.end_definitions();
    file.put(file.id, plain, &SHAPE, &values);
    if let Some((group, variable)) = deflated {
        file.put(group, variable, &SHAPE, &values);
    }
}

/// What a slab selects of the array, by indexing.
fn expected(slab: &Hyperslab) -> Vec<u8> {
    let mut places = vec![0u64];
    for (axis, &len) in slab.axes().iter().zip(&SHAPE) {
        places = places
            .iter()
            .flat_map(|place| (0..axis.len()).map(move |i| place * len + axis.index_of(i)))
            .collect();
    }
    places.iter().flat_map(|&place| value_at(place).to_ne_bytes()).collect()
}

/// Whether the record is that of all of `walk`, with the array's values.
fn assert_walked(record: &WalkRecord, walk: &Walk, context: &str) {
    let (mut checksum, mut nbytes) = (0, 0);
    let mut checksums = Vec::new();
    for number in 0..walk.len() {
        let Some(Selection::Hyperslab(slab)) = walk.get(number) else { panic!("a hyperslab") };
        let bytes = expected(&slab);
        checksum = crc32(checksum, &bytes);
        nbytes += bytes.len() as u64;
        let done = number + 1;
        if done.is_power_of_two() || done == walk.len() {
            checksums.push((done, checksum));
        }
    }
    assert_eq!(record.checksums, checksums, "{context}");
    assert_eq!((record.operations, record.selected_nbytes), (walk.len(), nbytes), "{context}");
    assert_eq!(record.latencies_s.len() as u64, walk.len(), "{context}");
}

fn blocks(block: &[u64], order: Order, limit: Option<u64>) -> Walk {
    Walk::Blocks(Box::new(BlockWalk::ordered(&SHAPE, block, order, limit).unwrap()))
}

fn slab(parts: [[u64; 4]; 3]) -> Hyperslab {
    let part = |i: usize| parts.map(|axis| axis[i]);
    Hyperslab::new(&SHAPE, &part(0), &part(1), &part(2), &part(3)).unwrap()
}

/// The variables of the array in every format, each with where it is.
fn open_all(library: &Arc<NetCdf>, scratch: &Scratch) -> Vec<(String, OpenVariable)> {
    let mut open = Vec::new();
    for mode in NETCDF3.into_iter().chain([NETCDF4]) {
        let path = scratch.path(&format!("{mode:x}.nc"));
        write_array(library, &path, mode);
        let names = ["values", "/values", "/inner/deep/values", "inner/deep/values"];
        for name in &names[..if mode == NETCDF4 { 4 } else { 2 }] {
            let variable = library.open_variable(&path, name, None).unwrap();
            assert_eq!((variable.shape(), variable.element_size()), (&SHAPE[..], 4));
            open.push((format!("{library:?} {path} {name}"), variable));
        }
    }
    open
}

#[test]
fn blocks_are_read_in_every_order() {
    for library in libraries() {
        let scratch = Scratch::new();
        for (context, variable) in open_all(&library, &scratch) {
            for block in [[1, 1, 13], [3, 4, 13], [2, 3, 5], [7, 10, 13], [100, 1, 100]] {
                let reversed = Order::Axes([2, 1, 0].into_iter().collect());
                for order in [Order::C, Order::Random { seed: 3 }, reversed] {
                    let walk = blocks(&block, order, Some(40));
                    let record = variable.walk(&walk, ALL).unwrap();
                    assert_walked(&record, &walk, &context);
                }
            }
        }
    }
}

#[test]
fn strides_are_read_and_blocks_with_gaps_are_not() {
    for library in libraries() {
        let scratch = Scratch::new();
        for (context, variable) in open_all(&library, &scratch) {
            let walk = Walk::listed(vec![
                slab([[1, 2, 3, 1], [0, 1, 1, 10], [0, 5, 3, 1]]),
                slab([[6, 1, 1, 1], [9, 1, 1, 1], [12, 1, 1, 1]]),
                slab([[0, 1, 0, 1], [0, 1, 2, 1], [0, 1, 2, 1]]),
                slab([[0, 6, 2, 1], [0, 9, 2, 1], [0, 12, 2, 1]]),
            ]);
            assert_walked(&variable.walk(&walk, ALL).unwrap(), &walk, &context);

            let gaps = Walk::listed(vec![slab([[0, 1, 1, 1], [1, 4, 2, 3], [0, 1, 1, 1]])]);
            let error = variable.walk(&gaps, ALL).unwrap_err();
            assert_eq!(error, NetCdfError::Blocks { dimension: 1, count: 2, block: 3 });
            assert!(error.to_string().contains("2 blocks of 3 elements in dimension 1"));
            let union = Selection::union(3, vec![Hyperslab::all(&SHAPE); 2]).unwrap();
            let error = variable.walk(&Walk::listed([union]), ALL).unwrap_err();
            assert_eq!(error, NetCdfError::Union(2));
        }
    }
}

#[test]
fn any_selection_without_several_blocks_is_what_indexing_gives() {
    let libraries = libraries();
    let scratches: Vec<_> = libraries.iter().map(|library| (library, Scratch::new())).collect();
    let open: Vec<_> =
        scratches.iter().flat_map(|(library, scratch)| open_all(library, scratch)).collect();
    let axis = |len: u64| {
        (0..len).prop_flat_map(move |start| {
            (1..=len - start).prop_flat_map(move |stride| {
                (0..=(len - start - 1) / stride + 1, Just(start), Just(stride))
            })
        })
    };
    let axes = SHAPE.map(axis);
    let config = ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() };
    proptest!(config, |(axes in axes)| {
        let slab = slab(axes.map(|(count, start, stride)| [start, stride, count, 1]));
        let walk = Walk::listed(vec![slab]);
        for (context, variable) in &open {
            assert_walked(&variable.walk(&walk, ALL).unwrap(), &walk, context);
        }
    });
}

#[test]
fn bounds_end_a_walk() {
    for library in libraries() {
        let scratch = Scratch::new();
        for (_, variable) in open_all(&library, &scratch) {
            let walk = blocks(&[1, 1, 1], Order::C, None);
            let bounds = WalkBounds { max_operations: 5, max_time: Duration::MAX };
            let record = variable.walk(&walk, bounds).unwrap();
            assert_eq!((record.operations, record.total_operations), (5, 7 * 10 * 13));
            let bounds = WalkBounds { max_operations: 5, max_time: Duration::ZERO };
            assert_eq!(variable.walk(&walk, bounds).unwrap().operations, 1);
        }
    }
}

#[test]
fn selections_that_do_not_fit_are_refused() {
    for library in libraries() {
        let scratch = Scratch::new();
        for (context, variable) in open_all(&library, &scratch) {
            let flat = Walk::listed(vec![Hyperslab::all(&[7, 10])]);
            let rank = SelectError::Rank { selection: 2, dataset: 3 };
            let error = variable.walk(&flat, ALL).unwrap_err();
            assert_eq!(error, NetCdfError::Read(ReadError::Select(rank)));
            let larger = [8, 10, 13];
            let strided = Hyperslab::new(&larger, &[1, 0, 0], &[3; 3], &[3, 1, 1], &[1; 3]);
            for (beyond, expected) in
                [(Hyperslab::all(&larger), "nc_get_vara"), (strided.unwrap(), "nc_get_vars")]
            {
                let error = variable.walk(&Walk::listed(vec![beyond]), ALL).unwrap_err();
                let NetCdfError::Call { call, message } = &error else {
                    panic!("{context}: {error}")
                };
                assert_eq!(*call, expected);
                assert!(message.contains("exceeds dimension bound"), "{context}: {message}");
            }
        }
    }
}

#[test]
fn every_plain_type_is_read_in_the_machines_byte_order() {
    for library in libraries() {
        let scratch = Scratch::new();
        for (mode, types) in [(NETCDF4, 11), (NETCDF3[0], 6), (NETCDF3[2], 11)] {
            let path = scratch.path(&format!("{mode:x}.nc"));
            let bytes: Vec<u8> = (0..96).map(|i| i * 2 + 1).collect();
            let file = NewFile::create(&library, &path, mode);
            let variables: Vec<_> = (1..=types)
                .map(|type_id| {
                    let name = CString::new(format!("n{type_id}")).unwrap();
                    let len = bytes.len() / SIZES[type_id as usize - 1];
                    let dimension = file.made(|calls, id| unsafe {
                        (calls.nc_def_dim)(file.id, name.as_ptr(), len, id)
                    });
                    let variable =
                        file.variable(file.id, &format!("v{type_id}"), type_id, &[dimension]);
                    if mode == NETCDF4 && SIZES[type_id as usize - 1] > 1 {
                        let big = 2;
                        file.done(|calls| unsafe {
                            (calls.nc_def_var_endian)(file.id, variable, big)
                        });
                    }
                    (variable, len)
                })
                .collect();
            file.end_definitions();
            for (variable, len) in variables {
                let (start, values) = ([0], bytes.as_ptr().cast());
                file.done(|calls| unsafe {
                    (calls.nc_put_vara)(file.id, variable, start.as_ptr(), &raw const len, values)
                });
            }
            drop(file);
            for type_id in 1..=types {
                let open = library.open_variable(&path, &format!("v{type_id}"), None).unwrap();
                assert_eq!(open.element_size(), SIZES[type_id as usize - 1], "type {type_id}");
                let walk = Walk::listed(vec![Hyperslab::all(open.shape())]);
                let record = open.walk(&walk, ALL).unwrap();
                let whole = vec![(1, crc32(0, &bytes))];
                assert_eq!(record.checksums, whole, "{library:?} {mode:x} type {type_id}");
            }
        }
    }
}

#[test]
fn scalars_unlimited_dimensions_and_odd_names_are_read() {
    for library in libraries() {
        let scratch = Scratch::new();
        let path = scratch.path("odd.nc");
        let file = NewFile::create(&library, &path, NETCDF4);
        let dimensions = file.dimensions(file.id, &[0, 2]);
        let scalar = file.variable(file.id, "a scalar", NC_INT, &[]);
        let long = file.variable(file.id, "long", NC_INT, &dimensions);
        let short = file.variable(file.id, "short", NC_INT, &dimensions);
        // Called as the first dimension, along the other: stored under another name.
        let odd = file.variable(file.id, "d0", NC_INT, &dimensions[1..]);
        file.end_definitions();
        file.put(file.id, scalar, &[], &[42]);
        file.put(file.id, long, &[3, 2], &[1, 2, 3, 4, 5, 6]);
        file.put(file.id, short, &[1, 2], &[7, 8]);
        file.put(file.id, odd, &[2], &[9, 10]);
        drop(file);
        let fill = -2_147_483_647;
        for (name, shape, values) in [
            ("a scalar", &[][..], &[42][..]),
            ("long", &[3, 2], &[1, 2, 3, 4, 5, 6]),
            ("/short", &[3, 2], &[7, 8, fill, fill, fill, fill]),
            ("/d0", &[2], &[9, 10]),
            ("/_nc4_non_coord_d0", &[2], &[9, 10]),
        ] {
            let open = library.open_variable(&path, name, None).unwrap();
            assert_eq!(open.shape(), shape, "{name}");
            let walk = Walk::listed(vec![Hyperslab::all(shape)]);
            let record = open.walk(&walk, ALL).unwrap();
            let bytes: Vec<u8> =
                values.iter().flat_map(|value: &i32| value.to_ne_bytes()).collect();
            assert_eq!(record.checksums, [(1, crc32(0, &bytes))], "{library:?} {name}");
        }
    }
}

#[test]
fn other_types_are_refused_by_name() {
    for library in libraries() {
        let scratch = Scratch::new();
        let path = scratch.path("types.nc");
        let file = NewFile::create(&library, &path, NETCDF4);
        let opaque = file.opaque("five_bytes");
        file.variable(file.id, "text", NC_STRING, &[]);
        file.variable(file.id, "own", opaque, &[]);
        drop(file);
        for (variable, expected) in [("text", "string"), ("/own", "five_bytes")] {
            let error = library.open_variable(&path, variable, None).unwrap_err();
            let NetCdfError::Type { type_name, .. } = &error else { panic!("{error}") };
            assert_eq!(type_name, expected);
            assert!(error.to_string().contains(&path), "{error}");
        }
        assert!(!is_open(&path), "{library:?} left it open");
    }
}

/// Whether this process has the file open.
fn is_open(path: &str) -> bool {
    let path = std::fs::canonicalize(path).unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|target| target == path)
}

#[test]
fn files_are_closed_again() {
    for library in libraries() {
        let scratch = Scratch::new();
        for mode in [NETCDF3[0], NETCDF4] {
            let path = scratch.path(&format!("{mode:x}.nc"));
            write_array(&library, &path, mode);
            assert!(!is_open(&path), "the writer left it open");
            let variable = library.open_variable(&path, "values", None).unwrap();
            assert!(is_open(&path));
            drop(variable);
            assert!(!is_open(&path));
            library.open_variable(&path, "missing", None).unwrap_err();
            assert!(!is_open(&path));
        }
    }
}

#[test]
fn what_is_missing_is_named() {
    for library in libraries() {
        let scratch = Scratch::new();
        let path = scratch.path("missing.nc");
        let open = |file: &str, name: &str| library.open_variable(file, name, None).unwrap_err();
        let error = open(&path, "values");
        let NetCdfError::File { file, message } = &error else { panic!("{error}") };
        assert_eq!((file, message.as_str()), (&path, "No such file or directory"));

        std::fs::write(&path, "This is no netCDF file, whatever its name says.").unwrap();
        let error = open(&path, "values");
        assert!(matches!(&error, NetCdfError::File { message, .. } if message.contains("format")));
        assert!(matches!(open("a\0b", "values"), NetCdfError::File { .. }));

        for mode in [NETCDF3[0], NETCDF4] {
            write_array(&library, &path, mode);
            for name in ["", "/", "other", "inner/", "inner", "/outer/values", "values/x", "a\0b"] {
                let error = open(&path, name);
                let NetCdfError::Variable { variable, .. } = &error else { panic!("{error}") };
                assert_eq!(variable, name);
                assert!(error.to_string().contains(&path), "{error}");
            }
        }
    }
}

#[test]
fn a_chunk_cache_is_set_and_told() {
    for library in libraries() {
        let scratch = Scratch::new();
        let path = scratch.path("cache.nc");
        write_array(&library, &path, NETCDF4);
        let open = |cache| library.open_variable(&path, "/inner/deep/values", cache);
        let default = open(None).unwrap().chunk_cache().unwrap();
        assert!(default.nbytes > 0 && default.nslots > 0, "{library:?} {default:?}");
        let walk = blocks(&[1, 1, 13], Order::Random { seed: 1 }, None);
        for (nbytes, nslots, w0) in [(1 << 20, 521, 0.75), (12_345, 1009, 0.0), (0, 1, 1.0)] {
            let wanted = ChunkCache { nbytes, nslots, w0 };
            let variable = open(Some(wanted)).unwrap();
            assert_eq!(variable.chunk_cache(), Some(wanted), "{library:?}");
            assert_walked(&variable.walk(&walk, ALL).unwrap(), &walk, "with a cache");
        }
        let error = open(Some(ChunkCache { w0: 1.5, ..default })).unwrap_err();
        assert!(matches!(error, NetCdfError::Call { call: "nc_set_var_chunk_cache", .. }));

        write_array(&library, &path, NETCDF3[0]);
        assert_eq!(library.open_variable(&path, "values", None).unwrap().chunk_cache(), None);
        let error = library.open_variable(&path, "values", Some(default)).unwrap_err();
        let NetCdfError::Call { call, message } = &error else { panic!("{error}") };
        assert_eq!(*call, "nc_set_var_chunk_cache");
        assert!(message.contains("netcdf-3"), "{message}");
    }
}

#[test]
fn threads_take_turns() {
    for library in libraries() {
        let scratch = Scratch::new();
        let path = scratch.path("threads.nc");
        write_array(&library, &path, NETCDF4);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let (library, path) = (&library, &path);
                scope.spawn(move || {
                    let walk = blocks(&[2, 3, 5], Order::Random { seed }, None);
                    for _ in 0..5 {
                        let variable =
                            library.open_variable(path, "/inner/deep/values", None).unwrap();
                        let record = variable.walk(&walk, ALL).unwrap();
                        assert_walked(&record, &walk, "in a thread");
                    }
                });
            }
        });
    }
}

#[test]
fn what_is_no_libnetcdf_is_refused() {
    let bind = |path| NetCdf::open(path).unwrap_err();
    assert!(matches!(bind("/nowhere/libnetcdf.so"), NetCdfError::Library { .. }));
    assert!(matches!(bind("lib\0netcdf.so"), NetCdfError::Library { .. }));
    assert!(matches!(bind("libm.so.6"), NetCdfError::Symbol { symbol: "nc_inq_libvers", .. }));
}

#[test]
fn libraries_say_their_version() {
    for library in libraries() {
        assert!(library.version().starts_with("4."), "{library:?}");
        // Bound twice, it is the same library.
        assert_eq!(NetCdf::open(library.path()).unwrap().version(), library.version());
    }
}
