//! How long does netCDF-C take to write a variable, and what does it take besides?

use std::cell::Cell;
use std::ffi::{CString, c_int};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::api::{ALREADY_EXISTS, Api, Writing};
use crate::request::Request;
use crate::variable::cache_of;
use crate::{ChunkCache, Format, NetCdf, NetCdfError, NewVariable};
use chunkwise_engine::platform::{descriptors_of, give_up, path_bytes};
use chunkwise_measure::{Walk, WalkBounds, WriteRecord, time_writes};

/// `NC_FORMAT_CLASSIC`
const CLASSIC: c_int = 1;

/// What was written.
#[derive(Debug, Clone)]
pub struct Written {
    /// The writes, and what it took besides.
    pub record: WriteRecord,
    /// The chunk cache that was in force, as netCDF-C gives it; None without chunks.
    pub chunk_cache: Option<ChunkCache>,
}

impl NetCdf {
    /// Create a file with one variable, and write the selections of `walk` into it with
    /// `nc_put_vara`, or with `nc_put_vars` where there is a stride, as [`time_writes`] says.
    ///
    /// `data` are all elements in C order and in the machine's byte order.
    ///
    /// Besides the writes, timed apart: `nc_create` and all definitions up to
    /// `nc_enddef`; `nc_sync`; `nc_close`; and `fsync` of the file, opened again.
    ///
    /// # Errors
    /// When the file exists or cannot be created; when netCDF-C cannot make the variable as
    /// it is asked for, or lacks a filter; when a selection has another rank, reaches
    /// beyond it, or is made of several blocks; when something cannot be written.
    /// There is no file then.
    pub fn write(
        &self,
        new: &NewVariable,
        data: &[u8],
        walk: &Walk,
        bounds: WalkBounds,
    ) -> Result<Written, NetCdfError> {
        new.check(data.len())?;
        let calls = self.writing.as_ref().map_err(Clone::clone)?;
        let path = possible(&new.file)?;
        self.locked(|api| {
            let begun = Instant::now();
            let mut file = NewFile::create(api, calls, path, new.format)?;
            let variable = file.define(self, new)?;
            let create_s = begun.elapsed().as_secs_f64();
            file.begin();
            let chunk_cache = if new.chunk.is_some() {
                // SAFETY: the file is open, and the lock is held.
                unsafe { cache_of(api, variable) }
            } else {
                None
            };

            let size = new.number.size();
            let walk = time_writes(walk, size, &new.shape, data, bounds, |slab, bytes| {
                let request = Request::new(slab, new.shape.len())?;
                // SAFETY: the variable is open for writing, `request` has its rank, and
                // `bytes` are the slab's elements.
                let (call, status) = unsafe { request.write(calls, variable, bytes) };
                file.written(call, status)
            })?;

            let flush_s = timed(|| file.flush())?;
            let close_s = timed(|| file.close())?;
            let sync_s = timed(|| file.sync())?;
            file.is_kept = true;
            let record = WriteRecord { walk, create_s, flush_s, close_s, sync_s };
            Ok(Written { record, chunk_cache })
        })
    }
}

fn timed(work: impl FnOnce() -> Result<(), NetCdfError>) -> Result<f64, NetCdfError> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64())
}

/// The file's absolute path, when a file could be made there.
///
/// It is tried out, because netCDF-C says "permission denied" whatever the reason.
/// Of a path that is not absolute netCDF-C leaves out blanks at its beginning, or takes
/// it for a URL.
pub(crate) fn possible(file: &str) -> Result<PathBuf, NetCdfError> {
    let path = std::path::absolute(file).map_err(not_created)?;
    if std::path::MAIN_SEPARATOR != '\\' && path_bytes(&path).contains(&b'\\') {
        return Err(not_created("netCDF-C takes a backslash in its path for a slash"));
    }
    let mut file = File::create_new(&path).map_err(not_created)?;
    let written = file.write_all(&[0]);
    fs::remove_file(&path).and(written).map_err(not_created)?;
    Ok(path)
}

fn not_created(reason: impl ToString) -> NetCdfError {
    NetCdfError::Create { message: reason.to_string() }
}

