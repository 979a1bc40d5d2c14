//! How are numbers of any width written to a run of bits, the highest bit first?

/// Bytes that are stored at once; this many more than are used must there be room for.
pub(crate) const SLACK: usize = 8;

/// Bits of which one store can take all, behind up to seven that wait.
const MOST_BITS: u32 = 56;

/// Bits written one number after the other.
#[derive(Debug)]
pub(crate) struct BitWriter<'a> {
    out: &'a mut [u8],
    /// Whole bytes in `out`.
    len: usize,
    /// Bits that are not in `out`, at the top, and how many; fewer than 8 between calls.
    word: u64,
    used: u32,
    full: bool,
}

impl<'a> BitWriter<'a> {
    /// Write to `out`, of which the last [`SLACK`] bytes are not counted as room.
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { out, len: 0, word: 0, used: 0, full: false }
    }

    /// Write the low `width` bits of `value`, at most 64; those above are dropped.
    #[inline(always)]
    pub(crate) fn put(&mut self, value: u64, width: u32) {
        if width == 0 {
            return;
        }
        if width > MOST_BITS {
            self.put(value >> 32, width - 32);
            return self.put(value, 32);
        }
        // At the top, and then behind what is there.
        self.word |= value << (64 - width) >> self.used;
        self.used += width;
        self.flush();
    }

    /// Write `zeros` zeros and a one.
    #[inline(always)]
    pub(crate) fn put_zeros(&mut self, mut zeros: u32) {
        while zeros >= MOST_BITS {
            self.put(0, MOST_BITS);
            zeros -= MOST_BITS;
        }
        self.put(1, zeros + 1);
    }

    /// As [`put_zeros`](Self::put_zeros) for each of `counts`, shifted down.
    pub(crate) fn put_all_zeros(&mut self, counts: &[u32], shift: u32) {
        for &count in counts {
            self.put_zeros(count >> shift);
        }
    }

    /// Write the low `width` bits, from 1 to 28, of each of `values`.
    pub(crate) fn put_all(&mut self, values: &[u32], width: u32) {
        let mask = u64::from(u32::MAX >> (32 - width));
        let (pairs, rest) = values.as_chunks::<2>();
        for [first, second] in pairs {
            let both = (u64::from(*first) & mask) << width | u64::from(*second) & mask;
            self.put(both, 2 * width);
        }
        for &value in rest {
            self.put(u64::from(value), width);
        }
    }

    #[inline(always)]
    fn flush(&mut self) {
        match self.out.get_mut(self.len..self.len + SLACK) {
            Some(to) => {
                to.copy_from_slice(&self.word.to_be_bytes());
                self.len += (self.used / 8) as usize;
                self.word <<= self.used & !7;
                self.used &= 7;
            }
            None => {
                self.full = true;
                (self.word, self.used) = (0, 0);
            }
        }
    }

    /// Bytes written, the last filled up with zeros; None where there was no room.
    pub(crate) fn finish(self) -> Option<usize> {
        let room = self.out.len().saturating_sub(SLACK);
        let len = self.len + usize::from(self.used > 0);
        (!self.full && len <= room).then_some(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Bits;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            numbers in prop::collection::vec((any::<u64>(), 0u32..65), 0..40),
            counts in prop::collection::vec(0u32..200, 0..20),
            pairs in prop::collection::vec(any::<u32>(), 0..20),
            width in 1u32..29,
        ) {
            let mut out = vec![7; 2000];
            let mut writer = BitWriter::new(&mut out);
            for &(number, width) in &numbers {
                writer.put(number, width);
            }
            writer.put_all_zeros(&counts, 1);
            writer.put_all(&pairs, width);
            let len = writer.finish().unwrap();
            let mut bits = Bits::new(&out[..len]);
            for (number, width) in numbers {
                let kept = if width == 64 { number } else { number & ((1 << width) - 1) };
                prop_assert_eq!(bits.take(width), kept);
            }
            for count in counts {
                prop_assert_eq!(bits.zeros(), Some(count >> 1));
            }
            for number in pairs {
                prop_assert_eq!(bits.take(width), u64::from(number) & ((1 << width) - 1));
            }
            prop_assert!((0..8).contains(&bits.left()));
        }

        #[test]
        fn the_end_of_the_room_is_seen(room in 0usize..20, bytes in 0usize..20) {
            let mut out = vec![0; room + SLACK];
            let mut writer = BitWriter::new(&mut out);
            (0..bytes).for_each(|_| writer.put(0xab, 8));
            prop_assert_eq!(writer.finish(), (bytes <= room).then_some(bytes));
            prop_assert!(out[..bytes.min(room)].iter().all(|&byte| byte == 0xab));
        }
    }

    #[test]
    fn too_little_room_for_anything() {
        let mut writer = BitWriter::new(&mut []);
        writer.put(1, 1);
        assert_eq!(writer.finish(), None);
    }
}
