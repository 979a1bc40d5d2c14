//! Where do the written chunks of a dataset lie, for callers that do not read it by the engine?
//!
//! As the file says, where that is known: libhdf5 goes through an array index element by
//! element, written or not.

use std::ffi::c_int;
use std::sync::Arc;

use chunkwise_engine::platform::{borrowed, readable_copy};
use chunkwise_engine::{ChunkIndex, FileStorage, Storage};
use chunkwise_metadata::Wanted;
use chunkwise_select::ChunkGrid;

use crate::api::{Api, hid_t};
use crate::chunks::list_chunks;
use crate::error::because;
use crate::facts::{chunk_options, holds_pointers, shape_of};
use crate::file::{FileBytes, descriptor_of, file_of, open_storage};
use crate::handle::Handle;
use crate::index::index_of;
use crate::{Library, Unsuited};

/// Where the written chunks of `dataset` lie, also while its file is open for writing.
///
/// # Errors
/// When it has no chunks, or libhdf5 does not list them.
///
/// # Safety
/// A live handle of this library.
pub unsafe fn written_chunks(library: &Library, dataset: hid_t) -> Result<ChunkIndex, Unsuited> {
    // SAFETY: the caller's contract.
    unsafe { grid_and_written(library, dataset, FileBytes::default()) }.map(|(_, index)| index)
}

/// Where the first `most` written chunks of `dataset` begin, in the order of the array.
///
/// # Errors
/// As of [`written_chunks`].
///
/// # Safety
/// As of [`written_chunks`].
pub unsafe fn written_origins(
    library: &Library,
    dataset: hid_t,
    most: usize,
) -> Result<Vec<Vec<u64>>, Unsuited> {
    // SAFETY: the caller's contract.
    let (grid, index) = unsafe { grid_and_written(library, dataset, FileBytes::default())? };
    Ok(index.positions().take(most).map(|position| origin_of(&grid, position)).collect())
}

fn origin_of(grid: &ChunkGrid, position: u64) -> Vec<u64> {
    grid.chunk_index(position).iter().zip(grid.chunk()).map(|(index, len)| index * len).collect()
}

/// The grid of a dataset's chunks, and those that are written; its file's bytes are had as `bytes`
/// says.
///
/// # Errors
/// As of [`written_chunks`].
///
/// # Safety
/// As of [`written_chunks`].
pub unsafe fn grid_and_written(
    library: &Library,
    dataset: hid_t,
    bytes: FileBytes<'_>,
) -> Result<(ChunkGrid, ChunkIndex), Unsuited> {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let (shape, max_shape) = shape_of(api, dataset)?;
            let dcpl = (api.H5Dget_create_plist)(dataset);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            let options = chunk_options(api, dcpl.id, shape.len())?;
            let grid = ChunkGrid::new(&shape, &options.chunk)
                .map_err(|error| Unsuited::Reason(error.to_string()))?;
            let index = written_as(library, api, (dataset, bytes), &grid, &max_shape)?;
            Ok((grid, index))
        }
    })
}

/// As [`written_chunks`], of a dataset of this grid and largest extent.
///
/// # Errors
/// When libhdf5 does not list them.
///
/// # Safety
/// A live chunked dataset of this library, whose lock must be held.
pub unsafe fn written_in(
    library: &Library,
    api: &Api,
    dataset: hid_t,
    grid: &ChunkGrid,
    max_shape: &[u64],
) -> Result<ChunkIndex, Unsuited> {
    let dataset = (dataset, FileBytes::default());
    // SAFETY: the caller's contract.
    unsafe { written_as(library, api, dataset, grid, max_shape) }
}

/// As [`written_in`], of a file whose bytes are had so.
///
/// # Safety
/// As of [`written_in`].
unsafe fn written_as(
    library: &Library,
    api: &Api,
    (dataset, bytes): (hid_t, FileBytes<'_>),
    grid: &ChunkGrid,
    max_shape: &[u64],
) -> Result<ChunkIndex, Unsuited> {
    let conventions = library.conventions();
    // SAFETY: the caller's contract; handles are checked.
    unsafe {
        let (storage, user_block) = match open_storage(library, api, dataset, bytes) {
            Ok(found) => found,
            // What libhdf5 has in memory is not in the file...
            Err(Unsuited::Reason(_)) => {
                let user_block = user_block_of(api, dataset)?;
                // It lists them itself, but not too long an array, or one whose coordinates it errs in ...
                let listed = list_chunks(api, conventions, dataset, grid, max_shape, user_block);
                let Err(Unsuited::Reason(reason)) = listed else {
                    return listed;
                };
                // ... until it has to write all.
                match flushed(api, dataset) {
                    Ok(storage) => (storage, user_block),
                    Err(Unsuited::Reason(_)) => return Err(Unsuited::Reason(reason)),
                    Err(failed) => return Err(failed),
                }
            }
            Err(failed) => return Err(failed),
        };
        let datatype = Handle::new(api, "H5Dget_type", (api.H5Dget_type)(dataset), api.H5Tclose)?;
        // What is elsewhere has another size in memory, where libhdf5 has put the type.
        let plain = !holds_pointers(api, datatype.id)?;
        let wanted = Wanted {
            // Found out there.
            header: 0,
            user_block,
            grid: grid.clone(),
            element_size: plain.then_some((api.H5Tget_size)(datatype.id) as u64),
            grows: false,
        };
        index_of(api, conventions, dataset, storage, (wanted, max_shape))
    }
}

/// Bytes before the file's own.
///
/// # Safety
/// A live dataset of this library; the lock must be held.
unsafe fn user_block_of(api: &Api, dataset: hid_t) -> Result<u64, Unsuited> {
    let mut user_block = 0;
    // SAFETY: the caller's contract; a valid pointer.
    unsafe {
        let file = (api.H5Iget_file_id)(dataset);
        let file = Handle::new(api, "H5Iget_file_id", file, api.H5Fclose)?;
        let fcpl = (api.H5Fget_create_plist)(file.id);
        let fcpl = Handle::new(api, "H5Fget_create_plist", fcpl, api.H5Pclose)?;
        api.checked("H5Pget_userblock", (api.H5Pget_userblock)(fcpl.id, &raw mut user_block))?;
    }
    Ok(user_block)
}

/// The bytes of a file that is open for writing, after libhdf5 has written all that it holds.
///
/// # Safety
/// A live dataset of this library; the lock must be held for as long as the bytes are used.
unsafe fn flushed(api: &Api, dataset: hid_t) -> Result<Arc<dyn Storage>, Unsuited> {
    const LOCAL: c_int = 0;
    // SAFETY: the caller's contract; handles are checked.
    let file = unsafe {
        let (file, _) = file_of(api, dataset)?;
        let descriptor = descriptor_of(api, file.id)?;
        api.checked("H5Fflush", (api.H5Fflush)(file.id, LOCAL))?;
        borrowed(descriptor).and_then(|file| readable_copy(&file))
    };
    match file {
        Ok(file) => Ok(Arc::new(FileStorage::new(file))),
        Err(error) => because(error.to_string()),
    }
}
