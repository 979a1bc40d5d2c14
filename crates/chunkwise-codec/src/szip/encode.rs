//! How are chunks encoded as szip, that is, with CCSDS 121's adaptive entropy code?
//!
//! Each block is written in whichever of the codings is the shortest for it; blocks of zeros
//! are counted.  As libaec's compatibility layer does, lines are filled up to whole blocks,
//! the last line to a whole line.

use super::Szip;
use crate::bit_writer::{BitWriter, SLACK};
use crate::filter::{Encode, Encoded};
use crate::state::EncoderState;
use crate::{EncodeError, resize, shuffle};

/// Bytes of the length in front.
const HEADER_LEN: usize = 4;
/// Blocks after which counting zeros begins again.
const SEGMENT: usize = 64;

/// A line of samples, and what it becomes.
struct Line {
    samples: Vec<u32>,
    folded: Vec<u32>,
    /// Low bits that the last block with some was written with.
    low_bits: u32,
}

impl Encode for Szip {
    fn is_possible(&self) -> bool {
        self.line != 0
    }

    /// Encode `raw`, be that shorter or not; false where it is no sequence of samples.
    fn encode(&self, raw: &[u8], state: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        let planes = &mut state.buffers.planes;
        let memory = |nbytes| move |_| EncodeError::Memory { nbytes };
        let Ok(len) = u32::try_from(raw.len()) else { return Ok(false) };
        if self.line == 0 || !raw.len().is_multiple_of(self.planes) {
            return Ok(false);
        }
        let coded_most = self.coded_most(raw.len());
        let room = HEADER_LEN + coded_most + SLACK;
        resize(out, room).map_err(memory(room))?;
        let (header, coded) = out.split_at_mut(HEADER_LEN);
        header.copy_from_slice(&len.to_le_bytes());
        // What was in `out` before may be longer.
        let coded = &mut coded[..coded_most + SLACK];
        let coded_len = if self.planes == 1 {
            self.encode_samples(raw, coded)?
        } else {
            resize(planes, raw.len()).map_err(memory(raw.len()))?;
            shuffle::shuffle(self.planes, raw, planes);
            self.encode_samples(planes, coded)?
        };
        out.truncate(HEADER_LEN + coded_len.unwrap_or(0));
        if out.len() == raw.len() {
            // One more, which nobody reads: see `Encode::encode`.
            out.push(0);
        }
        Ok(coded_len.is_some())
    }
}

impl Szip {
    /// Bytes that `len` bytes of samples become at most: each block as it is, behind what says so.
    fn coded_most(&self, len: usize) -> usize {
        let sample_nbytes = match self.bits {
            ..=8 => 1,
            9..=16 => 2,
            _ => 4,
        };
        let lines = len.div_ceil(sample_nbytes).div_ceil(self.line);
        let blocks = lines * self.line.div_ceil(self.block);
        let block_bits = self.id_bits() as usize + 1 + self.block * self.bits as usize;
        (blocks * block_bits).div_ceil(8)
    }

    fn encode_samples(&self, raw: &[u8], coded: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        match (self.bits, self.big_endian) {
            (..=8, _) => self.encode_lines(raw, coded, |[byte]| byte.into()),
            (9..=16, false) => self.encode_lines(raw, coded, |b| u16::from_le_bytes(b).into()),
            (9..=16, true) => self.encode_lines(raw, coded, |b| u16::from_be_bytes(b).into()),
            (_, false) => self.encode_lines(raw, coded, u32::from_le_bytes),
            (_, true) => self.encode_lines(raw, coded, u32::from_be_bytes),
        }
    }

    /// Bytes written to `coded`, if all was written.
    fn encode_lines<const N: usize>(
        &self,
        raw: &[u8],
        coded: &mut [u8],
        sample_of: impl Fn([u8; N]) -> u32,
    ) -> Result<Option<usize>, EncodeError> {
        let (pixels, rest) = raw.as_chunks::<N>();
        let len = self.line.next_multiple_of(self.block);
        let most = u32::MAX >> (32 - self.bits);
        let mut line = Line { samples: vec![0; len], folded: vec![0; len], low_bits: 0 };
        let mut writer = BitWriter::new(coded);
        if !rest.is_empty() {
            return Ok(None);
        }
        for pixels in pixels.chunks(self.line) {
            let mut all = 0;
            for (to, pixel) in line.samples.iter_mut().zip(pixels) {
                *to = sample_of(*pixel);
                all |= *to;
            }
            // Bits that do not count would be lost.
            if all > most {
                return Ok(None);
            }
            let filler = if self.preprocessed { line.samples[pixels.len() - 1] } else { 0 };
            line.samples[pixels.len()..].fill(filler);
            self.encode_line(&mut line, &mut writer);
        }
        Ok(writer.finish())
    }

