//! How is a selection read or written with one call of netCDF-C?

use std::ffi::{c_int, c_void};

use chunkwise_engine::ReadError;
use chunkwise_select::{SelectError, Selection};
use smallvec::SmallVec;

use crate::NetCdfError;
use crate::api::{Api, Writing};

/// One value a dimension.
type PerDimension<T> = SmallVec<[T; 4]>;

/// A variable, by the ids of its group (the file's own for the root group) and its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) group: c_int,
    pub(crate) id: c_int,
}

/// A selection as netCDF-C wants it.
pub(crate) struct Request {
    start: PerDimension<usize>,
    count: PerDimension<usize>,
    /// None when all of each dimension's elements are neighbours.
    stride: Option<PerDimension<isize>>,
}

impl Request {
    /// # Errors
    /// When the selection has another rank, is made of several blocks, or is a union.
    pub(crate) fn new(selection: &Selection, rank: usize) -> Result<Self, NetCdfError> {
        let slab = match selection {
            Selection::Hyperslab(slab) => slab,
            Selection::Union { slabs, .. } => return Err(NetCdfError::Union(slabs.len())),
            Selection::Product(_) => return Err(NetCdfError::Product),
        };
        if slab.rank() != rank {
            return Err(refused(SelectError::Rank { selection: slab.rank(), dataset: rank }));
        }
        let too_large = |_| refused(SelectError::Overflow("elements in a dimension"));
        let (mut start, mut count) = (PerDimension::new(), PerDimension::new());
        let mut stride = PerDimension::new();
        let mut is_strided = false;
        for (dimension, axis) in slab.axes().iter().enumerate() {
            start.push(usize::try_from(axis.start()).map_err(too_large)?);
            count.push(usize::try_from(axis.len()).map_err(too_large)?);
            if axis.is_contiguous() {
                stride.push(1);
            } else if axis.block() == 1 {
                stride.push(isize::try_from(axis.stride()).map_err(too_large)?);
                is_strided = true;
            } else {
                let (count, block) = (axis.count(), axis.block());
                return Err(NetCdfError::Blocks { dimension, count, block });
            }
        }
        Ok(Self { start, count, stride: is_strided.then_some(stride) })
    }

    /// Read: the function called, and its status.
    ///
    /// # Safety
    /// The variable must be open and of the request's rank, `out` must have the size of
    /// the elements asked for, and the lock must be held.
    pub(crate) unsafe fn read(
        &self,
        api: &Api,
        variable: Place,
        out: &mut [u8],
    ) -> (&'static str, c_int) {
        if out.is_empty() {
            return ("nc_get_vara", 0);
        }
        let Place { group, id } = variable;
        let (start, count) = (self.start.as_ptr(), self.count.as_ptr());
        let out: *mut c_void = out.as_mut_ptr().cast();
        match &self.stride {
            // SAFETY: the caller's contract; arrays of the rank's length.
            None => ("nc_get_vara", unsafe { (api.nc_get_vara)(group, id, start, count, out) }),
            Some(stride) => {
                let stride = stride.as_ptr();
                // SAFETY: as above.
                let status = unsafe { (api.nc_get_vars)(group, id, start, count, stride, out) };
                ("nc_get_vars", status)
            }
        }
    }

    /// Write: the function called, and its status.
    ///
    /// # Safety
    /// As [`Request::read`], with `data` to be written, and the file open for it.
    pub(crate) unsafe fn write(
        &self,
        calls: &Writing,
        variable: Place,
        data: &[u8],
    ) -> (&'static str, c_int) {
        if data.is_empty() {
            return ("nc_put_vara", 0);
        }
        let Place { group, id } = variable;
        let (start, count) = (self.start.as_ptr(), self.count.as_ptr());
        let data: *const c_void = data.as_ptr().cast();
        match &self.stride {
            // SAFETY: the caller's contract; arrays of the rank's length.
            None => ("nc_put_vara", unsafe { (calls.nc_put_vara)(group, id, start, count, data) }),
            Some(stride) => {
                let stride = stride.as_ptr();
                // SAFETY: as above.
                let status = unsafe { (calls.nc_put_vars)(group, id, start, count, stride, data) };
                ("nc_put_vars", status)
            }
        }
    }
}

/// A selection that does not fit.
fn refused(error: SelectError) -> NetCdfError {
    NetCdfError::Read(ReadError::from(error))
}
