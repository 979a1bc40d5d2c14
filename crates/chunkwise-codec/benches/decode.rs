//! How fast are chunks decoded, next to a plain copy and to the bare codec?
//!
//! `cargo bench -p chunkwise-codec [name]` prints GB/s of decoded data, the best of many
//! turns: what is compared takes turns, so that a machine that slows down slows all.

use std::hint::black_box;
use std::time::Instant;

use chunkwise_codec::{Deflate, Filter, Job, Pipeline, STREAMS, Scratch, Shuffle};
use libdeflater::{CompressionLvl, Compressor, Decompressor};

/// A chunk of 600 by 600 elements of 4 bytes, and one whose planes lie at powers of two.
const CHUNKS: [usize; 2] = [1_440_000, 1 << 20];
const TURNS: usize = 40;

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    println!("{:<34}{:>8}{:>8}", "GB/s of decoded data, best of 40", "copy", "decode");
    for len in CHUNKS {
        for size in [2, 3, 4, 6, 8, 12, 16, 20, 100] {
            let raw = walk(len / size * size);
            let filters = vec![Filter::Shuffle(Shuffle { element_size: size })];
            report(
                &wanted,
                &format!("shuffle, {size} of {len}"),
                filters,
                &shuffled(size, &raw),
                raw.len(),
                &mut [],
            );
        }
        let raw = walk(len);
        for size in [1, 2, 4, 8] {
            let Some(filter) = Filter::from_hdf5(32008, &[0, 4, size, 0, 0]) else { continue };
            report(
                &wanted,
                &format!("bitshuffle, {size} of {len}"),
                vec![filter],
                &raw,
                len,
                &mut [],
            );
        }
        if "together".contains(&wanted) {
            together("noise", &noise(len));
            together("shuffled noise", &shuffled(4, &noise(len)));
        }
        let planes = shuffled(4, &raw);
        for (name, filters, data) in [
            ("deflate", vec![Filter::Deflate(Deflate)], &raw),
            (
                "shuffle, deflate",
                vec![Filter::Shuffle(Shuffle { element_size: 4 }), Filter::Deflate(Deflate)],
                &planes,
            ),
        ] {
            let stored = deflated(data);
            let mut bare = Decompressor::new();
            let mut buffer = vec![0; len];
            let inflate = &mut || {
                let inflated = bare.zlib_decompress(&stored, &mut buffer);
                assert_eq!(inflated, Ok(len));
                black_box(&mut buffer);
            };
            report(&wanted, &format!("{name}, {len}"), filters, &stored, len, &mut [inflate]);
        }
    }
}

/// Print one line: a plain copy, the pipeline, and what else it is compared with.
fn report(
    wanted: &str,
    name: &str,
    filters: Vec<Filter>,
    stored: &[u8],
    len: usize,
    others: &mut [&mut dyn FnMut()],
) {
    if !name.contains(wanted) {
        return;
    }
    let pipeline = Pipeline::new(filters);
    let (mut scratch, mut out) = (Scratch::default(), vec![0; len]);
    let (source, mut copy) = (vec![1; len], vec![0; len]);
    let mut best = vec![f64::INFINITY; 2 + others.len()];
    for _ in 0..TURNS {
        best[0] = best[0].min(seconds(|| black_box(&mut copy).copy_from_slice(black_box(&source))));
        best[1] = best[1].min(seconds(|| {
            let decoded = pipeline.decode(black_box(stored), 0, &mut scratch, black_box(&mut out));
            assert_eq!(decoded, Ok(()));
        }));
        for (best, other) in best[2..].iter_mut().zip(others.iter_mut()) {
            *best = best.min(seconds(other));
        }
    }
    let speeds = best.iter().map(|best| format!("{:8.2}", len as f64 / best / 1e9));
    println!("{name:<34}{}", speeds.collect::<String>());
}

/// Print how fast four streams are inflated, one after another and at the same time.
fn together(name: &str, raw: &[u8]) {
    let (stored, mut scratch) = (deflated(raw), Scratch::default());
    let mut outs = vec![vec![0; raw.len()]; STREAMS];
    let mut best = [f64::INFINITY; 2];
    for _ in 0..TURNS {
        for (best, together) in best.iter_mut().zip([false, true]) {
            let job = |out| Job { stored: &stored, out, done: false };
            let mut jobs: Vec<Job<'_>> =
                outs.iter_mut().map(|out| job(out.as_mut_slice())).collect();
            *best = best.min(seconds(|| scratch.inflate(black_box(&mut jobs), together)));
        }
    }
    let [alone, together] = best.map(|best| (STREAMS * raw.len()) as f64 / best / 1e9);
    let name = format!("{name}, {}: alone, together", raw.len());
    println!("{name:<34}{alone:8.2}{together:8.2}");
}

/// Floating-point numbers that are mostly noise.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let numbers = (0..len / 4).map(|i| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (i as f32 / 20.0).sin() + (state >> 40) as f32 / (1 << 30) as f32
    });
    numbers.flat_map(f32::to_be_bytes).collect()
}

fn seconds(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64()
}

/// Floating-point numbers that walk in steps of 1/16.
fn walk(len: usize) -> Vec<u8> {
    let (mut state, mut at) = (1u64, 0f32);
    let mut raw = Vec::with_capacity(len + 4);
    while raw.len() < len {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        at += ((state >> 40) % 9) as f32 / 16.0 - 0.25;
        raw.extend(at.to_le_bytes());
    }
    raw.truncate(len);
    raw
}

fn shuffled(size: usize, raw: &[u8]) -> Vec<u8> {
    (0..size).flat_map(|j| raw.iter().skip(j).step_by(size).copied()).collect()
}

fn deflated(data: &[u8]) -> Vec<u8> {
    let mut encoder = Compressor::new(CompressionLvl::default());
    let mut stored = vec![0; encoder.zlib_compress_bound(data.len())];
    let len = encoder.zlib_compress(data, &mut stored).unwrap_or(0);
    stored.truncate(len);
    stored
}
