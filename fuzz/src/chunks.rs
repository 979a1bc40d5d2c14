//! Is a dataset with a made-up chunk index read the same in any parts, or refused?
//!
//! Chunks overlap, lie beyond the end, are of any size, claimed twice, and outside the
//! grid; shapes are of any numbers.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use chunkwise_codec::{Deflate, Filter, Fletcher32, Lzf, Pipeline, Shuffle};
use chunkwise_engine::{
    ChunkIndexBuilder, ChunkRecord, Dataset, DatasetInfo, Layout, MemoryStorage, ReadError,
};
use chunkwise_select::{ChunkGrid, Dims, Hyperslab};

use crate::memory::within;
use crate::numbers::{below, dims, hostile, slab};

/// Bytes of storage, which no filter used here makes more than 1032 times as many.
const MOST_STORED: usize = 1 << 10;
const MOST_CHUNKS: usize = 16;
/// Elements that one read may ask for.
const MOST_READ: u64 = 1 << 12;
/// All chunks in the cache, and buffers; far from what the index may claim.
const MOST_NBYTES: usize = 64 << 20;

pub(crate) fn check(input: &[u8]) {
    let mut input = Unstructured::new(input);
    within(MOST_NBYTES, || {
        // An input that ends early says nothing.
        let _: Result<()> = any_dataset(&mut input);
    });
}

fn any_dataset(input: &mut Unstructured<'_>) -> Result<()> {
    let rank = input.int_in_range(1..=3)?;
    let (shape, chunk) = (dims(input, rank, 0)?, dims(input, rank, 1)?);
    let element_size = input.int_in_range(1..=16)?;
    let fill = if input.arbitrary()? { Some(vec![7; element_size]) } else { None };
    let stored_len = input.int_in_range(0..=MOST_STORED)?;
    let layout = if input.ratio(1, 4)? {
        Some(Layout::Contiguous { address: input.arbitrary::<bool>()?.then_some(hostile(input)?) })
    } else {
        chunked(input, &shape, chunk, element_size, stored_len as u64)?
    };
    let Some(layout) = layout else { return Ok(()) };
    let mut slabs = vec![Hyperslab::all(&shape)];
    for _ in 0..input.int_in_range(1..=4)? {
        slabs.extend(slab(input, &shape)?);
    }
    let mut storage = vec![0; stored_len];
    let given = input.len().min(stored_len);
    input.fill_buffer(&mut storage[..given])?;
    let info = DatasetInfo { shape: shape.clone(), element_size, fill, layout };
    let Ok(dataset) = Dataset::new(info, Arc::new(MemoryStorage(storage))) else { return Ok(()) };
    let mut whole = None;
    for slab in &slabs {
        // A second time, chunks come from the cache.  Which of several damaged ones is named
        // depends on who comes first.
        let (first, again) = (read(&dataset, slab), read(&dataset, slab));
        let bytes = |outcome: &Option<std::result::Result<Vec<u8>, _>>| {
            outcome.as_ref().and_then(|outcome| outcome.as_ref().ok().cloned())
        };
        assert_eq!(bytes(&first), bytes(&again), "read twice, it is not the same");
        match (first, &whole) {
            (Some(Err(error)), None) => {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
            (Some(outcome), None) => whole = outcome.ok().filter(|_| *slab == slabs[0]),
            (Some(outcome), Some(whole)) => {
                let wanted = cut(whole, &shape, slab, element_size);
                assert_eq!(outcome, Ok(wanted), "a part is not that of the whole");
            }
            (None, _) => {}
        }
        let explained = dataset.explain(slab);
        assert!(explained.is_ok() || slab.len().is_err(), "{explained:?}");
    }
    Ok(())
}

/// A chunked layout whose index is made up; None where it is refused.
fn chunked(
    input: &mut Unstructured<'_>,
    shape: &[u64],
    chunk: Dims,
    element_size: usize,
    end: u64,
) -> Result<Option<Layout>> {
    let Ok(grid) = ChunkGrid::new(shape, &chunk) else { return Ok(None) };
    let raw_nbytes = grid.chunk_len().saturating_mul(element_size as u64);
    let pipelines = [
        vec![],
        vec![Filter::Shuffle(Shuffle { element_size })],
        vec![Filter::Lzf(Lzf)],
        vec![Filter::Shuffle(Shuffle { element_size }), Filter::Deflate(Deflate)],
        vec![Filter::Fletcher32(Fletcher32)],
    ];
    let filters = input.choose(&pipelines)?.clone();
    let mut builder = ChunkIndexBuilder::default();
    for _ in 0..input.int_in_range(0..=MOST_CHUNKS)? {
        let position =
            if input.ratio(1, 16)? { hostile(input)? } else { below(input, grid.len())? };
        let address = if input.ratio(1, 4)? { hostile(input)? } else { below(input, end)? };
        let stored_nbytes = if input.arbitrary()? { raw_nbytes } else { hostile(input)? };
        let filter_mask = if input.ratio(1, 4)? { input.arbitrary()? } else { 0 };
        let pushed = builder.push(position, ChunkRecord { address, stored_nbytes, filter_mask });
        assert_eq!(pushed, Ok(()));
    }
    let Ok(index) = builder.finish(grid.len()) else { return Ok(None) };
    Ok(Some(Layout::Chunked {
        chunk,
        pipeline: Pipeline::new(filters),
        unfiltered_partial_chunks: input.ratio(1, 4)?,
        index: index.into(),
    }))
}

/// Read a selection, unless it is too large.
fn read(
    dataset: &Arc<Dataset>,
    slab: &Hyperslab,
) -> Option<std::result::Result<Vec<u8>, ReadError>> {
    let selected = slab.len().ok().filter(|&len| len <= MOST_READ)?;
    let mut out = vec![0; selected as usize * dataset.element_size()];
    Some(dataset.read(slab, &mut out).map(|()| out))
}

/// What a hyperslab selects of a whole array.
fn cut(whole: &[u8], shape: &[u64], slab: &Hyperslab, size: usize) -> Vec<u8> {
    if slab.is_empty() {
        return Vec::new();
    }
    let mut places = vec![0u64];
    for (axis, &len) in slab.axes().iter().zip(shape) {
        let indexes = (0..axis.len()).map(|place| axis.index_of(place));
        let indexes: Vec<u64> = indexes.collect();
        places = places
            .iter()
            .flat_map(|place| indexes.iter().map(move |index| place * len + index))
            .collect();
    }
    places.iter().flat_map(|&place| &whole[place as usize * size..][..size]).copied().collect()
}
