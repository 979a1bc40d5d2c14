//! Parts of chunks that are stored in blocks: are they what the whole is, and is no more decoded
//! than what is wanted, and nothing twice?

#![allow(clippy::unwrap_used)]

mod stored;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chunkwise_codec::{EncodeScratch, Encoder, Encoding, Filter, Pipeline, Step};
use chunkwise_engine::{
    CacheStats, ChunkIndexBuilder, ChunkRecord, Dataset, DatasetInfo, Layout, MemoryStorage,
    ReadError, Setting, cache_clear, cache_stats, change, set_threads,
};
use chunkwise_select::{ChunkGrid, Hyperslab};
use proptest::prelude::*;
use stored::{file_of, stored_in};

/// The figures are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Model {
    shape: Vec<u64>,
    array: Vec<u16>,
    dataset: Arc<Dataset>,
    /// The same without a memory map: decoded whole.
    whole: Arc<Dataset>,
}

/// Elements that tell where they are, and do not compress too well.
fn element(number: u64) -> u16 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as u16 + (number / 97) as u16
}

/// `damage` changes the stored bytes of a chunk.
fn model(
    shape: &[u64],
    chunk: &[u64],
    filter: (i32, &[u32]),
    mut damage: impl FnMut(u64, &mut Vec<u8>),
) -> Model {
    let grid = ChunkGrid::new(shape, chunk).unwrap();
    let total: u64 = shape.iter().product();
    let array: Vec<u16> = (0..total).map(element).collect();
    let encoder = Encoder::from_hdf5(filter.0, filter.1).unwrap();
    let encoding = Encoding::new(vec![Step { encoder, optional: false }]);
    let (mut file, mut builder) = (vec![0xAA; 100], ChunkIndexBuilder::default());
    for position in 0..grid.len() {
        let at = grid.chunk_index(position);
        let mut raw = Vec::new();
        for inside in 0..grid.chunk_len() {
            let (mut rest, mut number, mut stride, mut within) = (inside, 0, 1, true);
            for d in (0..shape.len()).rev() {
                let index = at[d] * chunk[d] + rest % chunk[d];
                (rest, within) = (rest / chunk[d], within && index < shape[d]);
                (number, stride) = (number + index * stride, stride * shape[d]);
            }
            raw.extend(if within { array[number as usize] } else { 0x5555 }.to_le_bytes());
        }
        let mut stored = Vec::new();
        encoding.encode(&raw, &mut EncodeScratch::default(), &mut stored).unwrap();
        damage(position, &mut stored);
        let (address, stored_nbytes) = (file.len() as u64, stored.len() as u64);
        builder.push(position, ChunkRecord { address, stored_nbytes, filter_mask: 0 }).unwrap();
        file.extend(stored);
    }
    let layout = Layout::Chunked {
        chunk: chunk.into(),
        pipeline: Pipeline::new(vec![Filter::from_hdf5(filter.0, filter.1).unwrap()]),
        unfiltered_partial_chunks: false,
        index: builder.finish(grid.len()).unwrap().into(),
    };
    let info = DatasetInfo { shape: shape.into(), element_size: 2, fill: None, layout };
    let dataset = Dataset::new(info.clone(), stored_in(&file_of(&file))).unwrap();
    let whole = Dataset::new(info, Arc::new(MemoryStorage(file))).unwrap();
    Model { shape: shape.to_vec(), array, dataset, whole }
}

impl Model {
    fn slab(&self, start: &[u64], count: &[u64]) -> Hyperslab {
        let ones = vec![1; start.len()];
        Hyperslab::new(&self.shape, start, &ones, count, &ones).unwrap()
    }

    fn expected(&self, slab: &Hyperslab) -> Vec<u8> {
        let shape = slab.shape();
        let total: u64 = shape.iter().product();
        let elements = (0..total).map(|number| {
            let (mut rest, mut at, mut stride) = (number, 0, 1);
            for d in (0..shape.len()).rev() {
                at += slab.axes()[d].index_of(rest % shape[d]) * stride;
                (rest, stride) = (rest / shape[d], stride * self.shape[d]);
            }
            self.array[at as usize]
        });
        elements.flat_map(u16::to_le_bytes).collect()
    }

    fn check(&self, slab: &Hyperslab) {
        let expected = self.expected(slab);
        let mut out = vec![0; expected.len()];
        self.dataset.read(slab, &mut out).unwrap();
        assert!(out == expected, "{slab:?}");
    }
}

