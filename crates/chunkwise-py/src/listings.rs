//! How do the names in a file become Python's, of one file and of many?

use std::collections::VecDeque;
use std::path::PathBuf;

use chunkwise_format::{Kind, Value};
use chunkwise_metadata::{Entry, Facts, Found, Listed, Listings, Shown, StoredFacts};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::library::census_to_dict;

/// Listings of many files (see `_native.pyi`).
#[pyclass(name = "Listings", module = "chunkwise._native")]
pub struct PyListings {
    listings: Listings,
    threads: usize,
    made: Py<PyAny>,
    /// Those that nobody has taken yet.
    ready: VecDeque<Py<PyAny>>,
}

#[pymethods]
impl PyListings {
    #[new]
    fn new(paths: Vec<PathBuf>, threads: usize, made: Py<PyAny>) -> Self {
        Self { listings: Listings::new(paths), threads, made, ready: VecDeque::new() }
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let Self { listings, threads, made, ready } = self;
        if ready.is_empty() {
            // What takes all of them at once runs no line of Python between two.
            py.check_signals()?;
            let take = |listed: &mut Listed| {
                ready.push_back(of_many(py, listed, made)?);
                Ok::<_, PyErr>(())
            };
            listings.each(*threads, |work| py.detach(work), take)?;
        }
        Ok(ready.pop_front())
    }
}

fn of_many(py: Python<'_>, listed: &mut Listed, made: &Py<PyAny>) -> PyResult<Py<PyAny>> {
    let names = match listed {
        Ok(names) => names.as_deref(),
        failed => {
            let error = std::mem::replace(failed, Ok(None)).err().map(PyErr::from);
            return Ok(error.map_or_else(|| py.None(), |error| error.into_value(py).into_any()));
        }
    };
    match names.map(|names| names_in_short(py, names)).transpose()?.flatten() {
        Some(names) => made.call1(py, (names,)),
        None => Ok(py.None()),
    }
}

/// What a `NameInShort` is (see `_native.pyi`), name by name; None where libhdf5 has to say one.
fn names_in_short<'py>(py: Python<'py>, names: &[Entry]) -> PyResult<Option<Bound<'py, PyList>>> {
    let list = PyList::empty(py);
    for Entry { path, found, .. } in names {
        let kind = kind_of(py, found);
        let (mut shape, mut datatype, mut chunk, mut target) = Default::default();
        let attributes = match found {
            Found::Object(_, Shown::Left(_)) => return Ok(None),
            Found::Object(_, Shown::Group(names) | Shown::Datatype(names)) => &names[..],
            Found::Object(_, Shown::Dataset(names, facts)) => {
                shape = facts.shape.as_ref().map(|shape| PyTuple::new(py, shape)).transpose()?;
                datatype = Some(PyBytes::new(py, &facts.datatype));
                if let StoredFacts::Chunked(stated, _) = &facts.stored {
                    chunk = Some(PyTuple::new(py, stated)?);
                }
                &names[..]
            }
            link => {
                target = target_of(link);
                &[]
            }
        };
        let attributes = PyTuple::new(py, attributes)?;
        list.append((path, kind, attributes, shape, datatype, chunk, target))?;
    }
    Ok(Some(list))
}

fn kind_of<'py>(py: Python<'py>, found: &Found) -> &'py Bound<'py, PyString> {
    let kind = match found {
        Found::Again(_) => return intern!(py, "hard_link"),
        Found::Soft(_) => return intern!(py, "soft_link"),
        Found::External(..) => return intern!(py, "external_link"),
        Found::Other => return intern!(py, "user_link"),
        Found::Object(_, Shown::Group(_)) => Kind::Group,
        Found::Object(_, Shown::Datatype(_)) => Kind::Datatype,
        Found::Object(_, Shown::Dataset(..)) => Kind::Dataset,
        Found::Object(_, Shown::Left(kind)) => *kind,
    };
    match kind {
        Kind::Group => intern!(py, "group"),
        Kind::Dataset => intern!(py, "dataset"),
        _ => intern!(py, "named_type"),
    }
}

/// Where a link leads, as text.
fn target_of(link: &Found) -> Option<String> {
    match link {
        Found::Again(first) => Some(first.to_string()),
        Found::Soft(to) => Some(to.clone()),
        Found::External(file, to) => Some(format!("{file}:{to}")),
        Found::Other | Found::Object(..) => None,
    }
}

/// What a `ListedName` is (see `_native.pyi`), name by name.
pub fn names_to_list(py: Python<'_>, names: Vec<Entry>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for Entry { path, depth, found } in names {
        let kind = kind_of(py, &found);
        let (mut at, mut attributes, mut facts, mut target) = Default::default();
        match found {
            Found::Object(address, shown) => {
                at = Some(address);
                match shown {
                    Shown::Group(names) | Shown::Datatype(names) => attributes = Some(names),
                    Shown::Dataset(names, found) => {
                        attributes = Some(names);
                        facts = Some(facts_to_dict(py, *found)?);
                    }
                    Shown::Left(_) => {}
                }
            }
            link => target = target_of(&link),
        }
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
            let nbytes = census.as_ref().and_then(|census| census.stored_nbytes).unwrap_or(0);
            if let Some(census) = census {
                found.set_item(intern!(py, "census"), census_to_dict(py, census)?)?;
            }
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
