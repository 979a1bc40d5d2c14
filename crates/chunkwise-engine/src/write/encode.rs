//! How are chunks encoded on all threads, and committed in order?

use std::sync::atomic::AtomicBool;

use chunkwise_codec::Encoding;
use chunkwise_select::Dims;

use crate::memory::{most_threads, work_nbytes};
use crate::process::{ProcessState, thread_count};
use crate::profile::{Phase, timed};
use crate::settings::Setting;
use crate::write::buffers::{Buffers, with_buffers};
use crate::write::chunk_maker::{CallersData, ChunkJob, ChunkMaker, Stored};
use crate::write::edges::{for_each_beyond, reach};
use crate::write::{Committer, DatasetWriter, EncodedChunk, InOrder, WriteError};

/// Memory of as many bytes is used for any chunk.
const SMALL_NBYTES: usize = 64 << 10;

/// Chunks that are to be encoded, and from what.
pub(super) struct Jobs<'a> {
    pub(super) jobs: &'a [ChunkJob],
    /// What each holds in the file, where that is needed.
    pub(super) stored: &'a [Stored],
    pub(super) encoding: &'a Encoding,
    pub(super) maker: ChunkMaker<'a>,
}

impl Jobs<'_> {
    /// Encode all on every thread, and hand them over in order; gives how many were taken, and
    /// whether these are all: not once it is cancelled.
    pub(super) fn run(
        &self,
        committer: &mut dyn Committer,
        cancelled: &AtomicBool,
    ) -> (u64, Result<bool, WriteError>) {
        let chunk_nbytes = self.maker.chunk_nbytes as u64;
        let threads = most_threads(chunk_nbytes, thread_count(), work_nbytes());
        let threads = threads.min(self.jobs.len());
        // Those that have no chunk of their own to encode help with the others'.
        let idle = thread_count() - threads;
        let encode = |number: u64, out: &mut EncodedChunk| {
            let (job, stored) = (&self.jobs[number as usize], &self.stored[number as usize]);
            let encoding = self.encoding;
            with_buffers(|buffers| self.maker.encode(job, stored, encoding, (buffers, idle), out))?;
            Ok(true)
        };
        let mut committed = 0;
        let common = &ProcessState::of_this_process().spare;
        // What is much larger would count as much among what waits.
        let largest = self.maker.chunk_nbytes.saturating_mul(2).max(SMALL_NBYTES);
        let of = |bytes| EncodedChunk { bytes, ..EncodedChunk::default() };
        let mut spare: Vec<EncodedChunk> = common.take(largest).into_iter().map(of).collect();
        let done = InOrder {
            tasks: self.jobs.len() as u64,
            helpers: threads.saturating_sub(1),
            encode: &encode,
            progress: &mut |done| committed += done,
            cancelled,
            spare: &mut spare,
        }
        .run(committer);
        common.give(spare.into_iter().map(|chunk| chunk.bytes));
        (committed, done)
    }
}

impl DatasetWriter {
    /// Encode and commit these chunks, which are in file order; those that are committed are
    /// no dirty chunks any more.
    pub(super) fn commit(
        &mut self,
        jobs: Vec<ChunkJob>,
        data: Option<CallersData<'_>>,
        cancelled: &AtomicBool,
    ) -> Result<(), WriteError> {
        let mut rest = jobs.as_slice();
        while !rest.is_empty() {
            let stored = self.read_back(rest)?;
            let (jobs, after) = rest.split_at(stored.len());
            self.choose_encoder(jobs, data, &stored)?;
            self.encode_and_commit(jobs, data, &stored, cancelled)?;
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
        let job = [ChunkJob::dirty(chunk_index.clone())];
        let found = self.read_back(&job)?;
        let mut buffers = Buffers::default();
        let maker = self.maker(None);
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
    fn read_back(&mut self, jobs: &[ChunkJob]) -> Result<Vec<Stored>, WriteError> {
        let (mut found, mut nbytes) = (Vec::new(), 0);
        let most = Setting::PrefetchNbytes.value();
        for job in jobs {
            if nbytes > most {
                break;
            }
            let dirty = if job.task.is_none() { self.dirty.get(&job.chunk_index) } else { None };
            let within = reach(self.grid.shape(), self.grid.chunk(), &job.chunk_index);
            let missing =
                dirty.is_some_and(|chunk| chunk.covered.elements() < within.iter().product());
            let mut stored = None;
            if missing {
                let (mut bytes, chunk_origin) = (Vec::new(), self.grid.origin(&job.chunk_index));
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

    fn encode_and_commit(
        &mut self,
        jobs: &[ChunkJob],
        data: Option<CallersData<'_>>,
        stored: &[Stored],
        cancelled: &AtomicBool,
    ) -> Result<(), WriteError> {
        let encoding = self.tuned.as_ref().map_or(&self.info.encoding, |(tuned, _)| tuned);
        // Not by `maker`, as the store is borrowed beside it.
        let maker = ChunkMaker {
            info: &self.info,
            grid: &self.grid,
            chunk_nbytes: self.chunk_nbytes,
            dirty: &self.dirty,
            data,
        };
        let made = Jobs { jobs, stored, encoding, maker };
        let (committed, done) = made.run(&mut *self.store, cancelled);
        // Whatever has happened, these are in the file.
        self.stats.committed += committed;
        let budget = self.budget();
        for job in &jobs[..committed as usize] {
            self.dirty.remove(&job.chunk_index, budget);
        }
        if done? { Ok(()) } else { Err(WriteError::Cancelled) }
    }

    fn maker<'a>(&'a self, data: Option<CallersData<'a>>) -> ChunkMaker<'a> {
        ChunkMaker {
            info: &self.info,
            grid: &self.grid,
            chunk_nbytes: self.chunk_nbytes,
            dirty: &self.dirty,
            data,
        }
    }

    /// Choose deflate's encoder by some of these chunks and of those before, when it is time.
    fn choose_encoder(
        &mut self,
        jobs: &[ChunkJob],
        data: Option<CallersData<'_>>,
        stored: &[Stored],
    ) -> Result<(), WriteError> {
        let mut choice = std::mem::take(&mut self.choice);
        let former = self.tuned.as_ref().map(|(encoding, _)| encoding);
        let chosen = choice.made(&self.maker(data), jobs, stored, self.effort, former);
        self.choice = choice;
        if let Some(chosen) = chosen? {
            self.tuned = Some(chosen);
        }
        Ok(())
    }
}
