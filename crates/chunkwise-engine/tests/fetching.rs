//! How the path from storage to result behaves: what is asked of storage, and when.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use chunkwise_codec::{Filter, Pipeline, Shuffle};
use chunkwise_engine::{
    ChunkIndexBuilder, ChunkRecord, Dataset, DatasetInfo, Layout, MemoryStorage, ReadError,
    Storage, ThrottledStorage,
};
use chunkwise_select::{ChunkGrid, Hyperslab};

/// Bytes of `rows` x `columns` elements of two bytes, and the same stored in chunks, shuffled,
/// `gap` bytes between them.
fn stored(rows: u64, columns: u64, chunk: &[u64; 2], gap: usize) -> (Vec<u8>, Vec<u8>, Layout) {
    let shape = [rows, columns];
    let array: Vec<u8> = (0..rows * columns)
        .flat_map(|n| (((n * 2_654_435_761) >> 7) as u16).to_le_bytes())
        .collect();
    let grid = ChunkGrid::new(&shape, chunk).unwrap();
    let mut builder = ChunkIndexBuilder::default();
    let mut bytes = vec![0xAA; 100];
    for position in 0..grid.len() {
        let at = grid.chunk_index(position);
        let mut planes = [Vec::new(), Vec::new()];
        for row in 0..chunk[0] {
            for column in 0..chunk[1] {
                let (row, column) = (at[0] * chunk[0] + row, at[1] * chunk[1] + column);
                let place = (row * columns + column) as usize * 2;
                let inside = row < rows && column < columns;
                for (byte, plane) in planes.iter_mut().enumerate() {
                    plane.push(if inside { array[place + byte] } else { 0x55 });
                }
            }
        }
        let stored_nbytes = 2 * chunk[0] * chunk[1];
        let record = ChunkRecord { address: bytes.len() as u64, stored_nbytes, filter_mask: 0 };
        builder.push(position, record).unwrap();
        bytes.extend(planes.concat());
        bytes.extend(vec![0xBB; gap]);
    }
    let layout = Layout::Chunked {
        chunk: chunk.as_slice().into(),
        pipeline: Pipeline::new(vec![Filter::Shuffle(Shuffle { element_size: 2 })]),
        unfiltered_partial_chunks: false,
        index: builder.finish(grid.len()).unwrap().into(),
    };
    (array, bytes, layout)
}

fn dataset(shape: [u64; 2], layout: Layout, storage: Arc<dyn Storage>) -> Arc<Dataset> {
    let info = DatasetInfo { shape: shape.as_slice().into(), element_size: 2, fill: None, layout };
    Dataset::new(info, storage).unwrap()
}

fn whole(dataset: &Dataset) -> Vec<u8> {
    let slab = Hyperslab::all(dataset.shape());
    let mut out = vec![0; slab.len().unwrap() as usize * 2];
    dataset.read(&slab, &mut out).unwrap();
    out
}

#[test]
fn chunks_that_lie_together_are_read_together() {
    let (array, bytes, layout) = stored(500, 500, &[10, 50], 3);
    let slow = ThrottledStorage::new(Arc::new(MemoryStorage(bytes)), Duration::ZERO, None);
    let slow = Arc::new(slow);
    let dataset = dataset([500, 500], layout, Arc::clone(&slow) as _);
    assert_eq!(whole(&dataset), array);
    // 500 chunks of 1,000 bytes.
    assert!(slow.requests() <= 100, "{} requests", slow.requests());
    assert!(slow.nbytes() <= 500 * 1003);
}

#[test]
fn chunks_far_apart_are_read_without_what_lies_between() {
    let (array, bytes, layout) = stored(300, 300, &[50, 50], 40_000);
    let slow = ThrottledStorage::new(Arc::new(MemoryStorage(bytes)), Duration::ZERO, None);
    let slow = Arc::new(slow);
    let dataset = dataset([300, 300], layout, Arc::clone(&slow) as _);
    assert_eq!(whole(&dataset), array);
    assert_eq!((slow.requests(), slow.nbytes()), (36, 36 * 5000));
}

/// Notes how many reads are under way at the same time.
struct Watched {
    inner: ThrottledStorage,
    now: AtomicU64,
    most: AtomicU64,
}

impl Storage for Watched {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.most.fetch_max(self.now.fetch_add(1, SeqCst) + 1, SeqCst);
        let read = self.inner.read_at(address, out);
        self.now.fetch_sub(1, SeqCst);
        read
    }

    fn end(&self) -> u64 {
        self.inner.end()
    }

    fn read_at_once(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }
}

#[test]
fn slow_storage_is_asked_for_more_than_is_being_decoded() {
    let (array, bytes, layout) = stored(1000, 1000, &[100, 500], 40_000);
    let latency = Duration::from_millis(20);
    let inner = ThrottledStorage::new(Arc::new(MemoryStorage(bytes)), latency, Some(1 << 30));
    let storage = Watched { inner, now: AtomicU64::new(0), most: AtomicU64::new(0) };
    let storage = Arc::new(storage);
    let dataset = dataset([1000, 1000], layout, Arc::clone(&storage) as _);
    assert_eq!(whole(&dataset), array);
    // Each chunk once; and four threads that fetch beside those that decode.
    assert_eq!(storage.inner.requests(), 20);
    assert!(storage.most.load(SeqCst) >= 3);
}

#[test]
fn a_read_that_is_cancelled_or_fails_ends_those_who_fetch_for_it() {
    let (_, mut bytes, layout) = stored(1000, 1000, &[100, 500], 40_000);
    let slab = Hyperslab::all(&[1000, 1000]);
    let mut out = vec![0; 2_000_000];
    let latency = Duration::from_millis(1);
    let slow = ThrottledStorage::new(Arc::new(MemoryStorage(bytes.clone())), latency, None);
    let whole = dataset([1000, 1000], layout.clone(), Arc::new(slow));
    let plan = whole.plan(&slab).unwrap();
    let cancelled = AtomicBool::new(true);
    assert_eq!(whole.read_plan(&plan, &mut out, &cancelled), Err(ReadError::Cancelled));
    // The file ends within the last chunk.
    bytes.truncate(bytes.len() - 40_001);
    let end = bytes.len() as u64;
    let slow = ThrottledStorage::new(Arc::new(MemoryStorage(bytes)), latency, None);
    let cut = dataset([1000, 1000], layout, Arc::new(slow));
    match cut.read(&slab, &mut out) {
        Err(ReadError::TruncatedChunk { place, end: at }) => {
            assert_eq!((place.chunk_origin.as_slice(), at), (&[900, 500][..], end));
        }
        other => panic!("{other:?}"),
    }
}
