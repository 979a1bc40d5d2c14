//! What is written is what this crate's own reader finds, or there is no file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chunkwise_engine::ReadError;
use chunkwise_measure::{BlockWalk, Order, Walk, WalkBounds};
use chunkwise_select::{Hyperslab, SelectError};
use proptest::prelude::*;

use super::writing::{Scratch, libraries};
use super::{ALL, is_open};
use crate::{ChunkCache, Filter, Format, NetCdf, NetCdfError, NewVariable, Number, Written};

const DEFLATE: u32 = 1;
const SHUFFLE: u32 = 2;
const FLETCHER32: u32 = 3;
const SZIP: u32 = 4;
pub(super) const NUMBERS: [&str; 10] = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"];

fn filter(id: u32, cd_values: &[u32]) -> Filter {
    Filter { id, cd_values: cd_values.to_vec() }
}

/// Pipelines that every netCDF-C can make, and that give no chunk up: where a chunk that
/// szip has given up takes the space of one that it had not, libhdf5 forgets which it is.
fn pipelines() -> [Vec<Filter>; 7] {
    let (shuffle, fletcher32) = (filter(SHUFFLE, &[]), filter(FLETCHER32, &[]));
    let deflate = |level| filter(DEFLATE, &[level]);
    [
        vec![],
        vec![shuffle.clone()],
        vec![deflate(4)],
        vec![deflate(0)],
        vec![fletcher32.clone()],
        vec![shuffle.clone(), deflate(9)],
        vec![fletcher32, shuffle, deflate(1)],
    ]
}

/// Four times five little-endian `i4` in chunks of two times two, deflated.
pub(super) fn usual(file: &str) -> NewVariable {
    NewVariable {
        file: file.to_string(),
        format: Format::NetCdf4,
        name: "/values".to_string(),
        shape: vec![4, 5],
        number: Number::named("i4").unwrap(),
        big_endian: false,
        chunk: Some(vec![2, 2]),
        filters: vec![filter(DEFLATE, &[4])],
        cache: None,
        fill: true,
    }
}

fn nbytes(new: &NewVariable) -> usize {
    new.shape.iter().product::<u64>() as usize * new.number.size()
}

/// Bytes that no filter makes much smaller.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|_| byte()).collect()
}

pub(super) fn all(shape: &[u64]) -> Walk {
    Walk::listed(vec![Hyperslab::all(shape)])
}

pub(super) fn write(
    library: &NetCdf,
    new: &NewVariable,
    walk: &Walk,
) -> Result<Written, NetCdfError> {
    library.write(new, &noise(nbytes(new)), walk, ALL)
}

/// Read the same walk, and compare what both have seen.
pub(super) fn assert_reads_back(
    library: &Arc<NetCdf>,
    new: &NewVariable,
    written: &Written,
    walk: &Walk,
) {
    let open = library.open_variable(&new.file, &new.name, None).unwrap();
    assert_eq!(open.shape(), new.shape);
    let record = &written.record.walk;
    let bounds = WalkBounds { max_operations: record.operations, max_time: Duration::MAX };
    let read = open.walk(walk, bounds).unwrap();
    assert_eq!(read.checksums, record.checksums, "{library:?} {new:?}");
    assert_eq!(read.selected_nbytes, record.selected_nbytes);
    let times = &written.record;
    for seconds in [times.create_s, times.flush_s, times.close_s, times.sync_s, record.elapsed_s] {
        assert!(seconds >= 0.0 && seconds.is_finite());
    }
}

#[derive(Debug)]
struct Case {
    new: NewVariable,
    block: Vec<u64>,
    order: Order,
    max_operations: u64,
}

prop_compose! {
    fn cases()(
        dims in prop::collection::vec((1..9u64, 1..9u64, 1..9u64), 1..5),
        number in prop::sample::select(&NUMBERS[..]),
        filters in prop::sample::select(pipelines().to_vec()),
        cache in prop::option::of((0..4096usize, 0..50usize, 0..=4u8)),
        (big_endian, fill, contiguous) in any::<(bool, bool, bool)>(),
        (seed, reversed) in any::<(u64, bool)>(),
        max_operations in 1..200u64,
    ) -> Case {
        let rank = dims.len();
        let shape: Vec<u64> = dims.iter().map(|&(len, ..)| len).collect();
        let chunk: Vec<u64> = dims.iter().map(|&(len, chunk, _)| chunk.min(len)).collect();
        let contiguous = contiguous && filters.is_empty();
        let order = if reversed {
            Order::Axes((0..rank as u64).rev().collect())
        } else {
            Order::Random { seed }
        };
        let new = NewVariable {
            name: "/a group/of these/axis0".to_string(),
            shape,
            number: Number::named(number).unwrap(),
            big_endian,
            chunk: (!contiguous).then_some(chunk),
            filters,
            cache: cache.map(|(nbytes, nslots, w0)| {
                ChunkCache { nbytes, nslots, w0: f32::from(w0) / 4.0 }
            }),
            fill,
            ..usual("")
        };
        let block = dims.iter().map(|&(len, _, block)| block.min(len)).collect();
        Case { new, block, order, max_operations }
    }
}

