//! Where does every chunk of a dataset lie?

use std::ffi::{c_int, c_uint, c_void};

use chunkwise_engine::{ChunkIndex, ChunkIndexBuilder, ChunkRecord};
use chunkwise_metadata::MOST_LISTED;
use chunkwise_select::{ChunkGrid, Dims};

use crate::api::{Api, DEFAULT, HADDR_UNDEF, haddr_t, hid_t, hsize_t};
use crate::handle::Handle;
use crate::{BindError, ChunkConventions, Unsuited};

/// Where `H5Dchunk_iter` is missing, each chunk is looked up, and each such call
/// walks the index up to the chunk: more chunks than this would take too long.
const MOST_ASKED: u64 = 4096;

/// libhdf5 goes through an array index element by element, written or not (30 ns each): more
/// than this would take longer than anybody waits for a first read.
const MOST_IN_ARRAY: u64 = 50_000_000;

/// `H5D_chunk_index_t`
const V1_BTREE: c_int = 0;
const FIXED_ARRAY: c_int = 3;
const EXTENSIBLE_ARRAY: c_int = 4;
const V2_BTREE: c_int = 5;

/// Which chunk of the grid does a listed chunk belong to?
///
/// Fixed and extensible arrays store chunks by number.  The numbers run over the grid
/// of the *largest* extent, the unlimited dimension first (`H5Dearray.c`).  Listing them
/// (all of `H5Dchunk_iter`, `H5Dget_chunk_info`, `H5Dget_chunk_info_by_coord`) turns
/// numbers into coordinates in another way: never with the unlimited dimension first
/// (1.10.8, 2.0), in some versions over the present extent (the probe says).  Where that
/// differs, libhdf5 names other chunks than those that `H5Dread` finds there.
#[derive(Debug, PartialEq, Eq)]
enum Numbering {
    /// By the coordinates that libhdf5 gives.
    Coordinates,
    /// Those are wrong, but the order of listing is that of the numbers: row-major over
    /// the present grid with dimension `first` taken before all others.  Tells which
    /// chunk is which only when every one was written.
    Order { first: usize },
}

impl Numbering {
    /// `max_shape` has all bits set in unlimited dimensions.
    fn of(
        index_type: c_int,
        conventions: ChunkConventions,
        grid: &ChunkGrid,
        max_shape: &[hsize_t],
    ) -> Self {
        // A grid without chunks has no numbers; what a damaged file lists all the same is
        // outside it.
        if ![FIXED_ARRAY, EXTENSIBLE_ARRAY].contains(&index_type) || grid.is_empty() {
            return Self::Coordinates;
        }
        let unlimited = max_shape.iter().position(|&most| most == hsize_t::MAX);
        let first = unlimited.unwrap_or(0);
        if first == 0 && conventions.arrays_count_largest_extent {
            return Self::Coordinates;
        }
        let most = |d: usize| max_shape[d].div_ceil(grid.chunk()[d]);
        let counted_alike = (0..first).all(|d| most(d) == 1)
            && (first + 1..grid.rank()).all(|d| most(d) == grid.counts()[d]);
        if counted_alike { Self::Coordinates } else { Self::Order { first } }
    }

    /// Row-major position in the grid of the `number`-th chunk listed.
    fn position(first: usize, number: u64, grid: &ChunkGrid) -> Option<u64> {
        let counts = grid.counts();
        let mut index: Dims = counts.iter().map(|_| 0).collect();
        let mut rest = number;
        for d in (0..counts.len()).rev().filter(|&d| d != first) {
            index[d] = rest % counts[d];
            rest /= counts[d];
        }
        index[first] = rest;
        grid.linear_index(&index)
    }
}

/// Elements that an array index may have: chunks of the largest extent, where it is known.
fn array_len(shape: &[u64], chunk: &[u64], max_shape: &[hsize_t]) -> u64 {
    let dims = shape.iter().zip(max_shape).zip(chunk);
    let counts = dims.map(|((&size, &most), &chunk)| {
        let largest = if most == hsize_t::MAX { size } else { most.max(size) };
        largest.div_ceil(chunk)
    });
    counts.fold(1, u64::saturating_mul)
}

