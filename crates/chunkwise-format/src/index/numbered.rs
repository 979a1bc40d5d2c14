//! Which chunk has which number?
//!
//! Arrays number the chunks of the largest extent in row-major order, the unlimited dimension
//! first.

use super::wanted::Wanted;
use crate::dataspace::Dims;

pub(super) struct Numbered {
    /// The dimension that is taken before all others.
    first: usize,
    /// Chunks along each dimension of the largest extent; that of the first is not in use.
    counts: Dims,
    /// The numbers of the chunks that are wanted, ascending; None for all.
    only: Option<Vec<u64>>,
}

impl Numbered {
    pub(super) fn new(wanted: &Wanted<'_>) -> Self {
        let most = wanted.max_shape;
        let first = most.iter().position(Option::is_none).unwrap_or(0);
        let count = |(most, chunk): (&Option<u64>, &u64)| {
            most.unwrap_or(u64::MAX).checked_div(*chunk).map(|count| {
                let rest = most.unwrap_or(0).checked_rem(*chunk).unwrap_or(0);
                count.saturating_add(u64::from(rest > 0))
            })
        };
        let counts = most.iter().zip(wanted.chunk).map(|pair| count(pair).unwrap_or(0)).collect();
        let mut numbered = Self { first, counts, only: None };
        numbered.only = wanted.places.map(|places| {
            let mut numbers: Vec<u64> =
                places.iter().filter_map(|place| numbered.number(place)).collect();
            numbers.sort_unstable();
            numbers
        });
        numbered
    }

    /// How many numbers there are; None where that is no number.
    pub(super) fn count(&self) -> Option<u64> {
        self.counts.iter().try_fold(1u64, |all, &count| all.checked_mul(count))
    }

    /// Whether a chunk is wanted that has one of `count` numbers from `first` on.
    pub(super) fn wants(&self, first: u64, count: u64) -> bool {
        let Some(only) = &self.only else { return true };
        let at = only.partition_point(|&number| number < first);
        only.get(at).is_some_and(|&number| number.saturating_sub(first) < count)
    }

    /// The number of the chunk at a place in the grid; None beyond the largest extent.
    pub(super) fn number(&self, place: &[u64]) -> Option<u64> {
        let mut number = *place.get(self.first)?;
        for (d, (&at, &count)) in place.iter().zip(&self.counts).enumerate() {
            if d == self.first {
                continue;
            }
            if at >= count {
                return None;
            }
            number = number.checked_mul(count)?.checked_add(at)?;
        }
        Some(number)
    }

    /// The place in the grid of the chunk with this number.
    pub(super) fn place(&self, number: u64) -> Option<Dims> {
        let mut place = self.counts.clone();
        let mut rest = number;
        for (d, at) in place.iter_mut().enumerate().rev() {
            if d == self.first {
                continue;
            }
            let count = *at;
            *at = rest.checked_rem(count)?;
            rest = rest.checked_div(count)?;
        }
        *place.get_mut(self.first)? = rest;
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::Numbered;
    use crate::index::wanted::Wanted;

    #[test]
    fn the_unlimited_dimension_comes_first() {
        let wanted = Wanted {
            chunk: &[2, 3],
            max_shape: &[Some(5), None],
            shape: &[5, 30],
            element_nbytes: 1,
            filtered: false,
            chunk_k: 32,
            places: None,
        };
        let numbered = Numbered::new(&wanted);
        for (number, place) in [(0, [0, 0]), (1, [1, 0]), (3, [0, 1]), (5, [2, 1])] {
            assert_eq!(numbered.number(&place), Some(number));
            assert_eq!(numbered.place(number).as_deref(), Some(&place[..]));
        }
        assert_eq!(numbered.number(&[3, 0]), None);
    }
}
