//! Chunks whose places Python gives: another process keeps their index.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use chunkwise_engine::platform::{Descriptor, duplicate};
use chunkwise_engine::{ChunkPlaces, ChunkRecord, CommitError, EncodedChunk, KeptChunks};
use chunkwise_repack::Share;
use chunkwise_select::Dims;
use numpy::{PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Keeps the index of a dataset: an object with `allocate` and `find` (see `_native.pyi`).
#[derive(Clone)]
pub struct PyPlaces(pub Arc<Py<PyAny>>);

/// What an object of Python answers; of an exception what it says, without its class.
fn called<T>(
    object: &Py<PyAny>,
    work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
) -> Result<T, String> {
    Python::attach(|py| {
        work(object.bind(py)).map_err(|error| {
            error.value(py).str().map_or_else(|_| error.to_string(), |text| text.to_string())
        })
    })
}

/// Rows of numbers as an array.
fn table<'py>(py: Python<'py>, rows: &[Vec<u64>]) -> PyResult<Bound<'py, PyArray2<u64>>> {
    Ok(PyArray2::from_vec2(py, rows)?)
}

/// Of each chunk where it begins, its size and its filter mask.
fn rows_of(chunks: &[EncodedChunk]) -> Vec<Vec<u64>> {
    let row = |chunk: &EncodedChunk| {
        let numbers = [chunk.bytes.len() as u64, u64::from(chunk.filter_mask)];
        chunk.chunk_origin.iter().copied().chain(numbers).collect()
    };
    chunks.iter().map(row).collect()
}

impl ChunkPlaces for PyPlaces {
    fn allocate(&mut self, chunks: &[EncodedChunk]) -> Result<Vec<u64>, CommitError> {
        if chunks.is_empty() {
            return Ok(Vec::new());
        }
        let rows = rows_of(chunks);
        let addresses = called(&self.0, |places| {
            let given = places.call_method1("allocate", (table(places.py(), &rows)?,))?;
            let given: PyReadonlyArray1<'_, u64> = given.extract()?;
            Ok(given.as_array().to_vec())
        });
        addresses.map_err(|message| CommitError {
            chunk_origin: chunks.first().map(|one| one.chunk_origin.clone()).unwrap_or_default(),
            stored_nbytes: chunks.first().map_or(0, |one| one.bytes.len() as u64),
            message,
        })
    }

    fn find(&mut self, chunk_origins: &[Dims]) -> Result<Vec<Option<ChunkRecord>>, String> {
        if chunk_origins.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<Vec<u64>> = chunk_origins.iter().map(|origin| origin.to_vec()).collect();
        called(&self.0, |places| {
            let found = places.call_method1("find", (table(places.py(), &rows)?,))?;
            let found: PyReadonlyArray2<'_, u64> = found.extract()?;
            let record = |row: numpy::ndarray::ArrayView1<'_, u64>| {
                let &[address, stored_nbytes, mask] = row.to_slice()? else { return None };
                let filter_mask = u32::try_from(mask).ok()?;
                (stored_nbytes > 0).then_some(ChunkRecord { address, stored_nbytes, filter_mask })
            };
            let found = found.as_array();
            Ok(found.as_standard_layout().rows().into_iter().map(record).collect())
        })
    }
}

/// Divides the work on a dataset (see `_native.pyi`).
pub struct PyShare(pub Py<PyAny>);

impl Share for PyShare {
    fn next(&self, round: u64, all: u64, least: u64) -> Result<Range<u64>, String> {
        called(&self.0, |share| {
            let (begin, end) =
                share.call_method1("next", (round, all, least))?.extract::<(u64, u64)>()?;
            Ok(begin..end)
        })
    }

    fn meet(&self) -> Result<(), String> {
        called(&self.0, |share| share.call_method0("meet").map(drop))
    }

    fn memory(&self, nbytes: u64) -> Result<Option<File>, String> {
        called(&self.0, |share| {
            let file: Option<Descriptor> = share.call_method1("memory", (nbytes,))?.extract()?;
            Ok(file.map(duplicate).transpose()?)
        })
    }
}

/// Rows of numbers, and the bytes of each chunk.
type Taken<'py> = (Bound<'py, PyArray2<u64>>, Vec<Bound<'py, PyBytes>>);

/// Encoded chunks that have no place yet (see `_native.pyi`).
#[pyclass(name = "KeptChunks", module = "chunkwise._native", frozen)]
#[derive(Default)]
pub struct PyKeptChunks {
    pub kept: KeptChunks,
}

#[pymethods]
impl PyKeptChunks {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Take them: where each begins, its size and filter mask; and the bytes of each.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Taken<'py>> {
        let chunks = self.kept.take();
        let rows = rows_of(&chunks);
        let bytes = chunks.iter().map(|chunk| PyBytes::new(py, &chunk.bytes)).collect();
        Ok((table(py, &rows)?, bytes))
    }
}

/// Where a writer's chunks go when libhdf5's index is not in this process.
#[derive(FromPyObject)]
pub enum Elsewhere<'py> {
    /// They are kept until somebody takes them.
    Kept(PyRef<'py, PyKeptChunks>),
    /// To the places that an object gives, in a file by its descriptor.
    Placed(Py<PyAny>, Descriptor),
}
