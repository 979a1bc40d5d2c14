//! Is a chunk that is decoded block by block the one that is decoded whole?

use proptest::prelude::*;

use crate::{
    Blocks, Deflate, EncodeScratch, Encoder, Encoding, Filter, Fletcher32, Pipeline, Scratch,
    Shuffle, Step,
};

/// Filters that store blocks: number, options, and the length of a chunk that they take.
fn filters() -> impl Strategy<Value = (i32, Vec<u32>, usize)> {
    let size = prop_oneof![Just(1u32), Just(2), Just(4), Just(8), Just(3)];
    let bitshuffle =
        (size.clone(), 0u32..4, prop_oneof![Just(0u32), Just(2), Just(3)], 1usize..9000).prop_map(
            |(size, eights, inner, elements)| {
                // Blocks of 64 bytes are not offered, larger ones are.
                let block = if eights == 0 { 0 } else { eights * 512 };
                (32008, vec![0, 4, size, block, inner, 3], elements * size as usize)
            },
        );
    let lz4 = (512u32..5000, 1usize..30_000).prop_map(|(block, len)| (32004, vec![block], len));
    let blosc = (size.clone(), 1u32..10, 0u32..3, 0u32..6, 1usize..300_000)
        .prop_filter("no snappy", |options| options.3 != 3)
        .prop_map(|(size, level, shuffle, compressor, len)| {
            let level = if compressor == 5 { level.min(5) } else { level };
            (32001, vec![2, 2, size, 0, level, shuffle, compressor], len)
        });
    let blosc2 = (size.clone(), 0u32..10, 0u32..3, 0u32..6, 1usize..30_000, 512u32..9000)
        .prop_filter("no snappy", |options| options.3 != 3)
        .prop_map(|(size, level, filter, compressor, elements, block)| {
            let level = if compressor == 5 { level.min(5) } else { level };
            let len = elements * size as usize;
            (32026, vec![2, block, size, len as u32, level, filter, compressor], len)
        });
    let boxes = (size, 1u32..8, 0u32..3, prop::collection::vec(1u32..40, 2..5), 600u32..9000)
        .prop_filter("not too large", |options| options.3.iter().product::<u32>() < 60_000)
        .prop_map(|(size, level, filter, shape, block)| {
            let len = size * shape.iter().product::<u32>();
            let mut options = vec![2, block, size, len, level, filter, 1, shape.len() as u32];
            options.extend(shape);
            (32026, options, len as usize)
        });
    prop_oneof![bitshuffle, lz4, blosc, blosc2, boxes]
}

/// Bytes that compress here and there.
fn raw(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    (0..len)
        .map(|at| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if at / 700 % 3 == 0 { (state >> 60) as u8 } else { (at / 100) as u8 }
        })
        .collect()
}

fn encoded(id: i32, options: &[u32], raw: &[u8]) -> (Pipeline, Vec<u8>) {
    let encoder = Encoder::from_hdf5(id, options).unwrap();
    let encoding = Encoding::new(vec![Step { encoder, optional: false }]);
    let mut stored = Vec::new();
    encoding.encode(raw, &mut EncodeScratch::default(), &mut stored).unwrap();
    (Pipeline::new(vec![Filter::from_hdf5(id, options).unwrap()]), stored)
}

