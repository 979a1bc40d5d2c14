//! How is a chunk made a Blosc chunk?
//!
//! Blocks, and the streams that each is split into, are those that C-Blosc makes.  A chunk that does
//! not shrink is stored as it is behind the header, as C-Blosc does where it is given room.

use super::HEADER_LEN;
use crate::bitshuffle::encode::shuffle_bits;
use crate::encoded_blocks::{EncodedBlocks, SLACK_NBYTES, put_starts};
use crate::filter::{Encode, Encoded, Options};
use crate::state::EncoderState;
use crate::streams::{Buffers, StreamCodec, Streams};
use crate::{EncodeError, grown, shuffle};

/// Bytes that Blosc compresses at least, in a chunk and in a stream.
const LEAST: usize = 128;
/// Bytes that it compresses at most.
const MOST: usize = i32::MAX as usize - HEADER_LEN;
/// Of the format, and of the codecs'.
const VERSIONS: [u8; 2] = [2, 1];
/// Streams that a block is split into at most.
const MOST_STREAMS: usize = 16;

/// What is done to blocks before they are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shuffle {
    None,
    Bytes,
    Bits,
}

/// The filter's options when writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BloscEncoder {
    element_size: usize,
    level: u32,
    shuffle: Shuffle,
    compressor: Compressor,
}

/// Blosc's compressors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compressor {
    BloscLz,
    Lz4,
    Lz4Hc,
    Zlib,
    Zstd,
}

impl Compressor {
    /// From Blosc's number for it.
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::BloscLz,
            1 => Self::Lz4,
            2 => Self::Lz4Hc,
            4 => Self::Zlib,
            5 => Self::Zstd,
            _ => return None,
        })
    }

    /// The number in a chunk's flags: who decompresses.
    pub(crate) fn format(self) -> u8 {
        match self {
            Self::BloscLz => 0,
            Self::Lz4 | Self::Lz4Hc => 1,
            Self::Zlib => 3,
            Self::Zstd => 4,
        }
    }

    /// What Blosc asks the library for at `level`, from 1 to 9.
    pub(crate) fn codec(self, level: u32) -> StreamCodec {
        let level = level.cast_signed();
        match self {
            Self::BloscLz => StreamCodec::BloscLz,
            Self::Lz4 => StreamCodec::Lz4 { acceleration: 10 - level },
            Self::Lz4Hc => StreamCodec::Lz4Hc { level },
            Self::Zlib => StreamCodec::Zlib { level },
            Self::Zstd if level < 9 => StreamCodec::Zstd { level: 2 * level - 1 },
            Self::Zstd => StreamCodec::Zstd { level: zstd_safe::max_c_level() },
        }
    }

    /// Whether it takes its time, and so larger blocks.
    pub(crate) fn is_thorough(self) -> bool {
        matches!(self, Self::Lz4Hc | Self::Zlib | Self::Zstd)
    }

    /// Whether blocks of `block_len` bytes have a stream for each byte of an element.
    fn splits(self, element_size: usize, block_len: usize) -> bool {
        self != Self::Zstd && element_size <= MOST_STREAMS && block_len / element_size >= LEAST
    }
}

impl Options for BloscEncoder {
    /// From `cd_values`: three of versions and lengths, with the element's size between, and
    /// level, shuffle, compressor.
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        let &[_, _, element_size, _, ref rest @ ..] = cd_values else { return None };
        let stated = |at: usize, default| rest.get(at).copied().unwrap_or(default);
        let element_size = match element_size {
            0 => return None,
            1..=255 => element_size as usize,
            _ => 1,
        };
        Some(Self {
            element_size,
            level: Some(stated(0, 5)).filter(|level| *level <= 9)?,
            shuffle: match stated(1, 1) {
                0 => Shuffle::None,
                1 => Shuffle::Bytes,
                2 => Shuffle::Bits,
                _ => return None,
            },
            compressor: Compressor::from_number(stated(2, 0))?,
        })
    }
}

impl Encode for BloscEncoder {
    /// Encode `raw`; false where it is longer than Blosc takes.
    fn encode(&self, raw: &[u8], state: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        if raw.len() > MOST {
            return Ok(false);
        }
        if !self.pack(raw, &mut state.buffers, &mut state.streams, out)? {
            self.store(raw, out)?;
        }
        Ok(true)
    }
}

impl BloscEncoder {
    /// Put `raw` behind a header that says that it is not compressed.
    fn store(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        const NOT_COMPRESSED: u8 = 2;
        let nbytes = HEADER_LEN + raw.len();
        out.clear();
        out.try_reserve_exact(nbytes).map_err(|_| EncodeError::Memory { nbytes })?;
        out.extend(VERSIONS);
        out.extend([NOT_COMPRESSED, self.element_size as u8]);
        let lengths = [raw.len(), self.block_len(raw.len()), nbytes];
        out.extend(lengths.map(|n| (n as u32).to_le_bytes()).as_flattened());
        out.extend_from_slice(raw);
        Ok(())
    }

