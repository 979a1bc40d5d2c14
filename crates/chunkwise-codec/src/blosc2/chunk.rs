//! How are the blocks of a Blosc2 chunk decoded?
//!
//! A header of 32 bytes (`README_CHUNK_FORMAT.rst` of C-Blosc2) says what was done: lengths,
//! the compressor, up to six filters.  Blocks follow, whose places are listed first; each
//! is compressed as one stream, or as one for each byte of an element, behind its stored
//! length, which also tells streams of one byte.  A chunk may be all one value, or
//! stored as it is.

use super::damage::{DAMAGED, unsupported};
use crate::blosc::Codec;
use crate::bytes::Reader;
use crate::cut::places;
use crate::repeats::repeat;
use crate::state::State;
use crate::{DecodeError, bitshuffle, resize, shuffle};

const HEADER_LEN: usize = 32;
/// C-Blosc2 has no larger ones.
const MOST_BLOCK_LEN: usize = 536_866_816;

/// A chunk whose header has been read.
#[derive(Debug)]
pub(super) struct Chunk<'a> {
    /// Bytes that it decodes to.
    pub(super) len: usize,
    /// Bytes that a block decodes to, at least 1; the last may have fewer.
    pub(super) block_len: usize,
    /// Bytes that it takes, its header included.
    pub(super) stored_len: usize,
    pub(super) element_size: usize,
    content: Content<'a>,
}

#[derive(Debug)]
enum Content<'a> {
    /// This value again and again.
    Value(&'a [u8]),
    /// The bytes as they are.
    Stored(&'a [u8]),
    Blocks(Blocks<'a>),
}

#[derive(Debug)]
struct Blocks<'a> {
    bytes: &'a [u8],
    codec: Codec,
    element_size: usize,
    /// Whether whole blocks have a stream for each byte of an element.
    split: bool,
    /// What to do after decompressing, first to last.
    steps: Vec<Step>,
}

/// What undoes a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Of elements of this many bytes.
    Unshuffle(usize),
    UnshuffleBits,
    /// The same, in blocks whose elements come in eights only.
    UnshuffleBitsOfOld,
    /// Exclusive or with the first block; in the first, with the element before.
    Delta,
    /// Sum the bytes of each of this many planes.
    SumPlanes(usize),
}

impl Step {
    /// Whether it needs other memory to write to.
    fn moves_bytes(self) -> bool {
        !matches!(self, Self::Delta | Self::SumPlanes(_))
    }
}

