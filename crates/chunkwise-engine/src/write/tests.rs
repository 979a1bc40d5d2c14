//! Whatever is written, in whichever order and with whatever budget: the chunks hold what an
//! array in memory holds, and none is encoded more often than it has to be.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use chunkwise_codec::{
    Deflate, Effort, Encoder, Encoding, Filter, Fletcher32, Pipeline, Scratch, Shuffle, Step,
};
use chunkwise_select::{ChunkGrid, Dims, Hyperslab, Plan};
use proptest::prelude::*;

use crate::gather;
use crate::write::{
    ChunkStore, CommitError, Committer, DatasetWriter, EncodedChunk, WholeChunks, WriteError,
    WriteInfo,
};

/// Chunks by their origins, and how often each was committed.
#[derive(Default, Clone)]
struct Kept(Arc<Mutex<Chunks>>);

#[derive(Default)]
struct Chunks {
    stored: BTreeMap<Dims, (u32, Vec<u8>)>,
    commits: Vec<Dims>,
    /// This many more are taken.
    room: Option<usize>,
}

impl Committer for Kept {
    fn commit(&mut self, chunks: &[EncodedChunk]) -> Result<(), CommitError> {
        let mut kept = self.0.lock().unwrap();
        for chunk in chunks {
            if kept.room == Some(0) {
                let chunk_origin = chunk.chunk_origin.clone();
                let message = "full".to_string();
                return Err(CommitError { chunk_origin, stored_nbytes: 1, message });
            }
            kept.room = kept.room.map(|room| room - 1);
            let origin = chunk.chunk_origin.clone();
            kept.stored.insert(origin.clone(), (chunk.filter_mask, chunk.bytes.clone()));
            kept.commits.push(origin);
        }
        Ok(())
    }
}

impl ChunkStore for Kept {
    fn are_stored(&mut self, chunk_origins: &[Dims]) -> Vec<bool> {
        let kept = self.0.lock().unwrap();
        chunk_origins.iter().map(|origin| kept.stored.contains_key(origin)).collect()
    }

    fn stored(&mut self, chunk_origin: &[u64], bytes: &mut Vec<u8>) -> Result<Option<u32>, String> {
        let kept = self.0.lock().unwrap();
        let found = kept.stored.get(chunk_origin);
        Ok(found.map(|(mask, stored)| {
            bytes.clone_from(stored);
            *mask
        }))
    }
}

const FILL: [u8; 2] = [7, 9];

fn info(shape: &[u64], max_shape: &[u64], chunk: &[u64]) -> WriteInfo {
    let encoders = [Encoder::Shuffle(Shuffle { element_size: 2 }), Encoder::Fletcher32(Fletcher32)];
    let steps = encoders.map(|encoder| Step { encoder, optional: true }).to_vec();
    WriteInfo {
        shape: shape.into(),
        max_shape: max_shape.into(),
        chunk: chunk.into(),
        element_size: 2,
        fill: Some(FILL.to_vec()),
        encoding: Encoding::new(steps),
        pipeline: Pipeline::new(vec![
            Filter::Shuffle(Shuffle { element_size: 2 }),
            Filter::Fletcher32(Fletcher32),
        ]),
        unfiltered_partial_chunks: false,
    }
}

fn writer(info: WriteInfo, kept: &Kept, budget: usize) -> DatasetWriter {
    DatasetWriter::new(info, Box::new(kept.clone()), budget, Effort::AsStated).unwrap()
}

static FALSE: AtomicBool = AtomicBool::new(false);
static NEVER: &AtomicBool = &FALSE;

fn slab(shape: &[u64], start: &[u64], count: &[u64]) -> Hyperslab {
    let ones = vec![1; shape.len()];
    Hyperslab::new(shape, start, &ones, count, &ones).unwrap()
}

/// Everything, as a reader sees it.
fn contents(info: &WriteInfo, shape: &[u64], kept: &Kept) -> Vec<u8> {
    let grid = ChunkGrid::new(shape, &info.chunk).unwrap();
    let mut array = vec![0; shape.iter().product::<u64>() as usize * 2];
    let all = Hyperslab::all(shape);
    for task in Plan::new(&grid, &all).unwrap().tasks() {
        let origin: Dims =
            task.chunk_index().iter().zip(grid.chunk()).map(|(i, c)| i * c).collect();
        let mut raw = FILL.repeat(grid.chunk_len() as usize);
        if let Some((mask, stored)) = kept.0.lock().unwrap().stored.get(&origin) {
            info.pipeline.decode(stored, *mask, &mut Scratch::default(), &mut raw).unwrap();
        }
        task.for_each_strip(|strip| {
            for (src, dst) in strip.places() {
                let (src, dst) = (src as usize * 2, dst as usize * 2);
                array[dst..dst + 2].copy_from_slice(&raw[src..src + 2]);
            }
        });
    }
    array
}