    /// Compress `raw`; false where that makes it no smaller.
    fn pack(
        &self,
        raw: &[u8],
        buffers: &mut Buffers,
        streams: &mut Streams,
        out: &mut Vec<u8>,
    ) -> Result<bool, EncodeError> {
        let Some(block_len) = self.packed_block_len(raw.len()) else { return Ok(false) };
        grown(out, raw.len())?;
        out.truncate(raw.len());
        let table_len = 4 * raw.len().div_ceil(block_len);
        let mut starts = Vec::new();
        let begin = HEADER_LEN + table_len;
        let Some(len) =
            self.put_blocks(raw, block_len, (buffers, streams), out, begin, &mut starts)?
        else {
            return Ok(false);
        };
        for (place, start) in out[HEADER_LEN..begin].as_chunks_mut::<4>().0.iter_mut().zip(starts) {
            *place = start.to_le_bytes();
        }
        let header = self.header([raw.len(), block_len, len]);
        out[..HEADER_LEN].copy_from_slice(&header);
        out.truncate(len);
        Ok(len < raw.len())
    }

    /// Bytes of the blocks into which a chunk of `len` bytes is cut to be compressed; None where
    /// it is only stored.
    pub(crate) fn packed_block_len(&self, len: usize) -> Option<usize> {
        let packed = self.level > 0 && (LEAST.max(self.element_size)..=MOST).contains(&len);
        packed.then(|| self.block_len(len))
    }

    /// Compress the blocks of `raw` into `out` at `len`, and write where each begins. Return where
    /// they end, or None if they do not fit.
    fn put_blocks(
        &self,
        raw: &[u8],
        block_len: usize,
        (buffers, streams): (&mut Buffers, &mut Streams),
        out: &mut [u8],
        mut len: usize,
        starts: &mut Vec<u32>,
    ) -> Result<Option<usize>, EncodeError> {
        let Self { element_size, level, shuffle, compressor } = *self;
        let splits = compressor.splits(element_size, block_len);
        let codec = compressor.codec(level);
        for raw in raw.chunks(block_len) {
            let shuffled = shuffled(shuffle, element_size, raw, buffers, Rest::AsItIs)?;
            let count = if splits && raw.len() == block_len { element_size } else { 1 };
            starts.push(len as u32);
            match put_block(codec, count, Runs::Unknown, shuffled, streams, out, len) {
                Some(end) => len = end,
                None => return Ok(None),
            }
        }
        Ok(Some(len))
    }

    /// Compress some blocks of a chunk; false where that cannot be.
    pub(crate) fn put_part(
        &self,
        raw: &[u8],
        block_len: usize,
        buffers: &mut Buffers,
        streams: &mut Streams,
        made: &mut EncodedBlocks,
    ) -> Result<bool, EncodeError> {
        let EncodedBlocks { bytes, starts } = made;
        grown(bytes, room_for(raw.len(), raw.len().div_ceil(block_len)))?;
        let end = self.put_blocks(raw, block_len, (buffers, streams), bytes, 0, starts)?;
        bytes.truncate(end.unwrap_or(0));
        Ok(end.is_some())
    }

    /// Append what comes before all these blocks of a chunk of `len` bytes; false where the chunk
    /// does not get shorter, or hardly.
    pub(crate) fn put_head(
        &self,
        len: usize,
        block_len: usize,
        parts: &[EncodedBlocks],
        out: &mut Vec<u8>,
    ) -> bool {
        let begin = HEADER_LEN + 4 * len.div_ceil(block_len);
        let stored_len = begin + parts.iter().map(|part| part.bytes.len()).sum::<usize>();
        if stored_len + SLACK_NBYTES > len {
            return false;
        }
        out.extend(self.header([len, block_len, stored_len]));
        put_starts(parts, begin, out);
        true
    }

    /// The header of a chunk that is compressed: its bytes, a block's, and those stored.
    fn header(&self, lengths: [usize; 3]) -> [u8; HEADER_LEN] {
        let Self { element_size, shuffle, compressor, .. } = *self;
        let splits = compressor.splits(element_size, lengths[1]);
        let how = match shuffle {
            Shuffle::None => 0,
            Shuffle::Bytes => 1,
            Shuffle::Bits => 4,
        };
        let flags = how | u8::from(!splits) << 4 | compressor.format() << 5;
        let mut header = [0; HEADER_LEN];
        header[..2].copy_from_slice(&VERSIONS);
        header[2..4].copy_from_slice(&[flags, element_size as u8]);
        header[4..].copy_from_slice(lengths.map(|n| (n as u32).to_le_bytes()).as_flattened());
        header
    }

