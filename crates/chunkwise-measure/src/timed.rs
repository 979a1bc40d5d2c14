//! How long does it take to read, or to write, an array selection by selection?
//!
//! The timed loops of `chunkwise bench`, without Python inside: the same for the
//! engine, for `H5Dread`, `H5Dwrite` and, in another crate, `nc_get_vara` and `nc_put_vara`.

use std::time::{Duration, Instant};

use chunkwise_codec::crc32;
use chunkwise_engine::{ReadError, gather, zeroed};
use chunkwise_select::Selection;

use crate::Walk;

/// When a walk ends, if not with its last block.
#[derive(Debug, Clone, Copy)]
pub struct WalkBounds {
    /// Most operations; at least one is always done.
    pub max_operations: u64,
    /// No operation begins after the timed reads have taken this long, or the loop as a
    /// whole three times as long; but a few are done all the same, unless they take far
    /// longer: the first one pays for chunks that the next ones may find cached.
    pub max_time: Duration,
}

/// As the loops in Python (`chunkwise.trials.in_python`): this many operations are done...
const FEWEST_OPERATIONS: u64 = 3;
/// ... unless they take this many times what was allowed.
const PATIENCE: u32 = 4;
/// Selecting, gathering and checksums are not timed, and have to end as well.
const WHOLE_LOOP: u32 = 3;

impl WalkBounds {
    fn are_reached(&self, done: u64, spent: Duration, begun: Instant) -> bool {
        let over =
            spent >= self.max_time || begun.elapsed() >= self.max_time.saturating_mul(WHOLE_LOOP);
        let patient = done < FEWEST_OPERATIONS && spent < self.max_time.saturating_mul(PATIENCE);
        done > 0 && over && !patient
    }
}

/// What a walk measured.
#[derive(Debug, Clone, Default)]
pub struct WalkRecord {
    /// Selections read.
    pub operations: u64,
    /// Selections there are.
    pub total_operations: u64,
    /// Seconds in the operations alone, all their parts.
    pub elapsed_s: f64,
    /// Of these, seconds that opening took; None where none of the operations opens anything.
    pub open_s: Option<f64>,
    /// Of these, seconds that selecting took; None where nobody took the time of it.
    pub select_s: Option<f64>,
    /// Bytes read.
    pub selected_nbytes: u64,
    /// Seconds of each read, in order; the first [`MOST_LATENCIES`].
    pub latencies_s: Vec<f64>,
    /// CRC-32 of everything read after 1, 2, 4, ... operations and the last.
    pub checksums: Vec<(u64, u32)>,
}

/// What was written, and what it took besides the writes themselves.
///
/// A library may keep what it is given until it has to let go of it: only together do the
/// figures say what writing costs.
#[derive(Debug, Clone, Default)]
pub struct WriteRecord {
    /// The writes; its checksums are of the bytes that were given to be written.
    pub walk: WalkRecord,
    /// Seconds to create the file and the dataset.
    pub create_s: f64,
    /// Seconds to hand everything to the system (`H5Fflush`, `nc_sync`).
    pub flush_s: f64,
    /// Seconds to close the dataset and the file.
    pub close_s: f64,
    /// Seconds until the system has it on storage (`fsync`).
    pub sync_s: f64,
}

/// What one operation took, part by part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lap {
    /// To open file and dataset; None where they were open.
    pub open: Option<Duration>,
    /// To put the selection together; None where that was not told from the rest.
    pub select: Option<Duration>,
    /// All else.
    pub read: Duration,
}

impl Lap {
    fn whole(&self) -> Duration {
        self.open.unwrap_or_default() + self.select.unwrap_or_default() + self.read
    }
}

/// Tells the parts of an operation apart.
#[derive(Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Start it.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// What passed since the start, or the last time that this was asked.
    pub fn lap(&mut self) -> Duration {
        let now = Instant::now();
        now - std::mem::replace(&mut self.0, now)
    }
}

/// Looks at what each operation read, by its number, outside the timed region; the walk ends
/// when it says false.
pub type Inspect<'a> = &'a mut dyn FnMut(u64, &[u8]) -> bool;

/// Latencies beyond this many are not kept.
pub const MOST_LATENCIES: usize = 100_000;

