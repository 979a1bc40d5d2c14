//! How long does libhdf5 itself take to read, or to write, an array selection by selection?

use std::ffi::c_int;
use std::fs::File;
use std::path::Path;
use std::time::Instant;

use chunkwise_engine::{
    Inspect, Lap, ReadError, Stopwatch, WalkBounds, WalkRecord, WriteRecord, time_parts,
    time_writes,
};
use chunkwise_select::{Selection, Walk};

use crate::api::{Api, DEFAULT, hid_t};
use crate::dataset::{Handle, holds_pointers, shape_of};
use crate::file::text;
use crate::properties::{ChunkCacheInForce, chunk_cache_of, list};
use crate::selecting::MemorySpace;
use crate::{BindError, OpenDataset, Unsuited};

/// Why a walk stopped.
#[derive(Debug)]
pub(crate) enum WalkError {
    Engine(ReadError),
    Library(BindError),
    Words(String),
}

impl From<ReadError> for WalkError {
    fn from(error: ReadError) -> Self {
        Self::Engine(error)
    }
}

impl From<BindError> for WalkError {
    fn from(error: BindError) -> Self {
        Self::Library(error)
    }
}

impl From<Unsuited> for WalkError {
    fn from(error: Unsuited) -> Self {
        Self::Words(error.to_string())
    }
}

impl std::fmt::Display for WalkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Engine(error) => error.fmt(f),
            Self::Library(error) => error.fmt(f),
            Self::Words(error) => f.write_str(error),
        }
    }
}

impl OpenDataset {
    /// Read the selections of `walk` with `H5Dread`, as [`time_walk`] says.
    ///
    /// A program that reads blocks selects each in the file's dataspace and gives a
    /// memory space of its shape: both calls are timed with the read, as users pay them, and
    /// so is each call that adds a hyperslab to a union, read into memory of one dimension.
    /// The memory space is made once for each shape that differs from the last.
    ///
    /// # Errors
    /// What libhdf5 says, in words.
    pub fn walk(
        &self,
        walk: &Walk,
        bounds: WalkBounds,
        inspect: Inspect<'_>,
    ) -> Result<WalkRecord, String> {
        let outcome = self.library().locked(|api| {
            // SAFETY: throughout, live handles of this library, and the lock is held.
            unsafe {
                let access = Access::of(self, api, self.id())?;
                let mut memory = MemorySpace::new(api);
                time_parts(walk, access.element_size, bounds, inspect, |selection, out| {
                    access.read(self, api, selection, &mut memory, out)
                })
            }
        });
        outcome.map_err(|error: WalkError| error.to_string())
    }

    /// Write the selections of `walk` with `H5Dwrite`, as [`time_writes`] says, to a dataset
    /// like this one (its type, shape and creation properties) in the new file at `path`.
    ///
    /// `data` are all elements in memory in C order.  The file must not be there; it is
    /// removed when anything fails.
    ///
    /// # Errors
    /// What libhdf5 or the system says, in words.
    pub fn write_walk(
        &self,
        path: &str,
        name: &str,
        data: &[u8],
        walk: &Walk,
        bounds: WalkBounds,
    ) -> Result<(WriteRecord, ChunkCacheInForce), String> {
        if Path::new(path).exists() {
            return Err(format!("{path} is there already"));
        }
        let outcome = self.library().locked(|api| {
            // SAFETY: live handles of this library, and the lock is held.
            unsafe { self.write_locked(api, path, name, data, walk, bounds) }
        });
        outcome.map_err(|error| {
            // Half a file is of no use to anyone; that it was never made is no error.
            let _ = std::fs::remove_file(path);
            error.to_string()
        })
    }

