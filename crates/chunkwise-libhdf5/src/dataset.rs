//! Can the engine read this dataset itself, and with which facts?

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use chunkwise_codec::{Filter, Pipeline};
use chunkwise_engine::{ChunkIndex, Dataset, DatasetInfo, Layout, Phase, Storage, timed};
use chunkwise_select::{ChunkGrid, Dims, MAX_RANK};

use crate::api::{Api, DEFAULT, HADDR_UNDEF, ObjectInfo, hid_t, hsize_t};
use crate::chunks::list_chunks;
use crate::facts::descriptor_of;
use crate::stored::{Stored, Wanted, end_of_data, read_index};
use crate::{BindError, ChunkConventions, Library, Unsuited};

/// A dataset as the engine sees it, or the reason why libhdf5 has to read it.
pub type Described = Result<Arc<Dataset>, Unsuited>;

pub(crate) fn because<T>(reason: impl Into<String>) -> Result<T, Unsuited> {
    Err(Unsuited::Reason(reason.into()))
}

/// Closes a handle when it goes out of scope.
pub(crate) struct Handle {
    pub(crate) id: hid_t,
    close: unsafe extern "C" fn(hid_t) -> c_int,
}

impl Handle {
    pub(crate) fn new(
        api: &Api,
        call: &'static str,
        id: hid_t,
        close: unsafe extern "C" fn(hid_t) -> c_int,
    ) -> Result<Self, BindError> {
        Ok(Self { id: api.checked_id(call, id)?, close })
    }

    /// Close it now, and learn whether that went well.
    pub(crate) fn close(self, call: &'static str, api: &Api) -> Result<(), BindError> {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: as for drop, which does not happen any more.
        let status = unsafe { (this.close)(this.id) };
        api.checked(call, status).map(|_| ())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: a live handle with the function that closes its kind; the lock is held
        // wherever handles are made.
        unsafe { (self.close)(self.id) };
    }
}

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

/// The chunk index: read from the file, or listed by libhdf5 where it is of another kind.
///
/// # Safety
/// As [`read_stored`].
pub(crate) unsafe fn index_of(
    api: &Api,
    conventions: ChunkConventions,
    dataset: hid_t,
    storage: &dyn Storage,
    wanted: Wanted<'_>,
) -> Result<ChunkIndex, Unsuited> {
    // SAFETY: the caller's contract.
    unsafe {
        let unsound = match read_stored(api, dataset, storage, wanted)? {
            Stored::Found(index) => return Ok(index),
            Stored::OtherKind => None,
            Stored::Unsound(reason) => Some(reason),
        };
        let Wanted { grid, max_shape, user_block, .. } = wanted;
        // libhdf5 may refuse it with a reason of its own, the better one.
        let listed = list_chunks(api, conventions, dataset, grid, max_shape, user_block)?;
        unsound.map_or(Ok(listed), because)
    }
}

