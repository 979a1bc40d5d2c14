//! Where do a dataset's chunks lie: as the file itself says, or as libhdf5 lists them?

use std::sync::Arc;

use chunkwise_engine::{ChunkIndex, Storage};
use chunkwise_metadata::{StoredIndex, StoredKind, Wanted};

use crate::api::{Api, ObjectInfo, hid_t};
use crate::chunks::list_chunks;
use crate::error::because;
use crate::{ChunkConventions, Unsuited};

/// A dataset's chunk index.
pub(crate) enum Found {
    /// In the file, to be listed or looked up in.
    Stored(Box<StoredIndex>),
    /// All of it, as libhdf5 lists it.
    Listed(ChunkIndex),
}

/// Find the chunk index in the file; where it is of another kind, list it by libhdf5.
///
/// # Safety
/// A live chunked dataset of this library, of this largest extent, in a file that nobody writes to
/// but by SWMR, which `wanted` says; the lock must be held.
pub(crate) unsafe fn find_index(
    api: &Api,
    conventions: ChunkConventions,
    dataset: hid_t,
    storage: Arc<dyn Storage>,
    (wanted, max_shape): (Wanted, &[u64]),
) -> Result<Found, Unsuited> {
    let (grid, user_block) = (wanted.grid.clone(), wanted.user_block);
    // SAFETY: the caller's contract.
    let listed = || unsafe { list_chunks(api, conventions, dataset, &grid, max_shape, user_block) };
    // SAFETY: the caller's contract.
    match unsafe { stored_index(api, dataset, storage, wanted)? } {
        StoredKind::Found(index) => Ok(Found::Stored(index)),
        StoredKind::OtherKind => listed().map(Found::Listed),
        // libhdf5 may refuse it with a reason of its own, the better one.
        StoredKind::Unsound(reason) => listed().and_then(|_| because(reason)),
    }
}

/// All of the chunk index.
///
/// # Safety
/// As [`find_index`].
pub(crate) unsafe fn index_of(
    api: &Api,
    conventions: ChunkConventions,
    dataset: hid_t,
    storage: Arc<dyn Storage>,
    (wanted, max_shape): (Wanted, &[u64]),
) -> Result<ChunkIndex, Unsuited> {
    let (grid, user_block) = (wanted.grid.clone(), wanted.user_block);
    let wanted = (wanted, max_shape);
    // SAFETY: the caller's contract.
    let stored = match unsafe { find_index(api, conventions, dataset, storage, wanted)? } {
        Found::Stored(stored) => stored,
        Found::Listed(index) => return Ok(index),
    };
    stored.list().or_else(|reason| {
        // SAFETY: as above.  It may refuse it with a reason of its own.
        unsafe { list_chunks(api, conventions, dataset, &grid, max_shape, user_block)? };
        because(reason)
    })
}

/// The chunk index as the file has it.
///
/// # Safety
/// As [`find_index`].
pub(crate) unsafe fn stored_index(
    api: &Api,
    dataset: hid_t,
    storage: Arc<dyn Storage>,
    wanted: Wanted,
) -> Result<StoredKind, Unsuited> {
    let mut info = ObjectInfo::default();
    // SAFETY: the caller's contract; a valid pointer.
    let status = unsafe { (api.H5Gget_objinfo)(dataset, c".".as_ptr(), false, &raw mut info) };
    api.checked("H5Gget_objinfo", status)?;
    let wanted = Wanted { header: info.address(), ..wanted };
    let mut tries = if wanted.grows { OPENED_AGAIN } else { 0 };
    loop {
        match StoredIndex::open(Arc::clone(&storage), wanted.clone()) {
            // What is being written has a wrong checksum until it is written.
            StoredKind::Unsound(_) if tries > 0 => tries -= 1,
            found => return Ok(found),
        }
    }
}

/// So often is a header looked at again that a program may be writing; libhdf5's lock is held.
const OPENED_AGAIN: u32 = 20;