/// Read the selections of `walk` one after another.
///
/// `read` fills a buffer of exactly the selection's size.  One buffer is used for all,
/// and the first read into it pays for its pages, for every reader alike.
/// Checksums are taken outside the timed region.
///
/// # Errors
/// What `read` gives, or when a selection does not fit into memory.
pub fn time_walk<E: From<ReadError>>(
    walk: &Walk,
    element_size: usize,
    bounds: WalkBounds,
    mut read: impl FnMut(&Selection, &mut [u8]) -> Result<(), E>,
) -> Result<WalkRecord, E> {
    time_parts(walk, element_size, bounds, &mut |_, _| true, |selection, out| {
        let mut watch = Stopwatch::start();
        read(selection, out)?;
        Ok(Lap { read: watch.lap(), ..Lap::default() })
    })
}

/// The same for a reader that tells the parts of each operation apart, and with a look at
/// what was read.
///
/// # Errors
/// As [`time_walk`].
pub fn time_parts<E: From<ReadError>>(
    walk: &Walk,
    element_size: usize,
    bounds: WalkBounds,
    inspect: Inspect<'_>,
    mut read: impl FnMut(&Selection, &mut [u8]) -> Result<Lap, E>,
) -> Result<WalkRecord, E> {
    time_each(walk, element_size, bounds, inspect, |number, selection, buffer| {
        if number > 0 {
            // What a read leaves untouched must not show the one before; not timed.
            buffer.fill(0);
        }
        read(selection, buffer)
    })
}

/// Write the selections of `walk` one after another.
///
/// `data` are all elements of an array of `shape`, in C order.  `write` is given a
/// selection and its elements, gathered outside the timed region; checksums are taken of
/// those, outside of it as well.
///
/// # Errors
/// What `write` gives, or when `data` is not of that shape, or a selection does not fit it
/// or into memory.
pub fn time_writes<E: From<ReadError>>(
    walk: &Walk,
    element_size: usize,
    shape: &[u64],
    data: &[u8],
    bounds: WalkBounds,
    mut write: impl FnMut(&Selection, &[u8]) -> Result<(), E>,
) -> Result<WalkRecord, E> {
    time_each(walk, element_size, bounds, &mut |_, _| true, |_, selection, buffer| {
        gather(shape, data, element_size, selection, buffer)?;
        let mut watch = Stopwatch::start();
        write(selection, buffer)?;
        Ok(Lap { read: watch.lap(), ..Lap::default() })
    })
}

/// The loop of both: `work` fills or uses up the buffer and says how long that took.
fn time_each<E: From<ReadError>>(
    walk: &Walk,
    element_size: usize,
    bounds: WalkBounds,
    inspect: Inspect<'_>,
    mut work: impl FnMut(u64, &Selection, &mut [u8]) -> Result<Lap, E>,
) -> Result<WalkRecord, E> {
    let mut record = WalkRecord { total_operations: walk.len(), ..WalkRecord::default() };
    if walk.is_empty() {
        return Ok(record);
    }
    let nbytes_of = |elements: u64| -> Result<usize, ReadError> {
        let nbytes = elements.checked_mul(element_size as u64);
        let nbytes = nbytes.ok_or(ReadError::Memory(None))?;
        usize::try_from(nbytes).map_err(|_| ReadError::Memory(Some(nbytes)))
    };
    let mut buffer = zeroed(nbytes_of(walk.largest_len().map_err(ReadError::from)?)?)?;
    let begun = Instant::now();
    let mut elapsed = Duration::ZERO;
    let mut checksum = 0;
    let mut next_checkpoint = 1;
    for number in 0..walk.len().min(bounds.max_operations.max(1)) {
        if bounds.are_reached(number, elapsed, begun) {
            break;
        }
        let Some(selection) = walk.get(number) else { break };
        let nbytes = nbytes_of(selection.len().map_err(ReadError::from)?)?;
        let out = &mut buffer[..nbytes];
        let lap = work(number, &selection, out)?;
        let took = lap.whole();
        elapsed += took;
        add(&mut record.open_s, lap.open);
        add(&mut record.select_s, lap.select);
        if record.latencies_s.len() < MOST_LATENCIES {
            record.latencies_s.push(took.as_secs_f64());
        }
        checksum = crc32(checksum, out);
        record.operations = number + 1;
        record.selected_nbytes += nbytes as u64;
        if record.operations == next_checkpoint {
            record.checksums.push((record.operations, checksum));
            next_checkpoint *= 2;
        }
        if !inspect(number, out) {
            break;
        }
    }
    if record.checksums.last().is_none_or(|last| last.0 != record.operations) {
        record.checksums.push((record.operations, checksum));
    }
    record.elapsed_s = elapsed.as_secs_f64();
    Ok(record)
}

/// Add the seconds of a part, where it was told apart.
fn add(sum: &mut Option<f64>, part: Option<Duration>) {
    if let Some(part) = part {
        *sum = Some(sum.unwrap_or_default() + part.as_secs_f64());
    }
}
