//! How does libhdf5 itself read or write a box of a dataset, in the stored type?

use std::sync::Arc;

use chunkwise_engine::{CommitError, Committer, EncodedChunk};
use chunkwise_select::Dims;

use crate::api::{Api, DEFAULT, hid_t};
use crate::handle::Handle;
use crate::{BindError, Library, flush_or_abandon};

/// Boxes of a dataset through `H5Dread` and `H5Dwrite`, without any conversion.
#[derive(Debug)]
pub struct StoredBoxes {
    library: Arc<Library>,
    dataset: hid_t,
    element_size: usize,
}

impl StoredBoxes {
    /// For `dataset`, whose stored elements have `element_size` bytes and point nowhere.
    ///
    /// # Safety
    /// A live handle of this library, for as long as this exists, with such elements.
    pub unsafe fn new(library: Arc<Library>, dataset: hid_t, element_size: usize) -> Self {
        Self { library, dataset, element_size }
    }

    /// Read the elements of `shape` from `origin` on, in C order.
    ///
    /// # Errors
    /// What libhdf5 says, also of a box that does not fit.
    pub fn read(&self, origin: &[u64], shape: &[u64], out: &mut [u8]) -> Result<(), BindError> {
        self.check("H5Dread", origin, shape, out.len())?;
        self.library.locked(|api| {
            // SAFETY: live handles, a box of as many elements as the buffer holds.
            self.with_spaces(api, origin, shape, |datatype, memory, space| unsafe {
                let start = out.as_mut_ptr().cast();
                let status = (api.H5Dread)(self.dataset, datatype, memory, space, DEFAULT, start);
                api.checked("H5Dread", status).map(drop)
            })
        })
    }

    /// Write the elements of `shape` from `origin` on, given in C order.
    ///
    /// # Errors
    /// What libhdf5 says, also of a box that does not fit.
    pub fn write(&self, origin: &[u64], shape: &[u64], data: &[u8]) -> Result<(), BindError> {
        self.check("H5Dwrite", origin, shape, data.len())?;
        self.library.locked(|api| {
            // SAFETY: live handles, a box of as many elements as the buffer holds.
            self.with_spaces(api, origin, shape, |datatype, memory, space| unsafe {
                let start = data.as_ptr().cast();
                let status = (api.H5Dwrite)(self.dataset, datatype, memory, space, DEFAULT, start);
                let written = api.checked("H5Dwrite", status);
                let flushed = flush_or_abandon(api, self.dataset);
                written.map(drop).and(flushed)
            })
        })
    }

    /// Whether a box is of this many bytes.
    fn check(
        &self,
        call: &'static str,
        origin: &[u64],
        shape: &[u64],
        nbytes: usize,
    ) -> Result<(), BindError> {
        let size = self.element_size as u64;
        let wanted = shape.iter().try_fold(size, |n, &d| n.checked_mul(d));
        if origin.len() == shape.len() && wanted == Some(nbytes as u64) {
            return Ok(());
        }
        let message = format!("a box of {shape:?} elements of {size} bytes is not {nbytes} bytes");
        Err(BindError::Call { call, message })
    }

    /// Call `work` with the stored type, a memory space and the box selected.
    fn with_spaces(
        &self,
        api: &Api,
        origin: &[u64],
        shape: &[u64],
        work: impl FnOnce(hid_t, hid_t, hid_t) -> Result<(), BindError>,
    ) -> Result<(), BindError> {
        const SELECT_SET: i32 = 0;
        // SAFETY: a live dataset, by the contract of `new`; the lock is held; libhdf5 refuses
        // a box of another rank than the dataset's by what it counts in the memory space, and
        // the arrays are of the rank that the dataset's own space has.
        unsafe {
            let datatype = (api.H5Dget_type)(self.dataset);
            let datatype = Handle::new(api, "H5Dget_type", datatype, api.H5Tclose)?;
            if shape.is_empty() {
                return work(datatype.id, DEFAULT, DEFAULT);
            }
            let space = (api.H5Dget_space)(self.dataset);
            let space = Handle::new(api, "H5Dget_space", space, api.H5Sclose)?;
            let rank = (api.H5Sget_simple_extent_ndims)(space.id);
            if usize::try_from(rank).ok() != Some(shape.len()) {
                let message = format!("{} dimensions do not fit {rank}", shape.len());
                return Err(BindError::Call { call: "H5Sselect_hyperslab", message });
            }
            let ones: Dims = shape.iter().map(|_| 1).collect();
            let status = (api.H5Sselect_hyperslab)(
                space.id,
                SELECT_SET,
                origin.as_ptr(),
                ones.as_ptr(),
                ones.as_ptr(),
                shape.as_ptr(),
            );
            api.checked("H5Sselect_hyperslab", status)?;
            let memory = (api.H5Screate_simple)(rank, shape.as_ptr(), std::ptr::null());
            let memory = Handle::new(api, "H5Screate_simple", memory, api.H5Sclose)?;
            work(datatype.id, memory.id, space.id)
        }
    }
}

/// Takes boxes of raw elements, for layouts and filters that libhdf5 has to write.
///
/// What it is given as a chunk's bytes are the elements that lie within the dataset, from the
/// chunk's origin on, unfiltered.
#[derive(Debug)]
pub struct BoxCommitter {
    boxes: StoredBoxes,
    shape: Dims,
    cell: Dims,
}

impl BoxCommitter {
    /// For boxes of `cell` of a dataset of `shape`, smaller at the edges.
    pub fn new(boxes: StoredBoxes, shape: &[u64], cell: &[u64]) -> Self {
        Self { boxes, shape: shape.into(), cell: cell.into() }
    }
}

impl Committer for BoxCommitter {
    fn commit(&mut self, chunks: &[EncodedChunk]) -> Result<(), CommitError> {
        for chunk in chunks {
            let origin = &chunk.chunk_origin;
            let room = self.shape.iter().zip(origin).map(|(&n, &at)| n.saturating_sub(at));
            let shape: Dims = room.zip(&self.cell).map(|(room, &len)| room.min(len)).collect();
            self.boxes.write(origin, &shape, &chunk.bytes).map_err(|error| CommitError {
                chunk_origin: origin.clone(),
                stored_nbytes: chunk.bytes.len() as u64,
                message: error.to_string(),
            })?;
        }
        Ok(())
    }
}