    /// Bytes of a block of a chunk of `len` bytes, at least an element.
    fn block_len(&self, len: usize) -> usize {
        let Self { element_size, level, compressor, .. } = *self;
        let mut block_len = usual_block_len(compressor, level, len);
        if compressor.splits(element_size, block_len) {
            block_len = (block_len.min(1 << 18) * element_size).clamp(1 << 16, 1 << 20);
        }
        whole_elements(block_len.min(len), element_size)
    }
}

/// Room for `blocks` blocks of `len` bytes in all, where no stream gets longer than it was.
pub(crate) fn room_for(len: usize, blocks: usize) -> usize {
    len + blocks * 4 * MOST_STREAMS + SLACK_NBYTES
}

/// Bytes of a block that is not split, of a chunk of `len` bytes.
pub(crate) fn usual_block_len(compressor: Compressor, level: u32, len: usize) -> usize {
    const FIRST_LEVEL_CACHE: usize = 32 << 10;
    if len < FIRST_LEVEL_CACHE {
        return len;
    }
    let thorough = u32::from(compressor.is_thorough());
    let quarters = match level {
        0 => 1,
        1 => 2,
        2 => 4,
        3 => 8,
        4 | 5 => 16,
        6..=8 => 32,
        _ => 32 << thorough,
    };
    (FIRST_LEVEL_CACHE / 4 * quarters) << thorough
}

/// As many bytes of `len` as whole elements have, where there is one.
pub(crate) fn whole_elements(len: usize, element_size: usize) -> usize {
    if len > element_size { len / element_size * element_size } else { len }
}

/// What becomes of a block whose elements do not come in eights when bits are shuffled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The block stays as it is.
    AsItIs,
    /// The last elements stay as they are.
    Few,
}

/// The block `raw`, shuffled.
pub(crate) fn shuffled<'a>(
    how: Shuffle,
    element_size: usize,
    raw: &'a [u8],
    buffers: &'a mut Buffers,
    rest: Rest,
) -> Result<&'a [u8], EncodeError> {
    let elements = raw.len() / element_size;
    let eights = match how {
        Shuffle::None => return Ok(raw),
        Shuffle::Bytes if element_size == 1 => return Ok(raw),
        Shuffle::Bytes => 0,
        Shuffle::Bits if rest == Rest::AsItIs && !elements.is_multiple_of(8) => return Ok(raw),
        Shuffle::Bits => elements / 8 * 8 * element_size,
    };
    let Buffers { planes, shuffled, .. } = buffers;
    let nbytes = raw.len();
    grown(shuffled, nbytes)?;
    if how == Shuffle::Bytes {
        shuffle::shuffle(element_size, raw, shuffled);
    } else {
        shuffle_bits(element_size, &raw[..eights], planes, &mut shuffled[..eights])?;
        shuffled[eights..].copy_from_slice(&raw[eights..]);
    }
    Ok(shuffled)
}

/// Whether there is a short form for streams of one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    Known,
    Unknown,
}

/// Write a block's `count` streams to `out` from `len` on, each behind its length, as it is where
/// it does not shrink; where they end, or None where there is no room.
pub(crate) fn put_block(
    codec: StreamCodec,
    count: usize,
    runs: Runs,
    block: &[u8],
    streams: &mut Streams,
    out: &mut [u8],
    mut len: usize,
) -> Option<usize> {
    for raw in block.chunks_exact((block.len() / count).max(1)) {
        let (stored_len, room) = out.get_mut(len..)?.split_first_chunk_mut()?;
        if runs == Runs::Known && raw.iter().all(|byte| *byte == raw[0]) {
            // The length's sign says that one byte follows, which says so again.
            *stored_len = (-i32::from(raw[0])).to_le_bytes();
            len += 4;
            if raw[0] != 0 {
                *room.first_mut()? = 1;
                len += 1;
            }
            continue;
        }
        let limit = room.len().min(raw.len());
        let packed = streams.compress(codec, raw, &mut room[..limit]);
        let written = match packed.filter(|&written| written < raw.len()) {
            Some(written) => written,
            None => {
                room.get_mut(..raw.len())?.copy_from_slice(raw);
                raw.len()
            }
        };
        *stored_len = (written as u32).to_le_bytes();
        len += 4 + written;
    }
    Some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_c_blosc() {
        // As chunks of 4 MiB say that C-Blosc 1.21 has made.
        let block_len = |element_size, level, compressor| {
            let shuffle = Shuffle::Bytes;
            BloscEncoder { element_size, level, shuffle, compressor }.block_len(4 << 20)
        };
        assert_eq!(block_len(1, 1, Compressor::Zstd), 32 << 10);
        assert_eq!(block_len(4, 5, Compressor::Zstd), 256 << 10);
        assert_eq!(block_len(4, 9, Compressor::Zstd), 1 << 20);
        assert_eq!(block_len(4, 5, Compressor::Lz4), 512 << 10);
        assert_eq!(block_len(7, 5, Compressor::Lz4), 917_504);
    }
}
