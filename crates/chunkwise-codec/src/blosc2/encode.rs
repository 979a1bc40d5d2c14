//! How is a chunk made a Blosc2 frame?
//!
//! As HDF5's filter makes it: a frame with one chunk; where `cd_values` state the shape of an
//! array, of boxes of that.  A chunk that does not shrink is stored as it is, within the frame.

use std::ops::Range;

use super::grid::Grid;
use super::layout::{self, CHUNK_HEADER_LEN, FrameOptions};
use crate::blosc::encode::{
    Compressor, Rest, Runs, Shuffle, put_block, room_for, shuffled, usual_block_len, whole_elements,
};
use crate::encoded_blocks::{EncodedBlocks, SLACK_NBYTES, put_starts};
use crate::filter::{Encode, Encoded, Options};
use crate::state::EncoderState;
use crate::streams::{Buffers, Streams};
use crate::{EncodeError, grown};

/// Elements that a stream has at least, where blocks are split.
const LEAST: usize = 32;
/// Streams that a block is split into at most.
const MOST_STREAMS: usize = 16;
/// Dimensions that Blosc2's arrays have at most.
const MOST_DIMENSIONS: usize = 8;
/// Bytes of a chunk at most.
const MOST: usize = i32::MAX as usize - CHUNK_HEADER_LEN;

/// The filter's options when writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blosc2Encoder {
    element_size: usize,
    /// Bytes of a block as stated; 0 where the encoder chooses.
    block_len: usize,
    level: u32,
    /// Blosc2's number for what is done before compressing.
    filter: u8,
    compressor: Compressor,
    number: u8,
    /// The array's, empty where there is none.
    shape: Vec<usize>,
}

const SHUFFLE: u8 = 1;
const BITSHUFFLE: u8 = 2;
const DELTA: u8 = 3;

/// How a chunk is cut.
#[derive(Debug)]
struct Cut {
    grid: Option<(Grid, Vec<usize>)>,
    block_len: usize,
    /// Bytes of all blocks.
    len: usize,
}

impl Options for Blosc2Encoder {
    /// From `cd_values`: a version, the block's length, the element's, the chunk's, level,
    /// filter, compressor; of arrays, their rank and shape.
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        let &[_, block_len, element_size, chunk_nbytes, level @ ..=9, filter, ref rest @ ..] =
            cd_values
        else {
            return None;
        };
        let number = rest.first().copied().unwrap_or(0);
        let shape = match rest {
            [] | [_] => &[],
            [_, rank, shape @ ..] => {
                let rank = (2..=MOST_DIMENSIONS).contains(&(*rank as usize)).then_some(*rank)?;
                shape.get(..rank as usize)?
            }
        };
        // The filter would not decode an array that is larger than what is stated.
        let array_nbytes = shape.iter().try_fold(element_size, |n, &len| n.checked_mul(len));
        if !shape.is_empty() && array_nbytes.is_none_or(|nbytes| nbytes > chunk_nbytes) {
            return None;
        }
        let sizes = [element_size].into_iter().chain(shape.iter().copied());
        let sound = sizes.into_iter().all(|n| n > 0 && n <= i32::MAX as u32);
        sound.then_some(Self {
            element_size: element_size as usize,
            block_len: block_len as usize,
            level,
            filter: u8::try_from(filter).ok().filter(|filter| *filter <= DELTA)?,
            compressor: Compressor::from_number(number)?,
            number: number as u8,
            shape: shape.iter().map(|&n| n as usize).collect(),
        })
    }
}

impl Encode for Blosc2Encoder {
    /// Encode `raw`, be that shorter or not; false where no frame can hold it.
    fn encode(&self, raw: &[u8], state: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        let EncoderState { buffers, streams, .. } = state;
        let Some(cut) = self.cut(raw.len()) else { return Ok(false) };
        let options = self.options(&cut);
        out.clear();
        self.put_frame_header(&cut, out);
        let header_len = out.len();
        let most = CHUNK_HEADER_LEN + cut.len;
        let room = header_len + most + layout::REST_LEN;
        grown(out, room)?;
        let (frame_header, chunk) = out.split_at_mut(header_len);
        let chunk = &mut chunk[..most];
        let (mut starts, blocks) = (Vec::new(), 0..cut.blocks());
        let begin = CHUNK_HEADER_LEN + 4 * blocks.len();
        let packed = match self.level {
            0 => None,
            _ => {
                self.put_blocks(raw, (&cut, blocks), (buffers, streams), chunk, begin, &mut starts)?
            }
        };
        let chunk_len = match packed {
            Some(len) => {
                let places = chunk[CHUNK_HEADER_LEN..begin].as_chunks_mut::<4>().0;
                for (place, start) in places.iter_mut().zip(starts) {
                    *place = start.to_le_bytes();
                }
                len
            }
            None => {
                self.store_blocks(raw, &cut, chunk);
                most
            }
        };
        let stored = packed.is_none();
        let is_split = self.splits(cut.block_len, self.filter == SHUFFLE);
        layout::put_chunk_header(&options, stored, is_split, chunk_len, chunk);
        layout::finish_frame_header(frame_header, chunk_len);
        out.truncate(header_len + chunk_len);
        layout::put_rest(out);
        Ok(true)
    }
}