#[test]
fn whatever_is_written_is_read_back() {
    let libraries = libraries();
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() };
    proptest!(config, |(case in cases())| {
        for library in &libraries {
            let scratch = Scratch::new();
            let new = NewVariable { file: scratch.path("any.nc"), ..case.new.clone() };
            let walk = BlockWalk::ordered(&new.shape, &case.block, case.order.clone(), None);
            let walk = Walk::Blocks(Box::new(walk.unwrap()));
            let max_operations = case.max_operations;
            let bounds = WalkBounds { max_operations, max_time: Duration::MAX };
            let written = library.write(&new, &noise(nbytes(&new)), &walk, bounds).unwrap();
            prop_assert_eq!(written.record.walk.operations, walk.len().min(max_operations));
            match (&new.chunk, written.chunk_cache) {
                (None, found) => prop_assert_eq!(found, None),
                (Some(_), None) => prop_assert!(false, "no cache"),
                (Some(_), Some(found)) => prop_assert_eq!(found, new.cache.unwrap_or(found)),
            }
            assert_reads_back(library, &new, &written, &walk);
        }
    });
}

#[test]
fn szip_is_written_and_read() {
    for library in libraries() {
        let scratch = Scratch::new();
        let shuffle = filter(SHUFFLE, &[]);
        for (mask, before) in [(4, vec![]), (32, vec![]), (32, vec![shuffle])] {
            let filters = [before, vec![filter(SZIP, &[mask, 2])]].concat();
            let new = NewVariable { filters, ..usual(&scratch.path("szip.nc")) };
            let walk = all(&new.shape);
            let written = write(&library, &new, &walk).unwrap();
            assert_reads_back(&library, &new, &written, &walk);
            std::fs::remove_file(&new.file).unwrap();
        }
    }
}

#[test]
fn scalars_strides_and_nothing_at_all_are_written() {
    for library in libraries() {
        let scratch = Scratch::new();
        let scalar = NewVariable {
            shape: vec![],
            chunk: None,
            filters: vec![],
            ..usual(&scratch.path("scalar.nc"))
        };
        let walk = all(&[]);
        let written = write(&library, &scalar, &walk).unwrap();
        assert_reads_back(&library, &scalar, &written, &walk);

        let strided = usual(&scratch.path("strided.nc"));
        let every = |start: [u64; 2]| {
            Hyperslab::new(&[4, 5], &start, &[2, 3], &[2, 2 - start[1] / 2], &[1, 1]).unwrap()
        };
        let walk = Walk::listed(vec![every([0, 0]), every([1, 2]), every([1, 1])]);
        let written = write(&library, &strided, &walk).unwrap();
        assert_eq!(written.record.walk.selected_nbytes, 40);
        assert_reads_back(&library, &strided, &written, &walk);

        let nothing = usual(&scratch.path("nothing.nc"));
        let written = write(&library, &nothing, &Walk::Listed(vec![])).unwrap();
        assert_eq!(written.record.walk.operations, 0);
        let open = library.open_variable(&nothing.file, "values", None).unwrap();
        assert_eq!(open.shape(), [4, 5]);
    }
}

/// A chunk that no cache holds is written again with each row: it grows, moves, and
/// leaves gaps between the others.
#[test]
fn the_chunk_cache_is_in_force() {
    for library in libraries() {
        let scratch = Scratch::new();
        let size_with = |cache| {
            let file = scratch.path("cached.nc");
            let (shape, chunk) = (vec![64, 64], Some(vec![64, 16]));
            let new = NewVariable { shape, chunk, cache, ..usual(&file) };
            let rows = BlockWalk::ordered(&[64, 64], &[1, 16], Order::C, None).unwrap();
            write(&library, &new, &Walk::Blocks(Box::new(rows))).unwrap();
            let size = std::fs::metadata(&file).unwrap().len();
            std::fs::remove_file(&file).unwrap();
            size
        };
        let cache = |nbytes| Some(ChunkCache { nbytes, nslots: 7, w0: 0.5 });
        let usual = size_with(None);
        assert_eq!(size_with(cache(64 * 64 * 4)), usual, "{library:?}");
        for too_small in [0, 1000] {
            assert!(size_with(cache(too_small)) > usual, "{library:?} {too_small}");
        }
    }
}

