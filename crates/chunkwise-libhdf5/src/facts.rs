//! What does a dataset say of itself: type, shape, fill value, chunks, filters?

use std::ffi::{c_int, c_uint};

use chunkwise_metadata::readable::Fill;
use chunkwise_select::{Dims, MAX_RANK};

use crate::api::{Api, hid_t, hsize_t};
use crate::error::because;
use crate::handle::Handle;
use crate::{BindError, Library, Unsuited};

/// A filter's number, flags and client data.
pub type StoredFilter = (c_int, u32, Vec<u32>);

/// A dataset as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetFacts {
    /// Elements in each dimension, slowest first; empty for a scalar, None without any
    /// element at all (a null dataspace).
    pub shape: Option<Dims>,
    /// Shape of a chunk; None for other layouts.
    pub chunk: Option<Dims>,
    /// Filters in pipeline order.
    pub filters: Vec<StoredFilter>,
    /// Chunks that reach beyond the dataset's edge are stored without filters.
    pub unfiltered_partial_chunks: bool,
    /// Bytes of a stored element.
    pub element_size: usize,
    /// The bytes of an element that was never written; None where it may be anything.
    pub fill: Option<Vec<u8>>,
    /// Stored bytes point elsewhere in the file: variable length, references.
    pub holds_pointers: bool,
}

/// The facts of the dataset `dataset`.
///
/// # Errors
/// When a call fails.
///
/// # Safety
/// A live handle of this library.
pub unsafe fn facts_of(library: &Library, dataset: hid_t) -> Result<DatasetFacts, Unsuited> {
    const NULL: c_int = 2; // H5S_NULL
    const SCALAR: c_int = 0; // H5S_SCALAR
    const CHUNKED: c_int = 2; // H5D_CHUNKED
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let space = (api.H5Dget_space)(dataset);
            let space = Handle::new(api, "H5Dget_space", space, api.H5Sclose)?;
            let shape = match (api.H5Sget_simple_extent_type)(space.id) {
                NULL => None,
                SCALAR => Some(Dims::new()),
                _ => Some(shape_of(api, dataset)?.0),
            };
            let datatype =
                Handle::new(api, "H5Dget_type", (api.H5Dget_type)(dataset), api.H5Tclose)?;
            let element_size = match (api.H5Tget_size)(datatype.id) {
                0 => return Err(api.failed("H5Tget_size").into()),
                size => size,
            };
            let holds_pointers = holds_pointers(api, datatype.id)?;
            let dcpl = (api.H5Dget_create_plist)(dataset);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            let fill = if holds_pointers {
                None
            } else {
                fill_of(api, dcpl.id, datatype.id, element_size)?.value
            };
            let mut facts = DatasetFacts {
                shape,
                chunk: None,
                filters: Vec::new(),
                unfiltered_partial_chunks: false,
                element_size,
                fill,
                holds_pointers,
            };
            let rank = facts.shape.as_ref().map_or(0, |shape| shape.len());
            if rank > 0 && (api.H5Pget_layout)(dcpl.id) == CHUNKED {
                let options = chunk_options(api, dcpl.id, rank)?;
                let filters = filters_of(api, dcpl.id, options.filters)?;
                let stated = |filter: StatedFilter| (filter.id, filter.flags, filter.cd_values);
                facts.filters = filters.into_iter().map(stated).collect();
                facts.unfiltered_partial_chunks = options.unfiltered_partial_chunks;
                facts.chunk = Some(options.chunk);
            }
            Ok(facts)
        }
    })
}

/// Whether two datasets store elements of the same type.
///
/// # Errors
/// When a call fails.
///
/// # Safety
/// Two live handles of this library.
pub unsafe fn same_stored_type(library: &Library, a: hid_t, b: hid_t) -> Result<bool, Unsuited> {
    library.locked(|api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let a = Handle::new(api, "H5Dget_type", (api.H5Dget_type)(a), api.H5Tclose)?;
            let b = Handle::new(api, "H5Dget_type", (api.H5Dget_type)(b), api.H5Tclose)?;
            Ok(api.checked("H5Tequal", (api.H5Tequal)(a.id, b.id))? > 0)
        }
    })
}

/// Whether a type is, or contains, one whose stored bytes point elsewhere.
///
/// # Errors
/// When a call fails.
///
/// # Safety
/// A live type of this library, with its lock held.
pub unsafe fn holds_pointers(api: &Api, datatype: hid_t) -> Result<bool, BindError> {
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
///
/// # Errors
/// The reason why the engine does not read it: no dimensions, or too many; or a call that failed.
///
/// # Safety
/// A live dataset of this library, with its lock held.
pub unsafe fn shape_of(api: &Api, dataset: hid_t) -> Result<(Dims, Dims), Unsuited> {
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

/// What an element that was never written reads as.
pub(crate) unsafe fn fill_of(
    api: &Api,
    dcpl: hid_t,
    memory_type: hid_t,
    size: usize,
) -> Result<Fill, Unsuited> {
    const UNDEFINED: c_int = 0;
    let (mut defined, mut time): (c_int, c_int) = (0, 0);
    // SAFETY: valid pointers, and room for one element of the memory type, whose size is
    // the stored type's (they are equal).
    unsafe {
        let status = (api.H5Pfill_value_defined)(dcpl, &raw mut defined);
        api.checked("H5Pfill_value_defined", status)?;
        api.checked("H5Pget_fill_time", (api.H5Pget_fill_time)(dcpl, &raw mut time))?;
        let is_defined = defined != UNDEFINED;
        Fill::of(time.unsigned_abs(), is_defined, || {
            let mut fill = vec![0u8; size];
            if is_defined {
                let status = (api.H5Pget_fill_value)(dcpl, memory_type, fill.as_mut_ptr().cast());
                api.checked("H5Pget_fill_value", status)?;
            }
            Ok(fill)
        })
    }
}

/// How a dataset is chunked.
pub struct Chunking {
    /// Shape of a chunk.
    pub chunk: Dims,
    /// Number of filters.
    pub filters: u32,
    /// Whether chunks that reach beyond the shape are stored without filters.
    pub unfiltered_partial_chunks: bool,
}

/// How a dataset is chunked, as its creation properties say.
///
/// # Errors
/// When a call fails, or its chunks do not have `rank` dimensions.
///
/// # Safety
/// A live property list of a chunked dataset of `rank` dimensions; the lock must be held.
pub unsafe fn chunk_options(api: &Api, dcpl: hid_t, rank: usize) -> Result<Chunking, Unsuited> {
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

/// A filter as a dataset states it.
pub struct StatedFilter {
    /// HDF5's number for it.
    pub id: c_int,
    /// `H5Z_FLAG_OPTIONAL` and the like.
    pub flags: c_uint,
    /// Its client data.
    pub cd_values: Vec<u32>,
    /// What it calls itself; may be empty.
    name: String,
}

impl StatedFilter {
    /// For messages.
    pub fn label(&self) -> String {
        let named = if self.name.is_empty() { String::new() } else { format!(" ({})", self.name) };
        format!("filter {}{named}", self.id)
    }
}

/// The first `count` filters of a property list, in pipeline order.
///
/// # Errors
/// When a call fails.
///
/// # Safety
/// A live property list of a chunked dataset; the lock must be held.
pub unsafe fn filters_of(
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
            // SAFETY: pointers to what the function fills, with the sizes that it gets.
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
