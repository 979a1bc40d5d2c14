//! Which of libhdf5's many knobs are turned, and to what?
//!
//! Paper 000 varies them one at a time.  What is None stays as the library has it; what a
//! knob concerns (reading, writing, the file, the dataset) is where it is applied.

use std::ffi::c_int;

use chunkwise_libhdf5::binding::{Api, Handle, hid_t, list};
use chunkwise_libhdf5::{BindError, Library, LibraryVersion};

/// `H5Pset_chunk_cache`; each value may be left as the file's default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ChunkCache {
    /// Slots of the hash table.
    pub nslots: Option<usize>,
    /// Bytes of decoded chunks.
    pub nbytes: Option<usize>,
    /// Preemption of chunks that were read or written in full, from 0 to 1.
    pub w0: Option<f64>,
}

/// The chunk cache that is in force for an open dataset (`H5Pget_chunk_cache`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkCacheInForce {
    /// Slots of the hash table.
    pub nslots: usize,
    /// Bytes of decoded chunks.
    pub nbytes: usize,
    /// Preemption of chunks that were read or written in full.
    pub w0: f64,
}

/// A bound of the file format (`H5F_libver_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatBound {
    /// `H5F_LIBVER_EARLIEST`
    Earliest,
    /// The version's number in `H5F_libver_t`: 1 for 1.8, 2 for 1.10, ...
    Version(u8),
    /// `H5F_LIBVER_LATEST`: the newest that the library knows.
    Latest,
}

/// Properties of files, datasets and transfers that differ from the library's defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Properties {
    /// The dataset's chunk cache.
    pub cache: ChunkCache,
    /// `H5Pset_sieve_buf_size`: for contiguous data that is accessed in small pieces.
    pub sieve_nbytes: Option<usize>,
    /// `H5Pset_buffer`: for elements that are converted from one type to another.
    pub conversion_nbytes: Option<usize>,
    /// `H5Pset_meta_block_size`: metadata is allocated in blocks of this many bytes.
    pub metadata_block_nbytes: Option<u64>,
    /// `H5Pset_small_data_block_size`: so are small pieces of data.
    pub small_data_block_nbytes: Option<u64>,
    /// `H5Pset_alignment`: objects of at least this many bytes (first) begin at multiples of
    /// the second.
    pub alignment: Option<(u64, u64)>,
    /// `H5Pset_libver_bounds`: the oldest and the newest format that is written.
    pub bounds: Option<(FormatBound, FormatBound)>,
    /// `H5Pset_alloc_time`: 1 early, 2 late, 3 incremental.
    pub alloc_time: Option<c_int>,
    /// `H5Pset_fill_time`: 0 on allocation, 1 never, 2 if a value was set.
    pub fill_time: Option<c_int>,
    /// `H5Pset_page_buffer_size`; a file that is created then has paged file space.
    pub page_buffer_nbytes: Option<usize>,
    /// Elements in memory in the type of this machine (`H5Tget_native_type`) rather than
    /// as they are stored.
    pub native_type: bool,
    /// Whether a file is read along with a writer in SWMR mode (`H5F_ACC_SWMR_READ`).
    pub swmr: bool,
}

impl Properties {
    /// Apply what concerns opening and creating files.
    ///
    /// # Errors
    /// What libhdf5 refuses.
    ///
    /// # Safety
    /// A live file access property list; the lock must be held.
    pub(crate) unsafe fn set_file_access(
        &self,
        api: &Api,
        version: LibraryVersion,
        fapl: hid_t,
    ) -> Result<(), BindError> {
        // SAFETY: a live list, by the caller's contract.
        unsafe {
            if let Some(nbytes) = self.sieve_nbytes {
                api.checked("H5Pset_sieve_buf_size", (api.H5Pset_sieve_buf_size)(fapl, nbytes))?;
            }
            if let Some(nbytes) = self.metadata_block_nbytes {
                let status = (api.H5Pset_meta_block_size)(fapl, nbytes);
                api.checked("H5Pset_meta_block_size", status)?;
            }
            if let Some(nbytes) = self.small_data_block_nbytes {
                let status = (api.H5Pset_small_data_block_size)(fapl, nbytes);
                api.checked("H5Pset_small_data_block_size", status)?;
            }
            if let Some((threshold, alignment)) = self.alignment {
                let status = (api.H5Pset_alignment)(fapl, threshold, alignment);
                api.checked("H5Pset_alignment", status)?;
            }
            if let Some((low, high)) = self.bounds {
                set_bounds(api, version, fapl, low, high)?;
            }
            if let Some(nbytes) = self.page_buffer_nbytes {
                let status = (api.H5Pset_page_buffer_size)(fapl, nbytes, 0, 0);
                api.checked("H5Pset_page_buffer_size", status)?;
            }
        }
        Ok(())
    }

    /// Apply what concerns opening and creating datasets.
    ///
    /// # Errors
    /// What libhdf5 refuses.
    ///
    /// # Safety
    /// A live dataset access property list; the lock must be held.
    pub(crate) unsafe fn set_dataset_access(
        &self,
        api: &Api,
        dapl: hid_t,
    ) -> Result<(), BindError> {
        let ChunkCache { nslots, nbytes, w0 } = self.cache;
        if (nslots, nbytes, w0) == (None, None, None) {
            return Ok(());
        }
        // H5D_CHUNK_CACHE_NSLOTS_DEFAULT and its like: as the file has them.
        let (nslots, nbytes) = (nslots.unwrap_or(usize::MAX), nbytes.unwrap_or(usize::MAX));
        // SAFETY: a live list, by the caller's contract.
        let status = unsafe { (api.H5Pset_chunk_cache)(dapl, nslots, nbytes, w0.unwrap_or(-1.0)) };
        api.checked("H5Pset_chunk_cache", status)?;
        Ok(())
    }

