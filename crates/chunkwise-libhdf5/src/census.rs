//! How do the chunks of a dataset lie in the file, all of them together?

use std::ffi::{c_int, c_uint, c_void};

use chunkwise_engine::{ChunkCensus, census_of_index, spread_of};
use chunkwise_select::ChunkGrid;

use crate::api::{Api, DEFAULT, HADDR_UNDEF, haddr_t, hid_t, hsize_t};
use crate::chunks::check_array_len;
use crate::facts::{chunk_options, shape_of};
use crate::handle::Handle;
use crate::written::written_in;
use crate::{BindError, Library, Unsuited};

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
            // A grid of more chunks than can be counted has no positions to give.
            let Ok(grid) = ChunkGrid::new(&shape, &chunking.chunk) else {
                check_array_len(api, dataset, &shape, &chunking.chunk, &max_shape)?;
                return Ok(of_sizes(library, api, dataset, index_type)?);
            };
            let filtered = chunking.filters > 0;
            let listed = written_in(library, api, dataset, &grid, &max_shape);
            Ok(match listed {
                Ok(index) => {
                    let partial = chunking.unfiltered_partial_chunks;
                    census_of_index(&index, &grid, filtered, partial, index_type)
                }
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

/// The census when libhdf5 lists chunks under wrong coordinates, or cannot list them.
unsafe fn of_sizes(
    library: &Library,
    api: &Api,
    dataset: hid_t,
    index_type: Option<c_int>,
) -> Result<ChunkCensus, BindError> {
    struct ChunkSizes {
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
        let listing = unsafe { &mut *data.cast::<ChunkSizes>() };
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
    let mut listing = ChunkSizes { scaled, sizes: Vec::new(), masked: 0 };
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
        sizes: spread_of(&mut listing.sizes),
        unfiltered: listing.masked,
        masked: listing.masked,
        placement: None,
    })
}