/// A file being written: closed when dropped, and removed unless it is kept.
///
/// There is one only while the lock is held.
pub(crate) struct NewFile<'a> {
    pub(crate) api: &'a Api,
    pub(crate) calls: &'a Writing,
    path: PathBuf,
    pub(crate) id: c_int,
    is_open: bool,
    is_kept: bool,
    /// Whether libhdf5 may hold what it cannot write.
    is_dirty: Cell<bool>,
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if self.is_open {
            if self.is_dirty.get() {
                into_memory(&self.path);
            }
            // netCDF-C crashes where libhdf5 cannot close the file, as it cannot while there
            // is something that it cannot write: then it stays open.  That is tried
            // twice, as a try that failed makes the next fail too.
            // SAFETY: a file of this library, not used after this; the lock is held.
            unsafe {
                let is_clean = || (self.calls.nc_sync)(self.id) == 0;
                if !self.is_dirty.get() || is_clean() || is_clean() {
                    (self.calls.nc_abort)(self.id);
                }
            }
        }
        if !self.is_kept {
            // Whether it is there or not, there is nothing better to do.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl<'a> NewFile<'a> {
    pub(crate) fn create(
        api: &'a Api,
        calls: &'a Writing,
        path: PathBuf,
        format: Format,
    ) -> Result<Self, NetCdfError> {
        let name = CString::new(path_bytes(&path)).map_err(not_created)?;
        let mut id = 0;
        // A mode that names no format means this process's default, which others may have
        // set: netCDF4-python does.
        let mut before = CLASSIC;
        // SAFETY: valid strings and pointers; the lock is held.
        let status = unsafe {
            (calls.nc_set_default_format)(CLASSIC, &raw mut before);
            let status = (calls.nc_create)(name.as_ptr(), format.mode(), &raw mut id);
            (calls.nc_set_default_format)(before, std::ptr::null_mut());
            status
        };
        let is_open = status == 0;
        // Somebody else's file is not removed.
        let is_kept = status == ALREADY_EXISTS;
        let file = Self { api, calls, path, id, is_open, is_kept, is_dirty: Cell::new(false) };
        api.outcome(status).map_err(not_created)?;
        Ok(file)
    }

    /// Note that from here on libhdf5 may hold what it cannot write.
    pub(crate) fn begin(&self) {
        self.is_dirty.set(true);
    }

    /// Write all of it to storage, close it, and keep it.
    pub(crate) fn finish(&mut self) -> Result<(), NetCdfError> {
        self.flush()?;
        self.close()?;
        self.is_kept = true;
        Ok(())
    }

    fn flush(&self) -> Result<(), NetCdfError> {
        // SAFETY: the file is open, and the lock is held.
        self.written("nc_sync", unsafe { (self.calls.nc_sync)(self.id) })
    }

    fn close(&mut self) -> Result<(), NetCdfError> {
        // Also where it fails: how much of it is closed then is not told, and to close it
        // again could crash.
        self.is_open = false;
        // SAFETY: the file is open, and the lock is held.
        let closed = self.written("nc_close", unsafe { (self.api.nc_close)(self.id) });
        if closed.is_err() {
            into_memory(&self.path);
        }
        closed
    }

    fn sync(&self) -> Result<(), NetCdfError> {
        // Windows syncs by no handle that cannot write.
        let opened = File::options().write(true).open(&self.path);
        let synced = opened.and_then(|file| file.sync_all());
        synced.map_err(|reason| {
            let message = "the file is not on storage".to_string();
            NetCdfError::Write { call: "fsync", message, system: Some(reason.to_string()) }
        })
    }

    /// Nothing, or why netCDF-C did not take a definition.
    pub(crate) fn defined(&self, call: &'static str, status: c_int) -> Result<(), NetCdfError> {
        self.api
            .outcome(status)
            .map_err(|message| NetCdfError::Refused { reason: format!("{call} failed: {message}") })
    }

    /// Nothing, or why a call that writes failed.
    pub(crate) fn written(&self, call: &'static str, status: c_int) -> Result<(), NetCdfError> {
        self.api.outcome(status).map_err(|message| {
            // netCDF-C says "HDF error" whatever the reason.
            let system = refusal(&self.path).map(|reason| reason.to_string());
            self.is_dirty.set(self.is_dirty.get() || system.is_some());
            NetCdfError::Write { call, message, system }
        })
    }
}

/// What the system says to more bytes at the end of a file that will not be kept.
fn refusal(path: &Path) -> Option<io::Error> {
    let mut file = OpenOptions::new().append(true).open(path).ok()?;
    file.write_all(&[0; 1 << 16]).err()
}

/// Let libhdf5 write what it still holds for this file to memory, where there is room:
/// what it cannot write it does not close, and libhdf5 1.10 crashes on that when the
/// process ends.
fn into_memory(path: &Path) {
    for descriptor in descriptors_of(path) {
        // SAFETY: libhdf5 has created this file, and has it open under this descriptor; nobody is
        // in libhdf5 meanwhile, as the lock is held.
        let _ = unsafe { give_up(descriptor, 0) };
    }
}
