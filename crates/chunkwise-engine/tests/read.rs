//! Whatever the layout and the selection, a read gives what a plain model gives.

#![allow(clippy::unwrap_used)]

mod stored;

use std::sync::Arc;

use chunkwise_codec::{DecodeError, Deflate, Filter, Pipeline, Shuffle};
use chunkwise_engine::{
    ChunkIndexBuilder, ChunkRecord, Dataset, DatasetInfo, Layout, MemoryStorage, ReadError,
};
use chunkwise_select::{ChunkGrid, Hyperslab, Product, Selected, Union};
use proptest::prelude::*;
use stored::{file_of, stored_in};

const FILL: u8 = 0xEE;

/// A dataset in memory and the array it stands for.
struct Model {
    shape: Vec<u64>,
    size: usize,
    /// Row-major elements of the whole array.
    array: Vec<u8>,
    dataset: Arc<Dataset>,
    /// The same in a file, which is mapped.
    mapped: Arc<Dataset>,
}

/// Every element's bytes, distinct for neighbours.
fn element(number: u64, size: usize) -> Vec<u8> {
    (0..size).map(|byte| (number * 31 + byte as u64 * 7 + number / 251) as u8).collect()
}

fn row_major(index: &[u64], shape: &[u64]) -> u64 {
    index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i)
}

fn shuffled(size: usize, raw: &[u8]) -> Vec<u8> {
    let elements = raw.len() / size;
    (0..size).flat_map(|j| (0..elements).map(move |i| raw[i * size + j])).collect()
}

/// Chunks are written where `written` says, shuffled where the mask allows.
fn chunked(shape: &[u64], chunk: &[u64], size: usize, written: &[bool], unfiltered: bool) -> Model {
    let grid = ChunkGrid::new(shape, chunk).unwrap();
    let total: u64 = shape.iter().product();
    let mut array = vec![FILL; total as usize * size];
    let mut storage = vec![0xAA; 100];
    let mut builder = ChunkIndexBuilder::default();
    for position in 0..grid.len() {
        if !written[position as usize % written.len()] {
            continue;
        }
        let at = grid.chunk_index(position);
        let mut raw = vec![0x55; grid.chunk_len() as usize * size];
        for inside in 0..grid.chunk_len() {
            let mut rest = inside;
            let mut index = vec![0; shape.len()];
            for d in (0..shape.len()).rev() {
                index[d] = at[d] * chunk[d] + rest % chunk[d];
                rest /= chunk[d];
            }
            if index.iter().zip(shape).all(|(i, n)| i < n) {
                let number = row_major(&index, shape);
                let bytes = element(number, size);
                raw[inside as usize * size..][..size].copy_from_slice(&bytes);
                array[number as usize * size..][..size].copy_from_slice(&bytes);
            }
        }
        let partial = unfiltered && grid.is_partial(&at);
        let filter_mask = u32::from(position % 3 == 1);
        let stored = if partial || filter_mask == 1 { raw } else { shuffled(size, &raw) };
        let filter_mask = if partial { 0 } else { filter_mask };
        let address = storage.len() as u64;
        storage.extend(&stored);
        storage.extend([0xBB; 3]);
        let stored_nbytes = stored.len() as u64;
        builder.push(position, ChunkRecord { address, stored_nbytes, filter_mask }).unwrap();
    }
    let layout = Layout::Chunked {
        chunk: chunk.into(),
        pipeline: Pipeline::new(vec![Filter::Shuffle(Shuffle { element_size: size })]),
        unfiltered_partial_chunks: unfiltered,
        index: builder.finish(grid.len()).unwrap().into(),
    };
    let fill = Some(vec![FILL; size]);
    let info = DatasetInfo { shape: shape.into(), element_size: size, fill, layout };
    let mapped = Dataset::new(info.clone(), stored_in(&file_of(&storage))).unwrap();
    let dataset = Dataset::new(info, Arc::new(MemoryStorage(storage))).unwrap();
    Model { shape: shape.to_vec(), size, array, dataset, mapped }
}

