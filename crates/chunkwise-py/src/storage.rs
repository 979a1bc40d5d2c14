//! Storage that Python gives: an object store, or a file object.

use std::sync::Arc;

use chunkwise_engine::platform::{Descriptor, borrowed};
use chunkwise_engine::{FileStorage, ReadError, Storage, StorageCost};
use pyo3::PyTraverseError;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyOSError};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// See `_native.pyi`.
#[pyclass(name = "Storage", module = "chunkwise._native", frozen)]
pub struct PyStorage(pub Arc<dyn Storage>, Option<Py<PyAny>>);

#[pymethods]
impl PyStorage {
    #[new]
    fn new(source: Bound<'_, PyAny>) -> PyResult<Self> {
        let size = source.getattr("size")?.extract()?;
        let (latency_ns, nbytes_per_s, request_nbytes, in_flight) =
            source.getattr("cost")?.extract()?;
        let cost = StorageCost { latency_ns, nbytes_per_s, request_nbytes, in_flight };
        let known = Some(source.clone().unbind());
        Ok(Self(Arc::new(Given { source: source.unbind(), size, cost }), known))
    }

    /// A source that keeps its storage is kept by it in turn: Python's collector has to see that.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Self(storage, source) = self;
        visit.call(source)?;
        // The storage holds the source once more. While the engine has that storage, too, it is not
        // this object's alone, and must not go with it.
        if Arc::strong_count(storage) == 1 {
            visit.call(source)?;
        }
        Ok(())
    }

    #[staticmethod]
    fn of_descriptor(descriptor: Descriptor) -> PyResult<Self> {
        // SAFETY: open as long as this call takes, by the contract in `_native.pyi`.
        let theirs = unsafe { borrowed(descriptor) };
        let storage = theirs.and_then(|file| FileStorage::reopening(&file));
        Ok(Self(storage.map_err(PyOSError::new_err)?, None))
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
        let outcome = Python::try_attach(|py| {
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
        outcome.unwrap_or(Err(ReadError::Cancelled))
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
        // What is near to what comes before it comes with that.
        let mut requests: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        let mut of_request = Vec::with_capacity(ranges.len());
        for (address, out) in ranges.iter() {
            let next = (*address, out.len() as u64);
            match requests.last_mut().map(|last| (self.cost.joined(*last, next), last)) {
                Some((Some(nbytes), last)) => last.1 = nbytes,
                _ => requests.push(next),
            }
            of_request.push(requests.len() - 1);
        }
        let mut wanted = ranges.iter_mut().zip(of_request).peekable();
        self.ask("read_ranges", &requests, |number, bytes| {
            let begin = requests[number].0;
            while let Some(((address, out), _)) = wanted.next_if(|(_, of)| *of == number) {
                let at = (*address - begin) as usize;
                let Some(part) = bytes.get(at..).and_then(|rest| rest.get(..out.len())) else {
                    return false;
                };
                out.copy_from_slice(part);
            }
            bytes.len() as u64 == requests[number].1
        })
    }

    fn read_metadata(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.fill("read_metadata", address, out)
    }

    fn expect_metadata(&self, ranges: &[(u64, u64)]) {
        Python::try_attach(|py| {
            let outcome = self.source.call_method1(py, "expect_metadata", (ranges.to_vec(),));
            // What is wrong is reported when they are read; Ctrl-C is not to be lost.
            if let Err(error) = outcome {
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
