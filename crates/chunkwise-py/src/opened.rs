//! Datasets opened without h5py, in any libhdf5, for `chunkwise bench`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chunkwise_engine::platform::path_bytes;
use chunkwise_libhdf5::Unsuited;
use chunkwise_measure::{
    FormatBound, Inspect, OpenDataset, Properties, Reopened, WalkError, WalkRecord, WriteRequest,
    WrittenBy,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays;
use crate::errors::{raise, read_error};
use crate::library::PyLibrary;
use crate::names::{Name, label};
use crate::walk::{Inspector, PyWalk, bounds, record_to_dict, write_record_to_dict};
use crate::writer::effort_of;

/// `Properties` as Python gives them (see `_native.pyi`): what is not there is None.
fn properties_of(given: &Bound<'_, PyDict>) -> PyResult<Properties> {
    let mut made = Properties::default();
    for (key, value) in given {
        if value.is_none() {
            continue;
        }
        let key: String = key.extract()?;
        match key.as_str() {
            "cache_nslots" => made.cache.nslots = Some(value.extract()?),
            "cache_nbytes" => made.cache.nbytes = Some(value.extract()?),
            "cache_w0" => made.cache.w0 = Some(value.extract()?),
            "sieve_nbytes" => made.sieve_nbytes = Some(value.extract()?),
            "conversion_nbytes" => made.conversion_nbytes = Some(value.extract()?),
            "metadata_block_nbytes" => made.metadata_block_nbytes = Some(value.extract()?),
            "small_data_block_nbytes" => made.small_data_block_nbytes = Some(value.extract()?),
            "alignment" => made.alignment = Some(value.extract()?),
            "bounds" => {
                let (low, high): (String, String) = value.extract()?;
                made.bounds = Some((bound_of(&low)?, bound_of(&high)?));
            }
            "alloc_time" => {
                made.alloc_time = Some(one_of(&value, &["early", "late", "incremental"], 1)?);
            }
            "fill_time" => made.fill_time = Some(one_of(&value, &["alloc", "never", "ifset"], 0)?),
            "page_buffer_nbytes" => made.page_buffer_nbytes = Some(value.extract()?),
            "native_type" => made.native_type = value.extract()?,
            "swmr" => made.swmr = value.extract()?,
            _ => return Err(PyValueError::new_err(format!("no property is called {key}"))),
        }
    }
    Ok(made)
}

/// The place of a word in a list, counted from `first`: HDF5's number for it.
fn one_of(value: &Bound<'_, PyAny>, words: &[&str], first: i32) -> PyResult<i32> {
    let word: String = value.extract()?;
    let found = (first..).zip(words).find(|(_, known)| **known == word);
    found
        .map(|(number, _)| number)
        .ok_or_else(|| PyValueError::new_err(format!("'{word}' is not one of {words:?}")))
}

fn bound_of(word: &str) -> PyResult<FormatBound> {
    Ok(match word {
        "earliest" => FormatBound::Earliest,
        "v108" => FormatBound::Version(1),
        "v110" => FormatBound::Version(2),
        "v112" => FormatBound::Version(3),
        "v114" => FormatBound::Version(4),
        "v200" => FormatBound::Version(5),
        "latest" => FormatBound::Latest,
        _ => return Err(PyValueError::new_err(format!("'{word}' is no version of the format"))),
    })
}

/// See `_native.pyi`.
#[pyclass(name = "OpenDataset", module = "chunkwise._native", frozen)]
pub struct PyOpenDataset {
    open: OpenDataset,
    label: String,
}

#[pymethods]
impl PyOpenDataset {
    #[new]
    fn new(
        py: Python<'_>,
        library: &PyLibrary,
        path: PathBuf,
        name: Name,
        properties: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let properties = properties_of(properties)?;
        let label = label(&path, &name);
        let path = path_bytes(&path);
        let open = OpenDataset::open(Arc::clone(&library.library), &path, name, properties)
            .map_err(|error| raise(py, "FileFormatError", format!("{label}: {error}")))?;
        Ok(Self { open, label })
    }

    /// `hid_t` of the dataset, in its library; closed with this object.
    #[getter]
    fn id(&self) -> i64 {
        self.open.id()
    }

    #[getter]
    fn itemsize(&self) -> usize {
        self.open.element_size()
    }

    #[getter]
    fn storage_nbytes(&self) -> u64 {
        self.open.storage_nbytes()
    }

    #[getter]
    fn chunk_cache(&self, py: Python<'_>) -> PyResult<(usize, usize, f64)> {
        let cache =
            self.open.chunk_cache().map_err(|error| failed(py, &self.label, &error.into()))?;
        Ok((cache.nslots, cache.nbytes, cache.w0))
    }

    #[pyo3(signature = (walk, max_operations, max_seconds, look = None))]
    fn walk<'py>(
        &self,
        py: Python<'py>,
        walk: &PyWalk,
        max_operations: u64,
        max_seconds: f64,
        look: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut inspector = Inspector::new(look);
        let record = self
            .open
            .walk(&walk.walk, bounds(max_operations, max_seconds), &mut |number, read| {
                inspector.look(number, read)
            })
            .map_err(|error| failed(py, &self.label, &error))?;
        inspector.finish()?;
        record_to_dict(py, &record)
    }

    /// The engine's loop; the chunk index is loaded within the first operation.  What the
    /// engine does not read, libhdf5 does, and `fallback` says why.
    #[pyo3(signature = (walk, max_operations, max_seconds, look = None))]
    fn engine_walk<'py>(
        &self,
        py: Python<'py>,
        walk: &PyWalk,
        max_operations: u64,
        max_seconds: f64,
        look: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let bounds = bounds(max_operations, max_seconds);
        let mut inspector = Inspector::new(look);
        let walked = py.detach(|| {
            let inspect: Inspect<'_> = &mut |number, read| inspector.look(number, read);
            self.open.engine_walk(&walk.walk, bounds, inspect)
        });
        let walked = walked.map_err(|error| match error {
            WalkError::Engine(error) => read_error(py, &self.label, &error),
            other => failed(py, &self.label, &other),
        })?;
        inspector.finish()?;
        walked_to_dict(py, &walked)
    }

    #[allow(clippy::too_many_arguments)]
    fn write_walk<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        name: Name,
        data: &Bound<'py, numpy::PyUntypedArray>,
        walk: &PyWalk,
        max_operations: u64,
        max_seconds: f64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let bounds = bounds(max_operations, max_seconds);
        let outcome = arrays::with_bytes(data, |data| {
            let walk = &walk.walk;
            self.open.write_walk(WriteRequest {
                path: &path,
                name: name.as_ref(),
                data,
                walk,
                bounds,
            })
        })?;
        let (record, cache) = outcome.map_err(|error| cannot_write(py, &path, &error))?;
        let dict = write_record_to_dict(py, &record)?;
        dict.set_item("chunk_cache", (cache.nslots, cache.nbytes, cache.w0))?;
        Ok(dict)
    }

    /// The same by the engine; what it does not write, libhdf5 does, and `fallback` says why.
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (path, name, data, walk, max_operations, max_seconds, *, effort = "as-stated"))]
    fn engine_write_walk<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        name: Name,
        data: &Bound<'py, numpy::PyUntypedArray>,
        walk: &PyWalk,
        max_operations: u64,
        max_seconds: f64,
        effort: &str,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (effort, walk) = (effort_of(py, effort)?, &walk.walk);
        let bounds = bounds(max_operations, max_seconds);
        // SAFETY: the caller does not change the array meanwhile (see `_native.pyi`).
        let data = unsafe { arrays::bytes(data)? };
        let outcome = py.detach(|| {
            self.open.engine_write_walk(
                WriteRequest { path: &path, name: name.as_ref(), data, walk, bounds },
                effort,
            )
        });
        let written = outcome.map_err(|error| cannot_write(py, &path, &error))?;
        let dict = write_record_to_dict(py, &written.record)?;
        match written.by {
            WrittenBy::Library(cache) => {
                dict.set_item("chunk_cache", (cache.nslots, cache.nbytes, cache.w0))?;
            }
            WrittenBy::Engine { stats, tuning } => {
                dict.set_item("encoded_chunks", stats.committed)?;
                dict.set_item("read_back_chunks", stats.read_back)?;
                dict.set_item("encoder", tuning)?;
            }
        }
        if let Some(reason) = written.fallback {
            dict.set_item("fallback", reason)?;
        }
        Ok(dict)
    }
}

