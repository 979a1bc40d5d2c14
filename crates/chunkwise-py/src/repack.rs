//! Copying a dataset's data into another for Python: plans, journals, and who watches.

use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use chunkwise_engine::platform::{Descriptor, duplicate};
use chunkwise_engine::{ChunkPlaces, LostChunk, thread_count};
use chunkwise_repack::{
    CopyError, CopyResult, Encoders, Journal, Part, PlanError, Progress, RechunkPlan, Rechunking,
    Request, Task, copy_side_by_side,
};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::{raise, read_error, unreadable};
use crate::library::PyLibrary;
use crate::places::{PyPlaces, PyShare};
use crate::writer::effort_of;

/// In which blocks a dataset is rechunked (see `_native.pyi`).
#[pyclass(name = "RechunkPlan", module = "chunkwise._native", frozen)]
pub struct PyRechunkPlan {
    plan: RechunkPlan,
}

#[pymethods]
impl PyRechunkPlan {
    #[new]
    #[pyo3(signature = (shape, source_chunk, target_chunk, itemsize, memory_nbytes, processes = 1))]
    fn new(
        py: Python<'_>,
        shape: Vec<u64>,
        source_chunk: Option<Vec<u64>>,
        target_chunk: Option<Vec<u64>>,
        itemsize: u64,
        memory_nbytes: u64,
        processes: u64,
    ) -> PyResult<Self> {
        let plan = RechunkPlan::new(&Rechunking {
            shape: &shape,
            source_chunk: source_chunk.as_deref(),
            target_chunk: target_chunk.as_deref(),
            itemsize,
            memory_nbytes,
            threads: thread_count(),
            processes,
        });
        let plan = plan.map_err(|error| raise(py, "UsageError", error.to_string()))?;
        Ok(Self { plan })
    }

    #[getter]
    fn super_block(&self) -> Vec<u64> {
        self.plan.super_block.to_vec()
    }

    #[getter]
    fn super_blocks(&self) -> u64 {
        self.plan.super_blocks
    }

    #[getter]
    fn source_chunks(&self) -> u64 {
        self.plan.source_chunks
    }

    #[getter]
    fn decodes(&self) -> u64 {
        self.plan.decodes
    }

    #[getter]
    fn memory_nbytes(&self) -> u64 {
        self.plan.memory_nbytes
    }
}

/// Where chunks that are done are noted (see `_native.pyi`).
#[pyclass(name = "Journal", module = "chunkwise._native", frozen)]
pub struct PyJournal {
    journal: Journal,
}

#[pymethods]
impl PyJournal {
    #[new]
    #[pyo3(signature = (file, identity, resume_from = None))]
    fn new(
        py: Python<'_>,
        file: Descriptor,
        identity: &[u8],
        resume_from: Option<(Descriptor, Descriptor)>,
    ) -> PyResult<Self> {
        let file = duplicate(file)?;
        let resume_from = match resume_from {
            None => None,
            Some((journal, half)) => Some((duplicate(journal)?, duplicate(half)?)),
        };
        let journal = py.detach(|| Journal::begin(file, identity, resume_from));
        let journal = journal
            .map_err(|error| raise(py, "CannotWriteError", format!("{error}; make room for it")))?;
        Ok(Self { journal })
    }

    /// Chunks that the run before has noted.
    #[getter]
    fn noted_chunks(&self) -> usize {
        self.journal.noted_chunks()
    }
}

/// What copying came to (see `_native.pyi`).
#[pyclass(name = "CopyResult", module = "chunkwise._native", frozen, get_all)]
pub struct PyCopyResult {
    decodes: u64,
    chunks_written: u64,
    chunks_replayed: u64,
    stored_nbytes_written: u64,
    tuning: Option<String>,
    lost_chunks: Vec<(Vec<u64>, String)>,
    through_libhdf5: Option<String>,
    read_s: f64,
    encode_s: f64,
    elapsed_s: f64,
}

impl PyCopyResult {
    fn of(found: CopyResult) -> Self {
        let lost = |chunk: LostChunk| (chunk.chunk_origin.to_vec(), chunk.error.to_string());
        Self {
            decodes: found.decodes,
            chunks_written: found.chunks_written,
            chunks_replayed: found.chunks_replayed,
            stored_nbytes_written: found.stored_nbytes_written,
            tuning: found.tuning,
            lost_chunks: found.lost_chunks.into_iter().map(lost).collect(),
            through_libhdf5: found.through_libhdf5,
            read_s: found.read_s,
            encode_s: found.encode_s,
            elapsed_s: found.elapsed_s,
        }
    }
}

