//! An open dataset as Python sees it: read by the engine, or a reason why not.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chunkwise_engine::{
    AnyDataset, Fields, Layout, MappedSource, ReadError, SavedForm, VirtualDataset,
};
use chunkwise_libhdf5::{DescribeOptions, ExternalFile, FileBytes, Saved, Unsuited, describe_as};
use chunkwise_select::{ChunkGrid, Hyperslab, Mapping, SelectError, Selection, resolve_index};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::{bytes_mut, new_array};
use crate::conversion::{Taken, field_bytes};
use crate::errors::{allocation_error, raise, read_error, select_error, undescribed};
use crate::index;
use crate::interrupts::interruptible;
use crate::library::PyLibrary;
use crate::listing::PySavedChunks;
use crate::selection::{Parts, PySelection};
use crate::storage::PyStorage;
use crate::under_way::UnderWay;

#[pyclass(name = "Dataset", module = "chunkwise._native", frozen)]
pub struct PyDataset {
    engine: Result<AnyDataset, String>,
    dtype: Py<PyArrayDescr>,
    label: String,
    /// Where elements are not copied as they are stored.
    fields: Option<Fields>,
    /// Whether its data lies in files that libhdf5 does not keep open.
    elsewhere: bool,
    /// A program may be writing the chunks.
    follows: bool,
    under_way: UnderWay,
}