/// The chunk index as the file has it.
///
/// # Safety
/// A live chunked dataset of this library, in a file that nobody writes to; the lock must be held.
unsafe fn read_stored(
    api: &Api,
    dataset: hid_t,
    storage: &dyn Storage,
    wanted: Wanted<'_>,
) -> Result<Stored, Unsuited> {
    let mut info = ObjectInfo::default();
    let (mut address_len, mut size_len): (usize, usize) = (0, 0);
    let mut btree_k: c_uint = 0;
    // SAFETY: the caller's contract; valid pointers, and handles are checked.
    unsafe {
        let status = (api.H5Gget_objinfo)(dataset, c".".as_ptr(), false, &raw mut info);
        api.checked("H5Gget_objinfo", status)?;
        let (file, _) = file_of(api, dataset)?;
        let fcpl = (api.H5Fget_create_plist)(file.id);
        let fcpl = Handle::new(api, "H5Fget_create_plist", fcpl, api.H5Pclose)?;
        let status = (api.H5Pget_sizes)(fcpl.id, &raw mut address_len, &raw mut size_len);
        api.checked("H5Pget_sizes", status)?;
        let status = (api.H5Pget_istore_k)(fcpl.id, &raw mut btree_k);
        api.checked("H5Pget_istore_k", status)?;
    }
    if (address_len, size_len) != (8, 8) {
        return Ok(Stored::OtherKind);
    }
    Ok(read_index(storage, &Wanted { header: info.address(), btree_k, ..wanted }))
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

/// A descriptor of the file that holds the dataset, made from libhdf5's own, and the size
/// of that file's user block.  The path is never opened again: it may lead elsewhere by now.
pub(crate) unsafe fn open_storage(
    library: &Library,
    api: &Api,
    dataset: hid_t,
) -> Result<(Arc<dyn Storage>, u64), Unsuited> {
    // SAFETY: the caller's contract; every handle is checked.
    unsafe {
        let (file, is_writable) = file_of(api, dataset)?;
        if is_writable {
            return because(
                "the file is open for writing: what is in libhdf5's buffers is not on disk",
            );
        }
        let descriptor = descriptor_of(api, file.id)?;
        let fcpl = (api.H5Fget_create_plist)(file.id);
        let fcpl = Handle::new(api, "H5Fget_create_plist", fcpl, api.H5Pclose)?;
        let mut user_block: hsize_t = 0;
        api.checked("H5Pget_userblock", (api.H5Pget_userblock)(fcpl.id, &raw mut user_block))?;
        match library.storage_of(descriptor) {
            Ok(storage) => Ok((storage, user_block)),
            Err(error) => because(format!("no descriptor of its file can be had: {error}")),
        }
    }
}

/// The file that holds a dataset, and whether it is open for writing; a reason where that is
/// for SWMR.
///
/// # Safety
/// A live dataset of this library, with the lock held.
pub(crate) unsafe fn file_of(api: &Api, dataset: hid_t) -> Result<(Handle, bool), Unsuited> {
    const RDWR: c_uint = 1;
    const SWMR: c_uint = 0x20 | 0x40;
    let mut intent: c_uint = 0;
    // SAFETY: the caller's contract; every handle is checked.
    let file = unsafe {
        // Not the file through which it was reached: an external link leads elsewhere.
        let file = (api.H5Iget_file_id)(dataset);
        let file = Handle::new(api, "H5Iget_file_id", file, api.H5Fclose)?;
        api.checked("H5Fget_intent", (api.H5Fget_intent)(file.id, &raw mut intent))?;
        file
    };
    if intent & SWMR != 0 {
        return because("the file is open for SWMR");
    }
    Ok((file, intent & RDWR != 0))
}

/// The size of an element, if elements can be copied as they are stored.
pub(crate) unsafe fn check_type(
    api: &Api,
    file_type: hid_t,
    memory_type: hid_t,
) -> Result<usize, Unsuited> {
    // SAFETY: two live types, by the caller's contract.
    unsafe {
        if holds_pointers(api, file_type)? {
            return because(
                "its elements are of variable length or references, stored elsewhere in the file",
            );
        }
        if api.checked("H5Tequal", (api.H5Tequal)(file_type, memory_type))? == 0 {
            return because("its stored type has to be converted for NumPy");
        }
        match (api.H5Tget_size)(file_type) {
            0 => Err(api.failed("H5Tget_size").into()),
            size => Ok(size),
        }
    }
}

/// Whether a type is, or contains, one whose stored bytes point elsewhere.
///
/// # Safety
/// A live type of this library, with its lock held.
pub(crate) unsafe fn holds_pointers(api: &Api, datatype: hid_t) -> Result<bool, BindError> {
    const STRING: c_int = 3;
    const COMPOUND: c_int = 6;
    const REFERENCE: c_int = 7;
    const VLEN: c_int = 9;
    const ARRAY: c_int = 10;
    // SAFETY: a live type, by the caller's contract; handles are checked.
    unsafe {
        match api.checked("H5Tget_class", (api.H5Tget_class)(datatype))? {
            REFERENCE | VLEN => Ok(true),
            STRING => {
                Ok(api.checked("H5Tis_variable_str", (api.H5Tis_variable_str)(datatype))? > 0)
            }
            ARRAY => {
                let base = (api.H5Tget_super)(datatype);
                let base = Handle::new(api, "H5Tget_super", base, api.H5Tclose)?;
                holds_pointers(api, base.id)
            }
            COMPOUND => {
                let members = api.checked("H5Tget_nmembers", (api.H5Tget_nmembers)(datatype))?;
                for member in 0..members.unsigned_abs() {
                    let member = (api.H5Tget_member_type)(datatype, member);
                    let member = Handle::new(api, "H5Tget_member_type", member, api.H5Tclose)?;
                    if holds_pointers(api, member.id)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }
}

/// Elements in each dimension, and the most there may be (all bits set: unlimited).
pub(crate) unsafe fn shape_of(api: &Api, dataset: hid_t) -> Result<(Dims, Dims), Unsuited> {
    const SIMPLE: c_int = 1;
    // SAFETY: a live dataset, by the caller's contract; room for the rank's dimensions.
    unsafe {
        let space = (api.H5Dget_space)(dataset);
        let space = Handle::new(api, "H5Dget_space", space, api.H5Sclose)?;
        if (api.H5Sget_simple_extent_type)(space.id) != SIMPLE {
            return because("its dataspace is scalar or null");
        }
        let rank = (api.H5Sget_simple_extent_ndims)(space.id);
        let rank = api.checked("H5Sget_simple_extent_ndims", rank)?.unsigned_abs() as usize;
        if rank == 0 || rank > MAX_RANK {
            return because(format!("it has {rank} dimensions"));
        }
        let mut shape: Dims = smallvec::smallvec![0; rank];
        let mut max_shape = shape.clone();
        let found =
            (api.H5Sget_simple_extent_dims)(space.id, shape.as_mut_ptr(), max_shape.as_mut_ptr());
        api.checked("H5Sget_simple_extent_dims", found)?;
        Ok((shape, max_shape))
    }
}

/// What an element that was never written reads as; None when it is left untouched
/// (as `H5D__chunk_read` decides: fill time never, or if-set with an undefined value).
/// Then whether it is undefined though it should be filled: reading a dataset of which
/// nothing was written is then an error (`H5D__read`).
pub(crate) unsafe fn fill_of(
    api: &Api,
    dcpl: hid_t,
    memory_type: hid_t,
    size: usize,
) -> Result<(Option<Vec<u8>>, bool), Unsuited> {
    const UNDEFINED: c_int = 0;
    const TIME_NEVER: c_int = 1;
    const TIME_IFSET: c_int = 2;
    let (mut defined, mut time): (c_int, c_int) = (0, 0);
    let mut fill = vec![0u8; size];
    // SAFETY: valid pointers, and room for one element of the memory type, whose size is
    // the stored type's (they are equal).
    unsafe {
        let status = (api.H5Pfill_value_defined)(dcpl, &raw mut defined);
        api.checked("H5Pfill_value_defined", status)?;
        api.checked("H5Pget_fill_time", (api.H5Pget_fill_time)(dcpl, &raw mut time))?;
        if time == TIME_NEVER || (time == TIME_IFSET && defined == UNDEFINED) {
            return Ok((None, time != TIME_NEVER));
        }
        if defined != UNDEFINED {
            let status = (api.H5Pget_fill_value)(dcpl, memory_type, fill.as_mut_ptr().cast());
            api.checked("H5Pget_fill_value", status)?;
        }
    }
    Ok((Some(fill), defined == UNDEFINED))
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

/// How a dataset is chunked.
pub(crate) struct Chunking {
    /// Shape of a chunk.
    pub(crate) chunk: Dims,
    /// Number of filters.
    pub(crate) filters: u32,
    /// Whether chunks that reach beyond the shape are stored without filters.
    pub(crate) unfiltered_partial_chunks: bool,
}

/// # Safety
/// A live property list of a chunked dataset of `rank` dimensions; the lock must be held.
pub(crate) unsafe fn chunk_options(
    api: &Api,
    dcpl: hid_t,
    rank: usize,
) -> Result<Chunking, Unsuited> {
    const DONT_FILTER_PARTIAL_CHUNKS: c_uint = 2;
    let mut chunk: Dims = smallvec::smallvec![0; rank];
    let mut options: c_uint = 0;
    // SAFETY: live handles and room for the rank's dimensions.
    unsafe {
        let found = (api.H5Pget_chunk)(dcpl, rank as c_int, chunk.as_mut_ptr().cast::<hsize_t>());
        if api.checked("H5Pget_chunk", found)?.unsigned_abs() as usize != rank {
            return because("its chunks have another number of dimensions than the dataset");
        }
        api.checked("H5Pget_chunk_opts", (api.H5Pget_chunk_opts)(dcpl, &raw mut options))?;
        let filters = api.checked("H5Pget_nfilters", (api.H5Pget_nfilters)(dcpl))?.unsigned_abs();
        let unfiltered_partial_chunks = options & DONT_FILTER_PARTIAL_CHUNKS != 0;
        Ok(Chunking { chunk, filters, unfiltered_partial_chunks })
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

/// A filter as a dataset states it.
pub(crate) struct StatedFilter {
    /// HDF5's number for it.
    pub(crate) id: c_int,
    /// `H5Z_FLAG_OPTIONAL` and the like.
    pub(crate) flags: c_uint,
    /// Its client data.
    pub(crate) cd_values: Vec<u32>,
    /// What it calls itself; may be empty.
    name: String,
}

impl StatedFilter {
    /// For messages.
    pub(crate) fn label(&self) -> String {
        let named = if self.name.is_empty() { String::new() } else { format!(" ({})", self.name) };
        format!("filter {}{named}", self.id)
    }
}

/// The first `count` filters of a property list, in pipeline order.
///
/// # Safety
/// A live property list of a chunked dataset; the lock must be held.
pub(crate) unsafe fn filters_of(
    api: &Api,
    dcpl: hid_t,
    count: u32,
) -> Result<Vec<StatedFilter>, BindError> {
    (0..count)
        .map(|number| {
            let (mut flags, mut config): (c_uint, c_uint) = (0, 0);
            // libhdf5 gives no more to anyone; nbit has five for each member of a compound.
            let mut cd_values = [0 as c_uint; 256];
            let mut cd_count = cd_values.len();
            let mut name = [0 as std::ffi::c_char; 64];
            // SAFETY: pointers to what the function fills, with the sizes that it is told.
            let id = unsafe {
                (api.H5Pget_filter2)(
                    dcpl,
                    number,
                    &raw mut flags,
                    &raw mut cd_count,
                    cd_values.as_mut_ptr(),
                    name.len(),
                    name.as_mut_ptr(),
                    &raw mut config,
                )
            };
            let id = api.checked("H5Pget_filter2", id)?;
            // SAFETY: libhdf5 ends the name with zero within the given length; the last byte
            // is set here in case it did not.
            let name = unsafe {
                name[name.len() - 1] = 0;
                std::ffi::CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
            };
            let cd_values = cd_values[..cd_count.min(cd_values.len())].to_vec();
            Ok(StatedFilter { id, flags, cd_values, name })
        })
        .collect()
}
