//! How fast does each engine deflate some data, and how small?
//!
//! `cargo bench -p chunkwise-codec --bench encode -- FILE:CHUNK_NBYTES[:ELEMENT_SIZE] ...`
//! takes files of raw chunks one after another, shuffled first where an element's size is given,
//! and prints for each engine MB/s of raw data on one thread, the best of a few turns, and the
//! size beside zlib's at each of its levels, in percent.  Then what is chosen at each level: MB/s,
//! the size beside zlib's of all chunks and of what was tried, and how long choosing took.

use std::hint::black_box;
use std::time::Instant;

use chunkwise_codec::{
    DeflateEncoder, DeflateEngine, Effort, EncodeScratch, Encoder, Encoding, Shuffle, Step,
};

/// Seconds given to one engine, of which the best turn counts.
const ENOUGH_S: f64 = 0.2;

fn main() {
    for named in std::env::args().skip(1).filter(|arg| !arg.starts_with('-')) {
        let mut parts = named.split(':');
        let (Some(path), Some(Ok(chunk))) = (parts.next(), parts.next().map(str::parse)) else {
            eprintln!("{named}: not FILE:CHUNK_NBYTES[:ELEMENT_SIZE]");
            continue;
        };
        match std::fs::read(path) {
            Ok(raw) if chunk > 0 => {
                report(path, &raw, chunk, parts.next().and_then(|size| size.parse().ok()))
            }
            Ok(_) => eprintln!("{named}: no chunks"),
            Err(error) => eprintln!("{path}: {error}"),
        }
    }
}

/// Chunks that choosing is given, spread over the file.
const SAMPLES: usize = 16;

fn report(path: &str, raw: &[u8], chunk: usize, element_size: Option<usize>) {
    let measure = |engine| measure(&encoding(1, engine, element_size), raw, chunk);
    let zlib: Vec<_> = (1..=9).map(|level| measure(DeflateEngine::Zlib(level))).collect();
    let speed = |seconds: f64| raw.len() as f64 / seconds / 1e6;
    let percent = |excess: f64| format!("{:>+7.1}", 100.0 * excess);
    println!("\n{path}, chunks of {chunk} bytes, shuffled by {element_size:?}");
    println!("{:<16}{:>8}{:>8}   size beside zlib 1, 2, ... 9, in percent", "", "MB/s", "ratio");
    let engines = (1..=9)
        .map(DeflateEngine::Zlib)
        .chain((1..=12).map(DeflateEngine::Libdeflate))
        .chain((0..=3).map(DeflateEngine::Isal))
        .chain([DeflateEngine::Runs])
        .filter(|engine| engine.is_built());
    for engine in engines {
        let (stored, seconds) = match engine {
            DeflateEngine::Zlib(level) => zlib[level as usize - 1],
            _ => measure(engine),
        };
        let beside = zlib.iter().map(|&(zlib, _)| percent(stored as f64 / zlib as f64 - 1.0));
        let (speed, ratio) = (speed(seconds), raw.len() as f64 / stored as f64);
        let beside = beside.collect::<String>();
        println!("{:<16}{speed:>8.0}{ratio:>8.3}  {beside}", engine.to_string());
    }
    let chunks: Vec<_> = raw.chunks(chunk).collect();
    let count = SAMPLES.min(chunks.len());
    let samples: Vec<_> = (0..count).map(|i| chunks[i * chunks.len() / count]).collect();
    println!("{:<24}{:>8}{:>8}{:>8}{:>8}", "chosen", "MB/s", "size %", "tried %", "ms");
    for (level, effort) in
        (1..=9).map(|level| (level, Effort::AsStated)).chain([(1, Effort::Fast), (4, Effort::Fast)])
    {
        let stated = encoding(level, DeflateEngine::Zlib(level), element_size);
        let begun = Instant::now();
        let (tuned, tuning) = stated.tuned(effort, &samples);
        let taken = begun.elapsed().as_secs_f64();
        let Some(tuning) = tuning else { continue };
        let (stored, seconds) = self::measure(&tuned, raw, chunk);
        println!(
            "{:<24}{:>8.0} {} {}{:>8.0}",
            format!("{level} {effort:?}: {}", tuning.encoder),
            speed(seconds),
            percent(stored as f64 / zlib[level as usize - 1].0 as f64 - 1.0),
            percent(tuning.excess()),
            taken * 1e3,
        );
    }
}

/// Perhaps shuffle, then deflate.
fn encoding(level: u32, engine: DeflateEngine, element_size: Option<usize>) -> Encoding {
    let shuffle = element_size.map(|element_size| Encoder::Shuffle(Shuffle { element_size }));
    let encoders = shuffle.into_iter().chain([Encoder::Deflate(DeflateEncoder { level, engine })]);
    Encoding::new(encoders.map(|encoder| Step { encoder, optional: true }).collect())
}

/// Bytes that all chunks come to, and the seconds of the best turn.
fn measure(encoding: &Encoding, raw: &[u8], chunk: usize) -> (usize, f64) {
    let (mut scratch, mut out) = (EncodeScratch::default(), Vec::new());
    let (mut best, mut spent, mut stored) = (f64::INFINITY, 0.0, 0);
    while spent < ENOUGH_S {
        stored = 0;
        let begun = Instant::now();
        for chunk in raw.chunks(chunk) {
            assert!(encoding.encode(black_box(chunk), &mut scratch, &mut out).is_ok());
            stored += black_box(&out).len();
        }
        let seconds = begun.elapsed().as_secs_f64();
        best = best.min(seconds);
        spent += seconds;
    }
    (stored, best)
}
