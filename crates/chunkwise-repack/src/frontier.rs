//! Into which pieces can each dimension be cut, and which of all combinations is best?

use std::collections::BTreeMap;

/// This many lengths are tried one by one for each way of meeting source chunks; beyond, each
/// is longer than the one before by at least a [`STEP`]th.
const EXACT: usize = 64;
const STEP: u64 = 32;
/// Divisors are looked for up to here.
const MOST_DIVISOR: u64 = 1 << 12;
/// This many combinations are kept; beyond, one for each small step of size.
const MOST_STATES: usize = 2048;

/// One dimension, cut into pieces of `len`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Elements of a piece: a multiple of the target chunk's, or all there are.
    pub len: u64,
    /// Pieces.
    pub blocks: u64,
    /// Source chunks touched by the pieces, each counted for every piece it reaches into.
    pub decodes: u64,
    /// Source chunks there are.
    chunks: u64,
}

impl Cut {
    /// `size` elements in chunks of `source`, cut into pieces of `len`.
    pub fn of(size: u64, source: Option<u64>, len: u64) -> Self {
        let source = source.unwrap_or(size).max(1);
        let (len, chunks) = (len.clamp(1, size.max(1)), size.div_ceil(source));
        let blocks = size.div_ceil(len);
        // Each boundary between pieces splits a source chunk, unless chunks meet there, too.
        let boundaries = blocks.saturating_sub(1);
        let aligned = boundaries / (source / gcd(len, source));
        Self { len, blocks, decodes: chunks + (boundaries - aligned), chunks }
    }

