//! Which calls of netCDF-C make a variable as it is requested?

use std::ffi::{CString, c_int};

use crate::api::{BIG_ENDIAN, CHUNKED, CONTIGUOUS, LITTLE_ENDIAN, NO_SUCH_FILTER};
use crate::new_variable::{DEFLATE, FLETCHER32, SHUFFLE, SZIP, joined};
use crate::request::Place;
use crate::writing::NewFile;
use crate::{ChunkCache, Filter, NetCdf, NetCdfError, NewVariable};

impl NewFile<'_> {
    /// Make the groups, the dimensions and the variable, and end the definitions.
    pub(crate) fn define(&self, library: &NetCdf, new: &NewVariable) -> Result<Place, NetCdfError> {
        let Self { calls, id: file, .. } = *self;
        let (groups, name) = new.names();
        let mut group = file;
        for part in groups {
            let part = text(part)?;
            let parent = group;
            // SAFETY: here and below, ids are those that the calls before gave, pointers
            // lead to arrays of the variable's rank or to room for what is given back, and
            // the lock is held.
            let status = unsafe { (calls.nc_def_grp)(parent, part.as_ptr(), &raw mut group) };
            self.defined("nc_def_grp", status)?;
        }

        // They lie in the variable's own group, where no name but its own is taken, and
        // its own would make it a coordinate variable.
        let mark = if name.starts_with("axis") { "_" } else { "" };
        let mut dimensions = Vec::new();
        for (axis, len) in sizes(&new.shape)?.into_iter().enumerate() {
            let dimension = text(&format!("{mark}axis{axis}"))?;
            let mut id = 0;
            // SAFETY: as above.
            let status = unsafe { (calls.nc_def_dim)(group, dimension.as_ptr(), len, &raw mut id) };
            self.defined("nc_def_dim", status)?;
            dimensions.push(id);
        }

        let (name, mut id) = (text(name)?, 0);
        let (nc_type, rank) = (new.number.nc_type(), dimensions.len() as c_int);
        let of = dimensions.as_ptr();
        // SAFETY: as above.
        let status =
            unsafe { (calls.nc_def_var)(group, name.as_ptr(), nc_type, rank, of, &raw mut id) };
        self.defined("nc_def_var", status)?;
        let variable = Place { group, id };
        self.define_storage(library, new, variable)?;

        // SAFETY: as above.
        let status = unsafe { (calls.nc_enddef)(file) };
        match self.written("nc_enddef", status) {
            // The system would take more: it is libhdf5 that does not take the definitions.
            Err(NetCdfError::Write { call, message, system: None }) => {
                let reason = format!(
                    "{call} failed: {message}; its libhdf5 does not take type, chunks or filters \
                     so, or a filter's plugin is made for another libhdf5"
                );
                return Err(NetCdfError::Refused { reason });
            }
            outcome => outcome?,
        }
        if let Some(ChunkCache { nbytes, nslots, w0 }) = new.cache {
            // Set before, a cache of 0 bytes would not be in force.
            // SAFETY: as above.
            let status =
                unsafe { (self.api.nc_set_var_chunk_cache)(group, id, nbytes, nslots, w0) };
            self.written("nc_set_var_chunk_cache", status)?;
        }
        Ok(variable)
    }

    /// Say how the variable is to be stored.
    fn define_storage(
        &self,
        library: &NetCdf,
        new: &NewVariable,
        variable: Place,
    ) -> Result<(), NetCdfError> {
        let calls = self.calls;
        let Place { group, id } = variable;
        if !new.shape.is_empty() && !new.format.is_netcdf3() {
            let chunk = new.chunk.as_deref().map(sizes).transpose()?;
            let (storage, chunk) = match &chunk {
                Some(chunk) => (CHUNKED, chunk.as_ptr()),
                None => (CONTIGUOUS, std::ptr::null()),
            };
            // SAFETY: as in `define`.
            let status = unsafe { (calls.nc_def_var_chunking)(group, id, storage, chunk) };
            self.defined("nc_def_var_chunking", status)?;
        }
        if !new.format.is_netcdf3() {
            let order = if new.big_endian { BIG_ENDIAN } else { LITTLE_ENDIAN };
            // SAFETY: as in `define`.
            let status = unsafe { (calls.nc_def_var_endian)(group, id, order) };
            self.defined("nc_def_var_endian", status)?;
        }
        if !new.fill {
            // SAFETY: as in `define`; without filling there is no value.
            let status = unsafe { (calls.nc_def_var_fill)(group, id, 1, std::ptr::null()) };
            self.defined("nc_def_var_fill", status)?;
        }
        for filter in &new.filters {
            self.define_filter(library, filter, variable)?;
        }
        if new.filters.len() > 1 { self.check_order(library, new, variable) } else { Ok(()) }
    }

    fn define_filter(
        &self,
        library: &NetCdf,
        filter: &Filter,
        variable: Place,
    ) -> Result<(), NetCdfError> {
        let calls = self.calls;
        let Place { group, id } = variable;
        // SAFETY: as in `define`; `options` are as many as is said.
        let (call, status) = unsafe {
            match (filter.id, filter.cd_values.as_slice()) {
                (SHUFFLE, _) => {
                    ("nc_def_var_deflate", (calls.nc_def_var_deflate)(group, id, 1, 0, 0))
                }
                // Level 0 it would leave out.
                (DEFLATE, &[level @ 1..=9]) => (
                    "nc_def_var_deflate",
                    (calls.nc_def_var_deflate)(group, id, 0, 1, level as c_int),
                ),
                (FLETCHER32, _) => {
                    ("nc_def_var_fletcher32", (calls.nc_def_var_fletcher32)(group, id, 1))
                }
                (SZIP, &[mask, pixels]) => {
                    let szip = library.szip.as_ref().map_err(Clone::clone)?;
                    let (mask, pixels) = (mask as c_int, pixels as c_int);
                    ("nc_def_var_szip", (szip.nc_def_var_szip)(group, id, mask, pixels))
                }
                (number, options) => {
                    let filters = library.filters.as_ref().map_err(Clone::clone)?;
                    let (len, options) = (options.len(), options.as_ptr());
                    let status = (filters.nc_def_var_filter)(group, id, number, len, options);
                    ("nc_def_var_filter", status)
                }
            }
        };
        if status == NO_SUCH_FILTER {
            let reason = format!(
                "its libhdf5 has no {filter}: put the folder of the plugin in HDF5_PLUGIN_PATH"
            );
            return Err(NetCdfError::Refused { reason });
        }
        self.defined(call, status)
    }

    /// Refuse filters that this version has put in another order, or has left out.
    fn check_order(
        &self,
        library: &NetCdf,
        new: &NewVariable,
        variable: Place,
    ) -> Result<(), NetCdfError> {
        let filters = library.filters.as_ref().map_err(Clone::clone)?;
        let Place { group, id } = variable;
        let ask = |count: &mut usize, ids: *mut u32| {
            // SAFETY: as in `define`; null, or room for as many as there are.
            let status = unsafe { (filters.nc_inq_var_filter_ids)(group, id, count, ids) };
            self.defined("nc_inq_var_filter_ids", status)
        };
        let mut count = 0;
        ask(&mut count, std::ptr::null_mut())?;
        let mut made = vec![0; count];
        ask(&mut count, made.as_mut_ptr())?;
        if made.iter().copied().eq(new.filters.iter().map(|filter| filter.id)) {
            return Ok(());
        }
        let made = made.into_iter().map(|id| Filter { id, cd_values: Vec::new() });
        let made: Vec<_> = made.collect();
        let (wanted, made) = (joined(&new.filters), joined(&made));
        let reason = format!("netCDF-C {} makes {made} of {wanted}", library.version());
        Err(NetCdfError::Refused { reason })
    }
}

fn text(name: &str) -> Result<CString, NetCdfError> {
    CString::new(name).map_err(|reason| NetCdfError::Refused { reason: reason.to_string() })
}

fn sizes(lens: &[u64]) -> Result<Vec<usize>, NetCdfError> {
    let sizes: Result<_, _> = lens.iter().map(|&len| usize::try_from(len)).collect();
    sizes.map_err(|_| NetCdfError::Refused { reason: format!("{lens:?} are too many elements") })
}
