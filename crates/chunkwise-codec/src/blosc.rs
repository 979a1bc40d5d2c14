//! How is a Blosc chunk decoded ([`encode`]: made)?
//!
//! A header of 16 bytes says what was done: lengths, the compressor, the shuffle.  Blocks
//! follow, whose places are listed first; each is compressed as one stream, or as one for
//! each byte of an element, behind its stored length.  A stream that did not shrink is
//! stored as it is, and so is a chunk.

mod blocks;
pub(crate) mod encode;
mod some;

use crate::bytes::Reader;
use crate::cut::Cut;
use crate::filter::{Decoded, Options};
use crate::state::State;
use crate::{DecodeError, Output, bitshuffle, blosclz, lz4, resize, shuffle};

/// The filter's numbers of the compressors whose decoders are here: not 3, snappy.
const KNOWN: [u32; 5] = [0, 1, 2, 4, 5];
const HEADER_LEN: usize = 16;
/// Of the chunk, and of what any compressor makes.
const FORMAT: u8 = 2;
const CODEC_FORMAT: u8 = 1;
/// Lengths have a sign.
const MOST_STORED: usize = i32::MAX as usize;

/// The filter, whose chunks say how to decode them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blosc;

impl Options for Blosc {
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        // The filter decodes nothing where this is no compressor's, whatever the chunk says.
        cd_values.get(6).is_none_or(|number| KNOWN.contains(number)).then_some(Self)
    }
}

/// What compresses the streams.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Codec {
    BloscLz,
    Lz4,
    Zlib,
    Zstd,
}

impl Codec {
    /// Decompress one stream to exactly `out`; whether that went well.
    pub(crate) fn decompress_exactly(
        self,
        stored: &[u8],
        state: &mut State,
        out: &mut [u8],
    ) -> Result<bool, DecodeError> {
        Ok(match self {
            Self::BloscLz => blosclz::decompress_exactly(stored, out).is_some(),
            Self::Lz4 => lz4::decompress_exactly(stored, out),
            Self::Zlib => state.inflater.inflate_exactly(stored, out),
            Self::Zstd => state.zstd.decompress_exactly(stored, out)?,
        })
    }

    /// Decompress the first `wanted` bytes of a stream that decompresses to exactly `out`, or all of
    /// them; whether that went well.
    ///
    /// LZ4 copies the run that it stops in byte by byte: of few bytes that stand for many, which are
    /// long runs, all are decompressed sooner.
    fn decompress_first(
        self,
        stored: &[u8],
        state: &mut State,
        wanted: usize,
        out: &mut [u8],
    ) -> Result<bool, DecodeError> {
        match self {
            Self::Lz4 if stored.len() > out.len() / 4 => {
                Ok(lz4::decompress_first(stored, &mut out[..wanted]))
            }
            _ => self.decompress_exactly(stored, state, out),
        }
    }
}

/// What the header says.
#[derive(Debug, Clone, Copy)]
struct Head {
    cut: Cut,
    /// Bytes stored, the header included; no more than there are.
    stored_len: usize,
    /// None where the bytes are stored as they are.
    streams: Option<Streams>,
}

/// What the header says of each block.
#[derive(Debug, Clone, Copy)]
struct Streams {
    codec: Codec,
    element_size: usize,
    shuffled: bool,
    bits_shuffled: bool,
    /// Whether whole blocks have a stream for each byte of an element.
    split: bool,
    /// Bytes of a whole block.
    block_len: usize,
}

const DAMAGED: DecodeError = DecodeError::Damaged { filter: "blosc" };

