//! How are chunks put together, encoded on all threads, and committed?

use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

use chunkwise_codec::{Effort, EncodeScratch, Encoding, Scratch, resize};
use chunkwise_select::{ChunkGrid, Dims, Plan};

use crate::process::thread_count;
use crate::profile::{Laps, Phase, timed};
use crate::scatter::fill_run;
use crate::schedule::most_threads;
use crate::write::dirty::DirtyChunks;
use crate::write::edges::{for_each_beyond, reach};
use crate::write::gather::gather_strip;
use crate::write::writer::WriteInfo;
use crate::write::{DatasetWriter, EncodedChunk, InOrder, WriteError};

/// A chunk that is to be committed.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) chunk_index: Dims,
    /// The plan's task that covers it whole; None for a dirty chunk.
    pub(super) task: Option<u64>,
}

impl Job {
    pub(super) fn dirty(chunk_index: Dims) -> Self {
        Self { chunk_index, task: None }
    }
}

/// Where elements come from that are not among the dirty chunks.
#[derive(Clone, Copy)]
pub(super) struct Making<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) data: &'a [u8],
}

/// What a chunk holds in the file already: its stored bytes and its filter mask.
type Stored = Option<(Vec<u8>, u32)>;

/// Stored bytes that may be read before they are decoded.
const MOST_STORED: usize = 64 << 20;

/// Chunks by which deflate's encoder is chosen first, at least.
const SAMPLES: usize = 4;

/// Each time it takes about as many bytes, of at most so many chunks.
const SAMPLES_NBYTES: usize = 1 << 19;
const MOST_SAMPLES: usize = 16;

/// Samples are kept for the next choice unless they take more.
const MOST_KEPT_NBYTES: usize = 8 << 20;

/// It is chosen anew when this many bytes are made, ...
const SECOND_NBYTES: u64 = 8 << 20;

/// ... and from then on whenever there are so many times as many.
const GROWTH: u64 = 3;

/// When deflate's encoder is chosen next, and by what beside the chunks of then.
#[derive(Default)]
pub(super) struct Choice {
    made_nbytes: u64,
    next_nbytes: u64,
    samples: Vec<Vec<u8>>,
}

/// What a thread reuses from chunk to chunk.
#[derive(Default)]
struct Buffers {
    raw: Vec<u8>,
    old: Vec<u8>,
    encoding: EncodeScratch,
    decoding: Scratch,
}

impl Buffers {
    /// Buffers larger than this are given back after a write.
    const KEEP_NBYTES: usize = 32 << 20;

    fn trim(&mut self) {
        for buffer in [&mut self.raw, &mut self.old] {
            if buffer.capacity() > Self::KEEP_NBYTES {
                *buffer = Vec::new();
            }
        }
        self.encoding.trim(Self::KEEP_NBYTES);
        self.decoding.trim(Self::KEEP_NBYTES);
    }
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Run `work` with this thread's buffers.
fn with_buffers<T>(work: impl FnOnce(&mut Buffers) -> T) -> T {
    BUFFERS.with(|cell| match cell.try_borrow_mut() {
        Ok(mut buffers) => {
            let outcome = work(&mut buffers);
            buffers.trim();
            outcome
        }
        // Unreachable while encoding does not call back; correct if it ever does.
        Err(_) => work(&mut Buffers::default()),
    })
}

impl DatasetWriter {
    /// Encode and commit these chunks, which are in file order; those that are committed are
    /// no dirty chunks any more.
    pub(super) fn make(
        &mut self,
        jobs: Vec<Job>,
        making: Option<Making<'_>>,
        cancelled: &AtomicBool,
    ) -> Result<(), WriteError> {
        let mut rest = jobs.as_slice();
        while !rest.is_empty() {
            let stored = self.read_back(rest)?;
            let (jobs, after) = rest.split_at(stored.len());
            self.choose_encoder(jobs, making, &stored)?;
            self.make_some(jobs, making, &stored, cancelled)?;
            rest = after;
        }
        Ok(())
    }

