//! How are szip chunks decoded ([`encode`]: encoded), that is, CCSDS 121's adaptive entropy code?
//!
//! A chunk begins with its length when decoded (4 bytes, little-endian).  Samples then
//! come in blocks; each says how it is coded: as zeros (for many blocks at once), as sums
//! of two, as unary numbers with some plain bits, or plainly.  With the preprocessor
//! (HDF5's "nn"), samples are differences to the one before; every N blocks the
//! first is plain again.
//!
//! What libaec's compatibility layer does around that is done here, too: elements of 4
//! and 8 bytes were coded byte plane by byte plane, and lines that are no multiple of a
//! block were filled up.

mod encode;

use crate::bits::Bits;
use crate::filter::{Decode, Decoded, Options};
use crate::state::State;
use crate::{DecodeError, Output, resize, shuffle};

/// The filter's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Szip {
    /// Bits in a sample.
    bits: u32,
    /// Bytes of an element whose bytes were coded plane by plane, else 1.
    planes: usize,
    big_endian: bool,
    preprocessed: bool,
    /// Samples in a block.
    block: usize,
    /// Samples in a line; 0 where the options are such that no chunk can be sound.
    line: usize,
}

impl Options for Szip {
    /// From `cd_values`: a mask of options, pixels in a block, bits in a pixel, pixels in
    /// a line.
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        const MOST_SIGNIFICANT_FIRST: u32 = 16;
        const PREPROCESSED: u32 = 32;
        let &[mask, block, bits, line] = cd_values else { return None };
        // Others are never written, and not to be left to libhdf5: it divides by zero, or
        // writes beyond its buffers.
        let possible = (2..=64).contains(&block)
            && block % 2 == 0
            && (1..=1 << 16).contains(&line)
            && matches!(bits, 1..=24 | 32 | 64);
        let (bits, planes) = if bits > 24 { (8, bits as usize / 8) } else { (bits, 1) };
        Some(Self {
            bits,
            planes,
            big_endian: mask & MOST_SIGNIFICANT_FIRST != 0,
            preprocessed: mask & PREPROCESSED != 0,
            block: block as usize,
            line: if possible { line as usize } else { 0 },
        })
    }
}

impl Decode for Szip {
    fn decode(&self, stored: &[u8], state: &mut State, output: &mut Output<'_>) -> Decoded {
        let damaged = output.damaged();
        let Some((len, coded)) = stored.split_first_chunk() else { return Err(damaged) };
        if self.line == 0 {
            return Err(damaged);
        }
        let len = u32::from_le_bytes(*len) as usize;
        let out = output.room(len)?;
        let sound = if self.planes == 1 {
            self.samples(coded, out)
        } else {
            resize(&mut state.planes, len).map_err(|_| DecodeError::Memory { nbytes: len })?;
            let sound = self.samples(coded, &mut state.planes);
            shuffle::unshuffle(self.planes, &state.planes, out);
            sound
        };
        sound.ok_or(damaged)
    }
}

impl Szip {
    /// Decode samples until `out` is full.
    fn samples(&self, coded: &[u8], out: &mut [u8]) -> Option<()> {
        match (self.bits, self.big_endian) {
            (..=8, _) => self.write(coded, out, |value| [value as u8]),
            (9..=16, false) => self.write(coded, out, |value| (value as u16).to_le_bytes()),
            (9..=16, true) => self.write(coded, out, |value| (value as u16).to_be_bytes()),
            (_, false) => self.write(coded, out, u32::to_le_bytes),
            (_, true) => self.write(coded, out, u32::to_be_bytes),
        }
    }

    fn write<const N: usize>(
        &self,
        coded: &[u8],
        out: &mut [u8],
        bytes_of: impl Fn(u32) -> [u8; N],
    ) -> Option<()> {
        let (samples, rest) = out.as_chunks_mut::<N>();
        if !rest.is_empty() {
            return None;
        }
        let mut coded = Bits::new(coded);
        // A line, filled up to whole blocks, is what one plain sample begins.
        let mut line = vec![0; self.line.next_multiple_of(self.block)];
        for samples in samples.chunks_mut(self.line) {
            // The last line's blocks may end with its samples.
            let wanted = samples.len().next_multiple_of(self.block);
            self.line(&mut coded, &mut line, wanted)?;
            for (to, &sample) in samples.iter_mut().zip(&line) {
                *to = bytes_of(sample);
            }
        }
        (coded.left() >= 0).then_some(())
    }