impl Head {
    fn parse(stored: &[u8]) -> Result<Self, DecodeError> {
        const SHUFFLED: u8 = 1;
        const STORED: u8 = 2;
        const BITS_SHUFFLED: u8 = 4;
        const NOT_SPLIT: u8 = 16;
        let Some((&[format, codec_format, flags, element_size, ref lengths @ ..], _)) =
            stored.split_first_chunk::<HEADER_LEN>()
        else {
            return Err(DAMAGED);
        };
        let mut lengths = Reader::new(lengths);
        let mut length = || lengths.u32_le().unwrap_or(0) as usize;
        let (len, block_len, stored_len) = (length(), length(), length());
        if format != FORMAT || !(HEADER_LEN..=MOST_STORED).contains(&stored_len) {
            return Err(DAMAGED);
        }
        // C-Blosc reads nothing beyond what the header says, and knows one version of each format.
        let stored_len = stored_len.min(stored.len());
        let cut = Cut { len, block_len };
        if flags & STORED != 0 {
            return Ok(Self { cut, stored_len, streams: None });
        }
        if codec_format != CODEC_FORMAT {
            return Err(DAMAGED);
        }
        let codec = match flags >> 5 {
            0 => Codec::BloscLz,
            1 => Codec::Lz4,
            2 => return Err(DecodeError::Unsupported { filter: "blosc", what: "snappy" }),
            3 => Codec::Zlib,
            4 => Codec::Zstd,
            _ => return Err(DAMAGED),
        };
        let element_size = usize::from(element_size);
        if element_size == 0 || (block_len == 0 && len > 0) || block_len > len {
            return Err(DAMAGED);
        }
        let streams = Streams {
            codec,
            element_size,
            shuffled: flags & SHUFFLED != 0 && element_size > 1,
            bits_shuffled: flags & BITS_SHUFFLED != 0 && block_len >= element_size,
            // As the compressor decides, which does not write it down.
            split: flags & NOT_SPLIT == 0 && element_size <= 16 && block_len / element_size >= 128,
            block_len,
        };
        Ok(Self { cut, stored_len, streams: Some(streams) })
    }
}

impl Blosc {
    /// Decode what HDF5's Blosc filter stored.
    fn decode_whole(&self, stored: &[u8], state: &mut State, output: &mut Output<'_>) -> Decoded {
        let head = Head::parse(stored)?;
        let Cut { len, block_len } = head.cut;
        output.ends_after(head.stored_len);
        let stored = &stored[..head.stored_len];
        let rest = &stored[HEADER_LEN..];
        let Some(streams) = head.streams else {
            let bytes = rest.get(..len).ok_or(DAMAGED)?;
            output.room(len)?.copy_from_slice(bytes);
            return Ok(());
        };
        let out = output.room(len)?;
        let mut starts = Reader::new(rest);
        // Streams do not overlap.  If they might, a few bytes could name one costly stream a
        // million times.
        let mut left = stored.len();
        for block in out.chunks_mut(block_len.max(1)) {
            let start = starts.u32_le().ok_or(DAMAGED)?;
            let stored = stored.get(start as usize..).ok_or(DAMAGED)?;
            streams.decode(stored, &mut left, state, block)?;
        }
        Ok(())
    }
}

impl Streams {
    /// Decode the block at the beginning of `stored`, of `left` bytes at most.
    fn decode(
        &self,
        stored: &[u8],
        left: &mut usize,
        state: &mut State,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        let streams = self.streams_of(out.len());
        let sound = self.decode_streams(Reader::new(stored), streams, left, state, out)?;
        if sound { Ok(()) } else { Err(DAMAGED) }
    }

    /// How many streams a block of this many bytes has.
    fn streams_of(&self, nbytes: usize) -> usize {
        if self.split && nbytes == self.block_len { self.element_size } else { 1 }
    }

