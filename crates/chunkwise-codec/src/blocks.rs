//! Into which blocks is a chunk divided, where each can be decoded by itself?
//!
//! Bitshuffle, Blosc, Blosc2 and LZ4 store a chunk so.  Where one of them is the only filter that
//! a chunk went through, a part of it needs no more than the blocks that hold it, and several
//! threads can decode it together.  What is wrong with a chunk is not told here: whoever meets
//! it decodes the chunk whole ([`Pipeline::decode`](crate::Pipeline::decode)), which says.

use std::ops::Range;
use std::sync::Arc;

use crate::blosc2::grid::Grid;
use crate::bytes::Reader;
use crate::cut::Cut;
use crate::memory::copy;
use crate::partial::PartialDecoder;
use crate::state::State;
use crate::{DecodeError, Filter, Scratch, resize};

/// Smaller blocks are not worth their places in a table, and are nobody's.
const LEAST_NBYTES: usize = 512;
/// Of larger blocks, a few bytes cost much less than all.
const LARGE_NBYTES: usize = 32 << 10;

/// Where the first blocks of a chunk are in its stored bytes.  To find a block means to look at all
/// before it, or at a table of all; so whoever comes back to a chunk keeps this.
pub type Places = Arc<[Range<u32>]>;

/// The blocks of one chunk, whose stored bytes are at hand.
#[derive(Debug)]
pub struct Blocks<'a> {
    stored: &'a [u8],
    cut: Cut,
    decoder: Box<dyn PartialDecoder<'a> + 'a>,
    /// Where the first blocks are, as somebody has found before.
    known: Places,
    /// The stored bytes of those after them, as far as they were looked for.
    places: Vec<&'a [u8]>,
    /// What follows them, where a block begins after the one before.
    rest: Reader<'a>,
}

impl<'a> Blocks<'a> {
    /// Those of a chunk of `raw_len` bytes, which `filter` alone has encoded; None where it has
    /// none, or is damaged.
    pub(crate) fn new(
        filter: &Filter,
        stored: &'a [u8],
        raw_len: usize,
        state: &mut State,
    ) -> Option<Self> {
        let decoder = filter.decoder().partial(stored, state)?;
        let cut = decoder.cut();
        let rest = Reader::new(stored.get(decoder.begins_at().unwrap_or(0)..)?);
        let sound = cut.len == raw_len && cut.block_len >= LEAST_NBYTES;
        let (known, places) = (Places::default(), Vec::new());
        sound.then_some(Self { stored, cut, decoder, known, places, rest })
    }

    /// Take over what [`found`](Self::found) gave for the same stored bytes before.
    pub fn know(&mut self, known: Places) {
        let end = known.last().map_or(Some(0), |last| usize::try_from(last.end).ok());
        let after = end.filter(|&end| end > 0).and_then(|end| self.stored.get(end..));
        if let Some(after) = after {
            self.places.clear();
            (self.known, self.rest) = (known, Reader::new(after));
        }
    }

    /// Where the first blocks are, if more of them are known by now than [`know`](Self::know) was
    /// told.
    pub fn found(&self) -> Option<Places> {
        if self.places.is_empty() {
            return None;
        }
        let place = |bytes: &&[u8]| {
            let start = (bytes.as_ptr() as usize).checked_sub(self.stored.as_ptr() as usize)?;
            let end = start.checked_add(bytes.len())?;
            let is_there = end <= self.stored.len();
            is_there.then_some(u32::try_from(start).ok()?..u32::try_from(end).ok()?)
        };
        let known = self.known.iter().cloned().map(Some);
        known.chain(self.places.iter().map(place)).collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.boxes().map_or_else(|| self.cut.count(), Grid::blocks)
    }

    /// Bytes of block `number`, decoded.
    pub fn nbytes_of(&self, number: usize) -> usize {
        if self.boxes().is_some() { self.cut.block_len } else { self.run(number).len() }
    }

    /// Blocks in a row share a range of the chunk's bytes with nobody else: how many such
    /// ranges there are.
    pub fn ranges(&self) -> usize {
        self.boxes().map_or_else(|| self.count(), Grid::slabs)
    }

    /// One of these ranges, and the blocks that make it up.
    pub fn range(&self, number: usize) -> (Range<usize>, Range<usize>) {
        match self.boxes() {
            Some(boxes) => boxes.slab(number),
            None => (self.run(number), number..number + 1),
        }
    }

    /// Blocks hold at least this many bytes in a row: others that are less far apart may well be in
    /// the same block.
    pub fn least_run(&self) -> usize {
        self.boxes().map_or(self.cut.block_len, Grid::row_len)
    }

    /// Mark the blocks in which these bytes of the chunk are.
    pub fn mark(&self, bytes: Range<usize>, marks: &mut [bool]) {
        if bytes.is_empty() {
            return;
        }
        match self.boxes() {
            Some(boxes) => boxes.mark(bytes, marks),
            None => {
                let first = bytes.start / self.cut.block_len;
                let last = (bytes.end - 1) / self.cut.block_len;
                marks[first..=last].fill(true);
            }
        }
    }

    /// Find where the first `count` blocks are stored; false when that cannot be.
    pub fn find(&mut self, count: usize) -> bool {
        self.known.len() + self.places.len() >= count || self.look_for(count).is_some()
    }

