//! Which chunks does a dataset have, behind which filters, and where do they lie?
//!
//! For whoever watches another reader: unlike `describe`, nothing here depends on whether
//! the engine could read the dataset itself.

use std::sync::Arc;
use std::time::Duration;

use chunkwise_engine::{ChunkIndex, ReadError, Storage};
use chunkwise_libhdf5::binding::{Handle, chunk_options, filters_of, hid_t, shape_of, written_in};
use chunkwise_libhdf5::{Library, Unsuited, storage_of};
use chunkwise_select::{ChunkGrid, SelectError};

use crate::Walk;
use crate::touched::{BareReads, Touches, count_touches, time_bare_reads};

/// The chunks of a dataset.
pub struct ChunkTable {
    grid: ChunkGrid,
    /// HDF5's numbers, in the order of the pipeline.
    filters: Vec<i32>,
    always: Vec<i32>,
    index: ChunkIndex,
    /// None where the file has no descriptor of its own (a file in memory).
    storage: Option<Arc<dyn Storage>>,
}

impl ChunkTable {
    /// HDF5's numbers of the filters, in the order of the pipeline.
    pub fn filters(&self) -> &[i32] {
        &self.filters
    }

    /// Of those, the filters that were applied to every stored chunk, once: each load of a
    /// chunk is one call of them.
    pub fn always_applied(&self) -> &[i32] {
        &self.always
    }

    /// The stored chunks that the first `operations` selections of `walk` touch.
    ///
    /// # Errors
    /// When the selections are of another rank than the dataset.
    pub fn touches(&self, walk: &Walk, operations: u64) -> Result<Touches, SelectError> {
        count_touches(&self.grid, &self.index, walk, operations)
    }

    /// Read the stored bytes of chunks that those selections touch, as
    /// [`time_bare_reads`] says; None where the file has no descriptor.
    ///
    /// # Errors
    /// What reading gives.
    pub fn bare_reads(
        &self,
        walk: &Walk,
        operations: u64,
        most: u64,
        max_time: Duration,
    ) -> Result<Option<BareReads>, ReadError> {
        let Some(storage) = &self.storage else { return Ok(None) };
        time_bare_reads(&self.grid, &self.index, &**storage, walk, operations, most, max_time)
            .map(Some)
    }
}

/// List the chunks of a chunked dataset.
///
/// # Errors
/// When it is not chunked, or its chunks cannot be listed.
///
/// # Safety
/// `dataset` must be a live handle of this very library.
pub unsafe fn chunk_table(library: &Library, dataset: hid_t) -> Result<ChunkTable, Unsuited> {
    const CHUNKED: i32 = 2;
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let (shape, max_shape) = shape_of(api, dataset)?;
            let dcpl = (api.H5Dget_create_plist)(dataset);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            if (api.H5Pget_layout)(dcpl.id) != CHUNKED {
                return Err(Unsuited::Reason("it is not chunked".to_string()));
            }
            let chunking = chunk_options(api, dcpl.id, shape.len())?;
            let filters = filters_of(api, dcpl.id, chunking.filters)?;
            let filters: Vec<i32> = filters.iter().map(|filter| filter.id).collect();
            let grid = ChunkGrid::new(&shape, &chunking.chunk)
                .map_err(|error| Unsuited::Reason(error.to_string()))?;
            let storage = match storage_of(library, dataset) {
                Ok(storage) => Some(storage),
                Err(Unsuited::Reason(_)) => None,
                Err(failed) => return Err(failed),
            };
            let index = written_in(library, api, dataset, &grid, &max_shape)?;
            let partial_are_plain = chunking.unfiltered_partial_chunks && {
                let partial = |position| grid.is_partial(&grid.chunk_index(position));
                index.positions().any(partial)
            };
            let skipped = if partial_are_plain { u32::MAX } else { index.any_mask() };
            let always = always_applied(&filters, skipped);
            Ok(ChunkTable { grid, filters, always, index, storage })
        }
    })
}

/// The filters that stand in the pipeline once and that no chunk skips; bit `i` of
/// `skipped` says that some chunk skips the `i`-th.
fn always_applied(filters: &[i32], skipped: u32) -> Vec<i32> {
    let is_skipped =
        |i: usize| u32::try_from(i).ok().and_then(|i| skipped.checked_shr(i)).unwrap_or(0) & 1 == 1;
    let once = |id: i32| filters.iter().filter(|&&other| other == id).count() == 1;
    let kept = filters.iter().enumerate().filter(|&(i, &id)| !is_skipped(i) && once(id));
    kept.map(|(_, &id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::always_applied;

    #[test]
    fn a_filter_counts_chunks_when_none_skips_it_and_it_stands_once() {
        assert_eq!(always_applied(&[2, 1, 3], 0), [2, 1, 3]);
        assert_eq!(always_applied(&[2, 1, 3], 0b010), [2, 3]);
        assert_eq!(always_applied(&[2, 1, 2], 0), [1]);
        assert_eq!(always_applied(&[2, 1, 3], u32::MAX), []);
        assert_eq!(always_applied(&[], 0), []);
    }
}
