//! Which Python exception does an error become, and what does it advise?

use chunkwise_codec::DecodeError;
use chunkwise_engine::{ReadError, WriteError};
use chunkwise_libhdf5::BindError;
use chunkwise_select::SelectError;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// An exception of `chunkwise.errors` with this message.
pub fn raise(py: Python<'_>, class: &str, message: String) -> PyErr {
    let made = py
        .import("chunkwise.errors")
        .and_then(|errors| errors.getattr(class))
        .and_then(|class| class.call1((message,)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// The exception for what libhdf5 cannot read; `chunkwise.files.causes` says what that proves.
pub fn unreadable(py: Python<'_>, place: &str, message: &str, dataset_id: Option<i64>) -> PyErr {
    made_by(py, "unreadable", (place, message, dataset_id))
}

/// The exception for a dataset of which libhdf5 cannot say how it is stored.
pub fn undescribed(py: Python<'_>, label: &str, message: &str, dataset_id: i64) -> PyErr {
    made_by(py, "undescribed", (label, message, dataset_id))
}

/// An exception that a function of `chunkwise.files.causes` makes.
fn made_by<'py>(py: Python<'py>, name: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let made = py
        .import("chunkwise.files.causes")
        .and_then(|causes| causes.getattr(name))
        .and_then(|maker| maker.call1(arguments));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// A selection that does not fit; `label` names dataset and file.
pub fn select_error(py: Python<'_>, label: &str, error: &SelectError) -> PyErr {
    raise(py, "SelectionError", format!("{label}: {error}"))
}

/// A read that failed; `label` names dataset and file.
pub fn read_error(py: Python<'_>, label: &str, error: &ReadError) -> PyErr {
    let (class, remedy) = match error {
        ReadError::Select(error) => return select_error(py, label, error),
        ReadError::Source { name, error } => return read_error(py, name, error),
        ReadError::Replaced(_) => ("ChangedSourceError", "open the file again"),
        ReadError::Destination { .. } => {
            ("SelectionError", "pass an array of the selection's shape")
        }
        ReadError::Decode { source: DecodeError::Unsupported { .. }, .. } => {
            ("UndecodedChunkError", "read it through h5py")
        }
        ReadError::Fields => ("SelectionError", "name fields of the dataset's type"),
        ReadError::Index(_) => ("UnsoundIndexError", "read it through h5py"),
        ReadError::Decode { .. } | ReadError::Short { .. } => (
            "CorruptDataError",
            "the file is damaged: fetch it again or restore it; other chunks can still be read",
        ),
        ReadError::Truncated { .. } | ReadError::TruncatedChunk { .. } => {
            ("CorruptDataError", "fetch or copy the file again, whole")
        }
        ReadError::Io { .. } => ("CorruptDataError", "check the disk or the network mount"),
        ReadError::Request { .. } => return raise(py, "RemoteError", format!("{label}: {error}")),
        ReadError::Changed(_) => return raise(py, "FileChangedError", format!("{label}: {error}")),
        ReadError::Cancelled => ("ChunkwiseError", "read it again"),
        ReadError::Memory(_) => ("OutOfMemoryError", "select less, or rechunk the file"),
    };
    raise(py, class, format!("{label}: {error}; {remedy}"))
}

/// A write that failed; `label` names dataset and file.
pub fn write_error(py: Python<'_>, label: &str, error: &WriteError) -> PyErr {
    let (class, remedy) = match error {
        WriteError::Select(error) => return select_error(py, label, error),
        WriteError::Source { .. } => ("SelectionError", "give an array of the selection's shape"),
        WriteError::Encode { .. } => {
            ("CannotWriteError", "it is kept in memory; choose other filters, or other values")
        }
        WriteError::Stored { .. } | WriteError::Decode { .. } | WriteError::Short { .. } => (
            "CorruptDataError",
            "the file is damaged, and what was written is kept in memory: write the chunk whole",
        ),
        WriteError::Commit(_) => (
            "CannotWriteError",
            "chunks before it are in the file, it and those after it are not: make room and \
             flush again, or write the file anew",
        ),
        WriteError::Cancelled => ("ChunkwiseError", "write it again"),
        WriteError::Memory(_) => ("OutOfMemoryError", "choose smaller chunks"),
        WriteError::Forked => ("UsageError", "write in the parent, or open the file here"),
    };
    raise(py, class, format!("{label}: {error}; {remedy}"))
}

/// NumPy's error for an array that cannot be made.
pub fn allocation_error(py: Python<'_>, label: &str, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyMemoryError>(py) {
        let message = format!("{label}: {}; select less", error.value(py));
        return raise(py, "OutOfMemoryError", message);
    }
    error
}

/// A libhdf5 that cannot be used.
pub fn bind_error(py: Python<'_>, error: &BindError) -> PyErr {
    raise(py, "LibraryError", error.to_string())
}
