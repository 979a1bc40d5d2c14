//! How well does the engine use processors that this machine does not have?
//!
//! Each chunk takes a time in which its thread sleeps, so that any number of threads work as if
//! each had a processor.  Beside it, bare threads take numbers and sleep as long, which is the most
//! that this machine allows; what is missing to that is what the engine loses: locks, handing
//! over, threads that wait for the last chunk.  For `make bench ONLY=cores`:
//!
//!     cores [THREADS,...]
//!     cores case THREADS CHUNK_S CHUNKS DATASETS LATENCY_S
//!
//! The first prints a table in Markdown: the share of the bare threads' speed.  `busy` is the share of
//! this machine's own processors that was used meanwhile, for everything but decoding: where it comes
//! near 100%, the machine is too small to tell.
//!
//! The second reads datasets of this many chunks each, one after the other, each chunk in this many
//! seconds, from storage that answers after a latency (0: at once), and prints one JSON object:
//! `engine_s`, `bare_s` and `busy`.

use std::error::Error;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use chunkwise_codec::{
    Effort, EncodeScratch, Encoder, Encoding, Filter, Fletcher32, Pipeline, Step, simulated,
};
use chunkwise_engine::{
    ChunkIndexBuilder, ChunkRecord, ChunkStore, CommitError, Committer, Dataset, DatasetInfo,
    DatasetWriter, EncodedChunk, Layout, MemoryStorage, ReadError, Storage, StorageCost,
    ThrottledStorage, WriteInfo, cache_clear, set_threads,
};
use chunkwise_select::{Dims, Hyperslab};

type Failure = Box<dyn Error + Send + Sync>;

/// Elements of 4 bytes in a chunk: little to copy, as that is not simulated.
const CHUNK: u64 = 1024;
const ITEM: usize = 4;
/// Time that storage takes to answer where it is late.
const LATE: Duration = Duration::from_millis(2);
/// Of this many runs, in turns, the best one of each counts: the machine has other things to do.
const RUNS: usize = 5;

/// Where stored bytes come from.
#[derive(Clone, Copy)]
enum Place {
    Memory,
    /// A disk that answers late: a thread waits for each request.
    Disk,
    /// A network: as many requests at a time as there are.
    Remote(Duration),
}

/// One line of the table.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    chunk_ms: f64,
    /// Chunks for each thread, of all datasets together.
    chunks_a_thread: u64,
    datasets: usize,
    callers: usize,
    place: Place,
}

const USUAL: Case = Case {
    name: "chunks of 5 ms",
    chunk_ms: 5.0,
    chunks_a_thread: 64,
    datasets: 1,
    callers: 1,
    place: Place::Memory,
};

const CASES: [Case; 6] = [
    USUAL,
    Case { name: "the same, storage answers after 2 ms", place: Place::Disk, ..USUAL },
    Case { name: "many small chunks, 1 ms", chunk_ms: 1.0, chunks_a_thread: 256, ..USUAL },
    Case { name: "few large chunks, 50 ms", chunk_ms: 50.0, chunks_a_thread: 4, ..USUAL },
    Case { name: "16 datasets, one after the other", datasets: 16, ..USUAL },
    Case { name: "16 datasets, by 16 callers at a time", datasets: 16, callers: 16, ..USUAL },
];

fn main() -> Result<(), Failure> {
    // A thread that sleeps wakes when it is to, not up to 50 us later.
    #[cfg(target_os = "linux")]
    // SAFETY: takes numbers; threads that are started later do the same.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *arguments {
        [] => table("8,32,64,128"),
        [threads] => table(threads),
        ["case", threads, chunk_s, chunks, datasets, latency_s] => {
            let threads: NonZero<usize> = threads.parse()?;
            let chunk_ms = 1e3 * chunk_s.parse::<f64>()?;
            let latency = Duration::try_from_secs_f64(latency_s.parse()?)?;
            let place = if latency.is_zero() { Place::Memory } else { Place::Remote(latency) };
            let case = Case { chunk_ms, datasets: datasets.parse()?, place, ..USUAL };
            set_threads(Some(threads));
            let Best { engine_s, bare_s, busy } =
                best(read, &case, chunks.parse()?, threads.get())?;
            println!("{{\"engine_s\": {engine_s:e}, \"bare_s\": {bare_s:e}, \"busy\": {busy:e}}}");
            Ok(())
        }
        _ => Err("cores [THREADS,...], or cores case ...: see the head of cores.rs".into()),
    }
}

