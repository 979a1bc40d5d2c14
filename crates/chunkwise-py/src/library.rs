//! A libhdf5 for Python, under h5py's own lock.

use std::ffi::c_void;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;

use chunkwise_engine::platform::path_bytes;
use chunkwise_engine::{ChunkCensus, ChunkPlacement};
use chunkwise_libhdf5::{
    Calls, FileBytes, Library, LibraryLock, MutexLock, Unsuited, Witness, driver_info,
};
use chunkwise_measure::{OpenDataset, Properties};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{bind_error, raise};
use crate::index;
use crate::listing::PyChunkListing;
use crate::names::Name;
use crate::storage::PyStorage;
use crate::table::PyChunkTable;

/// h5py's `phil`: taken and released with the GIL held, by the same thread.  Waiting
/// for it releases the GIL, as every blocking call of Python does.
struct PhilLock {
    acquire: Py<PyAny>,
    release: Py<PyAny>,
}

impl LibraryLock for PhilLock {
    fn with(&self, work: &mut dyn FnMut()) {
        Python::attach(|py| {
            // Python lets go of objects while an exception is on its way, and they close what
            // they have opened: no function may be called with it pending.
            let pending = PyErr::take(py);
            // Acquiring is interrupted by nothing that h5py's lock reports.
            while let Err(error) = self.acquire.call0(py) {
                error.write_unraisable(py, None);
            }
            // Released even when the work panics.
            let held = HeldLock { release: &self.release, pending, py };
            work();
            drop(held);
        });
    }
}

/// `phil`, held until dropped; the exception that was on its way before is so again afterwards.
struct HeldLock<'a, 'py> {
    release: &'a Py<PyAny>,
    pending: Option<PyErr>,
    py: Python<'py>,
}

impl Drop for HeldLock<'_, '_> {
    fn drop(&mut self) {
        // What libhdf5 has called may have left an exception behind (a file object of h5py's): of what
        // it came to, the caller of libhdf5 was informed.
        let left = PyErr::take(self.py);
        if left.is_some_and(|error| error.is_instance_of::<PyKeyboardInterrupt>(self.py)) {
            // Raised again where Python next looks for signals.
            // SAFETY: may be called by any thread.
            unsafe { pyo3::ffi::PyErr_SetInterrupt() };
        }
        if let Err(error) = self.release.call0(self.py) {
            error.write_unraisable(self.py, None);
        }
        if let Some(pending) = self.pending.take() {
            pending.restore(self.py);
        }
    }
}

#[pyclass(name = "Library", module = "chunkwise._native", frozen)]
pub struct PyLibrary {
    pub library: Arc<Library>,
}

#[pymethods]
impl PyLibrary {
    #[staticmethod]
    fn from_handle(
        py: Python<'_>,
        dataspace: (i64, Vec<u64>),
        modules: Vec<String>,
        lock: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        // Of the first file that is opened: h5py, and so NumPy, is there.
        index::prepare(py, true);
        let lock = Box::new(PhilLock {
            acquire: lock.getattr("acquire")?.unbind(),
            release: lock.getattr("release")?.unbind(),
        });
        let (id, dims) = dataspace;
        Self::bound(py, Library::from_handle(Witness { id, dims: &dims }, &modules, lock))
    }

    #[staticmethod]
    fn from_path(py: Python<'_>, path: &str) -> PyResult<Self> {
        Self::bound(py, Library::from_path(path, Box::new(MutexLock)))
    }

    #[staticmethod]
    fn from_process(py: Python<'_>) -> PyResult<Self> {
        Self::bound(py, Library::from_process(Box::new(MutexLock)))
    }

    #[getter]
    fn version(&self) -> (u32, u32, u32) {
        let version = self.library.version();
        (version.0, version.1, version.2)
    }

    #[getter]
    fn path(&self) -> &str {
        self.library.path()
    }

