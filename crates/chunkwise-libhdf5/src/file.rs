//! How is a dataset opened without Python?

use std::ffi::CString;
use std::sync::Arc;

use crate::api::{DEFAULT, hid_t};
use crate::dataset::{Described, describe};
use crate::{BindError, ChunkTable, Library, Unsuited, chunk_table};

/// A dataset opened read-only by path and name; closed on drop.
#[derive(Debug)]
pub struct OpenDataset {
    library: Arc<Library>,
    file: hid_t,
    dataset: hid_t,
    datatype: hid_t,
}

impl OpenDataset {
    /// Open the dataset `name` of the file at `path`.
    ///
    /// # Errors
    /// When libhdf5 cannot open one of them.
    pub fn open(library: Arc<Library>, path: &str, name: &str) -> Result<Self, BindError> {
        let text = |call, text: &str| {
            CString::new(text).map_err(|e| BindError::Call { call, message: e.to_string() })
        };
        let (path, name) = (text("H5Fopen", path)?, text("H5Dopen2", name)?);
        let mut open = Self { library, file: -1, dataset: -1, datatype: -1 };
        let (file, dataset, datatype) = open.library.locked(|api| {
            let read_only = 0;
            // SAFETY: valid strings; handles are used only after being checked.  What was
            // opened before a failure is closed here, as nothing else knows of it.
            unsafe {
                let file = (api.H5Fopen)(path.as_ptr(), read_only, DEFAULT);
                let file = api.checked_id("H5Fopen", file)?;
                let dataset = (api.H5Dopen2)(file, name.as_ptr(), DEFAULT);
                let dataset = api.checked_id("H5Dopen2", dataset).inspect_err(|_| {
                    (api.H5Fclose)(file);
                })?;
                let datatype = (api.H5Dget_type)(dataset);
                let datatype = api.checked_id("H5Dget_type", datatype).inspect_err(|_| {
                    (api.H5Dclose)(dataset);
                    (api.H5Fclose)(file);
                })?;
                Ok((file, dataset, datatype))
            }
        })?;
        (open.file, open.dataset, open.datatype) = (file, dataset, datatype);
        Ok(open)
    }

    /// The dataset as the engine sees it, its elements as they are stored, or the reason
    /// why libhdf5 has to read it.
    ///
    /// # Errors
    /// As [`describe`].
    pub fn describe(&self) -> Described {
        // SAFETY: live handles of this library.
        unsafe { describe(&self.library, self.dataset, self.datatype) }
    }

    /// The dataset's chunks.
    ///
    /// # Errors
    /// As [`chunk_table`].
    pub fn chunk_table(&self) -> Result<ChunkTable, Unsuited> {
        // SAFETY: a live handle of this library.
        unsafe { chunk_table(&self.library, self.dataset) }
    }

    /// Everything in the dataset, read by libhdf5: the oracle for tests.
    ///
    /// # Errors
    /// What libhdf5 says.
    pub fn read_all(&self, nbytes: usize) -> Result<Vec<u8>, BindError> {
        let mut out = vec![0u8; nbytes];
        self.library.locked(|api| {
            // SAFETY: live handles; the caller's size is checked against the dataset's.
            unsafe {
                let space = (api.H5Dget_space)(self.dataset);
                let space = api.checked_id("H5Dget_space", space)?;
                let elements = (api.H5Sget_simple_extent_npoints)(space);
                (api.H5Sclose)(space);
                let size = (api.H5Tget_size)(self.datatype);
                if usize::try_from(elements).ok().and_then(|n| n.checked_mul(size)) != Some(nbytes)
                {
                    let message =
                        format!("{elements} elements of {size} bytes do not fit {nbytes}");
                    return Err(BindError::Call { call: "H5Dread", message });
                }
                let status = (api.H5Dread)(
                    self.dataset,
                    self.datatype,
                    DEFAULT,
                    DEFAULT,
                    DEFAULT,
                    out.as_mut_ptr().cast(),
                );
                api.checked("H5Dread", status)?;
                Ok(())
            }
        })?;
        Ok(out)
    }
}

impl Drop for OpenDataset {
    fn drop(&mut self) {
        self.library.locked(|api| {
            // SAFETY: live handles that nothing else closes, the file last.
            unsafe {
                if self.datatype >= 0 {
                    (api.H5Tclose)(self.datatype);
                }
                if self.dataset >= 0 {
                    (api.H5Dclose)(self.dataset);
                }
                if self.file >= 0 {
                    (api.H5Fclose)(self.file);
                }
            }
        });
    }
}