    /// Whether no source chunk reaches into two pieces.
    pub fn splits_nothing(&self) -> bool {
        self.decodes == self.chunks
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

/// The cuts of a dimension of `size` elements that may be worth something, the smallest first.
pub fn cuts(size: u64, source: Option<u64>, target: u64) -> Vec<Cut> {
    let target = target.max(1);
    let most = size.div_ceil(target).max(1);
    // Pieces of k target chunks meet source chunks' ends the more often, the more k has in
    // common with this.
    let period = source.map_or(1, |source| source / gcd(source, target));
    let mut found = vec![Cut::of(size, source, size)];
    for factor in divisors(period) {
        let mut multiples = factor;
        let mut tried = 0;
        while multiples < most {
            let cut = Cut::of(size, source, multiples.saturating_mul(target));
            found.push(cut);
            tried += 1;
            // The next one with fewer pieces.
            let fewer = size.div_ceil(target.saturating_mul((cut.blocks - 1).max(1)));
            let mut next = fewer.max(multiples + 1);
            if tried > EXACT {
                next = next.max(multiples + multiples / STEP);
            }
            multiples = next.div_ceil(factor).saturating_mul(factor);
        }
    }
    let states = found.into_iter().map(|cut| Combination {
        len: u128::from(cut.len),
        decodes: u128::from(cut.decodes),
        blocks: u128::from(cut.blocks),
        choice: cut,
    });
    pareto(states.collect()).into_iter().map(|state| state.choice).collect()
}

/// Divisors of `number`, itself included; of a large one with large factors, some.
fn divisors(number: u64) -> Vec<u64> {
    let small = (1..=MOST_DIVISOR.min(number)).filter(|n| number.is_multiple_of(*n));
    let mut found: Vec<u64> = small.flat_map(|n| [n, number / n]).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// A combination of cuts, and what it costs.
#[derive(Debug, Clone)]
struct Combination<T> {
    /// Elements of a block.
    len: u128,
    decodes: u128,
    blocks: u128,
    choice: T,
}

/// One cut for each dimension: the fewest decodes, then the fewest blocks, then the smallest, of
/// those of at most `most_elements`; the smallest of all where none is.
pub fn best(dimensions: &[Vec<Cut>], most_elements: u64) -> Vec<Cut> {
    let smallest = |cuts: &Vec<Cut>| cuts.iter().map(|cut| cut.len).min().unwrap_or(1);
    // What the dimensions after each take at least.
    let mut rest = vec![1u128; dimensions.len() + 1];
    for (d, cuts) in dimensions.iter().enumerate().rev() {
        rest[d] = rest[d + 1].saturating_mul(u128::from(smallest(cuts)));
    }
    let room = u128::from(most_elements).max(rest[0]);
    let mut states = vec![Combination { len: 1, decodes: 1, blocks: 1, choice: Choices::new() }];
    for (d, cuts) in dimensions.iter().enumerate() {
        let combined = states.iter().flat_map(|state| {
            (0u32..).zip(cuts).filter_map(|(number, cut)| {
                let len = state.len.saturating_mul(u128::from(cut.len));
                let fits = len.saturating_mul(rest[d + 1]) <= room;
                fits.then(|| Combination {
                    len,
                    decodes: state.decodes.saturating_mul(u128::from(cut.decodes)),
                    blocks: state.blocks.saturating_mul(u128::from(cut.blocks)),
                    choice: with(&state.choice, number),
                })
            })
        });
        states = thinned(pareto(combined.collect()));
    }
    let found = states.into_iter().min_by_key(|state| (state.decodes, state.blocks, state.len));
    let choice = found.map(|state| state.choice).unwrap_or_default();
    choice.iter().zip(dimensions).map(|(&number, cuts)| cuts[number as usize]).collect()
}

type Choices = smallvec::SmallVec<[u32; 8]>;

fn with(choices: &Choices, number: u32) -> Choices {
    let mut more = choices.clone();
    more.push(number);
    more
}

/// Those that no other one beats in everything, the smallest first.
fn pareto<T>(mut states: Vec<Combination<T>>) -> Vec<Combination<T>> {
    states.sort_by_key(|state| (state.len, state.decodes, state.blocks));
    // Of those so far that are no larger: the fewest blocks with this many decodes.
    let mut stairs: BTreeMap<u128, u128> = BTreeMap::new();
    states.retain(|state| {
        let reached = stairs.range(..=state.decodes).next_back();
        if reached.is_some_and(|(_, &blocks)| blocks <= state.blocks) {
            return false;
        }
        while let Some((&decodes, _)) =
            stairs.range(state.decodes..).next().filter(|(_, blocks)| **blocks >= state.blocks)
        {
            stairs.remove(&decodes);
        }
        stairs.insert(state.decodes, state.blocks);
        true
    });
    states
}

/// Fewer of them: of those of about the same size, the best; the smallest stays.
fn thinned<T>(states: Vec<Combination<T>>) -> Vec<Combination<T>> {
    if states.len() <= MOST_STATES {
        return states;
    }
    let mut kept: BTreeMap<u64, Combination<T>> = BTreeMap::new();
    for (number, state) in states.into_iter().enumerate() {
        let step = if number == 0 { 0 } else { 1 + ((state.len as f64).log2() * 32.0) as u64 };
        match kept.get(&step) {
            Some(other) if (other.decodes, other.blocks) <= (state.decodes, state.blocks) => {}
            _ => {
                kept.insert(step, state);
            }
        }
    }
    kept.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Source chunks touched by pieces of `len`, counted one by one.
    fn touched(size: u64, source: u64, len: u64) -> u64 {
        let pieces = (0..size.div_ceil(len)).map(|i| (i * len, ((i + 1) * len).min(size)));
        pieces.map(|(begin, end)| end.div_ceil(source) - begin / source).sum()
    }

    /// The fewest decodes and blocks over all combinations of multiples.
    fn by_force(dims: &[(u64, u64, u64)], room: u64) -> Option<(u64, u64)> {
        let mut all = vec![(1u64, 1u64, 1u64)];
        for &(size, source, target) in dims {
            let lens = (1..=size.div_ceil(target)).map(|k| (k * target).min(size));
            let choices: Vec<_> =
                lens.map(|len| (len, touched(size, source, len), size.div_ceil(len))).collect();
            all = all
                .iter()
                .flat_map(|a| choices.iter().map(|c| (a.0 * c.0, a.1 * c.1, a.2 * c.2)))
                .collect();
        }
        all.into_iter().filter(|a| a.0 <= room).map(|a| (a.1, a.2)).min()
    }

    proptest! {
        #[test]
        fn nothing_is_better_than_what_is_found(
            dims in prop::collection::vec((1u64..40, 1u64..40, 1u64..40), 1..4),
            room in 1u64..30_000,
        ) {
            let dims: Vec<_> =
                dims.into_iter().map(|(n, s, t)| (n, s.min(n), t.min(n))).collect();
            let choices: Vec<_> = dims.iter().map(|&(n, s, t)| cuts(n, Some(s), t)).collect();
            let found = best(&choices, room);
            let product = |of: fn(&Cut) -> u64| found.iter().map(of).product::<u64>();
            for (cut, &(n, s, t)) in found.iter().zip(&dims) {
                prop_assert!(cut.len % t == 0 || cut.len == n);
                prop_assert_eq!(cut.decodes, touched(n, s, cut.len));
            }
            if let Some(least) = by_force(&dims, room) {
                prop_assert!(product(|cut| cut.len) <= room);
                prop_assert_eq!((product(|cut| cut.decodes), product(|cut| cut.blocks)), least);
            }
        }
    }

    #[test]
    fn vast_grids_have_few_cuts() {
        for (source, target) in [(1, 1), (7, 720_720), (720_720, 7), (1 << 40, 3)] {
            let found = cuts(1 << 50, Some(source), target);
            assert!(found.len() < 100_000, "{}", found.len());
        }
        let dims: Vec<Vec<Cut>> = (0..4).map(|_| cuts(1 << 15, Some(1 << 5), 1 << 4)).collect();
        let found = best(&dims, 1 << 30);
        assert!(found.iter().map(|cut| cut.len).product::<u64>() <= 1 << 30);
        assert!(found.iter().all(Cut::splits_nothing));
    }
}
