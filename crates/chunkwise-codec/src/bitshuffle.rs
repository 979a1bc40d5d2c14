//! How are bitshuffled chunks put together again, compressed or not ([`encode`]: made)?
//!
//! Elements go in blocks.  In each, the first bits of all elements come first, then all
//! second bits, and so on, from the lowest bit of the first byte to the highest of the
//! last; a row of bits starts with the lowest bit of its first byte.  Elements left over
//! when their number is no multiple of eight stay at the end as they are.
//!
//! With LZ4 or Zstandard, a header tells the chunk's length (8 bytes, big-endian) and the
//! block's in bytes (4); each block is then compressed by itself, behind its stored
//! length (4).

pub(crate) mod encode;

use crate::bytes::Reader;
use crate::cut::Cut;
use crate::filter::{Decode, Decoded, Options, expanded};
use crate::lanes::{LANES, interleave, load_rows, transpose_bits};
use crate::partial::PartialDecoder;
use crate::state::State;
use crate::{DecodeError, Output, lz4, resize, shuffle, zstd};

/// What compresses the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inner {
    /// Nothing.
    None,
    /// LZ4 blocks.
    Lz4,
    /// Zstandard frames.
    Zstd,
}

/// The filter's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bitshuffle {
    /// Bytes in an element.
    pub element_size: usize,
    /// Elements in a block; 0 is the filter's own choice.
    pub block: usize,
    /// What compresses the blocks.
    pub inner: Inner,
}

/// Elements whose bits make up whole bytes.
const GROUP: usize = 8;
/// Bytes of the chunk's and the block's length.
const HEADER_LEN: usize = 12;
/// Bytes of a stored block's length.
const LEN_LEN: usize = 4;

const DAMAGED: DecodeError = DecodeError::Damaged { filter: "bitshuffle" };

/// A chunk and the options that it was made with.
#[derive(Debug)]
struct BitshuffleBlocks {
    options: Bitshuffle,
    cut: Cut,
}

impl<'a> PartialDecoder<'a> for BitshuffleBlocks {
    fn cut(&self) -> Cut {
        self.cut
    }

    fn begins_at(&self) -> Option<usize> {
        Some(self.options.header_len())
    }

    fn next_block(&self, len: usize, stored: &mut Reader<'a>) -> Option<&'a [u8]> {
        self.options.next_block(len, stored)
    }

    fn decode(&self, stored: &[u8], state: &mut State, out: &mut [u8]) -> Result<(), DecodeError> {
        self.options.decode_block(stored, state, out)
    }
}

impl Options for Bitshuffle {
    /// From `cd_values`: two of version, the element's size, the block, the compressor.
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        let &[_, _, element_size, ref rest @ ..] = cd_values else { return None };
        let block = rest.first().copied().unwrap_or(0) as usize;
        let inner = match rest.get(1) {
            None | Some(0) => Inner::None,
            Some(2) => Inner::Lz4,
            Some(3) => Inner::Zstd,
            Some(_) => return None,
        };
        block.is_multiple_of(GROUP).then_some(Self {
            element_size: element_size as usize,
            block,
            inner,
        })
    }
}

impl Decode for Bitshuffle {
    fn most_decoded(&self, stored_len: usize) -> usize {
        let times = match self.inner {
            Inner::None => 1,
            Inner::Lz4 => lz4::MOST_EXPANSION,
            Inner::Zstd => zstd::MOST_EXPANSION,
        };
        expanded(stored_len, times)
    }

    fn decode(&self, stored: &[u8], state: &mut State, output: &mut Output<'_>) -> Decoded {
        let cut = self.cut(stored)?;
        let mut rest = Reader::new(stored);
        rest.take(self.header_len()).ok_or(DAMAGED)?;
        for block in output.room(cut.len)?.chunks_mut(cut.block_len) {
            let bytes = self.next_block(block.len(), &mut rest).ok_or(DAMAGED)?;
            self.decode_block(bytes, state, block)?;
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
        Some(Box::new(BitshuffleBlocks { options: *self, cut: self.cut(stored).ok()? }))
    }
}

impl Bitshuffle {
    /// How the stored bytes are divided.
    fn cut(&self, stored: &[u8]) -> Result<Cut, DecodeError> {
        // No filter has written that, and the one that libhdf5 would call divides by it.
        if self.element_size == 0 {
            return Err(DAMAGED);
        }
        let (len, block) = match self.inner {
            Inner::None => (stored.len(), self.block),
            _ => {
                let mut stored = Reader::new(stored);
                let (len, block_len) = stored.u64_be().zip(stored.u32_be()).ok_or(DAMAGED)?;
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                (len, block_len as usize / self.element_size)
            }
        };
        if len % self.element_size != 0 || block % GROUP != 0 {
            return Err(DAMAGED);
        }
        let block = if block == 0 { default_block(self.element_size) } else { block };
        Ok(Cut { len, block_len: block.saturating_mul(self.element_size) })
    }

    /// Bytes before the first block.
    fn header_len(&self) -> usize {
        if self.inner == Inner::None { 0 } else { HEADER_LEN }
    }

