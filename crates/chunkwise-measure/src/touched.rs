//! Which stored chunks does a walk touch, and how long does reading their bytes take?
//!
//! For readers whose inside cannot be watched: what they read and how often follows from
//! the selections and the chunk index, and storage alone is timed on the same chunks.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use chunkwise_codec::resize;
use chunkwise_engine::{ChunkIndex, ReadError, Storage};
use chunkwise_select::{ChunkGrid, Plan, SelectError};

use crate::Walk;

/// What a walk asks of the chunks that are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Touches {
    /// Stored chunks touched, each as often as a selection touches it; None where that
    /// would take too long to find out.
    pub touches: Option<u64>,
    /// How many different ones; None likewise.
    pub distinct: Option<u64>,
}

/// Chunks that are looked at one by one: some tenths of a second.
const MOST_FOLLOWED: u64 = 2_000_000;

/// Count the stored chunks that the first `operations` selections of `walk` touch.
///
/// # Errors
/// When the selections are of another rank than the grid.
pub fn count_touches(
    grid: &ChunkGrid,
    index: &ChunkIndex,
    walk: &Walk,
    operations: u64,
) -> Result<Touches, SelectError> {
    let operations = operations.min(walk.len());
    let mut planned = 0u64;
    for number in 0..operations {
        let Some(slab) = walk.get(number) else { break };
        planned = planned.saturating_add(Plan::new(grid, &slab)?.len());
    }
    let all_stored = index.written() == grid.len();
    let mut found = Touches {
        touches: (all_stored || planned == 0).then_some(planned),
        distinct: walk.is_whole_array(operations).then(|| index.written()),
    };
    if (found.touches.is_some() && found.distinct.is_some()) || planned > MOST_FOLLOWED {
        return Ok(found);
    }
    let (mut touches, mut seen) = (0, HashSet::new());
    for number in 0..operations {
        let Some(slab) = walk.get(number) else { break };
        for task in Plan::new(grid, &slab)?.tasks() {
            let position = task.linear_index();
            if index.get(position).is_some() {
                touches += 1;
                seen.insert(position);
            }
        }
    }
    found = Touches { touches: Some(touches), distinct: Some(seen.len() as u64) };
    Ok(found)
}

/// How long the system takes to give the stored bytes of chunks.
#[derive(Debug, Clone, Copy, Default)]
pub struct BareReads {
    /// Chunks read, each once.
    pub chunks: u64,
    /// Their stored bytes.
    pub nbytes: u64,
    /// Seconds for all of them.
    pub elapsed_s: f64,
}

/// Read the stored bytes of chunks that a walk touches, and do nothing with them.
///
/// At most `most` chunks, spread over the first `operations` selections, each once, in the
/// order in which the walk comes to them, until `max_time` is over.
///
/// # Errors
/// What reading gives, or when the selections are of another rank than the grid.
pub fn time_bare_reads(
    grid: &ChunkGrid,
    index: &ChunkIndex,
    storage: &dyn Storage,
    walk: &Walk,
    operations: u64,
    most: u64,
    max_time: Duration,
) -> Result<BareReads, ReadError> {
    let chunks = sample(grid, index, walk, operations, most)?;
    // The largest first: its pages are touched here and not while the clock runs.
    let largest = chunks.iter().map(|chunk| chunk.1).max().unwrap_or(0);
    let mut buffer = Vec::new();
    resize(&mut buffer, usize::try_from(largest).map_err(|_| ReadError::Memory(Some(largest)))?)?;
    buffer.fill(1);
    let mut record = BareReads::default();
    let mut elapsed = Duration::ZERO;
    for (address, nbytes) in chunks {
        if elapsed >= max_time {
            break;
        }
        let out = &mut buffer[..nbytes as usize];
        let begun = Instant::now();
        storage.read_at(address, out)?;
        elapsed += begun.elapsed();
        record.chunks += 1;
        record.nbytes += nbytes;
    }
    record.elapsed_s = elapsed.as_secs_f64();
    Ok(record)
}