fn contiguous(shape: &[u64], size: usize) -> Model {
    let total: u64 = shape.iter().product();
    let array: Vec<u8> = (0..total).flat_map(|number| element(number, size)).collect();
    let mut storage = vec![0xAA; 77];
    storage.extend(&array);
    let layout = Layout::Contiguous { address: Some(77) };
    let info = DatasetInfo { shape: shape.into(), element_size: size, fill: None, layout };
    let mapped = Dataset::new(info.clone(), stored_in(&file_of(&storage))).unwrap();
    let dataset = Dataset::new(info, Arc::new(MemoryStorage(storage))).unwrap();
    Model { shape: shape.to_vec(), size, array, dataset, mapped }
}

impl Model {
    fn expected(&self, slab: &Hyperslab) -> Vec<u8> {
        let out_shape = slab.shape();
        let total: u64 = out_shape.iter().product();
        let mut out = Vec::new();
        for number in 0..total {
            let mut rest = number;
            let mut index = vec![0; self.shape.len()];
            for d in (0..self.shape.len()).rev() {
                index[d] = slab.axes()[d].index_of(rest % out_shape[d]);
                rest /= out_shape[d];
            }
            let at = row_major(&index, &self.shape) as usize * self.size;
            out.extend(&self.array[at..][..self.size]);
        }
        out
    }

    /// Read each twice, the second time from the cache.
    fn check<'a>(&'a self, selection: impl Into<Selected<'a>>, expected: &[u8]) {
        let selection = selection.into();
        let mut out = vec![0; expected.len()];
        for dataset in [&self.dataset, &self.dataset, &self.mapped, &self.mapped] {
            dataset.read(selection, &mut out).unwrap();
            assert_eq!(out, expected);
            out.fill(0x11);
        }
        let figures = self.dataset.explain(selection).unwrap();
        assert_eq!(figures.selected_nbytes, out.len() as u64);
    }

    fn check_slab(&self, slab: &Hyperslab) {
        self.check(slab, &self.expected(slab));
    }

    /// The elements that any of the hyperslabs holds, each once, in row-major order.
    fn check_union(&self, slabs: &[Hyperslab]) {
        let size = self.size;
        let mut wanted = vec![false; self.array.len() / size];
        for slab in slabs {
            let places = slab.axes().iter().zip(&self.shape).fold(vec![0], |places, (axis, n)| {
                let along = |place| (0..axis.len()).map(move |i| place * n + axis.index_of(i));
                places.into_iter().flat_map(along).collect()
            });
            places.into_iter().for_each(|place| wanted[place as usize] = true);
        }
        let elements = self.array.chunks_exact(size).zip(wanted);
        let expected: Vec<u8> =
            elements.filter(|(_, wanted)| *wanted).flat_map(|(bytes, _)| bytes).copied().collect();
        let union = Union::new(self.shape.len(), slabs).unwrap();
        self.check(&union, &expected);
    }
}

/// Size, chunk, start, gap, count and block of one dimension.
type Dimension = (u64, u64, u64, u64, u64, u64);

fn dimension() -> impl Strategy<Value = Dimension> {
    (1u64..30, 1u64..11, 0u64..30, 0u64..9, 0u64..12, 1u64..6)
}

fn slab_of(dimensions: &[Dimension]) -> (Vec<u64>, Vec<u64>, Hyperslab) {
    let shape: Vec<u64> = dimensions.iter().map(|d| d.0).collect();
    let chunk: Vec<u64> = dimensions.iter().map(|d| d.1).collect();
    let slab = fitted(&shape, dimensions);
    (shape, chunk, slab)
}

