//! How are data that are mostly runs deflated, as fast as runs are found?
//!
//! Fill values, land in an ocean's field, the high bytes of shuffled numbers: elements that are the
//! ones before, again and again.  Repetitions are looked for four and eight bytes back, and nowhere
//! else.  All other bytes are coded by how often they come.

use std::mem::MaybeUninit;

use crate::huffman::{Code, lengths};

/// Bytes that are coded alike.
const SEGMENT_NBYTES: usize = 128 << 10;
/// How far back repetitions may be looked for: the shorter distance first.
const NEAR: usize = 4;
const FAR: usize = 8;

/// Symbols for bytes, the end of a block, and lengths.
const SYMBOLS: usize = 286;
const END: usize = 256;
/// The longest length, and the shortest.
const MOST: usize = 258;
const LEAST: usize = 3;
const MOST_BITS: u8 = 15;
/// The length of each distance's code: one bit for 4 bytes and for 7 and 8, no others.
const DISTANCES: [u8; 6] = [0, 0, 0, 1, 0, 1];
/// The order in which lengths of the codes of code lengths are stored.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// For each length its symbol, and the value and number of the bits that follow.
const LENGTHS: [(u16, u8, u8); MOST + 1] = {
    let mut table = [(0, 0, 0); MOST + 1];
    let (mut symbol, mut base, mut len) = (257u16, LEAST, LEAST);
    while len < MOST {
        let bits = if symbol < 265 { 0 } else { ((symbol - 261) / 4) as u8 };
        table[len] = (symbol, (len - base) as u8, bits);
        len += 1;
        if len == base + (1 << bits) {
            (symbol, base) = (symbol + 1, len);
        }
    }
    table[MOST] = (285, 0, 0);
    table
};

/// Bytes as they are, and then so many that repeat those before them.
#[derive(Debug, Clone, Copy)]
struct Run {
    plain: usize,
    repeated: usize,
    is_far: bool,
}

/// Memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Runs(Vec<Run>);

impl Runs {
    /// Write the zlib stream of `source` to `out`; the bytes written, or None where there is no
    /// room.
    pub(crate) fn compress(&mut self, source: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
        let mut bits = Bits { out, len: 0, word: 0, used: 0 };
        // Deflate with a window of 32 KiB, made fast.
        bits.put(0x0178, 16)?;
        let segments = source.len().div_ceil(SEGMENT_NBYTES).max(1);
        for number in 0..segments {
            let begin = number * SEGMENT_NBYTES;
            let end = (begin + SEGMENT_NBYTES).min(source.len());
            self.find(source, begin, end)?;
            self.put_segment(&source[begin..end], number + 1 == segments, &mut bits)?;
        }
        bits.align()?;
        // SAFETY: reads a live slice of that length.
        let sum =
            unsafe { libdeflate_sys::libdeflate_adler32(1, source.as_ptr().cast(), source.len()) };
        bits.bytes(&sum.to_be_bytes())?;
        Some(bits.len)
    }

    /// The runs of a segment; None without memory.
    fn find(&mut self, source: &[u8], begin: usize, end: usize) -> Option<()> {
        self.0.clear();
        let word = |at: usize| source[at..].first_chunk::<8>();
        let (mut plain, mut at) = (begin, begin.max(FAR));
        while at + 8 <= end {
            let here = word(at);
            let is_far = here != word(at - NEAR);
            if is_far && here != word(at - FAR) {
                at += 1;
                continue;
            }
            let back = if is_far { FAR } else { NEAR };
            let len = repeated(&source[at - back..end], back);
            self.0.try_reserve(1).ok()?;
            self.0.push(Run { plain: at - plain, repeated: len, is_far });
            at += len;
            plain = at;
        }
        self.0.try_reserve(1).ok()?;
        self.0.push(Run { plain: end - plain, repeated: 0, is_far: false });
        Some(())
    }

