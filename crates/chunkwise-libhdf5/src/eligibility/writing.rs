//! Can chunks of a dataset be encoded here, and with which facts?

use std::ffi::{c_int, c_ulong};
use std::sync::Arc;

use chunkwise_codec::{Encoder, Encoding, Filter, FilterKind, Pipeline, Step};
use chunkwise_engine::WriteInfo;
use chunkwise_select::ChunkGrid;

use crate::api::{Api, hid_t};
use crate::committer::first_mask;
use crate::eligibility::element_type::check_type;
use crate::error::because;
use crate::facts::{StatedFilter, chunk_options, fill_of, filters_of, shape_of};
use crate::file::file_of;
use crate::handle::Handle;
use crate::{ChunkCommitter, Library, Unsuited};

/// `H5Z_FLAG_OPTIONAL`
const OPTIONAL: u32 = 1;

/// The filters of the chunked dataset `dataset` as they are applied here, or the reason why
/// libhdf5 has to apply them.
///
/// # Errors
/// Also when a call fails.
///
/// # Safety
/// A live handle of this library.
pub unsafe fn encoding_of(library: &Library, dataset: hid_t) -> Result<Encoding, Unsuited> {
    library.locked(|api: &Api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let (shape, _) = shape_of(api, dataset)?;
            let dcpl = (api.H5Dget_create_plist)(dataset);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            let options = chunk_options(api, dcpl.id, shape.len())?;
            encoding(&filters_of(api, dcpl.id, options.filters)?)
        }
    })
}

fn encoding(filters: &[StatedFilter]) -> Result<Encoding, Unsuited> {
    let mut steps = Vec::new();
    for filter in filters {
        let Some(encoder) = Encoder::from_hdf5(filter.id, &filter.cd_values) else {
            return because(format!("{} is not encoded natively", filter.label()));
        };
        steps.push(Step { encoder, optional: filter.flags & OPTIONAL != 0 });
    }
    Ok(Encoding::new(steps))
}

/// Whether there are chunks that libhdf5 stores without the filter.
fn may_be_left_out(step: &Step) -> bool {
    let takes_all = [FilterKind::Deflate, FilterKind::Shuffle, FilterKind::Fletcher32];
    step.optional && !takes_all.contains(&step.kind())
}

/// Refuse the one mask that libhdf5 cannot be made to forget.
///
/// # Safety
/// A live chunked dataset of this library, with the lock held.
unsafe fn check_only_mask(
    api: &Api,
    dataset: hid_t,
    grid: &ChunkGrid,
    encoding: &Encoding,
) -> Result<(), Unsuited> {
    if grid.len() == 1
        && encoding.steps().iter().any(may_be_left_out)
        // SAFETY: the caller's contract.
        && unsafe { first_mask(api, dataset, grid.rank()) } != 0
    {
        return because("it is a single chunk, which libhdf5 stored without a filter");
    }
    Ok(())
}

/// Refuse a file of which the program has closed its own handle: to ask for one makes a new one, and
/// to close that writes out all that libhdf5 has of the file.
///
/// # Safety
/// A live file of this library, with the lock held.
unsafe fn check_handle(api: &Api, file: &Handle) -> Result<(), Unsuited> {
    // SAFETY: the caller's contract.
    match unsafe { (api.H5Iget_ref)(file.id) } {
        1 => because("the program has closed its handle of the file"),
        _ => Ok(()),
    }
}

/// Refuse a file that ranks of MPI have open together: of what one of them puts into it alone the
/// others' libhdf5 does not know.
///
/// # Safety
/// A live file of this library, with the lock held.
unsafe fn check_ranks(api: &Api, file: &Handle) -> Result<(), Unsuited> {
    // `H5FD_FEAT_HAS_MPI`
    const HAS_MPI: c_ulong = 0x100;
    let Some(query) = api.H5FDdriver_query else { return Ok(()) };
    // SAFETY: the caller's contract; every handle is checked.
    unsafe {
        let fapl = (api.H5Fget_access_plist)(file.id);
        let fapl = Handle::new(api, "H5Fget_access_plist", fapl, api.H5Pclose)?;
        let mut features: c_ulong = 0;
        let status = query((api.H5Pget_driver)(fapl.id), &raw mut features);
        api.checked("H5FDdriver_query", status)?;
        if features & HAS_MPI != 0 {
            return because("ranks of MPI have the file open together");
        }
    }
    Ok(())
}