/// What was done since.
fn since(before: CacheStats) -> (u64, u64) {
    let now = cache_stats();
    (now.decoded - before.decoded, now.decoded_blocks - before.decoded_blocks)
}

/// 512 x 512 elements, in 64 blocks of 8 KiB: eight rows each.
const FRAME: [u64; 3] = [1, 512, 512];
const BITSHUFFLE: (i32, &[u32]) = (32008, &[0, 4, 2, 0, 2]);

#[test]
#[cfg_attr(windows, ignore = "files are not mapped there")]
fn a_small_part_decodes_its_blocks_and_no_block_twice() {
    let _alone = alone();
    let model = model(&[6, 512, 512], &FRAME, BITSHUFFLE, |_, _| ());
    let before = cache_stats();
    // Rows 20 to 49 are in blocks 2 to 6.
    model.check(&model.slab(&[0, 20, 100], &[1, 30, 30]));
    assert_eq!(since(before), (1, 5));
    model.check(&model.slab(&[0, 24, 300], &[1, 16, 200]));
    assert_eq!(since(before), (1, 5));
    // Two blocks more.
    model.check(&model.slab(&[0, 40, 300], &[1, 32, 200]));
    assert_eq!(since(before), (1, 7));
    let hits = cache_stats().hits - before.hits;
    assert_eq!(hits, 1);
    // Of several chunks at once.
    model.check(&model.slab(&[0, 20, 0], &[6, 1, 512]));
    assert_eq!(since(before), (6, 12));
    // Far less is kept than six chunks.
    let held = cache_stats().held_nbytes - before.held_nbytes;
    assert!((12 * 8192..150_000).contains(&held), "{held}");
    cache_clear();
}

#[test]
#[cfg_attr(windows, ignore = "files are not mapped there")]
fn whoever_walks_on_gets_the_chunk_and_nothing_is_decoded_twice() {
    let _alone = alone();
    let model = model(&[2, 512, 512], &FRAME, BITSHUFFLE, |_, _| ());
    let before = cache_stats();
    for row in 0..512 {
        model.check(&model.slab(&[0, row, 0], &[1, 1, 512]));
    }
    // A quarter of the blocks one by one, then all others.
    assert_eq!(since(before), (1, 16));
    for row in 0..512 {
        model.check(&model.slab(&[0, row, 7], &[1, 1, 100]));
    }
    assert_eq!(since(before), (1, 16));
    // Most of it at once.
    model.check(&model.slab(&[1, 0, 7], &[1, 512, 100]));
    model.check(&model.slab(&[1, 0, 0], &[1, 512, 512]));
    assert_eq!(since(before), (2, 16));
    cache_clear();
}

#[test]
#[cfg_attr(windows, ignore = "files are not mapped there")]
fn whoever_comes_often_gets_the_chunk_with_the_next_block() {
    let _alone = alone();
    let model = model(&[1, 512, 512], &FRAME, BITSHUFFLE, |_, _| ());
    let before = cache_stats();
    for _ in 0..127 {
        model.check(&model.slab(&[0, 3, 0], &[1, 1, 512]));
    }
    // Seldom enough so far.
    model.check(&model.slab(&[0, 11, 0], &[1, 1, 512]));
    assert_eq!(since(before), (1, 2));
    for row in [3, 11, 300, 500, 100] {
        model.check(&model.slab(&[0, row, 0], &[1, 1, 512]));
    }
    // No other block by itself.
    assert_eq!(since(before), (1, 2));
    cache_clear();
}

#[test]
#[cfg_attr(windows, ignore = "files are not mapped there")]
fn without_a_cache_only_what_is_wanted_is_decoded() {
    let _alone = alone();
    change(Setting::CacheNbytes, Some(0));
    let model = model(&[2, 512, 512], &FRAME, BITSHUFFLE, |_, _| ());
    // Two threads may meet the file before it is mapped, and one of them then decodes all.
    model.check(&model.slab(&[0, 0, 0], &[1, 8, 9]));
    let before = cache_stats();
    for _ in 0..3 {
        model.check(&model.slab(&[0, 0, 0], &[2, 8, 9]));
    }
    assert_eq!(since(before), (6, 6));
    assert_eq!(cache_stats().held_nbytes, 0);
    change(Setting::CacheNbytes, None);
}

