//! netCDF-C for `chunkwise bench`.

use std::sync::Arc;

use chunkwise_engine::ReadError;
use chunkwise_netcdf::{
    ChunkCache, Filter, Format, NetCdf, NetCdfError, NewVariable, Number, OpenVariable,
};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::raise;
use crate::walk::{PyWalk, bounds, record_to_dict, write_record_to_dict};

/// Slots, bytes and w0, as Python has a chunk cache.
type Cache = (usize, usize, f32);

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
        NetCdfError::Type { .. }
        | NetCdfError::Blocks { .. }
        | NetCdfError::Union(_)
        | NetCdfError::Product
        | NetCdfError::Refused { .. } => "UsageError",
        NetCdfError::Create { .. } | NetCdfError::Write { .. } => "CannotWriteError",
        NetCdfError::Read(ReadError::Select(_)) => "SelectionError",
        NetCdfError::Read(ReadError::Memory(_)) => "OutOfMemoryError",
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

    /// Open a file, and find a variable in it.
    #[pyo3(signature = (file, variable, cache))]
    fn open(
        &self,
        py: Python<'_>,
        file: &str,
        variable: &str,
        cache: Option<Cache>,
    ) -> PyResult<PyNetCdfVariable> {
        let cache = cache.map(from_tuple);
        let label = format!("{file}: variable {variable}");
        let open = py.detach(|| self.library.open_variable(file, variable, cache));
        let variable = open.map_err(|wrong| error(py, &label, &wrong))?;
        Ok(PyNetCdfVariable { variable, label })
    }

    /// Write a netCDF-3 file as one of netCDF-4.
    #[pyo3(signature = (source, target, slab_nbytes))]
    fn convert(
        &self,
        py: Python<'_>,
        source: &str,
        target: &str,
        slab_nbytes: usize,
    ) -> PyResult<()> {
        let outcome = py.detach(|| self.library.convert(source, target, slab_nbytes));
        outcome.map_err(|wrong| error(py, source, &wrong))
    }

    /// Create a file, and write selection by selection with `nc_put_vara` and
    /// `nc_put_vars`.
    #[pyo3(signature = (
        path, variable, dtype, big_endian, shape, chunks, filters, cache, data, walk,
        max_operations, max_seconds, *, fill = true, format = "netcdf4"
    ))]
    #[allow(clippy::too_many_arguments)]
    fn write_walk<'py>(
        &self,
        py: Python<'py>,
        path: String,
        variable: String,
        dtype: &str,
        big_endian: bool,
        shape: Vec<u64>,
        chunks: Option<Vec<u64>>,
        filters: Vec<(u32, Vec<u32>)>,
        cache: Option<Cache>,
        data: PyReadonlyArray1<'py, u8>,
        walk: &PyWalk,
        max_operations: u64,
        max_seconds: f64,
        fill: bool,
        format: &str,
    ) -> PyResult<Bound<'py, PyDict>> {
        let label = format!("{path}: variable {variable}");
        let number = Number::named(dtype).ok_or_else(|| {
            let usage = "netCDF-C stores i1, i2, i4, i8, u1, u2, u4, u8, f4 and f8";
            raise(py, "UsageError", format!("{label}: type {dtype}: {usage}"))
        })?;
        let format = Format::named(format).ok_or_else(|| {
            let usage = "netCDF-C writes netcdf4, classic, 64bit-offset and 64bit-data";
            raise(py, "UsageError", format!("{label}: format {format}: {usage}"))
        })?;
        let filters = filters.into_iter().map(|(id, cd_values)| Filter { id, cd_values });
        let new = NewVariable {
            file: path,
            format,
            name: variable,
            shape,
            number,
            big_endian,
            chunk: chunks,
            filters: filters.collect(),
            cache: cache.map(from_tuple),
            fill,
        };
        let bounds = bounds(max_operations, max_seconds);
        let data = data.as_slice().map_err(|_| {
            raise(py, "UsageError", format!("{label}: the array of data is not contiguous"))
        })?;
        let outcome = py.detach(|| self.library.write(&new, data, &walk.walk, bounds));
        let written = outcome.map_err(|wrong| error(py, &label, &wrong))?;
        let dict = write_record_to_dict(py, &written.record)?;
        dict.set_item("chunk_cache", written.chunk_cache.map(to_tuple))?;
        Ok(dict)
    }
}

/// A variable in an open file (see `_native.pyi`).
#[pyclass(name = "NetCdfVariable", module = "chunkwise._native", frozen)]
pub struct PyNetCdfVariable {
    variable: OpenVariable,
    label: String,
}

#[pymethods]
impl PyNetCdfVariable {
    #[getter]
    fn chunk_cache(&self) -> Option<Cache> {
        self.variable.chunk_cache().map(to_tuple)
    }

    /// Read selection by selection with `nc_get_vara` and `nc_get_vars`.
    #[pyo3(signature = (walk, max_operations, max_seconds))]
    fn walk<'py>(
        &self,
        py: Python<'py>,
        walk: &PyWalk,
        max_operations: u64,
        max_seconds: f64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let bounds = bounds(max_operations, max_seconds);
        let outcome = py.detach(|| self.variable.walk(&walk.walk, bounds));
        record_to_dict(py, &outcome.map_err(|wrong| error(py, &self.label, &wrong))?)
    }
}

fn from_tuple((nslots, nbytes, w0): Cache) -> ChunkCache {
    ChunkCache { nbytes, nslots, w0 }
}

fn to_tuple(cache: ChunkCache) -> Cache {
    (cache.nslots, cache.nbytes, cache.w0)
}
