//! Can the engine read this dataset itself, and with which facts?

use std::ffi::c_int;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chunkwise_codec::Pipeline;
use chunkwise_engine::platform::open_without_waiting;
use chunkwise_engine::{
    Chunks, Dataset, ExternalRun, ExternalStorage, FileStorage, FindChunks, Phase, Storage, timed,
};
use chunkwise_metadata::readable::{Data, Description, pipeline_of, readable};
use chunkwise_metadata::{Checked, Followed, Wanted, end_of_data};
use chunkwise_select::ChunkGrid;

use crate::api::{Api, DEFAULT, HADDR_UNDEF, hid_t};
use crate::eligibility::element_type::check_type;
use crate::error::because;
use crate::facts::{Chunking, chunk_options, fill_of, filters_of, shape_of};
use crate::file::{FileBytes, open_growing, open_storage};
use crate::handle::Handle;
use crate::index::{Found, find_index, index_of};
use crate::{Library, Unsuited};

/// A dataset as the engine sees it, or the reason why libhdf5 has to read it.
pub type Described = Result<Arc<Dataset>, Unsuited>;

/// Gives the chunks of a grid as somebody has written them down; None where he has not.
pub type Saved<'a> = &'a dyn Fn(&ChunkGrid) -> Option<Box<dyn FindChunks>>;

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
    unsafe { describe_as(library, dataset, memory_type, DescribeOptions::default(), None) }
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
        let options = DescribeOptions { listed: true, ..DescribeOptions::default() };
        describe_as(library, dataset, memory_type, options, None)
    }
}

/// How a dataset is described.
#[derive(Clone, Default)]
pub struct DescribeOptions<'a> {
    /// All chunks are found now, rather than when they are read.
    pub listed: bool,
    /// How its file's bytes are had.
    pub bytes: FileBytes<'a>,
    /// A file that is open to follow its writer (SWMR) is read as it is in the file now: the caller
    /// describes the dataset anew when it is to see what was written since.
    pub follows: bool,
    /// The files that hold its data, where these are others.
    pub external: Vec<ExternalFile>,
}

/// A file that holds some of a dataset's data.
#[derive(Debug, Clone)]
pub struct ExternalFile {
    /// Where it is.
    pub path: PathBuf,
    /// Where its part begins.
    pub offset: u64,
    /// Bytes of it; `u64::MAX` without end.
    pub nbytes: u64,
}

/// As [`describe`], or [`describe_listed`]; with the chunks that `saved` gives for this number of
/// chunks, in place of those that the file's index has.
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
    options: DescribeOptions<'_>,
    saved: Option<Saved<'_>>,
) -> Described {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let growing = match options.follows {
                true => open_growing(library, api, dataset)?,
                false => None,
            };
            let follows = growing.is_some();
            let (mut storage, user_block) = match growing {
                Some(found) => found,
                None => open_storage(library, api, dataset, options.bytes)?,
            };
            let file_type =
                Handle::new(api, "H5Dget_type", (api.H5Dget_type)(dataset), api.H5Tclose)?;
            let element_size = check_type(api, file_type.id, memory_type)?;
            let (shape, max_shape) = shape_of(api, dataset)?;
            let dcpl = (api.H5Dget_create_plist)(dataset);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            let fill = fill_of(api, dcpl.id, memory_type, element_size)?;
            let data = match (api.H5Pget_layout)(dcpl.id) {
                0 => Data::Compact,
                1 if !options.external.is_empty() => {
                    storage = external(&options.external)?;
                    Data::Contiguous(Some(0))
                }
                1 => contiguous(api, dataset, dcpl.id, user_block)?,
                2 => chunking(api, dcpl.id, shape.len())?,
                3 => Data::Virtual,
                other => Data::Other(other.into()),
            };
            let description = Description { shape, element_size, fill, data };
            let bytes = Arc::clone(&storage);
            let chunks = |grid: ChunkGrid, pipeline: &Pipeline| {
                // Of a file that grows, the end that it states is an older one.
                let end = if follows { None } else { end_of_data(&storage, user_block) };
                let checked = Checked::new(&storage, end, pipeline, (&grid, element_size as u64));
                let saved = saved.filter(|_| !follows).and_then(|saved| saved(&grid));
                if let Some(saved) = saved {
                    return Ok(checked.on_demand(saved));
                }
                let wanted = Wanted {
                    // Found out below.
                    header: 0,
                    user_block,
                    element_size: Some(element_size as u64),
                    grows: follows,
                    grid,
                };
                let (conventions, storage) = (library.conventions(), Arc::clone(&storage));
                let wanted = (wanted, max_shape.as_slice());
                let index = if options.listed {
                    index_of(api, conventions, dataset, storage, wanted)?
                } else {
                    match find_index(api, conventions, dataset, storage, wanted)? {
                        Found::Stored(stored) => {
                            return Ok(checked.on_demand(match follows {
                                true => Box::new(Followed(stored)),
                                false => stored,
                            }));
                        }
                        Found::Listed(index) => index,
                    }
                };
                checked.check(&index).or_else(because)?;
                Ok(Chunks::from(index))
            };
            readable(description, bytes, |grid, pipeline| {
                timed(Phase::Index, || chunks(grid, pipeline))
            })
        }
    })
}

/// The bytes of data that lies in other files.
fn external(files: &[ExternalFile]) -> Result<Arc<dyn Storage>, Unsuited> {
    let run = |file: &ExternalFile| match open_regular(&file.path)
        .and_then(|opened| FileStorage::reopening(&opened))
    {
        Ok(storage) => Ok(ExternalRun { len: file.nbytes, file: storage, offset: file.offset }),
        Err(error) => {
            because(format!("its external file {} cannot be opened: {error}", file.path.display()))
        }
    };
    let runs = files.iter().map(run).collect::<Result<_, _>>()?;
    Ok(Arc::new(ExternalStorage(runs)))
}

/// Open a file for reading that is none of those whose readers may wait for ever.
fn open_regular(path: &Path) -> std::io::Result<File> {
    let opened = open_without_waiting(path)?;
    match opened.metadata()?.is_file() {
        true => Ok(opened),
        false => Err(std::io::Error::other("it is no regular file")),
    }
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
) -> Result<Data, Unsuited> {
    // SAFETY: live handles, by the caller's contract.
    unsafe {
        let external = (api.H5Pget_external_count)(dcpl);
        if api.checked("H5Pget_external_count", external)? > 0 {
            return Ok(Data::External);
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
        Ok(Data::Contiguous((!nowhere).then_some(address)))
    }
}

/// How chunks are stored.
unsafe fn chunking(api: &Api, dcpl: hid_t, rank: usize) -> Result<Data, Unsuited> {
    // SAFETY: the caller's contract.
    let (options, filters) = unsafe {
        let options = chunk_options(api, dcpl, rank)?;
        let filters = filters_of(api, dcpl, options.filters)?;
        (options, filters)
    };
    let Chunking { chunk, unfiltered_partial_chunks, .. } = options;
    let filters = filters.iter().map(|filter| (filter.id, &filter.cd_values[..], filter.label()));
    Ok(Data::Chunked { chunk, pipeline: pipeline_of(filters), unfiltered_partial_chunks })
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
