//! What does netCDF-C know of a variable, before any of it is read?

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::Arc;

use chunkwise_select::Dims;

use crate::api::{Api, FIRST_PLAIN_TYPE, LAST_PLAIN_TYPE, LONGEST_NAME, READ_ONLY};
use crate::request::Place;
use crate::{NetCdf, NetCdfError};

/// What netCDF-C puts before the HDF5 name of a variable that is called as a dimension
/// is but holds no coordinates; its own names are without it.
const NOT_COORDINATES: &str = "_nc4_non_coord_";

/// The chunk cache of a variable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkCache {
    /// Bytes of decoded chunks.
    pub nbytes: usize,
    /// Slots of the hash table.
    pub nslots: usize,
    /// Preemption of chunks that were read in full, from 0 to 1.
    pub w0: f32,
}

/// A file open for reading; closed when dropped.
#[derive(Debug)]
struct OpenFile {
    library: Arc<NetCdf>,
    id: c_int,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // SAFETY: the id of a file of this library, not used any more.  That a file open
        // for reading does not close well is of no use to anyone.
        self.library.locked(|api| unsafe { (api.nc_close)(self.id) });
    }
}

/// A variable of a file that it keeps open for reading; closed when dropped.
#[derive(Debug)]
pub struct OpenVariable {
    file: OpenFile,
    facts: Facts,
}

/// What is found out when a variable is opened.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) place: Place,
    pub(crate) shape: Dims,
    pub(crate) element_size: usize,
    cache: Option<ChunkCache>,
}

impl NetCdf {
    /// Open `variable` of `file` for reading, with this chunk cache or netCDF-C's own.
    ///
    /// `variable` is an HDF5 path, from the root group with or without its slash:
    /// `/group/name`, `name`.
    ///
    /// Not every HDF5 file is safe with netCDF-C.  4.9.0 and 4.9.3 crash in `nc_open` when a
    /// `DIMENSION_LIST` is an array of references rather than of lists of them, and
    /// corrupt memory when asked about fixed-length strings that have a fill value.  Open
    /// files in a process that can be spared, and where the type can be known otherwise,
    /// do not come here with strings.
    ///
    /// # Errors
    /// When netCDF-C does not open the file or find the variable, when the elements are
    /// strings or of a type that the file defines, and when a cache is given that cannot
    /// be set: netCDF-3 files have none.
    pub fn open_variable(
        self: &Arc<Self>,
        file: &str,
        variable: &str,
        cache: Option<ChunkCache>,
    ) -> Result<OpenVariable, NetCdfError> {
        let id = self.locked(|api| open_file(api, file))?;
        // From here on, the file is closed when anything fails.
        let open = OpenFile { library: Arc::clone(self), id };
        // SAFETY: a file of this library that is open.
        let facts = self.locked(|api| unsafe { look_up(api, id, file, variable, cache) })?;
        Ok(OpenVariable { file: open, facts })
    }
}

impl OpenVariable {
    /// Elements in each dimension, slowest first.
    ///
    /// The lengths of the variable's dimensions.  Along an unlimited dimension the HDF5
    /// dataset may be shorter: netCDF-C gives fill values beyond its end.
    pub fn shape(&self) -> &[u64] {
        &self.facts.shape
    }

    /// Bytes of an element in memory.
    pub fn element_size(&self) -> usize {
        self.facts.element_size
    }

    /// The chunk cache in force, as netCDF-C gives it; None for netCDF-3 files.
    pub fn chunk_cache(&self) -> Option<ChunkCache> {
        self.facts.cache
    }