    /// Put the chunk among the dirty ones with nothing of it missing.
    pub(super) fn complete(&mut self, chunk_index: &Dims, stored: bool) -> Result<(), WriteError> {
        let within = reach(self.grid.shape(), self.grid.chunk(), chunk_index);
        let wanted = within.iter().product();
        if self.dirty.get(chunk_index).is_some_and(|chunk| chunk.covered.elements() == wanted) {
            return Ok(());
        }
        self.change(chunk_index, stored, |_| ())?;
        let job = [Job::dirty(chunk_index.clone())];
        let found = self.read_back(&job)?;
        let mut buffers = Buffers::default();
        let maker = Maker {
            info: &self.info,
            grid: &self.grid,
            chunk_nbytes: self.chunk_nbytes,
            dirty: &self.dirty,
            making: None,
        };
        for found in &found {
            maker.raw(&job[0], found, &mut buffers)?;
        }
        let (len, chunk_shape) = (self.grid.chunk_len(), Dims::from_slice(self.grid.chunk()));
        self.change(chunk_index, stored, |chunk| {
            chunk.raw.copy_from_slice(&buffers.raw);
            chunk.covered.add(0, len);
            for_each_beyond(&within, &chunk_shape, &mut |at, len| chunk.covered.remove(at, len));
        })
    }

    /// Read what the first chunks hold in the file, where that is needed; as many as may
    /// wait in memory.
    fn read_back(&mut self, jobs: &[Job]) -> Result<Vec<Stored>, WriteError> {
        let (mut found, mut nbytes) = (Vec::new(), 0);
        for job in jobs {
            if nbytes > MOST_STORED {
                break;
            }
            let dirty = if job.task.is_none() { self.dirty.get(&job.chunk_index) } else { None };
            let within = reach(self.grid.shape(), self.grid.chunk(), &job.chunk_index);
            let missing =
                dirty.is_some_and(|chunk| chunk.covered.elements() < within.iter().product());
            let mut stored = None;
            if missing {
                let (mut bytes, chunk_origin) = (Vec::new(), self.origin(&job.chunk_index));
                let read = timed(Phase::Storage, || self.store.stored(&chunk_origin, &mut bytes));
                match read {
                    Ok(mask) => stored = mask.map(|mask| (bytes, mask)),
                    Err(message) => return Err(WriteError::Stored { chunk_origin, message }),
                }
            }
            if let Some((bytes, _)) = &stored {
                nbytes += bytes.len();
                self.stats.read_back += 1;
            }
            found.push(stored);
        }
        Ok(found)
    }

    fn make_some(
        &mut self,
        jobs: &[Job],
        making: Option<Making<'_>>,
        stored: &[Stored],
        cancelled: &AtomicBool,
    ) -> Result<(), WriteError> {
        let encoding = self.tuned.as_ref().map_or(&self.info.encoding, |(tuned, _)| tuned);
        let maker = Maker {
            info: &self.info,
            grid: &self.grid,
            chunk_nbytes: self.chunk_nbytes,
            dirty: &self.dirty,
            making,
        };
        let encode = |number: u64, out: &mut EncodedChunk| {
            let at = number as usize;
            with_buffers(|buffers| maker.encode(&jobs[at], &stored[at], encoding, buffers, out))?;
            Ok(true)
        };
        let mut committed = 0;
        let threads = most_threads(self.chunk_nbytes as u64, thread_count());
        let done: Result<bool, WriteError> = InOrder {
            tasks: jobs.len() as u64,
            helpers: threads.saturating_sub(1),
            encode: &encode,
            progress: &mut |done| committed += done,
            cancelled,
            spare: &mut self.spare,
        }
        .run(&mut *self.store);
        // Whatever has happened, these are in the file.
        self.stats.committed += committed;
        for job in &jobs[..committed as usize] {
            self.dirty.remove(&job.chunk_index);
        }
        if done? { Ok(()) } else { Err(WriteError::Cancelled) }
    }