/// Hyperslabs of a virtual dataset that are hyperslabs of a source: the former, the source, the
/// latter, how elements are converted, and file and dataset for messages.
type MappedTo<'py> =
    (Vec<Parts>, PyRef<'py, PyDataset>, Vec<Parts>, Vec<(usize, usize, Taken)>, String);

/// What Python says of an open dataset, a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Record<'py> {
    library: PyRef<'py, PyLibrary>,
    /// Live handles of this library: the dataset, and the type of its elements in memory.
    dataset_id: i64,
    memory_type_id: i64,
    dtype: Bound<'py, PyArrayDescr>,
    label: String,
    /// With all its chunks.
    listed: bool,
    /// How elements are stored that are converted to `dtype`.
    text: Option<String>,
    /// Its file has libhdf5's driver of local files; of one that is none, `storage` has the bytes.
    plain: bool,
    storage: Option<PyRef<'py, PyStorage>>,
    /// The caller follows its writer, too.
    follows: bool,
    /// Chunks that were written down beside it.
    saved: Option<(PyRef<'py, PySavedChunks>, u64, bool, u64)>,
    /// The files of its data: path, offset and bytes.
    external: Vec<(PathBuf, u64, u64)>,
}

/// More mappings than this are not made of those of a dataset.
const MOST_MAPPINGS: usize = 1 << 16;

#[pymethods]
impl PyDataset {
    /// Describe an open dataset.
    #[new]
    fn new(record: Record<'_>) -> PyResult<Self> {
        let Record { library, dataset_id, memory_type_id, dtype, label, text, .. } = record;
        let Record { listed, plain, storage, follows, saved, external, .. } = record;
        let py = dtype.py();
        let elsewhere = !external.is_empty();
        // Pointers to Python objects must never be overwritten with file bytes.
        let engine = if dtype.has_object() {
            Err("its elements are of variable length or references".to_string())
        } else {
            let external = external.into_iter().map(|(path, offset, nbytes)| ExternalFile {
                path,
                offset,
                nbytes,
            });
            let storage = storage.as_ref().map(|given| &given.0);
            let bytes = FileBytes { plain, storage };
            let options = DescribeOptions { listed, bytes, follows, external: external.collect() };
            let find = |grid: &ChunkGrid| {
                let (file, begin, is_dense, entries) = saved.as_ref()?;
                file.of_grid(*begin, SavedForm { is_dense: *is_dense, entries: *entries }, grid)
            };
            let saved: Option<Saved<'_>> = if saved.is_some() { Some(&find) } else { None };
            let library = &library.library;
            // SAFETY: live handles of this library, by the contract above.
            match unsafe { describe_as(library, dataset_id, memory_type_id, options, saved) } {
                Ok(dataset) if dataset.element_size() == dtype.itemsize() => {
                    Ok(AnyDataset::Stored(dataset))
                }
                Ok(_) => Err("its stored type has to be converted for NumPy".to_string()),
                Err(Unsuited::Reason(reason)) => Err(reason),
                Err(Unsuited::Failed(error)) => {
                    return Err(undescribed(py, &label, &error.to_string(), dataset_id));
                }
            }
        };
        let mut fields = None;
        if let (Ok(engine), Some(text)) = (&engine, text) {
            let to = format!("|S{}", dtype.itemsize());
            let parts = field_bytes(vec![(0, 0, Taken::Converted(text, to))]);
            let made =
                Fields::new(engine.element_size(), dtype.itemsize(), parts.unwrap_or_default());
            fields = Some(made.map_err(|error| read_error(py, &label, &error))?);
        }
        let (dtype, under_way) = (dtype.unbind(), UnderWay::default());
        Ok(Self { engine, dtype, label, fields, elsewhere, follows, under_way })
    }

    /// A virtual dataset, whose elements lie in others; the rest is `fill`, or without it is left
    /// alone.
    #[staticmethod]
    fn mapped(
        shape: Vec<u64>,
        dtype: Bound<'_, PyArrayDescr>,
        fill: Option<Vec<u8>>,
        sources: Vec<MappedTo<'_>>,
        label: String,
    ) -> PyResult<Self> {
        let py = dtype.py();
        let mut mapped = Vec::new();
        let mut reason = None;
        for (here, source, there, parts, name) in &sources {
            let found = mappings(&shape, here, source, there);
            let found = match found {
                Ok(found) => found,
                Err(error) => {
                    reason = Some(format!("its source {name} does not fit: {error}"));
                    continue;
                }
            };
            match found {
                Some(found) if mapped.len() + found.len() <= MOST_MAPPINGS => {
                    let fields = source.made_into(dtype.itemsize(), parts)?;
                    let engine = source.native()?;
                    let one = |mapping| MappedSource {
                        mapping,
                        source: engine.clone(),
                        fields: fields.clone(),
                        name: name.clone(),
                    };
                    mapped.extend(found.into_iter().map(one));
                }
                _ => reason = Some(format!("it maps {name} in too many pieces")),
            }
        }
        let engine = match reason {
            Some(reason) => Err(reason),
            None => VirtualDataset::new(shape.into(), dtype.itemsize(), fill, mapped)
                .map_err(|error| read_error(py, &label, &error))?
                .map(AnyDataset::Virtual)
                .ok_or_else(|| "its mappings overlap".to_string()),
        };
        Ok(Self {
            engine,
            dtype: dtype.unbind(),
            label,
            fields: None,
            elsewhere: false,
            follows: false,
            under_way: UnderWay::default(),
        })
    }

    /// Why libhdf5 has to read this dataset, or None; known at once, or when a read has found out.
    #[getter]
    fn reason(&self) -> Option<&str> {
        match &self.engine {
            Ok(AnyDataset::Stored(engine)) => engine.unsound(),
            Ok(AnyDataset::Virtual(_)) => None,
            Err(reason) => Some(reason),
        }
    }

    /// Elements in each dimension; the engine must be able to read them, here and below.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.native()?.shape())
    }

    /// The shape of a chunk; None of a contiguous or a virtual dataset.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let AnyDataset::Stored(dataset) = self.native()? else { return Ok(None) };
        match &dataset.info().layout {
            Layout::Chunked { chunk, .. } => PyTuple::new(py, chunk.iter()).map(Some),
            Layout::Contiguous { .. } => Ok(None),
        }
    }

    /// Whether its elements lie in other datasets.
    #[getter]
    fn is_virtual(&self) -> bool {
        matches!(&self.engine, Ok(AnyDataset::Virtual(_)))
    }

    /// Whether elements are converted as they are read, so that they cannot be converted once more.
    #[getter]
    fn converts(&self) -> bool {
        let within = matches!(&self.engine, Ok(AnyDataset::Virtual(dataset)) if dataset.converts());
        within || self.fields.is_some()
    }

    /// Whether what was never written is read as the fill value, rather than left alone.
    #[getter]
    fn fills(&self) -> PyResult<bool> {
        Ok(!self.native()?.leaves_missing_untouched())
    }

    /// Know where all chunks lie; the engine must be able to read them.
    fn list_chunks(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.native()?;
        py.detach(|| engine.list_chunks()).map_err(|error| read_error(py, &self.label, &error))
    }

    /// `d[index]`; None where an entry has no meaning here, and of a mask alone, for which h5py
    /// makes an array of its own.
    fn getitem<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = index.py();
        let Ok(engine) = &self.engine else { return Ok(None) };
        let resolved = match index::regular_items(index) {
            Some(items) => resolve_index(engine.shape(), &items)
                .map_err(|error| select_error(py, &self.label, &error))?,
            None if index::is_mask(index) => return Ok(None),
            None => match index::resolve(engine.shape(), index, false, &self.label)? {
                Some(resolved) => resolved,
                None => return Ok(None),
            },
        };
        let dtype = self.dtype.bind(py);
        let array = new_array(py, dtype, &resolved.result_shape, engine.leaves_missing_untouched())
            .map_err(|error| allocation_error(py, &self.label, error))?;
        self.fill(py, engine, &resolved.selection, &array)?;
        // Of an array type an element is an array.
        if resolved.is_scalar() && array.ndim() == 0 {
            return array.get_item(PyTuple::empty(py)).map(Some);
        }
        Ok(Some(array.into_any()))
    }

    /// Read a selection, into `out` or a new array; the engine must be able to.
    #[pyo3(signature = (selection, out = None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        selection: &PySelection,
        out: Option<Bound<'py, PyUntypedArray>>,
    ) -> PyResult<Bound<'py, PyUntypedArray>> {
        let engine = self.native()?;
        let array = match out {
            Some(array) => array,
            None => {
                let (shape, zeroed) =
                    (&selection.0.result_shape, engine.leaves_missing_untouched());
                new_array(py, self.dtype.bind(py), shape, zeroed)
                    .map_err(|error| allocation_error(py, &self.label, error))?
            }
        };
        self.fill(py, engine, &selection.0.selection, &array)?;
        Ok(array)
    }

    /// Read a selection as elements of `dtype`, into `out` or a new array.  `parts` are what is taken
    /// of each element: where it begins in an element of the dataset and in one of `dtype`, and how
    /// long it is, or the types of NumPy between which it is converted.
    #[pyo3(signature = (selection, dtype, parts, out = None))]
    fn read_as<'py>(
        &self,
        selection: &PySelection,
        dtype: &Bound<'py, PyArrayDescr>,
        parts: Vec<(usize, usize, Taken)>,
        out: Option<Bound<'py, PyUntypedArray>>,
    ) -> PyResult<Bound<'py, PyUntypedArray>> {
        let py = dtype.py();
        let engine = self.native()?;
        let parts = field_bytes(parts)
            .ok_or_else(|| PyValueError::new_err(format!("{}: no such conversion", self.label)))?;
        let fields = Fields::new(engine.element_size(), dtype.itemsize(), parts)
            .map_err(|error| read_error(py, &self.label, &error))?;
        let array = match out {
            Some(array) => array,
            // What no field fills, and what was never written, is 0.
            None => new_array(py, dtype, &selection.0.result_shape, true)
                .map_err(|error| allocation_error(py, &self.label, error))?,
        };
        if !array.dtype().is_equiv_to(dtype) || array.dtype().has_object() {
            return Err(PyValueError::new_err(format!(
                "{}: the array's dtype is {}, not {dtype}",
                self.label,
                array.dtype(),
            )));
        }
        // SAFETY: as in `fill`.
        let out = unsafe { bytes_mut(&array)? };
        self.read_into(py, engine, &selection.0.selection, Some(&fields), out)?;
        Ok(array)
    }

    /// Begin no other read, and with `wait` return when those that are under way have ended: its file
    /// is closed.
    fn end_reads(&self, py: Python<'_>, wait: bool) -> PyResult<()> {
        self.under_way.end(py, wait)
    }

    /// What reading a selection would do, in figures.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        selection: &PySelection,
    ) -> PyResult<Bound<'py, PyDict>> {
        let engine = self.native()?;
        let figures = py
            .detach(|| engine.explain(&selection.0.selection))
            .map_err(|error| read_error(py, &self.label, &error))?;
        let dict = PyDict::new(py);
        dict.set_item("chunks", figures.chunks)?;
        dict.set_item("missing_chunks", figures.missing_chunks)?;
        dict.set_item("stored_nbytes", figures.stored_nbytes)?;
        dict.set_item("decoded_nbytes", figures.decoded_nbytes)?;
        dict.set_item("selected_nbytes", figures.selected_nbytes)?;
        dict.set_item("decoded_blocks", figures.blocks.map(|(decoded, _)| decoded))?;
        dict.set_item("blocks", figures.blocks.map(|(_, all)| all))?;
        Ok(dict)
    }
}

