//! A libhdf5 for Python, under h5py's own lock.

use std::sync::Arc;

use chunkwise_libhdf5::{Library, LibraryLock, MutexLock};
use pyo3::prelude::*;

use crate::errors::bind_error;

/// h5py's `phil`: taken and released with the GIL held, by the same thread.  Waiting
/// for it releases the GIL, as every blocking call of Python does.
struct PhilLock {
    acquire: Py<PyAny>,
    release: Py<PyAny>,
}

impl LibraryLock for PhilLock {
    fn with(&self, work: &mut dyn FnMut()) {
        Python::attach(|py| {
            // Acquiring is interrupted by nothing that h5py's lock reports.
            while let Err(error) = self.acquire.call0(py) {
                error.write_unraisable(py, None);
            }
            // Released even when the work panics.
            let held = Held { release: &self.release, py };
            work();
            drop(held);
        });
    }
}

/// `phil`, held until dropped.
struct Held<'a, 'py> {
    release: &'a Py<PyAny>,
    py: Python<'py>,
}

impl Drop for Held<'_, '_> {
    fn drop(&mut self) {
        if let Err(error) = self.release.call0(self.py) {
            error.write_unraisable(self.py, None);
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
    fn from_handle(py: Python<'_>, path: &str, lock: &Bound<'_, PyAny>) -> PyResult<Self> {
        let lock = PhilLock {
            acquire: lock.getattr("acquire")?.unbind(),
            release: lock.getattr("release")?.unbind(),
        };
        Self::bound(py, Library::from_handle(path, Box::new(lock)))
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

    fn __repr__(&self) -> String {
        format!("<{:?}>", self.library)
    }
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