/// The model of one write.
fn put(array: &mut [u8], shape: &[u64], slab: &Hyperslab, data: &[u8]) {
    let grid = ChunkGrid::new(shape, shape).unwrap();
    for task in Plan::new(&grid, slab).unwrap().tasks() {
        task.for_each_strip(|strip| {
            for (src, dst) in strip.places() {
                let (src, dst) = (src as usize * 2, dst as usize * 2);
                array[src..src + 2].copy_from_slice(&data[dst..dst + 2]);
            }
        });
    }
}

/// Bytes that tell one write from another.
fn values(number: usize, elements: u64) -> Vec<u8> {
    (0..elements as usize * 2).map(|i| (number * 31 + i) as u8).collect()
}

/// Start, stride, count and block along one dimension.
type Part = (u64, u64, u64, u64);

/// One dimension: size, chunk, and writes as start, stride, count, block.
fn axis() -> impl Strategy<Value = (u64, u64, Vec<Part>)> {
    (1u64..14, 1u64..6).prop_flat_map(|(size, chunk)| {
        let one = (0..size, 1..4u64, 1..4u64).prop_flat_map(move |(start, block, more)| {
            let block = block.min(size - start);
            let stride = block + more - 1;
            (0..=(size - start - block) / stride)
                .prop_map(move |after| (start, stride, after + 1, block))
        });
        (Just(size), Just(chunk), prop::collection::vec(one, 12))
    })
}