    pub(crate) fn library(&self) -> &NetCdf {
        &self.file.library
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// Open a file for reading.
pub(crate) fn open_file(api: &Api, file: &str) -> Result<c_int, NetCdfError> {
    let error = |message| NetCdfError::File { file: file.to_string(), message };
    let path = CString::new(file).map_err(|reason| error(reason.to_string()))?;
    let mut id = 0;
    // SAFETY: a valid string and pointer.
    let status = unsafe { (api.nc_open)(path.as_ptr(), READ_ONLY, &raw mut id) };
    api.outcome(status).map_err(error)?;
    Ok(id)
}

/// Find a variable, and find out about it.
///
/// # Safety
/// `file_id` must be a file that is open, and the lock must be held.
unsafe fn look_up(
    api: &Api,
    file_id: c_int,
    file: &str,
    variable: &str,
    cache: Option<ChunkCache>,
) -> Result<Facts, NetCdfError> {
    // SAFETY: throughout, the file is open by the caller's contract, ids are those that
    // the calls before gave, and pointers lead to room for what each call writes.
    unsafe {
        let (group, id) = find(api, file_id, variable).map_err(|message| {
            let (file, variable) = (file.to_string(), variable.to_string());
            NetCdfError::Variable { file, variable, message }
        })?;

        let mut type_id = 0;
        api.checked("nc_inq_vartype", (api.nc_inq_vartype)(group, id, &raw mut type_id))?;
        let mut type_name: [c_char; LONGEST_NAME + 1] = [0; LONGEST_NAME + 1];
        let mut element_size = 0;
        let status =
            (api.nc_inq_type)(group, type_id, type_name.as_mut_ptr(), &raw mut element_size);
        api.checked("nc_inq_type", status)?;
        if !(FIRST_PLAIN_TYPE..=LAST_PLAIN_TYPE).contains(&type_id) {
            let type_name = CStr::from_ptr(type_name.as_ptr()).to_string_lossy().into_owned();
            let (file, variable) = (file.to_string(), variable.to_string());
            return Err(NetCdfError::Type { file, variable, type_name });
        }

        let mut rank = 0;
        api.checked("nc_inq_varndims", (api.nc_inq_varndims)(group, id, &raw mut rank))?;
        let mut dimensions = vec![0; usize::try_from(rank).unwrap_or(0)];
        let status = (api.nc_inq_vardimid)(group, id, dimensions.as_mut_ptr());
        api.checked("nc_inq_vardimid", status)?;
        let mut shape = Dims::new();
        for dimension in dimensions {
            let mut len = 0;
            api.checked("nc_inq_dimlen", (api.nc_inq_dimlen)(group, dimension, &raw mut len))?;
            shape.push(len as u64);
        }

        if let Some(ChunkCache { nbytes, nslots, w0 }) = cache {
            let status = (api.nc_set_var_chunk_cache)(group, id, nbytes, nslots, w0);
            api.checked("nc_set_var_chunk_cache", status)?;
        }
        let place = Place { group, id };
        Ok(Facts { place, shape, element_size, cache: cache_of(api, place) })
    }
}

/// The chunk cache of a variable; None in a netCDF-3 file.
///
/// # Safety
/// The variable's file must be open, and the lock must be held.
pub(crate) unsafe fn cache_of(api: &Api, variable: Place) -> Option<ChunkCache> {
    let mut found = ChunkCache { nbytes: 0, nslots: 0, w0: 0.0 };
    let ChunkCache { nbytes, nslots, w0 } = &mut found;
    // SAFETY: the caller's contract; pointers to what the call writes.
    let status =
        unsafe { (api.nc_get_var_chunk_cache)(variable.group, variable.id, nbytes, nslots, w0) };
    // The one way to fail here is a file without chunks.
    api.outcome(status).is_ok().then_some(found)
}

/// The ids of a variable's group and of the variable itself, or why there are none.
///
/// # Safety
/// As [`look_up`].
unsafe fn find(api: &Api, file_id: c_int, variable: &str) -> Result<(c_int, c_int), String> {
    let text = |part: &str| CString::new(part).map_err(|reason| reason.to_string());
    let (path, name) = variable.rsplit_once('/').unwrap_or(("", variable));
    let path = path.trim_matches('/');
    let mut group = file_id;
    if !path.is_empty() {
        let path = text(path)?;
        // SAFETY: the caller's contract; a valid string and pointer.
        api.outcome(unsafe { (api.nc_inq_grp_full_ncid)(file_id, path.as_ptr(), &raw mut group) })?;
    }
    let name = text(name.strip_prefix(NOT_COORDINATES).unwrap_or(name))?;
    let mut id = 0;
    // SAFETY: as above.
    api.outcome(unsafe { (api.nc_inq_varid)(group, name.as_ptr(), &raw mut id) })?;
    Ok((group, id))
}
