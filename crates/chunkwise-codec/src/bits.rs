//! How are numbers of any width read from a run of bits, the highest bit first?

/// Bits that one look shows at least.
const SEEN: u32 = 57;

/// Bits of some bytes, read one number after the other.
#[derive(Debug, Clone)]
pub(crate) struct Bits<'a> {
    bytes: &'a [u8],
    /// Bits read so far.
    at: usize,
}

impl<'a> Bits<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bits that are left; negative where more were read than there are.
    pub(crate) fn left(&self) -> i64 {
        self.bytes.len() as i64 * 8 - self.at as i64
    }

    /// The next 57 bits and some more, at the top; zeros after the end.
    #[inline(always)]
    fn peek(&self) -> u64 {
        let from = self.at / 8;
        let word = match self.bytes.get(from..from + 8).and_then(|b| b.first_chunk()) {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => self.peek_at_end(from),
        };
        word << (self.at % 8)
    }

    #[cold]
    fn peek_at_end(&self, from: usize) -> u64 {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let mut word = [0; 8];
        for (to, byte) in word.iter_mut().zip(rest) {
            *to = *byte;
        }
        u64::from_be_bytes(word)
    }

    /// The next `count` bits, at most 64; zeros after the end.
    #[inline(always)]
    pub(crate) fn take(&mut self, count: u32) -> u64 {
        if count == 0 {
            return 0;
        }
        if count > SEEN {
            let high = self.take(count - 32);
            return high << 32 | self.take(32);
        }
        let value = self.peek() >> (64 - count);
        self.at += count as usize;
        value
    }

    /// For each of `out`, how many zeros come before the next one, shifted up by `shift`.
    /// One look at the bytes serves as many as it shows.
    pub(crate) fn fill_with_zeros(&mut self, out: &mut [u32], shift: u32) -> Option<()> {
        let (mut word, mut seen) = (self.peek(), SEEN);
        for to in out {
            let count = word.leading_zeros();
            if count < seen {
                word = word << count << 1;
                seen -= count + 1;
                self.at += count as usize + 1;
                *to = count << shift;
            } else {
                *to = self.zeros()?.checked_shl(shift)?;
                (word, seen) = (self.peek(), SEEN);
            }
        }
        Some(())
    }

    /// Add the next `width` bits, from 1 to 32, to each of `out`.
    pub(crate) fn add_to(&mut self, out: &mut [u32], width: u32) {
        let (mut word, mut seen) = (self.peek(), SEEN);
        for to in out {
            if width > seen {
                (word, seen) = (self.peek(), SEEN);
            }
            *to = to.wrapping_add((word >> (64 - width)) as u32);
            word <<= width;
            seen -= width;
            self.at += width as usize;
        }
    }

    /// How many zeros come before the next one, which is passed; None when there is no
    /// one any more, or only after very many.
    #[inline(always)]
    pub(crate) fn zeros(&mut self) -> Option<u32> {
        let mut zeros = 0;
        loop {
            let word = self.peek();
            let count = word.leading_zeros();
            if count < SEEN {
                self.at += count as usize + 1;
                return Some(zeros + count);
            }
            self.at += SEEN as usize;
            zeros += SEEN;
            if self.left() <= 0 {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reads_what_was_written(numbers in prop::collection::vec((any::<u64>(), 0u32..65), 0..40)) {
            let mut written = Vec::new();
            for &(number, width) in &numbers {
                written.extend((0..width).rev().map(|bit| number >> bit & 1));
            }
            let bytes: Vec<u8> = written
                .chunks(8)
                .map(|bits| bits.iter().enumerate().map(|(i, bit)| (*bit as u8) << (7 - i)).sum())
                .collect();
            let mut bits = Bits::new(&bytes);
            for (number, width) in numbers {
                let kept = if width == 64 { number } else { number & ((1 << width) - 1) };
                prop_assert_eq!(bits.take(width), kept);
            }
            prop_assert!((0..8).contains(&bits.left()));
            prop_assert_eq!(bits.take(40) >> 8, 0);
        }

        #[test]
        fn adds_many_as_one_by_one(bytes in prop::collection::vec(any::<u8>(), 0..60), width in 1u32..33, start in 0u32..9) {
            let mut sums = [3u32; 20];
            let mut many = Bits::new(&bytes);
            many.take(start);
            let mut single = many.clone();
            many.add_to(&mut sums, width);
            for sum in sums {
                prop_assert_eq!(sum, (single.take(width) as u32).wrapping_add(3));
            }
            prop_assert_eq!(many.left(), single.left());
        }

        #[test]
        fn counts_zeros(counts in prop::collection::vec(0usize..200, 0..20)) {
            let mut written = Vec::new();
            for &count in &counts {
                written.extend(std::iter::repeat_n(0u8, count));
                written.push(1);
            }
            let bytes: Vec<u8> = written
                .chunks(8)
                .map(|bits| bits.iter().enumerate().map(|(i, bit)| bit << (7 - i)).sum())
                .collect();
                        let mut bits = Bits::new(&bytes);
            for &count in &counts {
                prop_assert_eq!(bits.zeros(), Some(count as u32));
            }
            let mut again = vec![0; counts.len()];
            Bits::new(&bytes).fill_with_zeros(&mut again, 1).unwrap();
            prop_assert!(again.iter().zip(&counts).all(|(a, b)| *a == 2 * *b as u32));
            prop_assert_eq!(bits.zeros(), None);
        }
    }
}
