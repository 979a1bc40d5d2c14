//! In which blocks is a dataset rechunked, so that each source chunk is decoded as rarely as
//! memory allows?
//!
//! A super-block is a box of whole target chunks.  It is read at once, and its target chunks
//! are made out of it; a source chunk that reaches into several super-blocks is decoded for
//! each of them.  Arithmetic only: what a dimension can be cut into, and what that costs,
//! follows from its length and the two chunk lengths, and the few cuts that are worth
//! anything are combined dimension by dimension ([`frontier`](crate::frontier)).

use chunkwise_select::{ChunkGrid, Dims, SelectError};
use thiserror::Error;

use crate::frontier::{Cut, best, cuts};

/// What waits to be handed over, and what is fetched ahead of decoding, takes at most so much
/// ([`InOrder`](chunkwise_engine::InOrder), and the engine where storage is slow) ...
const WAITING_NBYTES: u64 = 80 << 20;
/// ... and is counted as this share of a budget that is smaller.
const WAITING_SHARE: u64 = 4;
/// Buffers of a chunk's size that a thread needs to decode or to encode one: the raw bytes,
/// the stored ones, and those between two filters.
const BUFFERS: u64 = 3;
/// A contiguous target is written in pieces of about this size.
const PIECE_NBYTES: u64 = 1 << 20;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// Shapes that do not fit together.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// Not even one target chunk can be made.
    #[error(
        "{memory_nbytes} bytes of memory are too few to make one chunk of the target, which takes {needed_nbytes}"
    )]
    Memory {
        /// What there is.
        memory_nbytes: u64,
        /// The least that is needed.
        needed_nbytes: u64,
    },
}

/// What is to be rechunked, and with how much.
#[derive(Debug, Clone, Copy)]
pub struct Rechunking<'a> {
    /// Elements in each dimension, slowest first.
    pub shape: &'a [u64],
    /// Shape of a source chunk; None for a source without chunks.
    pub source_chunk: Option<&'a [u64]>,
    /// Shape of a target chunk; None for a target without chunks.
    pub target_chunk: Option<&'a [u64]>,
    /// Bytes of an element; at least one.
    pub itemsize: u64,
    /// Memory that all of it may take.
    pub memory_nbytes: u64,
    /// Threads that there are.
    pub threads: usize,
}

/// The blocks in which a dataset is rechunked, and what that takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RechunkPlan {
    /// Shape of a super-block; those at the upper edges are smaller.
    pub super_block: Dims,
    /// How many there are.
    pub super_blocks: u64,
    /// Chunks of the source's grid.
    pub source_chunks: u64,
    /// How many times a source chunk is decoded, all in all.
    pub decodes: u64,
    /// The most memory that is in use at a time.
    pub memory_nbytes: u64,
    /// Threads that this is enough for.
    pub threads: usize,
    /// Shape of what the target is made of: its chunks, or pieces where it has none.
    pub cell: Dims,
    /// Each target chunk is read for itself, as no source chunk reaches into two of them.
    pub is_direct: bool,
}

impl RechunkPlan {
    /// The fewest decodes that memory allows, then the fewest super-blocks, then the least
    /// memory.
    ///
    /// # Errors
    /// When the shapes do not fit, or memory does not hold one target chunk.
    pub fn new(rechunking: &Rechunking<'_>) -> Result<Self, PlanError> {
        let Rechunking { shape, source_chunk, itemsize, memory_nbytes, threads, .. } = *rechunking;
        let cell = cell_of(rechunking);
        let cells = ChunkGrid::new(shape, &cell)?;
        let sources = source_chunk.map(|chunk| ChunkGrid::new(shape, chunk)).transpose()?;
        let source_chunks = sources.as_ref().map_or(0, ChunkGrid::len);
        let nbytes = |dims: &[u64]| dims.iter().fold(itemsize, |n, &d| n.saturating_mul(d));
        let clipped: Dims = shape.iter().zip(&cell).map(|(&n, &t)| n.min(t)).collect();
        let (cell_nbytes, least_nbytes) = (nbytes(&cell), nbytes(&clipped));
        let source_nbytes = source_chunk.map_or(0, nbytes);
        let a_thread = BUFFERS
            .saturating_mul(cell_nbytes)
            .saturating_add(BUFFERS * source_nbytes.min(1 << 60));

        let dimensions: Vec<Vec<Cut>> = (0..shape.len())
            .map(|d| cuts(shape[d], source_chunk.map(|chunk| chunk[d]), cell[d]))
            .collect();
        let is_direct = source_chunk.is_some()
            && (0..shape.len())
                .all(|d| Cut::of(shape[d], source_chunk.map(|c| c[d]), cell[d]).splits_nothing());
        let slab_least = if is_direct { 0 } else { least_nbytes };

        let waiting = WAITING_NBYTES.min(memory_nbytes / WAITING_SHARE);
        let room = memory_nbytes - waiting;
        let needs = |threads: u64| a_thread.saturating_mul(threads).saturating_add(slab_least);
        if needs(1) > room {
            let share = needs(1).div_ceil(WAITING_SHARE - 1);
            let needed_nbytes = needs(1).saturating_add(WAITING_NBYTES.min(share));
            return Err(PlanError::Memory { memory_nbytes, needed_nbytes });
        }
        // Threads are worth more than large blocks, but not than any block at all.
        let most = (room / 2) / a_thread.max(1);
        let threads = usize::try_from(most).map_or(threads, |most| threads.min(most)).max(1);
        let work = a_thread.saturating_mul(threads as u64);

        if is_direct || cells.is_empty() {
            return Ok(Self {
                super_blocks: cells.len(),
                super_block: clipped,
                source_chunks,
                decodes: source_chunks,
                memory_nbytes: waiting.saturating_add(work),
                threads,
                cell,
                is_direct,
            });
        }
        let found = best(&dimensions, room.saturating_sub(work) / itemsize.max(1));
        // The smallest block fits: there is always one.
        let lens: Dims = found.iter().map(|cut| cut.len).collect();
        let product = |of: fn(&Cut) -> u64| found.iter().map(of).fold(1, u64::saturating_mul);
        Ok(Self {
            super_blocks: product(|cut| cut.blocks),
            source_chunks,
            decodes: if sources.is_some() { product(|cut| cut.decodes) } else { 0 },
            memory_nbytes: waiting.saturating_add(work).saturating_add(nbytes(&lens)),
            super_block: lens,
            threads,
            cell,
            is_direct,
        })
    }
}

/// The target's chunk shape; without chunks, pieces of whole rows, of such lengths that they
/// split few source chunks.
fn cell_of(rechunking: &Rechunking<'_>) -> Dims {
    if let Some(chunk) = rechunking.target_chunk {
        return chunk.into();
    }
    let shape = rechunking.shape;
    let mut cell: Dims = shape.iter().map(|_| 1).collect();
    let mut room = (PIECE_NBYTES / rechunking.itemsize.max(1)).max(1);
    for d in (0..shape.len()).rev() {
        let len = shape[d].max(1);
        if len <= room {
            cell[d] = len;
            room /= len;
            continue;
        }
        let source = rechunking.source_chunk.and_then(|chunk| chunk.get(d)).copied().unwrap_or(1);
        cell[d] = match source {
            0 | 1 => room,
            source if source <= room => room / source * source,
            // The largest that divides the chunk, as far as a look at small divisors tells.
            source => (source.div_ceil(room)..)
                .take(1000)
                .find(|&n| source % n == 0)
                .map_or(room, |n| source / n),
        };
        break;
    }
    cell
}