    /// Decode at least the first `wanted` samples of a line.
    fn line(&self, coded: &mut Bits<'_>, line: &mut [u32], wanted: usize) -> Option<()> {
        let id_bits = self.id_bits();
        let plain = (1 << id_bits) - 1;
        let blocks = line.len() / self.block;
        let mut number = 0;
        while number * self.block < wanted {
            if coded.left() <= 0 {
                return None;
            }
            let first = usize::from(self.preprocessed && number == 0);
            let block = &mut line[number * self.block..];
            let id = coded.take(id_bits) as u32;
            let low = id == 0 && coded.take(1) == 0;
            if first == 1 && id != plain {
                block[0] = coded.take(self.bits) as u32;
            }
            number += 1;
            if low {
                let more = self.zero_blocks(coded, number - 1, blocks)?;
                block.get_mut(first..more * self.block)?.fill(0);
                number += more - 1;
                continue;
            }
            let block = &mut block[..self.block];
            if id == 0 {
                second_extension(coded, block, first)?;
            } else if id == plain {
                block.fill_with(|| coded.take(self.bits) as u32);
            } else {
                let low_bits = id - 1;
                coded.fill_with_zeros(&mut block[first..], low_bits)?;
                if low_bits > 0 {
                    coded.add_to(&mut block[first..], low_bits);
                }
            }
        }
        if self.preprocessed {
            self.undo_differences(&mut line[..wanted]);
        }
        Some(())
    }

    /// Bits that say how a block is coded.
    fn id_bits(&self) -> u32 {
        match self.bits {
            ..=8 => 3,
            9..=16 => 4,
            _ => 5,
        }
    }

    /// How many blocks of zeros come, of which the first is block `number`.
    fn zero_blocks(&self, coded: &mut Bits<'_>, number: usize, blocks: usize) -> Option<usize> {
        /// The number that stands for the rest of a segment of 64 blocks.
        const REST: usize = 5;
        let count = coded.zeros()? as usize + 1;
        Some(match count {
            REST => (blocks - number).min(64 - number % 64),
            ..REST => count,
            _ => count - 1,
        })
    }

    /// Turn differences, folded to numbers without a sign, into samples.
    fn undo_differences(&self, line: &mut [u32]) {
        let most = u32::MAX >> (32 - self.bits);
        let middle = 1 << (self.bits - 1);
        let Some((first, rest)) = line.split_first_mut() else { return };
        let mut sample = *first;
        for difference in rest {
            let folded = *difference;
            // From the upper half of the range, everything is mirrored.
            let mirror = if sample & middle == 0 { 0 } else { most };
            let half = (folded >> 1) + (folded & 1);
            sample = if half <= mirror ^ sample {
                let sign = 0u32.wrapping_sub(folded & 1);
                sample.wrapping_add((folded >> 1) ^ sign)
            } else {
                mirror ^ folded
            };
            *difference = sample;
        }
    }
}

/// Pairs of samples as one number each: first those whose sum is 0, then 1, and so on.
fn second_extension(coded: &mut Bits<'_>, block: &mut [u32], first: usize) -> Option<()> {
    const MOST_SUM: u32 = 12;
    // With a plain sample before it, the first pair's first number does not count.
    for at in (0..block.len()).step_by(2) {
        let number = coded.zeros()?;
        let sum = (0..=MOST_SUM).rev().find(|sum| sum * (sum + 1) / 2 <= number)?;
        let second = number - sum * (sum + 1) / 2;
        if at >= first {
            block[at] = sum.checked_sub(second)?;
        }
        *block.get_mut(at + 1)? = second;
    }
    Some(())
}
