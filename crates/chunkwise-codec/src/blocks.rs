//! Into which blocks is a chunk divided, where each can be decoded by itself?
//!
//! Bitshuffle, Blosc, Blosc2 and LZ4 store a chunk so.  Where one of them is the only filter that
//! a chunk went through, a part of it needs no more than the blocks that hold it, and several
//! threads can decode it together.  What is wrong with a chunk is not told here: whoever meets
//! it decodes the chunk whole ([`Pipeline::decode`](crate::Pipeline::decode)), which says.

use std::ops::Range;
use std::sync::Arc;

use crate::blosc2::Blosc2Blocks;
use crate::bytes::Reader;
use crate::cut::{Cut, places};
use crate::state::State;
use crate::{Bitshuffle, DecodeError, Filter, Scratch, blosc, lz4};

/// Smaller blocks are not worth their places in a table, and are nobody's.
const LEAST_NBYTES: usize = 512;
/// Of larger blocks, a few bytes cost much less than all.
const LARGE_NBYTES: usize = 32 << 10;
/// Bytes that are stored as they are are taken so many at a time.
const AS_IT_IS_NBYTES: usize = 64 << 10;

/// Where the first blocks of a chunk are in its stored bytes.  To find a block means to look at all
/// before it, or at a table of all; so whoever comes back to a chunk keeps this.
pub type Places = Arc<[Range<u32>]>;

/// The blocks of one chunk, whose stored bytes are at hand.
#[derive(Debug)]
pub struct Blocks<'a> {
    stored: &'a [u8],
    cut: Cut,
    coding: Coding<'a>,
    /// Where the first blocks are, as somebody has found before.
    known: Places,
    /// The stored bytes of those after them, as far as they were looked for.
    places: Vec<&'a [u8]>,
    /// What follows them, where a block begins after the one before.
    rest: Reader<'a>,
}

#[derive(Debug)]
enum Coding<'a> {
    Bitshuffle(Bitshuffle),
    Lz4,
    Blosc(blosc::Streams),
    Blosc2(Blosc2Blocks<'a>),
    /// Not coded at all, from here on.
    AsItIs(usize),
}

impl<'a> Blocks<'a> {
    /// Those of a chunk of `raw_len` bytes, which `filter` alone has encoded; None where it has
    /// none, or is damaged.
    pub(crate) fn new(
        filter: &Filter,
        mut stored: &'a [u8],
        raw_len: usize,
        state: &mut State,
    ) -> Option<Self> {
        let (cut, coding) = match filter {
            Filter::Bitshuffle(options) => {
                (options.cut(stored).ok()?, Coding::Bitshuffle(*options))
            }
            Filter::Lz4 => (lz4::cut(stored).ok()?, Coding::Lz4),
            Filter::Blosc => {
                let head = blosc::Head::parse(stored).ok()?;
                stored = &stored[..head.stored_len];
                match head.streams {
                    Some(streams) => (head.cut, Coding::Blosc(streams)),
                    None => {
                        let cut = Cut { block_len: AS_IT_IS_NBYTES, ..head.cut };
                        (cut, Coding::AsItIs(blosc::HEADER_LEN))
                    }
                }
            }
            Filter::Blosc2(stated) => {
                let blocks = Blosc2Blocks::parse(stated, stored, state).ok()?;
                (
                    Cut { len: blocks.nbytes(), block_len: blocks.block_len() },
                    Coding::Blosc2(blocks),
                )
            }
            _ => return None,
        };
        let header_len = match &coding {
            Coding::Bitshuffle(options) => options.header_len(),
            Coding::Lz4 => lz4::HEADER_LEN,
            _ => 0,
        };
        let rest = Reader::new(stored.get(header_len..)?);
        let sound = cut.len == raw_len && cut.block_len >= LEAST_NBYTES;
        let (known, places) = (Places::default(), Vec::new());
        sound.then_some(Self { stored, cut, coding, known, places, rest })
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
        match self.boxes() {
            Some(boxes) => boxes.count(),
            None => self.cut.len.div_ceil(self.cut.block_len),
        }
    }

    /// Bytes of block `number`, decoded.
    pub fn nbytes_of(&self, number: usize) -> usize {
        if self.boxes().is_some() { self.cut.block_len } else { self.run(number).len() }
    }

    /// Blocks in a row share a range of the chunk's bytes with nobody else: how many such
    /// ranges there are.
    pub fn ranges(&self) -> usize {
        self.boxes().map_or_else(|| self.count(), Blosc2Blocks::slabs)
    }

