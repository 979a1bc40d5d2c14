//! What of a dataset can be examined in the bytes of its file?
//!
//! More than the engine reads: chunks of whatever type, whose filters are not decoded here.  What
//! is wrong with the index is distinguished from what is only not read here.

use std::sync::Arc;

use chunkwise_codec::{Filter, Pipeline};
use chunkwise_engine::{Chunks, Dataset, DatasetInfo, Layout};
use chunkwise_metadata::readable::{Data, EXTERNAL_LAYOUT};
use chunkwise_metadata::{StoredKind, Wanted, end_of_data};
use chunkwise_select::ChunkGrid;

use crate::api::{Api, hid_t};
use crate::chunks::list_chunks;
use crate::eligibility::reading::contiguous;
use crate::facts::{chunk_options, filters_of, holds_pointers, shape_of};
use crate::file::{FileBytes, open_storage};
use crate::handle::Handle;
use crate::index::stored_index;
use crate::{Library, Unsuited};

/// What there is to examine.
pub enum Examinable {
    /// Chunks, or contiguous data.
    Stored {
        /// Where they lie.
        dataset: Arc<Dataset>,
        /// Where the file's data ends, as it says, user block included.
        end: Option<u64>,
        /// Why chunks cannot be decoded here; None where they can.
        undecoded: Option<String>,
    },
    /// A damaged chunk index, in words.
    Unsound(String),
    /// Nothing that lies in chunks or in one piece in this file, or a file that cannot be read
    /// without libhdf5; in words that follow "because".
    Elsewhere(String),
}

/// Find out what of `dataset` can be examined.
///
/// # Errors
/// A call of libhdf5 failed.
///
/// # Safety
/// A live handle of this library.
pub unsafe fn examinable(library: &Library, dataset: hid_t) -> Result<Examinable, Unsuited> {
    // SAFETY: the lock is held, the rest is the caller's contract.
    library.locked(|api| match unsafe { found(library, api, dataset) } {
        Err(Unsuited::Reason(reason)) => Ok(Examinable::Elsewhere(reason)),
        found => found,
    })
}

unsafe fn found(library: &Library, api: &Api, dataset: hid_t) -> Result<Examinable, Unsuited> {
    const CONTIGUOUS: i32 = 1;
    const CHUNKED: i32 = 2;
    // SAFETY: the caller's contract; handles are checked.
    unsafe {
        let (storage, user_block) = open_storage(library, api, dataset, FileBytes::default())?;
        let datatype = Handle::new(api, "H5Dget_type", (api.H5Dget_type)(dataset), api.H5Tclose)?;
        // What points elsewhere has another size in memory, where libhdf5 has put the type.
        let plain = !holds_pointers(api, datatype.id)?;
        let element_size = match (api.H5Tget_size)(datatype.id) {
            0 => return Err(api.failed("H5Tget_size").into()),
            size if plain => size,
            _ => 1,
        };
        let (shape, max_shape) = shape_of(api, dataset)?;
        let dcpl = (api.H5Dget_create_plist)(dataset);
        let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
        let mut undecoded = (!plain).then(|| "its values lie elsewhere in the file".to_string());
        let layout = match (api.H5Pget_layout)(dcpl.id) {
            CONTIGUOUS if plain => match contiguous(api, dataset, dcpl.id, user_block)? {
                Data::Contiguous(address) => Layout::Contiguous { address },
                _ => return Err(Unsuited::Reason(EXTERNAL_LAYOUT.into())),
            },
            CHUNKED => {
                let options = chunk_options(api, dcpl.id, shape.len())?;
                let mut decoders = Vec::new();
                for filter in filters_of(api, dcpl.id, options.filters)? {
                    match Filter::from_hdf5(filter.id, &filter.cd_values) {
                        Some(decoder) => decoders.push(decoder),
                        None => {
                            let reason = format!("{} is not decoded natively", filter.label());
                            undecoded = undecoded.or(Some(reason));
                        }
                    }
                }
                let grid = match ChunkGrid::new(&shape, &options.chunk) {
                    Ok(grid) => grid,
                    Err(error) => return Ok(Examinable::Unsound(error.to_string())),
                };
                let wanted = Wanted {
                    // Found out below.
                    header: 0,
                    user_block,
                    element_size: plain.then_some(element_size as u64),
                    grows: false,
                    grid: grid.clone(),
                };
                let stored = stored_index(api, dataset, Arc::clone(&storage), wanted)?;
                let listed = match stored {
                    StoredKind::Found(stored) => stored.list(),
                    StoredKind::Unsound(reason) => Err(reason),
                    StoredKind::OtherKind => {
                        let conventions = library.conventions();
                        match list_chunks(api, conventions, dataset, &grid, &max_shape, user_block)
                        {
                            Err(Unsuited::Reason(reason)) if !is_damage(&reason) => {
                                return Err(Unsuited::Reason(reason));
                            }
                            listed => listed.map_err(|error| error.to_string()),
                        }
                    }
                };
                let index = match listed {
                    Ok(index) => Chunks::from(index),
                    Err(reason) => return Ok(Examinable::Unsound(reason)),
                };
                Layout::Chunked {
                    chunk: options.chunk,
                    pipeline: Pipeline::new(decoders),
                    unfiltered_partial_chunks: options.unfiltered_partial_chunks,
                    index,
                }
            }
            _ => return Err(Unsuited::Reason("its data lies elsewhere".into())),
        };
        let end = end_of_data(&storage, user_block);
        let info = DatasetInfo { shape, element_size, fill: None, layout };
        match Dataset::new(info, storage) {
            Ok(dataset) => Ok(Examinable::Stored { dataset, end, undecoded }),
            Err(error) => Ok(Examinable::Unsound(error.to_string())),
        }
    }
}

/// Whether listing by libhdf5 was refused for what the index holds; for what it would take, not.
fn is_damage(reason: &str) -> bool {
    reason.starts_with("its chunk index is damaged") || reason.starts_with("the chunk index holds")
}
