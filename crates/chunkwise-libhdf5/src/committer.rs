//! How do encoded chunks become part of a file that libhdf5 has open?
//!
//! Of a chunk that `H5Dwrite_chunk` overwrites with as many bytes as it had, libhdf5 keeps the
//! old filter mask in its index; and of the chunk that it looked up last it remembers the
//! mask from before the write, by which a read then undoes other filters than were applied.
//! So the first is never done, and the second forgotten before anybody reads
//! (1.10.8 to 2.0).

use std::ffi::c_int;
use std::sync::Arc;

use chunkwise_engine::{ChunkStore, CommitError, Committer, EncodedChunk};
use chunkwise_select::{ChunkGrid, Dims};

use crate::api::{Api, DEFAULT, hid_t, hsize_t};
use crate::disk_space::no_space;
use crate::facts::{chunk_options, shape_of};
use crate::handle::Handle;
use crate::{BindError, Library, Unsuited};

/// Hands chunks to `H5Dwrite_chunk`.
#[derive(Debug)]
pub struct ChunkCommitter {
    library: Arc<Library>,
    dataset: hid_t,
    /// Found out when it is needed.
    facts: Option<Facts>,
}

/// What is known of a dataset.
#[derive(Debug, Clone)]
struct Facts {
    /// Shape of a chunk.
    chunk: Dims,
    /// Without filters there are no masks to go wrong.
    filtered: bool,
}

impl ChunkCommitter {
    /// For the chunked dataset `dataset`, which stays the caller's.
    ///
    /// # Safety
    /// A live handle of this library, for as long as this is used.
    pub unsafe fn new(library: Arc<Library>, dataset: hid_t) -> Self {
        Self { library, dataset, facts: None }
    }

    /// The same for another handle of the same dataset.
    ///
    /// # Safety
    /// As of [`new`](Self::new).
    pub unsafe fn set_handle(&mut self, dataset: hid_t) {
        self.dataset = dataset;
    }
}

impl Committer for ChunkCommitter {
    fn commit(&mut self, chunks: &[EncodedChunk]) -> Result<(), CommitError> {
        // One hold of the lock for all: taking h5py's costs more than a small chunk does.  Within
        // it nobody reads.
        self.library.locked(|api| {
            let held = Held { api, dataset: self.dataset };
            let Some(first) = chunks.first() else { return Ok(()) };
            let failed = |chunk: &EncodedChunk, error: Unsuited| CommitError {
                chunk_origin: chunk.chunk_origin.clone(),
                stored_nbytes: chunk.bytes.len() as u64,
                message: error.to_string(),
            };
            if self.facts.is_none() {
                self.facts = Some(held.facts().map_err(|error| failed(first, error))?);
            }
            let Some(facts) = &self.facts else { return Ok(()) };
            // Just beyond it libhdf5 takes a chunk that nobody will find.
            let extent = held.extent().map_err(|error| failed(first, error))?;
            let nbytes = chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum();
            // SAFETY: a live dataset, with the lock held.
            if let Some(reason) = unsafe { no_space(api, self.dataset, nbytes) } {
                return Err(failed(first, Unsuited::Reason(reason)));
            }
            let mut stale = false;
            let outcome = chunks.iter().try_for_each(|chunk| {
                if chunk.chunk_origin.iter().zip(&extent).any(|(begin, end)| begin >= end) {
                    let reason = format!("the dataset's shape is {:?} now", extent.as_slice());
                    return Err(failed(chunk, Unsuited::Reason(reason)));
                }
                let written = if facts.filtered {
                    held.write_filtered(chunk, &mut stale)
                } else {
                    held.write(chunk, &chunk.bytes)
                };
                written.map_err(|error| failed(chunk, error.into()))
            });
            if stale && let Some(last) = chunks.last() {
                held.forget_mask_of(last, chunks, &facts.chunk);
            }
            outcome
        })
    }
}

impl ChunkStore for ChunkCommitter {
    fn are_stored(&mut self, chunk_origins: &[Dims]) -> Vec<bool> {
        self.library.locked(|api| {
            let held = Held { api, dataset: self.dataset };
            chunk_origins.iter().map(|origin| held.size_of(origin).is_some()).collect()
        })
    }

