//! A file's tree copied, for Python.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use chunkwise_repack::{
    ElementPart, Leads, Missing, Salvage, TreeCopy, TreeError, comment_of, meaning_of,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{bind_error, raise, unreadable};
use crate::library::PyLibrary;
use crate::metadata::PyMetadata;

/// What of a damaged source is avoided, what may have lost its links, and its own bytes.
type PySalvage = ([HashSet<u64>; 3], Vec<u64>, Option<Py<PyMetadata>>);

/// Copy everything but plain data (see `_native.pyi`).  The handles must be of this library;
/// h5py's objects vouch for that where this is called (`chunkwise.repack`).
#[pyfunction]
#[pyo3(signature = (library, source_file_id, target_file_id, dcpls, progress = None, salvage = None, unlinked = vec![]))]
#[allow(clippy::too_many_arguments)] // Named ones, in Python.
pub fn copy_tree(
    py: Python<'_>,
    library: &PyLibrary,
    source_file_id: i64,
    target_file_id: i64,
    dcpls: HashMap<u64, i64>,
    progress: Option<Py<PyAny>>,
    salvage: Option<PySalvage>,
    unlinked: Vec<(u64, Vec<u8>)>,
) -> PyResult<PyTreeCopy> {
    let library = &library.library;
    let salvage = salvage.map(|([objects, attributes, data], orphans, metadata)| Salvage {
        objects,
        attributes,
        data,
        orphans,
        metadata: metadata.map(|metadata| Arc::clone(&metadata.get().metadata)),
    });
    let copy = following(py, progress, |progress| {
        // SAFETY: live handles of this library, by the contract above.
        unsafe {
            TreeCopy::new(
                library,
                source_file_id,
                target_file_id,
                dcpls,
                &unlinked,
                salvage,
                progress,
            )
        }
    })?;
    let copy = copy.map_err(|error| {
        // SAFETY: as above.
        let name = unsafe { TreeCopy::name_of(library, source_file_id) };
        tree_error(py, &name, &error)
    })?;
    Ok(PyTreeCopy { copy: Mutex::new(copy) })
}

/// A reference: the object's handle and the region's, -1 for none, and an attribute's name.
type PyLed<'py> = (i64, i64, Bound<'py, PyBytes>);

/// Return what elements mean, whatever their type (see `_native.pyi`).  The handle must be of this
/// library.
#[pyfunction]
#[pyo3(signature = (library, holder_id, part = None))]
pub fn meaning<'py>(
    py: Python<'py>,
    library: &PyLibrary,
    holder_id: i64,
    part: Option<(Vec<u64>, Vec<u64>)>,
) -> PyResult<(Bound<'py, PyBytes>, Vec<PyLed<'py>>)> {
    let library = &library.library;
    let found = py.detach(|| {
        let part = part.as_ref();
        let part = part.map_or(ElementPart::Attribute, |(at, n)| ElementPart::Box(at, n));
        // SAFETY: a live handle of this library, by the contract above.
        unsafe { meaning_of(library, holder_id, &part) }
    });
    let found = found.map_err(|error| raise(py, "LibraryError", error))?;
    let references = found.references.into_iter().map(|led| {
        let handles = [led.object, led.region].map(|id| id.unwrap_or(-1));
        (handles[0], handles[1], PyBytes::new(py, &led.attribute))
    });
    Ok((PyBytes::new(py, &found.bytes), references.collect()))
}

/// Return an object's comment (see `_native.pyi`).  The handle must be of this library.
#[pyfunction]
pub fn comment<'py>(
    py: Python<'py>,
    library: &PyLibrary,
    object_id: i64,
) -> PyResult<Bound<'py, PyBytes>> {
    let library = &library.library;
    // SAFETY: a live handle of this library, by the contract above.
    let found = py.detach(|| unsafe { comment_of(library, object_id) });
    found.map(|text| PyBytes::new(py, &text)).map_err(|error| raise(py, "LibraryError", error))
}

/// Path, attribute, where a box of elements begins and its shape, and what is wrong.
type PyMissing = (String, Option<String>, Option<(Vec<u64>, Vec<u64>)>, String);

/// Finds what objects lead to beside their links (see `_native.pyi`).
#[pyclass(name = "Leads", module = "chunkwise._native", frozen)]
pub struct PyLeads {
    leads: Leads,
}

/// The attribute, the element and the reference in it (None for the type of either), the address.
type PyLead<'py> = (Option<Bound<'py, PyBytes>>, Option<(u64, u64)>, u64);