    fn put_segment(&self, segment: &[u8], is_last: bool, bits: &mut Bits<'_>) -> Option<()> {
        let (counts, mut nbits) = self.counted(segment);
        let code = Code::new(lengths(&counts, MOST_BITS));
        let used = code.lengths.iter().rposition(|&len| len > 0)? + 1;
        let described = Described::new(&code.lengths[..used.max(END + 1)]);
        nbits += described.nbits();
        nbits +=
            counts.iter().zip(&code.lengths).map(|(&n, &len)| n * usize::from(len)).sum::<usize>();
        if nbits / 8 >= segment.len() {
            return put_plain(segment, is_last, bits);
        }
        bits.put(u64::from(is_last) | 2 << 1, 3)?;
        described.put(bits)?;
        let mut rest = segment;
        for run in &self.0 {
            let (plain, after) = rest.split_at(run.plain);
            for &byte in plain {
                bits.put_code(&code, usize::from(byte))?;
            }
            rest = &after[run.repeated..];
            let each = |len: usize, bits: &mut Bits<'_>| {
                let (symbol, extra, width) = LENGTHS[len];
                bits.put_code(&code, usize::from(symbol))?;
                bits.put(u64::from(extra), u32::from(width))?;
                // Eight bytes are the second of two distances that share a code.
                if run.is_far { bits.put(0b11, 2) } else { bits.put(0, 1) }
            };
            let (whole, last) = cut(run.repeated);
            (0..whole).try_for_each(|_| each(MOST, bits))?;
            last.into_iter().filter(|&len| len > 0).try_for_each(|len| each(len, bits))?;
        }
        bits.put_code(&code, END)
    }

    /// How often each symbol comes, and how many bits follow them.
    fn counted(&self, segment: &[u8]) -> ([usize; SYMBOLS], usize) {
        let (mut counts, mut nbits) = ([0; SYMBOLS], 0);
        counts[END] = 1;
        let mut rest = segment;
        for run in &self.0 {
            let (plain, after) = rest.split_at(run.plain);
            plain.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
            rest = &after[run.repeated..];
            let distance = 1 + usize::from(run.is_far);
            let mut count = |len: usize, times: usize| {
                let (symbol, _, width) = LENGTHS[len];
                counts[usize::from(symbol)] += times;
                nbits += times * (usize::from(width) + distance);
            };
            let (whole, last) = cut(run.repeated);
            count(MOST, whole);
            last.into_iter().filter(|&len| len > 0).for_each(|len| count(len, 1));
        }
        (counts, nbits)
    }
}

/// How many bytes are those that come `back` bytes before them, from the first that has any on.
fn repeated(bytes: &[u8], back: usize) -> usize {
    const STEP: usize = 32;
    let (before, here) = (bytes, &bytes[back..]);
    let same = |(a, b): &(&[u8; STEP], &[u8; STEP])| a == b;
    let steps = before.as_chunks::<STEP>().0.iter().zip(here.as_chunks::<STEP>().0);
    let len = steps.take_while(same).count() * STEP;
    len + before[len..].iter().zip(&here[len..]).take_while(|(a, b)| a == b).count()
}

/// A repetition in lengths that there are: so many of the longest, and two others or none.
fn cut(repeated: usize) -> (usize, [usize; 2]) {
    let (whole, rest) = (repeated / MOST, repeated % MOST);
    if rest == 0 || rest >= LEAST || whole == 0 {
        (whole, [rest, 0])
    } else {
        (whole - 1, [MOST + rest - LEAST, LEAST])
    }
}

/// Bytes as they are.
fn put_plain(segment: &[u8], is_last: bool, bits: &mut Bits<'_>) -> Option<()> {
    const LONGEST: usize = 0xffff;
    // One at least, as a stream ends with a block.
    let blocks = segment.len().div_ceil(LONGEST).max(1);
    for number in 0..blocks {
        let begin = number * LONGEST;
        let block = &segment[begin..(begin + LONGEST).min(segment.len())];
        bits.put(u64::from(is_last && number + 1 == blocks), 3)?;
        bits.align()?;
        let len = block.len() as u16;
        bits.bytes(&len.to_le_bytes())?;
        bits.bytes(&(!len).to_le_bytes())?;
        bits.bytes(block)?;
    }
    Some(())
}

/// How the codes of a block are stored: their lengths, repeated ones together.
struct Described {
    /// Codes for bytes, the end and lengths.
    count: usize,
    /// Symbols, with the value and number of the bits that follow.
    symbols: Vec<(u8, u8, u8)>,
    code: Code<19>,
    /// Lengths that are stored of this code.
    stored: usize,
}

impl Described {
    fn new(lens: &[u8]) -> Self {
        let all: Vec<u8> = lens.iter().chain(&DISTANCES).copied().collect();
        let mut symbols = Vec::new();
        for group in all.chunk_by(|a, b| a == b) {
            let (len, mut left) = (group[0], group.len());
            if len > 0 {
                symbols.push((len, 0, 0));
                left -= 1;
            }
            while left > 0 {
                let (symbol, taken, bits) = match (len, left) {
                    (0, 11..) => (18, left.min(138), 7),
                    (0, 3..) => (17, left.min(10), 3),
                    (1.., 3..) => (16, left.min(6), 2),
                    _ => (len, 1, 0),
                };
                let least = if symbol == 18 { 11 } else { 3 };
                let extra = if bits > 0 { taken - least } else { 0 };
                symbols.push((symbol, extra as u8, bits));
                left -= taken;
            }
        }
        let mut counts = [0; 19];
        symbols.iter().for_each(|&(symbol, ..)| counts[usize::from(symbol)] += 1);
        let code = Code::new(lengths(&counts, 7));
        let stored = ORDER.iter().rposition(|&symbol| code.lengths[symbol] > 0);
        let stored = stored.map_or(4, |last| (last + 1).max(4));
        Self { count: lens.len(), symbols, code, stored }
    }

