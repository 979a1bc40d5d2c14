//! Sixteen threads that want parts of the same chunks: one decodes each.  Alone in its process, as
//! the count is the process's.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Barrier};

use chunkwise_codec::{Filter, Pipeline, Shuffle};
use chunkwise_engine::{
    ChunkIndexBuilder, ChunkRecord, Dataset, DatasetInfo, Layout, MemoryStorage, cache_stats,
};
use chunkwise_select::Hyperslab;

const ROWS: u64 = 400;
const CHUNK_ROWS: u64 = 100;
const COLUMNS: u64 = 1000;

#[test]
fn each_chunk_is_decoded_once() {
    // Each byte tells its row; shuffling single bytes leaves them as they are.
    let array: Vec<u8> = (0..ROWS * COLUMNS).map(|n| (n / COLUMNS) as u8).collect();
    let mut index = ChunkIndexBuilder::default();
    let stored_nbytes = CHUNK_ROWS * COLUMNS;
    for position in 0..ROWS / CHUNK_ROWS {
        let address = position * stored_nbytes;
        index.push(position, ChunkRecord { address, stored_nbytes, filter_mask: 0 }).unwrap();
    }
    let layout = Layout::Chunked {
        chunk: [CHUNK_ROWS, COLUMNS].as_slice().into(),
        pipeline: Pipeline::new(vec![Filter::Shuffle(Shuffle { element_size: 2 })]),
        unfiltered_partial_chunks: false,
        index: index.finish(ROWS / CHUNK_ROWS).unwrap().into(),
    };
    let shape = [ROWS, COLUMNS];
    let info = DatasetInfo { shape: shape.as_slice().into(), element_size: 1, fill: None, layout };
    let stored: Vec<u8> = array
        .chunks_exact(stored_nbytes as usize)
        .flat_map(|raw| [raw.iter().step_by(2), raw[1..].iter().step_by(2)])
        .flat_map(|plane| plane.copied().collect::<Vec<_>>())
        .collect();
    let dataset = Dataset::new(info, Arc::new(MemoryStorage(stored))).unwrap();
    let together = Barrier::new(16);
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (dataset, array, together) = (&dataset, &array, &together);
            scope.spawn(move || {
                let mut out = vec![0; COLUMNS as usize];
                together.wait();
                for step in 0..ROWS {
                    let row = (step + thread * 25) % ROWS;
                    let slab =
                        Hyperslab::new(&shape, &[row, 0], &[1, 1], &[1, 1], &[1, COLUMNS]).unwrap();
                    dataset.read(&slab, &mut out).unwrap();
                    assert_eq!(out, array[(row * COLUMNS) as usize..][..COLUMNS as usize]);
                }
            });
        }
    });
    assert_eq!(cache_stats().decoded, ROWS / CHUNK_ROWS);
}
