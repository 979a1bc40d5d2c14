//! How are elements bitshuffled, and blocks of them compressed?

use super::{Bitshuffle, GROUP, HEADER_LEN, Inner, LEN_LEN, default_block, transposed};
use crate::filter::{Encode, Encoded, Options};
use crate::lanes::{LANES, Lanes, deinterleave, store_rows, transpose_bits};
use crate::state::EncoderState;
use crate::streams::{Buffers, StreamCodec};
use crate::{EncodeError, grown, shuffle};

/// The filter's options when writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitshuffleEncoder {
    options: Bitshuffle,
    codec: Option<StreamCodec>,
}

impl Options for BitshuffleEncoder {
    /// From `cd_values`: those of [`Bitshuffle`], and Zstandard's level.
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        let options = Bitshuffle::from_cd_values(cd_values)?;
        let block_len = options.block_len()?;
        let codec = match options.inner {
            Inner::None => None,
            // Blocks beyond 2 GB are nobody's.
            _ if i32::try_from(block_len).is_err() => return None,
            Inner::Lz4 => Some(StreamCodec::Lz4 { acceleration: 1 }),
            Inner::Zstd => Some(StreamCodec::Zstd { level: cd_values.get(5)?.cast_signed() }),
        };
        Some(Self { options, codec })
    }
}

impl BitshuffleEncoder {
    /// Bytes of the blocks of a chunk of `len` bytes; None where it cannot be encoded.
    pub(crate) fn block_len_of(&self, len: usize) -> Option<usize> {
        self.options.block_len().filter(|_| len.is_multiple_of(self.options.element_size))
    }

    /// Bytes before the first block.
    pub(crate) fn header_len(&self) -> usize {
        self.options.header_len()
    }

    /// Append what comes before the blocks of a chunk of `len` bytes.
    pub(crate) fn put_header(&self, len: usize, out: &mut Vec<u8>) {
        if self.codec.is_some() {
            out.extend((len as u64).to_be_bytes());
            // Blocks beyond 2 GB are nobody's.
            out.extend((self.options.block_len().unwrap_or(0) as u32).to_be_bytes());
        }
    }
}

impl Encode for BitshuffleEncoder {
    /// Encode `raw`, be that shorter or not; false where it is no sequence of elements.
    fn encode(&self, raw: &[u8], state: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        let EncoderState { buffers, streams, .. } = state;
        let size = self.options.element_size;
        let Some(block_len) = self.options.block_len() else { return Ok(false) };
        if !raw.len().is_multiple_of(size) {
            return Ok(false);
        }
        let left_over = raw.len() / size % GROUP * size;
        let (body, tail) = raw.split_at(raw.len() - left_over);
        let Some(codec) = self.codec else {
            grown(out, raw.len())?;
            for (raw, out) in body.chunks(block_len).zip(out.chunks_mut(block_len)) {
                shuffle_bits(size, raw, &mut buffers.planes, &mut out[..raw.len()])?;
            }
            out[body.len()..].copy_from_slice(tail);
            return Ok(true);
        };
        // No block becomes longer than that.
        let most = |len: usize| len + len / 128 + 1024;
        let blocks = body.len().div_ceil(block_len);
        let longest = most(block_len.min(body.len()));
        let room = HEADER_LEN + body.len() + blocks * LEN_LEN + tail.len() + longest;
        grown(out, room)?;
        let mut header = Vec::with_capacity(HEADER_LEN);
        self.put_header(raw.len(), &mut header);
        out[..HEADER_LEN].copy_from_slice(&header);
        let mut len = HEADER_LEN;
        for raw in body.chunks(block_len) {
            let Buffers { planes, shuffled, .. } = &mut *buffers;
            grown(shuffled, raw.len())?;
            shuffle_bits(size, raw, planes, shuffled)?;
            // Blocks that got longer have taken the room of those to come.
            let needed = len + LEN_LEN + most(raw.len()) + tail.len();
            if out.len() < needed {
                grown(out, needed.saturating_add(room / 4))?;
            }
            let (stored_len, stored) = out[len..].split_at_mut(LEN_LEN);
            let Some(written) = streams.compress(codec, shuffled, stored) else {
                return Ok(false);
            };
            stored_len.copy_from_slice(&(written as u32).to_be_bytes());
            len += LEN_LEN + written;
        }
        out[len..len + tail.len()].copy_from_slice(tail);
        out.truncate(len + tail.len());
        Ok(true)
    }
}

impl Bitshuffle {
    /// Bytes of a block; None where there can be none.
    fn block_len(&self) -> Option<usize> {
        let block = match self.block {
            0 if self.element_size > 0 => default_block(self.element_size),
            block => block,
        };
        block.checked_mul(self.element_size).filter(|&len| len > 0)
    }
}

/// Transpose the bits of a block, a multiple of eight elements, to `rows`.
pub(crate) fn shuffle_bits(
    element_size: usize,
    raw: &[u8],
    planes: &mut Vec<u8>,
    rows: &mut [u8],
) -> Result<(), EncodeError> {
    let plane_len = raw.len() / element_size;
    if plane_len == 0 {
        return Ok(());
    }
    if element_size == 1 {
        transpose(raw, rows);
        return Ok(());
    }
    grown(planes, raw.len())?;
    shuffle::shuffle(element_size, raw, planes);
    for (plane, rows) in planes.chunks_exact(plane_len).zip(rows.chunks_exact_mut(plane_len)) {
        transpose(plane, rows);
    }
    Ok(())
}

/// The bytes of a plane become eight rows of bits.
fn transpose(plane: &[u8], rows: &mut [u8]) {
    let row_len = rows.len() / GROUP;
    let mut done = 0;
    for from in plane.chunks_exact(GROUP * LANES) {
        let mut lanes = [Lanes::load(&[0; LANES]); GROUP];
        for (lanes, bytes) in lanes.iter_mut().zip(from.as_chunks::<LANES>().0) {
            *lanes = Lanes::load(bytes);
        }
        if !store_rows(transpose_bits(deinterleave(lanes)), rows, row_len, done) {
            break;
        }
        done += LANES;
    }
    for (column, from) in plane.as_chunks::<GROUP>().0.iter().enumerate().skip(done) {
        let square = transposed(u64::from_le_bytes(*from)).to_le_bytes();
        for (j, byte) in square.into_iter().enumerate() {
            rows[j * row_len + column] = byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::unshuffle_bits;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_come_back(size in 1usize..18, groups in 0usize..60, seed in any::<u64>()) {
            let mut state = seed | 1;
            let raw: Vec<u8> = (0..size * groups * 8).map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 56) as u8
            }).collect();
            let (mut rows, mut planes) = (vec![0; raw.len()], vec![1; raw.len()]);
            shuffle_bits(size, &raw, &mut Vec::new(), &mut rows).unwrap();
            let mut out = vec![2; raw.len()];
            unshuffle_bits(size, &rows, &mut planes, &mut out);
            prop_assert_eq!(&out, &raw);
        }
    }
}