/// Address and stored bytes of some of the chunks that a walk touches.
fn sample(
    grid: &ChunkGrid,
    index: &ChunkIndex,
    walk: &Walk,
    operations: u64,
    most: u64,
) -> Result<Vec<(u64, u64)>, ReadError> {
    let operations = operations.min(walk.len());
    let (mut chunks, mut seen) = (Vec::new(), HashSet::new());
    let most = most.max(1);
    let stride = operations.div_ceil(most).max(1);
    let each = most.div_ceil(operations.max(1));
    let mut number = 0;
    while number < operations && (chunks.len() as u64) < most {
        let Some(slab) = walk.get(number) else { break };
        let plan = Plan::new(grid, &slab)?;
        let step = plan.len().div_ceil(each).max(1);
        let mut task = 0;
        while task < plan.len() {
            let position = plan.task(task).linear_index();
            if seen.insert(position)
                && let Some(record) = index.get(position)
            {
                chunks.push((record.address, record.stored_nbytes));
            }
            task += step;
        }
        number += stride;
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockWalk, Order};
    use chunkwise_engine::{ChunkIndexBuilder, ChunkRecord, MemoryStorage};
    use proptest::prelude::*;

    fn index_of(grid: &ChunkGrid, stored: impl Fn(u64) -> bool) -> ChunkIndex {
        let mut builder = ChunkIndexBuilder::default();
        for position in (0..grid.len()).filter(|&position| stored(position)) {
            let record = ChunkRecord { address: position * 10, stored_nbytes: 10, filter_mask: 0 };
            builder.push(position, record).unwrap();
        }
        builder.finish(grid.len()).unwrap()
    }

    proptest! {
        /// Against a count of elements: a chunk is touched where one of its elements is.
        #[test]
        fn touches_are_those_of_the_elements(
            shape in prop::collection::vec(1u64..12, 2),
            chunk in prop::collection::vec(1u64..5, 2),
            block in prop::collection::vec(1u64..6, 2),
            seed in any::<u64>(),
            hole in 1u64..5,
            share in 0.0..1.0,
        ) {
            let grid = ChunkGrid::new(&shape, &chunk).unwrap();
            let stored = |position: u64| hole == 4 || position.is_multiple_of(hole);
            let index = index_of(&grid, stored);
            let order = Order::Random { seed };
            let walk = BlockWalk::ordered(&shape, &block, order, None).unwrap();
            let operations = (walk.len() as f64 * share) as u64;
            let (mut touches, mut seen) = (0, HashSet::new());
            for number in 0..operations {
                let mut here = HashSet::new();
                let slab = walk.block(number);
                let [a, b] = [0, 1].map(|d| (0..slab.axes()[d].len()).map(move |i| (d, i)));
                for (_, i) in a {
                    for (_, j) in b.clone() {
                        let (i, j) = (slab.axes()[0].index_of(i), slab.axes()[1].index_of(j));
                        let at = grid.linear_index(&[i / chunk[0], j / chunk[1]]).unwrap();
                        if stored(at) {
                            here.insert(at);
                        }
                    }
                }
                touches += here.len() as u64;
                seen.extend(here);
            }
            let walk = Walk::Blocks(Box::new(walk));
            let found = count_touches(&grid, &index, &walk, operations).unwrap();
            prop_assert_eq!(found.touches, Some(touches));
            prop_assert_eq!(found.distinct, Some(seen.len() as u64));
            let storage = MemoryStorage(vec![0; grid.len() as usize * 10]);
            let bare = time_bare_reads(
                &grid, &index, &storage, &walk, operations, 1000, Duration::MAX,
            ).unwrap();
            prop_assert_eq!(bare.chunks, seen.len() as u64);
            prop_assert_eq!(bare.nbytes, 10 * bare.chunks);
        }
    }

    #[test]
    fn a_sample_is_bounded_and_spread() {
        let grid = ChunkGrid::new(&[100_000], &[1]).unwrap();
        let index = index_of(&grid, |_| true);
        let walk = Walk::Blocks(Box::new(BlockWalk::new(&[100_000], &[7]).unwrap()));
        let chunks = sample(&grid, &index, &walk, walk.len(), 50).unwrap();
        assert!((40..=50).contains(&chunks.len()), "{}", chunks.len());
        assert!(chunks.last().unwrap().0 > 900_000);
        let all = Walk::Blocks(Box::new(BlockWalk::new(&[100_000], &[100_000]).unwrap()));
        let chunks = sample(&grid, &index, &all, 1, 50).unwrap();
        assert_eq!(chunks.len(), 50);
        assert!(chunks.last().unwrap().0 > 900_000);
    }
}
