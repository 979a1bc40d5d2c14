//! Can the engine read this dataset itself, and with which facts?

use std::ffi::c_int;
use std::sync::Arc;

use chunkwise_codec::{Filter, Pipeline};
use chunkwise_engine::{Chunks, Dataset, DatasetInfo, Layout, Phase, timed};
use chunkwise_select::{ChunkGrid, Dims};

use crate::api::{Api, DEFAULT, HADDR_UNDEF, hid_t};
use crate::eligibility::element_type::check_type;
use crate::eligibility::on_demand::Checked;
use crate::error::because;
use crate::facts::{Chunking, chunk_options, fill_of, filters_of, shape_of};
use crate::file::{FileBytes, open_storage};
use crate::handle::Handle;
use crate::index::{Found, find_index, index_of};
use crate::stored::Wanted;
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
    // SAFETY: the caller's contract.
    unsafe { describe_as(library, dataset, memory_type, Asked::default()) }
}

/// As [`describe`], with all chunks listed: what is wrong with the index is found out now, and said
/// as libhdf5 says it.
///
/// # Errors
/// The reason why libhdf5 has to read this dataset.
///
/// # Safety
/// As [`describe`].
pub unsafe fn describe_listed(library: &Library, dataset: hid_t, memory_type: hid_t) -> Described {
    // SAFETY: the caller's contract.
    unsafe {
        describe_as(library, dataset, memory_type, Asked { listed: true, ..Asked::default() })
    }
}

/// How a dataset is described.
#[derive(Clone, Copy, Default)]
pub struct Asked<'a> {
    /// All chunks are found now, rather than when they are read.
    pub listed: bool,
    /// How its file's bytes are had.
    pub bytes: FileBytes<'a>,
}

/// As [`describe`], or [`describe_listed`].
///
/// # Errors
/// The reason why libhdf5 has to read this dataset.
///
/// # Safety
/// As [`describe`]; a file that is said to be plain is, and a storage that is given holds the bytes of
/// the file that the dataset is in.
pub unsafe fn describe_as(
    library: &Library,
    dataset: hid_t,
    memory_type: hid_t,
    asked: Asked<'_>,
) -> Described {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let (storage, user_block) = open_storage(library, api, dataset, asked.bytes)?;
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
                    let wanted = Wanted {
                        // Found out below.
                        header: 0,
                        user_block,
                        btree_k: 0,
                        max_shape: max_shape.as_slice().into(),
                        element_size: Some(element_size as u64),
                        filtered: !pipeline.filters().is_empty(),
                        grid,
                    };
                    let checked = Checked::new(&storage, &wanted, &pipeline);
                    let index = timed(Phase::Index, || -> Result<Chunks, Unsuited> {
                        let storage = Arc::clone(&storage);
                        let index = if asked.listed {
                            index_of(api, conventions, dataset, storage, wanted)?
                        } else {
                            match find_index(api, conventions, dataset, storage, wanted)? {
                                Found::Stored(stored) => return Ok(checked.on_demand(stored)),
                                Found::Listed(index) => index,
                            }
                        };
                        checked.check(&index).or_else(because)?;
                        Ok(Chunks::from(index))
                    })?;
                    Layout::Chunked { chunk, pipeline, unfiltered_partial_chunks, index }
                }
                0 => return because("its layout is compact: the data lies in the object header"),
                3 => return because("its layout is virtual: the data lies in other datasets"),
                other => return because(format!("its layout class {other} is not known")),
            };
            let nothing_written = || match &layout {
                Layout::Contiguous { address } => Ok(address.is_none()),
                Layout::Chunked { index, .. } => match index.all() {
                    Ok(index) => Ok(index.written() == 0),
                    Err(error) => because(error.to_string()),
                },
            };
            if undefined && nothing_written()? {
                return because("nothing was written and its fill value is undefined");
            }
            let info = DatasetInfo { shape, element_size, fill, layout };
            Dataset::new(info, storage).or_else(|error| because(error.to_string()))
        }
    })
}

/// Where contiguous data lies.
///
/// # Safety
/// Live handles of this library; the lock must be held.
pub(super) unsafe fn contiguous(
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

/// As [`describe_listed`], with elements in memory as they are stored.
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
            describe_listed(library, dataset, datatype.id)
        }
    })
}