/// The encoders that were chosen in a run (see `_native.pyi`).
#[pyclass(name = "Encoders", module = "chunkwise._native", frozen)]
#[derive(Default)]
pub struct PyEncoders {
    encoders: Encoders,
}

#[pymethods]
impl PyEncoders {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

/// A process's part: how many there are; what divides the work; what keeps the index; the target's
/// file.
type PyPart = (u64, Py<PyAny>, Py<PyAny>, Descriptor);

/// Copy the data of one dataset into another (see `_native.pyi`).  The handles must be of that
/// library.
#[pyfunction]
#[pyo3(signature = (
    library, source_id, target_id, *, label, memory_nbytes, effort = "as-stated", raw = false,
    salvage = false, journal = None, encoders = None, likeness = b"".as_slice(),
    part = None, progress = None
))]
#[allow(clippy::too_many_arguments)] // Named ones, in Python.
pub fn copy_data(
    py: Python<'_>,
    library: &PyLibrary,
    source_id: i64,
    target_id: i64,
    label: &str,
    memory_nbytes: u64,
    effort: &str,
    raw: bool,
    salvage: bool,
    journal: Option<&PyJournal>,
    encoders: Option<&PyEncoders>,
    likeness: &[u8],
    part: Option<PyPart>,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<PyCopyResult> {
    let part = part
        .map(|(processes, share, places, file)| {
            let places = PyPlaces(Arc::new(places));
            PyResult::Ok((processes, PyShare(share), places, Arc::new(duplicate(file)?)))
        })
        .transpose()?;
    let effort = effort_of(py, effort)?;
    let journal = journal.map(|journal| &journal.journal);
    let choices = encoders.map(|known| known.encoders.of(likeness)).unwrap_or_default();
    let progresses = [Progress::default()];
    let result = watched(py, progress, &progresses, || {
        let (choices, threads, turn) = (&*choices, thread_count(), None);
        let [progress] = &progresses;
        let places = part
            .as_ref()
            .map(|(_, _, places, _)| move || -> Box<dyn ChunkPlaces> { Box::new(places.clone()) });
        let part = part.as_ref().zip(places.as_ref());
        let part = part.map(|((processes, share, _, file), places)| Part {
            processes: *processes,
            share,
            places,
            file,
        });
        let request = Request {
            label,
            memory_nbytes,
            effort,
            choices,
            threads,
            turn,
            part,
            raw,
            salvage,
            journal,
            progress,
        };
        // SAFETY: live handles of this library, by the contract above.
        unsafe { chunkwise_repack::copy(&library.library, source_id, target_id, &request) }
    })?;
    Ok(PyCopyResult::of(result.map_err(|error| copy_error(py, label, source_id, &error))?))
}

/// One of many datasets (see `_native.pyi`).
#[derive(FromPyObject)]
pub struct Copy {
    source_id: i64,
    target_id: i64,
    label: String,
    effort: String,
    raw: bool,
    likeness: Vec<u8>,
}

/// Copy the data of many small datasets side by side (see `_native.pyi`).  The handles must be
/// of that library.
#[pyfunction]
#[pyo3(signature = (
    library, copies, *, memory_nbytes, salvage = false, journal = None, encoders, progress = None
))]
#[allow(clippy::too_many_arguments)] // Named ones, in Python.
pub fn copy_many(
    py: Python<'_>,
    library: &PyLibrary,
    copies: Vec<Copy>,
    memory_nbytes: u64,
    salvage: bool,
    journal: Option<&PyJournal>,
    encoders: &PyEncoders,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Vec<PyCopyResult>> {
    let efforts: Vec<_> =
        copies.iter().map(|copy| effort_of(py, &copy.effort)).collect::<PyResult<_>>()?;
    let choices: Vec<_> = copies.iter().map(|copy| encoders.encoders.of(&copy.likeness)).collect();
    let journal = journal.map(|journal| &journal.journal);
    let threads = thread_count();
    let task = |copy: &Copy| Task {
        source: copy.source_id,
        target: copy.target_id,
        progress: Progress::default(),
    };
    let tasks: Vec<Task> = copies.iter().map(task).collect();
    let figures: Vec<&Progress> = tasks.iter().map(|task| &task.progress).collect();
    let results = watched(py, progress, &figures, || {
        let request = |number: usize, progress| Request {
            label: &copies[number].label,
            memory_nbytes: memory_nbytes / threads as u64,
            effort: efforts[number],
            choices: &choices[number],
            threads: 1,
            turn: None,
            part: None,
            raw: copies[number].raw,
            salvage,
            journal,
            progress,
        };
        // SAFETY: live handles of this library, by the contract above.
        unsafe { copy_side_by_side(&library.library, &tasks, threads, &request) }
    })?;
    let results = results.map_err(|(number, error)| {
        let copy = &copies[number];
        copy_error(py, &copy.label, copy.source_id, &error)
    })?;
    Ok(results.into_iter().map(PyCopyResult::of).collect())
}

/// Compare the stored chunks of two datasets (see `_native.pyi`).  The handles must be of that
/// library.
#[pyfunction]
#[pyo3(signature = (library, source_id, result_id, part, *, label, progress = None))]
pub fn same_chunks(
    py: Python<'_>,
    library: &PyLibrary,
    source_id: i64,
    result_id: i64,
    part: (u64, u64),
    label: &str,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Option<(Vec<u64>, String)>> {
    let library = &library.library;
    let progresses = [Progress::default()];
    let found = watched(py, progress, &progresses, || {
        let [progress] = &progresses;
        // SAFETY: live handles of this library, by the contract above.
        unsafe { chunkwise_repack::same_chunks(library, source_id, result_id, part, progress) }
    })?;
    let found = found.map_err(|error| copy_error(py, label, source_id, &error))?;
    Ok(found.map(|one| (one.chunk_origin.to_vec(), one.how)))
}

/// How often the caller gets the progress, and signals are looked for; the first time sooner.
const INTERVAL: Duration = Duration::from_millis(100);
const FIRST_INTERVAL: Duration = Duration::from_millis(10);

/// Work on a thread of its own, while this one reports how far it is and looks after Python's
/// signals.
///
/// The outer error is what `progress` or a signal handler raised; by then the work has ended.
pub fn watched<T: Send, E: Send, P: Borrow<Progress> + Sync>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    progresses: &[P],
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<Result<T, E>> {
    let figures = || {
        let add = |all: (u64, u64, u64), one: (u64, u64, u64)| {
            (all.0 + one.0, all.1 + one.1, all.2 + one.2)
        };
        progresses.iter().map(|one| one.borrow().figures()).fold((0, 0, 0), add)
    };
    let progress = progress.map(Bound::unbind);
    let report = |py: Python<'_>| -> PyResult<()> {
        py.check_signals()?;
        progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, figures()).map(drop))
    };
    let outcome = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            // The receiver is here until the work has ended.
            let work = move || drop(sender.send(work()));
            if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, work) {
                return Err(PyErr::from(error));
            }
            let mut interval = FIRST_INTERVAL;
            loop {
                match receiver.recv_timeout(interval) {
                    Ok(outcome) => return Ok(outcome),
                    Err(RecvTimeoutError::Timeout) => {
                        interval = INTERVAL;
                        // None while the interpreter shuts down: nobody to report to then.
                        if let Some(Err(raised)) = Python::try_attach(report) {
                            // The scope waits for the thread, which stops at the next chunk.
                            progresses.iter().for_each(|one| one.borrow().cancel());
                            return Err(raised);
                        }
                    }
                    // Only a panic ends the thread without an answer; the scope passes it on.
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(PyRuntimeError::new_err("the work ended without an answer"));
                    }
                }
            }
        })
    })?;
    if outcome.is_ok() {
        report(py)?;
    }
    Ok(outcome)
}

