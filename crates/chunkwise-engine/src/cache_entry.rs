//! What is held of one chunk, and what does that cost?

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use chunkwise_codec::Places;

/// Names a chunk: the dataset's number in this process and the chunk's position.
pub type ChunkKey = (u64, u64);

/// A decoded chunk, shared with the reads that copy from it.
pub type Decoded = Arc<Vec<u8>>;

/// A decoded block of a chunk, shared with the reads that copy from it: a part of what one of
/// them has decoded.
#[derive(Debug, Clone)]
pub struct KeptBlock {
    pub decoded: Decoded,
    range: Range<usize>,
}

impl KeptBlock {
    /// Blocks, by their numbers, that are these ranges of what was decoded.
    pub fn of(decoded: Decoded, ranges: Vec<(usize, Range<usize>)>) -> Vec<(usize, Self)> {
        let kept = |(number, range)| (number, Self { decoded: Arc::clone(&decoded), range });
        ranges.into_iter().map(kept).collect()
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.decoded[self.range.clone()]
    }
}

/// What is held of a chunk.
pub(crate) enum Held {
    Whole(Decoded),
    /// Some of its blocks.
    Blocks(HeldBlocks),
}

/// Blocks of a chunk that are held.
#[derive(Default)]
pub(crate) struct HeldBlocks {
    pub by_number: HashMap<usize, KeptBlock>,
    /// The bytes that they take.
    pub nbytes: usize,
    /// How many reads wanted some of the chunk since.
    pub reads: u64,
    /// Where the first of them are stored.
    pub places: Places,
}

pub(crate) struct Entry {
    pub held: Held,
    /// The read that last used it.
    pub read: u64,
    /// Prefetched, and not yet wanted.
    pub prefetched: bool,
}

/// What an entry costs beside its chunk's bytes: table, list, two allocations.
pub const ENTRY_NBYTES: usize = 192;

/// What a block costs beside its bytes, in a chunk's entry.
const BLOCK_NBYTES: usize = 80;

/// What it costs to know where a block is stored.
const PLACE_NBYTES: usize = size_of::<Range<u32>>();

impl Entry {
    pub fn nbytes(&self) -> usize {
        match &self.held {
            Held::Whole(chunk) => chunk.capacity() + ENTRY_NBYTES,
            Held::Blocks(held) => {
                let places = held.places.len() * PLACE_NBYTES;
                held.nbytes + held.by_number.len() * BLOCK_NBYTES + places + ENTRY_NBYTES
            }
        }
    }

    pub fn whole(&self) -> Option<&Decoded> {
        match &self.held {
            Held::Whole(chunk) => Some(chunk),
            Held::Blocks(..) => None,
        }
    }
}
