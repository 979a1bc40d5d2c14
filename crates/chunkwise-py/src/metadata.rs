//! What does a file say of its objects, read from its own bytes: without libhdf5 and its lock?
//!
//! Records are Python's: of what is not known here, the kind is None, and libhdf5 says it.

use std::sync::{Arc, Mutex, PoisonError};

use chunkwise_engine::platform::{Descriptor, borrowed};
use chunkwise_format::{Attribute, Class, Dataspace, FormatError, Kind, Layout, Object, Target};
use chunkwise_metadata::{Account, Metadata, Opens, Values, Visit, trimmed, type_of};
use numpy::{PyArrayDescr, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::dataset::PyDataset;
use crate::errors::raise;
use crate::listings::names_to_list;
use crate::storage::PyStorage;

/// Of a dataset with more chunks, those that are read are looked up.
const MOST_LISTED: u64 = 1 << 16;

/// Names and addresses, and errors.
type PyReadable<'py> = (Vec<(Bound<'py, PyBytes>, Option<u64>)>, Vec<String>);

/// The metadata of a local file (see `_native.pyi`).
#[pyclass(name = "Metadata", module = "chunkwise._native", frozen)]
pub struct PyMetadata {
    pub(crate) metadata: Arc<Metadata>,
}

#[pymethods]
impl PyMetadata {
    /// The file that a descriptor of this process has open.
    #[staticmethod]
    #[pyo3(signature = (descriptor, *, damaged = false))]
    fn of_descriptor(py: Python<'_>, descriptor: Descriptor, damaged: bool) -> Option<Self> {
        py.detach(|| {
            // SAFETY: it is only borrowed, and stays open while the caller waits for this.
            let file = unsafe { borrowed(descriptor).ok()? };
            let made = match damaged {
                true => Metadata::of_any_file(&file),
                false => Metadata::of_file(&file),
            };
            made.map(|metadata| Self { metadata: Arc::new(metadata) })
        })
    }

    /// That of a file whose bytes are elsewhere.
    #[staticmethod]
    fn of_storage(py: Python<'_>, storage: &PyStorage) -> Option<Self> {
        let storage = Arc::clone(&storage.0);
        let made = py.detach(|| Metadata::of_storage(storage));
        made.map(|metadata| Self { metadata: Arc::new(metadata) })
    }

    #[getter]
    fn root(&self) -> u64 {
        self.metadata.root()
    }

    /// The links of a group in the order of h5py, each a name and an address; None where one is not
    /// hard, or not UTF-8.
    fn links(&self, py: Python<'_>, address: u64) -> PyResult<Option<Vec<(String, u64)>>> {
        let found = py.detach(|| {
            self.metadata.expect_members(address);
            self.metadata.links(&self.metadata.object(address)?)
        });
        let links = found.map_err(|error| damaged(py, &error))?;
        let hard = links.into_iter().map(|link| match link.target {
            Target::Hard(address) => String::from_utf8(link.name).ok().map(|name| (name, address)),
            _ => None,
        });
        Ok(hard.collect())
    }