/// A hyperslab of an array of this shape, whatever size the dimensions were meant for.
fn fitted(shape: &[u64], dimensions: &[Dimension]) -> Hyperslab {
    let (mut start, mut stride, mut count, mut block) = (vec![], vec![], vec![], vec![]);
    for (&size, &(_, _, first, gap, wanted, blocks)) in shape.iter().zip(dimensions) {
        let first = first % size;
        let room = size - first;
        let most = if room < blocks { 0 } else { (room - blocks) / (blocks + gap) + 1 };
        start.push(first);
        stride.push(blocks + gap);
        count.push(wanted.min(most));
        block.push(blocks);
    }
    Hyperslab::new(shape, &start, &stride, &count, &block).unwrap()
}

proptest! {
    #[test]
    fn chunked_reads_equal_the_model(
        dimensions in prop::collection::vec(dimension(), 1..4),
        size in prop::sample::select(vec![1usize, 2, 3, 4, 8, 16, 20]),
        written in prop::collection::vec(any::<bool>(), 1..6),
        unfiltered in any::<bool>(),
    ) {
        let (shape, chunk, slab) = slab_of(&dimensions);
        let model = chunked(&shape, &chunk, size, &written, unfiltered);
        model.check_slab(&slab);
        model.check_slab(&Hyperslab::all(&shape));
    }

    #[test]
    fn contiguous_reads_equal_the_model(
        dimensions in prop::collection::vec(dimension(), 1..4),
        size in prop::sample::select(vec![1usize, 2, 3, 4, 8, 16, 20]),
    ) {
        let (shape, _, slab) = slab_of(&dimensions);
        let model = contiguous(&shape, size);
        model.check_slab(&slab);
        model.check_slab(&Hyperslab::all(&shape));
    }
}

proptest! {
    #[test]
    fn unions_equal_the_model(
        dimensions in prop::collection::vec(dimension(), 1..5),
        slabs in prop::collection::vec(prop::collection::vec(dimension(), 4), 0..6),
        size in prop::sample::select(vec![1usize, 4, 20]),
        written in prop::collection::vec(any::<bool>(), 1..6),
        unfiltered in any::<bool>(),
    ) {
        let (shape, chunk, _) = slab_of(&dimensions);
        // Of four dimensions, no more than this many elements.
        let shape: Vec<u64> = shape.iter().map(|&n| if shape.len() == 4 { n.min(9) } else { n }).collect();
        let slabs: Vec<_> = slabs.iter().map(|slab| fitted(&shape, slab)).collect();
        chunked(&shape, &chunk, size, &written, unfiltered).check_union(&slabs);
        contiguous(&shape, size).check_union(&slabs);
    }
}

/// Runs near together and far apart, rows taken together, pieces of several slabs.
#[test]
fn large_unions_equal_the_model() {
    let shape = [300, 500, 40];
    let slab = |start: [u64; 3], stride: [u64; 3], count: [u64; 3], block: [u64; 3]| {
        Hyperslab::new(&shape, &start, &stride, &count, &block).unwrap()
    };
    let one = [1, 1, 1];
    let slabs = [
        slab([0, 0, 7], one, one, [300, 490, 1]),
        slab([10, 20, 0], one, one, [200, 3, 40]),
        slab([1, 2, 3], [9, 7, 5], [33, 70, 7], [1, 2, 3]),
        slab([0, 300, 30], one, one, [299, 100, 10]),
        slab([250, 0, 0], one, one, [20, 500, 40]),
    ];
    let models =
        [contiguous(&shape, 4), chunked(&shape, &[7, 33, 40], 4, &[true, true, false], true)];
    for model in models {
        model.check_union(&slabs);
        model.check_union(&[Hyperslab::all(&shape)]);
        model.check_union(&slabs[..1]);
    }
}

#[test]
fn a_union_that_does_not_fit_is_an_error() {
    let model = contiguous(&[4, 5], 1);
    let beyond = Union::new(2, &[Hyperslab::all(&[4, 6])]).unwrap();
    assert!(matches!(model.dataset.read(&beyond, &mut [0; 24]), Err(ReadError::Select(_))));
    let row = Union::new(2, &[Hyperslab::all(&[1, 5])]).unwrap();
    assert!(matches!(model.dataset.read(&row, &mut [0; 4]), Err(ReadError::Destination { .. })));
}

