//! Which code is shortest for symbols that come so often?

/// A code for each of `N` symbols, of no bits where a symbol does not come.
#[derive(Debug, Clone)]
pub(crate) struct Code<const N: usize> {
    pub(crate) lengths: [u8; N],
    /// Lowest bit first.
    pub(crate) codes: [u16; N],
}

impl<const N: usize> Code<N> {
    /// The code that deflate makes of lengths: short ones first, and in the symbols' order.
    pub(crate) fn new(lengths: [u8; N]) -> Self {
        let (mut codes, mut next) = ([0; N], 0u16);
        for len in 1..=15 {
            next <<= 1;
            for (code, _) in codes.iter_mut().zip(&lengths).filter(|(_, own)| **own == len) {
                *code = next.reverse_bits() >> (16 - len);
                next += 1;
            }
        }
        Self { lengths, codes }
    }
}

/// The lengths of Huffman's codes for symbols that come so often, at most `most` bits; `2^most` is
/// more than there are symbols.  A symbol that comes alone has one bit.
pub(crate) fn lengths<const N: usize>(counts: &[usize; N], most: u8) -> [u8; N] {
    let mut counts = *counts;
    loop {
        let lengths = unlimited(&counts);
        if lengths.iter().all(|&len| len <= most) {
            return lengths;
        }
        // Rare symbols become less rare, until all come equally often.
        for count in counts.iter_mut().filter(|count| **count > 0) {
            *count = count.div_ceil(2);
        }
    }
}

fn unlimited<const N: usize>(counts: &[usize; N]) -> [u8; N] {
    let mut lengths = [0; N];
    let mut leaves: Vec<(usize, usize)> = (0..N)
        .filter(|&symbol| counts[symbol] > 0)
        .map(|symbol| (counts[symbol], symbol))
        .collect();
    if let [(_, only)] = leaves[..] {
        lengths[only] = 1;
        return lengths;
    }
    leaves.sort_unstable();
    // Nodes in the order in which they are made, which is that of their counts: first all leaves.
    let mut weights: Vec<usize> = leaves.iter().map(|&(count, _)| count).collect();
    let mut parents = vec![0; 2 * leaves.len()];
    let (mut leaf, mut inner) = (0, leaves.len());
    while weights.len() + 1 < 2 * leaves.len() {
        let node = weights.len();
        let mut weight = 0;
        for _ in 0..2 {
            let is_leaf = leaf < leaves.len() && (inner >= node || weights[leaf] <= weights[inner]);
            let next = if is_leaf { &mut leaf } else { &mut inner };
            parents[*next] = node;
            weight += weights[*next];
            *next += 1;
        }
        weights.push(weight);
    }
    let mut depths = vec![0u8; weights.len()];
    for node in (0..weights.len().saturating_sub(1)).rev() {
        depths[node] = depths[parents[node]].saturating_add(1);
    }
    for (&(_, symbol), &depth) in leaves.iter().zip(&depths) {
        lengths[symbol] = depth;
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn codes_are_complete_and_rare_symbols_have_the_longer_ones(
            counts in prop::collection::vec(
                prop_oneof![Just(0), 1usize..4, 1usize..1_000_000], 286),
            most in 9u8..16,
        ) {
            let counts: [usize; 286] = counts.try_into().unwrap();
            prop_assume!(counts.iter().filter(|&&count| count > 0).count() > 1);
            let lengths = lengths(&counts, most);
            let share: u64 = lengths.iter().filter(|&&len| len > 0).map(|len| 1 << (15 - len)).sum();
            prop_assert_eq!(share, 1 << 15);
            prop_assert!(lengths.iter().all(|&len| len <= most));
            let lengths = unlimited(&counts);
            for (count, len) in counts.iter().zip(lengths) {
                prop_assert_eq!(*count > 0, len > 0);
                let longer = counts.iter().zip(lengths).filter(|(_, other)| *other > len);
                prop_assert!(len == 0 || longer.clone().all(|(other, _)| other <= count));
            }
        }
    }

    #[test]
    fn counts_that_double_are_cut_to_what_is_allowed() {
        let mut counts = [0; 30];
        (0..30).for_each(|n| counts[n] = 1 << n);
        assert_eq!(unlimited(&counts)[0], 29);
        for most in [5, 7, 15] {
            let lengths = lengths(&counts, most);
            assert!(lengths.iter().all(|&len| (1..=most).contains(&len)));
            let share: u64 = lengths.iter().map(|len| 1 << (15 - len)).sum();
            assert_eq!(share, 1 << 15);
        }
        assert_eq!(lengths(&[0, 7, 0], 15), [0, 1, 0]);
    }

    #[test]
    fn canonical_codes() {
        // The example of RFC 1951, 3.2.2.
        let code = Code::new([3, 3, 3, 3, 3, 2, 4, 4]);
        let reversed = |code: u16, len: u32| code.reverse_bits() >> (16 - len);
        let expected = [(2, 3), (3, 3), (4, 3), (5, 3), (6, 3), (0, 2), (14, 4), (15, 4)];
        assert_eq!(code.codes, expected.map(|(code, len)| reversed(code, len)));
    }
}