    /// Apply what concerns creating datasets.
    ///
    /// # Errors
    /// What libhdf5 refuses.
    ///
    /// # Safety
    /// A live dataset creation property list; the lock must be held.
    pub(crate) unsafe fn set_dataset_creation(
        &self,
        api: &Api,
        dcpl: hid_t,
    ) -> Result<(), BindError> {
        // SAFETY: a live list, by the caller's contract.
        unsafe {
            if let Some(time) = self.alloc_time {
                api.checked("H5Pset_alloc_time", (api.H5Pset_alloc_time)(dcpl, time))?;
            }
            if let Some(time) = self.fill_time {
                api.checked("H5Pset_fill_time", (api.H5Pset_fill_time)(dcpl, time))?;
            }
        }
        Ok(())
    }

    /// Apply what concerns creating files.
    ///
    /// # Errors
    /// What libhdf5 refuses.
    ///
    /// # Safety
    /// A live file creation property list; the lock must be held.
    pub(crate) unsafe fn set_file_creation(&self, api: &Api, fcpl: hid_t) -> Result<(), BindError> {
        const PAGED: c_int = 1; // H5F_FSPACE_STRATEGY_PAGE
        if self.page_buffer_nbytes.is_some() {
            // SAFETY: a live list, by the caller's contract.
            let status = unsafe { (api.H5Pset_file_space_strategy)(fcpl, PAGED, 0, 1) };
            api.checked("H5Pset_file_space_strategy", status)?;
        }
        Ok(())
    }

    /// Apply what concerns a kind of list: `file_access`, `file_creation`, `dataset_access`
    /// or `dataset_creation`.
    ///
    /// # Errors
    /// What libhdf5 refuses, or another kind.
    ///
    /// # Safety
    /// A live list of this library and kind.
    pub unsafe fn set_on(&self, library: &Library, kind: &str, id: hid_t) -> Result<(), BindError> {
        library.locked(|api| {
            // SAFETY: the caller's contract; the lock is held.
            unsafe {
                match kind {
                    "file_access" => self.set_file_access(api, library.version(), id),
                    "file_creation" => self.set_file_creation(api, id),
                    "dataset_access" => self.set_dataset_access(api, id),
                    "dataset_creation" => self.set_dataset_creation(api, id),
                    _ => {
                        let message = format!("no property list is called {kind}");
                        Err(BindError::Call { call: "H5Pcreate", message })
                    }
                }
            }
        })
    }

    /// A transfer property list with what concerns reads and writes; None where that is the
    /// default, with which libhdf5 has less to look up in each call.
    ///
    /// # Errors
    /// What libhdf5 refuses.
    ///
    /// # Safety
    /// The lock must be held, and until the list is dropped.
    pub(crate) unsafe fn transfer(&self, api: &Api) -> Result<Option<Handle>, BindError> {
        let Some(nbytes) = self.conversion_nbytes else { return Ok(None) };
        // SAFETY: a class of this library, and the live list made of it.
        unsafe {
            let dxpl = list(api, api.H5P_CLS_DATASET_XFER_ID_g)?;
            // Null: the library allocates the buffers itself.
            let null = std::ptr::null_mut();
            api.checked("H5Pset_buffer", (api.H5Pset_buffer)(dxpl.id, nbytes, null, null))?;
            Ok(Some(dxpl))
        }
    }
}

/// Set the bounds of the file format.
///
/// # Safety
/// A live file access property list; the lock must be held.
unsafe fn set_bounds(
    api: &Api,
    version: LibraryVersion,
    fapl: hid_t,
    low: FormatBound,
    high: FormatBound,
) -> Result<(), BindError> {
    // The newest is the last number that this version takes; it refuses those beyond.
    const NEWEST: c_int = 15;
    let numbers = |bound| match bound {
        FormatBound::Earliest => 0..=0,
        FormatBound::Version(number) => c_int::from(number)..=c_int::from(number),
        FormatBound::Latest => 1..=NEWEST,
    };
    for high in numbers(high).rev() {
        for low in numbers(low).rev().filter(|&low| low <= high) {
            // SAFETY: a live list, by the caller's contract.
            if unsafe { (api.H5Pset_libver_bounds)(fapl, low, high) } >= 0 {
                return Ok(());
            }
        }
    }
    Err(BindError::Call {
        call: "H5Pset_libver_bounds",
        message: format!("HDF5 {version} does not know these bounds of the file format"),
    })
}

/// The chunk cache of an open dataset.
///
/// # Safety
/// A live dataset; the lock must be held.
pub(crate) unsafe fn chunk_cache_of(
    api: &Api,
    dataset: hid_t,
) -> Result<ChunkCacheInForce, BindError> {
    let (mut nslots, mut nbytes, mut w0) = (0, 0, 0.0);
    // SAFETY: a live dataset, by the caller's contract, and room for each value.
    unsafe {
        let dapl = (api.H5Dget_access_plist)(dataset);
        let dapl = Handle::new(api, "H5Dget_access_plist", dapl, api.H5Pclose)?;
        let status =
            (api.H5Pget_chunk_cache)(dapl.id, &raw mut nslots, &raw mut nbytes, &raw mut w0);
        api.checked("H5Pget_chunk_cache", status)?;
    }
    Ok(ChunkCacheInForce { nslots, nbytes, w0 })
}