    /// One of these ranges, and the blocks that make it up.
    pub fn range(&self, number: usize) -> (Range<usize>, Range<usize>) {
        match self.boxes() {
            Some(boxes) => boxes.slab(number),
            None => (self.run(number), number..number + 1),
        }
    }

    /// Blocks hold at least so many bytes in a row: others that are less far apart may well be in
    /// the same block.
    pub fn least_run(&self) -> usize {
        self.boxes().map_or(self.cut.block_len, Blosc2Blocks::row_len)
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
        let state = &mut scratch.state;
        if let Coding::Blosc2(blocks) = &self.coding {
            return blocks.decode(number, stored, state, begin, out);
        }
        let run = self.run(number);
        let out = &mut out[run.start - begin..run.end - begin];
        match &self.coding {
            Coding::Bitshuffle(options) => options.decode_block(stored, state, out),
            Coding::Lz4 => lz4::decode_block(stored, out),
            Coding::Blosc(streams) => streams.decode(stored, &mut stored.len(), state, out),
            Coding::AsItIs(_) | Coding::Blosc2(_) => {
                out.copy_from_slice(stored);
                Ok(())
            }
        }
    }

    /// Whether some bytes of a block cost much less than all of them.
    pub fn gives_some(&self) -> bool {
        let gives = match &self.coding {
            Coding::Blosc(streams) => streams.gives_some(),
            Coding::AsItIs(_) => true,
            Coding::Bitshuffle(_) | Coding::Lz4 | Coding::Blosc2(_) => false,
        };
        gives && self.cut.block_len >= LARGE_NBYTES
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
        let block = self.run(number);
        let runs = self.within(number, runs);
        match &self.coding {
            Coding::Blosc(streams) if streams.gives_some() => {
                let (runs, out) = (runs.collect::<Vec<_>>(), &mut chunk[block.clone()]);
                streams.decode_some(stored, &runs, copied, &mut scratch.state, out)
            }
            Coding::AsItIs(_) => {
                let out = &mut chunk[block.clone()];
                for run in runs {
                    let bytes = stored.get(run.clone());
                    out[run]
                        .copy_from_slice(bytes.ok_or(DecodeError::Damaged { filter: "blosc" })?);
                }
                Ok(())
            }
            _ => {
                let nbytes = stored.len();
                copied.clear();
                copied.try_reserve(nbytes).map_err(|_| DecodeError::Memory { nbytes })?;
                copied.extend_from_slice(stored);
                self.decode(number, copied, scratch, 0, chunk)
            }
        }
    }

    /// Append the bytes of a decoded block to `block`, out of the chunk.
    pub fn take(&self, number: usize, chunk: &[u8], block: &mut Vec<u8>) {
        match self.boxes() {
            Some(boxes) => boxes.take(number, chunk, block),
            None => block.extend_from_slice(&chunk[self.run(number)]),
        }
    }

    /// Put such bytes back to their place in the chunk.
    ///
    /// # Panics
    /// When they are not as many as [`take`](Self::take) gave.
    pub fn put(&self, number: usize, block: &[u8], chunk: &mut [u8]) {
        match self.boxes() {
            Some(boxes) => boxes.put(number, block, chunk),
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

    fn boxes(&self) -> Option<&Blosc2Blocks<'a>> {
        match &self.coding {
            Coding::Blosc2(blocks) if blocks.are_boxes() => Some(blocks),
            _ => None,
        }
    }

    fn run(&self, number: usize) -> Range<usize> {
        let begin = (number * self.cut.block_len).min(self.cut.len);
        begin..(begin.saturating_add(self.cut.block_len)).min(self.cut.len)
    }

    fn look_for(&mut self, count: usize) -> Option<()> {
        self.places = match &self.coding {
            Coding::Bitshuffle(_) | Coding::Lz4 => return self.follow(count),
            Coding::AsItIs(begin) => {
                let bytes = self.stored.get(*begin..)?;
                (0..self.count())
                    .map(|number| bytes.get(self.run(number)))
                    .collect::<Option<_>>()?
            }
            Coding::Blosc2(blocks) => blocks.places()?,
            Coding::Blosc(_) => places(self.stored, blosc::HEADER_LEN, self.count())?,
        };
        // These are of all blocks.
        self.known = Places::default();
        Some(())
    }

    /// Each block has its length before it, and the next one after it.
    fn follow(&mut self, count: usize) -> Option<()> {
        for number in self.known.len() + self.places.len()..count {
            let bytes = match &self.coding {
                Coding::Bitshuffle(options) => {
                    options.next_block(self.run(number).len(), &mut self.rest)?
                }
                _ => lz4::next_block(&mut self.rest)?,
            };
            self.places.push(bytes);
        }
        Some(())
    }
}