#[test]
#[cfg_attr(windows, ignore = "files are not mapped there")]
fn regions_of_frame_after_frame_have_no_frame_decoded_ahead() {
    let _alone = alone();
    let model = model(&[12, 512, 512], &FRAME, BITSHUFFLE, |_, _| ());
    let before = cache_stats();
    for frame in 0..12 {
        model.check(&model.slab(&[frame, 80, 80], &[1, 8, 8]));
    }
    assert_eq!(since(before), (12, 12));
    cache_clear();
}

/// Of large blocks, only who comes again has any kept.
#[test]
#[cfg_attr(windows, ignore = "files are not mapped there")]
fn a_first_read_of_large_blocks_keeps_none_of_them() {
    let _alone = alone();
    let chunk = [1, 1024, 1024];
    for options in [[2, 2, 2, 1 << 21, 5, 1, 1], [2, 2, 2, 1 << 21, 5, 0, 1], [2, 2, 2, 0, 0, 1, 1]]
    {
        let model = model(&[3, 1024, 1024], &chunk, (32001, &options), |_, _| ());
        let before = cache_stats();
        let part = model.slab(&[0, 20, 100], &[1, 30, 30]);
        model.check(&part);
        let (chunks, blocks) = since(before);
        assert!(chunks == 1 && (1..=4).contains(&blocks), "{chunks} {blocks}");
        assert!(cache_stats().held_nbytes - before.held_nbytes < 1000);
        model.check(&part);
        assert_eq!(since(before), (1, 2 * blocks));
        assert!(cache_stats().held_nbytes - before.held_nbytes > 50_000);
        for _ in 0..3 {
            model.check(&part);
        }
        assert_eq!(since(before), (1, 2 * blocks));
        // Every second row and column, one element, a row, and a whole chunk that was met.
        for frame in 1..3 {
            let ones = [1, 1, 1];
            let (start, step, count) = ([frame, 301, 5], [1, 3, 7], [1, 31, 100]);
            let strided = Hyperslab::new(&model.shape, &start, &step, &count, &ones);
            model.check(&strided.unwrap());
            model.check(&model.slab(&[frame, 1023, 1023], &[1, 1, 1]));
            model.check(&model.slab(&[frame, 700, 0], &[1, 1, 1024]));
        }
        let before = cache_stats();
        model.check(&model.slab(&[2, 0, 1], &[1, 1024, 1023]));
        assert_eq!(since(before), (0, 0));
        cache_clear();
    }
}

/// Damage in blocks that are not looked at does not show; in those that are it is what it is for
/// the whole chunk.
#[test]
#[cfg_attr(windows, ignore = "files are not mapped there")]
fn damage_is_told_where_it_was_met_and_as_for_the_whole() {
    let _alone = alone();
    let cut = |_, stored: &mut Vec<u8>| {
        let half = stored.len() / 2;
        stored[half..].fill(0xff);
    };
    let model = model(&[1, 512, 512], &FRAME, BITSHUFFLE, cut);
    model.check(&model.slab(&[0, 0, 0], &[1, 100, 100]));
    for (row, rows) in [(300, 10), (500, 12), (0, 300), (0, 512)] {
        let slab = model.slab(&[0, row, 3], &[1, rows, 20]);
        let mut out = vec![0; (rows * 40) as usize];
        let error = model.dataset.read(&slab, &mut out).unwrap_err();
        assert!(matches!(error, ReadError::Decode { .. }), "{error}");
        assert_eq!(model.whole.read(&slab, &mut out).unwrap_err(), error);
    }
    // Still there.
    model.check(&model.slab(&[0, 0, 0], &[1, 100, 100]));
    cache_clear();
}