/// Copying that failed; `label` names dataset and file.
fn copy_error(py: Python<'_>, label: &str, source_id: i64, error: &CopyError) -> PyErr {
    let (class, remedy) = match error {
        CopyError::Read(error) => return read_error(py, label, error),
        CopyError::Refused(_) => ("UsageError", "copy it another way"),
        CopyError::Plan(PlanError::Select(_)) => ("UsageError", "give another chunk shape"),
        CopyError::Plan(PlanError::Memory { .. }) => {
            ("UsageError", "allow more memory, or give smaller chunks")
        }
        CopyError::Library { origin, message } => {
            let place = format!("{label}: the elements from {:?} on", origin.as_slice());
            return unreadable(py, &place, message, Some(source_id));
        }
        CopyError::Facts(_) => ("LibraryError", "the file is damaged, or too new"),
        CopyError::Encode { .. } => ("CannotWriteError", "give another filter"),
        CopyError::Commit(_) | CopyError::Journal { .. } => {
            ("CannotWriteError", "make room on the disk, or write elsewhere")
        }
        CopyError::Share(_) => ("ChunkwiseError", "see what the other processes say"),
        CopyError::Changed => ("FileChangedError", "copy it again when nobody writes to it"),
        CopyError::Cancelled => ("ChunkwiseError", "copy it again"),
    };
    raise(py, class, format!("{label}: {error}; {remedy}"))
}
