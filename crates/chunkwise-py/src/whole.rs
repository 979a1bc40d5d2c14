//! Whole chunks of a dataset that somebody else has open: encoded here and put into the file at
//! once, or a reason why not.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chunkwise_engine::{WholeChunks, WriteError};
use chunkwise_libhdf5::{ChunkCommitter, Library, Unsuited, describe_for_writing, look_again};
use chunkwise_select::{Hyperslab, Selection};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{bytes, check_dtype};
use crate::errors::{raise, undescribed, write_error};
use crate::library::PyLibrary;
use crate::selection::PySelection;

#[pyclass(name = "WholeChunks", module = "chunkwise._native", frozen)]
pub struct PyWholeChunks {
    made: Result<Mutex<Made>, String>,
    library: Arc<Library>,
    dtype: Py<PyArrayDescr>,
    label: String,
}

struct Made {
    chunks: WholeChunks,
    committer: ChunkCommitter,
}

/// What of a selection is whole chunks.
#[derive(IntoPyObject)]
pub enum Part {
    /// From which element to which, a dimension each; None for nothing.
    Bounds(Option<Vec<(u64, u64)>>),
    /// Why libhdf5 has to write all of it now.
    Reason(String),
}

#[pymethods]
impl PyWholeChunks {
    /// Describe a dataset; the handles are used in this call alone.
    #[new]
    #[pyo3(signature = (library, dataset_id, memory_type_id, dtype, label, former = None))]
    fn new(
        library: &PyLibrary,
        dataset_id: i64,
        memory_type_id: i64,
        dtype: Bound<'_, PyArrayDescr>,
        label: String,
        former: Option<&Self>,
    ) -> PyResult<Self> {
        let (py, library) = (dtype.py(), Arc::clone(&library.library));
        let mut made = if dtype.has_object() {
            Err("its elements are of variable length or references".to_string())
        } else {
            // SAFETY: live handles of this library, by the contract above; whoever uses the
            // committer gives it a handle first.
            match unsafe { describe_for_writing(&library, dataset_id, memory_type_id) } {
                Ok((info, _)) if info.element_size != dtype.itemsize() => {
                    Err("its stored type has to be converted for NumPy".to_string())
                }
                Ok((info, _)) if info.encoding.steps().is_empty() => {
                    Err("it has no filters".to_string())
                }
                Ok((info, committer)) => WholeChunks::new(info)
                    .map(|chunks| Made { chunks, committer })
                    .map_err(|error| error.to_string()),
                Err(Unsuited::Reason(reason)) => Err(reason),
                Err(Unsuited::Failed(error)) => {
                    return Err(undescribed(py, &label, &error.to_string(), dataset_id));
                }
            }
        };
        if let (Ok(made), Some(Ok(former))) = (&mut made, former.map(|former| &former.made)) {
            py.detach(|| made.chunks.go_on_from(&mut locked(former).chunks));
        }
        Ok(Self { made: made.map(Mutex::new), library, dtype: dtype.unbind(), label })
    }

    /// Why libhdf5 has to write this dataset, or None.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.made.as_ref().err().map(String::as_str)
    }

    /// Which encoder of deflate was chosen.
    #[getter]
    fn tuning(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let mutex = self.native()?;
        // Without the GIL, for which the thread that has the mutex may be waiting.
        Ok(py.detach(|| locked(mutex).chunks.tuning().map(ToString::to_string)))
    }

    /// What of a selection is whole chunks, now; `growing` as of `WholeChunks::whole_part`.
    fn part(
        &self,
        py: Python<'_>,
        dataset_id: i64,
        selection: &PySelection,
        growing: bool,
    ) -> PyResult<Part> {
        let (mutex, slab) = (self.native()?, self.slab(selection)?);
        // SAFETY: a live handle of this library, by the contract of `_native.pyi`.
        let look =
            |made: &Made| unsafe { look_again(&self.library, dataset_id, made.chunks.info()) };
        let found = py.detach(|| {
            let made = &mut *locked(mutex);
            look(made).map(|grid| {
                made.chunks.set_grid(grid);
                made.chunks.whole_part(slab, growing)
            })
        });
        match found {
            Ok(part) => Ok(Part::Bounds(
                part.map(|bounds| bounds.iter().map(|one| (one.start, one.end)).collect()),
            )),
            Err(Unsuited::Reason(reason)) => Ok(Part::Reason(reason)),
            Err(Unsuited::Failed(error)) => {
                let message = format!("{}: {error}; the file is damaged", self.label);
                Err(raise(py, "CorruptDataError", message))
            }
        }
    }

    /// Encode and commit the whole chunks of a selection, whose elements are these.
    fn write(
        &self,
        py: Python<'_>,
        dataset_id: i64,
        selection: &PySelection,
        growing: bool,
        array: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<()> {
        check_dtype(array, self.dtype.bind(py), &self.label)?;
        let mutex = self.native()?;
        let slab = self.slab(selection)?;
        // SAFETY: the caller keeps the array, and must not change it while it is written.
        let data = unsafe { bytes(array)? };
        // On this thread, which has the library's lock.
        let written = py.detach(|| {
            let Made { chunks, committer } = &mut *locked(mutex);
            // SAFETY: a live handle of this library, by the contract of `_native.pyi`.
            unsafe { committer.set_handle(dataset_id) };
            chunks.write(slab, growing, data, committer)
        });
        written.map_err(|error: WriteError| write_error(py, &self.label, &error))
    }
}

impl PyWholeChunks {
    fn native(&self) -> PyResult<&Mutex<Made>> {
        self.made.as_ref().map_err(|reason| {
            PyValueError::new_err(format!("{} is written through libhdf5: {reason}", self.label))
        })
    }

    fn slab<'s>(&self, selection: &'s PySelection) -> PyResult<&'s Hyperslab> {
        match &selection.0.selection {
            Selection::Hyperslab(slab) => Ok(slab),
            _ => Err(PyValueError::new_err(format!("{}: no hyperslab", self.label))),
        }
    }
}

fn locked(made: &Mutex<Made>) -> MutexGuard<'_, Made> {
    // What panics leaves it as it was.
    made.lock().unwrap_or_else(PoisonError::into_inner)
}
