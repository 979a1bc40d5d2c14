//! How long does it take to write an array, selection by selection, to a dataset like another
//! one: by libhdf5 itself, or by the engine through libhdf5?
//!
//! Both write to the same new dataset, and are timed in the same phases.

use std::ffi::c_int;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use chunkwise_codec::Effort;
use chunkwise_engine::platform::path_bytes;
use chunkwise_engine::{DatasetWriter, WriteStats};
use chunkwise_libhdf5::binding::{Api, Handle, hid_t, list, shape_of};
use chunkwise_libhdf5::{Unsuited, describe_for_writing};
use chunkwise_select::Selection;

use crate::memory_space::MemorySpace;
use crate::open_dataset::text;
use crate::properties::{ChunkCacheInForce, chunk_cache_of};
use crate::reads::Access;
use crate::timed::{WalkBounds, WalkRecord, WriteRecord, time_writes};
use crate::{OpenDataset, Walk, WalkError};

/// What is written, and where to.
#[derive(Debug, Clone, Copy)]
pub struct WriteRequest<'a> {
    /// The new file, which must not be there.
    pub path: &'a Path,
    /// The dataset in it; its groups are made.
    pub name: &'a [u8],
    /// All elements as they are in memory, in C order.
    pub data: &'a [u8],
    /// The selections, in order.
    pub walk: &'a Walk,
    /// When to stop.
    pub bounds: WalkBounds,
}

/// Who wrote, and what they say of it.
#[derive(Debug, Clone, PartialEq)]
pub enum WrittenBy {
    /// `H5Dwrite`, through this chunk cache.
    Library(ChunkCacheInForce),
    /// The engine.
    Engine {
        /// Chunks handed over, and those read back.
        stats: WriteStats,
        /// Which encoder of deflate was chosen, in words.
        tuning: Option<String>,
    },
}

/// What a walk of the engine wrote.
#[derive(Debug, Clone)]
pub struct EngineWrites {
    /// What it took.
    pub record: WriteRecord,
    /// Who wrote.
    pub by: WrittenBy,
    /// Why libhdf5 wrote in the engine's place.
    pub fallback: Option<String>,
}

impl OpenDataset {
    /// Write the selections of a walk with `H5Dwrite`, as [`time_writes`] says, to a dataset
    /// like this one (its type, shape and creation properties) in a new file.
    ///
    /// The file is removed when anything fails.
    ///
    /// # Errors
    /// What libhdf5 or the system says.
    pub fn write_walk(
        &self,
        request: WriteRequest<'_>,
    ) -> Result<(WriteRecord, ChunkCacheInForce), WalkError> {
        in_new_file(request.path, || {
            // One hold of the lock for all: nobody else is to be timed.
            self.library().locked(|api| {
                // SAFETY: live handles of this library, and the lock is held.
                unsafe {
                    let made = self.make(api, &request)?;
                    let cache = chunk_cache_of(api, made.dataset.id)?;
                    let record = self.write_by_library(api, made.dataset.id, &request)?;
                    Ok((made.finish(api, request.path, record, Instant::now())?, cache))
                }
            })
        })
    }

