//! The chunks that a walk touches, for `chunkwise bench`.

use std::time::Duration;

use chunkwise_libhdf5::Unsuited;
use chunkwise_measure::ChunkTable;
use pyo3::prelude::*;

use crate::errors::{raise, read_error, select_error};
use crate::walk::PyWalk;

/// The chunks of a dataset (see `_native.pyi`).
#[pyclass(name = "ChunkTable", module = "chunkwise._native", frozen)]
pub struct PyChunkTable {
    table: ChunkTable,
}

/// What an error is about.
const LABEL: &str = "chunks of the dataset";

#[pymethods]
impl PyChunkTable {
    #[getter]
    fn filters(&self) -> Vec<i32> {
        self.table.filters().to_vec()
    }

    #[getter]
    fn always_applied(&self) -> Vec<i32> {
        self.table.always_applied().to_vec()
    }

    /// Stored chunks touched, and how many different ones.
    fn touches(
        &self,
        py: Python<'_>,
        walk: &PyWalk,
        operations: u64,
    ) -> PyResult<(Option<u64>, Option<u64>)> {
        let found = py.detach(|| self.table.touches(&walk.walk, operations));
        let found = found.map_err(|error| select_error(py, LABEL, &error))?;
        Ok((found.touches, found.distinct))
    }

    /// Chunks read, their bytes and seconds; None without a file to read.
    fn bare_reads(
        &self,
        py: Python<'_>,
        walk: &PyWalk,
        operations: u64,
        max_chunks: u64,
        max_seconds: f64,
    ) -> PyResult<Option<(u64, u64, f64)>> {
        let max_time = Duration::try_from_secs_f64(max_seconds).unwrap_or(Duration::MAX);
        let reads =
            py.detach(|| self.table.bare_reads(&walk.walk, operations, max_chunks, max_time));
        let reads = reads.map_err(|error| read_error(py, LABEL, &error))?;
        Ok(reads.map(|reads| (reads.chunks, reads.nbytes, reads.elapsed_s)))
    }
}

impl PyChunkTable {
    pub fn of(py: Python<'_>, table: Result<ChunkTable, Unsuited>) -> PyResult<Self> {
        match table {
            Ok(table) => Ok(Self { table }),
            Err(error) => Err(raise(py, "CorruptDataError", format!("{LABEL}: {error}"))),
        }
    }
}
