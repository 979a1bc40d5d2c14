//! Storage that Python gives: an object store, or a file object.

use std::ffi::c_void;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use chunkwise_engine::{FileStorage, ReadError, Storage, StorageCost};
use chunkwise_libhdf5::driver_info;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::library::PyLibrary;

/// See `_native.pyi`.
#[pyclass(name = "Storage", module = "chunkwise._native", frozen)]
pub struct PyStorage(pub Arc<dyn Storage>);

#[pymethods]
impl PyStorage {
    #[new]
    fn new(source: Bound<'_, PyAny>) -> PyResult<Self> {
        let size = source.getattr("size")?.extract()?;
        let (latency_ns, nbytes_per_s, request_nbytes, in_flight) =
            source.getattr("cost")?.extract()?;
        let cost = StorageCost { latency_ns, nbytes_per_s, request_nbytes, in_flight };
        Ok(Self(Arc::new(Given { source: source.unbind(), size, cost })))
    }

    #[staticmethod]
    fn of_descriptor(descriptor: i32) -> PyResult<Self> {
        // SAFETY: open as long as this call takes, by the contract in `_native.pyi`.
        let theirs = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let copy = theirs.try_clone_to_owned().map(File::from);
        let storage = copy.and_then(|file| FileStorage::reopening(&file));
        Ok(Self(storage.map_err(PyOSError::new_err)?))
    }
}

/// Bytes that a Python object fetches.
struct Given {
    source: Py<PyAny>,
    size: u64,
    cost: StorageCost,
}

impl Given {
    /// Ask for ranges, and pass what comes to `take`, in their order.
    fn ask(
        &self,
        method: &str,
        ranges: &[(u64, u64)],
        mut take: impl FnMut(usize, &[u8]) -> bool + Send,
    ) -> Result<(), ReadError> {
        let (address, len) = ranges.first().copied().unwrap_or_default();
        let short = || ReadError::Request {
            place: None,
            address,
            len,
            message: "the answer has another length".into(),
        };
        for &(address, len) in ranges {
            if address.checked_add(len).is_none_or(|end| end > self.size) {
                return Err(ReadError::Truncated { address, len, end: self.size });
            }
        }
        // None while the interpreter shuts down: nobody waits for the bytes then.
        let asked = Python::try_attach(|py| {
            let answer = self.source.call_method1(py, method, (ranges.to_vec(),));
            let answer = answer.and_then(|all| all.extract::<Vec<Bound<'_, PyBytes>>>(py));
            let answer = answer.map_err(|error| failed(py, &error, (address, len)))?;
            if answer.len() != ranges.len() {
                return Err(short());
            }
            let answer: Vec<&[u8]> = answer.iter().map(|bytes| bytes.as_bytes()).collect();
            // Other threads' answers come meanwhile.
            let fits = py.detach(|| {
                answer.into_iter().enumerate().all(|(number, bytes)| take(number, bytes))
            });
            if fits { Ok(()) } else { Err(short()) }
        });
        asked.unwrap_or(Err(ReadError::Cancelled))
    }

    fn fill(&self, method: &str, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        if out.is_empty() {
            return Ok(());
        }
        self.ask(method, &[(address, out.len() as u64)], |_, bytes| {
            let fits = bytes.len() == out.len();
            if fits {
                out.copy_from_slice(bytes);
            }
            fits
        })
    }
}

/// What went wrong in Python, for the engine.
fn failed(py: Python<'_>, error: &PyErr, (address, len): (u64, u64)) -> ReadError {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        // Raised again where Python next looks for signals.
        // SAFETY: may be called by any thread.
        unsafe { pyo3::ffi::PyErr_SetInterrupt() };
        return ReadError::Cancelled;
    }
    if !error.is_instance_of::<PyException>(py) {
        return ReadError::Cancelled;
    }
    let message = error.value(py).to_string();
    let changed = py
        .import("chunkwise.errors")
        .and_then(|errors| errors.getattr("FileChangedError"))
        .is_ok_and(|changed| error.is_instance(py, &changed));
    if changed {
        return ReadError::Changed(message);
    }
    ReadError::Request { place: None, address, len, message }
}

impl Storage for Given {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.fill("read_ranges", address, out)
    }

    fn read_ranges(&self, ranges: &mut [(u64, &mut [u8])]) -> Result<(), ReadError> {
        let wanted: Vec<_> =
            ranges.iter().map(|(address, out)| (*address, out.len() as u64)).collect();
        self.ask("read_ranges", &wanted, |number, bytes| {
            let Some((_, out)) = ranges.get_mut(number) else { return false };
            let fits = bytes.len() == out.len();
            if fits {
                out.copy_from_slice(bytes);
            }
            fits
        })
    }

    fn read_metadata(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.fill("read_metadata", address, out)
    }

    fn expect_metadata(&self, ranges: &[(u64, u64)]) {
        Python::try_attach(|py| {
            let asked = self.source.call_method1(py, "expect_metadata", (ranges.to_vec(),));
            // What is wrong is told when they are read; Ctrl-C is not to be lost.
            if let Err(error) = asked {
                let _ = failed(py, &error, (0, 0));
            }
        });
    }

    fn cost(&self) -> StorageCost {
        self.cost
    }

    fn interrupt(&self) {
        Python::try_attach(|py| {
            if let Err(error) = self.source.call_method0(py, "interrupt") {
                error.write_unraisable(py, None);
            }
        });
    }

    fn end(&self) -> u64 {
        self.size
    }

    fn read_at_once(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }
}

/// The file object through which h5py has opened a dataset's file (see `_native.pyi`).
#[pyfunction]
pub fn file_object<'py>(
    py: Python<'py>,
    library: &PyLibrary,
    dataset_id: i64,
    driver: i64,
) -> Option<Bound<'py, PyAny>> {
    // SAFETY: a live handle of this library, by the contract in `_native.pyi`.
    let found: NonNull<c_void> = unsafe { driver_info(&library.library, dataset_id, driver) }?;
    // SAFETY: the driver is h5py's own for file objects, which was given such an object, and keeps it
    // as long as the file is open: it is, as the dataset is.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, found.as_ptr().cast()) }
}
