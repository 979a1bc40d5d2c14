//! An open dataset as Python sees it: read by the engine, or a reason why not.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chunkwise_engine::{Dataset, Fields, Layout, ReadError};
use chunkwise_libhdf5::{Asked, FileBytes, Unsuited, describe_as};
use chunkwise_select::{Plan, Selection, resolve_index};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrays::{bytes_mut, new_array};
use crate::conversion::{Taken, field_bytes};
use crate::errors::{allocation_error, raise, read_error, select_error};
use crate::index;
use crate::interrupts::interruptible;
use crate::library::PyLibrary;
use crate::selection::PySelection;
use crate::storage::PyStorage;

#[pyclass(name = "Dataset", module = "chunkwise._native", frozen)]
pub struct PyDataset {
    engine: Result<Arc<Dataset>, String>,
    dtype: Py<PyArrayDescr>,
    label: String,
    /// Where elements are not copied as they are stored.
    fields: Option<Fields>,
}

#[pymethods]
impl PyDataset {
    /// Describe an open dataset; `listed`, with all its chunks.  The handles must be of this library.
    /// `text` is how elements are stored that are converted to `dtype`; a file that is said to be
    /// `plain` has libhdf5's driver of local files; of one that is none, `storage` holds the bytes.
    #[new]
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (library, dataset_id, memory_type_id, dtype, label, listed = false, text = None, plain = false, storage = None))]
    fn new(
        library: &PyLibrary,
        dataset_id: i64,
        memory_type_id: i64,
        dtype: Bound<'_, PyArrayDescr>,
        label: String,
        listed: bool,
        text: Option<String>,
        plain: bool,
        storage: Option<&PyStorage>,
    ) -> PyResult<Self> {
        let py = dtype.py();
        // Pointers to Python objects must never be overwritten with file bytes.
        let engine = if dtype.has_object() {
            Err("its elements are of variable length or references".to_string())
        } else {
            let storage = storage.map(|given| &given.0);
            let asked = Asked { listed, bytes: FileBytes { plain, storage } };
            // SAFETY: live handles of this library, by the contract above.
            match unsafe { describe_as(&library.library, dataset_id, memory_type_id, asked) } {
                Ok(dataset) if dataset.element_size() == dtype.itemsize() => Ok(dataset),
                Ok(_) => Err("its stored type has to be converted for NumPy".to_string()),
                Err(Unsuited::Reason(reason)) => Err(reason),
                Err(Unsuited::Failed(error)) => {
                    let message = format!("{label}: {error}; the file is damaged, or too new");
                    return Err(raise(py, "CorruptDataError", message));
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
        Ok(Self { engine, dtype: dtype.unbind(), label, fields })
    }

    /// Why libhdf5 has to read this dataset, or None; known at once, or when a read has found out.
    #[getter]
    fn reason(&self) -> Option<&str> {
        match &self.engine {
            Ok(engine) => engine.unsound(),
            Err(reason) => Some(reason),
        }
    }

    /// Elements in each dimension; the engine must be able to read them, here and below.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.native()?.shape())
    }

    /// The shape of a chunk; None of a contiguous dataset.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        match &self.native()?.info().layout {
            Layout::Chunked { chunk, .. } => PyTuple::new(py, chunk.iter()).map(Some),
            Layout::Contiguous { .. } => Ok(None),
        }
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

    /// `d[index]`; NotImplemented where an entry has no meaning here, and of a mask alone, for which
    /// h5py makes an array of its own.
    fn getitem<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        let not_implemented = || Ok(py.NotImplemented().into_bound(py));
        let Ok(engine) = &self.engine else { return not_implemented() };
        let resolved = match index::regular_items(index) {
            Some(items) => resolve_index(engine.shape(), &items)
                .map_err(|error| select_error(py, &self.label, &error))?,
            None if index::is_mask(index) => return not_implemented(),
            None => match index::resolve(engine.shape(), index, false, &self.label)? {
                Some(resolved) => resolved,
                None => return not_implemented(),
            },
        };
        let dtype = self.dtype.bind(py);
        let array = new_array(py, dtype, &resolved.result_shape, engine.leaves_missing_untouched())
            .map_err(|error| allocation_error(py, &self.label, error))?;
        self.fill(py, engine, &resolved.selection, &array)?;
        // Of an array type an element is an array.
        if resolved.is_scalar() && array.ndim() == 0 {
            return array.get_item(PyTuple::empty(py));
        }
        Ok(array.into_any())
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
        let plan = py.detach(|| engine.plan(&selection.0.selection));
        let plan = plan.map_err(|error| read_error(py, &self.label, &error))?;
        read_plan(py, engine, &plan, Some(&fields), out)?
            .map_err(|error| read_error(py, &self.label, &error))?;
        Ok(array)
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

/// Read without the GIL.
///
/// The outer error is a signal handler's exception, such as KeyboardInterrupt; by then
/// the read has ended, and nothing writes to `out` any more.
fn read_plan(
    py: Python<'_>,
    engine: &Dataset,
    plan: &Plan<'_>,
    fields: Option<&Fields>,
    out: &mut [u8],
) -> PyResult<Result<(), ReadError>> {
    let read = |cancelled: &AtomicBool| match fields {
        None => engine.read_plan(plan, out, cancelled),
        Some(fields) => engine.read_fields(plan, fields, out, cancelled),
    };
    // A request may take long, whatever is wanted.
    let far = engine.storage().cost().is_remote();
    let nbytes = if far { u64::MAX } else { engine.work_nbytes(plan) };
    let done = interruptible(py, nbytes, || engine.storage().interrupt(), read)?;
    Ok(done.unwrap_or(Err(ReadError::Cancelled)))
}

impl PyDataset {
    fn native(&self) -> PyResult<&Arc<Dataset>> {
        self.engine.as_ref().map_err(|reason| {
            PyValueError::new_err(format!("{} is read through libhdf5: {reason}", self.label))
        })
    }

    /// Read into an array, without the GIL.
    fn fill(
        &self,
        py: Python<'_>,
        engine: &Arc<Dataset>,
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
        let plan = match selection {
            // Points are sorted, and masks counted.
            Selection::Product(_) => py.detach(|| engine.plan(selection)),
            Selection::Hyperslab(_) | Selection::Union { .. } => engine.plan(selection),
        };
        let plan = plan.map_err(|error| read_error(py, &self.label, &error))?;
        read_plan(py, engine, &plan, self.fields.as_ref(), out)?
            .map_err(|error| read_error(py, &self.label, &error))
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
