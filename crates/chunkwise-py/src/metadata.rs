//! What does a file say of its objects, read from its own bytes: without libhdf5 and its lock?
//!
//! Records are Python's: of what is not known here, the kind is None, and libhdf5 is asked.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::sync::{Arc, Mutex, PoisonError};

use chunkwise_codec::{Filter, Pipeline};
use chunkwise_engine::{
    ChunkIndexBuilder, ChunkRecord, Chunks, Dataset, DatasetInfo, FileStorage, Layout, ReadError,
    Storage,
};
use chunkwise_format::{
    Attribute, Bits, ByteOrder, Bytes, Charset, Class, Collection, Dataspace, Datatype,
    FormatError, Kind, Object, Problem, Structure, Target, Text, Value,
};
use chunkwise_select::{ChunkGrid, Dims};
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::dataset::PyDataset;
use crate::errors::raise;

/// Files up to this size are read whole; of others, parts of this size are kept.
const WHOLE_NBYTES: u64 = 1 << 20;
const PART_NBYTES: u64 = 16 << 10;
/// So many parts are kept.
const MOST_PARTS: usize = 1 << 10;
/// Of a dataset with more chunks, libhdf5's binding looks up those that are needed.
const MOST_CHUNKS: u64 = 1 << 16;

/// A file's bytes.
struct Stored {
    storage: Arc<dyn Storage>,
    nbytes: u64,
    whole: Option<Vec<u8>>,
    parts: Mutex<HashMap<u64, Arc<[u8]>>>,
}

impl Stored {
    fn new(storage: Arc<dyn Storage>) -> Result<Self, ReadError> {
        let nbytes = storage.end();
        let whole = match nbytes <= WHOLE_NBYTES {
            true => {
                let mut bytes = vec![0; usize::try_from(nbytes).unwrap_or_default()];
                storage.read_at(0, &mut bytes)?;
                Some(bytes)
            }
            false => None,
        };
        Ok(Self { storage, nbytes, whole, parts: Mutex::default() })
    }

    fn part(&self, number: u64) -> Result<Arc<[u8]>, ReadError> {
        let parts = || self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = parts().get(&number) {
            return Ok(Arc::clone(part));
        }
        let begin = number * PART_NBYTES;
        let len = PART_NBYTES.min(self.nbytes.saturating_sub(begin));
        let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
        self.storage.read_at(begin, &mut bytes)?;
        let part: Arc<[u8]> = bytes.into();
        let mut parts = parts();
        if parts.len() >= MOST_PARTS {
            parts.clear();
        }
        parts.insert(number, Arc::clone(&part));
        Ok(part)
    }

    fn gathered(&self, position: u64, nbytes: usize) -> Result<Vec<u8>, ReadError> {
        let mut found = Vec::with_capacity(nbytes);
        if nbytes as u64 > PART_NBYTES {
            found.resize(nbytes, 0);
            self.storage.read_at(position, &mut found)?;
            return Ok(found);
        }
        while found.len() < nbytes {
            let at = position + found.len() as u64;
            let part = self.part(at / PART_NBYTES)?;
            let begin = usize::try_from(at % PART_NBYTES).unwrap_or(usize::MAX);
            // Short only at the end of the file, beyond which nothing is wanted.
            let Some(rest) = part.get(begin..).filter(|rest| !rest.is_empty()) else { break };
            found.extend_from_slice(&rest[..rest.len().min(nbytes - found.len())]);
        }
        Ok(found)
    }
}

impl Bytes for Stored {
    fn read(&self, position: u64, nbytes: usize) -> Result<Cow<'_, [u8]>, String> {
        match &self.whole {
            Some(whole) => whole.read(position, nbytes),
            None => self.gathered(position, nbytes).map(Cow::Owned).map_err(|e| e.to_string()),
        }
    }

    fn nbytes(&self) -> u64 {
        self.nbytes
    }
}

/// The metadata of a local file (see `_native.pyi`).
#[pyclass(name = "Metadata", module = "chunkwise._native", frozen)]
pub struct PyMetadata {
    file: chunkwise_format::File<Stored>,
    storage: Arc<dyn Storage>,
}

#[pymethods]
impl PyMetadata {
    /// The file that a descriptor of this process has open.
    #[staticmethod]
    fn of_descriptor(py: Python<'_>, descriptor: i32) -> Option<Self> {
        py.detach(|| {
            // SAFETY: it is only borrowed, and stays open while the caller waits for this.
            let borrowed = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
            if !borrowed.metadata().ok()?.is_file() {
                return None;
            }
            let storage: Arc<dyn Storage> = FileStorage::reopening(&borrowed).ok()?;
            let stored = Stored::new(Arc::clone(&storage)).ok()?;
            let file = chunkwise_format::File::open(stored).ok()?;
            let superblock = file.superblock();
            let unusual = superblock.open_for_writing
                || superblock.open_for_swmr
                || superblock.driver.is_some()
                || superblock.base.checked_add(superblock.end)? > file.bytes().nbytes();
            (!unusual).then_some(Self { file, storage })
        })
    }

