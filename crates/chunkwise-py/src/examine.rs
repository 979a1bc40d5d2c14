//! What is wrong with a dataset's stored bytes, for Python.

use chunkwise_codec::DecodeError;
use chunkwise_engine::{Examined, Examining, Fault, Flaw, ReadError, thread_count};
use chunkwise_libhdf5::{Examinable, Unsuited, examinable};
use chunkwise_repack::Progress;
use pyo3::prelude::*;

use crate::errors::{raise, read_error};
use crate::library::PyLibrary;
use crate::repack::watched;

/// What is wrong with one chunk: kind, origin, address, stored bytes, words.
type PyFlaw = (&'static str, Vec<u64>, u64, u64, String);

/// What was found (see `_native.pyi`).
#[pyclass(name = "Examined", module = "chunkwise._native", frozen, get_all)]
#[derive(Default)]
pub struct PyExamined {
    chunks: u64,
    stored_nbytes: u64,
    flaws: Vec<PyFlaw>,
    flaw_count: u64,
    undecided: Vec<Vec<u64>>,
    undecoded: Option<String>,
    unsound: Option<String>,
    elsewhere: Option<String>,
}

/// Read and decode all that is stored of a dataset (see `_native.pyi`).  The handle must be of that
/// library.
#[pyfunction]
#[pyo3(signature = (library, dataset_id, *, label, most_flaws, progress = None))]
pub fn examine_data(
    py: Python<'_>,
    library: &PyLibrary,
    dataset_id: i64,
    label: &str,
    most_flaws: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<PyExamined> {
    // SAFETY: a live handle of this library, by the contract above.
    let found = py.detach(|| unsafe { examinable(&library.library, dataset_id) });
    let (dataset, end, undecoded) = match found {
        Ok(Examinable::Stored { dataset, end, undecoded }) => (dataset, end, undecoded),
        Ok(Examinable::Elsewhere(reason)) => {
            return Ok(PyExamined { elsewhere: Some(reason), ..PyExamined::default() });
        }
        Ok(Examinable::Unsound(reason)) => {
            return Ok(PyExamined { unsound: Some(reason), ..PyExamined::default() });
        }
        Err(Unsuited::Reason(reason)) => return Err(raise(py, "CorruptDataError", reason)),
        Err(Unsuited::Failed(error)) => {
            return Err(raise(py, "CorruptDataError", format!("{label}: {error}")));
        }
    };
    let progresses = [Progress::default()];
    let examined = watched(py, progress, &progresses, || {
        let [progress] = &progresses;
        dataset.examine(&Examining {
            threads: thread_count(),
            end,
            decodes: undecoded.is_none(),
            most_flaws,
            cancelled: &progress.cancelled,
            done_nbytes: &progress.done_nbytes,
        })
    })?;
    let Examined { chunks, stored_nbytes, flaws, flaw_count, undecided } = match examined {
        Ok(examined) => examined,
        Err(ReadError::Index(reason)) => {
            return Ok(PyExamined { unsound: Some(reason), ..PyExamined::default() });
        }
        Err(error) => return Err(read_error(py, label, &error)),
    };
    Ok(PyExamined {
        chunks,
        stored_nbytes,
        flaws: flaws.into_iter().map(flaw_of).collect(),
        flaw_count,
        undecided: undecided.into_iter().map(|origin| origin.to_vec()).collect(),
        undecoded,
        ..PyExamined::default()
    })
}

fn flaw_of(flaw: Flaw) -> PyFlaw {
    let (kind, said) = match flaw.fault {
        Fault::BeyondEnd { end } => ("beyond-end", format!("the file's data ends at byte {end}")),
        Fault::Overlap { address } => {
            ("overlap", format!("the chunk at address {address} has some of its bytes"))
        }
        Fault::Unreadable(message) => ("unreadable", message),
        Fault::Short(lacking) => ("length", lacking.to_string()),
        Fault::PassedOver(passed_over) if passed_over.beyond_chunk => {
            ("length", "decodes to more than a chunk holds".to_string())
        }
        Fault::PassedOver(passed_over) => {
            ("trailing", format!("{} bytes after the end", passed_over.trailing_nbytes))
        }
        Fault::Decode(error) => {
            let kind = match error {
                DecodeError::Checksum { .. } | DecodeError::NoChecksum { .. } => "checksum",
                DecodeError::CannotHold { .. } => "length",
                _ => "decode",
            };
            (kind, error.to_string())
        }
    };
    let place = flaw.place;
    (kind, place.chunk_origin.to_vec(), place.address, place.stored_nbytes, said)
}