fn decode_each(blocks: &mut Blocks<'_>, len: usize, scratch: &mut Scratch) -> Option<Vec<u8>> {
    if !blocks.find(blocks.count()) {
        return None;
    }
    let mut out = vec![0xa5; len];
    for number in 0..blocks.ranges() {
        let (bytes, numbers) = blocks.range(number);
        for number in numbers {
            let stored = blocks.stored(number)?;
            blocks.decode(number, stored, scratch, bytes.start, &mut out[bytes.clone()]).ok()?;
        }
    }
    Some(out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn blocks_make_up_the_chunk(
        (id, options, len) in filters(),
        seed in any::<u64>(),
        (from, to) in (0f64..1.0, 0f64..1.0),
        cuts in prop::collection::btree_set(0usize..1000, 0..12),
    ) {
        let raw = raw(len, seed);
        let (pipeline, stored) = encoded(id, &options, &raw);
        let mut scratch = Scratch::default();
        let mut whole = vec![1; len];
        pipeline.decode(&stored, 0, &mut scratch, &mut whole).unwrap();
        prop_assert!(whole == raw);
        prop_assert!(pipeline.has_blocks(0) && !pipeline.has_blocks(1));
        let Some(mut blocks) = pipeline.blocks(&stored, 0, len, &mut scratch) else {
            // Where they are small.
            prop_assert!(len < 600 || id == 32026, "{} bytes have no blocks", len);
            return Ok(());
        };
        prop_assert!(decode_each(&mut blocks, len, &mut scratch) == Some(raw.clone()));
        // Ranges follow each other, and so do their blocks.
        let (mut byte, mut block) = (0, 0);
        for number in 0..blocks.ranges() {
            let (bytes, numbers) = blocks.range(number);
            prop_assert_eq!((bytes.start, numbers.start), (byte, block));
            (byte, block) = (bytes.end, numbers.end);
        }
        prop_assert_eq!((byte, block), (len, blocks.count()));
        // A part, out of those that are marked alone.
        let (from, to) = ((from * len as f64) as usize, (to * len as f64) as usize);
        let part = from.min(to)..from.max(to) + 1;
        let mut marks = vec![false; blocks.count()];
        blocks.mark(part.clone(), &mut marks);
        let last = marks.iter().rposition(|&marked| marked).unwrap();
        let mut blocks = pipeline.blocks(&stored, 0, len, &mut scratch).unwrap();
        prop_assert!(blocks.find(last + 1));
        // What was found is found at once the next time, and what follows from there.
        let places = blocks.found().unwrap();
        prop_assert!(places.len() > last && places.len() <= blocks.count());
        let mut known = pipeline.blocks(&stored, 0, len, &mut scratch).unwrap();
        known.know(places);
        prop_assert!(known.found().is_none() && known.find(last + 1));
        prop_assert!((0..=last).all(|number| known.stored(number) == blocks.stored(number)));
        prop_assert!(decode_each(&mut known, len, &mut scratch) == Some(raw.clone()));
        prop_assert!(known.found().is_none_or(|places| places.len() == blocks.count()));
        // Of other bytes they may say anything; only the error is certain.
        let few = &stored[..stored.len() - stored.len().min(9)];
        if let Some(mut cut) = pipeline.blocks(few, 0, len, &mut scratch) {
            cut.know(blocks.found().unwrap());
            prop_assert!(decode_each(&mut cut, len, &mut scratch).is_none());
        }
        let mut out = vec![0x5a; len];
        let mut again = vec![0x5a; len];
        // Runs of it, too, out of kept blocks.
        let cuts: Vec<usize> = cuts.into_iter().map(|cut| cut * (len + 1) / 1000).collect();
        let pairs = cuts.chunks_exact(2).map(|pair| pair[0]..pair[1]);
        let runs: Vec<_> = pairs.filter(|run| !run.is_empty()).collect();
        let (mut some, mut held) = (vec![0x5a; len], vec![0; len]);
        for number in (0..marks.len()).filter(|&number| marks[number]) {
            let stored = blocks.stored(number).unwrap();
            blocks.decode(number, stored, &mut scratch, 0, &mut out).unwrap();
            let mut kept = Vec::new();
            blocks.take(number, &out, &mut kept);
            prop_assert_eq!(kept.len(), blocks.nbytes_of(number));
            blocks.put(number, &kept, &mut again);
            blocks.put_some(number, &kept, &runs, &mut some);
            blocks.put(number, &vec![1; kept.len()], &mut held);
        }
        let is_put = |at: usize| held[at] == 1 && runs.iter().any(|run| run.contains(&at));
        let right = |at: usize| some[at] == if is_put(at) { raw[at] } else { 0x5a };
        prop_assert!((0..len).all(right));
        prop_assert!(out[part.clone()] == raw[part]);
        prop_assert!(out == again);
        // No other bytes are in them, but those of other rows of boxes.
        if blocks.ranges() == blocks.count() {
            prop_assert!((0..len).filter(|&at| out[at] != raw[at]).all(|at| out[at] == 0x5a));
        }
    }

    /// Also of damaged ones, where the whole is sound.
    #[test]
    fn some_bytes_are_those_of_the_chunk(
        (size, level, shuffle, compressor) in (
            prop_oneof![Just(1u32), Just(2), Just(4), Just(8), Just(3), Just(20)],
            0u32..10,
            0u32..2,
            prop_oneof![3 => Just(1u32), 1 => Just(0), 1 => Just(4), 1 => Just(5)],
        ),
        len in 40_000usize..400_000,
        seed in any::<u64>(),
        runs in prop::collection::vec((0f64..1.0, 1usize..3000), 1..20),
        change in prop::option::of((0f64..1.0, any::<u8>())),
    ) {
        let level = if compressor == 5 { level.min(5) } else { level };
        let raw = raw(len, seed);
        let options = [2, 2, size, 0, level, shuffle, compressor];
        let (pipeline, mut stored) = encoded(32001, &options, &raw);
        if let Some((at, byte)) = change {
            let place = (at * stored.len() as f64) as usize;
            stored[place] = byte;
        }
        let mut scratch = Scratch::default();
        let mut whole = vec![1; len];
        let sound = pipeline.decode(&stored, 0, &mut scratch, &mut whole);
        prop_assert!(change.is_some() || sound.is_ok() && whole == raw);
        let Some(mut blocks) = pipeline.blocks(&stored, 0, len, &mut scratch) else {
            return Ok(());
        };
        let mut runs: Vec<_> = runs
            .into_iter()
            .map(|(from, run)| {
                let begin = (from * len as f64) as usize;
                begin..(begin + run).min(len)
            })
            .collect();
        runs.sort_unstable_by_key(|run| run.start);
        runs.dedup_by(|next, before| {
            let touch = next.start <= before.end;
            before.end = if touch { before.end.max(next.end) } else { before.end };
            touch
        });
        let mut marks = vec![false; blocks.count()];
        runs.iter().for_each(|run| blocks.mark(run.clone(), &mut marks));
        if !blocks.find(blocks.count()) || !blocks.gives_some() {
            // Damaged, or in small blocks.
            return Ok(());
        }
        let (mut out, mut copied) = (vec![7; len], Vec::new());
        let numbers = (0..marks.len()).filter(|&number| marks[number]);
        for number in numbers {
            let stored = blocks.stored(number).unwrap();
            let with = (&mut copied, &mut scratch);
            let done = blocks.decode_some(number, stored, &runs, with, &mut out);
            if done.is_err() {
                prop_assert!(sound.is_err());
                return Ok(());
            }
        }
        if sound.is_ok() {
            prop_assert!(runs.into_iter().all(|run| out[run.clone()] == whole[run]));
        }
    }

    /// Whatever happens to stored bytes, blocks never decode to what the chunk does not.
    #[test]
    fn damaged_blocks_are_not_decoded_otherwise(
        (id, options, len) in filters(),
        seed in any::<u64>(),
        changes in prop::collection::vec((0f64..1.0, any::<u8>(), any::<bool>()), 1..4),
        cut in prop_oneof![3 => Just(1.0), 1 => 0f64..1.0],
    ) {
        let (pipeline, mut stored) = encoded(id, &options, &raw(len, seed));
        for (at, byte, early) in changes {
            // Lengths and places are at the beginning.
            let within = if early { stored.len().min(200) } else { stored.len() };
            if let Some(place) = stored.get_mut((at * within as f64) as usize) {
                *place = byte;
            }
        }
        stored.truncate((cut * stored.len() as f64) as usize);
        let mut scratch = Scratch::default();
        let mut whole = vec![1; len];
        let decoded = pipeline.decode(&stored, 0, &mut scratch, &mut whole);
        let blocks = pipeline.blocks(&stored, 0, len, &mut scratch);
        let by_blocks = blocks.and_then(|mut blocks| decode_each(&mut blocks, len, &mut scratch));
        if let Some(by_blocks) = by_blocks {
            prop_assert!(decoded.is_ok(), "{:?}", decoded);
            prop_assert!(by_blocks == whole);
        }
    }
}

#[test]
fn several_filters_leave_no_blocks() {
    let lz4 = || Filter::from_hdf5(32004, &[]).unwrap();
    let pipeline = Pipeline::new(vec![Filter::Shuffle(Shuffle { element_size: 2 }), lz4()]);
    assert!(!pipeline.has_blocks(0) && !pipeline.has_blocks(2) && !pipeline.has_blocks(3));
    // A chunk that one of them was not applied to.
    assert!(pipeline.has_blocks(1));
    assert!(!Pipeline::new(vec![lz4(), Filter::Fletcher32(Fletcher32)]).has_blocks(0));
    assert!(!Pipeline::new(vec![Filter::Deflate(Deflate)]).has_blocks(0));
}

/// Two blocks that begin at the same place, or one beyond the end.
#[test]
fn tables_that_lie_give_no_blocks() {
    let bytes = raw(4000, 1);
    let mut stored = vec![2, 1, 1 << 5, 1];
    stored.extend([4000u32, 1000, 4000].into_iter().flat_map(u32::to_le_bytes));
    stored.extend(&bytes[16..]);
    let pipeline = Pipeline::new(vec![Filter::Blosc(crate::blosc::Blosc)]);
    let mut scratch = Scratch::default();
    let mut found = |starts: [u32; 4]| {
        let starts = starts.map(u32::to_le_bytes);
        stored[16..32].copy_from_slice(starts.as_flattened());
        pipeline.blocks(&stored, 0, 4000, &mut scratch).is_some_and(|mut blocks| blocks.find(4))
    };
    assert!(found([32, 900, 1800, 2700]));
    assert!(found([2700, 32, 1800, 900]));
    assert!(!found([32, 32, 1800, 2700]));
    assert!(!found([32, 900, 1800, 4000]));
    assert!(!found([32, 900, 1800, u32::MAX]));
}
