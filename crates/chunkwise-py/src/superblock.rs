//! What does the superblock of a file say, whether or not the file can be read?

use std::borrow::Cow;
use std::fs::File;

use chunkwise_engine::platform::{Descriptor, borrowed, read_exact_at};
use chunkwise_format::{Bytes, FormatError, Problem, Superblock};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// A file's bytes, read as they are needed: few are.
struct OpenFile<'a>(&'a File, u64);

impl Bytes for OpenFile<'_> {
    fn read(&self, position: u64, nbytes: usize) -> Result<Cow<'_, [u8]>, String> {
        let mut bytes = vec![0; nbytes];
        read_exact_at(self.0, &mut bytes, position).map_err(|error| error.to_string())?;
        Ok(Cow::Owned(bytes))
    }

    fn nbytes(&self) -> u64 {
        self.1
    }
}

/// The superblock of a file (see `_native.pyi`).
#[pyclass(name = "Superblock", module = "chunkwise._native", frozen)]
pub struct PySuperblock {
    stated: Superblock,
    is_sound: bool,
}

#[pymethods]
impl PySuperblock {
    /// That of the file that a descriptor has open; None where there is none that can be read.
    #[staticmethod]
    fn of_descriptor(py: Python<'_>, descriptor: Descriptor) -> PyResult<Option<Self>> {
        py.detach(|| {
            reading(descriptor, |bytes| {
                let Some(base) = Superblock::base(bytes)? else { return Ok(None) };
                match Superblock::stated(bytes, base) {
                    Ok((stated, sound)) => Ok(Some(Self { stated, is_sound: sound.is_ok() })),
                    Err(error) if matches!(error.problem, Problem::Read(_)) => Err(error),
                    Err(_) => Ok(None),
                }
            })
        })
    }

    #[getter]
    fn offset(&self) -> u64 {
        self.stated.base
    }

    #[getter]
    fn version(&self) -> u8 {
        self.stated.version
    }

    /// Whether its checksum is right; versions 0 and 1 have none.
    #[getter]
    fn is_sound(&self) -> bool {
        self.stated.version >= 2 && self.is_sound
    }

    /// Marks of a writer that has not closed the file; under a wrong checksum they prove nothing.
    #[getter]
    fn flags<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let marks = [("write", self.stated.open_for_writing), ("swmr", self.stated.open_for_swmr)];
        let marks = marks.into_iter().filter(|&(_, is_set)| is_set && self.is_sound);
        PyTuple::new(py, marks.map(|(name, _)| name).collect::<Vec<_>>())
    }

    /// Where the file ends by its own account.
    #[getter]
    fn end(&self) -> u64 {
        self.stated.base.saturating_add(self.stated.end)
    }

    /// Its bytes as a proper close of a file of this many bytes leaves them; None before version 3.
    fn closed<'py>(&self, py: Python<'py>, nbytes: u64) -> Option<Bound<'py, PyBytes>> {
        self.stated.closed(nbytes).map(|bytes| PyBytes::new(py, &bytes))
    }
}

/// Where HDF5's signature stands in the file that a descriptor has open.
#[pyfunction]
pub fn signature_offset(py: Python<'_>, descriptor: Descriptor) -> PyResult<Option<u64>> {
    py.detach(|| reading(descriptor, |bytes| Superblock::base(bytes)))
}

fn reading<T>(
    descriptor: Descriptor,
    read: impl FnOnce(&OpenFile<'_>) -> Result<T, FormatError>,
) -> PyResult<T> {
    // SAFETY: it is only borrowed, and stays open while the caller waits for this.
    let file = unsafe { borrowed(descriptor)? };
    let bytes = OpenFile(&file, file.metadata()?.len());
    read(&bytes).map_err(|error| match error.problem {
        Problem::Read(why) => PyOSError::new_err(why),
        _ => PyOSError::new_err(error.to_string()),
    })
}
