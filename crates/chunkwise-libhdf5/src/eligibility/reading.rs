//! Can the engine read this dataset itself, and with which facts?

use std::ffi::c_int;
use std::sync::Arc;

use chunkwise_codec::{Filter, Pipeline};
use chunkwise_engine::{ChunkIndex, Dataset, DatasetInfo, Layout, Phase, Storage, timed};
use chunkwise_select::{ChunkGrid, Dims};

use crate::api::{Api, DEFAULT, HADDR_UNDEF, hid_t};
use crate::eligibility::element_type::check_type;
use crate::error::because;
use crate::facts::{Chunking, chunk_options, fill_of, filters_of, shape_of};
use crate::file::open_storage;
use crate::handle::Handle;
use crate::index::index_of;
use crate::stored::{Wanted, end_of_data};
use crate::{Library, Unsuited};

/// A dataset as the engine sees it, or the reason why libhdf5 has to read it.
pub type Described = Result<Arc<Dataset>, Unsuited>;

/// Find out everything the engine needs to read `dataset`.
///
/// `memory_type` is the type in which the caller wants the elements: unless it equals
/// the stored type, values would have to be converted, which is libhdf5's business.
/// # Errors
/// The reason why libhdf5 has to read this dataset.
///
/// # Safety
/// `dataset` and `memory_type` must be live handles of this very library.
pub unsafe fn describe(library: &Library, dataset: hid_t, memory_type: hid_t) -> Described {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let (storage, user_block) = open_storage(library, api, dataset)?;
            let file_type =
                Handle::new(api, "H5Dget_type", (api.H5Dget_type)(dataset), api.H5Tclose)?;
            let element_size = check_type(api, file_type.id, memory_type)?;
            let (shape, max_shape) = shape_of(api, dataset)?;
            let dcpl = (api.H5Dget_create_plist)(dataset);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            let (fill, undefined) = fill_of(api, dcpl.id, memory_type, element_size)?;
            let layout = match (api.H5Pget_layout)(dcpl.id) {
                1 => contiguous(api, dataset, dcpl.id, user_block)?,
                2 => {
                    let conventions = library.conventions();
                    let (chunk, pipeline, unfiltered_partial_chunks) =
                        chunking(api, dcpl.id, shape.len())?;
                    let grid = match ChunkGrid::new(&shape, &chunk) {
                        Ok(grid) => grid,
                        Err(error) => return because(error.to_string()),
                    };
                    let index = timed(Phase::Index, || {
                        let wanted = Wanted {
                            // Found out below.
                            header: 0,
                            user_block,
                            btree_k: 0,
                            grid: &grid,
                            max_shape: &max_shape,
                            element_size: Some(element_size as u64),
                            filtered: !pipeline.filters().is_empty(),
                        };
                        index_of(api, conventions, dataset, &*storage, wanted)
                    })?;
                    let chunk_nbytes = grid.chunk_len().saturating_mul(element_size as u64);
                    check_ends(&*storage, user_block, &index, &pipeline, chunk_nbytes)?;
                    let index = Arc::new(index);
                    Layout::Chunked { chunk, pipeline, unfiltered_partial_chunks, index }
                }
                0 => return because("its layout is compact: the data lies in the object header"),
                3 => return because("its layout is virtual: the data lies in other datasets"),
                other => return because(format!("its layout class {other} is not known")),
            };
            let nothing_written = match &layout {
                Layout::Contiguous { address } => address.is_none(),
                Layout::Chunked { index, .. } => index.written() == 0,
            };
            if undefined && nothing_written {
                return because("nothing was written and its fill value is undefined");
            }
            let info = DatasetInfo { shape, element_size, fill, layout };
            Dataset::new(info, storage).or_else(|error| because(error.to_string()))
        }
    })
}

/// libhdf5 reads nothing beyond the end of the file's data, even where the file goes on: chunks
/// that lie there are left to it.  Those beyond the file itself, the engine finds.
fn check_ends(
    storage: &dyn Storage,
    user_block: u64,
    index: &ChunkIndex,
    pipeline: &Pipeline,
    chunk_nbytes: u64,
) -> Result<(), Unsuited> {
    let Some(end) = end_of_data(storage, user_block).filter(|&end| index.furthest() > end) else {
        return Ok(());
    };
    let file_end = storage.end();
    for record in index.positions().filter_map(|position| index.get(position)) {
        let chunk_end = record.address.saturating_add(record.stored_nbytes);
        // Of a chunk that is stored as it is, the engine reads what a chunk holds.
        let cut = pipeline.is_identity(record.filter_mask) && record.stored_nbytes != chunk_nbytes;
        if chunk_end > end && (chunk_end <= file_end || cut) {
            return because("a chunk lies beyond the end of the file's data");
        }
    }
    Ok(())
}

unsafe fn contiguous(
    api: &Api,
    dataset: hid_t,
    dcpl: hid_t,
    user_block: u64,
) -> Result<Layout, Unsuited> {
    // SAFETY: live handles, by the caller's contract.
    unsafe {
        let external = (api.H5Pget_external_count)(dcpl);
        if api.checked("H5Pget_external_count", external)? > 0 {
            return because("its data lies in external files");
        }
        // Includes the user block in every version.
        let address = (api.H5Dget_offset)(dataset);
        // An undefined address is how both "nothing written yet" and failure look; the user
        // block is added even to that (seen in 2.0), which wraps around.
        (api.H5Eclear2)(DEFAULT);
        let nowhere = [HADDR_UNDEF, HADDR_UNDEF.wrapping_add(user_block)].contains(&address);
        let mut status: c_int = 0;
        let found = (api.H5Dget_space_status)(dataset, &raw mut status);
        api.checked("H5Dget_space_status", found)?;
        const ALLOCATED: c_int = 2;
        if nowhere && status == ALLOCATED && (api.H5Dget_storage_size)(dataset) > 0 {
            return because("libhdf5 does not say where its data lies");
        }
        Ok(Layout::Contiguous { address: (!nowhere).then_some(address) })
    }
}

/// Chunk shape, pipeline, and whether partial chunks go unfiltered.
unsafe fn chunking(
    api: &Api,
    dcpl: hid_t,
    rank: usize,
) -> Result<(Dims, Pipeline, bool), Unsuited> {
    // SAFETY: the caller's contract.
    let Chunking { chunk, filters, unfiltered_partial_chunks } =
        unsafe { chunk_options(api, dcpl, rank)? };
    let mut decoders = Vec::new();
    // SAFETY: the caller's contract.
    for filter in unsafe { filters_of(api, dcpl, filters)? } {
        match Filter::from_hdf5(filter.id, &filter.cd_values) {
            Some(decoder) => decoders.push(decoder),
            None => return because(format!("{} is not decoded natively yet", filter.label())),
        }
    }
    Ok((chunk, Pipeline::new(decoders), unfiltered_partial_chunks))
}

/// As [`describe`], with elements in memory as they are stored.
///
/// # Errors
/// The reason why libhdf5 has to read this dataset.
///
/// # Safety
/// A live handle of this library.
pub unsafe fn describe_as_stored(library: &Library, dataset: hid_t) -> Described {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let datatype =
                Handle::new(api, "H5Dget_type", (api.H5Dget_type)(dataset), api.H5Tclose)?;
            describe(library, dataset, datatype.id)
        }
    })
}