#[pymethods]
impl PyLeads {
    #[new]
    fn new(py: Python<'_>, library: &PyLibrary) -> PyResult<Self> {
        let found = Leads::new(&library.library);
        Ok(Self { leads: found.map_err(|error| bind_error(py, &error))? })
    }

    /// The handle must be of this library, as above.
    fn of<'py>(&self, py: Python<'py>, object_id: i64) -> PyResult<Vec<PyLead<'py>>> {
        // SAFETY: a live handle of this library, by the contract above.
        let found = unsafe { self.leads.of(object_id) };
        let found = found.map_err(|error| bind_error(py, &error))?;
        let one = |lead: chunkwise_repack::Lead| {
            let attribute = lead.attribute.map(|name| PyBytes::new(py, &name));
            (attribute, lead.element, lead.address)
        };
        Ok(found.into_iter().map(one).collect())
    }

    /// The handle must be of this library, as above; that of the object is the caller's to close.
    fn open(&self, file_id: i64, address: u64) -> Option<i64> {
        // SAFETY: a live handle of this library, by the contract above.
        unsafe { self.leads.open(file_id, address) }
    }
}

#[pyclass(name = "TreeCopy", module = "chunkwise._native", frozen)]
pub struct PyTreeCopy {
    copy: Mutex<TreeCopy>,
}

#[pymethods]
impl PyTreeCopy {
    /// Addresses of the datasets whose data is the caller's to copy: in the source, in the target.
    #[getter]
    fn datasets(&self, py: Python<'_>) -> Vec<(u64, u64)> {
        self.with(py, TreeCopy::datasets)
    }

    fn moved(&self, py: Python<'_>, address: u64) -> Option<u64> {
        self.with(py, |copy| copy.moved(address))
    }

    #[getter]
    fn warnings(&self, py: Python<'_>) -> Vec<String> {
        self.with(py, |copy| copy.warnings().to_vec())
    }

    /// What cannot be read and is left out: path, attribute, box of elements, reason.
    #[getter]
    fn missing(&self, py: Python<'_>) -> Vec<PyMissing> {
        let missing = self.with(py, |copy| copy.missing().to_vec());
        missing
            .into_iter()
            .map(|Missing { object, attribute, elements, reason }| {
                let elements = elements.map(|(start, shape)| (start.to_vec(), shape.to_vec()));
                (object, attribute, elements, reason)
            })
            .collect()
    }

    fn copy_later(&self, py: Python<'_>, address: u64) {
        py.detach(|| {
            self.copy.lock().unwrap_or_else(PoisonError::into_inner).copy_later(address);
        });
    }

    #[pyo3(signature = (progress = None))]
    fn finish(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let (outcome, name) = following(py, progress, |progress| {
            let mut copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
            (copy.finish(progress), copy.source_name().to_string())
        })?;
        outcome.map_err(|error| tree_error(py, &name, &error))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.with(py, |copy| format!("<{copy:?}>"))
    }
}

impl PyTreeCopy {
    /// Not with the GIL: the thread that finishes the copy takes it now and then.
    fn with<T: Send>(&self, py: Python<'_>, work: impl Send + FnOnce(&TreeCopy) -> T) -> T {
        py.detach(move || work(&self.copy.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Work without the GIL while a callable of Python gets the progress, and signals are
/// looked for; what those raise ends the work.
fn following<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl Send + FnOnce(&mut dyn FnMut(u64, u64) -> bool) -> T,
) -> PyResult<T> {
    let mut raised = None;
    let outcome = py.detach(|| {
        work(&mut |done, total| {
            let outcome = Python::attach(|py| {
                py.check_signals()?;
                if let Some(progress) = &progress {
                    progress.call1(py, (done, total))?;
                }
                Ok(())
            });
            raised = outcome.err();
            raised.is_none()
        })
    });
    raised.map_or(Ok(outcome), Err)
}

/// A tree that was not copied; `file` is the source.
fn tree_error(py: Python<'_>, file: &str, error: &TreeError) -> PyErr {
    let (class, remedy) = match error {
        TreeError::Library(_) => ("LibraryError", "use another libhdf5"),
        TreeError::Refused { .. } => ("UsageError", "nothing was written"),
        TreeError::Read { object, what, message } => {
            let part = if what == "it" { String::new() } else { format!(": {what}") };
            return unreadable(py, &format!("{file}: {object}{part}"), message, None);
        }
        TreeError::Write { .. } => ("CannotWriteError", "the copy is not whole: remove it"),
        TreeError::Memory { .. } => ("OutOfMemoryError", "use a machine with more"),
        TreeError::Stopped => ("ChunkwiseError", "the copy is not whole: remove it"),
    };
    raise(py, class, format!("{file}: {error}; {remedy}"))
}
