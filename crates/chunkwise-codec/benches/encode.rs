//! How fast does each engine deflate some data, and how small?
//!
//! `cargo bench -p chunkwise-codec --bench encode -- FILE:CHUNK_NBYTES[:ELEMENT_SIZE] ...`
//! takes files of raw chunks one after another, shuffled first where an element's size is given,
//! and prints for each engine MB/s of raw data on one thread, the best of a few turns, and the
//! size beside zlib's at each of its levels, in percent.

use std::hint::black_box;
use std::time::Instant;

use chunkwise_codec::{DeflateEngine, EncodeScratch, Encoder, Encoding, Step};

/// Seconds given to one engine, of which the best turn counts.
const ENOUGH_S: f64 = 0.5;

fn main() {
    for named in std::env::args().skip(1).filter(|arg| !arg.starts_with('-')) {
        let mut parts = named.split(':');
        let (Some(path), Some(Ok(chunk))) = (parts.next(), parts.next().map(str::parse)) else {
            eprintln!("{named}: not FILE:CHUNK_NBYTES[:ELEMENT_SIZE]");
            continue;
        };
        match std::fs::read(path) {
            Ok(raw) => report(path, &raw, chunk, parts.next().and_then(|size| size.parse().ok())),
            Err(error) => eprintln!("{path}: {error}"),
        }
    }
}

fn report(path: &str, raw: &[u8], chunk: usize, element_size: Option<usize>) {
    let sizes = (1..=9).map(|level| measure(DeflateEngine::Zlib(level), raw, chunk, element_size));
    let zlib: Vec<_> = sizes.collect();
    println!("\n{path}, chunks of {chunk} bytes, shuffled by {element_size:?}");
    println!("{:<16}{:>8}{:>8}   size beside zlib 1, 2, ... 9, in percent", "", "MB/s", "ratio");
    let engines = (1..=9)
        .map(DeflateEngine::Zlib)
        .chain((1..=12).map(DeflateEngine::Libdeflate))
        .chain((0..=3).map(DeflateEngine::Isal))
        .filter(|engine| engine.is_built());
    for engine in engines {
        let (stored, seconds) = match engine {
            DeflateEngine::Zlib(level) => zlib[level as usize - 1],
            _ => measure(engine, raw, chunk, element_size),
        };
        let beside: String = zlib
            .iter()
            .map(|&(zlib, _)| format!("{:>+7.1}", 100.0 * (stored as f64 / zlib as f64 - 1.0)))
            .collect();
        let (speed, ratio) = (raw.len() as f64 / seconds / 1e6, raw.len() as f64 / stored as f64);
        println!("{:<16}{speed:>8.0}{ratio:>8.3}  {beside}", engine.to_string());
    }
}

/// Bytes that all chunks come to, and the seconds of the best turn.
fn measure(
    engine: DeflateEngine,
    raw: &[u8],
    chunk: usize,
    element_size: Option<usize>,
) -> (usize, f64) {
    let shuffle = element_size.map(|element_size| Encoder::Shuffle { element_size });
    let encoders = shuffle.into_iter().chain([Encoder::Deflate { level: 1, engine }]);
    let encoding =
        Encoding::new(encoders.map(|encoder| Step { encoder, optional: true }).collect());
    let (mut scratch, mut out) = (EncodeScratch::default(), Vec::new());
    let (mut best, mut spent, mut stored) = (f64::INFINITY, 0.0, 0);
    while spent < ENOUGH_S {
        stored = 0;
        let begun = Instant::now();
        for chunk in raw.chunks(chunk.max(1)) {
            assert!(encoding.encode(black_box(chunk), &mut scratch, &mut out).is_ok());
            stored += black_box(&out).len();
        }
        let seconds = begun.elapsed().as_secs_f64();
        best = best.min(seconds);
        spent += seconds;
    }
    (stored, best)
}