/// Why it is refused; nothing is left behind.
fn refusal(library: &NetCdf, new: &NewVariable) -> String {
    let error = write(library, new, &all(&new.shape)).unwrap_err();
    assert!(!Path::new(&new.file).exists());
    let NetCdfError::Refused { reason } = error else { panic!("{error}") };
    reason
}

#[test]
fn what_cannot_be_made_is_refused() {
    let (shuffle, fletcher32) = (filter(SHUFFLE, &[]), filter(FLETCHER32, &[]));
    let deflate = filter(DEFLATE, &[4]);
    let szip = |mask, pixels| filter(SZIP, &[mask, pixels]);
    for library in libraries() {
        let scratch = Scratch::new();
        let file = scratch.path("refused.nc");
        let with = |filters: &[&Filter]| NewVariable {
            filters: filters.iter().map(|&filter| filter.clone()).collect(),
            ..usual(&file)
        };
        let chunked = |chunk: &[u64]| NewVariable { chunk: Some(chunk.to_vec()), ..usual(&file) };
        let named = |name: &str| NewVariable { name: name.to_string(), ..usual(&file) };
        let cached = |w0| NewVariable {
            cache: Some(ChunkCache { nbytes: 1, nslots: 1, w0 }),
            ..usual(&file)
        };
        for (new, expected) in [
            (with(&[&deflate, &shuffle]), "deflate+shuffle would become shuffle+deflate"),
            (
                with(&[&shuffle, &deflate, &fletcher32]),
                "shuffle+deflate+fletcher32 would become fletcher32+shuffle+deflate",
            ),
            (with(&[&shuffle, &fletcher32]), "would become fletcher32+shuffle"),
            (with(&[&deflate, &deflate]), "applies deflate once"),
            (with(&[&deflate, &szip(4, 2)]), "deflate or szip, not both"),
            (with(&[&filter(DEFLATE, &[10])]), "a level from 0 to 9"),
            (with(&[&filter(DEFLATE, &[])]), "a level from 0 to 9"),
            (with(&[&szip(4, 3)]), "an even number"),
            (with(&[&szip(8, 2)]), "4 (ec) or 32 (nn)"),
            (with(&[&szip(4, 6)]), "a chunk has fewer elements"),
            (with(&[&fletcher32, &szip(4, 2)]), "szip stores what cannot be read"),
            (with(&[&filter(6, &[2, 0]), &fletcher32]), "scaleoffset stores what cannot"),
            (with(&[&filter(65_000, &[])]), "HDF5_PLUGIN_PATH"),
            (with(&[&shuffle, &filter(65_000, &[1])]), "no filter-65000"),
            (with(&[&filter(70_000, &[])]), "nc_def_var_filter failed"),
            (NewVariable { chunk: None, ..usual(&file) }, "deflate needs chunks"),
            (chunked(&[2]), "do not fit its shape [4, 5]"),
            (chunked(&[2, 0]), "do not fit"),
            (chunked(&[2, 6]), "do not fit"),
            (NewVariable { shape: vec![], ..chunked(&[]) }, "a scalar has no chunks"),
            (NewVariable { shape: vec![4, 0], ..usual(&file) }, "has no elements"),
            (named(""), "no name"),
            (named("/group/"), "no name"),
            (named("a\0b"), "nul byte"),
            (named("./values"), "illegal characters"),
            (named("va\u{1}lues"), "illegal characters"),
            (named(&"long".repeat(100)), "NC_MAX_NAME"),
            (cached(1.5), "w0 of its chunk cache is 1.5"),
            (cached(-0.5), "not from 0 to 1"),
            (cached(f32::NAN), "NaN"),
        ] {
            let reason = refusal(&library, &new);
            assert!(reason.contains(expected), "{library:?} {expected}: {reason}");
        }
        let error = library.write(&usual(&file), &[0; 79], &all(&[4, 5]), ALL).unwrap_err();
        assert!(error.to_string().contains("79 bytes, not [4, 5] elements of 4 bytes"), "{error}");
    }
}