/// Options of each filter for chunks of that shape.
fn filters(chunk: &[u64]) -> Vec<(i32, Vec<u32>)> {
    let nbytes = 2 * chunk.iter().product::<u64>() as u32;
    let mut boxes = vec![2, 0, 2, nbytes, 5, 1, 1, chunk.len() as u32];
    boxes.extend(chunk.iter().map(|&n| n as u32));
    vec![
        (32008, vec![0, 4, 2, 0, 2]),
        (32008, vec![0, 4, 2, 1024, 0]),
        (32008, vec![0, 4, 2, 800, 3, 3]),
        (32001, vec![2, 2, 2, nbytes, 5, 1, 1]),
        (32001, vec![2, 2, 2, nbytes, 1, 2, 5]),
        (32004, vec![3000]),
        (32026, vec![2, 5000, 2, nbytes, 5, 1, 1]),
        (32026, boxes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any hyperslabs, one after the other.
    #[test]
    fn any_part_of_any_filter_is_that_of_the_array(
        which in 0usize..8,
        threads in 1usize..4,
        slabs in prop::collection::vec(
            prop::collection::vec((0f64..1.0, 1u64..40, 0f64..1.0), 3), 1..6),
    ) {
        let _alone = alone();
        set_threads(threads.try_into().ok());
        let (shape, chunk) = ([7, 300, 260], [3, 200, 130]);
        let (id, options) = &filters(&chunk)[which];
        let model = model(&shape, &chunk, (*id, options), |_, _| ());
        for slab in slabs {
            let axis = |(from, stride, share): &(f64, u64, f64), len: u64| {
                let start = (from * len as f64) as u64;
                let most = (len - start).div_ceil(*stride);
                (start, *stride, ((share * most as f64) as u64).clamp(1, most))
            };
            let axes: Vec<_> = slab.iter().zip(shape).map(|(a, len)| axis(a, len)).collect();
            let part = |f: fn(&(u64, u64, u64)) -> u64| axes.iter().map(f).collect::<Vec<u64>>();
            let (start, stride, count) = (part(|a| a.0), part(|a| a.1), part(|a| a.2));
            let slab = Hyperslab::new(&shape, &start, &stride, &count, &[1, 1, 1]).unwrap();
            model.check(&slab);
        }
        set_threads(None);
    }
}

/// One chunk on several threads, in place and out of place, out of order too.
#[test]
fn a_chunk_on_several_threads_is_the_same() {
    let _alone = alone();
    set_threads(3usize.try_into().ok());
    let chunk = [5, 350, 400];
    for (id, options) in filters(&chunk) {
        let model = model(&[9, 350, 399], &chunk, (id, &options), |_, _| ());
        model.check(&Hyperslab::all(&[9, 350, 399]));
        let before = cache_stats();
        model.check(&model.slab(&[0, 0, 0], &[5, 350, 399]));
        // Wanted whole a second time, it is kept.
        model.check(&model.slab(&[0, 0, 0], &[5, 350, 300]));
        assert_eq!(since(before), (1, 0));
    }
    set_threads(None);
    cache_clear();
}

/// Many threads that want parts of the same chunk, small and large, each get theirs.
#[test]
fn threads_share_a_chunk_of_which_they_want_parts() {
    let _alone = alone();
    change(Setting::CacheNbytes, Some(300_000));
    let model = model(&[2, 512, 512], &FRAME, BITSHUFFLE, |_, _| ());
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let model = &model;
            scope.spawn(move || {
                for step in 0..60 {
                    let row = (step * 37 + thread * 61) % 450;
                    let rows = if step % 9 == 0 { 400.min(512 - row) } else { 1 + step % 30 };
                    model.check(&model.slab(&[thread % 2, row, 5], &[1, rows, 40]));
                }
            });
        }
    });
    change(Setting::CacheNbytes, None);
    cache_clear();
}

/// A file that has lost its end since it was opened is cut off, not a crash.
#[test]
#[cfg_attr(windows, ignore = "files are not mapped there")]
fn a_file_that_shrinks_is_an_error() {
    let _alone = alone();
    let sound = model(&[1, 512, 512], &FRAME, BITSHUFFLE, |_, _| ());
    let nbytes = sound.dataset.storage().end();
    let mut bytes = vec![0; nbytes as usize];
    sound.dataset.storage().read_at(0, &mut bytes).unwrap();
    let file = file_of(&bytes);
    let dataset = Dataset::new(sound.dataset.info().clone(), stored_in(&file)).unwrap();
    let read = |row| {
        let slab = sound.slab(&[0, row, 0], &[1, 10, 10]);
        let mut out = vec![0; 200];
        dataset.read(&slab, &mut out).map(|()| out == sound.expected(&slab))
    };
    assert_eq!(read(0), Ok(true));
    file.set_len(nbytes / 2).unwrap();
    for row in [490, 100, 1] {
        // Blocks that are kept may still be had.
        let outcome = read(row);
        let cut =
            matches!(outcome, Err(ReadError::Truncated { .. } | ReadError::TruncatedChunk { .. }));
        assert!(cut || (row < 8 && outcome == Ok(true)), "{outcome:?}");
    }
    cache_clear();
}