    fn nbits(&self) -> usize {
        let each = self.symbols.iter().map(|&(symbol, _, bits)| {
            usize::from(self.code.lengths[usize::from(symbol)]) + usize::from(bits)
        });
        3 + 5 + 5 + 4 + 3 * self.stored + each.sum::<usize>()
    }

    fn put(&self, bits: &mut Bits<'_>) -> Option<()> {
        bits.put((self.count - 257) as u64, 5)?;
        bits.put((DISTANCES.len() - 1) as u64, 5)?;
        bits.put((self.stored - 4) as u64, 4)?;
        for &symbol in &ORDER[..self.stored] {
            bits.put(u64::from(self.code.lengths[symbol]), 3)?;
        }
        for &(symbol, extra, width) in &self.symbols {
            bits.put_code(&self.code, usize::from(symbol))?;
            bits.put(u64::from(extra), u32::from(width))?;
        }
        Some(())
    }
}

/// Bits that are written, the lowest first.
struct Bits<'a> {
    out: &'a mut [MaybeUninit<u8>],
    len: usize,
    word: u64,
    /// Bits of the word that are not in `out`: fewer than 32 between calls.
    used: u32,
}

impl Bits<'_> {
    /// Write the low `width` bits, at most 32, of a value that has no others.
    #[inline(always)]
    fn put(&mut self, value: u64, width: u32) -> Option<()> {
        self.word |= value << self.used;
        self.used += width;
        if self.used >= 32 {
            self.bytes(&(self.word as u32).to_le_bytes())?;
            self.word >>= 32;
            self.used -= 32;
        }
        Some(())
    }

    #[inline(always)]
    fn put_code<const N: usize>(&mut self, code: &Code<N>, symbol: usize) -> Option<()> {
        self.put(u64::from(code.codes[symbol]), u32::from(code.lengths[symbol]))
    }

    /// Fill the last byte.
    fn align(&mut self) -> Option<()> {
        while self.used > 0 {
            self.bytes(&[self.word as u8])?;
            self.word >>= 8;
            self.used = self.used.saturating_sub(8);
        }
        Some(())
    }

    /// Write whole bytes behind whole bytes.
    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let room = self.out.get_mut(self.len..self.len + bytes.len())?;
        for (to, &byte) in room.iter_mut().zip(bytes) {
            to.write(byte);
        }
        self.len += bytes.len();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stored(raw: &[u8]) -> Vec<u8> {
        let mut out = vec![MaybeUninit::uninit(); raw.len() + raw.len() / 512 + 64];
        let len = Runs::default().compress(raw, &mut out).unwrap();
        // SAFETY: so many bytes were written.
        out[..len].iter().map(|byte| unsafe { byte.assume_init() }).collect()
    }

    fn inflated(stored: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut out = vec![0; len];
        let mut inflater = crate::deflate::Inflater::default();
        inflater.inflate_exactly(stored, &mut out).then_some(out)
    }

    proptest! {
        #[test]
        fn runs_of_any_length_come_back(
            pieces in prop::collection::vec((1usize..10, 0usize..9000, any::<u64>()), 0..60),
        ) {
            let mut raw = Vec::new();
            for (period, len, seed) in pieces {
                let noise = |at: usize| {
                    let at = if seed % 5 == 0 { at } else { at % period };
                    (seed.wrapping_add(at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as u8
                };
                raw.extend((0..len).map(noise));
            }
            prop_assert_eq!(inflated(&stored(&raw), raw.len()), Some(raw));
        }

        #[test]
        fn repetitions_are_cut_into_lengths_that_there_are(repeated in 8usize..5000) {
            let (whole, last) = cut(repeated);
            prop_assert_eq!(whole * MOST + last[0] + last[1], repeated);
            prop_assert!(last.iter().all(|&len| len == 0 || (LEAST..MOST).contains(&len)));
        }
    }

    #[test]
    fn what_does_not_shrink_hardly_grows() {
        let mut state = 1u64;
        let mut noise = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        };
        for len in [0, 1, 7, 8, 9, 300, 70_000, SEGMENT_NBYTES, SEGMENT_NBYTES + 1, 400_000] {
            let raw: Vec<u8> = (0..len).map(|_| noise()).collect();
            let stored = stored(&raw);
            assert!(stored.len() < len + len / 4000 + 30, "{len}: {}", stored.len());
            assert_eq!(inflated(&stored, len), Some(raw));
        }
    }

    #[test]
    fn rows_of_one_number_take_a_few_bytes() {
        let rows = (0..88u32).flat_map(|row| (row as f32).sqrt().to_le_bytes().repeat(360));
        let raw: Vec<u8> = rows.collect();
        assert!(stored(&raw).len() < 700, "{}", stored(&raw).len());
        assert!(stored(&vec![0; SEGMENT_NBYTES]).len() < 200);
    }
}