proptest! {
    #[test]
    fn any_writes_give_what_an_array_gives(
        axes in prop::collection::vec(axis(), 1..4),
        writes in 1usize..12,
        budget in prop_oneof![Just(0usize), 1usize..400, Just(1 << 20)],
        flush_at in 0usize..12,
        grows in any::<bool>(),
    ) {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let chunk: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
        let max_shape = if grows { vec![u64::MAX; shape.len()] } else { shape.clone() };
        let info = info(&shape, &max_shape, &chunk);
        let kept = Kept::default();
        let mut written = writer(info.clone(), &kept, budget);
        let mut model = FILL.repeat(shape.iter().product::<u64>() as usize);
        for number in 0..writes {
            let part = |pick: fn(&Part) -> u64| -> Vec<u64> {
                axes.iter().map(|axis| pick(&axis.2[number])).collect()
            };
            let slab = Hyperslab::new(
                &shape, &part(|p| p.0), &part(|p| p.1), &part(|p| p.2), &part(|p| p.3),
            ).unwrap();
            let data = values(number, slab.len().unwrap());
            written.write(&slab, &data, NEVER).unwrap();
            put(&mut model, &shape, &slab, &data);
            // At most the chunks in work are held beyond the budget.
            prop_assert!(written.held_nbytes() <= budget);
            if number == flush_at {
                written.flush(NEVER).unwrap();
                prop_assert_eq!(contents(&info, &shape, &kept), model.clone());
            }
        }
        written.flush(NEVER).unwrap();
        prop_assert_eq!(written.dirty_chunks(), 0);
        prop_assert_eq!(contents(&info, &shape, &kept), model);
    }

    /// What is written at once is each chunk that is covered whole, and nothing else.
    #[test]
    fn whole_chunks_are_written_at_once(
        axes in prop::collection::vec((1u64..14, 1u64..6, 0u64..14, 0u64..14, 0u64..3), 1..4),
        growing in any::<bool>(),
        unfiltered in any::<bool>(),
    ) {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let chunk: Vec<u64> = axes.iter().map(|axis| axis.1).collect();
        let max_shape: Vec<u64> = axes.iter().map(|axis| axis.0 + axis.4 * 9).collect();
        let info = WriteInfo {
            unfiltered_partial_chunks: unfiltered,
            ..info(&shape, &max_shape, &chunk)
        };
        let start: Vec<u64> = axes.iter().map(|axis| axis.2.min(axis.3).min(axis.0)).collect();
        let count: Vec<u64> =
            axes.iter().zip(&start).map(|(axis, &at)| axis.2.max(axis.3).min(axis.0) - at).collect();
        let slab = slab(&shape, &start, &count);
        let data = values(1, count.iter().product());
        let mut kept = Kept::default();
        let mut written = WholeChunks::new(info.clone()).unwrap();
        written.write(&slab, growing, &data, &mut kept).unwrap();

        let mut model = FILL.repeat(shape.iter().product::<u64>() as usize);
        if let Some(part) = written.whole_part(&slab, growing) {
            let mut wanted = model.clone();
            put(&mut wanted, &shape, &slab, &data);
            for place in 0..model.len() / 2 {
                let mut rest = place as u64;
                let inside = shape.iter().zip(&part).rev().all(|(size, bounds)| {
                    let at = rest % size;
                    rest /= size;
                    bounds.contains(&at)
                });
                if inside {
                    let bytes = place * 2..place * 2 + 2;
                    model[bytes.clone()].copy_from_slice(&wanted[bytes]);
                }
            }
        }
        prop_assert_eq!(contents(&info, &shape, &kept), model);

        let grid = ChunkGrid::new(&shape, &chunk).unwrap();
        let plan = Plan::new(&grid, &slab).unwrap();
        let whole = plan.tasks().filter(|task| {
            let index = task.chunk_index();
            // Each dimension for itself: the edge along another one does not count.
            let may_grow = index.iter().enumerate().any(|(d, i)| {
                (i + 1) * chunk[d] > shape[d] && shape[d] < max_shape[d]
            });
            task.takes_all()
                && (growing || !may_grow)
                && !(unfiltered && grid.is_partial(&index))
        });
        prop_assert_eq!(kept.0.lock().unwrap().commits.len(), whole.count());
    }

    /// Lines, of all levels or of one level at a time: whatever the order, each chunk is encoded
    /// once, and nothing is read back.
    #[test]
    fn lines_in_any_order_encode_each_chunk_once(
        order in Just((0..6u64 * 7).collect::<Vec<_>>()).prop_shuffle(),
        lines in 1u64..4,
        edges in 0u64..3,
    ) {
        let (shape, chunk) = ([7, 6 * lines + edges, 10], [3, 4, 5]);
        let info = info(&shape, &shape, &chunk);
        let kept = Kept::default();
        let mut written = writer(info.clone(), &kept, 1 << 20);
        let mut model = FILL.repeat(shape.iter().product::<u64>() as usize);
        for (number, place) in order.into_iter().enumerate() {
            let (level, line) = (place / 6, place % 6);
            let rest = if line == 5 { edges } else { 0 };
            let slab = slab(&shape, &[level, line * lines, 0], &[1, lines + rest, 10]);
            let data = values(number, slab.len().unwrap());
            written.write(&slab, &data, NEVER).unwrap();
            put(&mut model, &shape, &slab, &data);
        }
        written.flush(NEVER).unwrap();
        prop_assert_eq!(contents(&info, &shape, &kept), model);
        let commits = kept.0.lock().unwrap().commits.clone();
        prop_assert_eq!(commits.len() as u64, written.grid.len());
        prop_assert_eq!(written.stats().read_back, 0);
    }
}

#[test]
fn chunks_covered_whole_never_wait() {
    let (shape, chunk) = ([66, 32, 20], [11, 8, 5]);
    let kept = Kept::default();
    let mut written = writer(info(&shape, &shape, &chunk), &kept, 0);
    for line in [3, 0, 2, 1] {
        let slab = slab(&shape, &[0, line * 8, 0], &[66, 8, 20]);
        written.write(&slab, &values(line as usize, 66 * 8 * 20), NEVER).unwrap();
        assert_eq!(written.held_nbytes(), 0);
    }
    assert_eq!((written.stats().committed, written.stats().read_back), (6 * 4 * 4, 0));
}