    /// Whether that went well.
    fn decode_streams(
        &self,
        stored: Reader<'_>,
        streams: usize,
        left: &mut usize,
        state: &mut State,
        out: &mut [u8],
    ) -> Result<bool, DecodeError> {
        if !self.shuffled && !self.bits_shuffled {
            return self.decompress(stored, streams, left, state, out);
        }
        let nbytes = out.len();
        let mut packed = std::mem::take(&mut state.packed);
        let sized = resize(&mut packed, nbytes).map_err(|_| DecodeError::Memory { nbytes });
        let sound = sized.and_then(|()| self.decompress(stored, streams, left, state, &mut packed));
        if let Ok(true) = sound {
            if self.shuffled {
                shuffle::unshuffle(self.element_size, &packed, out);
            } else {
                // A block whose elements do not come in eights is left as it was.
                let elements = nbytes / self.element_size;
                let whole = if elements.is_multiple_of(8) { elements } else { 0 };
                bitshuffle::unshuffle_some(self.element_size, whole, &packed, state, out)?;
            }
        }
        state.packed = packed;
        sound
    }

    fn decompress(
        &self,
        mut stored: Reader<'_>,
        streams: usize,
        left: &mut usize,
        state: &mut State,
        out: &mut [u8],
    ) -> Result<bool, DecodeError> {
        let stream_len = out.len() / streams;
        if stream_len * streams != out.len() {
            return Ok(false);
        }
        for out in out.chunks_exact_mut(stream_len.max(1)) {
            let Some(bytes) = stored.u32_le().and_then(|len| stored.take(len as usize)) else {
                return Ok(false);
            };
            let Some(rest) = left.checked_sub(bytes.len()) else { return Ok(false) };
            *left = rest;
            let sound = if bytes.len() == out.len() {
                out.copy_from_slice(bytes);
                true
            } else {
                self.codec.decompress_exactly(bytes, state, out)?
            };
            if !sound {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::Blosc;
    use crate::{DecodeError, Filter, FilterKind, Pipeline, Scratch};

    /// Four blocks of four bytes, each stored as it is, at these places.
    fn chunk(starts: [u32; 4]) -> Vec<u8> {
        let mut chunk = vec![2, 1, 1 << 5, 1];
        let numbers = [16, 4, 64].into_iter().chain(starts);
        chunk.extend(numbers.flat_map(u32::to_le_bytes));
        for block in 0..4 {
            chunk.extend([4, 0, 0, 0]);
            chunk.extend([block; 4]);
        }
        chunk
    }

    /// HDF5's filter asks for the compressor that its options name before it decodes anything.
    #[test]
    fn options_that_name_no_compressor_are_left_to_libhdf5() {
        let id = FilterKind::Blosc.id();
        let with = |compressor| Filter::from_hdf5(id, &[2, 2, 4, 64, 5, 1, compressor]);
        for known in [0, 1, 2, 4, 5] {
            assert_eq!(with(known), Some(Filter::Blosc(Blosc)));
        }
        // Snappy, which is not here, and none at all.
        for unknown in [3, 6, 7, 0x80, 0x0100_0001, u32::MAX] {
            assert_eq!(with(unknown), None);
        }
        // Where they end before it, the filter takes its own.
        assert_eq!(Filter::from_hdf5(id, &[2, 2, 4, 64, 5, 1]), Some(Filter::Blosc(Blosc)));
    }

    #[test]
    fn blocks_that_share_a_stream_again_and_again_are_refused() {
        let pipeline = Pipeline::new(vec![Filter::Blosc(Blosc)]);
        let decode = |stored: &[u8], len: usize| {
            let mut out = vec![0; len];
            pipeline.decode(stored, 0, &mut Scratch::default(), &mut out).map(|()| out)
        };
        let sound = decode(&chunk([32, 40, 48, 56]), 16);
        assert_eq!(sound.as_deref(), Ok(&[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3][..]));
        // A thousand blocks of eight bytes, all of them the same ones.
        let mut shared = vec![2, 1, 1 << 5, 1];
        shared.extend([8000u32, 8, 4028].into_iter().flat_map(u32::to_le_bytes));
        shared.extend([16 + 4000u32; 1000].into_iter().flat_map(u32::to_le_bytes));
        shared.extend([8, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7]);
        assert_eq!(decode(&shared, 8000), Err(DecodeError::Damaged { filter: "blosc" }));
    }
}
