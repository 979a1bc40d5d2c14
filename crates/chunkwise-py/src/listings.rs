//! How do the names in a file become Python's, of one file and of many?

use std::path::PathBuf;
use std::vec::IntoIter;

use chunkwise_format::{Kind, Value};
use chunkwise_metadata::{Entry, Facts, Found, Listed, Shown, StoredFacts, listings};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::library::census_to_dict;

/// Listings of many files (see `_native.pyi`).
#[pyclass(name = "Listings", module = "chunkwise._native")]
pub struct PyListings {
    paths: Vec<PathBuf>,
    threads: usize,
    /// How many of them were listed.
    begun: usize,
    /// Those that nobody has asked for yet.
    ready: IntoIter<Listed>,
}

#[pymethods]
impl PyListings {
    #[new]
    fn new(paths: Vec<PathBuf>, threads: usize) -> Self {
        Self { paths, threads, begun: 0, ready: Vec::new().into_iter() }
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.ready.len() == 0 {
            let left = &self.paths[self.begun..];
            let listed = py.detach(|| listings(left, self.threads));
            self.begun += listed.len();
            self.ready = listed.into_iter();
            // What takes all of them at once runs no line of Python between two.
            py.check_signals()?;
        }
        let Some(listed) = self.ready.next() else { return Ok(None) };
        Ok(Some(match listed {
            Ok(Some(names)) => names_to_list(py, names)?.into_any(),
            Ok(None) => py.None().into_bound(py),
            Err(error) => PyErr::from(error).into_value(py).into_bound(py).into_any(),
        }))
    }
}

/// What a `ListedName` is (see `_native.pyi`), name by name.
pub fn names_to_list(py: Python<'_>, names: Vec<Entry>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for Entry { path, depth, found } in names {
        let (mut target, mut at, mut facts) = (None, None, None);
        let (kind, attributes) = match found {
            Found::Again(first) => {
                target = Some(PyString::new(py, &first));
                (intern!(py, "hard_link"), None)
            }
            Found::Soft(to) => {
                target = Some(PyString::new(py, &to));
                (intern!(py, "soft_link"), None)
            }
            Found::External(file, to) => {
                target = Some(PyString::new(py, &format!("{file}:{to}")));
                (intern!(py, "external_link"), None)
            }
            Found::Other => (intern!(py, "user_link"), None),
            Found::Object(address, shown) => {
                at = Some(address);
                let (kind, attributes) = match shown {
                    Shown::Group(attributes) => (Kind::Group, Some(attributes)),
                    Shown::Datatype(attributes) => (Kind::Datatype, Some(attributes)),
                    Shown::Dataset(attributes, found) => {
                        facts = Some(facts_to_dict(py, *found)?);
                        (Kind::Dataset, Some(attributes))
                    }
                    Shown::Left(kind) => (kind, None),
                };
                let kind = match kind {
                    Kind::Group => intern!(py, "group"),
                    Kind::Dataset => intern!(py, "dataset"),
                    _ => intern!(py, "named_type"),
                };
                (kind, attributes)
            }
        };
        let attributes = attributes.map(|names| PyTuple::new(py, names)).transpose()?;
        list.append((path, depth, kind, target, at, attributes, facts))?;
    }
    Ok(list)
}

/// A `StoredRecord` (see `_native.pyi`).
fn facts_to_dict(py: Python<'_>, facts: Facts) -> PyResult<Bound<'_, PyDict>> {
    let Facts { datatype, shape, max_shape, stored, filters, fill, scales, is_scale } = facts;
    let found = PyDict::new(py);
    found.set_item(intern!(py, "datatype"), PyBytes::new(py, &datatype))?;
    let shape = shape.map(|shape| PyTuple::new(py, &shape)).transpose()?;
    found.set_item(intern!(py, "shape"), shape)?;
    found.set_item(intern!(py, "max_shape"), PyTuple::new(py, max_shape)?)?;
    let (layout, nbytes) = match stored {
        StoredFacts::Compact(nbytes) => (intern!(py, "compact"), nbytes),
        StoredFacts::Contiguous(nbytes) => (intern!(py, "contiguous"), nbytes),
        StoredFacts::Chunked(chunk, census) => {
            found.set_item(intern!(py, "chunk"), PyTuple::new(py, &chunk)?)?;
            let nbytes = census.stored_nbytes.unwrap_or(0);
            found.set_item(intern!(py, "census"), census_to_dict(py, census)?)?;
            (intern!(py, "chunked"), nbytes)
        }
    };
    found.set_item(intern!(py, "layout"), layout)?;
    found.set_item(intern!(py, "stored_nbytes"), nbytes)?;
    found.set_item(intern!(py, "filters"), PyTuple::new(py, filters)?)?;
    found.set_item(intern!(py, "fill_times"), (fill.allocated, fill.written))?;
    let value = match fill.value {
        Value::Undefined => None,
        Value::Default => Some(PyBytes::new(py, b"")),
        Value::Given(bytes) => Some(PyBytes::new(py, &bytes)),
    };
    found.set_item(intern!(py, "fill"), value)?;
    found.set_item(intern!(py, "scales"), PyTuple::new(py, scales)?)?;
    found.set_item(intern!(py, "is_scale"), is_scale)?;
    Ok(found)
}