fn cannot_write(py: Python<'_>, path: &Path, error: &WalkError) -> PyErr {
    raise(py, "ChunkwiseError", format!("{}: {error}", path.display()))
}

fn failed(py: Python<'_>, label: &str, error: &WalkError) -> PyErr {
    raise(py, "CorruptDataError", format!("{label}: libhdf5: {error}"))
}

/// Walk over a dataset that is opened for each selection (see `_native.pyi`).
#[pyfunction]
#[pyo3(signature = (library, path, name, properties, walk, max_seconds, by_engine, look = None))]
#[allow(clippy::too_many_arguments)]
pub fn walk_reopened<'py>(
    py: Python<'py>,
    library: &PyLibrary,
    path: PathBuf,
    name: Name,
    properties: &Bound<'py, PyDict>,
    walk: &PyWalk,
    max_seconds: f64,
    by_engine: bool,
    look: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let properties = properties_of(properties)?;
    let label = label(&path, &name);
    let (path, name) = (&path_bytes(&path), name.as_ref());
    let dataset = Reopened { library: &library.library, path, name, properties };
    let bounds = bounds(u64::MAX, max_seconds);
    let mut inspector = Inspector::new(look);
    let inspect: Inspect<'_> = &mut |number, read| inspector.look(number, read);
    let walked = if by_engine {
        dataset.engine_walk(&walk.walk, bounds, inspect)
    } else {
        dataset.walk(&walk.walk, bounds, inspect).map(|record| (record, None))
    };
    let walked = walked.map_err(|error| failed(py, &label, &error))?;
    inspector.finish()?;
    walked_to_dict(py, &walked)
}

/// What was measured, and why the engine did not read where it should have.
fn walked_to_dict<'py>(
    py: Python<'py>,
    (record, fallback): &(WalkRecord, Option<Unsuited>),
) -> PyResult<Bound<'py, PyDict>> {
    let dict = record_to_dict(py, record)?;
    if let Some(reason) = fallback {
        dict.set_item("fallback", reason.to_string())?;
    }
    Ok(dict)
}

/// Set the properties that concern files and datasets on lists that h5py has made.
#[pyfunction]
pub fn set_properties(
    py: Python<'_>,
    library: &PyLibrary,
    properties: &Bound<'_, PyDict>,
    lists: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let made = properties_of(properties)?;
    for (kind, id) in lists {
        let (kind, id): (String, i64) = (kind.extract()?, id.extract()?);
        // SAFETY: live lists of this library and kind: h5py's objects vouch for that where
        // this is called (`chunkwise.bench`).
        let set = unsafe { made.set_on(&library.library, &kind, id) };
        set.map_err(|error| raise(py, "UsageError", error.to_string()))?;
    }
    Ok(())
}