/// Look at what may have changed since a dataset was described for writing by these facts; gives
/// its grid now.
///
/// # Errors
/// The reason why libhdf5 has to write it now.
///
/// # Safety
/// A live handle of this library.
pub unsafe fn look_again(
    library: &Library,
    dataset: hid_t,
    info: &WriteInfo,
) -> Result<ChunkGrid, Unsuited> {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            // SWMR may have begun.
            let (file, _) = file_of(api, dataset)?;
            check_handle(api, &file)?;
            let (shape, _) = shape_of(api, dataset)?;
            let grid = match ChunkGrid::new(&shape, &info.chunk) {
                Ok(grid) => grid,
                Err(error) => return because(error.to_string()),
            };
            check_only_mask(api, dataset, &grid, &info.encoding)?;
            Ok(grid)
        }
    })
}

/// Find out everything that is needed to write `dataset`, and what hands its chunks over.
///
/// `memory_type` is the type of the elements that will be given: unless it equals the stored
/// type, values would have to be converted.
///
/// # Errors
/// The reason why libhdf5 has to write this dataset.
///
/// # Safety
/// `dataset` and `memory_type` must be live handles of this library, the first for as long as
/// the committer is used.
pub unsafe fn describe_for_writing(
    library: &Arc<Library>,
    dataset: hid_t,
    memory_type: hid_t,
) -> Result<(WriteInfo, ChunkCommitter), Unsuited> {
    const CHUNKED: c_int = 2;
    let info = library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let (file, is_writable) = file_of(api, dataset)?;
            if !is_writable {
                return because("the file is open for reading only");
            }
            check_handle(api, &file)?;
            check_ranks(api, &file)?;
            let file_type =
                Handle::new(api, "H5Dget_type", (api.H5Dget_type)(dataset), api.H5Tclose)?;
            let element_size = check_type(api, file_type.id, memory_type)?;
            let (shape, max_shape) = shape_of(api, dataset)?;
            let dcpl = (api.H5Dget_create_plist)(dataset);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            match (api.H5Pget_layout)(dcpl.id) {
                CHUNKED => (),
                0 => return because("its layout is compact: the data lies in the object header"),
                1 => return because("its layout is contiguous: there are no chunks to encode"),
                3 => return because("its layout is virtual: the data lies in other datasets"),
                other => return because(format!("its layout class {other} is not known")),
            }
            let options = chunk_options(api, dcpl.id, shape.len())?;
            let filters = filters_of(api, dcpl.id, options.filters)?;
            let encoding = encoding(&filters)?;
            let decoders = filters.iter().map(|f| Filter::from_hdf5(f.id, &f.cd_values));
            let Some(decoders) = decoders.collect::<Option<Vec<_>>>() else {
                return because("one of its filters is not decoded natively");
            };
            let grid = match ChunkGrid::new(&shape, &options.chunk) {
                Ok(grid) => grid,
                Err(error) => return because(error.to_string()),
            };
            check_only_mask(api, dataset, &grid, &encoding)?;
            let fill = fill_of(api, dcpl.id, memory_type, element_size)?.value;
            let unfiltered_partial_chunks = options.unfiltered_partial_chunks;
            Ok(WriteInfo {
                shape,
                max_shape,
                chunk: options.chunk,
                element_size,
                fill,
                encoding,
                pipeline: Pipeline::new(decoders),
                unfiltered_partial_chunks,
            })
        }
    })?;
    // SAFETY: the caller's contract.
    let committer = unsafe { ChunkCommitter::new(Arc::clone(library), dataset) };
    Ok((info, committer))
}
