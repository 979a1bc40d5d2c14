//! How does the data of one dataset become that of another?
//!
//! In super-blocks ([`RechunkPlan`]): each is read by the engine on all threads, then its
//! target chunks are gathered, encoded on all threads and handed over in order.  Where no source
//! chunk reaches into two target chunks there is no block: each target chunk is read for itself,
//! by the thread that encodes it.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use chunkwise_codec::{Choices, Effort, Tuning};
use chunkwise_engine::{Committer, InOrder, ReadError, zeroed};
use chunkwise_select::ChunkGrid;

use crate::cells::{Cells, Extent};
use crate::handing::Handing;
use crate::journal::Records;
use crate::maker::{Form, Maker};
use crate::share::{Pieces, Share, enough_for};
use crate::slab::Slab;
use crate::source::Source;
use crate::turns::{Kept, Turn};
use crate::{CopyError, Progress, RechunkPlan};

/// Chunks that an encoder is chosen by.
const SAMPLES: u64 = 6;
/// ... as far as they take no more than this.
const SAMPLES_NBYTES: u64 = 64 << 20;
/// A block is read in steps of about this size, so that progress is seen.
const STEP_NBYTES: u64 = 64 << 20;

/// What there is to do, and with what.
pub struct Copying<'a> {
    pub source: &'a Source,
    pub plan: &'a RechunkPlan,
    pub cells: &'a Cells,
    pub effort: Effort,
    pub choices: &'a Choices,
    pub records: Option<&'a Records<'a>>,
    pub turn: Option<Turn<'a>>,
    pub share: Option<&'a dyn Share>,
    /// Memory that those who share have together.
    pub shared: Option<&'a File>,
    pub progress: &'a Progress,
}

/// What it took.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// Chunks of the source that went through filters, each time they did.
    pub decodes: u64,
    pub chunks_written: u64,
    pub tuning: Option<Tuning>,
    pub read_s: f64,
    pub encode_s: f64,
}