    #[getter]
    fn root(&self) -> u64 {
        self.file.superblock().root
    }

    /// The links of a group in the order of h5py, each a name and an address; None where one is not
    /// hard, or not UTF-8.
    fn links(&self, py: Python<'_>, address: u64) -> PyResult<Option<Vec<(String, u64)>>> {
        let found = py.detach(|| {
            let group = self.file.object(address)?;
            let mut links = group.links()?;
            if group.tracks_links()? {
                links.sort_by_key(|link| link.creation_order);
            }
            Ok(links)
        });
        let links = found.map_err(|error| damaged(py, &error))?;
        let hard = links.into_iter().map(|link| match link.target {
            Target::Hard(address) => String::from_utf8(link.name).ok().map(|name| (name, address)),
            _ => None,
        });
        Ok(hard.collect())
    }

    /// What objects are, and have.
    fn objects<'py>(
        &self,
        py: Python<'py>,
        addresses: Vec<u64>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let records = Records { py, file: &self.file, collections: RefCell::default() };
        addresses.into_iter().map(|address| records.record(address)).collect()
    }

    /// The shape of a dataset; None of what has none.
    fn shape<'py>(&self, py: Python<'py>, address: u64) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let found = self.file.object(address).and_then(|object| object.dataspace());
        match found.map_err(|error| damaged(py, &error))? {
            Some(Dataspace::Null) | None => Ok(None),
            Some(dataspace) => PyTuple::new(py, dataspace.shape()).map(Some),
        }
    }

    /// A dataset that the engine reads, where its numbers are stored as in memory; None for libhdf5.
    fn dataset(
        &self,
        py: Python<'_>,
        address: u64,
        dtype: Bound<'_, PyArrayDescr>,
        label: String,
    ) -> Option<PyDataset> {
        let made = py.detach(|| self.engine_dataset(address))?;
        (made.element_size() == dtype.itemsize())
            .then(|| PyDataset::of_engine(made, dtype.unbind(), label))
    }
}

fn damaged(py: Python<'_>, error: &FormatError) -> PyErr {
    raise(py, "CorruptDataError", error.to_string())
}

/// Python's records of objects.
struct Records<'f, 'py> {
    py: Python<'py>,
    file: &'f chunkwise_format::File<Stored>,
    /// Those of the global heap that were read: one holds values of many objects.
    collections: RefCell<HashMap<u64, Collection<'f>>>,
}

/// So many collections are kept.
const MOST_COLLECTIONS: usize = 64;

