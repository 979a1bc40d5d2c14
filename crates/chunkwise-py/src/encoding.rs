//! One chunk, encoded as its dataset's filters would: for tests and trials.

use chunkwise_codec::EncodeScratch;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;
use crate::library::PyLibrary;

/// The stored bytes of a chunk of the dataset, and its filter mask (see `_native.pyi`).  The
/// handle must be of this library.
#[pyfunction]
pub fn encode_chunk<'py>(
    py: Python<'py>,
    library: &PyLibrary,
    dataset_id: i64,
    raw: &Bound<'py, numpy::PyUntypedArray>,
) -> PyResult<(Bound<'py, PyBytes>, u32)> {
    // SAFETY: a live handle of this library, by the contract above.
    let encoding = unsafe { chunkwise_libhdf5::encoding_of(&library.library, dataset_id) };
    let encoding =
        encoding.map_err(|error| raise(py, "UsageError", format!("encode_chunk: {error}")))?;
    let mut out = Vec::new();
    let mask = crate::arrays::with_bytes(raw, |bytes| {
        encoding.encode(bytes, &mut EncodeScratch::default(), &mut out)
    })?;
    let mask =
        mask.map_err(|error| raise(py, "ChunkwiseError", format!("encode_chunk: {error}")))?;
    Ok((PyBytes::new(py, &out), mask))
}