impl<'a> Chunk<'a> {
    /// Read the header at the beginning of `bytes`.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        const NEWEST: u8 = 6;
        const EXTENDED: u8 = 1 | 4;
        const STORED: u8 = 2;
        const NOT_SPLIT: u8 = 16;
        const DICTIONARY: u8 = 1;
        const LAZY: u8 = 8;
        const INSTRUMENTED: u8 = 128;
        let Some((header, _)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(DAMAGED);
        };
        let &[version, _, flags, element_size, ref rest @ ..] = header;
        let mut lengths = Reader::new(rest);
        let mut length = || lengths.u32_le().unwrap_or(0) as usize;
        let (len, block_len, stored_len) = (length(), length(), length());
        let bytes = bytes.get(..stored_len).ok_or(DAMAGED)?;
        let Some((_, body)) = bytes.split_first_chunk::<HEADER_LEN>() else { return Err(DAMAGED) };
        if flags & EXTENDED != EXTENDED {
            return Err(unsupported("a chunk of Blosc 1"));
        }
        let (variable, more) = (header[30], header[31]);
        if version > NEWEST || variable != 0 {
            return Err(unsupported("blocks of variable length"));
        }
        if more & (LAZY | INSTRUMENTED) != 0 {
            return Err(unsupported("a chunk that is not for storage"));
        }
        if more & DICTIONARY != 0 {
            return Err(unsupported("a dictionary"));
        }
        if element_size == 0 || !(1..=MOST_BLOCK_LEN).contains(&block_len) {
            return Err(DAMAGED);
        }
        let element_size = usize::from(element_size);
        let block_len = block_len.min(len.max(1));
        let special = more >> 4 & 7;
        let content = if special == SPECIAL_VALUE {
            Content::Value(body)
        } else if special != 0 {
            Content::Value(special_value(special, element_size).ok_or(DAMAGED)?)
        } else if flags & STORED != 0 {
            Content::Stored(body)
        } else {
            let codec = match flags >> 5 {
                0 => Codec::BloscLz,
                1 => Codec::Lz4,
                3 => Codec::Zlib,
                4 => Codec::Zstd,
                _ => return Err(unsupported("another compressor")),
            };
            let [filters, metas] = [&header[16..22], &header[24..30]];
            let steps = steps(filters, metas, element_size, version)?;
            let split = flags & NOT_SPLIT == 0;
            Content::Blocks(Blocks { bytes, codec, element_size, split, steps })
        };
        let sound = match content {
            Content::Value(value) => !value.is_empty() && len.is_multiple_of(value.len()),
            Content::Stored(stored) => stored.len() == len,
            Content::Blocks(_) => true,
        };
        if sound {
            Ok(Self { len, block_len, stored_len, element_size, content })
        } else {
            Err(DAMAGED)
        }
    }

    /// A chunk of which only the kind of its values is known.
    pub(super) fn of_one_value(
        special: u8,
        element_size: usize,
        len: usize,
        block_len: usize,
    ) -> Result<Self, DecodeError> {
        let value = special_value(special, element_size).ok_or(DAMAGED)?;
        if !len.is_multiple_of(value.len()) {
            return Err(DAMAGED);
        }
        let block_len = block_len.clamp(1, len.max(1));
        let content = Content::Value(value);
        Ok(Self { len, block_len, stored_len: 0, element_size, content })
    }

    /// Decode block `number` to `out`, which is of its length; `first` is kept from the
    /// first block to the others.
    pub(super) fn decode_block(
        &self,
        number: usize,
        first: &mut Vec<u8>,
        state: &mut State,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        match &self.content {
            Content::Value(value) => {
                put_value(value, out);
                Ok(())
            }
            Content::Stored(stored) => {
                let bytes = stored.get(number * self.block_len..).and_then(|b| b.get(..out.len()));
                out.copy_from_slice(bytes.ok_or(DAMAGED)?);
                Ok(())
            }
            Content::Blocks(blocks) => {
                let whole = out.len() == self.block_len;
                blocks.decode(number, whole, first, state, out)
            }
        }
    }

    /// Whether no block is needed to decode another.
    pub(super) fn is_independent(&self) -> bool {
        match &self.content {
            Content::Blocks(blocks) => !blocks.steps.contains(&Step::Delta),
            Content::Value(_) | Content::Stored(_) => true,
        }
    }

    /// The stored bytes of each of the `count` blocks, nothing where all are one value.
    pub(super) fn places(&self, count: usize) -> Option<Vec<&'a [u8]>> {
        match &self.content {
            Content::Value(_) => Some(vec![&[]; count]),
            Content::Stored(stored) => {
                let places: Vec<&[u8]> = stored.chunks(self.block_len).collect();
                Some(places).filter(|places| places.len() == count)
            }
            Content::Blocks(blocks) => places(blocks.bytes, HEADER_LEN, count),
        }
    }

    /// Decode a block of which [`places`](Self::places) told these bytes, in a chunk whose blocks
    /// are independent.
    pub(super) fn decode_bytes(
        &self,
        stored: &[u8],
        state: &mut State,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        match &self.content {
            Content::Value(value) => {
                put_value(value, out);
                Ok(())
            }
            Content::Stored(_) => {
                out.copy_from_slice(stored.get(..out.len()).ok_or(DAMAGED)?);
                Ok(())
            }
            Content::Blocks(blocks) => {
                let whole = out.len() == self.block_len;
                let first = &mut Vec::new();
                blocks.decode_from(Reader::new(stored), 0, whole, first, state, out)
            }
        }
    }
}

/// Repeat `value` over `out`.
fn put_value(value: &[u8], out: &mut [u8]) {
    let once = value.len().min(out.len());
    out[..once].copy_from_slice(&value[..once]);
    repeat(out, 0, once, out.len() - once);
}

const SPECIAL_VALUE: u8 = 3;

/// The value that all elements have; what was never set is 0 here.
fn special_value(special: u8, element_size: usize) -> Option<&'static [u8]> {
    const NAN_4: [u8; 4] = f32::NAN.to_le_bytes();
    const NAN_8: [u8; 8] = f64::NAN.to_le_bytes();
    match (special, element_size) {
        (1 | 4, _) => Some(&[0]),
        (2, 4) => Some(&NAN_4),
        (2, 8) => Some(&NAN_8),
        _ => None,
    }
}

/// What undoes the filters, the last first.
fn steps(
    filters: &[u8],
    metas: &[u8],
    element_size: usize,
    version: u8,
) -> Result<Vec<Step>, DecodeError> {
    let mut steps = Vec::new();
    for (&filter, &meta) in filters.iter().zip(metas).rev() {
        let or_whole = if meta == 0 { element_size } else { usize::from(meta) };
        steps.push(match filter {
            // None, and what dropped bits for good.
            0 | 4 | 36 => continue,
            1 => Step::Unshuffle(or_whole),
            2 if version <= 2 => Step::UnshuffleBitsOfOld,
            2 => Step::UnshuffleBits,
            3 => Step::Delta,
            35 => Step::SumPlanes(or_whole),
            _ => return Err(unsupported("another filter")),
        });
    }
    let moves = steps.iter().filter(|step| step.moves_bytes()).count();
    let delta = steps.iter().position(|&step| step == Step::Delta);
    if moves > 1 || delta.is_some_and(|at| at + 1 != steps.len()) {
        return Err(unsupported("filters in an unusual order"));
    }
    Ok(steps)
}