impl PyDataset {
    /// A dataset whose elements lie in its file as in memory.
    pub fn of_engine(
        dataset: Arc<chunkwise_engine::Dataset>,
        dtype: Py<PyArrayDescr>,
        label: String,
    ) -> Self {
        Self {
            engine: Ok(AnyDataset::Stored(dataset)),
            dtype,
            label,
            fields: None,
            elsewhere: false,
            follows: false,
            under_way: UnderWay::default(),
        }
    }

    fn native(&self) -> PyResult<&AnyDataset> {
        self.engine.as_ref().map_err(|reason| {
            PyValueError::new_err(format!("{} is read through libhdf5: {reason}", self.label))
        })
    }

    /// Read into an array, without the GIL.
    fn fill(
        &self,
        py: Python<'_>,
        engine: &AnyDataset,
        selection: &Selection,
        array: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<()> {
        if !array.dtype().is_equiv_to(&self.base_dtype(py)) || array.dtype().has_object() {
            return Err(PyValueError::new_err(format!(
                "{}: the array's dtype is {}, the dataset's {}",
                self.label,
                array.dtype(),
                self.dtype.bind(py)
            )));
        }
        // SAFETY: the array is either new, or the caller's, who must not touch it while
        // it is filled, as for every `out=` of NumPy.
        let out = unsafe { bytes_mut(array)? };
        self.read_into(py, engine, selection, self.fields.as_ref(), out)
    }

    /// Read without the GIL.
    ///
    /// A signal handler's exception, such as KeyboardInterrupt, comes when the read has ended, and
    /// nothing writes to `out` any more.
    fn read_into(
        &self,
        py: Python<'_>,
        engine: &AnyDataset,
        selection: &Selection,
        fields: Option<&Fields>,
        out: &mut [u8],
    ) -> PyResult<()> {
        let failed = |error: ReadError| read_error(py, &self.label, &error);
        let Some(_until_it_ends) = self.under_way.begin() else {
            let message = format!("{}: its file was closed; open it again", self.label);
            return Err(raise(py, "ChangedSourceError", message));
        };
        let done = match engine {
            AnyDataset::Stored(dataset) => {
                if self.elsewhere && !dataset.storage().is_unchanged() {
                    let what = "an external file".to_string();
                    return Err(failed(ReadError::Replaced(what)));
                }
                let plan = match selection {
                    // Points are sorted, and masks counted.
                    Selection::Product(_) => py.detach(|| dataset.plan(selection)),
                    Selection::Hyperslab(_) | Selection::Union { .. } => dataset.plan(selection),
                };
                let plan = plan.map_err(failed)?;
                let read = |cancelled: &AtomicBool| match fields {
                    None => dataset.read_plan(&plan, out, cancelled),
                    Some(fields) => dataset.read_fields(&plan, fields, out, cancelled),
                };
                // A request may take long, whatever is wanted.
                let far = dataset.storage().cost().is_remote();
                let nbytes = if far { u64::MAX } else { dataset.work_nbytes(&plan) };
                interruptible(py, nbytes, || dataset.storage().interrupt(), read)?
            }
            AnyDataset::Virtual(dataset) => {
                let nbytes = py.detach(|| dataset.work_nbytes(selection)).map_err(failed)?;
                // Its sources are local files.
                interruptible(
                    py,
                    nbytes,
                    || (),
                    |cancelled| engine.read(selection, fields, out, cancelled),
                )?
            }
        };
        done.unwrap_or(Err(ReadError::Cancelled)).map_err(|error| self.failed(py, &error))
    }

    /// How its elements become elements of `size` bytes of a dataset into which it is mapped: by
    /// `parts`, or without them as they are read.
    fn made_into(&self, size: usize, parts: &[(usize, usize, Taken)]) -> PyResult<Option<Fields>> {
        if parts.is_empty() {
            return Ok(self.fields.clone());
        }
        let refused = || PyValueError::new_err(format!("{}: no such conversion", self.label));
        let parts = field_bytes(parts.to_vec()).ok_or_else(refused)?;
        let made = Fields::new(self.native()?.element_size(), size, parts);
        made.map(Some).map_err(|_| refused())
    }

    /// A read that failed: of a chunk that is just being written, libhdf5 shall say.
    fn failed(&self, py: Python<'_>, error: &ReadError) -> PyErr {
        let raised = read_error(py, &self.label, error);
        if !self.follows || matches!(error, ReadError::Index(_) | ReadError::Cancelled) {
            return raised;
        }
        let is_damage = matches!(
            error,
            ReadError::Decode { .. }
                | ReadError::Short { .. }
                | ReadError::Truncated { .. }
                | ReadError::TruncatedChunk { .. }
        );
        let message = format!("{}: {error}; its writer may be at it", self.label);
        if is_damage { raise(py, "UndecodedChunkError", message) } else { raised }
    }

    /// The dtype of an array's elements: without the shapes that HDF5 array types add,
    /// which may be arrays of arrays.
    fn base_dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        let mut dtype = self.dtype.bind(py).clone();
        while dtype.has_subarray() {
            dtype = dtype.base();
        }
        dtype
    }
}

/// What hyperslabs of an array of `shape` are in a source; None where these are too many pieces.
fn mappings(
    shape: &[u64],
    here: &[Parts],
    source: &PyDataset,
    there: &[Parts],
) -> Result<Option<Vec<Mapping>>, SelectError> {
    let Ok(engine) = &source.engine else { return Ok(None) };
    let slabs = |shape: &[u64], parts: &[Parts]| -> Result<Vec<Hyperslab>, SelectError> {
        parts.iter().map(|(a, b, c, d)| Hyperslab::new(shape, a, b, c, d)).collect()
    };
    let (wanted, from) = (slabs(shape, here)?, slabs(engine.shape(), there)?);
    Ok(Mapping::of_any(&wanted, &from, engine.shape(), MOST_MAPPINGS))
}