    fn encode_line(&self, line: &mut Line, writer: &mut BitWriter<'_>) {
        let Line { samples, folded, low_bits } = line;
        if self.preprocessed {
            fold_differences(samples, folded, u32::MAX >> (32 - self.bits));
        } else {
            folded.copy_from_slice(samples);
        }
        let id_bits = self.id_bits();
        let blocks = folded.len() / self.block;
        // Blocks of zeros that are not written yet, and whether the first sample is among them.
        let (mut zeros, mut first_waits) = (0, false);
        for number in 0..blocks {
            let first = self.preprocessed && number == 0;
            let block = &mut folded[number * self.block..][..self.block];
            let is_zero = block.iter().all(|&value| value == 0);
            if is_zero {
                zeros += 1;
                first_waits |= first;
            }
            let at_end = number + 1 == blocks || (number + 1).is_multiple_of(SEGMENT);
            if zeros > 0 && (at_end || !is_zero) {
                writer.put(0, id_bits + 1);
                if first_waits {
                    writer.put(samples[0].into(), self.bits);
                }
                // Four zeros stand for all that is left of the segment.
                writer.put_zeros(match zeros {
                    5.. if at_end && is_zero => 4,
                    5.. => zeros,
                    _ => zeros - 1,
                });
                (zeros, first_waits) = (0, false);
            }
            if !is_zero {
                self.encode_block(block, first.then_some(samples[0]), low_bits, writer);
            }
        }
    }

    /// A block that is not all zeros; `first` is its first sample, if it is written plainly.
    fn encode_block(
        &self,
        block: &mut [u32],
        first: Option<u32>,
        low_bits: &mut u32,
        writer: &mut BitWriter<'_>,
    ) {
        let id_bits = self.id_bits();
        let coded = block.len() as u32 - u32::from(first.is_some());
        let plain_len = coded * self.bits;
        let split_len = shortest_split(block, coded, (1 << id_bits) - 3, low_bits);
        let paired_len = paired_len(block, plain_len);
        let shortest = split_len.min(plain_len);
        let skipped = usize::from(first.is_some());
        if paired_len.is_some_and(|len| len < shortest || len == shortest && len < plain_len) {
            writer.put(1, id_bits + 1);
            if let Some(sample) = first {
                writer.put(sample.into(), self.bits);
            }
            for [one, two] in block.as_chunks::<2>().0 {
                let sum = one + two;
                writer.put_zeros(sum * (sum + 1) / 2 + two);
            }
        } else if split_len < plain_len {
            writer.put((*low_bits + 1).into(), id_bits);
            if let Some(sample) = first {
                writer.put(sample.into(), self.bits);
            }
            writer.put_all_zeros(&block[skipped..], *low_bits);
            if *low_bits > 0 {
                writer.put_all(&block[skipped..], *low_bits);
            }
        } else {
            writer.put(u64::MAX, id_bits);
            if let Some(sample) = first {
                block[0] = sample;
            }
            writer.put_all(block, self.bits);
        }
    }
}

/// Differences to the sample before as numbers without a sign: small ones to either side in
/// turns, and beyond what one side has room for the distance from the other's end.
fn fold_differences(samples: &[u32], folded: &mut [u32], most: u32) {
    if let Some(first) = folded.first_mut() {
        *first = 0;
    }
    for (to, pair) in folded.iter_mut().skip(1).zip(samples.windows(2)) {
        let (before, sample) = (pair[0], pair[1]);
        *to = if sample >= before {
            let difference = sample - before;
            if difference <= before { 2 * difference } else { sample }
        } else {
            let difference = before - sample;
            if difference <= most - before { 2 * difference - 1 } else { most - sample }
        };
    }
}

/// Bits of the block with the best number of low bits, which is searched from what `low_bits`
/// is, and left there: from it the length grows to both sides.
fn shortest_split(block: &[u32], coded: u32, most: u32, low_bits: &mut u32) -> u32 {
    let zeros = |low: u32| block.iter().map(|&value| value >> low).sum::<u32>();
    let start = *low_bits;
    let mut fewest = zeros(start);
    let mut best = fewest + coded * (start + 1);
    // One more low bit costs one for each sample: no gain where there are fewer zeros.
    while *low_bits < most && fewest >= coded {
        let next = zeros(*low_bits + 1);
        let len = next + coded * (*low_bits + 2);
        if len >= best {
            break;
        }
        (*low_bits, fewest, best) = (*low_bits + 1, next, len);
    }
    while *low_bits <= start && *low_bits > 0 {
        let next = zeros(*low_bits - 1);
        let len = next + coded * *low_bits;
        if len >= best {
            break;
        }
        (*low_bits, best) = (*low_bits - 1, len);
        if next >= coded {
            break;
        }
    }
    best
}

/// Bits of the block with its samples in pairs; None where they are more than `most`.
fn paired_len(block: &[u32], most: u32) -> Option<u32> {
    let mut len = 1u32;
    for [one, two] in block.as_chunks::<2>().0 {
        let sum = one.checked_add(*two).filter(|sum| *sum <= most)?;
        len = len.checked_add(sum * (sum + 1) / 2 + two + 1).filter(|len| *len <= most)?;
    }
    Some(len)
}