    /// Choose deflate's encoder by some of these chunks and of those before, when it is time.
    ///
    /// A dataset need not begin as it goes on, and so what was chosen is looked at again each
    /// time that there are [`GROWTH`] times as many bytes.
    fn choose_encoder(
        &mut self,
        jobs: &[Job],
        making: Option<Making<'_>>,
        stored: &[Stored],
    ) -> Result<(), WriteError> {
        let nbytes = (jobs.len() as u64).saturating_mul(self.chunk_nbytes as u64);
        self.choice.made_nbytes = self.choice.made_nbytes.saturating_add(nbytes);
        let again = self.tuned.is_some();
        if again && self.choice.made_nbytes < self.choice.next_nbytes {
            return Ok(());
        }
        let maker = Maker {
            info: &self.info,
            grid: &self.grid,
            chunk_nbytes: self.chunk_nbytes,
            dirty: &self.dirty,
            making,
        };
        let most = (SAMPLES_NBYTES / self.chunk_nbytes.max(1)).clamp(1, MOST_SAMPLES);
        let most = if again { most } else { most.max(SAMPLES) };
        let mut fresh: Vec<Vec<u8>> = Vec::new();
        for at in (0..jobs.len()).step_by(jobs.len().div_ceil(most).max(1)) {
            let mut buffers = Buffers::default();
            let elsewhere = maker.raw(&jobs[at], &stored[at], &mut buffers)?;
            fresh.push(elsewhere.map_or(buffers.raw, <[u8]>::to_vec));
        }
        // As many of each stretch as it is long.
        let mut samples: Vec<Vec<u8>> =
            std::mem::take(&mut self.choice.samples).into_iter().step_by(GROWTH as usize).collect();
        samples.append(&mut fresh);
        let spread: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
        let stated = &self.info.encoding;
        let (encoding, tuning) = match &self.tuned {
            Some((former, _)) => stated.tuned_again(self.effort, &spread, former),
            None => stated.tuned(self.effort, &spread),
        };
        // Where there is no choice, or it does not depend on the data, it stays.
        let settled = tuning.is_none() || self.effort == Effort::Fast;
        self.choice.next_nbytes = if settled {
            u64::MAX
        } else {
            self.choice.made_nbytes.saturating_mul(GROWTH).max(SECOND_NBYTES)
        };
        if !settled && samples.len().saturating_mul(self.chunk_nbytes) <= MOST_KEPT_NBYTES {
            self.choice.samples = samples;
        }
        self.tuned = Some((encoding, tuning));
        Ok(())
    }

    pub(super) fn origin(&self, chunk_index: &[u64]) -> Dims {
        chunk_index.iter().zip(self.grid.chunk()).map(|(i, c)| i * c).collect()
    }
}

/// What threads need that put chunks together.
struct Maker<'a> {
    info: &'a WriteInfo,
    grid: &'a ChunkGrid,
    chunk_nbytes: usize,
    dirty: &'a DirtyChunks,
    making: Option<Making<'a>>,
}