    /// The stored bytes of a block that was found.
    pub fn stored(&self, number: usize) -> Option<&'a [u8]> {
        match self.known.get(number) {
            Some(place) => self.stored.get(place.start as usize..place.end as usize),
            None => self.places.get(number - self.known.len()).copied(),
        }
    }

    /// Decode block `number`, of which `stored` is what [`stored`](Self::stored) gave, to its
    /// place in the chunk; `out` is the chunk from byte `begin` on.
    ///
    /// # Errors
    /// When something is wrong with it; `out` is then unspecified.
    ///
    /// # Panics
    /// When `out` does not hold the block's range.
    pub fn decode(
        &self,
        number: usize,
        stored: &[u8],
        scratch: &mut Scratch,
        begin: usize,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        let (state, boxes) = (&mut scratch.state, self.boxes());
        let run = boxes.map_or_else(|| Some(self.run(number)), |boxes| boxes.run_of(number));
        if let Some(run) = run {
            let out = &mut out[run.start - begin..run.end - begin];
            return self.decoder.decode(stored, state, out);
        }
        let nbytes = self.cut.block_len;
        let mut block = std::mem::take(&mut state.block);
        let sized = resize(&mut block, nbytes).map_err(|_| DecodeError::Memory { nbytes });
        let decoded = sized.and_then(|()| self.decoder.decode(stored, state, &mut block));
        if let (Ok(()), Some(boxes)) = (&decoded, boxes) {
            boxes.put(number, &block, begin, out);
        }
        state.block = block;
        decoded
    }

    /// Whether some bytes of a block cost much less than all of them.
    pub fn gives_some(&self) -> bool {
        self.decoder.gives_some() && self.cut.block_len >= LARGE_NBYTES
    }

    /// Decode what there is of `runs` in block `number` to its place in `chunk`, or the whole block
    /// where that costs no more.  Runs are bytes of the chunk, in order and apart; the block's other
    /// bytes are unspecified.  `stored` is what [`stored`](Self::stored) gave; it is copied to
    /// `copied` where it has to stay the same meanwhile.
    ///
    /// # Errors
    /// When something is wrong with it.
    ///
    /// # Panics
    /// When `chunk` is shorter than the chunk.
    pub fn decode_some(
        &self,
        number: usize,
        stored: &[u8],
        runs: &[Range<usize>],
        (copied, scratch): (&mut Vec<u8>, &mut Scratch),
        chunk: &mut [u8],
    ) -> Result<(), DecodeError> {
        if !self.decoder.gives_some() {
            copy(stored, copied)?;
            return self.decode(number, copied, scratch, 0, chunk);
        }
        let runs: Vec<_> = self.within(number, runs).collect();
        let out = &mut chunk[self.run(number)];
        self.decoder.decode_some(stored, &runs, copied, &mut scratch.state, out)
    }

    /// Append the bytes of a decoded block to `block`, out of the chunk.
    pub fn take(&self, number: usize, chunk: &[u8], block: &mut Vec<u8>) {
        match self.boxes() {
            Some(boxes) => {
                let begin = block.len();
                block.resize(begin + self.cut.block_len, 0);
                boxes.take(number, chunk, &mut block[begin..]);
            }
            None => block.extend_from_slice(&chunk[self.run(number)]),
        }
    }

    /// Put such bytes back to their place in the chunk.
    ///
    /// # Panics
    /// When they are not as many as [`take`](Self::take) gave.
    pub fn put(&self, number: usize, block: &[u8], chunk: &mut [u8]) {
        match self.boxes() {
            Some(boxes) => boxes.put(number, block, 0, chunk),
            None => chunk[self.run(number)].copy_from_slice(block),
        }
    }

    /// Put those of such bytes back that lie in `runs`: bytes of the chunk, in order and apart.
    ///
    /// # Panics
    /// As [`put`](Self::put).
    pub fn put_some(&self, number: usize, block: &[u8], runs: &[Range<usize>], chunk: &mut [u8]) {
        if let Some(boxes) = self.boxes() {
            return boxes.put_some(number, block, runs, chunk);
        }
        let out = &mut chunk[self.run(number)];
        for run in self.within(number, runs) {
            out[run.clone()].copy_from_slice(&block[run]);
        }
    }

    /// What there is of `runs` in a block that is a run itself, from its first byte.
    fn within<'r>(
        &self,
        number: usize,
        runs: &'r [Range<usize>],
    ) -> impl Iterator<Item = Range<usize>> + use<'r> {
        let block = self.run(number);
        let first = runs.partition_point(|run| run.end <= block.start);
        let inside = move |byte: usize| byte.clamp(block.start, block.end) - block.start;
        let runs = runs[first..].iter().take_while(move |run| run.start < block.end);
        runs.map(move |run| inside(run.start)..inside(run.end))
    }

    fn boxes(&self) -> Option<&Grid> {
        self.decoder.boxes()
    }

    fn run(&self, number: usize) -> Range<usize> {
        self.cut.run(number)
    }

    fn look_for(&mut self, count: usize) -> Option<()> {
        if self.decoder.begins_at().is_none() {
            self.places = self.decoder.listed()?;
            // These are of all blocks.
            self.known = Places::default();
            return Some(());
        }
        // Each length waits for memory, unless it is on its way: lengths are much alike.
        const AHEAD: usize = 4;
        let mut usual = 0;
        for number in self.known.len() + self.places.len()..count {
            let len = self.run(number).len();
            let stored = self.decoder.next_block(len, &mut self.rest)?;
            usual = if usual == 0 { stored.len() } else { (usual * 7 + stored.len()) / 8 };
            self.rest.expect(AHEAD * usual);
            self.places.push(stored);
        }
        Some(())
    }
}
