//! netCDF-C for `chunkwise bench`.

use std::sync::Arc;

use chunkwise_netcdf::{ChunkCache, NetCdf, NetCdfError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raise;
use crate::walk::{PyWalk, bounds, record_to_dict};

/// One libnetcdf, bound (see `_native.pyi`).
#[pyclass(name = "NetCdf", module = "chunkwise._native", frozen)]
pub struct PyNetCdf {
    library: Arc<NetCdf>,
}

/// An exception that names what is concerned, `label`, where the error does not.
fn error(py: Python<'_>, label: &str, error: &NetCdfError) -> PyErr {
    let class = match error {
        NetCdfError::Library { .. } | NetCdfError::Symbol { .. } => "LibraryError",
        NetCdfError::File { .. } => "FileFormatError",
        NetCdfError::Variable { .. } => "DatasetNotFoundError",
        NetCdfError::Type { .. } | NetCdfError::Blocks { .. } | NetCdfError::Union(_) => {
            "UsageError"
        }
        NetCdfError::Call { .. } | NetCdfError::Read(_) => "CorruptDataError",
    };
    raise(py, class, format!("{label}: {error}"))
}

#[pymethods]
impl PyNetCdf {
    #[new]
    fn new(py: Python<'_>, path: &str) -> PyResult<Self> {
        let library = NetCdf::open(path).map_err(|wrong| error(py, "netCDF-C", &wrong))?;
        Ok(Self { library })
    }

    #[getter]
    fn version(&self) -> &str {
        self.library.version()
    }

    #[getter]
    fn path(&self) -> &str {
        self.library.path()
    }

    /// Read selection by selection with `nc_get_vara` and `nc_get_vars`.
    #[pyo3(signature = (file, variable, cache, walk, max_operations, max_seconds))]
    #[allow(clippy::too_many_arguments)]
    fn walk<'py>(
        &self,
        py: Python<'py>,
        file: &str,
        variable: &str,
        cache: Option<(usize, usize, f32)>,
        walk: &PyWalk,
        max_operations: u64,
        max_seconds: f64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let bounds = bounds(max_operations, max_seconds);
        let cache = cache.map(|(nslots, nbytes, w0)| ChunkCache { nbytes, nslots, w0 });
        let outcome = py.detach(|| {
            let open = self.library.open_variable(file, variable, cache)?;
            Ok((open.walk(&walk.walk, bounds)?, open.chunk_cache()))
        });
        let label = format!("{file}: variable {variable}");
        let (record, found) = outcome.map_err(|wrong| error(py, &label, &wrong))?;
        let dict = record_to_dict(py, &record)?;
        let found = found.map(|cache| (cache.nslots, cache.nbytes, cache.w0));
        dict.set_item("chunk_cache", found)?;
        Ok(dict)
    }
}
