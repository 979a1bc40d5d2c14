//! How do names of HDF5, which are bytes, come from Python, where they are text?

use std::path::Path;

use pyo3::prelude::*;

/// A name in a file: bytes that are no UTF-8 are surrogates in Python's text.
pub struct Name(Vec<u8>);

impl AsRef<[u8]> for Name {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl FromPyObject<'_, '_> for Name {
    type Error = PyErr;

    fn extract(text: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        // As `chunkwise.names.encode_name`.
        text.call_method1("encode", ("utf-8", "surrogateescape"))?.extract().map(Self)
    }
}

/// What messages call a dataset.
pub fn label(path: &Path, name: &Name) -> String {
    format!("'{}' in {}", String::from_utf8_lossy(&name.0), path.display())
}