    /// The links of a group that can be read, and what is wrong with others (see `_native.pyi`).
    fn readable_links<'py>(&self, py: Python<'py>, address: u64) -> PyReadable<'py> {
        let object = match self.metadata.object(address) {
            Ok(object) => object,
            Err(error) => return (Vec::new(), vec![error.to_string()]),
        };
        let (links, errors) = object.readable_links();
        let links = links.into_iter().map(|link| {
            let address = match link.target {
                Target::Hard(address) => Some(address),
                _ => None,
            };
            (PyBytes::new(py, &link.name), address)
        });
        (links.collect(), errors.iter().map(FormatError::to_string).collect())
    }

    /// How many attributes of an object can be read.
    fn readable_attributes(&self, address: u64) -> usize {
        self.metadata.object(address).map_or(0, |object| object.readable_attributes().0.len())
    }

    /// What is wrong with an object, each time with the structure and its address.
    fn damage(&self, address: u64) -> Vec<String> {
        self.metadata.damage(address).iter().map(FormatError::to_string).collect()
    }

    /// Bytes at positions with which HDF5 2.0 opens more datasets (see `_native.pyi`).
    fn narrowed<'py>(&self, py: Python<'py>) -> Vec<(u64, u64, Bound<'py, PyBytes>)> {
        let found = py.detach(|| self.metadata.narrowed());
        found.into_iter().map(|(of, at, bytes)| (of, at, PyBytes::new(py, &bytes))).collect()
    }

    /// What objects are, and have.
    fn objects<'py>(
        &self,
        py: Python<'py>,
        addresses: Vec<u64>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let metadata = &*self.metadata;
        py.detach(|| metadata.expect(&addresses));
        let records = Records { py, metadata, values: Values::new(metadata) };
        addresses.into_iter().map(|address| records.record(address)).collect()
    }

    /// The shape of a dataset; None of what has none.
    fn shape<'py>(&self, py: Python<'py>, address: u64) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let found = self.metadata.shape(address).map_err(|error| damaged(py, &error))?;
        found.map(|shape| PyTuple::new(py, &shape)).transpose()
    }

    /// What opening and listing the file costs (see `_native.pyi`).
    fn account<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(account) = py.detach(|| self.metadata.account()) else { return Ok(None) };
        let Account { opening, listing, indexes, .. } = account;
        let items = [
            ("open_requests", opening.requests),
            ("open_nbytes", opening.nbytes),
            ("list_requests", opening.requests.saturating_add(listing.requests)),
            ("list_nbytes", opening.nbytes.saturating_add(listing.nbytes)),
            ("index_requests", indexes.requests),
            ("index_nbytes", indexes.nbytes),
            ("nbytes", account.nbytes),
            ("extents", account.extents),
            ("span_nbytes", account.span_nbytes),
            ("blocks", account.blocks),
            ("raw_nbytes", account.raw_nbytes),
            ("unaccounted_nbytes", account.rest_nbytes),
        ];
        items.into_py_dict(py).map(Some)
    }

    /// What a path leads to from a group (see `_native.pyi`).
    fn find(&self, py: Python<'_>, group: u64, path: &[u8]) -> Option<(bool, u64)> {
        py.detach(|| self.metadata.find(group, path)).and_then(known)
    }

    /// The names in a group (see `_native.pyi`).
    fn names<'py>(&self, py: Python<'py>, group: u64) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some(names) = py.detach(|| self.metadata.names(group)) else { return Ok(None) };
        PyList::new(py, names.iter().map(|name| name_of(py, name))).map(Some)
    }

    /// A walk over what lies below a group; None where libhdf5 has to list it.
    fn visit(&self, py: Python<'_>, group: u64, deep: bool) -> Option<PyVisit> {
        let metadata = Arc::clone(&self.metadata);
        py.detach(|| Visit::new(metadata, group, deep)).map(|visit| PyVisit(Mutex::new(visit)))
    }

    /// The version of the message that says how a dataset is stored; None if nothing says it.
    fn layout_version(&self, address: u64) -> Option<u8> {
        self.metadata.object(address).and_then(|object| object.layout_version()).ok().flatten()
    }

    /// A dataset that the engine reads (see `_native.pyi`), and its dtype.
    #[pyo3(signature = (address, label, most_listed = MOST_LISTED))]
    fn dataset<'py>(
        &self,
        py: Python<'py>,
        address: u64,
        label: String,
        most_listed: u64,
    ) -> PyResult<Option<(PyDataset, Bound<'py, PyArrayDescr>)>> {
        let made = py.detach(|| self.metadata.dataset(address, most_listed));
        let Some((made, kind)) = made else { return Ok(None) };
        let dtype = PyArrayDescr::new(py, kind)?;
        Ok(Some((PyDataset::of_engine(made, dtype.clone().unbind(), label), dtype)))
    }

    /// All names in the file, in the order of `chunkwise.files.objects.walk`; None where only
    /// libhdf5 knows which there are.
    fn listing<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some(found) = py.detach(|| self.metadata.listing()) else { return Ok(None) };
        names_to_list(py, found).map(Some)
    }
}

/// Names in a file, in portions (see `_native.pyi`).
#[pyclass(name = "Visit", module = "chunkwise._native", frozen)]
pub struct PyVisit(Mutex<Visit>);

#[pymethods]
impl PyVisit {
    /// The next names, as h5py gives them, and what they are.
    fn next<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Option<Bound<'py, PyList>>> {
        let found = py.detach(|| {
            let mut visit = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            visit.next(count)
        });
        let Some(found) = found else { return Ok(None) };
        let list = PyList::empty(py);
        for (name, opens) in found {
            let (is_group, address) = known(opens).unzip();
            list.append((name_of(py, &name), is_group, address))?;
        }
        Ok(Some(list))
    }
}

/// A name as h5py gives it.
fn name_of<'py>(py: Python<'py>, name: &[u8]) -> Bound<'py, PyAny> {
    match str::from_utf8(name) {
        Ok(text) => PyString::new(py, text).into_any(),
        Err(_) => PyBytes::new(py, name).into_any(),
    }
}

/// Whether libhdf5 would open a group or a dataset, and where that is; None if only it says it.
fn known(opens: Opens) -> Option<(bool, u64)> {
    match opens {
        Opens::Group(address) => Some((true, address)),
        Opens::Dataset(address) => Some((false, address)),
        Opens::Left => None,
    }
}

/// What object has its header at an address (see `_native.pyi`).
#[pyfunction]
pub fn kind_at(
    bytes: PyReadonlyArray1<'_, u8>,
    base: u64,
    address: u64,
) -> PyResult<Option<&'static str>> {
    let kind = Kind::at(&bytes.as_slice()?, base, address);
    Ok(kind.and_then(name_of_kind))
}

fn name_of_kind(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Group => Some("group"),
        Kind::Dataset => Some("dataset"),
        Kind::Datatype => Some("datatype"),
        Kind::Unknown => None,
    }
}