fn table(asked: &str) -> Result<(), Failure> {
    let threads: Vec<NonZero<usize>> =
        asked.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let heads: Vec<String> = threads.iter().map(|n| format!("{n} threads | busy")).collect();
    println!("| work | what | {} |", heads.join(" | "));
    println!("| --- | --- |{}", " ---: | ---: |".repeat(threads.len()));
    for (work, run) in [("read", read as Run), ("write", write as Run)] {
        for case in &CASES {
            let mut cells = Vec::new();
            for &n in &threads {
                set_threads(Some(n));
                let chunks = case.chunks_a_thread * n.get() as u64 / case.datasets as u64;
                let found = best(run, case, chunks, n.get())?;
                let efficiency = found.bare_s / found.engine_s;
                cells.push(format!("{:.0}% | {:.0}%", 100.0 * efficiency, 100.0 * found.busy));
            }
            println!("| {work} | {} | {} |", case.name, cells.join(" | "));
        }
    }
    Ok(())
}

/// Prepares, and gives the seconds that it took, and those of processors.
type Run = fn(&Case, u64) -> Result<(f64, f64), Failure>;

/// The best of all runs.
struct Best {
    engine_s: f64,
    bare_s: f64,
    /// The share of this machine's processors that the engine has used.
    busy: f64,
}

/// The engine beside bare threads, with this many chunks a dataset.
fn best(run: Run, case: &Case, chunks: u64, threads: usize) -> Result<Best, Failure> {
    let own = std::thread::available_parallelism().map_or(1, NonZero::get) as f64;
    // Who asks works as well; with many callers there are more than the pool's threads.
    let workers = threads.max(threads - 1 + case.callers);
    let (mut bare_s, mut engine_s, mut busy) = (f64::MAX, f64::MAX, 0.0);
    for _ in 0..RUNS {
        bare_s = bare(case, chunks * case.datasets as u64, workers).min(bare_s);
        let (elapsed, processor) = run(case, chunks)?;
        if elapsed < engine_s {
            (engine_s, busy) = (elapsed, processor / elapsed / own);
        }
    }
    Ok(Best { engine_s, bare_s, busy })
}

/// Seconds that threads take which do nothing but to take numbers and to sleep.
fn bare(case: &Case, chunks: u64, threads: usize) -> f64 {
    let (next, ready) = (AtomicU64::new(0), Barrier::new(threads));
    let time = Duration::from_secs_f64(case.chunk_ms / 1e3);
    let sleeping = || {
        // As the engine's are there before.
        ready.wait();
        let begun = Instant::now();
        while next.fetch_add(1, Relaxed) < chunks {
            std::thread::sleep(time);
        }
        begun
    };
    let begun = std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(sleeping)).collect();
        started.into_iter().filter_map(|thread| thread.join().ok()).min()
    });
    begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64())
}

/// Let each of the callers carry out its share of the works, and take the time; then see whether
/// they are right.
fn timed_works<W: Send>(
    case: &Case,
    works: Vec<W>,
    work: impl Fn(&mut W) -> Result<(), Failure> + Sync,
    is_right: impl Fn(&W) -> bool,
) -> Result<(f64, f64), Failure> {
    simulated::set_chunk_time(Duration::from_secs_f64(case.chunk_ms / 1e3));
    let (left, done, failure) = (Mutex::new(works), Mutex::new(Vec::new()), Mutex::new(None));
    let (begun, before) = (Instant::now(), processor_seconds());
    std::thread::scope(|scope| {
        for _ in 0..case.callers {
            scope.spawn(|| {
                loop {
                    let next = left.lock().ok().and_then(|mut left| left.pop());
                    let Some(mut next) = next else { return };
                    let worked = work(&mut next);
                    if let (Err(error), Ok(mut failure)) = (worked, failure.lock()) {
                        *failure = Some(error);
                        return;
                    }
                    if let Ok(mut done) = done.lock() {
                        done.push(next);
                    }
                }
            });
        }
    });
    let spent = (begun.elapsed().as_secs_f64(), processor_seconds() - before);
    simulated::set_chunk_time(Duration::ZERO);
    match (failure.into_inner(), done.into_inner()) {
        (Ok(None), Ok(done)) if done.iter().all(is_right) => Ok(spent),
        (Ok(None), Ok(_)) => Err("other chunks came out than were asked for".into()),
        (Ok(Some(error)), _) => Err(error),
        _ => Err("a caller has panicked".into()),
    }
}

/// Seconds that this process has used processors for.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the struct that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn pipeline() -> (Pipeline, Encoding) {
    let step = Step { encoder: Encoder::Fletcher32(Fletcher32), optional: false };
    (Pipeline::new(vec![Filter::Fletcher32(Fletcher32)]), Encoding::new(vec![step]))
}