    fn stored(&mut self, chunk_origin: &[u64], bytes: &mut Vec<u8>) -> Result<Option<u32>, String> {
        self.library.locked(|api| {
            let held = Held { api, dataset: self.dataset };
            // Before a dataset has any place in the file, its only chunks may be in libhdf5's
            // cache, which then does not show them.
            let nbytes = held.size_of(chunk_origin).or_else(|| {
                // SAFETY: a live dataset, with the lock held.
                unsafe { (api.H5Dflush)(self.dataset) };
                held.size_of(chunk_origin)
            });
            let Some(nbytes) = nbytes else { return Ok(None) };
            match held.read(chunk_origin, nbytes, bytes) {
                Ok(mask) => Ok(Some(mask)),
                // What was only in libhdf5's cache, never written, is not even there any more.
                Err(_) if held.size_of(chunk_origin).is_none() => Ok(None),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}

/// The filter mask of the first chunk of a dataset of this many dimensions; 0 where it was never
/// written or cannot be read.
///
/// # Safety
/// A live chunked dataset of this library, with the lock held.
pub(crate) unsafe fn first_mask(api: &Api, dataset: hid_t, rank: usize) -> u32 {
    let held = Held { api, dataset };
    let origin = Dims::from_elem(0, rank);
    let Some(nbytes) = held.size_of(&origin) else { return 0 };
    held.read(&origin, nbytes, &mut Vec::new()).unwrap_or(0)
}

/// A dataset while the library's lock is held.
struct Held<'a> {
    api: &'a Api,
    dataset: hid_t,
}

impl Held<'_> {
    fn extent(&self) -> Result<Dims, Unsuited> {
        // SAFETY: a live dataset, with the lock held.
        unsafe { shape_of(self.api, self.dataset) }.map(|(shape, _)| shape)
    }

    fn facts(&self) -> Result<Facts, Unsuited> {
        let Self { api, dataset } = *self;
        // SAFETY: a live dataset, with the lock held.
        let options = unsafe {
            let (shape, _) = shape_of(api, dataset)?;
            let dcpl = (api.H5Dget_create_plist)(dataset);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            chunk_options(api, dcpl.id, shape.len())?
        };
        Ok(Facts { chunk: options.chunk, filtered: options.filters > 0 })
    }

    /// Write a chunk where its mask counts; `stale` says whether libhdf5 may remember another
    /// one then.
    fn write_filtered(&self, chunk: &EncodedChunk, stale: &mut bool) -> Result<(), BindError> {
        let old_nbytes = self.size_of(&chunk.chunk_origin);
        if old_nbytes == Some(chunk.bytes.len() as hsize_t) {
            let mut bytes = Vec::new();
            let mask = self.read(&chunk.chunk_origin, chunk.bytes.len() as hsize_t, &mut bytes)?;
            if mask != chunk.filter_mask {
                // With another length first, the index takes the mask.
                bytes.push(0);
                self.write(chunk, &bytes)?;
            }
        }
        *stale = chunk.filter_mask != 0 || old_nbytes.is_some();
        self.write(chunk, &chunk.bytes)
    }

    fn write(&self, chunk: &EncodedChunk, bytes: &[u8]) -> Result<(), BindError> {
        // SAFETY: a live dataset, an origin of its rank, and all of the bytes; the lock is held.
        let status = unsafe {
            (self.api.H5Dwrite_chunk)(
                self.dataset,
                DEFAULT,
                chunk.filter_mask,
                chunk.chunk_origin.as_ptr(),
                bytes.len(),
                bytes.as_ptr().cast(),
            )
        };
        self.api.checked("H5Dwrite_chunk", status).map(|_| ())
    }

    /// Stored bytes of a chunk; None where it was never written.
    ///
    /// What libhdf5 has in its own cache is in the file then.
    fn size_of(&self, chunk_origin: &[u64]) -> Option<hsize_t> {
        let mut nbytes: hsize_t = 0;
        // SAFETY: as for `write`.
        unsafe {
            let status = (self.api.H5Dget_chunk_storage_size)(
                self.dataset,
                chunk_origin.as_ptr(),
                &raw mut nbytes,
            );
            if status < 0 {
                // Never written is an error in some versions, and no bytes in others.
                (self.api.H5Eclear2)(DEFAULT);
                return None;
            }
        }
        (nbytes > 0).then_some(nbytes)
    }

    /// Read a chunk of `nbytes` stored bytes; gives its mask.
    fn read(
        &self,
        chunk_origin: &[u64],
        nbytes: hsize_t,
        bytes: &mut Vec<u8>,
    ) -> Result<u32, BindError> {
        const CALL: &str = "H5Dread_chunk";
        let failed = |message: &str| BindError::Call { call: CALL, message: message.to_string() };
        let Some(read) = self.api.H5Dread_chunk.or(self.api.H5Dread_chunk1) else {
            return Err(failed("this libhdf5 does not have it"));
        };
        let nbytes = usize::try_from(nbytes).map_err(|_| failed("the chunk is too large"))?;
        bytes.clear();
        bytes.try_reserve_exact(nbytes).map_err(|_| failed("there is no memory for the chunk"))?;
        bytes.resize(nbytes, 0);
        let mut mask = 0;
        // SAFETY: as for `write`, and room for as many bytes as libhdf5 said, under the same
        // hold of the lock.
        let status: c_int = unsafe {
            let origin = chunk_origin.as_ptr();
            read(self.dataset, DEFAULT, origin, &raw mut mask, bytes.as_mut_ptr().cast())
        };
        self.api.checked(CALL, status).map(|_| mask)
    }

    /// Have libhdf5 look another chunk up than `last`, of which it remembers a wrong mask.
    ///
    /// Chunks that were just written are in nobody's cache, so that their index is read.
    fn forget_mask_of(&self, last: &EncodedChunk, chunks: &[EncodedChunk], chunk: &[u64]) {
        let other = chunks.iter().rev().find(|other| other.chunk_origin != last.chunk_origin);
        if let Some(other) = other {
            self.size_of(&other.chunk_origin);
            return;
        }
        // Any other, whether it was written or not.  One that is in libhdf5's cache is looked up
        // only when it is read as it is stored.
        let mut bytes = Vec::new();
        if let Some(origin) = self.neighbour(&last.chunk_origin, chunk) {
            let nbytes = self.size_of(&origin).unwrap_or(0);
            // What is read is of no interest, nor is whether anything could be.
            let _ = self.read(&origin, nbytes, &mut bytes);
        }
    }

    /// Where another chunk begins.
    fn neighbour(&self, origin: &[u64], chunk: &[u64]) -> Option<Dims> {
        let grid = ChunkGrid::new(&self.extent().ok()?, chunk).ok()?;
        let position = grid.linear_index_of_origin(origin)?;
        let other = if position > 0 { position - 1 } else { position + 1 };
        if other >= grid.len() {
            return None;
        }
        let index = grid.chunk_index(other);
        Some(index.iter().zip(chunk).map(|(i, c)| i * c).collect())
    }
}