impl Maker<'_> {
    fn encode(
        &self,
        job: &Job,
        stored: &Stored,
        encoding: &Encoding,
        buffers: &mut Buffers,
        out: &mut EncodedChunk,
    ) -> Result<(), WriteError> {
        out.chunk_origin = self.origin(job);
        let unfiltered =
            self.info.unfiltered_partial_chunks && self.grid.is_partial(&job.chunk_index);
        let encoding = if unfiltered { &Encoding::default() } else { encoding };
        let mut laps = Laps::begin();
        let elsewhere = self.raw(job, stored, buffers)?;
        laps.end(Phase::Scatter);
        if elsewhere.is_none() && encoding.steps().is_empty() {
            // Put together for this chunk alone: handed over as it is.
            std::mem::swap(&mut buffers.raw, &mut out.bytes);
            out.filter_mask = 0;
            return Ok(());
        }
        let raw = elsewhere.unwrap_or(&buffers.raw);
        let done = |filter| laps.end(Phase::Encode(filter));
        let made = encoding.encode_in_steps(raw, &mut buffers.encoding, &mut out.bytes, done);
        out.filter_mask =
            made.map_err(|source| WriteError::Encode { chunk_origin: self.origin(job), source })?;
        Ok(())
    }

    /// A chunk's bytes before the filters; None once they are put together in `buffers.raw`.
    fn raw(
        &self,
        job: &Job,
        stored: &Stored,
        buffers: &mut Buffers,
    ) -> Result<Option<&[u8]>, WriteError> {
        let within = reach(self.grid.shape(), self.grid.chunk(), &job.chunk_index);
        let Buffers { raw, old, decoding, .. } = buffers;
        let no_memory = |_| WriteError::Memory(self.chunk_nbytes as u64);
        let size = self.info.element_size;
        if let (Some(number), Some(Making { plan, data })) = (job.task, self.making) {
            let task = plan.task(number);
            if let Some(begin) = task.lands_whole_at()
                && let Some(begin) = usize::try_from(begin).ok().and_then(|n| n.checked_mul(size))
                && let Some(whole) = data.get(begin..).and_then(|d| d.get(..self.chunk_nbytes))
            {
                return Ok(Some(whole));
            }
            resize(raw, self.chunk_nbytes).map_err(no_memory)?;
            raw.truncate(self.chunk_nbytes);
            task.for_each_strip(|strip| {
                let copied = gather_strip(data, raw, &strip, size);
                debug_assert!(copied.is_some(), "a plan's strips lie within data and chunk");
            });
            for_each_beyond(&within, self.grid.chunk(), &mut |begin, len| {
                self.fill(raw, begin, len);
            });
            return Ok(None);
        }
        let Some(dirty) = self.dirty.get(&job.chunk_index) else {
            debug_assert!(false, "a job without a task is a dirty chunk");
            return Ok(Some(&[]));
        };
        let len = self.grid.chunk_len();
        if dirty.covered.elements() == len {
            return Ok(Some(&dirty.raw));
        }
        resize(raw, self.chunk_nbytes).map_err(no_memory)?;
        raw.truncate(self.chunk_nbytes);
        raw.copy_from_slice(&dirty.raw);
        if let Some((bytes, mask)) = stored {
            resize(old, self.chunk_nbytes).map_err(no_memory)?;
            old.truncate(self.chunk_nbytes);
            self.decode(job, bytes, *mask, decoding, old)?;
            dirty.covered.for_each_gap(len, |begin, end| {
                let bytes = begin as usize * size..end as usize * size;
                raw[bytes.clone()].copy_from_slice(&old[bytes]);
            });
            for_each_beyond(&within, self.grid.chunk(), &mut |begin, len| {
                self.fill(raw, begin, len);
            });
        } else {
            dirty.covered.for_each_gap(len, |begin, end| self.fill(raw, begin, end - begin));
        }
        Ok(None)
    }

    fn decode(
        &self,
        job: &Job,
        bytes: &[u8],
        mask: u32,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(), WriteError> {
        let partial = self.info.unfiltered_partial_chunks && self.grid.is_partial(&job.chunk_index);
        let mask = if partial { u32::MAX } else { mask };
        let decoded = self.info.pipeline.decode(bytes, mask, scratch, out);
        decoded.map_err(|source| WriteError::Decode { chunk_origin: self.origin(job), source })
    }

    /// Set `len` elements from `begin` on to the fill value.
    fn fill(&self, raw: &mut [u8], begin: u64, len: u64) {
        let size = self.info.element_size;
        let run = &mut raw[begin as usize * size..(begin + len) as usize * size];
        match &self.info.fill {
            Some(fill) => fill_run(run, fill),
            None => run.fill(0),
        }
    }

    fn origin(&self, job: &Job) -> Dims {
        job.chunk_index.iter().zip(self.grid.chunk()).map(|(i, c)| i * c).collect()
    }
}