#[test]
fn what_an_old_library_lacks_is_named() {
    for library in libraries() {
        let scratch = Scratch::new();
        let mut old = Arc::try_unwrap(NetCdf::open(library.path()).unwrap()).unwrap();
        let lacks = |symbol, since| NetCdfError::Symbol { path: "old".to_string(), symbol, since };
        old.szip = Err(lacks("nc_def_var_szip", "4.7.4"));
        old.filters = Err(lacks("nc_inq_var_filter_ids", "4.8"));
        let try_with = |old: &NetCdf, filters: Vec<Filter>| {
            let new = NewVariable { filters, ..usual(&scratch.path("old.nc")) };
            let outcome = write(old, &new, &all(&[4, 5])).map(|_| ());
            assert_eq!(std::fs::remove_file(&new.file).is_ok(), outcome.is_ok());
            outcome
        };
        let (shuffle, deflate) = (filter(SHUFFLE, &[]), filter(DEFLATE, &[1]));
        let szip = filter(SZIP, &[4, 2]);
        assert_eq!(try_with(&old, vec![szip]), old.szip.as_ref().map(|_| ()).map_err(Clone::clone));
        assert_eq!(
            try_with(&old, vec![shuffle, deflate.clone()]),
            old.filters.as_ref().map(|_| ()).map_err(Clone::clone)
        );
        assert_eq!(try_with(&old, vec![deflate]), Ok(()));
        old.writing = Err(lacks("nc_create", "4.1"));
        let error = try_with(&old, vec![]).unwrap_err();
        assert_eq!(error.to_string(), "old has no nc_create: it is not netCDF-C 4.1 or later");
    }
}

#[test]
fn a_file_that_cannot_be_created_is_an_error() {
    for library in libraries() {
        let scratch = Scratch::new();
        let create = |file: &str| {
            let error = write(&library, &usual(file), &all(&[4, 5])).unwrap_err();
            let NetCdfError::Create { message } = error else { panic!("{error}") };
            message
        };
        let there = scratch.path("there.nc");
        std::fs::write(&there, "precious").unwrap();
        assert!(create(&there).contains("exists"));
        assert_eq!(std::fs::read(&there).unwrap(), b"precious");
        let leads_nowhere = scratch.path("link.nc");
        std::os::unix::fs::symlink(scratch.path("nowhere"), &leads_nowhere).unwrap();
        assert!(create(&leads_nowhere).contains("exists"));
        assert!(create(&scratch.path("missing/any.nc")).contains("No such file"));
        assert!(create(&scratch.path("there.nc/any.nc")).contains("Not a directory"));
        assert!(create("a\0b").contains("NUL"));
        assert!(!create("").is_empty());
    }
}

#[test]
fn odd_paths_are_taken_as_they_are() {
    for library in libraries() {
        let scratch = Scratch::new();
        for name in [" blank.nc", "a:b.nc", "#mode=nczarr", "100%.nc", "\u{e9}.nc"] {
            let new = usual(&scratch.path(name));
            write(&library, &new, &all(&new.shape)).unwrap();
            assert!(Path::new(&new.file).exists(), "{library:?} {name}");
        }
        let error = write(&library, &usual(&scratch.path("a\\b.nc")), &all(&[4, 5])).unwrap_err();
        assert!(error.to_string().contains("backslash"), "{error}");
    }
}

#[test]
fn nothing_is_left_of_a_walk_that_fails() {
    for library in libraries() {
        let scratch = Scratch::new();
        let new = usual(&scratch.path("failed.nc"));
        let fail = |second: Hyperslab| {
            let walk = Walk::listed(vec![Hyperslab::all(&[4, 5]), second]);
            let error = write(&library, &new, &walk).unwrap_err();
            assert!(!Path::new(&new.file).exists(), "{library:?}");
            error
        };
        let rank = SelectError::Rank { selection: 1, dataset: 2 };
        let error = fail(Hyperslab::all(&[4]));
        assert_eq!(error, NetCdfError::Read(ReadError::Select(rank)));
        let error = fail(Hyperslab::all(&[4, 6]));
        let beyond = SelectError::BeyondShape { end: 6, dimension: 1, size: 5 };
        assert_eq!(error, NetCdfError::Read(ReadError::Select(beyond)));
        let gaps = Hyperslab::new(&[4, 5], &[0, 0], &[1, 3], &[1, 2], &[1, 2]).unwrap();
        assert_eq!(fail(gaps), NetCdfError::Blocks { dimension: 1, count: 2, block: 2 });
    }
}

#[test]
fn the_file_is_closed() {
    for library in libraries() {
        let scratch = Scratch::new();
        let new = usual(&scratch.path("closed.nc"));
        write(&library, &new, &all(&new.shape)).unwrap();
        assert!(!is_open(&new.file));
    }
}