impl<'f, 'py> Records<'f, 'py> {
    fn record(&self, address: u64) -> PyResult<Bound<'py, PyDict>> {
        let record = PyDict::new(self.py);
        let object = self.file.object(address).map_err(|error| damaged(self.py, &error))?;
        self.describe(&object, &record)?;
        Ok(record)
    }

    fn describe(&self, object: &Object<'_>, record: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = self.py;
        let sound = |error: FormatError| damaged(py, &error);
        let kind = match object.kind() {
            Kind::Group => "group",
            Kind::Dataset => "dataset",
            Kind::Datatype => "datatype",
            Kind::Unknown => return record.set_item("kind", py.None()),
        };
        record.set_item("kind", kind)?;
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
            chunkwise_format::Layout::Chunked(chunked) => Some(PyTuple::new(py, &chunked.chunk)?),
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
                let lists = each().map(|value| self.references(value));
                let lists = lists.collect::<PyResult<Vec<_>>>()?;
                ("references".into(), PyList::new(py, lists)?.into_any())
            }
            Class::Reference { .. } => ("reference".into(), py.None().into_bound(py)),
            Class::Compound(members) => {
                let Some(places) = self.scales_of(members, value, nbytes) else { return Ok(None) };
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

    /// The bytes of a value of variable length, whose elements have `nbytes` each.
    fn variable(&self, value: &[u8], nbytes: usize) -> PyResult<Vec<u8>> {
        let found = self.file.variable(value).and_then(|found| {
            let Some((count, address, number)) = found else { return Ok(Vec::new()) };
            let mut known = self.collections.borrow_mut();
            if known.len() >= MOST_COLLECTIONS && !known.contains_key(&address) {
                known.clear();
            }
            let collection = match known.entry(address) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(free) => free.insert(self.file.collection(address)?),
            };
            let len = (count as usize).saturating_mul(nbytes);
            let bytes = collection.get(number).and_then(|bytes| bytes.get(..len));
            bytes.map(<[u8]>::to_vec).ok_or(FormatError {
                object: None,
                structure: Structure::GlobalHeap,
                address,
                problem: Problem::Wrong("it lacks an object to which a value leads"),
            })
        });
        found.map_err(|error| damaged(self.py, &error))
    }

    /// Text of any length: up to the first zero, as C has it.
    fn long_text(&self, value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let mut bytes = self.variable(value, 1)?;
        if let Some(len) = bytes.iter().position(|&byte| byte == 0) {
            bytes.truncate(len);
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(PyString::new(py, text).into_any()),
            // As h5py has it.
            Err(_) => PyBytes::new(py, &bytes).call_method1("decode", ("utf-8", "surrogateescape")),
        }
    }

    /// The addresses to which a sequence of references leads.
    fn references(&self, value: &[u8]) -> PyResult<Bound<'py, PyList>> {
        let py = self.py;
        let width = usize::from(self.file.superblock().offset_nbytes).max(1);
        let bytes = self.variable(value, width)?;
        let leads = bytes.chunks_exact(width).map(|bytes| {
            let found = self.file.reference(0, bytes).map_err(|error| damaged(py, &error))?;
            Ok(found.map(|found| found.object))
        });
        PyList::new(py, leads.collect::<PyResult<Vec<_>>>()?)
    }

    /// The places of `REFERENCE_LIST`: a dataset's address, and which of its dimensions.
    fn scales_of(
        &self,
        members: &[chunkwise_format::Member],
        value: &[u8],
        nbytes: usize,
    ) -> Option<Vec<(u64, u32)>> {
        let [dataset, dimension] = members else { return None };
        let is_reference = dataset.datatype.class == (Class::Reference { kind: 0 });
        let order = match &dimension.datatype.class {
            Class::Integer { bits, .. } if dimension.datatype.nbytes == 4 => bits.order,
            _ => return None,
        };
        if !is_reference {
            return None;
        }
        let places = value.chunks_exact(nbytes).map(|value| {
            let begin = dataset.offset as usize;
            let bytes = value.get(begin..begin + dataset.datatype.nbytes as usize)?;
            let object = self.file.reference(0, bytes).ok()??.object;
            let number = value.get(dimension.offset as usize..)?.first_chunk().copied()?;
            let number = match order {
                ByteOrder::Little => u32::from_le_bytes(number),
                ByteOrder::Big => u32::from_be_bytes(number),
                ByteOrder::Vax => return None,
            };
            Some((object, number))
        });
        places.collect()
    }
}

impl PyMetadata {
    fn engine_dataset(&self, address: u64) -> Option<Arc<Dataset>> {
        let object = self.file.object(address).ok()?;
        let datatype = object.datatype().ok()??;
        // Text may have to be converted.
        type_of(&datatype).filter(|kind| !kind.contains(['S', 'U', 'O']))?;
        let element_size = datatype.nbytes as usize;
        let dataspace = object.dataspace().ok()??;
        let shape = Dims::from_slice(dataspace.shape());
        if shape.is_empty() || !object.external_files().ok()?.is_empty() {
            return None;
        }
        let base = self.file.superblock().base;
        let fill = object.fill_value().ok()??;
        let fill = match (fill.written, fill.value) {
            (0 | 2, Value::Given(bytes)) if bytes.len() == element_size => bytes,
            (0 | 2, Value::Default) => vec![0; element_size],
            // Such elements are left as they are, or are an error.
            _ => return None,
        };
        let layout = match object.layout().ok()?? {
            chunkwise_format::Layout::Contiguous { address, nbytes } => {
                let whole = dataspace.count()?.checked_mul(element_size as u64)?;
                if nbytes.is_some_and(|nbytes| nbytes != whole) {
                    return None;
                }
                let address = match address {
                    Some(address) => Some(base.checked_add(address)?),
                    None => None,
                };
                if address.is_some_and(|at| at.saturating_add(whole) > self.storage.end()) {
                    return None;
                }
                Layout::Contiguous { address }
            }
            chunkwise_format::Layout::Chunked(chunked) => {
                let filters = object.filters().ok()?;
                let filters = filters
                    .iter()
                    .map(|filter| Filter::from_hdf5(filter.number.into(), &filter.options));
                let pipeline = Pipeline::new(filters.collect::<Option<Vec<_>>>()?);
                let chunk = Dims::from_slice(&chunked.chunk);
                let grid = ChunkGrid::new(&shape, &chunk).ok()?;
                if grid.len() > MOST_CHUNKS || chunked.element_nbytes != element_size as u64 {
                    return None;
                }
                Layout::Chunked {
                    unfiltered_partial_chunks: chunked.edges_unfiltered,
                    index: self.chunks(&object, &grid, base)?,
                    chunk,
                    pipeline,
                }
            }
            _ => return None,
        };
        let info = DatasetInfo { shape, element_size, fill: Some(fill), layout };
        Dataset::new(info, Arc::clone(&self.storage)).ok()
    }

