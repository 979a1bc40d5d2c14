//! What is read of a file that shrinks or grows under its memory map?

#![allow(clippy::unwrap_used)]

mod stored;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chunkwise_codec::Pipeline;
use chunkwise_engine::platform::write_all_at;
use chunkwise_engine::{
    ChunkIndexBuilder, ChunkRecord, Conversion, Dataset, DatasetInfo, FieldBytes, Fields, Layout,
    Made, MemoryStorage, NumberKind, NumberType, ReadError, set_threads,
};
use chunkwise_select::Hyperslab;
use stored::{file_of, stored_in};

/// Rows of this many elements of two bytes, from this address on.
const COLUMNS: u64 = 1024;
const ADDRESS: u64 = 100;

fn bytes(rows: u64) -> Vec<u8> {
    let elements = (0..rows * COLUMNS).flat_map(|n| (n as u16 ^ (n >> 16) as u16).to_le_bytes());
    [0xAA; ADDRESS as usize].into_iter().chain(elements).collect()
}

fn info(rows: u64) -> DatasetInfo {
    let layout = Layout::Contiguous { address: Some(ADDRESS) };
    DatasetInfo { shape: [rows, COLUMNS].as_slice().into(), element_size: 2, fill: None, layout }
}

/// Numbers of two bytes as such of eight.
fn wider() -> Fields {
    let number = |kind, size, swapped| NumberType {
        kind,
        size,
        swapped: swapped != cfg!(target_endian = "big"),
    };
    let (from, to) = (number(NumberKind::Unsigned, 2, false), number(NumberKind::Float, 8, true));
    let made = Made::Converted(Conversion::of_numbers(from, to).unwrap());
    Fields::new(2, 8, vec![FieldBytes { src: 0, dst: 0, made }]).unwrap()
}

/// The elements of some columns, as they are or converted.
fn read(
    dataset: &Dataset,
    columns: (u64, u64),
    fields: Option<&Fields>,
) -> Result<Vec<u8>, ReadError> {
    read_rows(dataset, 1, columns, fields)
}

/// The same of one in so many rows.
fn read_rows(
    dataset: &Dataset,
    stride: u64,
    (first, count): (u64, u64),
    fields: Option<&Fields>,
) -> Result<Vec<u8>, ReadError> {
    let rows = dataset.shape()[0].div_ceil(stride);
    let slab = [[0, first], [stride, 1], [rows, 1], [1, count]];
    let [start, stride, blocks, block] = &slab;
    let slab = Hyperslab::new(dataset.shape(), start, stride, blocks, block).unwrap();
    let plan = dataset.plan(&slab).unwrap();
    let go_on = AtomicBool::new(false);
    let mut out = vec![0x11; (rows * count) as usize * if fields.is_some() { 8 } else { 2 }];
    match fields {
        Some(fields) => dataset.read_fields(&plan, fields, &mut out, &go_on)?,
        None => dataset.read_plan(&plan, &mut out, &go_on)?,
    }
    Ok(out)
}

fn is_cut(outcome: &Result<Vec<u8>, ReadError>, at: u64) -> bool {
    use ReadError::{Truncated, TruncatedChunk};
    matches!(outcome, Err(Truncated { end, .. } | TruncatedChunk { end, .. }) if *end == at)
}

#[test]
fn what_a_file_has_lost_is_missed() {
    let rows = 300;
    let whole = bytes(rows);
    let (end, memory) = (whole.len() as u64, MemoryStorage(whole.clone()));
    let sound = Dataset::new(info(rows), Arc::new(memory)).unwrap();
    let wider = wider();
    for fields in [None, Some(&wider)] {
        let file = file_of(&whole);
        let dataset = Dataset::new(info(rows), stored_in(&file)).unwrap();
        let (first, last) = ((0, 3), (COLUMNS - 3, 3));
        let expected = [first, last].map(|columns| read(&sound, columns, fields));
        let found = || [first, last].map(|columns| read(&dataset, columns, fields));
        assert_eq!(found(), expected);
        // A byte, which leaves zeros in the last page; pages; all.
        file.set_len(end - 1).unwrap();
        let [whole_columns, cut_columns] = found();
        assert_eq!(whole_columns, expected[0]);
        assert!(is_cut(&cut_columns, end - 1), "{cut_columns:?}");
        for left in [end / 2, 0] {
            file.set_len(left).unwrap();
            assert!(found().iter().all(|outcome| is_cut(outcome, left)));
            // What comes back is there.
            write_all_at(&file, &whole, 0).unwrap();
            assert_eq!(found(), expected);
        }
    }
}

