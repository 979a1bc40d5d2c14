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

/// Bytes as they are, and then this many that repeat those before them.
#[derive(Debug, Clone, Copy)]
struct Run {
    plain: usize,
    repeated: usize,
    is_far: bool,
}

/// Memory that is used again: the runs of a segment.
#[derive(Debug)]
pub(crate) struct Runs(Vec<Run>);

impl Runs {
    /// None without memory.
    pub(crate) fn new() -> Option<Self> {
        let mut runs = Vec::new();
        // Each but the last one repeats eight bytes or more.
        runs.try_reserve_exact(SEGMENT_NBYTES / FAR + 1).ok()?;
        Some(Self(runs))
    }

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
            self.find(source, begin, end);
            self.put_segment(&source[begin..end], number + 1 == segments, &mut bits)?;
        }
        bits.align()?;
        // SAFETY: reads a live slice of that length.
        let sum =
            unsafe { libdeflate_sys::libdeflate_adler32(1, source.as_ptr().cast(), source.len()) };
        bits.bytes(&sum.to_be_bytes())?;
        Some(bits.len)
    }

    /// Find the runs of a segment.
    fn find(&mut self, source: &[u8], begin: usize, end: usize) {
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
            self.0.push(Run { plain: at - plain, repeated: len, is_far });
            at += len;
            plain = at;
        }
        self.0.push(Run { plain: end - plain, repeated: 0, is_far: false });
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
        for (plain, run) in self.of(segment) {
            for &byte in plain {
                bits.put_code(&code, usize::from(byte))?;
            }
            for len in cut(run.repeated) {
                let (symbol, extra, width) = LENGTHS[len];
                bits.put_code(&code, usize::from(symbol))?;
                bits.put(u64::from(extra), u32::from(width))?;
                // Eight bytes are the second of two distances that share a code.
                if run.is_far { bits.put(0b11, 2)? } else { bits.put(0, 1)? }
            }
        }
        bits.put_code(&code, END)
    }

    /// How often each symbol comes, and how many bits follow them.
    fn counted(&self, segment: &[u8]) -> ([usize; SYMBOLS], usize) {
        let (mut counts, mut nbits) = ([0; SYMBOLS], 0);
        counts[END] = 1;
        for (plain, run) in self.of(segment) {
            plain.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
            for len in cut(run.repeated) {
                let (symbol, _, width) = LENGTHS[len];
                counts[usize::from(symbol)] += 1;
                nbits += usize::from(width) + 1 + usize::from(run.is_far);
            }
        }
        (counts, nbits)
    }

    /// The runs of a segment, each with its bytes that are as they are.
    fn of<'s>(&self, segment: &'s [u8]) -> impl Iterator<Item = (&'s [u8], Run)> {
        let mut rest = segment;
        self.0.iter().map(move |&run| {
            let (plain, after) = rest.split_at(run.plain);
            rest = &after[run.repeated..];
            (plain, run)
        })
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

/// A repetition, of no bytes or at least 3, in lengths that there are.
fn cut(mut left: usize) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let len = match left {
            0 => return None,
            // What is left must not be too short.
            259 | 260 => left - LEAST,
            _ => left.min(MOST),
        };
        left -= len;
        Some(len)
    })
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
    use crate::deflater::tests::inflated_by_zlib;
    use crate::inflater::Inflater;
    use proptest::prelude::*;

    fn compressed(raw: &[u8], room: usize) -> Option<Vec<u8>> {
        let mut runs = Runs::new().unwrap();
        let reserved = runs.0.capacity();
        let mut out = vec![MaybeUninit::uninit(); room];
        let len = runs.compress(raw, &mut out);
        assert_eq!(runs.0.capacity(), reserved);
        // SAFETY: this many bytes were written.
        Some(out[..len?].iter().map(|byte| unsafe { byte.assume_init() }).collect())
    }

    /// The stream, in as much room as there is, which both libraries make `raw` of again.
    fn stored(raw: &[u8]) -> Vec<u8> {
        let stored = compressed(raw, raw.len() + raw.len() / 512 + 64).unwrap();
        assert!(inflated_by_zlib(&stored, raw.len()) == raw);
        let mut out = vec![0; raw.len()];
        assert!(Inflater::default().inflate_exactly(&stored, &mut out) && out == raw);
        stored
    }

    /// Bytes in no order, whatever is asked for.
    fn noise(seed: u64) -> impl FnMut() -> u64 {
        let mut state = seed;
        move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        }
    }

    /// This many bytes of each value, in no order.
    fn mixed(counts: impl IntoIterator<Item = usize>, seed: u64) -> Vec<u8> {
        let values = (0..=255).zip(counts);
        let mut raw: Vec<u8> =
            values.flat_map(|(value, count)| std::iter::repeat_n(value, count)).collect();
        let mut noise = noise(seed);
        for at in (1..raw.len()).rev() {
            raw.swap(at, noise() as usize % (at + 1));
        }
        raw
    }

    fn pieces(most: usize) -> impl Strategy<Value = Vec<u8>> {
        let piece = (1usize..10, 0..most, any::<u64>());
        prop::collection::vec(piece, 0..60).prop_map(|pieces| {
            let mut raw = Vec::new();
            for (period, len, seed) in pieces {
                let noise = |at: usize| {
                    let at = if seed % 5 == 0 { at } else { at % period };
                    (seed.wrapping_add(at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as u8
                };
                raw.extend((0..len).map(noise));
            }
            raw
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn runs_of_any_length_come_back(raw in pieces(9000)) {
            stored(&raw);
        }

        #[test]
        fn bytes_that_come_however_often_come_back(
            growth in 1.0f64..2.3, values in 1usize..=256, seed in any::<u64>(),
        ) {
            // Each value comes this many times as often as the one before, as long as there is room.
            let mut left = SEGMENT_NBYTES + 5000;
            let counts = (0..values).map(|n| {
                let count = (growth.powi(n as i32) as usize).min(left);
                left -= count;
                count
            });
            stored(&mixed(counts, seed));
        }

        #[test]
        fn nothing_is_written_beyond_the_room(raw in pieces(90), room in any::<prop::sample::Index>()) {
            let stored = stored(&raw);
            for room in [room.index(stored.len()), stored.len() - 1] {
                prop_assert_eq!(compressed(&raw, room), None);
            }
            // Nothing follows the checksum.
            let mut out = vec![0; raw.len()];
            let cut = &stored[..stored.len() - 1];
            prop_assert!(!Inflater::default().inflate_exactly(cut, &mut out));
            prop_assert_eq!(compressed(&raw, stored.len()), Some(stored));
        }

        #[test]
        fn lengths_of_codes_are_described_as_they_are(
            lens in prop::collection::vec((0u8..16, prop_oneof![1usize..4, 1usize..300]), 1..286),
            count in END + 1..=SYMBOLS,
        ) {
            let lens = lens.into_iter().cycle();
            let lens = lens.flat_map(|(len, times)| std::iter::repeat_n(len, times));
            let lens: Vec<u8> = lens.take(count).collect();
            let described = Described::new(&lens);
            let mut decoded = Vec::new();
            for &(symbol, extra, width) in &described.symbols {
                prop_assert!(u32::from(extra) < 1 << width);
                let (len, times) = match symbol {
                    16 => (decoded.last().copied().unwrap(), 3 + extra),
                    17 => (0, 3 + extra),
                    18 => (0, 11 + extra),
                    len => (len, 1),
                };
                decoded.extend(std::iter::repeat_n(len, usize::from(times)));
            }
            prop_assert_eq!(decoded, [&lens[..], &DISTANCES].concat());
            let used = described.code.lengths.iter().filter(|&&len| len > 0);
            prop_assert_eq!(used.map(|len| 128u32 >> len).sum::<u32>(), 128);
            let mut out = [MaybeUninit::uninit(); 1000];
            let mut bits = Bits { out: &mut out, len: 0, word: 0, used: 0 };
            described.put(&mut bits).unwrap();
            prop_assert_eq!(described.nbits(), 3 + 8 * bits.len + bits.used as usize);
        }

        #[test]
        fn repetitions_are_cut_into_lengths_that_there_are(repeated in 8usize..5000) {
            prop_assert_eq!(cut(repeated).sum::<usize>(), repeated);
            prop_assert!(cut(repeated).all(|len| (LEAST..=MOST).contains(&len)));
        }
    }

    #[test]
    fn streams_of_every_length_come_back() {
        let edges = [65_535, SEGMENT_NBYTES, SEGMENT_NBYTES + 8].map(|len| len - 3..len + 4);
        let lens = (0..60).chain(250..285).chain(edges.into_iter().flatten());
        for len in lens {
            let mut noise = noise(len as u64);
            stored(&vec![0; len]);
            stored(&(0..len).map(|at| (at % 4) as u8).collect::<Vec<_>>());
            stored(&(0..len).map(|at| (at % 8 * 31) as u8).collect::<Vec<_>>());
            stored(&(0..len).map(|_| noise() as u8).collect::<Vec<_>>());
        }
    }

    #[test]
    fn codes_are_no_longer_than_deflate_allows() {
        // Each twice as often as the one before: the rarest would have a code of 16 bits or more.
        let raw = mixed((0..17).map(|n| 1 << n), 7);
        let mut runs = Runs::new().unwrap();
        runs.find(&raw, 0, raw.len());
        let longest = lengths(&runs.counted(&raw).0, 30).into_iter().max();
        assert!(longest > Some(MOST_BITS), "{longest:?}");
        // In codes, not as it is.
        assert!(stored(&raw).len() < raw.len() / 3);
    }

    #[test]
    fn what_does_not_shrink_hardly_grows() {
        let mut noise = noise(1);
        for len in [0, 1, 7, 8, 9, 300, 70_000, SEGMENT_NBYTES, SEGMENT_NBYTES + 1, 400_000] {
            let raw: Vec<u8> = (0..len).map(|_| noise() as u8).collect();
            let stored = stored(&raw);
            assert!(stored.len() < len + len / 4000 + 30, "{len}: {}", stored.len());
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
