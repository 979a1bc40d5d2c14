//! What does this machine allow at best: bare decoding, plain copying, its memory, a bare index?
//!
//! For `make bench`, which shows these figures beside those of readers.  No plan, pool, cache
//! or scattering of the engine takes part.
//!
//!     limits decode FILE LIST FILTERS CHUNK_NBYTES THREADS
//!     limits copy FILE LIST THREADS
//!     limits rows pread|memory FILE NBYTES
//!     limits index CHUNKS
//!     limits stream NBYTES THREADS
//!
//! `LIST` is a file of 64-bit numbers: address, stored bytes and filter mask of each chunk
//! to be decoded, or offset and bytes of each run to be copied one behind the other.  `FILTERS`
//! is HDF5's numbers with their values, `2:4,1:5`.  The program answers each line on
//! standard input with one JSON object: `value` in seconds, or in bytes for `index`.
//! `stream` is the triad of the benchmark STREAM over three arrays of `NBYTES` together.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use chunkwise_codec::{Filter, Pipeline, Scratch, crc32};
use chunkwise_engine::{ChunkIndexBuilder, ChunkRecord};

type Failure = Box<dyn Error + Send + Sync>;

/// What one measurement came to: the value, and a CRC-32 of the bytes made, if any.
type Measured = (f64, Option<u32>);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Err(wrong) = run(&arguments) {
        println!("{{\"failed\": {:?}}}", wrong.to_string());
        std::process::exit(1);
    }
}

fn run(arguments: &[&str]) -> Result<(), Failure> {
    match *arguments {
        ["decode", file, list, filters, chunk_nbytes, threads] => {
            let chunks = Chunks::load(file, list, filters, chunk_nbytes.parse()?)?;
            let threads: usize = threads.parse()?;
            let mut out = vec![1u8; chunks.records.len() * chunks.chunk_nbytes];
            answer(|| chunks.decode(threads, &mut out))
        }
        ["copy", file, list, threads] => {
            let file = File::open(file)?;
            let runs: Vec<[usize; 2]> = numbers(list)?;
            let len = Map::of(&file)?.bytes().len();
            let beyond = |&[at, nbytes]: &[usize; 2]| at > len || nbytes > len - at;
            if runs.iter().any(beyond) {
                return Err("a run lies beyond the end of the file".into());
            }
            let threads: usize = threads.parse()?;
            answer(|| copy(&file, &runs, threads))
        }
        ["rows", how, file, nbytes] => {
            let (file, nbytes): (File, usize) = (File::open(file)?, nbytes.parse()?);
            let memory = if how == "memory" { fs::read(arguments[2])? } else { Vec::new() };
            answer(|| rows(&file, &memory, nbytes))
        }
        ["index", chunks] => {
            let chunks: u64 = chunks.parse()?;
            answer(|| index(chunks))
        }
        ["stream", nbytes, threads] => {
            let (nbytes, threads): (usize, usize) = (nbytes.parse()?, threads.parse()?);
            let array = || vec![1f64; nbytes / 3 / size_of::<f64>()];
            let mut arrays = [array(), array(), array()];
            answer(|| Ok((stream(&mut arrays, threads), None)))
        }
        _ => Err("limits decode|copy|rows|index|stream ...: see the head of limits.rs".into()),
    }
}

/// Measure once for each line on standard input.
fn answer(mut measure: impl FnMut() -> Result<Measured, Failure>) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{{\"ready\": {{}}}}")?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let (value, checksum) = measure()?;
        let checksums = checksum.map(|crc| format!("\"everything\": {crc}")).unwrap_or_default();
        writeln!(out, "{{\"value\": {value:e}, \"checksums\": {{{checksums}}}}}")?;
        out.flush()?;
    }
    Ok(())
}

/// Rows of `N` numbers.
fn numbers<const N: usize>(path: &str) -> Result<Vec<[usize; N]>, Failure> {
    let bytes = fs::read(path)?;
    let (words, _) = bytes.as_chunks::<8>();
    let rows = words.as_chunks::<N>().0.iter();
    let row = |row: &[[u8; 8]; N]| row.map(|word| u64::from_le_bytes(word) as usize);
    Ok(rows.map(row).collect())
}

