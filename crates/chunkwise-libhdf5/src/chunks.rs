//! Where does every chunk of a dataset lie?

use std::ffi::{c_int, c_uint, c_void};

use chunkwise_engine::{ChunkIndex, ChunkIndexBuilder, ChunkRecord};
use chunkwise_select::{ChunkGrid, Dims};

use crate::api::{Api, DEFAULT, HADDR_UNDEF, haddr_t, hid_t, hsize_t};
use crate::dataset::Unsuited;
use crate::{BindError, ChunkConventions};

/// Where `H5Dchunk_iter` is missing, each chunk is asked for, and each such question
/// walks the index up to the chunk: more chunks than this would take too long.
const MOST_BY_COORD: u64 = 4096;

/// What the callback fills.
struct Listing<'a> {
    grid: &'a ChunkGrid,
    user_block: u64,
    scaled: bool,
    builder: ChunkIndexBuilder,
    origin: Dims,
    /// A chunk that begins where no chunk can.
    stray: Option<Dims>,
}

impl Listing<'_> {
    fn add(&mut self, offset: &[hsize_t], filter_mask: u32, address: haddr_t, size: hsize_t) {
        if address == HADDR_UNDEF {
            return;
        }
        let chunk = self.grid.chunk();
        for d in 0..self.origin.len() {
            let unit = if self.scaled { chunk[d] } else { 1 };
            self.origin[d] = offset[d].saturating_mul(unit);
        }
        let Some(position) = self.grid.linear_index_of_origin(&self.origin) else {
            // Outside the present extent: left over from before the dataset shrank.
            let aligned = self.origin.iter().zip(chunk).all(|(o, c)| o % c == 0);
            if !aligned {
                self.stray.get_or_insert_with(|| self.origin.clone());
            }
            return;
        };
        let stored_nbytes = if self.scaled { size & u64::from(u32::MAX) } else { size };
        let address = address.saturating_add(self.user_block);
        self.builder.push(position, ChunkRecord { address, stored_nbytes, filter_mask });
    }
}

unsafe extern "C" fn add_chunk(
    offset: *const hsize_t,
    filter_mask: c_uint,
    address: haddr_t,
    size: hsize_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the listing passed to H5Dchunk_iter, and libhdf5 passes an offset
    // for each dimension.
    unsafe {
        let listing = &mut *data.cast::<Listing<'_>>();
        let offset = std::slice::from_raw_parts(offset, listing.grid.rank());
        listing.add(offset, filter_mask, address, size);
    }
    0
}

/// The index of a chunked dataset, in one pass over libhdf5's.
///
/// # Safety
/// `dataset` must be a live handle of a chunked dataset with this grid, and the
/// library's lock must be held.
pub unsafe fn list_chunks(
    api: &Api,
    conventions: ChunkConventions,
    dataset: hid_t,
    grid: &ChunkGrid,
    user_block: u64,
) -> Result<ChunkIndex, Unsuited> {
    let mut count: hsize_t = 0;
    // SAFETY: the caller's contract.  1.10 does not take H5S_ALL here.
    unsafe {
        let space = api.checked_id("H5Dget_space", (api.H5Dget_space)(dataset))?;
        let status = (api.H5Dget_num_chunks)(dataset, space, &raw mut count);
        let counted = api.checked("H5Dget_num_chunks", status);
        (api.H5Sclose)(space);
        counted?;
    }
    let mut listing = Listing {
        grid,
        user_block: if conventions.address_includes_user_block { 0 } else { user_block },
        scaled: conventions.chunk_iter_is_scaled,
        builder: ChunkIndexBuilder::with_capacity(count),
        origin: grid.chunk().iter().map(|_| 0).collect(),
        stray: None,
    };
    if let Some(chunk_iter) = api.H5Dchunk_iter {
        // SAFETY: the callback and its data fit each other; the caller's contract.
        let status = unsafe { chunk_iter(dataset, DEFAULT, add_chunk, (&raw mut listing).cast()) };
        api.checked("H5Dchunk_iter", status)?;
    } else if grid.len() <= MOST_BY_COORD {
        // SAFETY: the caller's contract.
        unsafe { ask_for_each(api, dataset, &mut listing)? };
    } else {
        return Err(Unsuited::Reason(format!(
            "this libhdf5 has no H5Dchunk_iter, and asking for each of {} chunks would take too long",
            grid.len()
        )));
    }
    if let Some(origin) = listing.stray {
        return Err(Unsuited::Reason(format!(
            "its chunk index holds a chunk at element {:?}, where none can begin",
            origin.as_slice()
        )));
    }
    let index = listing.builder.finish(grid.len());
    index.map_err(|error| Unsuited::Reason(error.to_string()))
}

/// For libraries without `H5Dchunk_iter`.
///
/// # Safety
/// As [`list_chunks`].
unsafe fn ask_for_each(
    api: &Api,
    dataset: hid_t,
    listing: &mut Listing<'_>,
) -> Result<(), BindError> {
    listing.scaled = false;
    let grid = listing.grid;
    for position in 0..grid.len() {
        let index = grid.chunk_index(position);
        let origin: Dims = index.iter().zip(grid.chunk()).map(|(i, c)| i * c).collect();
        let (mut mask, mut address, mut size): (c_uint, haddr_t, hsize_t) = (0, 0, 0);
        // SAFETY: an origin for each dimension and three valid pointers.
        let status = unsafe {
            (api.H5Dget_chunk_info_by_coord)(
                dataset,
                origin.as_ptr(),
                &raw mut mask,
                &raw mut address,
                &raw mut size,
            )
        };
        api.checked("H5Dget_chunk_info_by_coord", status)?;
        if size > 0 {
            listing.add(&origin, mask, address, size);
        }
    }
    Ok(())
}
