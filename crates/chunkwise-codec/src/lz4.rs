//! How are LZ4 blocks decompressed, alone and in the container of HDF5's filter, and how is that
//! made?
//!
//! The filter (`H5Zlz4.c`) writes the chunk's length (8 bytes, big-endian), the length of
//! a block (4), and for each block its stored length (4) and bytes; a block that did not
//! shrink is stored as it is.

use std::ffi::{c_char, c_int};

use crate::bytes::Reader;
use crate::cut::Cut;
use crate::filter::{Decode, Decoded, Encode, Encoded, Options, expanded};
use crate::partial::PartialDecoder;
use crate::state::{EncoderState, State};
use crate::{DecodeError, EncodeError, Output};

/// A byte of LZ4 gives at most this many.
pub(crate) const MOST_EXPANSION: usize = 255;

/// Decompress one block to exactly `out`; whether that went well.
pub(crate) fn decompress_exactly(stored: &[u8], out: &mut [u8]) -> bool {
    let (Ok(stored_len), Ok(len)) = (c_int::try_from(stored.len()), c_int::try_from(out.len()))
    else {
        return false;
    };
    // SAFETY: the lengths are those of live slices; the function reads and writes nothing
    // beyond them, whatever the bytes are.
    let written = unsafe {
        lz4_sys::LZ4_decompress_safe(
            stored.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            stored_len,
            len,
        )
    };
    written == len
}

unsafe extern "C" {
    /// Of lz4's own functions, one that `lz4-sys` builds and does not declare.
    fn LZ4_decompress_safe_partial(
        source: *const c_char,
        dest: *mut c_char,
        source_len: c_int,
        wanted_len: c_int,
        room_len: c_int,
    ) -> c_int;
}

/// Decompress the first bytes of a block, as many as fill `out`; whether that went well.
pub(crate) fn decompress_first(stored: &[u8], out: &mut [u8]) -> bool {
    let (Ok(stored_len), Ok(len)) = (c_int::try_from(stored.len()), c_int::try_from(out.len()))
    else {
        return false;
    };
    // SAFETY: declared as in lz4.h; the lengths are those of live slices, beyond which the function
    // reads and writes nothing, whatever the bytes are.
    let written = unsafe {
        LZ4_decompress_safe_partial(
            stored.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            stored_len,
            len,
            len,
        )
    };
    written == len
}

/// Bytes of the chunk's and the block's length.
pub(crate) const HEADER_LEN: usize = 12;
/// Bytes of a stored block's length.
const LEN_LEN: usize = 4;

const DAMAGED: DecodeError = DecodeError::Damaged { filter: "lz4" };

/// The filter's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lz4 {
    /// Bytes in a block.
    pub(crate) block_nbytes: u32,
}

impl Options for Lz4 {
    /// From the length of a block; none, or 0, is the filter's own, 1 GiB.
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        let block_nbytes = cd_values.first().copied().filter(|&nbytes| nbytes > 0);
        Some(Self { block_nbytes: block_nbytes.unwrap_or(1 << 30) })
    }
}

impl Decode for Lz4 {
    fn most_decoded(&self, stored_len: usize) -> usize {
        expanded(stored_len, MOST_EXPANSION)
    }

    fn decode(&self, stored: &[u8], _: &mut State, output: &mut Output<'_>) -> Decoded {
        let Cut { len, block_len } = cut(stored)?;
        let out = output.room(len)?;
        if block_len == 0 && len > 0 {
            return Err(DAMAGED);
        }
        let mut rest = Reader::new(stored);
        rest.take(HEADER_LEN).ok_or(DAMAGED)?;
        for block in out.chunks_mut(block_len.max(1)) {
            decode_block(next_block(&mut rest).ok_or(DAMAGED)?, block)?;
        }
        output.ends_after(stored.len() - rest.len());
        Ok(())
    }

    fn is_in_blocks(&self) -> bool {
        true
    }

    fn partial<'a>(
        &self,
        stored: &'a [u8],
        _: &mut State,
    ) -> Option<Box<dyn PartialDecoder<'a> + 'a>> {
        Some(Box::new(Lz4Blocks(cut(stored).ok()?)))
    }
}

/// How the stored bytes are divided.
fn cut(stored: &[u8]) -> Result<Cut, DecodeError> {
    let mut stored = Reader::new(stored);
    let (len, block_len) = stored.u64_be().zip(stored.u32_be()).ok_or(DAMAGED)?;
    Ok(Cut { len: usize::try_from(len).unwrap_or(usize::MAX), block_len: block_len as usize })
}

/// The bytes of the next block, with its length.
fn next_block<'a>(stored: &mut Reader<'a>) -> Option<&'a [u8]> {
    let stored_len = stored.clone().u32_be()? as usize;
    stored.take(LEN_LEN.checked_add(stored_len)?)
}

/// Decode a block of which these are the bytes, as [`next_block`] gives them.
fn decode_block(stored: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
    let bytes = stored.get(LEN_LEN..).ok_or(DAMAGED)?;
    if bytes.len() == out.len() {
        out.copy_from_slice(bytes);
    } else if !decompress_exactly(bytes, out) {
        return Err(DAMAGED);
    }
    Ok(())
}

/// A chunk, of which each block can be decoded by itself.
#[derive(Debug)]
struct Lz4Blocks(Cut);

impl<'a> PartialDecoder<'a> for Lz4Blocks {
    fn cut(&self) -> Cut {
        self.0
    }

    fn begins_at(&self) -> Option<usize> {
        Some(HEADER_LEN)
    }