    fn chunks(&self, object: &Object<'_>, grid: &ChunkGrid, base: u64) -> Option<Chunks> {
        let end = self.storage.end();
        let mut found = object.chunks().ok()?;
        found.retain(|chunk| {
            let within = |(&at, (&n, &len)): (&u64, (&u64, &u64))| at < n.div_ceil(len);
            chunk.scaled.iter().zip(grid.shape().iter().zip(grid.chunk())).all(within)
        });
        let mut records = Vec::with_capacity(found.len());
        for chunk in found {
            let origin: Dims =
                chunk.scaled.iter().zip(grid.chunk()).map(|(at, len)| at * len).collect();
            let address = base.checked_add(chunk.address)?;
            // The other way has words for what is damaged.
            if address.checked_add(chunk.stored_nbytes)? > end {
                return None;
            }
            let record = ChunkRecord {
                address,
                stored_nbytes: chunk.stored_nbytes,
                filter_mask: chunk.filter_mask,
            };
            records.push((grid.linear_index_of_origin(&origin)?, record));
        }
        records.sort_unstable_by_key(|&(position, _)| position);
        let mut builder = ChunkIndexBuilder::with_capacity(records.len() as u64).ok()?;
        for (position, record) in records {
            builder.push(position, record).ok()?;
        }
        Some(Chunks::from(builder.finish(grid.len()).ok()?))
    }
}

/// The type as NumPy writes it: numbers as h5py reads them without a conversion, text of a fixed
/// length (``S`` of ASCII, ``U`` of UTF-8), ``O`` of text of any length; None of others.
fn type_of(datatype: &Datatype) -> Option<String> {
    let nbytes = datatype.nbytes;
    let order = |bits: &Bits| {
        let plain = bits.offset == 0 && u32::from(bits.precision) == nbytes * 8;
        match bits.order {
            _ if !plain => None,
            _ if nbytes == 1 => Some('|'),
            ByteOrder::Little => Some('<'),
            ByteOrder::Big => Some('>'),
            ByteOrder::Vax => None,
        }
    };
    match &datatype.class {
        Class::Integer { bits, signed } if [1, 2, 4, 8].contains(&nbytes) => {
            Some(format!("{}{}{nbytes}", order(bits)?, if *signed { 'i' } else { 'u' }))
        }
        Class::Float { bits, float } => {
            let parts = (
                float.mantissa_bits,
                float.exponent,
                float.exponent_bits,
                float.sign,
                float.exponent_bias,
            );
            let ieee = match nbytes {
                2 => parts == (10, 10, 5, 15, 15),
                4 => parts == (23, 23, 8, 31, 127),
                8 => parts == (52, 52, 11, 63, 1023),
                _ => false,
            };
            let plain = ieee && float.mantissa == 0 && float.normalization == 2;
            plain.then_some(format!("{}f{nbytes}", order(bits)?))
        }
        Class::Text(Text { charset, .. }) => match charset {
            Charset::Ascii => Some(format!("S{nbytes}")),
            Charset::Utf8 => Some(format!("U{nbytes}")),
            Charset::Other(_) => None,
        },
        Class::LongText { text, .. } => match text.charset {
            Charset::Ascii => Some("O:ascii".into()),
            Charset::Utf8 => Some("O:utf-8".into()),
            Charset::Other(_) => None,
        },
        _ => None,
    }
}

/// Text of a fixed length as libhdf5 gives it to h5py, which fills with zeros.
fn trimmed<'v>(text: &Text, value: &'v [u8]) -> &'v [u8] {
    const ENDS_WITH_ZERO: u8 = 0;
    const FILLED_WITH_BLANKS: u8 = 2;
    let len = match text.padding {
        ENDS_WITH_ZERO => value.iter().position(|&byte| byte == 0),
        FILLED_WITH_BLANKS => value.iter().rposition(|&byte| byte != b' ').map(|last| last + 1),
        _ => None,
    };
    let blank = text.padding == FILLED_WITH_BLANKS && value.iter().all(|&byte| byte == b' ');
    let kept = if blank { &[] } else { &value[..len.unwrap_or(value.len())] };
    let end = kept.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &kept[..end]
}
