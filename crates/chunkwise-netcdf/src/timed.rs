//! How long do `nc_get_vara` and `nc_get_vars` take, selection by selection?

use crate::request::Request;
use crate::{NetCdfError, OpenVariable};
use chunkwise_measure::{Walk, WalkBounds, WalkRecord, time_walk};

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
                let (call, status) = unsafe { request.read(api, facts.place, out) };
                api.checked(call, status)
            })
        })
    }
}