/// Refuse an index that libhdf5 would go through for too long; gives its kind, where it is known.
///
/// # Safety
/// A live chunked dataset of this library, whose lock must be held.
pub(crate) unsafe fn check_array_len(
    api: &Api,
    dataset: hid_t,
    shape: &[u64],
    chunk: &[u64],
    max_shape: &[hsize_t],
) -> Result<Option<c_int>, Unsuited> {
    let Some(get_index_type) = api.H5Dget_chunk_index_type else {
        return Err(Unsuited::Reason("this libhdf5 does not tell its index's type".into()));
    };
    let mut index_type: c_int = -1;
    // SAFETY: the caller's contract, and a valid pointer.
    let known = unsafe { get_index_type(dataset, &raw mut index_type) } >= 0;
    let array = known && [FIXED_ARRAY, EXTENSIBLE_ARRAY].contains(&index_type);
    let elements = array_len(shape, chunk, max_shape);
    if array && elements > MOST_IN_ARRAY {
        return Err(Unsuited::Reason(format!(
            "its chunk index is an array of {elements}, which would take too long to go through"
        )));
    }
    Ok(known.then_some(index_type))
}

/// What the callback fills.
struct Listing<'a> {
    grid: &'a ChunkGrid,
    numbering: Numbering,
    /// B-trees list chunks in the order of their coordinates, unless damaged.
    ordered: bool,
    user_block: u64,
    scaled: bool,
    builder: ChunkIndexBuilder,
    listed: u64,
    origin: Dims,
    /// What is wrong with the index.
    wrong: Option<String>,
}

impl Listing<'_> {
    /// Take one chunk; false when listing need not go on.
    fn add(
        &mut self,
        offset: &[hsize_t],
        filter_mask: c_uint,
        address: haddr_t,
        size: hsize_t,
    ) -> bool {
        if address == HADDR_UNDEF {
            return true;
        }
        let added = self.position_of(offset).and_then(|position| {
            let Some(position) = position else { return Ok(()) };
            let stored_nbytes = if self.scaled { size & u64::from(u32::MAX) } else { size };
            let address = address.saturating_add(self.user_block);
            let record = ChunkRecord { address, stored_nbytes, filter_mask };
            self.builder.push(position, record).map_err(|error| error.to_string())
        });
        self.listed += 1;
        self.wrong = added.err();
        self.wrong.is_none()
    }

    /// Row-major position of the chunk listed now; None outside the present extent, where
    /// it was left over from before the dataset shrank.
    fn position_of(&mut self, offset: &[hsize_t]) -> Result<Option<u64>, String> {
        if let Numbering::Order { first } = self.numbering {
            return Ok(Numbering::position(first, self.listed, self.grid));
        }
        let chunk = self.grid.chunk();
        let unit = |d: usize| if self.scaled { chunk[d] } else { 1 };
        let origin: Dims = (0..offset.len()).map(|d| offset[d].saturating_mul(unit(d))).collect();
        if self.ordered && self.listed > 0 && origin <= self.origin {
            return Err(format!(
                "its chunk index is damaged: the chunk at element {:?} comes after that at {:?}",
                origin.as_slice(),
                self.origin.as_slice()
            ));
        }
        if origin.iter().zip(chunk).any(|(o, c)| o % c != 0) {
            return Err(format!(
                "its chunk index is damaged: no chunk can begin at element {:?}",
                origin.as_slice()
            ));
        }
        self.origin = origin;
        Ok(self.grid.linear_index_of_origin(&self.origin))
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
        // H5_ITER_CONT or H5_ITER_STOP
        c_int::from(!listing.add(offset, filter_mask, address, size))
    }
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
    max_shape: &[hsize_t],
    user_block: u64,
) -> Result<ChunkIndex, Unsuited> {
    let mut count: hsize_t = 0;
    // SAFETY: the caller's contract.
    let known = unsafe { check_array_len(api, dataset, grid.shape(), grid.chunk(), max_shape)? };
    // Where nothing was written there may be no index yet: nothing that could be listed under
    // wrong coordinates.
    let index_type = known.unwrap_or(-1);
    // SAFETY: the caller's contract.  1.10 does not take H5S_ALL here.
    unsafe {
        (api.H5Eclear2)(DEFAULT);
        let space = api.checked_id("H5Dget_space", (api.H5Dget_space)(dataset))?;
        let status = (api.H5Dget_num_chunks)(dataset, space, &raw mut count);
        let counted = api.checked("H5Dget_num_chunks", status);
        (api.H5Sclose)(space);
        counted?;
        if count > 0 && known.is_none() {
            return Err(api.failed("H5Dget_chunk_index_type").into());
        }
    }
    let builder = match ChunkIndexBuilder::with_capacity(count.min(MOST_LISTED)) {
        Ok(builder) if count <= MOST_LISTED => builder,
        _ => {
            return Err(Unsuited::Reason(format!(
                "its {count} chunks are more than can be indexed in memory"
            )));
        }
    };
    let mut listing = Listing {
        grid,
        numbering: Numbering::of(index_type, conventions, grid, max_shape),
        ordered: [V1_BTREE, V2_BTREE].contains(&index_type),
        listed: 0,
        user_block: if conventions.address_includes_user_block { 0 } else { user_block },
        scaled: conventions.chunk_iter_is_scaled,
        builder,
        origin: grid.chunk().iter().map(|_| 0).collect(),
        wrong: None,
    };
    if let Some(chunk_iter) = api.H5Dchunk_iter {
        // SAFETY: the callback and its data fit each other; the caller's contract.
        let status = unsafe { chunk_iter(dataset, DEFAULT, add_chunk, (&raw mut listing).cast()) };
        api.checked("H5Dchunk_iter", status)?;
    } else if count <= MOST_ASKED {
        // SAFETY: the caller's contract.
        unsafe { ask_for_each(api, dataset, count, &mut listing)? };
    } else {
        return Err(Unsuited::Reason(format!(
            "this libhdf5 has no H5Dchunk_iter, and asking for each of {count} chunks would take too long"
        )));
    }
    if let Some(wrong) = listing.wrong {
        return Err(Unsuited::Reason(wrong));
    }
    if listing.numbering != Numbering::Coordinates && listing.listed != grid.len() {
        return Err(Unsuited::Reason(format!(
            "libhdf5 lists its chunks under wrong coordinates (an array index, and an inner \
             dimension that may grow), and only {} of {} were written",
            listing.listed,
            grid.len()
        )));
    }
    let index = listing.builder.finish(grid.len());
    index.map_err(|error| Unsuited::Reason(error.to_string()))
}

