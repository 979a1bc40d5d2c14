//! How do the chunks of a dataset lie in the file, all of them together?

use std::ffi::{c_int, c_uint, c_void};

use chunkwise_engine::ChunkIndex;
use chunkwise_select::ChunkGrid;

use crate::api::{Api, DEFAULT, HADDR_UNDEF, haddr_t, hid_t, hsize_t};
use crate::chunks::check_array_len;
use crate::facts::{Chunking, chunk_options, shape_of};
use crate::handle::Handle;
use crate::written::written_in;
use crate::{BindError, Library, Unsuited};

/// What is common to the chunks of a dataset.  Sizes are those stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkCensus {
    /// `H5D_chunk_index_t`; None where nothing is stored yet, or the library does not tell.
    pub index_type: Option<c_int>,
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
    /// Where chunks lie, when the library tells it truly.
    pub placement: Option<Placement>,
}

/// Where chunks lie in the file, in the order of the array.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
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

/// Take the census of a chunked dataset from its index alone.
///
/// # Errors
/// What libhdf5 says.
///
/// # Safety
/// `dataset` must be a live handle of this very library.
pub unsafe fn census(library: &Library, dataset: hid_t) -> Result<ChunkCensus, Unsuited> {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let (shape, max_shape) = shape_of(api, dataset)?;
            let dcpl = (api.H5Dget_create_plist)(dataset);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            let chunking = chunk_options(api, dcpl.id, shape.len())?;
            let index_type = index_type(api, dataset)?;
            // A grid of more chunks than can be counted has no positions to tell.
            let Ok(grid) = ChunkGrid::new(&shape, &chunking.chunk) else {
                check_array_len(api, dataset, &shape, &chunking.chunk, &max_shape)?;
                return Ok(of_sizes(library, api, dataset, index_type)?);
            };
            let filtered = chunking.filters > 0;
            let listed = written_in(library, api, dataset, &grid, &max_shape, filtered);
            Ok(match listed {
                Ok(index) => of_index(&index, &grid, &chunking, index_type),
                Err(Unsuited::Reason(_)) => {
                    check_array_len(api, dataset, &shape, &chunking.chunk, &max_shape)?;
                    of_sizes(library, api, dataset, index_type)?
                }
                Err(failed) => return Err(failed),
            })
        }
    })
}

/// The kind of index, where there is one.
unsafe fn index_type(api: &Api, dataset: hid_t) -> Result<Option<c_int>, BindError> {
    let Some(get) = api.H5Dget_chunk_index_type else { return Ok(None) };
    let mut found: c_int = -1;
    // SAFETY: a live dataset, by the caller's contract, and a valid pointer.
    unsafe { api.checked("H5Dget_chunk_index_type", get(dataset, &raw mut found))? };
    Ok(Some(found))
}

/// The census when it is known which chunk is which.
fn of_index(
    index: &ChunkIndex,
    grid: &ChunkGrid,
    chunking: &Chunking,
    index_type: Option<c_int>,
) -> ChunkCensus {
    let filtered = chunking.filters > 0;
    let mut sizes = Vec::with_capacity(usize::try_from(index.written()).unwrap_or(0));
    let (mut unfiltered, mut masked) = (0, 0);
    let mut placement = Placement::default();
    let (mut first, mut end) = (u64::MAX, 0);
    let mut before: Option<(u64, u64)> = None;
    for position in index.positions() {
        let Some(record) = index.get(position) else { continue };
        let (address, after) =
            (record.address, record.address.saturating_add(record.stored_nbytes));
        let chunk_index = grid.chunk_index(position);
        let partial = grid.is_partial(&chunk_index);
        let plain = record.filter_mask != 0 || (partial && chunking.unfiltered_partial_chunks);
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
        sizes: spread(&mut sizes),
        unfiltered,
        masked,
        placement: Some(placement),
    }
}

/// The census when libhdf5 lists chunks under wrong coordinates, or cannot list them.
unsafe fn of_sizes(
    library: &Library,
    api: &Api,
    dataset: hid_t,
    index_type: Option<c_int>,
) -> Result<ChunkCensus, BindError> {
    struct Listing {
        scaled: bool,
        sizes: Vec<u64>,
        masked: u64,
    }
    unsafe extern "C" fn add(
        _offset: *const hsize_t,
        filter_mask: c_uint,
        address: haddr_t,
        size: hsize_t,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: `data` is the listing below.
        let listing = unsafe { &mut *data.cast::<Listing>() };
        // Without memory for one more there is no census; H5_ITER_ERROR.
        if listing.sizes.try_reserve(1).is_err() {
            return -1;
        }
        if address != HADDR_UNDEF {
            listing.sizes.push(if listing.scaled { size & u64::from(u32::MAX) } else { size });
            listing.masked += u64::from(filter_mask != 0);
        }
        0
    }
    let scaled = library.conventions().chunk_iter_is_scaled;
    let mut listing = Listing { scaled, sizes: Vec::new(), masked: 0 };
    // SAFETY: the callback and its data fit each other; the rest is the caller's contract.
    unsafe {
        let Some(chunk_iter) = api.H5Dchunk_iter else {
            let space = (api.H5Dget_space)(dataset);
            let space = Handle::new(api, "H5Dget_space", space, api.H5Sclose)?;
            let mut allocated: hsize_t = 0;
            let status = (api.H5Dget_num_chunks)(dataset, space.id, &raw mut allocated);
            api.checked("H5Dget_num_chunks", status)?;
            return Ok(ChunkCensus { index_type, allocated, ..ChunkCensus::default() });
        };
        let status = chunk_iter(dataset, DEFAULT, add, (&raw mut listing).cast());
        api.checked("H5Dchunk_iter", status)?;
    }
    Ok(ChunkCensus {
        index_type,
        allocated: listing.sizes.len() as u64,
        stored_nbytes: Some(listing.sizes.iter().sum()),
        sizes: spread(&mut listing.sizes),
        unfiltered: listing.masked,
        masked: listing.masked,
        placement: None,
    })
}

/// The smallest, the middle and the largest.
fn spread(sizes: &mut [u64]) -> Option<(u64, u64, u64)> {
    let (smallest, largest) = (*sizes.iter().min()?, *sizes.iter().max()?);
    let middle = (sizes.len() - 1) / 2;
    Some((smallest, *sizes.select_nth_unstable(middle).1, largest))
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn the_middle_is_the_lower_of_two() {
        assert_eq!(spread(&mut []), None);
        assert_eq!(spread(&mut [7]), Some((7, 7, 7)));
        assert_eq!(spread(&mut [9, 1, 5, 3]), Some((1, 3, 9)));
        assert_eq!(spread(&mut [9, 1, 5]), Some((1, 5, 9)));
    }
}
