//! How do encoded chunks become part of a file that libhdf5 has open?

use std::sync::Arc;

use chunkwise_codec::{Encoder, Encoding, Step};
use chunkwise_engine::{CommitError, Committer, EncodedChunk};
use smallvec::SmallVec;

use crate::api::{Api, DEFAULT, hid_t, hsize_t};
use crate::dataset::{Handle, chunk_options, filters_of, shape_of};
use crate::{Library, Unsuited};

/// Hands chunks to `H5Dwrite_chunk`.
#[derive(Debug)]
pub struct ChunkCommitter {
    library: Arc<Library>,
    dataset: hid_t,
}

impl ChunkCommitter {
    /// For the chunked dataset `dataset`, which stays the caller's.
    ///
    /// # Safety
    /// A live handle of this library, for as long as this exists.
    pub unsafe fn new(library: Arc<Library>, dataset: hid_t) -> Self {
        Self { library, dataset }
    }
}

impl Committer for ChunkCommitter {
    fn commit(&mut self, chunks: &[EncodedChunk]) -> Result<(), CommitError> {
        // One hold of the lock for all: taking h5py's costs more than a small chunk does.
        self.library.locked(|api| {
            for chunk in chunks {
                let origin: SmallVec<[hsize_t; 8]> = chunk.chunk_origin.iter().copied().collect();
                // SAFETY: a live dataset, an origin of its rank, and all of the bytes.
                let status = unsafe {
                    (api.H5Dwrite_chunk)(
                        self.dataset,
                        DEFAULT,
                        chunk.filter_mask,
                        origin.as_ptr(),
                        chunk.bytes.len(),
                        chunk.bytes.as_ptr().cast(),
                    )
                };
                api.checked("H5Dwrite_chunk", status).map_err(|error| CommitError {
                    chunk_origin: chunk.chunk_origin.clone(),
                    stored_nbytes: chunk.bytes.len() as u64,
                    message: error.to_string(),
                })?;
            }
            Ok(())
        })
    }
}

/// The filters of the chunked dataset `dataset` as they are applied here, or the reason why
/// libhdf5 has to apply them.
///
/// # Errors
/// Also when a call fails.
///
/// # Safety
/// A live handle of this library.
pub unsafe fn encoding_of(library: &Library, dataset: hid_t) -> Result<Encoding, Unsuited> {
    const OPTIONAL: u32 = 1;
    library.locked(|api: &Api| {
        // SAFETY: the lock is held, the rest is the caller's contract.
        unsafe {
            let (shape, _) = shape_of(api, dataset)?;
            let dcpl = (api.H5Dget_create_plist)(dataset);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            let options = chunk_options(api, dcpl.id, shape.len())?;
            let mut steps = Vec::new();
            for filter in filters_of(api, dcpl.id, options.filters)? {
                let Some(encoder) = Encoder::from_hdf5(filter.id, &filter.cd_values) else {
                    let reason = format!("{} is not encoded natively", filter.label());
                    return Err(Unsuited::Reason(reason));
                };
                steps.push(Step { encoder, optional: filter.flags & OPTIONAL != 0 });
            }
            Ok(Encoding::new(steps))
        }
    })
}
