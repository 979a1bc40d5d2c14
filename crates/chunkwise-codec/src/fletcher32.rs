//! Are the bytes those that were written?
//!
//! HDF5's Fletcher-32 (`H5_checksum_fletcher32`): sums of big-endian 16-bit words
//! modulo 65535, stored after the data as four little-endian bytes.

use crate::filter::{Decode, Decoded, Encode, Encoded, Options};
use crate::state::{EncoderState, State};
use crate::{DecodeError, EncodeError, Output};

/// Bytes that the checksum takes at the end of the data.
pub const CHECKSUM_LEN: usize = 4;

/// Words summed before the sums are folded; the second sum stays below 2^56.
const WORDS_PER_FOLD: usize = 1 << 18;

/// The filter, which has no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fletcher32;

impl Options for Fletcher32 {
    fn from_cd_values(_: &[u32]) -> Option<Self> {
        Some(Self)
    }
}

impl Decode for Fletcher32 {
    fn most_decoded(&self, stored_len: usize) -> usize {
        stored_len
    }

    /// A checksum is not decoded but taken off, by the pipeline.
    fn decode(&self, stored: &[u8], _: &mut State, output: &mut Output<'_>) -> Decoded {
        output.room(stored.len())?.copy_from_slice(stored);
        Ok(())
    }
}

impl Encode for Fletcher32 {
    fn encode(&self, raw: &[u8], _: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        let nbytes = raw.len() + CHECKSUM_LEN;
        out.clear();
        out.try_reserve_exact(nbytes).map_err(|_| EncodeError::Memory { nbytes })?;
        out.extend_from_slice(raw);
        self.encode_in_place(out)
    }

    fn encode_in_place(&self, bytes: &mut Vec<u8>) -> Encoded {
        let nbytes = CHECKSUM_LEN;
        bytes.try_reserve(nbytes).map_err(|_| EncodeError::Memory { nbytes })?;
        bytes.extend(checksum(bytes).to_le_bytes());
        Ok(true)
    }
}

/// The checksum of `data`.
pub fn checksum(data: &[u8]) -> u32 {
    let (mut sum1, mut sum2) = (0u64, 0u64);
    let (pairs, rest) = data.split_at(data.len() & !1);
    for block in pairs.chunks(2 * WORDS_PER_FOLD) {
        for pair in block.chunks_exact(2) {
            sum1 += u64::from(u16::from_be_bytes([pair[0], pair[1]]));
            sum2 += sum1;
        }
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    if let [last] = rest {
        sum1 += u64::from(*last) << 8;
        sum2 += sum1;
    }
    // Both are below 2^16 after folding.
    ((fold(sum2) as u32) << 16) | fold(sum1) as u32
}

/// Congruent modulo 65535, below 2^16, and zero only for zero, as HDF5's own fold.
fn fold(mut sum: u64) -> u64 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

/// Check and take off the checksum: gives the data before it.
///
/// HDF5 also accepts the sum with the bytes of each half swapped, which libraries
/// before 1.6.3 wrote on little-endian machines (`H5Zfletcher32.c`); so does this.
pub fn verify(stored: &[u8]) -> Result<&[u8], DecodeError> {
    let Some((data, tail)) = stored.split_last_chunk::<CHECKSUM_LEN>() else {
        return Err(DecodeError::NoChecksum { len: stored.len() });
    };
    let found = u32::from_le_bytes(*tail);
    let expected = checksum(data);
    let [a, b, c, d] = expected.to_le_bytes();
    let swapped = u32::from_le_bytes([b, a, d, c]);
    if found == expected || found == swapped {
        Ok(data)
    } else {
        Err(DecodeError::Checksum { stored: found, computed: expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A transcription of the definition with HDF5's own fold after 360 words.
    fn reference(data: &[u8]) -> u32 {
        let (mut sum1, mut sum2) = (0u32, 0u32);
        let words: Vec<u32> =
            data.chunks_exact(2).map(|p| u32::from(p[0]) << 8 | u32::from(p[1])).collect();
        for block in words.chunks(360) {
            for word in block {
                sum1 += word;
                sum2 += sum1;
            }
            sum1 = (sum1 & 0xffff) + (sum1 >> 16);
            sum2 = (sum2 & 0xffff) + (sum2 >> 16);
        }
        if data.len() % 2 == 1 {
            sum1 += u32::from(data[data.len() - 1]) << 8;
            sum2 += sum1;
            sum1 = (sum1 & 0xffff) + (sum1 >> 16);
            sum2 = (sum2 & 0xffff) + (sum2 >> 16);
        }
        sum1 = (sum1 & 0xffff) + (sum1 >> 16);
        sum2 = (sum2 & 0xffff) + (sum2 >> 16);
        sum2 << 16 | sum1
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(data in prop::collection::vec(any::<u8>(), 0..5000)) {
            prop_assert_eq!(checksum(&data), reference(&data));
        }
        #[test]
        fn a_flipped_bit_is_seen(mut data in prop::collection::vec(any::<u8>(), 1..500), bit in any::<prop::sample::Index>()) {
            let sum = checksum(&data);
            data.extend(sum.to_le_bytes());
            prop_assert!(verify(&data).is_ok());
            let bit = bit.index((data.len() - 4) * 8);
            data[bit / 8] ^= 1 << (bit % 8);
            // The one change that Fletcher's sum cannot see: 0x0000 against 0xffff.
            prop_assert!(verify(&data).is_err());
        }
    }

    #[test]
    fn long_data_does_not_overflow() {
        let data = vec![0xff; 3 * 2 * WORDS_PER_FOLD + 7];
        assert_eq!(checksum(&data), reference(&data));
        assert!(matches!(verify(&[1, 2]), Err(DecodeError::NoChecksum { len: 2 })));
    }
}