#[test]
fn appended_rows_fill_a_chunk_before_it_is_encoded() {
    let (chunk, most) = ([4, 3], [u64::MAX, 6]);
    let info = info(&[0, 6], &most, &chunk);
    let kept = Kept::default();
    let mut written = writer(info.clone(), &kept, 200);
    let mut model = Vec::new();
    for row in 0..21u64 {
        let shape = [row + 1, 6];
        written.set_shape(&shape).unwrap();
        let data = values(row as usize, 6);
        written.write(&slab(&shape, &[row, 0], &[1, 6]), &data, NEVER).unwrap();
        model.extend(data);
    }
    assert_eq!(written.stats().committed, 10);
    written.flush(NEVER).unwrap();
    assert_eq!((written.stats().committed, written.stats().read_back), (12, 0));
    assert_eq!(contents(&info, &[21, 6], &kept), model);
    // The last chunk is there already, and is needed.
    written.set_shape(&[22, 6]).unwrap();
    let data = values(50, 6);
    written.write(&slab(&[22, 6], &[21, 0], &[1, 6]), &data, NEVER).unwrap();
    written.flush(NEVER).unwrap();
    model.extend(data);
    assert_eq!((written.stats().committed, written.stats().read_back), (14, 2));
    assert_eq!(contents(&info, &[22, 6], &kept), model);
}

#[test]
fn what_a_smaller_shape_cuts_off_does_not_come_back() {
    let info = info(&[8], &[u64::MAX], &[4]);
    let kept = Kept::default();
    let mut written = writer(info.clone(), &kept, 1 << 20);
    written.write(&slab(&[8], &[1], &[6]), &values(1, 6), NEVER).unwrap();
    written.set_shape(&[2]).unwrap();
    assert_eq!(written.dirty_chunks(), 1);
    written.set_shape(&[8]).unwrap();
    written.flush(NEVER).unwrap();
    let model = [FILL.to_vec(), values(1, 1), FILL.repeat(6)].concat();
    assert_eq!(contents(&info, &[8], &kept), model);
}

#[test]
fn what_cannot_be_committed_stays() {
    let (shape, chunk) = ([12], [3]);
    let info = info(&shape, &shape, &chunk);
    let kept = Kept::default();
    let mut written = writer(info.clone(), &kept, 1 << 20);
    for at in 0..12 {
        written.write(&slab(&shape, &[at], &[1]), &values(at as usize, 1), NEVER).unwrap();
    }
    kept.0.lock().unwrap().room = Some(2);
    assert!(matches!(written.flush(NEVER), Err(WriteError::Commit(_))));
    let cancelled = written.flush(&AtomicBool::new(true));
    assert_eq!(cancelled, Err(WriteError::Cancelled));
    assert!(written.dirty_chunks() >= 2);
    kept.0.lock().unwrap().room = None;
    written.flush(NEVER).unwrap();
    let model: Vec<u8> = (0..12).flat_map(|at| values(at, 1)).collect();
    // Each flush in order; what was handed over together with what failed comes once more.
    let commits = kept.0.lock().unwrap().commits.clone();
    assert!(commits.chunk_by(|one, next| one < next).count() <= 3);
    assert_eq!(contents(&info, &shape, &kept), model);
}

#[test]
fn partial_chunks_may_go_unfiltered() {
    let info = WriteInfo { unfiltered_partial_chunks: true, ..info(&[5], &[5], &[3]) };
    let kept = Kept::default();
    let mut written = writer(info, &kept, 0);
    written.write(&slab(&[5], &[0], &[5]), &values(0, 5), NEVER).unwrap();
    let stored = |at| kept.0.lock().unwrap().stored[&Dims::from_slice(&[at])].clone();
    assert_eq!(stored(0).1.len(), 6 + 4);
    assert_eq!(stored(3), (0, [&values(0, 5)[6..], &FILL].concat()));
    // Merged with what is there, which has no filters either.
    written.write(&slab(&[5], &[4], &[1]), &values(9, 1), NEVER).unwrap();
    assert_eq!(stored(3), (0, [&values(0, 5)[6..8], &values(9, 1), &FILL].concat()));
}

#[test]
fn what_does_not_fit_is_refused() {
    let kept = Kept::default();
    let mut written = writer(info(&[5], &[5], &[3]), &kept, 0);
    let short = written.write(&slab(&[5], &[0], &[5]), &[0; 9], NEVER);
    assert_eq!(short, Err(WriteError::Source { selected: 10, given: 9 }));
    let beyond = written.write(&slab(&[9], &[4], &[3]), &[0; 6], NEVER);
    assert!(matches!(beyond, Err(WriteError::Select(_))));
    assert_eq!(written.stats().committed, 0);
}

