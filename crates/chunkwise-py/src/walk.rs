//! Timed walks for `chunkwise bench`.

use std::time::Duration;

use chunkwise_engine::{WalkBounds, WalkRecord};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raise;
use crate::library::PyLibrary;

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
    let checksums = PyDict::new(py);
    for (operations, checksum) in &record.checksums {
        checksums.set_item(operations, checksum)?;
    }
    dict.set_item("checksums", checksums)?;
    Ok(dict)
}

/// Read block by block with `H5Dread`.
///
/// The handles must be of this library; h5py's objects vouch for that where this is
/// called (`chunkwise.bench`).
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn walk_libhdf5<'py>(
    py: Python<'py>,
    library: &PyLibrary,
    dataset_id: i64,
    memory_type_id: i64,
    itemsize: usize,
    block: Vec<u64>,
    max_operations: u64,
    max_seconds: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let bounds = bounds(max_operations, max_seconds);
    // SAFETY: live handles of this library, by the contract above.
    let outcome = unsafe {
        chunkwise_libhdf5::walk_libhdf5(
            &library.library,
            dataset_id,
            memory_type_id,
            itemsize,
            &block,
            bounds,
        )
    };
    match outcome {
        Ok(record) => record_to_dict(py, &record),
        Err(message) => Err(raise(py, "CorruptDataError", format!("libhdf5: {message}"))),
    }
}
