//! How is a mask held, so that the place of each of its elements in a result is known?
//!
//! As one bit an element, with the set bits before each block counted when it is made: how
//! many come before any element is then a matter of a few words.

/// Words whose set bits are counted together.
const BLOCK: usize = 8;
const WORD: u64 = u64::BITS as u64;

/// A row of bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Box<[u64]>,
    /// Set bits before each block of words, and all of them at last.
    before: Box<[u64]>,
}

impl Bits {
    /// One bit a byte, set where the byte is not zero.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let words: Box<[u64]> = bytes.chunks(WORD as usize).map(packed).collect();
        let mut count = 0;
        let mut before: Vec<u64> = words
            .chunks(BLOCK)
            .map(|block| {
                let so_far = count;
                count += ones(block);
                so_far
            })
            .collect();
        before.push(count);
        Self { words, before: before.into_boxed_slice() }
    }

    /// Set bits.
    pub(crate) fn len(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Set bits before bit `end`, which is not beyond the last one.
    pub(crate) fn rank(&self, end: u64) -> u64 {
        let word = (end / WORD) as usize;
        let block = word / BLOCK;
        let whole = ones(&self.words[block * BLOCK..word]);
        let rest = match end % WORD {
            0 => 0,
            bits => u64::from((self.words[word] << (WORD - bits)).count_ones()),
        };
        self.before[block] + whole + rest
    }

    /// Set bits among `begin..end`.
    pub(crate) fn count(&self, begin: u64, end: u64) -> u64 {
        self.rank(end) - self.rank(begin)
    }

    /// Call `visit` with each run of set bits among `begin..end`, where it begins and its
    /// length, until it returns false; false if it did.
    pub(crate) fn visit_runs(
        &self,
        begin: u64,
        end: u64,
        mut visit: impl FnMut(u64, u64) -> bool,
    ) -> bool {
        let mut at = begin;
        loop {
            let start = self.next(at, end, |word| word);
            if start >= end {
                return true;
            }
            at = self.next(start, end, |word| !word);
            if !visit(start, at - start) {
                return false;
            }
        }
    }

    /// The first of the bits `at..end` that is set in what `look` makes of its word, or `end`.
    fn next(&self, at: u64, end: u64, look: impl Fn(u64) -> u64) -> u64 {
        if at >= end {
            return end;
        }
        let mut number = at / WORD;
        let mut word = look(self.words[number as usize]) & (u64::MAX << (at % WORD));
        while word == 0 {
            number += 1;
            if number * WORD >= end {
                return end;
            }
            word = look(self.words[number as usize]);
        }
        end.min(number * WORD + u64::from(word.trailing_zeros()))
    }
}

fn ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// The bits of at most 64 bytes, the first one lowest.
fn packed(bytes: &[u8]) -> u64 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut word = 0;
    for (number, &eight) in eights.iter().enumerate() {
        // The lowest bit of each byte tells whether any is set.
        let mut each = u64::from_le_bytes(eight);
        each |= each >> 4;
        each |= each >> 2;
        each |= each >> 1;
        each &= 0x0101_0101_0101_0101;
        // Byte i's bit is moved to the top byte's bit i, and nothing else gets there.
        word |= (each.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * number);
    }
    for (number, &byte) in rest.iter().enumerate() {
        word |= u64::from(byte != 0) << (8 * eights.len() + number);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_and_runs_are_those_of_the_bytes(
            runs in prop::collection::vec((0u8..3, 1usize..150), 0..20),
            cut in any::<[prop::sample::Index; 2]>(),
        ) {
            let bytes: Vec<u8> = runs
                .iter()
                .flat_map(|&(kind, len)| (0..len).map(move |i| match kind {
                    0 => 0,
                    // Any byte but zero is true.
                    1 => (i % 255) as u8 + 1,
                    _ => (i % 2) as u8,
                }))
                .collect();
            let bits = Bits::of_bytes(&bytes);
            let counted = |part: &[u8]| part.iter().filter(|&&byte| byte != 0).count() as u64;
            prop_assert_eq!(bits.len(), counted(&bytes));
            for end in 0..=bytes.len() {
                prop_assert_eq!(bits.rank(end as u64), counted(&bytes[..end]));
            }
            let mut ends = cut.map(|at| at.index(bytes.len() + 1));
            ends.sort_unstable();
            let [begin, end] = ends;
            prop_assert_eq!(bits.count(begin as u64, end as u64), counted(&bytes[begin..end]));
            let mut found = vec![0; bytes.len()];
            let mut last = None;
            bits.visit_runs(begin as u64, end as u64, |start, len| {
                assert!(len > 0 && last < Some(start), "runs that touch are one");
                last = Some(start + len);
                found[start as usize..(start + len) as usize].fill(1);
                true
            });
            for (at, &byte) in bytes.iter().enumerate() {
                prop_assert_eq!(found[at] == 1, byte != 0 && (begin..end).contains(&at));
            }
        }
    }
}
