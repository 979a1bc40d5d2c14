//! Where do a dataset's chunks lie: as the file itself says, or as libhdf5 lists them?

use std::ffi::c_uint;
use std::sync::Arc;

use chunkwise_engine::{ChunkIndex, Storage};

use crate::api::{Api, ObjectInfo, hid_t};
use crate::chunks::list_chunks;
use crate::error::because;
use crate::file::intent_of;
use crate::handle::Handle;
use crate::stored::{Stored, StoredIndex, Wanted};
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
/// A live chunked dataset of this library, in a file that nobody writes to but by SWMR, which
/// `wanted` says; the lock must be held.
pub(crate) unsafe fn find_index(
    api: &Api,
    conventions: ChunkConventions,
    dataset: hid_t,
    storage: Arc<dyn Storage>,
    wanted: Wanted,
) -> Result<Found, Unsuited> {
    let listed = |wanted: &Wanted| {
        let Wanted { grid, max_shape, user_block, .. } = wanted;
        // SAFETY: the caller's contract.
        unsafe { list_chunks(api, conventions, dataset, grid, max_shape, *user_block) }
    };
    let asked = wanted.clone();
    // SAFETY: the caller's contract.
    match unsafe { stored_index(api, dataset, storage, wanted)? } {
        Stored::Found(index) => Ok(Found::Stored(index)),
        Stored::OtherKind => listed(&asked).map(Found::Listed),
        // libhdf5 may refuse it with a reason of its own, the better one.
        Stored::Unsound(reason) => listed(&asked).and_then(|_| because(reason)),
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
    wanted: Wanted,
) -> Result<ChunkIndex, Unsuited> {
    let asked = wanted.clone();
    // SAFETY: the caller's contract.
    let stored = match unsafe { find_index(api, conventions, dataset, storage, wanted)? } {
        Found::Stored(stored) => stored,
        Found::Listed(index) => return Ok(index),
    };
    stored.list().or_else(|reason| {
        let Wanted { grid, max_shape, user_block, .. } = &asked;
        // SAFETY: as above.  It may refuse it with a reason of its own.
        unsafe { list_chunks(api, conventions, dataset, grid, max_shape, *user_block)? };
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
) -> Result<Stored, Unsuited> {
    let mut info = ObjectInfo::default();
    let (mut address_len, mut size_len): (usize, usize) = (0, 0);
    let mut btree_k: c_uint = 0;
    // SAFETY: the caller's contract; valid pointers, and handles are checked.
    unsafe {
        let status = (api.H5Gget_objinfo)(dataset, c".".as_ptr(), false, &raw mut info);
        api.checked("H5Gget_objinfo", status)?;
        let (file, _) = intent_of(api, dataset)?;
        let fcpl = (api.H5Fget_create_plist)(file.id);
        let fcpl = Handle::new(api, "H5Fget_create_plist", fcpl, api.H5Pclose)?;
        let status = (api.H5Pget_sizes)(fcpl.id, &raw mut address_len, &raw mut size_len);
        api.checked("H5Pget_sizes", status)?;
        let status = (api.H5Pget_istore_k)(fcpl.id, &raw mut btree_k);
        api.checked("H5Pget_istore_k", status)?;
    }
    if (address_len, size_len) != (8, 8) {
        return Ok(Stored::OtherKind);
    }
    let wanted = Wanted { header: info.address(), btree_k, ..wanted };
    let mut tries = if wanted.grows { OPENED_AGAIN } else { 0 };
    loop {
        match StoredIndex::open(Arc::clone(&storage), wanted.clone()) {
            // What is being written has a wrong checksum until it is written.
            Stored::Unsound(_) if tries > 0 => tries -= 1,
            found => return Ok(found),
        }
    }
}

/// So often is a header looked at again that a program may be writing; libhdf5's lock is held.
const OPENED_AGAIN: u32 = 20;