fn damaged(py: Python<'_>, error: &FormatError) -> PyErr {
    raise(py, "CorruptDataError", error.to_string())
}

/// Python's records of objects.
struct Records<'f, 'py> {
    py: Python<'py>,
    metadata: &'f Metadata,
    values: Values<'f>,
}

impl<'py> Records<'_, 'py> {
    fn record(&self, address: u64) -> PyResult<Bound<'py, PyDict>> {
        let record = PyDict::new(self.py);
        let object = self.metadata.object(address).map_err(|error| damaged(self.py, &error))?;
        self.describe(&object, &record)?;
        Ok(record)
    }

    fn describe(&self, object: &Object<'_>, record: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = self.py;
        let sound = |error: FormatError| damaged(py, &error);
        let kind = name_of_kind(object.kind());
        record.set_item("kind", kind)?;
        if kind.is_none() {
            return Ok(());
        }
        record.set_item("links", object.reference_count().map_err(sound)?)?;
        record.set_item("attributes", self.attributes(object)?)?;
        if object.kind() != Kind::Dataset {
            return Ok(());
        }
        let (Some(datatype), Some(dataspace), Some(layout)) = (
            object.datatype().map_err(sound)?,
            object.dataspace().map_err(sound)?,
            object.layout().map_err(sound)?,
        ) else {
            return record.set_item("kind", py.None());
        };
        record.set_item("type", type_of(&datatype))?;
        match &dataspace {
            Dataspace::Null => record.set_item("shape", py.None())?,
            space => record.set_item("shape", PyTuple::new(py, space.shape())?)?,
        }
        record.set_item("max_shape", PyTuple::new(py, dataspace.max_shape())?)?;
        let chunk = match &layout {
            Layout::Chunked(chunked) => Some(PyTuple::new(py, &chunked.chunk)?),
            _ => None,
        };
        record.set_item("chunk", chunk)?;
        let filters = object.filters().map_err(sound)?;
        let filters: Vec<_> =
            filters.into_iter().map(|filter| (filter.number, filter.options)).collect();
        record.set_item("filters", filters)
    }

    /// Names and values, in the order of h5py; None where a name is not UTF-8.
    fn attributes(&self, object: &Object<'_>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let py = self.py;
        let mut all = object.attributes().map_err(|error| damaged(py, &error))?;
        if object.tracks_attributes() {
            all.sort_by_key(|attribute| attribute.creation_order);
        }
        let found = PyDict::new(py);
        for attribute in &all {
            let Ok(name) = std::str::from_utf8(&attribute.name) else { return Ok(None) };
            found.set_item(name, self.attribute(attribute)?)?;
        }
        Ok(Some(found))
    }

    /// The type, the shape and the values of an attribute (see `_native.pyi`).
    fn attribute(&self, attribute: &Attribute) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let py = self.py;
        let Attribute { datatype, dataspace, value, .. } = attribute;
        let shape = match dataspace {
            Dataspace::Null => py.None().into_bound(py),
            space => PyTuple::new(py, space.shape())?.into_any(),
        };
        let nbytes = datatype.nbytes.max(1) as usize;
        let each = || value.chunks_exact(nbytes);
        let (kind, values) = match &datatype.class {
            Class::LongText { .. } => {
                let texts = each().map(|value| self.long_text(value));
                let Some(kind) = type_of(datatype) else { return Ok(None) };
                (kind, PyList::new(py, texts.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
            Class::Text(text) => {
                let Some(kind) = type_of(datatype) else { return Ok(None) };
                let texts = each().map(|value| PyBytes::new(py, trimmed(text, value)));
                (kind, PyList::new(py, texts)?.into_any())
            }
            Class::Sequence(base) if base.class == (Class::Reference { kind: 0 }) => {
                let lists = each().map(|value| self.values.references(value));
                let lists = lists.collect::<Result<Vec<_>, _>>();
                let lists = lists.map_err(|error| damaged(py, &error))?;
                ("references".into(), PyList::new(py, lists)?.into_any())
            }
            Class::Reference { .. } => ("reference".into(), py.None().into_bound(py)),
            Class::Compound(members) => {
                let Some(places) = self.values.places(members, value, nbytes) else {
                    return Ok(None);
                };
                ("places".into(), PyList::new(py, places)?.into_any())
            }
            _ => {
                let Some(kind) = type_of(datatype) else { return Ok(None) };
                (kind, PyBytes::new(py, value).into_any())
            }
        };
        let items = [PyString::new(py, &kind).into_any(), shape, values];
        PyTuple::new(py, items).map(Some)
    }

    /// Text of any length: up to the first zero, as C has it.
    fn long_text(&self, value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let found = self.values.variable(value, 1);
        let mut bytes = found.map_err(|error| damaged(py, &error))?;
        if let Some(len) = bytes.iter().position(|&byte| byte == 0) {
            bytes.truncate(len);
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(PyString::new(py, text).into_any()),
            // As h5py has it.
            Err(_) => PyBytes::new(py, &bytes).call_method1("decode", ("utf-8", "surrogateescape")),
        }
    }
}
