//! All chunks of a dataset, to be written down elsewhere; and those that were.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use chunkwise_engine::{
    ChunkIndex, FileStorage, FindChunks, SavedForm, SavedIndex, Storage, save_index,
    write_references,
};
use chunkwise_select::ChunkGrid;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raise;

/// The chunks of a dataset, and where each lies (see `_native.pyi`).
#[pyclass(name = "ChunkListing", module = "chunkwise._native", frozen)]
pub struct PyChunkListing {
    pub grid: ChunkGrid,
    pub index: ChunkIndex,
}

type Columns<'py> =
    (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

#[pymethods]
impl PyChunkListing {
    /// Chunks of the grid, written or not.
    #[getter]
    fn grid_len(&self) -> u64 {
        self.grid.len()
    }

    #[getter]
    fn written(&self) -> u64 {
        self.index.written()
    }

    #[getter]
    fn stored_nbytes(&self) -> u64 {
        self.index.stored_nbytes()
    }

    /// One past the last byte of any chunk.
    #[getter]
    fn furthest(&self) -> u64 {
        self.index.furthest()
    }

    /// Every bit that is set in the filter mask of some chunk.
    #[getter]
    fn any_mask(&self) -> u32 {
        self.index.any_mask()
    }

    /// Whether some written chunk reaches beyond the dataset's shape.
    #[getter]
    fn any_partial(&self, py: Python<'_>) -> bool {
        let partial = |position| self.grid.is_partial(&self.grid.chunk_index(position));
        py.detach(|| self.index.positions().any(partial))
    }

    /// Positions, addresses and stored bytes of the written chunks.
    fn columns<'py>(&self, py: Python<'py>) -> Columns<'py> {
        let written = usize::try_from(self.index.written()).unwrap_or(0);
        let (positions, addresses, sizes) = py.detach(|| {
            let room = || Vec::with_capacity(written);
            let (mut positions, mut addresses, mut sizes) = (room(), room(), room());
            for position in self.index.positions() {
                let Some(record) = self.index.get(position) else { continue };
                positions.push(position);
                addresses.push(record.address);
                sizes.push(record.stored_nbytes);
            }
            (positions, addresses, sizes)
        });
        (positions.into_pyarray(py), addresses.into_pyarray(py), sizes.into_pyarray(py))
    }

    /// The filter masks of the written chunks; empty if all are 0.
    fn masks<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        let masks: Vec<u32> = py.detach(|| {
            let masked = self.index.any_mask() != 0;
            let positions = self.index.positions().filter(|_| masked);
            positions.filter_map(|at| Some(self.index.get(at)?.filter_mask)).collect()
        });
        masks.into_pyarray(py)
    }

    /// Lines of Kerchunk's JSON for some of the written chunks.
    fn references<'py>(
        &self,
        py: Python<'py>,
        begin: usize,
        count: usize,
        prefix: &[u8],
        url: &[u8],
    ) -> Bound<'py, PyBytes> {
        let mut out = Vec::new();
        py.detach(|| {
            let chunks = (&self.grid, &self.index);
            write_references(&mut out, chunks, (begin, count), prefix, url);
        });
        PyBytes::new(py, &out)
    }

    /// Whether there is an entry for each chunk of the grid, how many entries, and their bytes.
    fn saved<'py>(&self, py: Python<'py>) -> (bool, u64, Bound<'py, PyBytes>) {
        let (form, bytes) = py.detach(|| save_index(&self.index, self.grid.len()));
        (form.is_dense, form.entries, PyBytes::new(py, &bytes))
    }
}

/// A file in which chunks were written down (see `_native.pyi`).
#[pyclass(name = "SavedChunks", module = "chunkwise._native", frozen)]
pub struct PySavedChunks {
    storage: Arc<FileStorage>,
}

#[pymethods]
impl PySavedChunks {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = File::open(&path).and_then(|file| FileStorage::reopening(&file));
        let storage = opened.map_err(|error| {
            raise(py, "FileFormatError", format!("{}: {error}", path.display()))
        })?;
        Ok(Self { storage })
    }
}

impl PySavedChunks {
    /// The chunks of a grid that stand from `begin` on; None where they are of another grid.
    pub fn of_grid(
        &self,
        begin: u64,
        form: SavedForm,
        grid: &ChunkGrid,
    ) -> Option<Box<dyn FindChunks>> {
        let storage: Arc<dyn Storage> = Arc::<FileStorage>::clone(&self.storage);
        let saved = SavedIndex::new(storage, begin, form, grid.len())?;
        Some(Box::new(saved))
    }
}