    fn next_block(&self, _len: usize, stored: &mut Reader<'a>) -> Option<&'a [u8]> {
        next_block(stored)
    }

    fn decode(&self, stored: &[u8], _state: &mut State, out: &mut [u8]) -> Result<(), DecodeError> {
        decode_block(stored, out)
    }
}

impl Encode for Lz4 {
    /// Encode `raw` as HDF5's LZ4 filter does; false where a block is longer than LZ4 takes.
    fn encode(&self, raw: &[u8], _: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        let block_len = raw.len().min(self.block_nbytes as usize);
        let Some(bound) = bound(block_len) else { return Ok(false) };
        let blocks = raw.chunks(block_len.max(1));
        let nbytes =
            raw.len().saturating_add(12 + 4 * blocks.len()).saturating_add(bound - block_len);
        out.clear();
        out.try_reserve_exact(nbytes).map_err(|_| EncodeError::Memory { nbytes })?;
        self.put_header(raw.len(), out);
        for block in blocks {
            let begin = out.len();
            out.extend([0; 4]);
            let room = out.spare_capacity_mut();
            let room_len = c_int::try_from(room.len()).unwrap_or(c_int::MAX);
            // SAFETY: the lengths are those of live slices, the block's at most what LZ4 takes.
            let written = unsafe {
                lz4_sys::LZ4_compress_default(
                    block.as_ptr().cast(),
                    room.as_mut_ptr().cast(),
                    block.len() as c_int,
                    room_len,
                )
            };
            let stored = match usize::try_from(written) {
                Ok(written @ 1..) if written < block.len() => {
                    // SAFETY: this many bytes of the room have been written.
                    unsafe { out.set_len(begin + 4 + written) };
                    written
                }
                _ => {
                    out.extend_from_slice(block);
                    block.len()
                }
            };
            out[begin..begin + 4].copy_from_slice(&(stored as u32).to_be_bytes());
        }
        Ok(true)
    }
}

impl Lz4 {
    /// Append what comes before the blocks of a chunk of `len` bytes.
    pub(crate) fn put_header(&self, len: usize, out: &mut Vec<u8>) {
        out.extend((len as u64).to_be_bytes());
        let block_nbytes = self.block_nbytes;
        let block_len = u32::try_from(len).map_or(block_nbytes, |len| len.min(block_nbytes));
        out.extend(block_len.to_be_bytes());
    }
}

/// The most that a block of `len` bytes is compressed to; None where LZ4 does not take it.
fn bound(len: usize) -> Option<usize> {
    let len = c_int::try_from(len).ok()?;
    // SAFETY: arithmetic.
    let bound = unsafe { lz4_sys::LZ4_compressBound(len) };
    usize::try_from(bound).ok().filter(|bound| *bound > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, Pipeline, Scratch};
    use proptest::prelude::*;

    fn encode(block_nbytes: u32, raw: &[u8], out: &mut Vec<u8>) -> Encoded {
        let options = Lz4::from_cd_values(&[block_nbytes]).unwrap();
        options.encode(raw, &mut EncoderState::default(), out)
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(
            raw in prop_oneof![
                prop::collection::vec(0u8..3, 0..3000),
                prop::collection::vec(any::<u8>(), 0..500),
            ],
            block in prop_oneof![0u32..70, Just(1000), any::<u32>()],
        ) {
            let mut stored = vec![1; 5];
            prop_assert!(encode(block, &raw, &mut stored).unwrap());
            let mut out = vec![7; raw.len()];
            let pipeline = Pipeline::new(vec![Filter::Lz4(Lz4 { block_nbytes: 1 << 30 })]);
            pipeline.decode(&stored, 0, &mut Scratch::default(), &mut out).unwrap();
            prop_assert_eq!(out, raw);
        }

        /// Of a damaged stream too: as far as it goes, or not at all.
        #[test]
        fn the_first_bytes_are_those_of_the_block(
            raw in prop::collection::vec(0u8..3, 1..3000),
            part in 0f64..1.0,
            change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut container = Vec::new();
            prop_assert!(encode(1 << 20, &raw, &mut container).unwrap());
            let stored = &mut container[HEADER_LEN + LEN_LEN..];
            prop_assume!(stored.len() < raw.len());
            if let Some((at, byte)) = change {
                stored[at.index(stored.len())] = byte;
            }
            let mut whole = vec![0; raw.len()];
            let is_sound = decompress_exactly(stored, &mut whole);
            let mut out = vec![7; (part * raw.len() as f64) as usize + 1];
            let is_part = decompress_first(stored, &mut out);
            prop_assert!(is_part || !is_sound);
            if is_sound {
                prop_assert_eq!(&out[..], &whole[..out.len()]);
            }
        }
    }

    #[test]
    fn blocks_that_do_not_shrink_are_stored() {
        let mut stored = Vec::new();
        assert_eq!(encode(4, &[1, 2, 3, 4, 5], &mut stored), Ok(true));
        let expected: [&[u8]; 5] = [
            &5u64.to_be_bytes(),
            &4u32.to_be_bytes(),
            &[0, 0, 0, 4, 1, 2, 3, 4],
            &[0, 0, 0, 1],
            &[5],
        ];
        assert_eq!(stored, expected.concat());
    }

    #[test]
    fn a_block_may_be_too_long() {
        assert_eq!((bound(0x7e00_0001), bound(1 << 40)), (None, None));
        let stated = [&[][..], &[0], &[9]].map(|cd| Lz4::from_cd_values(cd).unwrap().block_nbytes);
        assert_eq!(stated, [1 << 30, 1 << 30, 9]);
    }
}
