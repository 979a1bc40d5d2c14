//! One large chunk that several threads encode: is it, byte for byte, what one thread makes of it?

#![allow(clippy::unwrap_used)]

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use chunkwise_codec::{Effort, Encoder, Encoding, Filter, Pipeline, Step};
use chunkwise_engine::{
    ChunkStore, CommitError, Committer, DatasetWriter, EncodedChunk, WriteInfo, set_threads,
};
use chunkwise_select::{Dims, Hyperslab};

const SHAPE: [u64; 3] = [3, 700, 1000];
const CHUNK: [u64; 3] = [1, 700, 1000];

/// A chunk that was committed: origin, filter mask, bytes.
type Committed = (Dims, u32, Vec<u8>);

#[derive(Default, Clone)]
struct Kept(Arc<Mutex<Vec<Committed>>>);

impl Committer for Kept {
    fn commit(&mut self, chunks: &[EncodedChunk]) -> Result<(), CommitError> {
        let mut kept = self.0.lock().unwrap();
        for chunk in chunks {
            kept.push((chunk.chunk_origin.clone(), chunk.filter_mask, chunk.bytes.clone()));
        }
        Ok(())
    }
}

impl ChunkStore for Kept {
    fn are_stored(&mut self, chunk_origins: &[Dims]) -> Vec<bool> {
        vec![false; chunk_origins.len()]
    }

    fn stored(&mut self, _: &[u64], _: &mut Vec<u8>) -> Result<Option<u32>, String> {
        Ok(None)
    }
}

/// Chunks `0..chunks` written with this many threads.
fn written(filter: (i32, &[u32]), threads: usize, chunks: u64, data: &[u8]) -> Vec<Committed> {
    set_threads(threads.try_into().ok());
    let encoder = Encoder::from_hdf5(filter.0, filter.1).unwrap();
    let info = WriteInfo {
        shape: SHAPE.as_slice().into(),
        max_shape: SHAPE.as_slice().into(),
        chunk: CHUNK.as_slice().into(),
        element_size: 2,
        fill: None,
        encoding: Encoding::new(vec![Step { encoder, optional: true }]),
        pipeline: Pipeline::new(vec![Filter::from_hdf5(filter.0, filter.1).unwrap()]),
        unfiltered_partial_chunks: false,
    };
    let kept = Kept::default();
    let mut writer = DatasetWriter::new(info, Box::new(kept.clone()), None, Effort::Fast).unwrap();
    let count = [chunks, SHAPE[1], SHAPE[2]];
    let slab = Hyperslab::new(&SHAPE, &[0; 3], &[1; 3], &count, &[1; 3]).unwrap();
    let nbytes = (count.iter().product::<u64>() * 2) as usize;
    writer.write(&slab, &data[..nbytes], &AtomicBool::new(false)).unwrap();
    writer.flush(&AtomicBool::new(false)).unwrap();
    set_threads(None);
    let mut made = std::mem::take(&mut *kept.0.lock().unwrap());
    made.sort();
    made
}

#[test]
fn several_threads_make_the_bytes_of_one() {
    let elements = SHAPE.iter().product::<u64>();
    let noisy = |number: u64| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as u16;
    let data: Vec<u8> = (0..elements)
        .flat_map(|number| (noisy(number) + (number / 1000) as u16).to_le_bytes())
        .collect();
    let nbytes = 2 * CHUNK.iter().product::<u64>() as u32;
    let filters: [(i32, &[u32]); 7] = [
        (32008, &[0, 4, 2, 0, 2]),
        (32008, &[0, 4, 2, 0, 0]),
        (32001, &[2, 2, 2, nbytes, 5, 1, 1]),
        // Stored as it is, as nothing is compressed.
        (32001, &[2, 2, 2, nbytes, 0, 1, 1]),
        (32004, &[3000]),
        (32026, &[2, 20_000, 2, nbytes, 5, 1, 1]),
        (32026, &[2, 0, 2, nbytes, 5, 1, 1, 3, 1, 700, 1000]),
    ];
    for filter in filters {
        for chunks in [1, 3] {
            let one = written(filter, 1, chunks, &data);
            assert_eq!(one.len() as u64, chunks);
            assert!(written(filter, 4, chunks, &data) == one, "{filter:?}");
        }
    }
}