/// Of many chunks a few bytes each, often enough for a map to be worth it.
#[test]
fn short_runs_of_many_chunks_are_the_same_out_of_a_map() {
    let rows = 300;
    let whole = bytes(rows);
    // A chunk a row.
    let mut index = ChunkIndexBuilder::default();
    for row in 0..rows {
        let address = ADDRESS + row * COLUMNS * 2;
        let record = ChunkRecord { address, stored_nbytes: COLUMNS * 2, filter_mask: 0 };
        index.push(row, record).unwrap();
    }
    let index = index.finish(rows).unwrap().into();
    let (chunk, pipeline) = ([1, COLUMNS].as_slice().into(), Pipeline::new(Vec::new()));
    let layout = Layout::Chunked { chunk, pipeline, unfiltered_partial_chunks: false, index };
    let chunked = DatasetInfo { layout, ..info(rows) };
    let file = file_of(&whole);
    let dataset = Dataset::new(chunked, stored_in(&file)).unwrap();
    let sound = Dataset::new(info(rows), Arc::new(MemoryStorage(whole.clone()))).unwrap();
    let wider = wider();
    for first in 0..COLUMNS - 1 {
        let fields = (first % 3 == 0).then_some(&wider);
        assert_eq!(read(&dataset, (first, 2), fields), read(&sound, (first, 2), fields));
    }
    let (end, columns) = (whole.len() as u64, (COLUMNS - 2, 2));
    for left in [end - 1, end / 2, 0] {
        file.set_len(left).unwrap();
        let outcome = read(&dataset, columns, None);
        assert!(is_cut(&outcome, left), "{outcome:?}");
        write_all_at(&file, &whole, 0).unwrap();
        assert_eq!(read(&dataset, columns, None), read(&sound, columns, None));
    }
}

/// First by positioned reads, then out of a map.
#[test]
fn short_runs_far_apart_are_the_same_out_of_a_map() {
    let (rows, stride) = (600, 40);
    let whole = bytes(rows);
    let file = file_of(&whole);
    let dataset = Dataset::new(info(rows), stored_in(&file)).unwrap();
    let sound = Dataset::new(info(rows), Arc::new(MemoryStorage(whole.clone()))).unwrap();
    let (end, wider) = (whole.len() as u64, wider());
    for first in 0..40 {
        let fields = (first % 3 == 0).then_some(&wider);
        let found = read_rows(&dataset, stride, (first, 2), fields);
        assert_eq!(found, read_rows(&sound, stride, (first, 2), fields));
        file.set_len(end / 2).unwrap();
        let outcome = read_rows(&dataset, stride, (first, 2), fields);
        assert!(is_cut(&outcome, end / 2), "{outcome:?}");
        write_all_at(&file, &whole, 0).unwrap();
    }
}

#[test]
fn what_a_file_has_gained_is_there() {
    let (before, after) = (100, 300);
    let whole = bytes(after);
    let sound = Dataset::new(info(after), Arc::new(MemoryStorage(whole.clone()))).unwrap();
    let file = file_of(&bytes(before));
    // Of one storage, whose map ends where the file ended.
    let storage = stored_in(&file);
    let short = Dataset::new(info(before), Arc::clone(&storage)).unwrap();
    read(&short, (5, 1), None).unwrap();
    let mapped = storage.map();
    assert!(mapped.is_none_or(|map| map.bytes().len() == bytes(before).len()));
    let long = Dataset::new(info(after), storage).unwrap();
    assert!(is_cut(&read(&long, (5, 1), None), bytes(before).len() as u64));
    write_all_at(&file, &whole, 0).unwrap();
    let wider = wider();
    for fields in [None, Some(&wider)] {
        for columns in [(5, 1), (0, COLUMNS), (7, 500)] {
            assert_eq!(read(&long, columns, fields), read(&sound, columns, fields));
        }
    }
}

/// Where a fault would end the process, nothing is read through a map.
#[test]
#[cfg(unix)]
fn a_thread_that_takes_no_signals_reads_as_well() {
    let rows = 300;
    let file = file_of(&bytes(rows));
    let dataset = Dataset::new(info(rows), stored_in(&file)).unwrap();
    let expected = read(&dataset, (5, 1), None).unwrap();
    assert!(dataset.storage().map().is_some());
    let in_deaf_thread = |dataset: &Dataset| {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // SAFETY: the set is filled before it is read, and this thread's alone.
                unsafe {
                    let mut all = std::mem::zeroed();
                    libc::sigfillset(&raw mut all);
                    libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
                }
                (dataset.storage().map().is_some(), read(dataset, (5, 1), None))
            });
            thread.join().unwrap()
        })
    };
    let (is_mapped, outcome) = in_deaf_thread(&dataset);
    assert!(!is_mapped && outcome == Ok(expected));
    file.set_len(5000).unwrap();
    let (is_mapped, outcome) = in_deaf_thread(&dataset);
    assert!(!is_mapped && is_cut(&outcome, 5000), "{outcome:?}");
}

/// Long enough to be converted in pieces, by several threads, out of a map and not.
#[test]
fn pieces_that_are_converted_are_those_of_the_whole() {
    set_threads(3usize.try_into().ok());
    let rows = 2500;
    let whole = bytes(rows);
    let in_file = Dataset::new(info(rows), stored_in(&file_of(&whole))).unwrap();
    let in_memory = Dataset::new(info(rows), Arc::new(MemoryStorage(whole.clone()))).unwrap();
    let wider = wider();
    for (first, count) in [(0, COLUMNS), (3, COLUMNS - 3), (COLUMNS / 2, COLUMNS / 2)] {
        let elements = whole[ADDRESS as usize..].chunks_exact(2).enumerate();
        let wanted = elements
            .filter(|(at, _)| (first..first + count).contains(&(*at as u64 % COLUMNS)))
            .flat_map(|(_, two)| f64::from(u16::from_le_bytes([two[0], two[1]])).to_be_bytes());
        let expected: Vec<u8> = wanted.collect();
        for dataset in [&in_file, &in_memory] {
            assert!(read(dataset, (first, count), Some(&wider)).unwrap() == expected);
        }
    }
    set_threads(None);
}
