//! Timed walks for `chunkwise bench`.

use std::time::Duration;

use chunkwise_measure::{BlockWalk, CellWalk, Order, Walk, WalkBounds, WalkRecord, WriteRecord};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::{raise, select_error};
use crate::selection::Hyperslabs;

/// Bounds as Python gives them; a negative or infinite time means the longest there is.
pub fn bounds(max_operations: u64, max_seconds: f64) -> WalkBounds {
    let max_time = Duration::try_from_secs_f64(max_seconds).unwrap_or(Duration::MAX);
    WalkBounds { max_operations, max_time }
}

/// A `WalkResult` (see `_native.pyi`).
pub fn record_to_dict<'py>(py: Python<'py>, record: &WalkRecord) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("operations", record.operations)?;
    dict.set_item("total_operations", record.total_operations)?;
    dict.set_item("elapsed_s", record.elapsed_s)?;
    dict.set_item("selected_nbytes", record.selected_nbytes)?;
    dict.set_item("latencies_s", &record.latencies_s)?;
    dict.set_item("open_s", record.open_s)?;
    dict.set_item("select_s", record.select_s)?;
    let checksums = PyDict::new(py);
    for (operations, checksum) in &record.checksums {
        checksums.set_item(operations, checksum)?;
    }
    dict.set_item("checksums", checksums)?;
    Ok(dict)
}

/// A look of Python's at what each operation read.
pub struct Inspector {
    look: Option<Py<PyAny>>,
    /// What it raised, which ends the walk.
    raised: Option<PyErr>,
}

impl Inspector {
    pub fn new(look: Option<Bound<'_, PyAny>>) -> Self {
        Self { look: look.map(Bound::unbind), raised: None }
    }

    /// Show what was read, and say whether to go on; the GIL may be held or not.
    pub fn look(&mut self, number: u64, read: &[u8]) -> bool {
        let Some(look) = &self.look else { return true };
        let looked = Python::attach(|py| {
            let bytes = PyBytes::new_with(py, read.len(), |copy| {
                copy.copy_from_slice(read);
                Ok(())
            })?;
            look.call1(py, (number, bytes)).map(drop)
        });
        self.raised = looked.err();
        self.raised.is_none()
    }

    /// What it raised.
    pub fn finish(self) -> PyResult<()> {
        self.raised.map_or(Ok(()), Err)
    }
}

/// A `WriteResult` (see `_native.pyi`).
pub fn write_record_to_dict<'py>(
    py: Python<'py>,
    record: &WriteRecord,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = record_to_dict(py, &record.walk)?;
    dict.set_item("create_s", record.create_s)?;
    dict.set_item("flush_s", record.flush_s)?;
    dict.set_item("close_s", record.close_s)?;
    dict.set_item("sync_s", record.sync_s)?;
    Ok(dict)
}

/// What a timed walk reads, or writes (see `_native.pyi`).
#[pyclass(name = "Walk", module = "chunkwise._native", frozen)]
pub struct PyWalk {
    pub walk: Walk,
}

#[pymethods]
impl PyWalk {
    #[new]
    #[pyo3(signature = (shape, block, order = None, seed = None, limit = None))]
    fn new(
        py: Python<'_>,
        shape: Vec<u64>,
        block: Vec<u64>,
        order: Option<Vec<u64>>,
        seed: Option<u64>,
        limit: Option<u64>,
    ) -> PyResult<Self> {
        let order = match (order, seed) {
            (Some(axes), None) => Order::Axes(axes.into()),
            (None, Some(seed)) => Order::Random { seed },
            (None, None) => Order::C,
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err("an order of dimensions is not random"));
            }
        };
        let walk = BlockWalk::ordered(&shape, &block, order, limit)
            .map_err(|error| select_error(py, "access pattern", &error))?;
        Ok(Self { walk: Walk::Blocks(Box::new(walk)) })
    }

    /// Selections of an array of this shape, one after another.
    #[staticmethod]
    fn listed(py: Python<'_>, shape: Vec<u64>, selections: Vec<Hyperslabs>) -> PyResult<Self> {
        let selections = selections
            .iter()
            .map(|hyperslabs| hyperslabs.selection(&shape))
            .collect::<Result<_, _>>()
            .map_err(|error| select_error(py, "access pattern", &error))?;
        Ok(Self { walk: Walk::Listed(selections) })
    }

    /// Unions of cells between random cut planes, one after another.
    #[staticmethod]
    fn cells(
        py: Python<'_>,
        shape: Vec<u64>,
        planes: u64,
        count: u64,
        seed: u64,
    ) -> PyResult<Self> {
        let walk = CellWalk::new(&shape, planes, count, seed)
            .map_err(|error| raise(py, "SelectionError", format!("access pattern: {error}")))?;
        Ok(Self { walk: Walk::Cells(walk) })
    }

    /// How many selections there are.
    #[getter]
    fn operations(&self) -> u64 {
        self.walk.len()
    }

    /// Start, stride, count and block of one selection, or of each hyperslab of a union.
    fn __getitem__(&self, number: u64) -> PyResult<Hyperslabs> {
        let selection = self.walk.get(number);
        selection
            .as_ref()
            .and_then(Hyperslabs::of)
            .ok_or_else(|| PyIndexError::new_err("no selection of that number"))
    }
}
