//! How do the chunks of a dataset lie in the file, all of them together?

use chunkwise_select::ChunkGrid;

use crate::index::ChunkIndex;

/// What is common to the chunks of a dataset.  Sizes are those stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkCensus {
    /// `H5D_chunk_index_t`; None where nothing is stored yet, or it is not known.
    pub index_type: Option<i32>,
    /// Stored chunks.
    pub allocated: u64,
    /// Bytes of all stored chunks; as of the next three, None where they cannot be listed.
    pub stored_nbytes: Option<u64>,
    /// Bytes of the smallest chunk, of the middle one (the lower of two), of the largest.
    pub sizes: Option<(u64, u64, u64)>,
    /// Chunks that at least one filter was not applied to.
    pub unfiltered: u64,
    /// Of those, how many by their filter mask: the others are partial, at the edge.
    pub masked: u64,
    /// Where chunks lie, when the library says it truly.
    pub placement: Option<ChunkPlacement>,
}

/// Where chunks lie in the file, in the order of the array.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkPlacement {
    /// Elements of the dataset that lie in stored chunks.
    pub covered_elements: u64,
    /// Pairs of stored chunks, one the next after the other in row-major order.
    pub pairs: u64,
    /// Of those, how many lie without a gap in the file.
    pub adjacent: u64,
    /// Of those, how many the second of which lies before the first.
    pub backward: u64,
    /// From the first byte of any chunk to the last.
    pub span_nbytes: u64,
}

/// The census when it is known which chunk is which.
#[must_use]
pub fn census_of_index(
    index: &ChunkIndex,
    grid: &ChunkGrid,
    filtered: bool,
    unfiltered_partial_chunks: bool,
    index_type: Option<i32>,
) -> ChunkCensus {
    let mut sizes = Vec::with_capacity(usize::try_from(index.written()).unwrap_or(0));
    let (mut unfiltered, mut masked) = (0, 0);
    let mut placement = ChunkPlacement::default();
    let (mut first, mut end) = (u64::MAX, 0);
    let mut before: Option<(u64, u64)> = None;
    for position in index.positions() {
        let Some(record) = index.get(position) else { continue };
        let (address, after) =
            (record.address, record.address.saturating_add(record.stored_nbytes));
        let chunk_index = grid.chunk_index(position);
        let partial = grid.is_partial(&chunk_index);
        let plain = record.filter_mask != 0 || (partial && unfiltered_partial_chunks);
        unfiltered += u64::from(filtered && plain);
        masked += u64::from(filtered && record.filter_mask != 0);
        placement.covered_elements += if partial {
            let inside = |d: usize| {
                let origin = chunk_index[d] * grid.chunk()[d];
                grid.chunk()[d].min(grid.shape()[d] - origin)
            };
            (0..grid.rank()).map(inside).product()
        } else {
            grid.chunk_len()
        };
        if let Some((last_address, last_end)) = before {
            placement.pairs += 1;
            placement.adjacent += u64::from(address == last_end);
            placement.backward += u64::from(address < last_address);
        }
        before = Some((address, after));
        (first, end) = (first.min(address), end.max(after));
        sizes.push(record.stored_nbytes);
    }
    placement.span_nbytes = end.saturating_sub(first);
    ChunkCensus {
        index_type: index_type.filter(|_| index.written() > 0),
        allocated: index.written(),
        stored_nbytes: Some(index.stored_nbytes()),
        sizes: spread_of(&mut sizes),
        unfiltered,
        masked,
        placement: Some(placement),
    }
}

/// The smallest, the middle and the largest.
#[must_use]
pub fn spread_of(sizes: &mut [u64]) -> Option<(u64, u64, u64)> {
    let (smallest, largest) = (*sizes.iter().min()?, *sizes.iter().max()?);
    let middle = (sizes.len() - 1) / 2;
    Some((smallest, *sizes.select_nth_unstable(middle).1, largest))
}

#[cfg(test)]
mod tests {
    use super::spread_of;

    #[test]
    fn the_middle_is_the_lower_of_two() {
        assert_eq!(spread_of(&mut []), None);
        assert_eq!(spread_of(&mut [7]), Some((7, 7, 7)));
        assert_eq!(spread_of(&mut [9, 1, 5, 3]), Some((1, 3, 9)));
        assert_eq!(spread_of(&mut [9, 1, 5]), Some((1, 5, 9)));
    }
}