impl Blosc2Encoder {
    fn options(&self, cut: &Cut) -> FrameOptions {
        FrameOptions {
            element_size: self.element_size,
            compressor: self.number,
            format: self.compressor.format(),
            level: self.level,
            filter: self.filter,
            len: cut.len,
            block_len: cut.block_len,
        }
    }

    fn put_frame_header(&self, cut: &Cut, out: &mut Vec<u8>) {
        let shapes = cut.grid.as_ref().map(|(_, block)| (&self.shape[..], &block[..]));
        layout::put_frame_header(&self.options(cut), shapes, out);
    }

    /// How a chunk of `len` bytes is encoded some blocks at a time; None where it is only stored,
    /// or blocks depend on the first one.
    pub(crate) fn parts(&self, len: usize) -> Option<Blosc2Parts<'_>> {
        let packed = self.level > 0 && self.filter != DELTA;
        let cut = self.cut(len).filter(|_| packed)?;
        Some(Blosc2Parts { encoder: self, cut })
    }

    /// Write some blocks to `chunk` from `len` on, and tell where each begins; where they end, or
    /// None where there is no room.
    fn put_blocks(
        &self,
        raw: &[u8],
        (cut, numbers): (&Cut, Range<usize>),
        (buffers, streams): (&mut Buffers, &mut Streams),
        chunk: &mut [u8],
        mut len: usize,
        starts: &mut Vec<u32>,
    ) -> Result<Option<usize>, EncodeError> {
        let codec = self.compressor.codec(self.level);
        let element_size = self.stream_element_size();
        let (how, is_split) = match self.filter {
            SHUFFLE => (Shuffle::Bytes, self.splits(cut.block_len, true)),
            BITSHUFFLE => (Shuffle::Bits, false),
            _ => (Shuffle::None, false),
        };
        let mut boxed = std::mem::take(&mut buffers.boxed);
        let mut first = Vec::new();
        for number in numbers {
            let block = cut.block(number, raw, &mut boxed)?;
            let differences;
            let block = if self.filter == DELTA {
                differences = delta(element_size, block, &mut first)?;
                &differences[..]
            } else {
                block
            };
            let count = if is_split && block.len() == cut.block_len { element_size } else { 1 };
            let packed = shuffled(how, element_size, block, buffers, Rest::Few)?;
            starts.push(len as u32);
            match put_block(codec, count, Runs::Known, packed, streams, chunk, len) {
                Some(end) => len = end,
                None => return Ok(None),
            }
        }
        buffers.boxed = boxed;
        Ok(Some(len))
    }

    /// Write blocks as they are.
    fn store_blocks(&self, raw: &[u8], cut: &Cut, chunk: &mut [u8]) {
        let body = &mut chunk[CHUNK_HEADER_LEN..];
        match &cut.grid {
            None => body.copy_from_slice(raw),
            Some((grid, _)) => {
                body.fill(0);
                for (number, block) in body.chunks_mut(cut.block_len).enumerate() {
                    grid.take(number, raw, block);
                }
            }
        }
    }

    /// How `len` bytes are cut; None where they cannot be.
    fn cut(&self, len: usize) -> Option<Cut> {
        let size = self.element_size;
        let array_len = self.shape.iter().try_fold(size, |len, &n| len.checked_mul(n));
        // What another filter has made longer is no array any more.
        if self.shape.is_empty() || array_len != Some(len) {
            let block_len = match self.block_len {
                0 => self.chosen_block_len(len, self.filter == SHUFFLE),
                stated => stated,
            };
            let block_len = whole_elements(block_len.min(len), size);
            let sound = (1..=MOST).contains(&len);
            return sound.then_some(Cut { grid: None, block_len, len });
        }
        let block_len = match self.block_len {
            0 => whole_elements(self.chosen_block_len(len, true).min(len), size),
            stated => stated,
        };
        let block = block_shape(block_len / size, &self.shape)?;
        let grid = Grid::new(self.shape.clone(), block.clone(), size)?;
        let len = grid.nbytes().filter(|len| (1..=MOST).contains(len))?;
        Some(Cut { block_len: grid.block_nbytes()?, grid: Some((grid, block)), len })
    }

    /// Bytes of an element as streams have them.
    fn stream_element_size(&self) -> usize {
        if self.element_size > 255 { 1 } else { self.element_size }
    }

    fn chosen_block_len(&self, len: usize, is_shuffled: bool) -> usize {
        let block_len = usual_block_len(self.compressor, self.level, len);
        if self.level == 0 || !self.splits(block_len, is_shuffled) {
            return block_len;
        }
        let stream_len: usize = match self.level {
            ..=3 => 32 << 10,
            4..=6 => 64 << 10,
            7 => 128 << 10,
            8 => 256 << 10,
            _ => 512 << 10,
        };
        (stream_len * self.element_size).clamp(32 << 10, 4 << 20)
    }

    /// Whether whole blocks have a stream for each byte of an element.
    fn splits(&self, block_len: usize, is_shuffled: bool) -> bool {
        let fast = match self.compressor {
            Compressor::BloscLz | Compressor::Lz4 => true,
            Compressor::Zstd => self.level <= 5,
            Compressor::Lz4Hc | Compressor::Zlib => false,
        };
        fast && is_shuffled
            && self.element_size <= MOST_STREAMS
            && block_len / self.element_size >= LEAST
    }
}