/// Large enough to be cut into slabs, grouped into calls and shared among threads.
#[test]
fn large_contiguous_reads_equal_the_model() {
    let model = contiguous(&[300, 500, 40], 4);
    let slab = |start: [u64; 3], stride: [u64; 3], count: [u64; 3], block: [u64; 3]| {
        Hyperslab::new(&[300, 500, 40], &start, &stride, &count, &block).unwrap()
    };
    model.check_slab(&Hyperslab::all(&[300, 500, 40]));
    model.check_slab(&slab([0, 0, 7], [1, 1, 1], [300, 500, 1], [1, 1, 1]));
    model.check_slab(&slab([1, 2, 3], [9, 7, 5], [33, 70, 7], [1, 2, 3]));
    model.check_slab(&slab([5, 10, 0], [1, 1, 1], [290, 480, 1], [1, 1, 40]));
}

#[test]
fn large_chunked_reads_equal_the_model() {
    let model = chunked(&[100, 200, 50], &[7, 33, 50], 4, &[true, true, false], true);
    model.check_slab(&Hyperslab::all(&[100, 200, 50]));
    let ones = [1, 1, 1];
    model.check_slab(
        &Hyperslab::new(&[100, 200, 50], &[0, 3, 9], &ones, &[100, 150, 1], &ones).unwrap(),
    );
}

/// One unfiltered chunk, long enough to be read in pieces.
#[test]
fn a_long_run_equals_the_model() {
    let model = contiguous(&[1, 900_001], 4);
    model.check_slab(&Hyperslab::all(&[1, 900_001]));
    model.check_slab(
        &Hyperslab::new(&[1, 900_001], &[0, 7], &[1, 1], &[1, 800_003], &[1, 1]).unwrap(),
    );
}

/// A sequential walk decodes each chunk once, chunks larger than the budget included.
#[test]
fn a_walk_of_rows_never_decodes_twice() {
    let model = chunked(&[40, 30], &[7, 30], 4, &[true], false);
    let before = chunkwise_engine::cache_stats();
    for row in 0..40 {
        let slab = Hyperslab::new(&[40, 30], &[row, 0], &[1, 1], &[1, 30], &[1, 1]).unwrap();
        let mut out = vec![0; 120];
        model.dataset.read(&slab, &mut out).unwrap();
        assert_eq!(out, model.expected(&slab));
    }
    let hits = chunkwise_engine::cache_stats().hits - before.hits;
    // Chunks with a filter mask are read raw; of the six chunks, 1 and 4 are.
    assert!(hits >= 40 - 2 * 7 - 4, "{hits} rows found their chunk decoded");
}

/// One chunk of four bytes with the given record, behind deflate.
fn one_chunk(storage: Vec<u8>, address: u64, stored_nbytes: u64, chunk: u64) -> Arc<Dataset> {
    let mut builder = ChunkIndexBuilder::default();
    builder.push(0, ChunkRecord { address, stored_nbytes, filter_mask: 0 }).unwrap();
    let layout = Layout::Chunked {
        chunk: [chunk].as_slice().into(),
        pipeline: Pipeline::new(vec![Filter::Deflate(Deflate)]),
        unfiltered_partial_chunks: false,
        index: builder.finish(1).unwrap().into(),
    };
    let shape = [chunk].as_slice().into();
    let info = DatasetInfo { shape, element_size: 1, fill: None, layout };
    Dataset::new(info, Arc::new(MemoryStorage(storage))).unwrap()
}

