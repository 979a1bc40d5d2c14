//! Which chunks does one dimension of a hyperslab touch?

use crate::Axis;

/// The chunks that one dimension of a selection touches, in order, without listing
/// them where arithmetic can say which they are.
#[derive(Debug, Clone)]
pub(crate) enum AxisChunks {
    /// Every chunk of a range: the selection's gaps are too small to skip one.
    Dense { first: u64, count: u64 },
    /// Each selected element lies in a chunk of its own.
    OnePerElement { count: u64 },
    /// Blocks so far apart that no two share a chunk; each may span several.
    PerBlock { count: u64 },
}

impl AxisChunks {
    pub(crate) fn new(axis: &Axis, chunk_len: u64) -> Self {
        if axis.is_empty() {
            return Self::Dense { first: 0, count: 0 };
        }
        let first = axis.index_of(0) / chunk_len;
        let last = axis.index_of(axis.len() - 1) / chunk_len;
        if axis.is_contiguous() || axis.stride() - axis.block() < chunk_len {
            return Self::Dense { first, count: last - first + 1 };
        }
        if axis.block() == 1 {
            return Self::OnePerElement { count: axis.len() };
        }
        Self::PerBlock { count: chunks_of_blocks(axis, chunk_len, axis.count()) }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Dense { count, .. }
            | Self::OnePerElement { count }
            | Self::PerBlock { count } => *count,
        }
    }

    pub(crate) fn get(&self, number: u64, axis: &Axis, chunk_len: u64) -> u64 {
        match self {
            Self::Dense { first, .. } => first + number,
            Self::OnePerElement { .. } => axis.index_of(number) / chunk_len,
            Self::PerBlock { .. } => {
                // The last block whose chunks begin at or before this number.
                let (mut low, mut high) = (0, axis.count());
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    if chunks_of_blocks(axis, chunk_len, middle) <= number {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                let before = chunks_of_blocks(axis, chunk_len, low);
                axis.index_of(low * axis.block()) / chunk_len + number - before
            }
        }
    }
}

/// Chunks that the first `blocks` blocks of an axis span together, when no two blocks
/// share one: the sum of `last / chunk_len - first / chunk_len + 1` over the blocks.
fn chunks_of_blocks(axis: &Axis, chunk_len: u64, blocks: u64) -> u64 {
    let [blocks, chunk, stride, start, block] =
        [blocks, chunk_len, axis.stride(), axis.start(), axis.block()].map(u128::from);
    let spans = floor_sum(blocks, chunk, stride, start + block - 1)
        - floor_sum(blocks, chunk, stride, start);
    // No more than there are elements, which fit into 64 bits.
    u64::try_from(spans + blocks).unwrap_or(u64::MAX)
}

/// The sum of `(a * i + b) / m`, rounded down, over `i` in `0..n`, in logarithmic time
/// (the Euclidean algorithm on the lattice points below a line).
///
/// No step overflows while `a * n + b` is below 2^64 and `m` at least 1.
fn floor_sum(mut n: u128, mut m: u128, mut a: u128, mut b: u128) -> u128 {
    let mut sum = 0;
    while n > 0 {
        sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
        (a, b) = (a % m, b % m);
        let top = a * n + b;
        if top < m {
            break;
        }
        n = top / m;
        b = top % m;
        (m, a) = (a, m);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn floor_sum_is_the_sum(n in 0u128..50, m in 1u128..50, a in 0u128..100, b in 0u128..100) {
            prop_assert_eq!(floor_sum(n, m, a, b), (0..n).map(|i| (a * i + b) / m).sum::<u128>());
        }
    }
}
