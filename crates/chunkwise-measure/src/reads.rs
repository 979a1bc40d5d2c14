//! How long does it take to read an open dataset selection by selection: by libhdf5 itself, or
//! by the engine?

use chunkwise_engine::{Dataset, ReadError};
use chunkwise_libhdf5::binding::{Api, DEFAULT, Handle, hid_t, holds_pointers};
use chunkwise_libhdf5::{BindError, Unsuited};
use chunkwise_select::Selection;

use crate::memory_space::MemorySpace;
use crate::timed::{Inspect, Lap, Stopwatch, WalkBounds, WalkRecord, time_parts};
use crate::{OpenDataset, Walk, WalkError};

impl OpenDataset {
    /// Read the selections of `walk` with `H5Dread`, as [`time_walk`] says.
    ///
    /// A program that reads blocks selects each in the file's dataspace and gives a
    /// memory space of its shape: both calls are timed with the read, as users pay them, and
    /// so is each call that adds a hyperslab to a union, read into memory of one dimension.
    /// The memory space is made once for each shape that differs from the last.
    ///
    /// # Errors
    /// What libhdf5 says.
    pub fn walk(
        &self,
        walk: &Walk,
        bounds: WalkBounds,
        inspect: Inspect<'_>,
    ) -> Result<WalkRecord, WalkError> {
        self.library().locked(|api| {
            // SAFETY: throughout, live handles of this library, and the lock is held.
            unsafe {
                let access = Access::of(self, api, self.id())?;
                let mut memory = MemorySpace::new(api);
                time_parts(walk, access.element_size, bounds, inspect, |selection, out| {
                    access.read(self, api, selection, &mut memory, out)
                })
            }
        })
    }

    /// Read them by the engine; what it does not read, libhdf5 does, and the reason why is
    /// given.
    ///
    /// Asking for the chunk index is a part of the first operation.
    ///
    /// # Errors
    /// What libhdf5 or the engine says.
    pub fn engine_walk(
        &self,
        walk: &Walk,
        bounds: WalkBounds,
        inspect: Inspect<'_>,
    ) -> Result<(WalkRecord, Option<Unsuited>), WalkError> {
        let mut watch = Stopwatch::start();
        let engine = match self.describe() {
            Ok(engine) => engine,
            Err(reason) => return Ok((self.walk(walk, bounds, inspect)?, Some(reason))),
        };
        let index_s = watch.lap().as_secs_f64();
        let size = engine.element_size();
        let mut record = time_parts::<WalkError>(walk, size, bounds, inspect, |selection, out| {
            Ok(read_by_engine(&engine, selection, out)?)
        })?;
        record.elapsed_s += index_s;
        if let Some(first) = record.latencies_s.first_mut() {
            *first += index_s;
        }
        Ok((record, None))
    }
}

/// What each read or write of a dataset needs, found out once.
pub(crate) struct Access {
    pub(crate) space: Handle,
    transfer: Option<Handle>,
    rank: usize,
    pub(crate) element_size: usize,
}

impl Access {
    /// # Safety
    /// `dataset` must be a live handle of the library; the lock must be held.
    pub(crate) unsafe fn of(
        open: &OpenDataset,
        api: &Api,
        dataset: hid_t,
    ) -> Result<Self, WalkError> {
        // SAFETY: live handles, by the caller's contract and as `open` holds them.
        unsafe {
            if holds_pointers(api, open.datatype())? {
                let message = "elements of variable length cannot be walked".to_string();
                return Err(WalkError::Words(message));
            }
            let space = (api.H5Dget_space)(dataset);
            let space = Handle::new(api, "H5Dget_space", space, api.H5Sclose)?;
            let rank = (api.H5Sget_simple_extent_ndims)(space.id);
            let rank = api.checked("H5Sget_simple_extent_ndims", rank)?.unsigned_abs() as usize;
            let element_size = (api.H5Tget_size)(open.datatype());
            Ok(Self { space, transfer: open.properties().transfer(api)?, rank, element_size })
        }
    }

    /// The transfer property list.
    pub(crate) fn list(&self) -> hid_t {
        self.transfer.as_ref().map_or(DEFAULT, |list| list.id)
    }

    /// Read a selection with `H5Dread`.
    ///
    /// Selecting is told apart for unions only: a hyperslab is selected faster than the clock
    /// is read.
    ///
    /// # Safety
    /// `open` must be live handles of the library, and what this was made of; the lock held.
    pub(crate) unsafe fn read(
        &self,
        open: &OpenDataset,
        api: &Api,
        selection: &Selection,
        memory: &mut MemorySpace<'_>,
        out: &mut [u8],
    ) -> Result<Lap, WalkError> {
        let mut watch = Stopwatch::start();
        let memory = self.select(selection, memory)?;
        let select = matches!(selection, Selection::Union { .. }).then(|| watch.lap());
        // SAFETY: the caller's contract; the walk gives a buffer of the selection's size.
        let status = unsafe {
            (api.H5Dread)(
                open.id(),
                open.datatype(),
                memory,
                self.space.id,
                self.list(),
                out.as_mut_ptr().cast(),
            )
        };
        api.checked("H5Dread", status)?;
        Ok(Lap { open: None, select, read: watch.lap() })
    }

    /// Select in the file's space, and give a memory space of the selection's shape.
    pub(crate) fn select(
        &self,
        selection: &Selection,
        memory: &mut MemorySpace<'_>,
    ) -> Result<hid_t, BindError> {
        if self.rank != selection.rank() {
            let message = format!("{} dimensions do not fit {}", selection.rank(), self.rank);
            return Err(BindError::Call { call: "H5Sselect_hyperslab", message });
        }
        // SAFETY: a live dataspace of that rank; the lock is held as long as this lives.
        unsafe { memory.select(self.space.id, selection) }
    }
}

/// Read a selection by the engine; putting a union together is timed apart, as of libhdf5.
///
/// # Errors
/// As [`Dataset::read`].
pub(crate) fn read_by_engine(
    engine: &Dataset,
    selection: &Selection,
    out: &mut [u8],
) -> Result<Lap, ReadError> {
    let mut watch = Stopwatch::start();
    let anew = selection.anew()?;
    let select = matches!(selection, Selection::Union { .. }).then(|| watch.lap());
    engine.read(&anew, out)?;
    Ok(Lap { open: None, select, read: watch.lap() })
}
