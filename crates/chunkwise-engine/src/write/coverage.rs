//! Which elements of a chunk have been written since it came in?

/// One bit an element, and how many are set.
#[derive(Debug, Clone, Default)]
pub(super) struct Coverage {
    words: Vec<u64>,
    elements: u64,
}

/// Bits in a word.
const BITS: u64 = u64::BITS as u64;

impl Coverage {
    /// None of `len` elements.
    pub(super) fn none(len: u64) -> Self {
        Self { words: vec![0; len.div_ceil(BITS) as usize], elements: 0 }
    }

    /// Bytes that it takes for `len` elements.
    pub(super) fn nbytes_of(len: u64) -> usize {
        len.div_ceil(BITS) as usize * size_of::<u64>()
    }

    /// How many elements are covered.
    pub(super) fn elements(&self) -> u64 {
        self.elements
    }

    /// Bytes that it takes.
    pub(super) fn nbytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// Cover `len` elements from `begin` on, which are within the chunk.
    pub(super) fn add(&mut self, begin: u64, len: u64) {
        self.for_each_word(begin, len, |word, mask, elements| {
            *elements += u64::from((mask & !*word).count_ones());
            *word |= mask;
        });
    }

    /// Uncover them.
    pub(super) fn remove(&mut self, begin: u64, len: u64) {
        self.for_each_word(begin, len, |word, mask, elements| {
            *elements -= u64::from((mask & *word).count_ones());
            *word &= !mask;
        });
    }

    fn for_each_word(&mut self, begin: u64, len: u64, change: impl Fn(&mut u64, u64, &mut u64)) {
        let end = begin + len;
        let mut at = begin;
        while at < end {
            let (first, next) = (at % BITS, (at / BITS + 1) * BITS);
            let count = next.min(end) - at;
            let mask = (u64::MAX >> (BITS - count)) << first;
            let Some(word) = self.words.get_mut((at / BITS) as usize) else { return };
            change(word, mask, &mut self.elements);
            at += count;
        }
    }

    /// Call `visit` with where each run of elements begins that are not covered, of the first
    /// `len`, and where it ends.
    pub(super) fn for_each_gap(&self, len: u64, mut visit: impl FnMut(u64, u64)) {
        let mut at = 0;
        while at < len {
            let begin = self.next(at, len, false);
            at = self.next(begin, len, true);
            if begin < at {
                visit(begin, at);
            }
        }
    }

    /// The first element from `at` on that is covered, or is not; `len` where there is none.
    fn next(&self, at: u64, len: u64, covered: bool) -> u64 {
        let mut at = at;
        while at < len {
            let Some(&word) = self.words.get((at / BITS) as usize) else { return len };
            let wanted = (if covered { word } else { !word }) >> (at % BITS);
            if wanted != 0 {
                return (at + u64::from(wanted.trailing_zeros())).min(len);
            }
            at = (at / BITS + 1) * BITS;
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_what_a_row_of_booleans_is(
            len in 1u64..300,
            changes in prop::collection::vec((any::<bool>(), 0u64..300, 0u64..300), 0..12),
        ) {
            let mut coverage = Coverage::none(len);
            let mut model = vec![false; len as usize];
            for (add, a, b) in changes {
                let (begin, end) = (a.min(b).min(len), a.max(b).min(len));
                model[begin as usize..end as usize].fill(add);
                if add { coverage.add(begin, end - begin) } else { coverage.remove(begin, end - begin) }
                prop_assert_eq!(coverage.elements(), model.iter().filter(|&&set| set).count() as u64);
            }
            let mut gaps = vec![true; len as usize];
            coverage.for_each_gap(len, |begin, end| {
                assert!(begin < end);
                gaps[begin as usize..end as usize].fill(false);
            });
            prop_assert_eq!(gaps, model);
        }
    }
}