impl Copying<'_> {
    /// Copy everything.
    pub fn run(&self, form: Form, committer: &mut dyn Committer) -> Result<Done, CopyError> {
        let Some(turn) = self.turn else {
            let mut handing = Handing::new(committer, self.progress, self.records);
            let mut done = self.make(form, &mut handing)?;
            done.chunks_written = handing.chunks;
            return Ok(done);
        };
        let (mut kept, aside) = (Kept::default(), Progress::default());
        let mut done = self.make(form, &mut Handing::new(&mut kept, &aside, None))?;
        turn.wait()?;
        let mut handing = Handing::new(committer, self.progress, self.records);
        kept.hand_over(&mut handing)?;
        done.chunks_written = handing.chunks;
        Ok(done)
    }

    fn make(&self, form: Form, handing: &mut Handing<'_>) -> Result<Done, CopyError> {
        if self.plan.is_direct {
            self.run_directly(form, handing)
        } else {
            self.run_in_blocks(form, handing)
        }
    }

    /// For this many cells at a time.
    fn maker(&self, form: Form, cells: u64) -> Maker<'_> {
        let busy = usize::try_from(cells).unwrap_or(usize::MAX);
        let idle = self.plan.threads.saturating_sub(busy);
        Maker::new(self.cells, form, self.records, self.progress, idle)
    }

    /// Encode these cells on all threads and hand them over.
    fn in_order(
        &self,
        tasks: Range<u64>,
        encode: &(
             dyn Fn(u64, &mut chunkwise_engine::EncodedChunk) -> Result<bool, CopyError> + Sync
         ),
        handing: &mut Handing<'_>,
    ) -> Result<(), CopyError> {
        let mut spare = std::mem::take(&mut handing.spare);
        let all = InOrder {
            tasks: tasks.end - tasks.start,
            helpers: self.plan.threads - 1,
            encode: &|number, chunk| encode(tasks.start + number, chunk),
            progress: &mut |_| (),
            cancelled: &self.progress.cancelled,
            spare: &mut spare,
        }
        .run(handing)?;
        handing.spare = spare;
        if all { Ok(()) } else { Err(CopyError::Cancelled) }
    }

    /// Each target chunk for itself.
    fn run_directly(&self, form: Form, handing: &mut Handing<'_>) -> Result<Done, CopyError> {
        let begun = Instant::now();
        let mut done = Done::default();
        let wanted = self.source.boxes_of(&self.cells.grid);
        let tasks = wanted.as_ref().map_or(self.cells.grid.len(), |wanted| wanted.len() as u64);
        let position = |task: u64| wanted.as_ref().map_or(task, |wanted| wanted[task as usize]);
        // Alone, where there is enough to do for all.
        let threads = if tasks < 2 * self.plan.threads as u64 { self.plan.threads } else { 1 };

        // Samples are kept until their turn comes, so that nothing is decoded twice.
        let nbytes = self.cells.grid.chunk_len().saturating_mul(self.cells.size as u64);
        let few = SAMPLES.min(SAMPLES_NBYTES / nbytes.max(1)).min(tasks);
        let mut samples: Vec<(u64, Vec<u8>)> = Vec::new();
        for number in 0..if needs_samples(&form) { few } else { 0 } {
            let position = position(spread(number, few, tasks));
            let extent = Extent::of_chunk(&self.cells.grid, position);
            let mut elements = zeroed(nbytes_of(&extent, self.cells.size)?)?;
            done.decodes += self.read(&extent, &mut elements, self.plan.threads)?;
            samples.push((position, elements));
        }
        let raw: Vec<&[u8]> = samples.iter().map(|(_, elements)| &elements[..]).collect();
        let (form, tuning) = self.tuned(form, &raw);
        done.tuning = tuning;
        let maker = self.maker(form, tasks);
        let decodes = AtomicU64::new(0);
        let encode = |task: u64, chunk: &mut chunkwise_engine::EncodedChunk| {
            let position = position(task);
            let elements = |extent: &Extent, out: &mut [u8]| {
                if let Some((_, sample)) = samples.iter().find(|(at, _)| *at == position) {
                    out.copy_from_slice(sample);
                    return Ok(());
                }
                decodes.fetch_add(self.read(extent, out, threads)?, Relaxed);
                Ok(())
            };
            maker.make(position, elements, chunk).map(|()| true)
        };
        let mut pieces = Pieces::new(self.share, 0, tasks, enough_for(self.plan.threads));
        while let Some(tasks) = pieces.next()? {
            self.in_order(tasks, &encode, handing)?;
        }
        done.decodes += decodes.into_inner();
        done.encode_s = begun.elapsed().as_secs_f64();
        Ok(done)
    }

    /// With the encoder chosen by samples.
    fn tuned(&self, form: Form, samples: &[&[u8]]) -> (Form, Option<Tuning>) {
        let Form::Chunk { encoding, unfiltered_partial_chunks, padding } = form else {
            return (form, None);
        };
        let size = self.cells.size;
        let (encoding, tuning) = encoding.tuned_like(self.effort, samples, size, self.choices);
        (Form::Chunk { encoding, unfiltered_partial_chunks, padding }, tuning)
    }

    /// Read a part of the source, and count what was read; how many of its chunks were decoded.
    fn read(&self, extent: &Extent, out: &mut [u8], threads: usize) -> Result<u64, CopyError> {
        let cost = self.source.read(extent, out, threads, self.progress)?;
        self.progress.read_nbytes.fetch_add(cost.stored_nbytes, Relaxed);
        Ok(cost.decodes)
    }

    /// Super-block by super-block.
    fn run_in_blocks(&self, form: Form, handing: &mut Handing<'_>) -> Result<Done, CopyError> {
        let shape = self.cells.grid.shape();
        let blocks = ChunkGrid::new(shape, &self.plan.super_block)?;
        let wanted = self.source.boxes_of(&blocks);
        let count = wanted.as_ref().map_or(blocks.len(), |wanted| wanted.len() as u64);
        let mut done = Done::default();
        let mut slab = Slab::new(self.share.zip(self.shared))?;
        let (mut form, mut maker) = (Some(form), None);
        // Processes that share a slab work on each block together, others on blocks of their own.
        let (alone, together) =
            if slab.is_shared() { (None, self.share) } else { (self.share, None) };
        let mut pieces = Pieces::new(alone, 0, count, 1);
        let mut mine = 0..0;
        loop {
            let Some(number) = mine.next() else {
                let Some(more) = pieces.next()? else { break };
                mine = more;
                continue;
            };
            let position = wanted.as_ref().map_or(number, |wanted| wanted[number as usize]);
            let block = Extent::of_chunk(&blocks, position);
            let cells = block.touches(&self.cells.grid);
            let origin_of = |task: u64| {
                Extent::of_chunk(&self.cells.grid, cells.position(&self.cells.grid, task))
            };
            let is_known = self.records.is_some_and(|records| {
                (0..cells.len()).all(|task| {
                    let cell = origin_of(task);
                    records.holds(&cell.origin) || !self.source.has_any(&cell)
                })
            });
            let lost = self.source.lost_count();
            if !is_known {
                let begun = Instant::now();
                let nbytes = nbytes_of(&block, self.cells.size)?;
                slab.hold(nbytes)?;
                let pieces = Pieces::new(together, 2 * number + 1, 1, 1);
                done.decodes += self.read_block(&block, &mut slab, pieces)?;
                slab.meet()?;
                done.read_s += begun.elapsed().as_secs_f64();
            }
            if let Some(records) = self.records {
                records.set_sound(self.source.lost_count() == lost);
            }
            let begun = Instant::now();
            let maker = match (&maker, form.take()) {
                (Some(maker), _) => maker,
                (None, Some(form)) => {
                    let raw = if is_known || !needs_samples(&form) {
                        Vec::new()
                    } else {
                        self.samples(&block, slab.bytes())?
                    };
                    let raw: Vec<&[u8]> = raw.iter().map(|raw| &raw[..]).collect();
                    let (form, tuning) = self.tuned(form, &raw);
                    done.tuning = tuning;
                    &*maker.insert(self.maker(form, cells.len()))
                }
                (None, None) => return Err(CopyError::Cancelled),
            };
            let bytes = slab.bytes();
            let encode = |task: u64, chunk: &mut chunkwise_engine::EncodedChunk| {
                let position = cells.position(&self.cells.grid, task);
                if !self.source.has_any(&Extent::of_chunk(&self.cells.grid, position)) {
                    return Ok(false);
                }
                let elements = |cell: &Extent, out: &mut [u8]| {
                    if is_known {
                        let message = "a chunk of the run before is not there any more";
                        return Err(CopyError::Refused(message.into()));
                    }
                    self.gather(&block, bytes, cell, out)
                };
                maker.make(position, elements, chunk).map(|()| true)
            };
            let mut mine =
                Pieces::new(together, 2 * number + 2, cells.len(), enough_for(self.plan.threads));
            while let Some(tasks) = mine.next()? {
                self.in_order(tasks, &encode, handing)?;
            }
            // Nobody reads the next block over what another one still encodes.
            slab.meet()?;
            done.encode_s += begun.elapsed().as_secs_f64();
        }
        Ok(done)
    }

    /// Copy a cell's elements out of the block that it lies in.
    fn gather(
        &self,
        block: &Extent,
        slab: &[u8],
        cell: &Extent,
        out: &mut [u8],
    ) -> Result<(), CopyError> {
        cell.take(slab, block, out, self.cells.size)
            .ok_or_else(|| CopyError::Refused("a chunk does not fit its block".into()))
    }

    /// Read a block, in steps of whole source chunks; those that `pieces` gives.
    fn read_block(
        &self,
        block: &Extent,
        slab: &mut Slab<'_>,
        mut pieces: Pieces<'_>,
    ) -> Result<u64, CopyError> {
        let mut decodes = 0;
        let steps = self.steps(block)?;
        pieces.of(steps.len() as u64);
        while let Some(range) = pieces.next()? {
            for (step, place) in &steps[range.start as usize..range.end as usize] {
                let out = slab.part(place.clone());
                decodes += self.read(step, out, self.plan.threads)?;
            }
        }
        Ok(decodes)
    }

    /// The steps in which a block is read, and where each lies in it.
    fn steps(&self, block: &Extent) -> Result<Vec<(Extent, Range<usize>)>, CopyError> {
        // Only boxes that are apart in the slowest dimension that matters lie one after another.
        let Some(d) = block.shape.iter().position(|&len| len > 1) else {
            return Ok(vec![(block.clone(), 0..nbytes_of(block, self.cells.size)?)]);
        };
        let row_nbytes = block.nbytes(self.cells.size) / block.shape[d].max(1);
        let chunk = self.source.written.as_ref().map_or(1, |(grid, _)| grid.chunk()[d]);
        let rows = (STEP_NBYTES / row_nbytes.max(1)).max(1).div_ceil(chunk).saturating_mul(chunk);
        let (begin, end) = (block.origin[d], block.origin[d] + block.shape[d]);
        let (mut at, mut place, mut steps) = (begin, 0, Vec::new());
        while at < end {
            // Up to where source chunks meet.
            let next = at.saturating_add(rows);
            let next = if next >= end { end } else { (next / chunk * chunk).max(at + 1) };
            let mut step = block.clone();
            step.origin[d] = at;
            step.shape[d] = next - at;
            let nbytes = nbytes_of(&step, self.cells.size)?;
            steps.push((step, place..place + nbytes));
            (at, place) = (next, place + nbytes);
        }
        Ok(steps)
    }

    /// Some cells of a block, spread over it, by which an encoder is chosen.
    fn samples(&self, block: &Extent, slab: &[u8]) -> Result<Vec<Vec<u8>>, CopyError> {
        let cells = block.touches(&self.cells.grid);
        let nbytes = self.cells.grid.chunk_len().saturating_mul(self.cells.size as u64);
        let few = SAMPLES.min(SAMPLES_NBYTES / nbytes.max(1)).min(cells.len());
        (0..few)
            .map(|number| {
                let task = spread(number, few, cells.len());
                let position = cells.position(&self.cells.grid, task);
                let cell = Extent::of_chunk(&self.cells.grid, position);
                let mut elements = zeroed(nbytes_of(&cell, self.cells.size)?)?;
                self.gather(block, slab, &cell, &mut elements)?;
                Ok(elements)
            })
            .collect()
    }
}

/// The `number`-th of `few` places spread over `all`.
fn spread(number: u64, few: u64, all: u64) -> u64 {
    let place = (2 * u128::from(number) + 1) * u128::from(all) / (2 * u128::from(few.max(1)));
    (place as u64).min(all.saturating_sub(1))
}

fn nbytes_of(extent: &Extent, size: usize) -> Result<usize, ReadError> {
    let nbytes = extent.nbytes(size);
    usize::try_from(nbytes).map_err(|_| ReadError::Memory(Some(nbytes)))
}

fn needs_samples(form: &Form) -> bool {
    matches!(form, Form::Chunk { encoding, .. } if !encoding.steps().is_empty())
}
