//! Are damaged chunks decoded to the same bytes each time, or refused, at little cost?
//!
//! An input is what a file says of a chunk: bytes when decoded (4, little-endian, as all
//! numbers here), filter mask (4), number of filters (1); for each filter HDF5's number
//! (4), number of options (1) and options (4 each); all that follows is what is stored.
//! `make_corpus.py` writes such files with the filters' own encoders.

use std::ops::Range;

use chunkwise_codec::{DecodeError, Filter, FilterKind, Pipeline, Scratch};

use crate::memory::within;

/// Chunks are made no longer than this, so that the search is fast.
const MOST_RAW: usize = 1 << 18;

/// What decoders may take beside multiples of a chunk: bzip2's tables of 900,000 numbers.
const WORKING_NBYTES: usize = 8 << 20;

/// What a file says of one chunk.
struct Chunk<'a> {
    raw_len: usize,
    filter_mask: u32,
    pipeline: Pipeline,
    stored: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// None where the options are such that libhdf5 would have to decode the chunk; `only`
    /// is the one filter that there is, whatever the input says.
    fn parse(only: Option<FilterKind>, input: &'a [u8]) -> Option<Self> {
        let mut rest = input;
        let raw_len = number(&mut rest)? as usize % (MOST_RAW + 1);
        let filter_mask = number(&mut rest)?;
        let count = byte(&mut rest)?;
        let count = if only.is_some() { 1 } else { count % 8 };
        let mut filters = Vec::new();
        for _ in 0..count {
            let id = number(&mut rest)?;
            let options = byte(&mut rest)? % 64;
            let cd_values: Option<Vec<u32>> = (0..options).map(|_| number(&mut rest)).collect();
            let kind = only.or_else(|| kind_of(id))?;
            filters.push(Filter::from_hdf5(kind.id(), &cd_values?)?);
        }
        Some(Self { raw_len, filter_mask, pipeline: Pipeline::new(filters), stored: rest })
    }

    /// Decode over bytes that are all `before`.
    fn decode(&self, scratch: &mut Scratch, before: u8) -> Result<Vec<u8>, DecodeError> {
        let mut out = vec![before; self.raw_len];
        self.pipeline.decode(self.stored, self.filter_mask, scratch, &mut out).map(|()| out)
    }
}

impl Chunk<'_> {
    /// Decode block by block, the last first; None where it has no blocks, or they are damaged.
    fn decode_by_blocks(&self, scratch: &mut Scratch) -> Option<Vec<u8>> {
        let Self { raw_len, filter_mask, stored, .. } = *self;
        let mut blocks = self.pipeline.blocks(stored, filter_mask, raw_len, scratch)?;
        if !blocks.find(blocks.count()) {
            return None;
        }
        let mut out = vec![0x33; raw_len];
        for number in (0..blocks.ranges()).rev() {
            let (bytes, numbers) = blocks.range(number);
            let part = &mut out[bytes.clone()];
            for number in numbers {
                let stored = blocks.stored(number)?;
                blocks.decode(number, stored, scratch, bytes.start, part).ok()?;
            }
        }
        let mut marks = vec![false; blocks.count()];
        blocks.mark(0..raw_len, &mut marks);
        assert!(marks.iter().all(|&marked| marked), "a block that no byte of the chunk is in");
        Some(out)
    }
}

impl Chunk<'_> {
    /// Decode some bytes, block by block; None where it has no blocks, or they are damaged.
    fn decode_some(&self, scratch: &mut Scratch) -> Option<Vec<u8>> {
        let Self { raw_len, filter_mask, stored, .. } = *self;
        let mut blocks = self.pipeline.blocks(stored, filter_mask, raw_len, scratch)?;
        let (runs, mut marks) = (runs(raw_len), vec![false; blocks.count()]);
        runs.iter().for_each(|run| blocks.mark(run.clone(), &mut marks));
        if !blocks.find(blocks.count()) {
            return None;
        }
        let (mut out, mut copied) = (vec![0x44; raw_len], Vec::new());
        for number in (0..marks.len()).filter(|&number| marks[number]) {
            let stored = blocks.stored(number)?;
            blocks.decode_some(number, stored, &runs, (&mut copied, scratch), &mut out).ok()?;
        }
        Some(out)
    }
}

/// A few bytes of the chunk, in order and apart.
fn runs(raw_len: usize) -> Vec<Range<usize>> {
    let begins = (0..4).map(|part| raw_len / 4 * part);
    begins
        .map(|begin| begin..(begin + raw_len / 9 + 1).min(raw_len))
        .filter(|run| !run.is_empty())
        .collect()
}

/// Any number stands for a filter: so the search need not find out HDF5's.
fn kind_of(id: u32) -> Option<FilterKind> {
    let known = FilterKind::ALL.into_iter().find(|kind| i64::from(kind.id()) == i64::from(id));
    known.or_else(|| FilterKind::ALL.get(id as usize % FilterKind::ALL.len()).copied())
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (&first, after) = rest.split_first()?;
    *rest = after;
    Some(first)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*first))
}

/// What an input decodes to, where it is a chunk that decodes.
pub fn decoded(input: &[u8]) -> Option<Vec<u8>> {
    Chunk::parse(None, input)?.decode(&mut Scratch::default(), 0).ok()
}

pub(crate) fn check(only: Option<FilterKind>, input: &[u8]) {
    let Some(chunk) = Chunk::parse(only, input) else { return };
    let most = 16 * (chunk.raw_len + chunk.stored.len()) + WORKING_NBYTES;
    let (first, again, by_blocks, some) = within(most, || {
        let mut scratch = Scratch::default();
        let first = chunk.decode(&mut scratch, 0xa5);
        let by_blocks = chunk.decode_by_blocks(&mut scratch);
        let some = chunk.decode_some(&mut scratch);
        (first, chunk.decode(&mut scratch, 0x5a), by_blocks, some)
    });
    // Neither what was in the destination before, nor what was decoded before, shows.
    assert!(first == again, "decoded twice, it is not the same");
    // What blocks decode to is what the chunk does.
    if let Some(by_blocks) = by_blocks {
        assert!(first.as_ref() == Ok(&by_blocks), "by blocks it is not the same");
    }
    // Some bytes are those of the chunk, where it is sound.
    if let (Some(some), Ok(whole)) = (some, &first) {
        let mut runs = runs(chunk.raw_len).into_iter();
        assert!(runs.all(|run| some[run.clone()] == whole[run]), "some bytes are not the same");
    }
    let fits = chunk.pipeline.check_len(chunk.stored.len(), chunk.filter_mask, chunk.raw_len);
    assert!(first.is_err() || fits.is_ok(), "{fits:?}, but it decoded");
}
