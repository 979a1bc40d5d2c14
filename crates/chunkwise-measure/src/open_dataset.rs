//! How is a dataset opened without Python?

use std::ffi::{CString, c_uint};
use std::sync::Arc;

use chunkwise_libhdf5::binding::{Api, DEFAULT, Handle, hid_t, hsize_t, list, shape_of};
use chunkwise_libhdf5::{BindError, Described, Library, Unsuited, describe};
use chunkwise_select::Dims;

use crate::properties::{ChunkCacheInForce, Properties, chunk_cache_of};
use crate::{ChunkTable, chunk_table};

/// A dataset opened read-only by path and name; closed on drop.
#[derive(Debug)]
pub struct OpenDataset {
    library: Arc<Library>,
    properties: Properties,
    file: hid_t,
    dataset: hid_t,
    /// The type of its elements in memory.
    datatype: hid_t,
}

impl OpenDataset {
    /// Open the dataset `name` of the file at `path`; HDF5's names are bytes.
    ///
    /// HDF5 gives all handles of a file, and of a dataset, the properties of the first: to
    /// be in force, neither may be open in this library already.
    ///
    /// # Errors
    /// When libhdf5 cannot open one of them, or refuses a property.
    pub fn open(
        library: Arc<Library>,
        path: impl AsRef<[u8]>,
        name: impl AsRef<[u8]>,
        properties: Properties,
    ) -> Result<Self, BindError> {
        let (path, name) = (text("H5Fopen", path.as_ref())?, text("H5Dopen2", name.as_ref())?);
        let mut open = Self { library, properties, file: -1, dataset: -1, datatype: -1 };
        let library = Arc::clone(&open.library);
        library.locked(|api| {
            const SWMR_READ: c_uint = 0x40; // H5F_ACC_SWMR_READ
            let flags = if open.properties.swmr { SWMR_READ } else { 0 };
            // SAFETY: valid strings; handles are used only after being checked.  What was
            // opened before a failure is closed when `open` is dropped.
            unsafe {
                let fapl = list(api, api.H5P_CLS_FILE_ACCESS_ID_g)?;
                open.properties.set_file_access(api, library.version(), fapl.id)?;
                let file = (api.H5Fopen)(path.as_ptr(), flags, fapl.id);
                open.file = api.checked_id("H5Fopen", file)?;
                let dapl = list(api, api.H5P_CLS_DATASET_ACCESS_ID_g)?;
                open.properties.set_dataset_access(api, dapl.id)?;
                let dataset = (api.H5Dopen2)(open.file, name.as_ptr(), dapl.id);
                open.dataset = api.checked_id("H5Dopen2", dataset)?;
                let datatype = (api.H5Dget_type)(open.dataset);
                open.datatype = api.checked_id("H5Dget_type", datatype)?;
                if open.properties.native_type {
                    let ascending = 0;
                    let native = (api.H5Tget_native_type)(open.datatype, ascending);
                    let native = api.checked_id("H5Tget_native_type", native)?;
                    (api.H5Tclose)(open.datatype);
                    open.datatype = native;
                }
                Ok::<(), BindError>(())
            }
        })?;
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

    /// The library it is open in.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Its handle, for those who ask libhdf5 about it; it stays this object's.
    pub fn id(&self) -> hid_t {
        self.dataset
    }

    /// The type of its elements in memory; it stays this object's.
    pub fn datatype(&self) -> hid_t {
        self.datatype
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Bytes of an element in memory.
    pub fn element_size(&self) -> usize {
        // SAFETY: a live type.
        self.library.locked(|api| unsafe { (api.H5Tget_size)(self.datatype) })
    }

    /// Elements in each dimension.
    ///
    /// # Errors
    /// When it is scalar or null, or has too many dimensions.
    pub fn shape(&self) -> Result<Dims, Unsuited> {
        // SAFETY: a live dataset.
        self.library.locked(|api| unsafe { shape_of(api, self.dataset) }).map(|(shape, _)| shape)
    }

    /// Bytes that its elements take in the file (`H5Dget_storage_size`).
    pub fn storage_nbytes(&self) -> hsize_t {
        // SAFETY: a live dataset.
        self.library.locked(|api| unsafe { (api.H5Dget_storage_size)(self.dataset) })
    }

    /// The chunk cache that is in force.
    ///
    /// # Errors
    /// What libhdf5 says.
    pub fn chunk_cache(&self) -> Result<ChunkCacheInForce, BindError> {
        // SAFETY: a live dataset.
        self.library.locked(|api| unsafe { chunk_cache_of(api, self.dataset) })
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
                let space = Handle::new(api, "H5Dget_space", space, api.H5Sclose)?;
                let elements = (api.H5Sget_simple_extent_npoints)(space.id);
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
        self.library.locked(|api: &Api| {
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

/// A string as C wants it.
pub(crate) fn text(call: &'static str, text: &[u8]) -> Result<CString, BindError> {
    CString::new(text).map_err(|error| BindError::Call { call, message: error.to_string() })
}