fn read(case: &Case, chunks: u64) -> Result<(f64, f64), Failure> {
    cache_clear();
    let (pipeline, encoding) = pipeline();
    let raw = vec![7; CHUNK as usize * ITEM];
    let mut stored = Vec::new();
    encoding.encode(&raw, &mut EncodeScratch::default(), &mut stored)?;
    let mut index = ChunkIndexBuilder::default();
    for position in 0..chunks {
        let stored_nbytes = stored.len() as u64;
        let address = position * stored_nbytes;
        index.push(position, ChunkRecord { address, stored_nbytes, filter_mask: 0 })?;
    }
    let mut storage: Arc<dyn Storage> =
        Arc::new(MemoryStorage(stored.repeat(usize::try_from(chunks)?)));
    storage = match case.place {
        Place::Memory => storage,
        Place::Disk => Arc::new(ThrottledStorage::new(storage, LATE, None)),
        Place::Remote(latency) => Arc::new(Remote { storage, latency }),
    };
    let shape = Dims::from_slice(&[chunks * CHUNK]);
    let layout = Layout::Chunked {
        chunk: Dims::from_slice(&[CHUNK]),
        pipeline,
        unfiltered_partial_chunks: false,
        index: index.finish(chunks)?.into(),
    };
    let info = DatasetInfo { shape, element_size: ITEM, fill: None, layout };
    let nbytes = usize::try_from(chunks * CHUNK)? * ITEM;
    let mut works = Vec::new();
    for _ in 0..case.datasets {
        let dataset = Dataset::new(info.clone(), Arc::clone(&storage))?;
        works.push((dataset, vec![1u8; nbytes]));
    }
    let work = |(dataset, out): &mut (Arc<Dataset>, Vec<u8>)| {
        Ok(dataset.read(&Hyperslab::all(dataset.shape()), out)?)
    };
    timed_works(case, works, work, |(_, out)| out.iter().all(|&byte| byte == 7))
}

/// Behind a network that costs what the package expects of one.
struct Remote {
    storage: Arc<dyn Storage>,
    latency: Duration,
}

impl Storage for Remote {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.read_ranges(&mut [(address, out)])
    }

    fn read_ranges(&self, ranges: &mut [(u64, &mut [u8])]) -> Result<(), ReadError> {
        std::thread::sleep(self.latency);
        self.storage.read_ranges(ranges)
    }

    fn cost(&self) -> StorageCost {
        let latency_ns = u64::try_from(self.latency.as_nanos()).unwrap_or(u64::MAX);
        StorageCost {
            latency_ns,
            nbytes_per_s: 100_000_000,
            request_nbytes: 8 << 20,
            in_flight: 64,
        }
    }

    fn end(&self) -> u64 {
        self.storage.end()
    }

    fn read_at_once(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }
}

/// Takes chunks, and forgets them.
struct Sink {
    late: bool,
}

impl Committer for Sink {
    fn commit(&mut self, _: &[EncodedChunk]) -> Result<(), CommitError> {
        if self.late {
            std::thread::sleep(LATE);
        }
        Ok(())
    }
}

impl ChunkStore for Sink {
    fn are_stored(&mut self, chunk_origins: &[Dims]) -> Vec<bool> {
        vec![false; chunk_origins.len()]
    }

    fn stored(&mut self, _: &[u64], _: &mut Vec<u8>) -> Result<Option<u32>, String> {
        Ok(None)
    }
}

fn write(case: &Case, chunks: u64) -> Result<(f64, f64), Failure> {
    let shape = [chunks * CHUNK];
    let (pipeline, encoding) = pipeline();
    let info = WriteInfo {
        shape: shape.as_slice().into(),
        max_shape: shape.as_slice().into(),
        chunk: Dims::from_slice(&[CHUNK]),
        element_size: ITEM,
        fill: None,
        encoding,
        pipeline,
        unfiltered_partial_chunks: false,
    };
    let data = vec![7u8; usize::try_from(chunks * CHUNK)? * ITEM];
    let mut works = Vec::new();
    for _ in 0..case.datasets {
        let sink = Box::new(Sink { late: matches!(case.place, Place::Disk) });
        works.push(DatasetWriter::new(info.clone(), sink, None, Effort::AsStated)?);
    }
    let work = |writer: &mut DatasetWriter| {
        writer.write(&Hyperslab::all(&shape), &data, &AtomicBool::new(false))?;
        Ok(writer.flush(&AtomicBool::new(false))?)
    };
    timed_works(case, works, work, |writer| writer.stats().committed == chunks)
}