#[test]
fn damage_is_named_and_costs_no_memory() {
    let read = |dataset: &Dataset, len: usize| {
        let slab = Hyperslab::new(&[len as u64], &[0], &[1], &[1], &[1]).unwrap();
        dataset.read(&slab, &mut [0]).unwrap_err()
    };
    let garbage = one_chunk(vec![7; 100], 10, 20, 4);
    assert!(matches!(
        read(&garbage, 4),
        ReadError::Decode { place, source: DecodeError::Damaged { filter: "deflate" } } if place.address == 10
    ));
    // Beyond the end, by a little and by everything there is.
    for (address, stored) in [(95, 20), (i64::MAX as u64, 20), (0, 1 << 60), (1 << 62, 1 << 62)] {
        let error = read(&one_chunk(vec![7; 100], address, stored, 4), 4);
        assert!(
            matches!(error, ReadError::Truncated { .. } | ReadError::TruncatedChunk { .. }),
            "{error}"
        );
    }
    // A chunk of 2^60 bytes that the file does hold nothing of.
    let huge = one_chunk(vec![7; 100], 10, 20, 1 << 60);
    assert!(matches!(
        read(&huge, 1 << 60),
        ReadError::Decode { source: DecodeError::CannotHold { .. }, .. }
    ));
    let small = one_chunk(vec![7; 100], 10, 20, 4);
    let slab = Hyperslab::all(&[4]);
    assert_eq!(
        small.read(&slab, &mut [0; 3]).unwrap_err(),
        ReadError::Destination { selected: 4, destination: 3 }
    );
}

/// What a product's lists select of the first dimension, and of the others what is left.
fn rows_of(model: &Model, rows: &[u64]) -> Vec<u8> {
    let row: u64 = model.shape[1..].iter().product();
    let len = row as usize * model.size;
    let rows = rows.iter().map(|&row| &model.array[row as usize * len..][..len]);
    rows.flatten().copied().collect()
}

proptest! {
    #[test]
    fn rows_and_points_in_any_order_equal_the_model(
        dimensions in prop::collection::vec(dimension(), 1..4),
        size in prop::sample::select(vec![1usize, 2, 3, 4, 8, 16, 20]),
        written in prop::collection::vec(any::<bool>(), 1..6),
        layout in 0..3,
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let (shape, chunk, _) = slab_of(&dimensions);
        let model = match layout {
            0 => contiguous(&shape, size),
            raw => chunked(&shape, &chunk, size, &written, raw == 1),
        };
        let rows: Vec<u64> = chosen.iter().map(|at| at.index(shape[0] as usize) as u64).collect();
        let list: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let product = Product::of(&shape).points(&[&list]).unwrap().finish().unwrap();
        model.check(&product, &rows_of(&model, &rows));

        let backwards = Product::of(&shape).slice(shape[0] - 1, -1, shape[0]).unwrap();
        let rows: Vec<u64> = (0..shape[0]).rev().collect();
        model.check(&backwards.finish().unwrap(), &rows_of(&model, &rows));

        let total = shape.iter().product::<u64>() as usize;
        let places: Vec<usize> = chosen.iter().map(|at| at.index(total)).collect();
        let unit = |d: usize| shape[d + 1..].iter().product::<u64>();
        let columns: Vec<Vec<i64>> = (0..shape.len())
            .map(|d| places.iter().map(|&p| (p as u64 / unit(d) % shape[d]) as i64).collect())
            .collect();
        let columns: Vec<&[i64]> = columns.iter().map(Vec::as_slice).collect();
        let product = Product::of(&shape).points(&columns).unwrap().finish().unwrap();
        let elements = places.iter().map(|&place| &model.array[place * size..][..size]);
        model.check(&product, &elements.flatten().copied().collect::<Vec<u8>>());

        let mut mask = vec![0; total];
        places.iter().for_each(|&place| mask[place] = 1);
        let product = Product::of(&shape).mask(&shape, &mask).unwrap().finish().unwrap();
        let elements = model.array.chunks_exact(size).zip(&mask).filter(|(_, set)| **set == 1);
        let expected: Vec<u8> = elements.flat_map(|(bytes, _)| bytes).copied().collect();
        model.check(&product, &expected);
    }
}