    /// The bytes of the next block, of `len` when decoded, with its length and what is left over
    /// of it.
    fn next_block<'a>(&self, len: usize, stored: &mut Reader<'a>) -> Option<&'a [u8]> {
        let left_over = len / self.element_size % GROUP * self.element_size;
        if self.inner == Inner::None {
            return stored.take(len);
        }
        if left_over == len {
            return stored.take(len);
        }
        let stored_len = stored.clone().u32_be()? as usize;
        stored.take(LEN_LEN.checked_add(stored_len)?.checked_add(left_over)?)
    }

    /// Decode a block of which these are the bytes, as [`next_block`](Self::next_block) gives them.
    fn decode_block(
        &self,
        stored: &[u8],
        state: &mut State,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        let left_over = out.len() / self.element_size % GROUP * self.element_size;
        let (out, tail) = out.split_at_mut(out.len() - left_over);
        let whole = stored.len().checked_sub(left_over).ok_or(DAMAGED)?;
        let (stored, stored_tail) = stored.split_at(whole);
        tail.copy_from_slice(stored_tail);
        if out.is_empty() {
            return Ok(());
        }
        let State { packed, planes, zstd, .. } = state;
        let rows = match self.inner {
            Inner::None => stored.get(..out.len()).ok_or(DAMAGED)?,
            inner => {
                let bytes = stored.get(LEN_LEN..).ok_or(DAMAGED)?;
                grown(packed, out.len())?;
                let sound = match inner {
                    Inner::Lz4 => lz4::decompress_exactly(bytes, packed),
                    _ => zstd.decompress_exactly(bytes, packed)?,
                };
                if !sound {
                    return Err(DAMAGED);
                }
                packed
            }
        };
        grown(planes, out.len())?;
        unshuffle_bits(self.element_size, rows, planes, out);
        Ok(())
    }
}

fn grown(buffer: &mut Vec<u8>, nbytes: usize) -> Result<(), DecodeError> {
    resize(buffer, nbytes).map_err(|_| DecodeError::Memory { nbytes })
}

/// Elements in a block of about 8 KiB (`bshuf_default_block_size`).
fn default_block(element_size: usize) -> usize {
    (8192 / element_size / GROUP * GROUP).max(128)
}

/// Undo it for the first `elements` elements, a multiple of eight; what follows is copied.
pub(crate) fn unshuffle_some(
    element_size: usize,
    elements: usize,
    rows: &[u8],
    state: &mut State,
    out: &mut [u8],
) -> Result<(), DecodeError> {
    let whole = (elements * element_size).min(out.len());
    let (body, rest) = out.split_at_mut(whole);
    grown(&mut state.planes, whole)?;
    unshuffle_bits(element_size, &rows[..whole], &mut state.planes, body);
    rest.copy_from_slice(&rows[whole..]);
    Ok(())
}

/// Undo the transposition of the bits of one block, a multiple of eight elements;
/// `planes` is as long as the other two.
pub(crate) fn unshuffle_bits(element_size: usize, rows: &[u8], planes: &mut [u8], out: &mut [u8]) {
    debug_assert!(rows.len() == out.len() && planes.len() == out.len());
    let plane_len = out.len() / element_size;
    if plane_len == 0 {
        return;
    }
    // Eight rows of bits make up one plane of bytes, as shuffle has it.
    if element_size == 1 {
        return transpose(rows, out);
    }
    for (rows, plane) in rows.chunks_exact(plane_len).zip(planes.chunks_exact_mut(plane_len)) {
        transpose(rows, plane);
    }
    shuffle::unshuffle(element_size, planes, out);
}

/// Eight rows of bits become the bytes of which each row has one bit.
fn transpose(rows: &[u8], plane: &mut [u8]) {
    let row_len = rows.len() / GROUP;
    let mut done = 0;
    for to in plane.chunks_exact_mut(GROUP * LANES) {
        let Some(lanes) = load_rows(rows, row_len, done) else { break };
        let bytes = interleave(transpose_bits(lanes));
        for (to, lanes) in to.as_chunks_mut::<LANES>().0.iter_mut().zip(bytes) {
            lanes.store(to);
        }
        done += LANES;
    }
    for (column, to) in plane.as_chunks_mut::<GROUP>().0.iter_mut().enumerate().skip(done) {
        let square = std::array::from_fn(|j| rows[j * row_len + column]);
        *to = transposed(u64::from_le_bytes(square)).to_le_bytes();
    }
}

/// Mirror 8 by 8 bits at the diagonal: bit `i` of byte `j` becomes bit `j` of byte `i`.
#[inline(always)]
fn transposed(mut x: u64) -> u64 {
    let mut swapped = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    x ^= swapped ^ (swapped << 7);
    swapped = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    x ^= swapped ^ (swapped << 14);
    swapped = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ swapped ^ (swapped << 28)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, bit by bit.
    pub(crate) fn shuffle_bits(element_size: usize, raw: &[u8]) -> Vec<u8> {
        let elements = raw.len() / element_size;
        let mut out = vec![0; raw.len()];
        for (e, element) in raw.chunks_exact(element_size).enumerate() {
            for bit in 0..8 * element_size {
                let set = element[bit / 8] >> (bit % 8) & 1;
                out[bit * (elements / 8) + e / 8] |= set << (e % 8);
            }
        }
        out
    }

    proptest! {
        #[test]
        fn inverts_the_transposition(size in 1usize..18, groups in 0usize..60, seed in any::<u64>()) {
            let mut state = seed | 1;
            let raw: Vec<u8> = (0..size * groups * 8).map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 56) as u8
            }).collect();
            let mut planes = vec![1; raw.len()];
            let mut out = vec![2; raw.len()];
            unshuffle_bits(size, &shuffle_bits(size, &raw), &mut planes, &mut out);
            prop_assert_eq!(&out, &raw);
        }
    }
}