/// A chunk that is encoded some blocks at a time.
#[derive(Debug)]
pub(crate) struct Blosc2Parts<'e> {
    encoder: &'e Blosc2Encoder,
    cut: Cut,
}

impl Blosc2Parts<'_> {
    /// Bytes of all blocks.
    pub(crate) fn blocks_len(&self) -> usize {
        self.cut.len
    }

    pub(crate) fn block_len(&self) -> usize {
        self.cut.block_len
    }

    /// Encode some blocks of the chunk `raw`; false where that cannot be.
    pub(crate) fn put_part(
        &self,
        raw: &[u8],
        numbers: Range<usize>,
        buffers: &mut Buffers,
        streams: &mut Streams,
        made: &mut EncodedBlocks,
    ) -> Result<bool, EncodeError> {
        let (Self { encoder, cut }, EncodedBlocks { bytes, starts }) = (self, made);
        grown(bytes, room_for(numbers.len() * cut.block_len, numbers.len()))?;
        let both = (buffers, streams);
        let end = encoder.put_blocks(raw, (cut, numbers), both, bytes, 0, starts)?;
        bytes.truncate(end.unwrap_or(0));
        Ok(end.is_some())
    }

    /// Append what comes before all blocks of the chunk; false where they do not get shorter, or
    /// hardly.
    pub(crate) fn put_head(&self, parts: &[EncodedBlocks], out: &mut Vec<u8>) -> bool {
        let Self { encoder, cut } = self;
        let begin = CHUNK_HEADER_LEN + 4 * cut.blocks();
        let chunk_len = begin + parts.iter().map(|part| part.bytes.len()).sum::<usize>();
        if chunk_len + SLACK_NBYTES > CHUNK_HEADER_LEN + cut.len {
            return false;
        }
        encoder.put_frame_header(cut, out);
        layout::finish_frame_header(out, chunk_len);
        let mut header = [0; CHUNK_HEADER_LEN];
        let is_split = encoder.splits(cut.block_len, encoder.filter == SHUFFLE);
        let options = encoder.options(cut);
        layout::put_chunk_header(&options, false, is_split, chunk_len, &mut header);
        out.extend(header);
        put_starts(parts, begin, out);
        true
    }

    /// Append what comes after the blocks.
    pub(crate) fn finish(&self, out: &mut Vec<u8>) {
        layout::put_rest(out);
    }
}

impl Cut {
    fn blocks(&self) -> usize {
        self.len.div_ceil(self.block_len)
    }

    /// The block's bytes, those beyond an array zero.
    fn block<'a>(
        &self,
        number: usize,
        raw: &'a [u8],
        boxed: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], EncodeError> {
        let Some((grid, _)) = &self.grid else {
            let end = raw.len().min((number + 1) * self.block_len);
            return Ok(&raw[number * self.block_len..end]);
        };
        if let Some(range) = grid.run_of(number) {
            return Ok(&raw[range]);
        }
        let nbytes = self.block_len;
        grown(boxed, nbytes)?;
        boxed.fill(0);
        grid.take(number, raw, boxed);
        Ok(boxed)
    }
}

/// The block's differences to the first one; in the first, to the element before.
fn delta(element_size: usize, block: &[u8], first: &mut Vec<u8>) -> Result<Vec<u8>, EncodeError> {
    let nbytes = block.len();
    let mut out = Vec::new();
    grown(&mut out, nbytes)?;
    out.copy_from_slice(block);
    let width = super::chunk::delta_width(element_size);
    let whole = nbytes / width * width;
    if first.is_empty() {
        for (to, before) in out[..whole].iter_mut().skip(width).zip(block) {
            *to ^= before;
        }
        grown(first, nbytes)?;
        first.copy_from_slice(block);
    } else {
        for (to, other) in out[..whole].iter_mut().zip(first) {
            *to ^= *other;
        }
    }
    Ok(out)
}

/// The shape of a block of at most `elements`: dimensions double in turns, the last first, from
/// two elements on, until no more fit.
fn block_shape(elements: usize, shape: &[usize]) -> Option<Vec<usize>> {
    let mut block: Vec<usize> = shape.iter().map(|&n| n.min(2)).collect();
    let mut count: usize = block.iter().product();
    loop {
        let before = count;
        for (len, &whole) in block.iter_mut().zip(shape).rev() {
            let longer = if *len * 2 <= whole { *len * 2 } else { whole };
            let more = (count / *len).checked_mul(longer)?;
            if more <= elements {
                (*len, count) = (longer, more);
            }
        }
        if count == before || count >= elements {
            return Some(block);
        }
    }
}
