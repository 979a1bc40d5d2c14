//! How long do `nc_get_vara` and `nc_get_vars` take, selection by selection?

use std::ffi::c_int;

use chunkwise_engine::{ReadError, WalkBounds, WalkRecord, time_walk};
use chunkwise_select::{SelectError, Selection, Walk};
use smallvec::SmallVec;

use crate::api::Api;
use crate::variable::Facts;
use crate::{NetCdfError, OpenVariable};

impl OpenVariable {
    /// Read the selections of `walk` with `nc_get_vara`, or with `nc_get_vars` where
    /// there is a stride, as [`time_walk`] says.
    ///
    /// Values come in the machine's byte order, and so do the bytes that the record's
    /// checksums are taken of.
    ///
    /// # Errors
    /// When a selection has another rank than the variable, reaches beyond it, or is
    /// made of several blocks or a union; what netCDF-C says otherwise.
    pub fn walk(&self, walk: &Walk, bounds: WalkBounds) -> Result<WalkRecord, NetCdfError> {
        let facts = self.facts();
        self.library().locked(|api| {
            time_walk(walk, facts.element_size, bounds, |selection, out| {
                let request = Request::new(selection, facts.shape.len())?;
                // SAFETY: the variable is open, `request` has its rank, and `out` has room
                // for the elements selected.
                unsafe { request.read(api, facts, out) }
            })
        })
    }
}

/// One value a dimension.
type PerDimension<T> = SmallVec<[T; 4]>;

/// A selection as netCDF-C wants it.
struct Request {
    start: PerDimension<usize>,
    count: PerDimension<usize>,
    /// None when all of each dimension's elements are neighbours.
    stride: Option<PerDimension<isize>>,
}

impl Request {
    fn new(selection: &Selection, rank: usize) -> Result<Self, NetCdfError> {
        let slab = match selection {
            Selection::Hyperslab(slab) => slab,
            Selection::Union { slabs, .. } => return Err(NetCdfError::Union(slabs.len())),
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

    /// Read.
    ///
    /// # Safety
    /// The variable must be open and of the request's rank, `out` must hold the elements
    /// asked for, and the lock must be held.
    unsafe fn read(&self, api: &Api, variable: &Facts, out: &mut [u8]) -> Result<(), NetCdfError> {
        if out.is_empty() {
            return Ok(());
        }
        let (group, id): (c_int, c_int) = (variable.group, variable.id);
        let (start, count) = (self.start.as_ptr(), self.count.as_ptr());
        let out = out.as_mut_ptr().cast();
        match &self.stride {
            None => {
                // SAFETY: the caller's contract; arrays of the rank's length.
                let status = unsafe { (api.nc_get_vara)(group, id, start, count, out) };
                api.checked("nc_get_vara", status)
            }
            Some(stride) => {
                let stride = stride.as_ptr();
                // SAFETY: as above.
                let status = unsafe { (api.nc_get_vars)(group, id, start, count, stride, out) };
                api.checked("nc_get_vars", status)
            }
        }
    }
}

/// A selection that does not fit.
fn refused(error: SelectError) -> NetCdfError {
    NetCdfError::Read(ReadError::from(error))
}
