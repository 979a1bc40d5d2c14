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

/// What is fetched before it is decoded, and what waits to be handed over
/// ([`InOrder`](chunkwise_engine::InOrder)), take half of this each at most...
const WAITING_NBYTES: u64 = 64 << 20;
/// ... and are counted as this share of a budget that is smaller.
const WAITING_SHARE: u64 = 4;
/// Buffers of a chunk's size that a thread needs to decode or to encode one: the raw bytes,
/// the stored ones, and those between two filters.
const BUFFERS: u64 = 3;
/// Larger blocks bring nothing but fewer decodes: fresh memory costs as much as copying into it,
/// and that of a block is used again for the next...
const ENOUGH_NBYTES: u64 = 128 << 20;
/// ... as long as there are this many chunks in it for each thread.
const CELLS: u64 = 16;
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
    /// Processes that share the super-blocks, each with that memory and those threads.
    pub processes: u64,
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
    /// What of that is for stored bytes that wait.
    pub waiting_nbytes: u64,
    /// Threads that this is enough for.
    pub threads: usize,
    /// Shape of what the target is made of: its chunks, or pieces where it has none.
    pub cell: Dims,
    /// Each target chunk is read for itself, as no source chunk reaches into two of them.
    pub is_direct: bool,
}

impl RechunkPlan {
    /// The fewest decodes that memory allows, in blocks no larger than that takes or than is
    /// good, then the fewest super-blocks, then the least memory.
    ///
    /// # Errors
    /// When the shapes do not fit, or memory does not hold one target chunk.
    pub fn new(rechunking: &Rechunking<'_>) -> Result<Self, PlanError> {
        let Rechunking { shape, source_chunk, itemsize, memory_nbytes, threads, processes, .. } =
            *rechunking;
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
                waiting_nbytes: waiting,
                threads,
                cell,
                is_direct,
            });
        }
        // The smallest block fits: there is always one.
        let decodes = |cuts: &[Cut]| match sources {
            Some(_) => cuts.iter().map(|cut| cut.decodes).fold(1, u64::saturating_mul),
            None => 0,
        };
        let within = |nbytes: u64| best(&dimensions, nbytes / itemsize.max(1));
        // One for each process at least: what is decoded twice then is less than what waits.
        let share = nbytes(shape).div_ceil(processes.max(1));
        let slab_most = room.saturating_sub(work).min(share);
        let enough = (cell_nbytes.saturating_mul(CELLS * threads as u64)).max(ENOUGH_NBYTES);
        let mut found = within(slab_most);
        let small = within(enough.min(slab_most));
        if decodes(&small) == decodes(&found) {
            found = small;
        }
        let lens: Dims = found.iter().map(|cut| cut.len).collect();
        let product = |of: fn(&Cut) -> u64| found.iter().map(of).fold(1, u64::saturating_mul);
        Ok(Self {
            super_blocks: product(|cut| cut.blocks),
            source_chunks,
            decodes: decodes(&found),
            memory_nbytes: waiting.saturating_add(work).saturating_add(nbytes(&lens)),
            super_block: lens,
            waiting_nbytes: waiting,
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(
        shape: &[u64],
        source_chunk: Option<&[u64]>,
        target_chunk: Option<&[u64]>,
        memory_nbytes: u64,
    ) -> Result<RechunkPlan, PlanError> {
        let (itemsize, threads) = (4, 2);
        RechunkPlan::new(&Rechunking {
            shape,
            source_chunk,
            target_chunk,
            itemsize,
            memory_nbytes,
            threads,
            processes: 1,
        })
    }

    #[test]
    fn memory_decides_how_often_a_chunk_is_decoded() {
        let cube =
            |nbytes| plan(&[365, 600, 600], Some(&[1, 600, 600]), Some(&[365, 20, 20]), nbytes);
        let all = cube(1 << 30).unwrap();
        assert_eq!((all.super_blocks, all.decodes, all.source_chunks), (1, 365, 365));
        let some = cube(256 << 20).unwrap();
        assert_eq!((some.super_block.as_slice(), some.decodes), (&[365, 200, 600][..], 3 * 365));
        assert!(!all.is_direct && some.memory_nbytes <= 256 << 20);
    }

    #[test]
    fn chunks_that_are_not_split_need_no_block() {
        let direct = |source: &[u64], target: &[u64]| {
            plan(&[100, 90], Some(source), Some(target), 1 << 20).unwrap()
        };
        let other_filters = direct(&[10, 9], &[10, 9]);
        assert!(other_filters.is_direct);
        assert_eq!((other_filters.super_blocks, other_filters.decodes), (100, 100));
        assert!(direct(&[5, 3], &[10, 9]).is_direct);
        assert!(direct(&[10, 9], &[10, 90]).is_direct);
        assert!(!direct(&[10, 9], &[5, 9]).is_direct);
        assert!(!direct(&[10, 9], &[15, 9]).is_direct);
    }

    #[test]
    fn without_chunks_there_are_pieces_of_whole_rows() {
        let contiguous = plan(&[1 << 20, 64], Some(&[100, 64]), None, 1 << 30).unwrap();
        assert_eq!(contiguous.cell.as_slice(), [4000, 64]);
        assert!(contiguous.is_direct);
        let split = plan(&[1 << 10, 1 << 20], Some(&[10, 1 << 19]), None, 1 << 30).unwrap();
        assert_eq!(split.cell.as_slice(), [1, 1 << 18]);
        assert_eq!(split.decodes, split.source_chunks);
        let neither = plan(&[10, 10], None, None, 1 << 20).unwrap();
        assert_eq!((neither.decodes, neither.source_chunks, neither.super_blocks), (0, 0, 1));
    }

    #[test]
    fn nothing_takes_nothing_and_the_impossible_is_refused() {
        let empty = plan(&[0, 5], Some(&[2, 2]), Some(&[3, 3]), 1 << 20).unwrap();
        assert_eq!((empty.super_blocks, empty.decodes), (0, 0));
        let scalar = plan(&[], None, None, 1 << 20).unwrap();
        assert_eq!(scalar.super_blocks, 1);
        assert!(matches!(
            plan(&[5, 5], Some(&[2]), Some(&[3, 3]), 1 << 20),
            Err(PlanError::Select(_))
        ));
        assert!(plan(&[5], Some(&[u64::MAX / 8]), Some(&[3]), 1 << 20).is_err());
    }

    proptest! {
        #[test]
        fn a_plan_keeps_to_its_budget_and_says_what_would_do(
            dims in prop::collection::vec((1u64..2000, 1u64..300, 1u64..300), 1..4),
            source in any::<bool>(),
            target in any::<bool>(),
            log in 10u32..32,
        ) {
            let shape: Vec<_> = dims.iter().map(|d| d.0).collect();
            let (from, to): (Vec<_>, Vec<_>) = dims.iter().map(|d| (d.1, d.2)).unzip();
            let of = |nbytes| plan(&shape, source.then_some(&from), target.then_some(&to), nbytes);
            let plan = match of(1 << log) {
                Ok(plan) => {
                    prop_assert!(plan.memory_nbytes <= 1 << log);
                    plan
                }
                Err(PlanError::Memory { needed_nbytes, .. }) => {
                    prop_assert!(needed_nbytes > 1 << log);
                    of(needed_nbytes).unwrap()
                }
                Err(error) => panic!("{error}"),
            };
            prop_assert!(plan.decodes >= plan.source_chunks);
            for ((&len, &size), &cell) in plan.super_block.iter().zip(&shape).zip(&plan.cell) {
                prop_assert!(len == size || len % cell == 0);
            }
        }
    }
}