    /// How the chunks of a dataset lie (see `_native.pyi`).  The handle must be of this
    /// library; h5py's objects vouch for that where this is called (`chunkwise.inspect`).
    fn chunk_census<'py>(&self, py: Python<'py>, dataset_id: i64) -> PyResult<Bound<'py, PyDict>> {
        // SAFETY: a live handle of this library, by the contract above.
        let census = unsafe { chunkwise_libhdf5::census(&self.library, dataset_id) };
        let census = census.map_err(|error| unread_index(py, &error))?;
        census_to_dict(py, census)
    }

    /// Where the first written chunks begin, `most` of them.  The handle must be of this
    /// library, as above.
    fn written_origins(
        &self,
        py: Python<'_>,
        dataset_id: i64,
        most: usize,
    ) -> PyResult<Vec<Vec<u64>>> {
        // SAFETY: a live handle of this library, by the contract above.
        let found = unsafe { chunkwise_libhdf5::written_origins(&self.library, dataset_id, most) };
        found.map_err(|error| unread_index(py, &error))
    }

    /// Whether chunks at the edge of a dataset are stored without filters.  The handle must be
    /// of this library, as above.
    fn unfiltered_partial_chunks(&self, py: Python<'_>, dataset_id: i64) -> PyResult<bool> {
        // SAFETY: a live handle of this library, by the contract above.
        let facts = unsafe { chunkwise_libhdf5::facts_of(&self.library, dataset_id) };
        facts
            .map(|facts| facts.unfiltered_partial_chunks)
            .map_err(|error| raise(py, "CorruptDataError", error.to_string()))
    }

    /// Count the calls of filters from now on, and return those until now.
    fn tally<'py>(&self, py: Python<'py>, filters: Vec<i32>) -> PyResult<Bound<'py, PyDict>> {
        let figures = |calls: Calls| {
            (calls.count, calls.time.as_secs_f64(), calls.nbytes_in, calls.nbytes_out)
        };
        let found = PyDict::new(py);
        for tally in chunkwise_libhdf5::tally(&self.library, &filters) {
            let one = PyDict::new(py);
            one.set_item("name", tally.name)?;
            one.set_item("decode", figures(tally.decode))?;
            one.set_item("encode", figures(tally.encode))?;
            found.set_item(tally.id, one)?;
        }
        Ok(found)
    }

    /// The chunks of an open dataset.  The handle must be of this library, as above.
    fn chunk_table(&self, py: Python<'_>, dataset_id: i64) -> PyResult<PyChunkTable> {
        // SAFETY: a live handle of this library, by the contract above.
        let table = unsafe { chunkwise_measure::chunk_table(&self.library, dataset_id) };
        PyChunkTable::of(py, table)
    }

    /// All chunks of an open dataset.  The handle must be of this library, as above.
    #[pyo3(signature = (dataset_id, storage = None))]
    fn chunk_listing(
        &self,
        py: Python<'_>,
        dataset_id: i64,
        storage: Option<&PyStorage>,
    ) -> PyResult<PyChunkListing> {
        let bytes = FileBytes { plain: false, storage: storage.map(|given| &given.0) };
        // SAFETY: a live handle of this library, by the contract above.
        let found =
            unsafe { chunkwise_libhdf5::grid_and_written(&self.library, dataset_id, bytes) };
        let (grid, index) = found.map_err(|error| unread_index(py, &error))?;
        Ok(PyChunkListing { grid, index })
    }

    /// The chunks of the dataset `name` of the file at `path`.
    fn chunk_table_of(&self, py: Python<'_>, path: PathBuf, name: Name) -> PyResult<PyChunkTable> {
        let path = path_bytes(&path);
        let open = OpenDataset::open(Arc::clone(&self.library), &path, name, Properties::default());
        let open = open.map_err(|error| bind_error(py, &error))?;
        PyChunkTable::of(py, open.chunk_table())
    }

    fn __repr__(&self) -> String {
        format!("<{:?}>", self.library)
    }
}

fn unread_index(py: Python<'_>, error: &Unsuited) -> PyErr {
    raise(py, "CorruptDataError", format!("its chunk index cannot be read: {error}"))
}

impl PyLibrary {
    fn bound(
        py: Python<'_>,
        library: Result<Library, chunkwise_libhdf5::BindError>,
    ) -> PyResult<Self> {
        let library = library.map_err(|error| bind_error(py, &error))?;
        Ok(Self { library: Arc::new(library) })
    }
}

/// The file object through which h5py has opened a dataset's file (see `_native.pyi`).
#[pyfunction]
pub fn file_object<'py>(
    py: Python<'py>,
    library: &PyLibrary,
    dataset_id: i64,
    driver: i64,
) -> Option<Bound<'py, PyAny>> {
    // SAFETY: a live handle of this library, by the contract in `_native.pyi`.
    let found: NonNull<c_void> = unsafe { driver_info(&library.library, dataset_id, driver) }?;
    // SAFETY: the driver is h5py's own for file objects, which was given such an object, and keeps it
    // as long as the file is open: it is, as the dataset is.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, found.as_ptr().cast()) }
}

/// A `ChunkCensus` (see `_native.pyi`).
pub fn census_to_dict(py: Python<'_>, census: ChunkCensus) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item(intern!(py, "index_type"), census.index_type)?;
    dict.set_item(intern!(py, "allocated"), census.allocated)?;
    dict.set_item(intern!(py, "stored_nbytes"), census.stored_nbytes)?;
    dict.set_item(intern!(py, "sizes"), census.sizes)?;
    dict.set_item(intern!(py, "unfiltered"), census.unfiltered)?;
    dict.set_item(intern!(py, "masked"), census.masked)?;
    let placement = census.placement.map(|found| {
        let ChunkPlacement { covered_elements, pairs, adjacent, backward, span_nbytes } = found;
        (covered_elements, pairs, adjacent, backward, span_nbytes)
    });
    dict.set_item(intern!(py, "placement"), placement)?;
    Ok(dict)
}
