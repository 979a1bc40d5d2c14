//! A dataset that Python writes: its chunks encoded here, or a reason why not.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chunkwise_codec::Effort;
use chunkwise_engine::platform::duplicate;
use chunkwise_engine::{ChunkStore, DatasetWriter, PlacedChunks, WriteError, WriteStats};
use chunkwise_libhdf5::{Unsuited, describe_for_writing};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{bytes, check_dtype};
use crate::errors::{raise, undescribed, write_error};
use crate::interrupts;
use crate::library::PyLibrary;
use crate::places::{Elsewhere, PyPlaces};
use crate::selection::PySelection;

#[pyclass(name = "Writer", module = "chunkwise._native", frozen)]
pub struct PyWriter {
    writer: Result<Mutex<DatasetWriter>, String>,
    dtype: Py<PyArrayDescr>,
    label: String,
}

#[pymethods]
impl PyWriter {
    /// Describe a dataset of a file that is open for writing.  The handles must be of this
    /// library, and the dataset's live for as long as anything is written.  Its chunks go
    /// `elsewhere` where the dataset is only like the one that is written.
    #[new]
    #[pyo3(signature = (library, dataset_id, memory_type_id, dtype, label, *, effort = "as-stated", budget_nbytes = None, elsewhere = None))]
    #[allow(clippy::too_many_arguments)] // Named ones, in Python.
    fn new(
        library: &PyLibrary,
        dataset_id: i64,
        memory_type_id: i64,
        dtype: Bound<'_, PyArrayDescr>,
        label: String,
        effort: &str,
        budget_nbytes: Option<usize>,
        elsewhere: Option<Elsewhere<'_>>,
    ) -> PyResult<Self> {
        let py = dtype.py();
        let elsewhere: Option<Box<dyn ChunkStore>> = match elsewhere {
            None => None,
            Some(Elsewhere::Kept(chunks)) => Some(Box::new(chunks.kept.clone())),
            Some(Elsewhere::Placed(places, file)) => Some(Box::new(PlacedChunks::new(
                PyPlaces(Arc::new(places)),
                Arc::new(duplicate(file)?),
            ))),
        };
        let effort = effort_of(py, effort)?;
        let made = if dtype.has_object() {
            Err("its elements are of variable length or references".to_string())
        } else {
            // SAFETY: live handles of this library, by the contract above.
            match unsafe { describe_for_writing(&library.library, dataset_id, memory_type_id) } {
                Ok((info, store)) if info.element_size == dtype.itemsize() => {
                    let store = elsewhere.unwrap_or_else(|| Box::new(store));
                    DatasetWriter::new(info, store, budget_nbytes, effort)
                        .map_err(|error| error.to_string())
                }
                Ok(_) => Err("its stored type has to be converted for NumPy".to_string()),
                Err(Unsuited::Reason(reason)) => Err(reason),
                Err(Unsuited::Failed(error)) => {
                    return Err(undescribed(py, &label, &error.to_string(), dataset_id));
                }
            }
        };
        Ok(Self { writer: made.map(Mutex::new), dtype: dtype.unbind(), label })
    }

    /// Why libhdf5 has to write this dataset, or None.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.writer.as_ref().err().map(String::as_str)
    }

    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.with(py, |writer| writer.shape().to_vec())
    }

    #[getter]
    fn held_nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |writer| writer.held_nbytes())
    }

    #[getter]
    fn dirty_chunks(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |writer| writer.dirty_chunks())
    }

    /// Chunks committed, and those whose stored bytes were read for it.
    #[getter]
    fn stats(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let WriteStats { committed, read_back } = self.with(py, |writer| writer.stats())?;
        Ok((committed, read_back))
    }

    #[getter]
    fn tuning(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with(py, |writer| writer.tuning().map(ToString::to_string))
    }

    /// The dataset has this shape now.
    fn set_shape(&self, py: Python<'_>, shape: Vec<u64>) -> PyResult<()> {
        let done = self.with(py, |writer| writer.set_shape(&shape))?;
        done.map_err(|error| write_error(py, &self.label, &error))
    }

    /// Write a selection's elements; of each only the bytes in `members`, pairs of where they begin
    /// and end, if there are any.
    #[pyo3(signature = (selection, array, members = None))]
    fn write(
        &self,
        py: Python<'_>,
        selection: &PySelection,
        array: &Bound<'_, PyUntypedArray>,
        members: Option<Vec<(usize, usize)>>,
    ) -> PyResult<()> {
        check_dtype(array, self.dtype.bind(py), &self.label)?;
        let mutex = self.native()?;
        // SAFETY: the caller keeps the array, and must not change it while it is written.
        let data = unsafe { bytes(array)? };
        let members: Option<Vec<Range<usize>>> =
            members.map(|pairs| pairs.into_iter().map(|(begin, end)| begin..end).collect());
        let size = array.dtype().itemsize();
        if members.iter().flatten().any(|member| member.start > member.end || member.end > size) {
            return Err(PyValueError::new_err("members lie within an element"));
        }
        let selection = &selection.0.selection;
        let outcome = interrupts::interruptible(
            py,
            data.len() as u64,
            || (),
            |cancelled| {
                let mut writer = locked(mutex);
                match &members {
                    None => writer.write(selection, data, cancelled),
                    Some(members) => writer.write_members(selection, data, members, cancelled),
                }
            },
        );
        self.done(py, outcome?)
    }

    /// Commit all dirty chunks.
    #[pyo3(signature = (*, interruptible = true))]
    fn flush(&self, py: Python<'_>, interruptible: bool) -> PyResult<()> {
        let mutex = self.native()?;
        let nbytes = if interruptible { self.held_nbytes(py)? as u64 } else { 0 };
        let outcome = interrupts::interruptible(
            py,
            nbytes,
            || (),
            |cancelled| locked(mutex).flush(cancelled),
        );
        self.done(py, outcome?)
    }

    /// Forget all dirty chunks.
    fn forget(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, DatasetWriter::forget)
    }
}

impl PyWriter {
    fn native(&self) -> PyResult<&Mutex<DatasetWriter>> {
        self.writer.as_ref().map_err(|reason| {
            PyValueError::new_err(format!("{} is written through libhdf5: {reason}", self.label))
        })
    }

    /// Work with the writer, without the GIL: the thread that has it may be waiting for that.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut DatasetWriter) -> T + Send,
    ) -> PyResult<T> {
        let mutex = self.native()?;
        Ok(py.detach(|| work(&mut locked(mutex))))
    }

    fn done(&self, py: Python<'_>, outcome: Option<Result<(), WriteError>>) -> PyResult<()> {
        match outcome.unwrap_or(Err(WriteError::Cancelled)) {
            Ok(()) => Ok(()),
            Err(error) => Err(write_error(py, &self.label, &error)),
        }
    }
}

/// How deflate's encoder is chosen.
pub fn effort_of(py: Python<'_>, word: &str) -> PyResult<Effort> {
    match word {
        "as-stated" => Ok(Effort::AsStated),
        "fast" => Ok(Effort::Fast),
        other => {
            let message = format!("'{other}' is no effort; give 'as-stated' or 'fast'");
            Err(raise(py, "UsageError", message))
        }
    }
}

fn locked(writer: &Mutex<DatasetWriter>) -> MutexGuard<'_, DatasetWriter> {
    // What panics leaves its dirty chunks as they were.
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}