/// For libraries without `H5Dchunk_iter`: ask for the first chunk that is listed, the second,
/// up to `count`.  (By coordinates, a damaged index would show no more than what fits.)
///
/// # Safety
/// As [`list_chunks`].
unsafe fn ask_for_each(
    api: &Api,
    dataset: hid_t,
    count: hsize_t,
    listing: &mut Listing<'_>,
) -> Result<(), BindError> {
    listing.scaled = false;
    let mut origin: Dims = listing.grid.chunk().iter().map(|_| 0).collect();
    // SAFETY: the caller's contract.
    let space =
        unsafe { Handle::new(api, "H5Dget_space", (api.H5Dget_space)(dataset), api.H5Sclose)? };
    for number in 0..count {
        let (mut mask, mut address, mut size): (c_uint, haddr_t, hsize_t) = (0, HADDR_UNDEF, 0);
        // SAFETY: room for a number for each dimension, and three valid pointers.
        let status = unsafe {
            (api.H5Dget_chunk_info)(
                dataset,
                space.id,
                number,
                origin.as_mut_ptr(),
                &raw mut mask,
                &raw mut address,
                &raw mut size,
            )
        };
        api.checked("H5Dget_chunk_info", status)?;
        if !listing.add(&origin, mask, address, size) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONVENTIONS: ChunkConventions = ChunkConventions {
        address_includes_user_block: true,
        has_chunk_iter: true,
        chunk_iter_is_scaled: false,
        arrays_count_largest_extent: true,
    };

    #[test]
    fn an_inner_unlimited_dimension_is_numbered_first() {
        let grid = ChunkGrid::new(&[3, 4], &[1, 2]).unwrap();
        let numbering = |max_shape| Numbering::of(EXTENSIBLE_ARRAY, CONVENTIONS, &grid, max_shape);
        assert_eq!(numbering(&[u64::MAX, 9]), Numbering::Coordinates);
        assert_eq!(numbering(&[3, u64::MAX]), Numbering::Order { first: 1 });
        let listed: Vec<_> = (0..6).map(|n| Numbering::position(1, n, &grid)).collect();
        assert_eq!(listed, [0, 2, 4, 1, 3, 5].map(Some));
        assert_eq!(Numbering::position(1, 6, &grid), None);
    }

    #[test]
    fn an_array_has_an_element_for_each_chunk_of_the_largest_extent() {
        assert_eq!(array_len(&[3, 4], &[2, 2], &[3, 4]), 4);
        assert_eq!(array_len(&[3, 4], &[2, 2], &[20, 4]), 20);
        assert_eq!(array_len(&[3, 4], &[2, 2], &[u64::MAX, 4]), 4);
        let vast = array_len(&[1 << 40, 4], &[1, 2], &[u64::MAX, 1 << 62]);
        assert_eq!(vast, u64::MAX);
    }

    /// Dividing by the number of chunks along a dimension would panic within a callback.
    #[test]
    fn a_grid_without_chunks_is_never_numbered() {
        let grid = ChunkGrid::new(&[0, 4], &[1, 2]).unwrap();
        let numbering = Numbering::of(EXTENSIBLE_ARRAY, CONVENTIONS, &grid, &[9, u64::MAX]);
        assert_eq!(numbering, Numbering::Coordinates);
    }
}