    /// The same by the engine; what it does not write, `H5Dwrite` does.
    ///
    /// Of what is timed, asking whether the engine can belongs to making the dataset, and
    /// committing what waits to the flush.  Deflate's encoder is chosen by `effort`.
    ///
    /// # Errors
    /// What libhdf5, the engine or the system says.
    pub fn engine_write_walk(
        &self,
        request: WriteRequest<'_>,
        effort: Effort,
    ) -> Result<EngineWrites, WalkError> {
        in_new_file(request.path, || {
            // SAFETY: live handles of this library, and the lock is held.
            let mut made = self.library().locked(|api| unsafe { self.make(api, &request) })?;
            let outcome = self.write_by_either(&mut made, &request, effort);
            // Whatever has happened, handles are closed under the lock.
            self.library().locked(|api| {
                let (record, by, fallback, flushing) = match outcome {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        drop(made);
                        return Err(error);
                    }
                };
                let record = made.finish(api, request.path, record, flushing)?;
                Ok(EngineWrites { record, by, fallback })
            })
        })
    }

    /// Write by the engine if it can, and commit what it holds; gives also the moment when
    /// that began.
    fn write_by_either(
        &self,
        made: &mut NewDataset,
        request: &WriteRequest<'_>,
        effort: Effort,
    ) -> Result<(WalkRecord, WrittenBy, Option<String>, Instant), WalkError> {
        let begun = Instant::now();
        let id = made.dataset.id;
        // SAFETY: live handles; the dataset outlives the writer.
        let described = unsafe { describe_for_writing(self.library(), id, self.datatype()) };
        let (info, store) = match described {
            Ok(found) => found,
            Err(Unsuited::Reason(reason)) => {
                made.create_s += begun.elapsed().as_secs_f64();
                return self.library().locked(|api| {
                    // SAFETY: live handles, and the lock is held.
                    unsafe {
                        let cache = chunk_cache_of(api, id)?;
                        let record = self.write_by_library(api, id, request)?;
                        Ok((record, WrittenBy::Library(cache), Some(reason), Instant::now()))
                    }
                });
            }
            Err(failed) => return Err(failed.into()),
        };
        let (shape, element_size) = (info.shape.clone(), info.element_size);
        let mut writer = DatasetWriter::new(info, Box::new(store), None, effort)?;
        made.create_s += begun.elapsed().as_secs_f64();
        let never = AtomicBool::new(false);
        let &WriteRequest { data, walk, bounds, .. } = request;
        let record =
            time_writes(walk, element_size, &shape, data, bounds, |selection, elements| {
                // As for libhdf5, putting a union together is a part of writing it.
                let selection = selection.anew().map_err(chunkwise_engine::WriteError::from)?;
                writer.write(&selection, elements, &never).map_err(WalkError::from)
            })?;
        let flushing = Instant::now();
        writer.flush(&never)?;
        let tuning = writer.tuning().map(ToString::to_string);
        let by = WrittenBy::Engine { stats: writer.stats(), tuning };
        Ok((record, by, None, flushing))
    }

    /// # Safety
    /// A live dataset of this library; the lock must be held.
    unsafe fn write_by_library(
        &self,
        api: &Api,
        dataset: hid_t,
        request: &WriteRequest<'_>,
    ) -> Result<WalkRecord, WalkError> {
        let &WriteRequest { data, walk, bounds, .. } = request;
        // SAFETY: live handles of this library, and the lock is held.
        unsafe {
            let (shape, _) = shape_of(api, dataset)?;
            let access = Access::of(self, api, dataset)?;
            let mut memory = MemorySpace::new(api);
            let write = |selection: &Selection, elements: &[u8]| -> Result<(), WalkError> {
                let memory = access.select(selection, &mut memory)?;
                let status = (api.H5Dwrite)(
                    dataset,
                    self.datatype(),
                    memory,
                    access.space.id,
                    access.list(),
                    elements.as_ptr().cast(),
                );
                api.checked("H5Dwrite", status)?;
                Ok(())
            };
            time_writes(walk, access.element_size, &shape, data, bounds, write)
        }
    }

    /// Make the file, and a dataset like this one in it.
    ///
    /// # Safety
    /// The lock must be held.
    unsafe fn make(&self, api: &Api, request: &WriteRequest<'_>) -> Result<NewDataset, WalkError> {
        const EXCLUSIVE: u32 = 4; // H5F_ACC_EXCL
        let path = text("H5Fcreate", &path_bytes(request.path))?;
        let name = text("H5Dcreate2", request.name)?;
        let properties = self.properties();
        // SAFETY: throughout, live handles of this library, valid strings, and the lock is
        // held; each handle is checked and closed once.
        unsafe {
            let like = self.id();
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
            let file = (api.H5Fcreate)(path.as_ptr(), EXCLUSIVE, fcpl.id, fapl.id);
            let file = Handle::new(api, "H5Fcreate", file, api.H5Fclose)?;
            let dataset = (api.H5Dcreate2)(
                file.id,
                name.as_ptr(),
                stored.id,
                space.id,
                lcpl.id,
                dcpl.id,
                dapl.id,
            );
            let dataset = Handle::new(api, "H5Dcreate2", dataset, api.H5Dclose)?;
            Ok(NewDataset { dataset, file, create_s: begun.elapsed().as_secs_f64() })
        }
    }
}

/// A dataset in a new file, and the seconds that making both took.
///
/// Closed before its file, by the order of its fields; made and dropped under the lock.
struct NewDataset {
    dataset: Handle,
    file: Handle,
    create_s: f64,
}

impl NewDataset {
    /// Flush, close and sync; `flushing` is when flushing began.
    ///
    /// The lock must be held.
    fn finish(
        self,
        api: &Api,
        path: &Path,
        walk: WalkRecord,
        flushing: Instant,
    ) -> Result<WriteRecord, WalkError> {
        const GLOBAL: c_int = 1; // H5F_SCOPE_GLOBAL
        let Self { dataset, file, create_s } = self;
        // SAFETY: a live file, with the lock held.
        api.checked("H5Fflush", unsafe { (api.H5Fflush)(file.id, GLOBAL) })?;
        let flush_s = flushing.elapsed().as_secs_f64();
        let begun = Instant::now();
        dataset.close("H5Dclose", api)?;
        file.close("H5Fclose", api)?;
        let close_s = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        // Windows syncs by no handle that cannot write.
        File::options()
            .write(true)
            .open(path)
            .and_then(|file| file.sync_all())
            .map_err(|error| WalkError::Words(format!("{}: {error}", path.display())))?;
        let sync_s = begun.elapsed().as_secs_f64();
        Ok(WriteRecord { walk, create_s, flush_s, close_s, sync_s })
    }
}

/// Run what makes a file, and remove that when it fails.
fn in_new_file<T>(
    path: &Path,
    work: impl FnOnce() -> Result<T, WalkError>,
) -> Result<T, WalkError> {
    if path.exists() {
        return Err(WalkError::Words(format!("{} is there already", path.display())));
    }
    work().inspect_err(|_| {
        // Half a file is of no use to anyone; that it was never made is no error.
        let _ = std::fs::remove_file(path);
    })
}