/// The stored bytes of chunks, in memory.
struct Chunks {
    pipeline: Pipeline,
    /// Where each begins in `stored`, its bytes, and its filter mask.
    records: Vec<(usize, usize, u32)>,
    stored: Vec<u8>,
    chunk_nbytes: usize,
}

impl Chunks {
    fn load(file: &str, list: &str, filters: &str, chunk_nbytes: usize) -> Result<Self, Failure> {
        let filters = filters.split(',').filter(|one| !one.is_empty()).map(filter);
        let pipeline = Pipeline::new(filters.collect::<Result<_, _>>()?);
        let file = File::open(file)?;
        let (mut stored, mut records) = (Vec::new(), Vec::new());
        for [address, nbytes, mask] in numbers(list)? {
            let begin = stored.len();
            stored.resize(begin + nbytes, 0);
            file.read_exact_at(&mut stored[begin..], address as u64)?;
            records.push((begin, nbytes, u32::try_from(mask)?));
        }
        Ok(Self { pipeline, records, stored, chunk_nbytes })
    }

    /// Decode every chunk once, each thread its share of them, into memory that is touched.
    fn decode(&self, threads: usize, out: &mut [u8]) -> Result<Measured, Failure> {
        let share = self.records.len().div_ceil(threads).max(1);
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let parts = self.records.chunks(share).zip(out.chunks_mut(share * self.chunk_nbytes));
            let decoding = |records: &[(usize, usize, u32)], out: &mut [u8]| {
                let mut scratch = Scratch::default();
                let outs = out.chunks_mut(self.chunk_nbytes);
                for (&(begin, nbytes, mask), out) in records.iter().zip(outs) {
                    let stored = &self.stored[begin..begin + nbytes];
                    self.pipeline.decode(stored, mask, &mut scratch, out)?;
                }
                Ok::<(), Failure>(())
            };
            let running: Vec<_> =
                parts.map(|(records, out)| scope.spawn(move || decoding(records, out))).collect();
            running.into_iter().try_for_each(|thread| {
                thread.join().map_err(|_| Failure::from("a thread has failed"))?
            })
        })?;
        let elapsed = begun.elapsed().as_secs_f64();
        Ok((elapsed, Some(crc32(0, out))))
    }
}

/// A filter as `1:5`.
fn filter(text: &str) -> Result<Filter, Failure> {
    let mut parts = text.split(':');
    let id = parts.next().unwrap_or_default().parse()?;
    let values = parts.map(str::parse).collect::<Result<Vec<u32>, _>>()?;
    Filter::from_hdf5(id, &values).ok_or_else(|| format!("no decoder for filter {id}").into())
}

/// Map a file and copy runs of it one behind the other into fresh memory, as a reader's result
/// is fresh; each thread about as many bytes.
fn copy(file: &File, runs: &[[usize; 2]], threads: usize) -> Result<Measured, Failure> {
    let total: usize = runs.iter().map(|run| run[1]).sum();
    let begun = Instant::now();
    let map = Map::of(file)?;
    let map = map.bytes();
    let mut out = fresh(total)?;
    std::thread::scope(|scope| {
        let (mut runs, mut rest) = (runs, out.bytes());
        for thread in 0..threads {
            let wanted = rest.len().div_ceil(threads - thread);
            let (mut taken, mut count) = (0, 0);
            while taken < wanted && count < runs.len() {
                taken += runs[count][1];
                count += 1;
            }
            let (mine, others) = runs.split_at(count);
            let (mut target, left) = rest.split_at_mut(taken);
            (runs, rest) = (others, left);
            scope.spawn(move || {
                for &[at, nbytes] in mine {
                    let (here, behind) = target.split_at_mut(nbytes);
                    here.copy_from_slice(&map[at..at + nbytes]);
                    target = behind;
                }
            });
        }
    });
    let elapsed = begun.elapsed().as_secs_f64();
    Ok((elapsed, Some(crc32(0, out.bytes()))))
}

