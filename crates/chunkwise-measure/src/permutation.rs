//! How are many things read in a random order, without a list of them?

/// A random order of the numbers below `len`, each once, computed one by one.
///
/// A Feistel network shuffles the smallest square power of two that holds them; what
/// falls outside is shuffled again until it falls inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permutation {
    len: u64,
    seed: u64,
    /// Bits of each half.
    half: u32,
}

const ROUNDS: u64 = 4;

impl Permutation {
    /// One of the orders of the numbers below `len`.
    pub fn new(len: u64, seed: u64) -> Self {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        Self { len, seed, half: bits.div_ceil(2).max(1) }
    }

    /// The number at `position`; `position` itself where it is not below the length.
    pub fn of(&self, position: u64) -> u64 {
        if position >= self.len {
            return position;
        }
        let mut number = self.shuffle(position);
        // Ends: a permutation leads from a number below the length back to one.
        while number >= self.len {
            number = self.shuffle(number);
        }
        number
    }

    fn shuffle(&self, number: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        let (mut left, mut right) = (number >> self.half, number & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ (mixed(right, round, self.seed) & mask));
        }
        (left << self.half) | right
    }
}

/// SplitMix64's finaliser over what makes a round.
pub(crate) fn mixed(value: u64, round: u64, seed: u64) -> u64 {
    let mut z = value
        .wrapping_add(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_add(round.wrapping_mul(0xD1B5_4A32_D192_ED03));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_comes_once(len in 0u64..2000, seed in any::<u64>()) {
            let order = Permutation::new(len, seed);
            let mut found: Vec<u64> = (0..len).map(|i| order.of(i)).collect();
            found.sort_unstable();
            prop_assert!(found.into_iter().eq(0..len));
        }

        #[test]
        fn the_longest_end_too(position in any::<u64>(), seed in any::<u64>()) {
            for len in [u64::MAX, 1 << 63, (1 << 62) + 1] {
                let order = Permutation::new(len, seed);
                prop_assert!(position >= len || order.of(position) < len);
            }
        }
    }

    #[test]
    fn neighbours_are_torn_apart() {
        let order = Permutation::new(1 << 20, 7);
        let close = (0..1000).filter(|&i| order.of(i).abs_diff(order.of(i + 1)) < 1000).count();
        // By chance, 2 of 1,000.
        assert!(close < 20, "{close}");
    }
}