    /// # Safety
    /// The lock must be held.
    unsafe fn write_locked(
        &self,
        api: &Api,
        path: &str,
        name: &str,
        data: &[u8],
        walk: &Walk,
        bounds: WalkBounds,
    ) -> Result<(WriteRecord, ChunkCacheInForce), WalkError> {
        const EXCLUSIVE: u32 = 4; // H5F_ACC_EXCL
        const GLOBAL: c_int = 1; // H5F_SCOPE_GLOBAL
        let (c_path, name) = (text("H5Fcreate", path)?, text("H5Dcreate2", name)?);
        let properties = self.properties();
        // SAFETY: throughout, live handles of this library, valid strings, and the lock is
        // held; each handle is checked and closed once.
        unsafe {
            let like = self.id();
            let (shape, _) = shape_of(api, like)?;
            let space = Handle::new(api, "H5Dget_space", (api.H5Dget_space)(like), api.H5Sclose)?;
            let stored = Handle::new(api, "H5Dget_type", (api.H5Dget_type)(like), api.H5Tclose)?;
            // A copy is not bound to its file, as a committed type is.
            let stored = Handle::new(api, "H5Tcopy", (api.H5Tcopy)(stored.id), api.H5Tclose)?;
            let dcpl = (api.H5Dget_create_plist)(like);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            properties.set_dataset_creation(api, dcpl.id)?;
            let fcpl = list(api, api.H5P_CLS_FILE_CREATE_ID_g)?;
            properties.set_file_creation(api, fcpl.id)?;
            let fapl = list(api, api.H5P_CLS_FILE_ACCESS_ID_g)?;
            properties.set_file_access(api, self.library().version(), fapl.id)?;
            let dapl = list(api, api.H5P_CLS_DATASET_ACCESS_ID_g)?;
            properties.set_dataset_access(api, dapl.id)?;
            let lcpl = list(api, api.H5P_CLS_LINK_CREATE_ID_g)?;
            let status = (api.H5Pset_create_intermediate_group)(lcpl.id, 1);
            api.checked("H5Pset_create_intermediate_group", status)?;

            let begun = Instant::now();
            let file = (api.H5Fcreate)(c_path.as_ptr(), EXCLUSIVE, fcpl.id, fapl.id);
            let file = Handle::new(api, "H5Fcreate", file, api.H5Fclose)?;
            let made = (api.H5Dcreate2)(
                file.id,
                name.as_ptr(),
                stored.id,
                space.id,
                lcpl.id,
                dcpl.id,
                dapl.id,
            );
            let made = Handle::new(api, "H5Dcreate2", made, api.H5Dclose)?;
            let create_s = begun.elapsed().as_secs_f64();

            let cache = chunk_cache_of(api, made.id)?;
            let access = Access::of(self, api, made.id)?;
            let mut memory = MemorySpace::new(api);
            let record = time_writes(
                walk,
                access.element_size,
                &shape,
                data,
                bounds,
                |selection, elements| -> Result<(), WalkError> {
                    let memory = access.select(selection, &mut memory)?;
                    let (space, list) = (access.space.id, access.list());
                    let status = (api.H5Dwrite)(
                        made.id,
                        self.datatype(),
                        memory,
                        space,
                        list,
                        elements.as_ptr().cast(),
                    );
                    api.checked("H5Dwrite", status)?;
                    Ok(())
                },
            )?;

            let begun = Instant::now();
            api.checked("H5Fflush", (api.H5Fflush)(file.id, GLOBAL))?;
            let flush_s = begun.elapsed().as_secs_f64();
            // Handles that stay open would keep the file open.
            drop(access);
            let begun = Instant::now();
            made.close("H5Dclose", api)?;
            file.close("H5Fclose", api)?;
            let close_s = begun.elapsed().as_secs_f64();
            let begun = Instant::now();
            File::open(path)
                .and_then(|file| file.sync_all())
                .map_err(|error| WalkError::Words(format!("{path}: {error}")))?;
            let sync_s = begun.elapsed().as_secs_f64();
            Ok((WriteRecord { walk: record, create_s, flush_s, close_s, sync_s }, cache))
        }
    }
}

/// What each read or write of a dataset needs, found out once.
pub(crate) struct Access {
    space: Handle,
    transfer: Option<Handle>,
    rank: usize,
    element_size: usize,
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
    fn list(&self) -> hid_t {
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
    fn select(
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