#[test]
fn data_is_gathered_as_reading_scatters_it() {
    let shape = [9, 8];
    let info = info(&shape, &shape, &[4, 3]);
    let kept = Kept::default();
    let data = values(3, 72);
    writer(info.clone(), &kept, 0).write(&Hyperslab::all(&shape), &data, NEVER).unwrap();
    assert_eq!(contents(&info, &shape, &kept), data);
    let part = slab(&shape, &[2, 1], &[5, 6]);
    let mut out = vec![0; 60];
    gather(&shape, &contents(&info, &shape, &kept), 2, &part, &mut out).unwrap();
    let mut expected = vec![0; 60];
    gather(&shape, &data, 2, &part, &mut expected).unwrap();
    assert_eq!(out, expected);
}

#[test]
fn chunks_of_the_file_wait_for_a_flush_within_the_budget() {
    let info = info(&[12], &[12], &[3]);
    let kept = Kept::default();
    // A chunk takes six bytes, and eight to tell which of its elements are covered.
    let budget = 2 * 14;
    let mut written = writer(info.clone(), &kept, budget);
    let everything = slab(&[12], &[0], &[12]);
    written.write(&everything, &values(0, 12), NEVER).unwrap();
    // The file had none of them: they went at once.
    assert_eq!((written.stats().committed, written.dirty_chunks()), (4, 0));
    let before = contents(&info, &[12], &kept);
    written.write(&slab(&[12], &[0], &[6]), &values(5, 6), NEVER).unwrap();
    // In parts, too, until nothing is missing.
    written.write(&slab(&[12], &[0], &[1]), &values(6, 1), NEVER).unwrap();
    assert_eq!((written.stats().committed, written.dirty_chunks()), (4, 2));
    assert_eq!(contents(&info, &[12], &kept), before);
    // Others go at once where there is no room for them.
    written.write(&slab(&[12], &[6], &[3]), &values(7, 3), NEVER).unwrap();
    assert_eq!((written.stats().committed, written.dirty_chunks()), (5, 2));
    assert!(written.held_nbytes() <= budget);
    // A part of one drives out those that wait for the flush alone.
    written.write(&slab(&[12], &[9], &[1]), &values(8, 1), NEVER).unwrap();
    assert!(written.held_nbytes() <= budget);
    assert!(written.stats().committed > 5);
    written.flush(NEVER).unwrap();
    let mut model = values(0, 12);
    model[..12].copy_from_slice(&values(5, 6));
    model[..2].copy_from_slice(&values(6, 1));
    model[12..18].copy_from_slice(&values(7, 3));
    model[18..20].copy_from_slice(&values(8, 1));
    assert_eq!(contents(&info, &[12], &kept), model);
}

#[test]
fn encoders_are_not_tried_where_that_takes_longer_than_it_gains() {
    let chunk = 1u64 << 17;
    let deflating = |shape: u64, max_shape: u64| {
        let step = Step { encoder: Encoder::deflate(4), optional: true };
        let encoding = Encoding::new(vec![step]);
        let pipeline = Pipeline::new(vec![Filter::Deflate(Deflate)]);
        WriteInfo { encoding, pipeline, ..info(&[shape], &[max_shape], &[chunk]) }
    };
    let data: Vec<u8> = (0..chunk as u32).flat_map(|i| (i as u16 / 7).to_le_bytes()).collect();
    let write = |writer: &mut DatasetWriter, number: u64| {
        let shape: Vec<u64> = writer.shape().to_vec();
        writer.write(&slab(&shape, &[number * chunk], &[chunk]), &data, NEVER).unwrap();
        writer.tuning().is_some()
    };
    // To try takes several times as long as to encode: of one chunk nothing is gained by it.
    for (chunks, tried) in [(1, false), (3, false), (4, true)] {
        let info = deflating(chunks * chunk, chunks * chunk);
        let kept = Kept::default();
        let mut writer = writer(info.clone(), &kept, 1 << 20);
        assert_eq!(write(&mut writer, 0), tried, "{chunks}");
        assert_eq!(contents(&info, &[chunks * chunk], &kept)[..data.len()], data);
    }
    // What grows is asked again when there is more of it.
    let mut growing = writer(deflating(chunk, u64::MAX), &Kept::default(), 1 << 20);
    let tried: Vec<bool> = (0..40)
        .map(|number| {
            growing.set_shape(&[(number + 1) * chunk]).unwrap();
            write(&mut growing, number)
        })
        .collect();
    assert_eq!((tried[0], tried[39]), (false, true));
}
