//! A read that is a part of one pass keeps nothing, and may go on without chunks.

#![allow(clippy::unwrap_used)] // A test may fail by panicking.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use chunkwise_codec::{Filter, Fletcher32, Pipeline};
use chunkwise_engine::{
    ChunkIndexBuilder, ChunkRecord, Dataset, DatasetInfo, Layout, MemoryStorage, OnePass,
    ReadError, cache_stats,
};
use chunkwise_select::{Dims, Hyperslab};

/// Six chunks of ten bytes with checksums, of which the fourth is damaged, the fifth cut off and
/// the last one was never written.
fn damaged(fill: Option<Vec<u8>>) -> Arc<Dataset> {
    let mut stored = Vec::new();
    let mut index = ChunkIndexBuilder::default();
    for position in 0..5u64 {
        let address = stored.len() as u64;
        let raw = [position as u8; 10];
        stored.extend_from_slice(&raw);
        // Fletcher-32 of ten equal bytes.
        let word = u32::from(position as u8) * 257;
        let low = (5 * word) % 65535;
        let high = (15 * word) % 65535;
        stored.extend_from_slice(&((high << 16) | low).to_le_bytes());
        let stored_nbytes = if position == 4 { 1 << 40 } else { 14 };
        index.push(position, ChunkRecord { address, stored_nbytes, filter_mask: 0 }).unwrap();
    }
    stored[3 * 14] ^= 1;
    let info = DatasetInfo {
        shape: [60].into_iter().collect::<Dims>(),
        element_size: 1,
        fill,
        layout: Layout::Chunked {
            chunk: [10].into_iter().collect::<Dims>(),
            pipeline: Pipeline::new(vec![Filter::Fletcher32(Fletcher32)]),
            unfiltered_partial_chunks: false,
            index: index.finish(6).unwrap().into(),
        },
    };
    Dataset::new(info, Arc::new(MemoryStorage(stored))).unwrap()
}

#[test]
fn lost_chunks_are_filled_and_listed() {
    for (fill, filled) in [(Some(vec![9]), 9), (None, 0)] {
        let dataset = damaged(fill);
        let slab = Hyperslab::new(&[60], &[5], &[50], &[1], &[50]).unwrap();
        let plan = dataset.plan(&slab).unwrap();
        let go_on = AtomicBool::new(false);
        let lost = Mutex::default();
        let pass = OnePass { threads: 2, ahead_nbytes: 0, lost: Some(&lost) };
        let mut out = vec![7; 50];
        let held = cache_stats().held_nbytes;
        dataset.read_once(&plan, &mut out, &go_on, pass).unwrap();
        assert_eq!(cache_stats().held_nbytes, held);
        let never = if filled == 0 { 7 } else { 9 };
        let expected = [(0, 5), (1, 10), (2, 10), (filled, 10), (filled, 10), (never, 5)];
        let expected = expected.iter().flat_map(|&(byte, n)| vec![byte; n]);
        assert_eq!(out, expected.collect::<Vec<u8>>());
        let mut origins: Vec<u64> =
            lost.into_inner().unwrap().iter().map(|chunk| chunk.chunk_origin[0]).collect();
        origins.sort_unstable();
        assert_eq!(origins, [30, 40]);

        let strict = OnePass { threads: 1, ahead_nbytes: 0, lost: None };
        let error = dataset.read_once(&plan, &mut out, &go_on, strict).unwrap_err();
        assert!(matches!(error, ReadError::Decode { .. } | ReadError::TruncatedChunk { .. }));
    }
}