/// Seconds for a row of `nbytes`, on average over all rows of a file but the first: by `pread`,
/// or copied out of `memory` where that holds the file.
fn rows(file: &File, memory: &[u8], nbytes: usize) -> Result<Measured, Failure> {
    let count = usize::try_from(file.metadata()?.len())? / nbytes.max(1);
    let mut row = vec![0u8; nbytes];
    let mut elapsed = Duration::ZERO;
    for number in 0..count {
        // As the loops of `chunkwise bench` do between two reads.
        row.fill(0);
        let at = number * nbytes;
        let begun = Instant::now();
        if memory.is_empty() {
            file.read_exact_at(&mut row, at as u64)?;
        } else {
            row.copy_from_slice(&memory[at..at + nbytes]);
        }
        let took = begun.elapsed();
        elapsed += if number > 0 { took } else { Duration::ZERO };
        std::hint::black_box(&row);
    }
    Ok((elapsed.as_secs_f64() / count.saturating_sub(1).max(1) as f64, None))
}

/// Multiply and add arrays that are too large for caches, each thread its share of them.
fn stream(arrays: &mut [Vec<f64>; 3], threads: usize) -> f64 {
    let [sums, left, right] = arrays;
    let share = sums.len().div_ceil(threads.max(1)).max(1);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for (sums, (left, right)) in
            sums.chunks_mut(share).zip(left.chunks(share).zip(right.chunks(share)))
        {
            scope.spawn(move || {
                for (sum, (left, right)) in sums.iter_mut().zip(left.iter().zip(right)) {
                    *sum = left + 3.0 * right;
                }
            });
        }
    });
    begun.elapsed().as_secs_f64()
}

/// Memory of an index over this many chunks, all written, by what it says itself.
fn index(chunks: u64) -> Result<Measured, Failure> {
    let mut builder = ChunkIndexBuilder::with_capacity(chunks)?;
    for position in 0..chunks {
        let stored_nbytes = 1000 + position % 4096;
        let record = ChunkRecord { address: position * 5096, stored_nbytes, filter_mask: 0 };
        builder.push(position, record)?;
    }
    let index = builder.finish(chunks)?;
    Ok((index.memory_nbytes() as f64, None))
}

/// Memory straight from the system, given back when dropped.
struct Map {
    start: *mut libc::c_void,
    len: usize,
}

impl Map {
    fn new(len: usize, protection: i32, flags: i32, descriptor: i32) -> Result<Self, Failure> {
        let len = len.max(1);
        // SAFETY: a new mapping at a place that the system chooses.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, descriptor, 0) };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().into());
        }
        Ok(Self { start, len })
    }

    /// A file's bytes; each page is looked up when it is first touched.
    fn of(file: &File) -> Result<Self, Failure> {
        let len = usize::try_from(file.metadata()?.len())?;
        Self::new(len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd())
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for reading as long as this lives, and nobody writes to the files
        // of a benchmark while it runs.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.len) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: mapped once, by `new`.
        unsafe { libc::munmap(self.start, self.len) };
    }
}

/// Memory that nobody has touched, in huge pages where the system gives them on request.
struct Fresh {
    map: Map,
    len: usize,
}

fn fresh(len: usize) -> Result<Fresh, Failure> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let map = Map::new(len, libc::PROT_READ | libc::PROT_WRITE, flags, -1)?;
    #[cfg(target_os = "linux")]
    // SAFETY: advice on this very mapping, which does not change what it holds.
    unsafe {
        libc::madvise(map.start, map.len, libc::MADV_HUGEPAGE);
    }
    Ok(Fresh { map, len })
}

impl Fresh {
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: private and writable, and this is the only way to it.
        unsafe { std::slice::from_raw_parts_mut(self.map.start.cast(), self.len) }
    }
}
