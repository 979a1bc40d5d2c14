//! How does one chunk get its bytes: from the caller, from what was written before, from the
//! file, through its filters?

use chunkwise_codec::{Encoding, Scratch, resize};
use chunkwise_select::{ChunkGrid, Dims, Plan};

use crate::Lacking;
use crate::profile::{Laps, Phase};
use crate::read::fill_run;
use crate::write::buffers::Buffers;
use crate::write::by_blocks::encode_by_blocks;
use crate::write::dirty::DirtyChunks;
use crate::write::edges::{for_each_beyond, reach};
use crate::write::gather::gather_strip;
use crate::write::{EncodedChunk, WriteError, WriteInfo};

/// A chunk that is to be committed.
#[derive(Debug)]
pub(super) struct ChunkJob {
    pub(super) chunk_index: Dims,
    /// The plan's task that covers it whole; None for a dirty chunk.
    pub(super) task: Option<u64>,
}

impl ChunkJob {
    pub(super) fn dirty(chunk_index: Dims) -> Self {
        Self { chunk_index, task: None }
    }
}

/// What the caller gave to be written: elements that are not among the dirty chunks.
#[derive(Clone, Copy)]
pub(super) struct CallersData<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) data: &'a [u8],
}

/// What a chunk holds in the file already: its stored bytes and its filter mask.
pub(super) type Stored = Option<(Vec<u8>, u32)>;

/// What threads need that put chunks together.
pub(super) struct ChunkMaker<'a> {
    pub(super) info: &'a WriteInfo,
    pub(super) grid: &'a ChunkGrid,
    pub(super) chunk_nbytes: usize,
    pub(super) dirty: &'a DirtyChunks,
    pub(super) data: Option<CallersData<'a>>,
}

impl ChunkMaker<'_> {
    pub(super) fn encode(
        &self,
        job: &ChunkJob,
        stored: &Stored,
        encoding: &Encoding,
        (buffers, helpers): (&mut Buffers, usize),
        out: &mut EncodedChunk,
    ) -> Result<(), WriteError> {
        out.chunk_origin = self.grid.origin(&job.chunk_index);
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
        let failed = |source| WriteError::Encode {
            chunk_origin: self.grid.origin(&job.chunk_index),
            source,
        };
        let scratch = &mut buffers.encoding;
        let by_blocks = encode_by_blocks(encoding, raw, scratch, helpers, &mut out.bytes);
        if let Some(mask) = by_blocks.map_err(failed)? {
            out.filter_mask = mask;
            return Ok(());
        }
        let done = |filter| laps.end(Phase::Encode(filter));
        let made = encoding.encode_in_steps(raw, scratch, &mut out.bytes, done);
        out.filter_mask = made.map_err(failed)?;
        Ok(())
    }

    /// A chunk's bytes before the filters; None once they are put together in `buffers.raw`.
    pub(super) fn raw(
        &self,
        job: &ChunkJob,
        stored: &Stored,
        buffers: &mut Buffers,
    ) -> Result<Option<&[u8]>, WriteError> {
        let within = reach(self.grid.shape(), self.grid.chunk(), &job.chunk_index);
        let Buffers { raw, old, decoding, .. } = buffers;
        let no_memory = |_| WriteError::Memory(self.chunk_nbytes as u64);
        let size = self.info.element_size;
        if let (Some(number), Some(CallersData { plan, data })) = (job.task, self.data) {
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
            let nbytes = self.decode(job, bytes, *mask, decoding, old)? as u64;
            let lacking = Lacking::of(self.grid, &job.chunk_index, nbytes, size);
            if let Some(lacking) = lacking {
                // Of what is written now, nothing need be there.
                let mut is_needed = false;
                dirty.covered.for_each_gap(len, |begin, end| {
                    let mut missing = begin.max(nbytes / size as u64)..end;
                    is_needed |= missing.any(|at| self.grid.has(&job.chunk_index, at));
                });
                if is_needed {
                    return Err(WriteError::Short {
                        chunk_origin: self.grid.origin(&job.chunk_index),
                        lacking: Box::new(lacking),
                    });
                }
            }
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
        job: &ChunkJob,
        bytes: &[u8],
        mask: u32,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<usize, WriteError> {
        let partial = self.info.unfiltered_partial_chunks && self.grid.is_partial(&job.chunk_index);
        let mask = if partial { u32::MAX } else { mask };
        let decoded = self.info.pipeline.decode_in_steps(bytes, mask, scratch, out, |_| ());
        decoded.map_err(|source| WriteError::Decode {
            chunk_origin: self.grid.origin(&job.chunk_index),
            source,
        })
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
}
