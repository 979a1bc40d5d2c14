//! Where do a dataset's chunks lie: as the file itself says, or as libhdf5 lists them?

use std::ffi::c_uint;

use chunkwise_engine::{ChunkIndex, Storage};

use crate::api::{Api, ObjectInfo, hid_t};
use crate::chunks::list_chunks;
use crate::error::because;
use crate::file::file_of;
use crate::handle::Handle;
use crate::stored::{Stored, Wanted, read_index};
use crate::{ChunkConventions, Unsuited};

/// The chunk index: read from the file, or listed by libhdf5 where it is of another kind.
///
/// # Safety
/// As [`read_stored`].
pub(crate) unsafe fn index_of(
    api: &Api,
    conventions: ChunkConventions,
    dataset: hid_t,
    storage: &dyn Storage,
    wanted: Wanted<'_>,
) -> Result<ChunkIndex, Unsuited> {
    // SAFETY: the caller's contract.
    unsafe {
        let unsound = match read_stored(api, dataset, storage, wanted)? {
            Stored::Found(index) => return Ok(index),
            Stored::OtherKind => None,
            Stored::Unsound(reason) => Some(reason),
        };
        let Wanted { grid, max_shape, user_block, .. } = wanted;
        // libhdf5 may refuse it with a reason of its own, the better one.
        let listed = list_chunks(api, conventions, dataset, grid, max_shape, user_block)?;
        unsound.map_or(Ok(listed), because)
    }
}

/// The chunk index as the file has it.
///
/// # Safety
/// A live chunked dataset of this library, in a file that nobody writes to; the lock must be held.
unsafe fn read_stored(
    api: &Api,
    dataset: hid_t,
    storage: &dyn Storage,
    wanted: Wanted<'_>,
) -> Result<Stored, Unsuited> {
    let mut info = ObjectInfo::default();
    let (mut address_len, mut size_len): (usize, usize) = (0, 0);
    let mut btree_k: c_uint = 0;
    // SAFETY: the caller's contract; valid pointers, and handles are checked.
    unsafe {
        let status = (api.H5Gget_objinfo)(dataset, c".".as_ptr(), false, &raw mut info);
        api.checked("H5Gget_objinfo", status)?;
        let (file, _) = file_of(api, dataset)?;
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
    Ok(read_index(storage, &Wanted { header: info.address(), btree_k, ..wanted }))
}