/// Bytes of what differences are between.
pub(super) fn delta_width(element_size: usize) -> usize {
    match element_size {
        size @ (1 | 2 | 4) => size,
        size if size % 8 == 0 => 8,
        _ => 1,
    }
}

impl Blocks<'_> {
    fn decode(
        &self,
        number: usize,
        whole: bool,
        first: &mut Vec<u8>,
        state: &mut State,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        let start = number.checked_mul(4).and_then(|at| self.bytes.get(HEADER_LEN + at..));
        let start = start.and_then(|list| Reader::new(list).u32_le()).ok_or(DAMAGED)?;
        let stored = Reader::new(self.bytes.get(start as usize..).ok_or(DAMAGED)?);
        self.decode_from(stored, number, whole, first, state, out)
    }

    /// Decode block `number`, which begins where `stored` does.
    fn decode_from(
        &self,
        stored: Reader<'_>,
        number: usize,
        whole: bool,
        first: &mut Vec<u8>,
        state: &mut State,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        let streams = if self.split && whole { self.element_size } else { 1 };
        let before = self.steps.iter().position(|step| step.moves_bytes());
        let Some(moving) = before else {
            self.decompress(stored, streams, state, out)?;
            return self.in_place(&self.steps, number, first, out);
        };
        let nbytes = out.len();
        let mut packed = std::mem::take(&mut state.packed);
        let decoded = resize(&mut packed, nbytes)
            .map_err(|_| DecodeError::Memory { nbytes })
            .and_then(|()| self.decompress(stored, streams, state, &mut packed))
            .and_then(|()| self.in_place(&self.steps[..moving], number, first, &mut packed))
            .and_then(|()| self.move_bytes(self.steps[moving], &packed, state, out));
        state.packed = packed;
        decoded.and_then(|()| self.in_place(&self.steps[moving + 1..], number, first, out))
    }

    fn decompress(
        &self,
        mut stored: Reader<'_>,
        streams: usize,
        state: &mut State,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        let stream_len = out.len() / streams;
        if stream_len * streams != out.len() {
            return Err(DAMAGED);
        }
        for out in out.chunks_exact_mut(stream_len.max(1)) {
            let stored_len = stored.u32_le().ok_or(DAMAGED)?.cast_signed();
            let Ok(stored_len) = usize::try_from(stored_len) else {
                // The lowest bit of a token says that one byte is repeated.
                stored.u8().filter(|token| token & 1 == 1).ok_or(DAMAGED)?;
                out.fill(u8::try_from(stored_len.unsigned_abs()).map_err(|_| DAMAGED)?);
                continue;
            };
            let bytes = stored.take(stored_len).ok_or(DAMAGED)?;
            if bytes.is_empty() {
                out.fill(0);
            } else if bytes.len() == out.len() {
                out.copy_from_slice(bytes);
            } else if !self.codec.decompress_exactly(bytes, state, out)? {
                return Err(DAMAGED);
            }
        }
        Ok(())
    }

    fn move_bytes(
        &self,
        step: Step,
        packed: &[u8],
        state: &mut State,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        let elements = out.len() / self.element_size;
        let whole = match step {
            Step::Unshuffle(size) => {
                shuffle::unshuffle(size, packed, out);
                return Ok(());
            }
            Step::UnshuffleBitsOfOld if !elements.is_multiple_of(8) => 0,
            _ => elements / 8 * 8,
        };
        bitshuffle::unshuffle_some(self.element_size, whole, packed, state, out)
    }

    fn in_place(
        &self,
        steps: &[Step],
        number: usize,
        first: &mut Vec<u8>,
        block: &mut [u8],
    ) -> Result<(), DecodeError> {
        for step in steps {
            match *step {
                Step::Delta => self.undo_delta(number, first, block)?,
                Step::SumPlanes(size) => {
                    for plane in block.chunks_exact_mut((block.len() / size).max(1)).take(size) {
                        let mut sum = 0u8;
                        for byte in plane {
                            sum = sum.wrapping_add(*byte);
                            *byte = sum;
                        }
                    }
                }
                Step::Unshuffle(_) | Step::UnshuffleBits | Step::UnshuffleBitsOfOld => {}
            }
        }
        Ok(())
    }

    fn undo_delta(
        &self,
        number: usize,
        first: &mut Vec<u8>,
        block: &mut [u8],
    ) -> Result<(), DecodeError> {
        let width = delta_width(self.element_size);
        let whole = block.len() / width * width;
        if number > 0 {
            for (byte, other) in block[..whole].iter_mut().zip(first) {
                *byte ^= *other;
            }
            return Ok(());
        }
        for at in width..whole {
            block[at] ^= block[at - width];
        }
        let nbytes = block.len();
        resize(first, nbytes).map_err(|_| DecodeError::Memory { nbytes })?;
        first.copy_from_slice(block);
        Ok(())
    }
}
