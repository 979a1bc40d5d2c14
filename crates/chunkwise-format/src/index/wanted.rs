//! Which chunks are looked for, and what is known of each?

use crate::dataspace::Dims;
use crate::error::FormatError;

/// A chunk that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkRecord {
    /// Its place in the grid of chunks: where it begins, divided by a chunk's shape.
    pub scaled: Dims,
    /// Where it is.
    pub address: u64,
    /// Bytes that it takes.
    pub stored_nbytes: u64,
    /// A bit for each filter that it skips.
    pub filter_mask: u32,
}

/// What is done with each chunk.
pub(crate) type Each<'e> = dyn FnMut(ChunkRecord) -> Result<(), FormatError> + 'e;

/// What must be known of a dataset to read its index.
pub(crate) struct Wanted<'a> {
    pub(crate) chunk: &'a [u64],
    /// The largest extent; None where it is unlimited.
    pub(crate) max_shape: &'a [Option<u64>],
    pub(crate) shape: &'a [u64],
    /// Bytes of a stored element.
    pub(crate) element_nbytes: u64,
    /// Whether there are filters.
    pub(crate) filtered: bool,
    /// Half of the most children of a node of a version 1 B-tree.
    pub(crate) chunk_k: u16,
    /// Places of those that are wanted, ascending; None for all.
    pub(crate) places: Option<&'a [Dims]>,
}

impl Wanted<'_> {
    /// Bytes of a chunk that no filter changed.
    pub(crate) fn chunk_nbytes(&self) -> u64 {
        self.chunk.iter().fold(self.element_nbytes, |nbytes, &n| nbytes.saturating_mul(n))
    }

    /// Whether a chunk is wanted that lies at or after the first place, and before the second.
    pub(crate) fn wants_between(&self, begin: Option<&[u64]>, end: Option<&[u64]>) -> bool {
        let Some(places) = self.places else { return true };
        let at = begin.map_or(0, |begin| places.partition_point(|place| place.as_slice() < begin));
        places.get(at).is_some_and(|place| end.is_none_or(|end| place.as_slice() < end))
    }

    /// Give a chunk, if it is wanted.
    pub(crate) fn give(&self, chunk: ChunkRecord, each: &mut Each<'_>) -> Result<(), FormatError> {
        if self.places.is_some_and(|places| places.binary_search(&chunk.scaled).is_err()) {
            return Ok(());
        }
        each(chunk)
    }
}
