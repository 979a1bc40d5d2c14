//! How does this libhdf5 speak of chunks?
//!
//! Versions differ in ways that no version number shows: whether a chunk's address
//! includes the user block, whether `H5Dchunk_iter` passes the chunk's first element or
//! its place in the grid.  So a small file in memory is written and looked at when
//! the library is bound.

use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::null_mut;

use crate::BindError;
use crate::api::{Api, DEFAULT, HADDR_UNDEF, haddr_t, hid_t, hsize_t};

/// What the probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkConventions {
    /// Chunk addresses count from the start of the file, user block included (2.0);
    /// otherwise the user block has to be added (1.10).
    pub address_includes_user_block: bool,
    /// `H5Dchunk_iter` exists.
    pub has_chunk_iter: bool,
    /// `H5Dchunk_iter` passes the chunk's place in the grid and a size of 32 bits, as its
    /// first versions did, rather than the chunk's first element and 64 bits.
    pub chunk_iter_is_scaled: bool,
    /// Listing the chunks of a fixed or extensible array counts over the largest extent,
    /// as the array itself does (1.10.8, 2.0), and not over the present one.
    pub arrays_count_largest_extent: bool,
}

const USER_BLOCK: hsize_t = 512;
/// Two chunks of this many bytes each.
const CHUNK: hsize_t = 64;
const PATTERN: &[u8; 16] = b"chunkwise probes";

/// Closes handles in the reverse order of opening, whatever happens.
struct Handles<'a> {
    api: &'a Api,
    open: Vec<(hid_t, unsafe extern "C" fn(hid_t) -> c_int)>,
}

impl Handles<'_> {
    fn keep(
        &mut self,
        call: &'static str,
        id: hid_t,
        close: unsafe extern "C" fn(hid_t) -> c_int,
    ) -> Result<hid_t, BindError> {
        let id = self.api.checked_id(call, id)?;
        self.open.push((id, close));
        Ok(id)
    }
}

impl Drop for Handles<'_> {
    fn drop(&mut self) {
        for (id, close) in self.open.drain(..).rev() {
            // SAFETY: each is a live handle with the function that closes its kind.
            unsafe { close(id) };
        }
    }
}

/// Write a file in memory and find out.
///
/// # Safety
/// The library's lock must be held.
pub unsafe fn probe(api: &Api) -> Result<ChunkConventions, BindError> {
    let mut handles = Handles { api, open: Vec::new() };
    // SAFETY: handles are checked, pointers live through each call.
    unsafe {
        let fapl = (api.H5Pcreate)(api.H5P_CLS_FILE_ACCESS_ID_g);
        let fapl = handles.keep("H5Pcreate", fapl, api.H5Pclose)?;
        // In memory, and never written to disk.
        api.checked("H5Pset_fapl_core", (api.H5Pset_fapl_core)(fapl, 4096, 0))?;
        // From 1.10 on: with array indexes.
        let v110: c_int = 2;
        api.checked("H5Pset_libver_bounds", (api.H5Pset_libver_bounds)(fapl, v110, v110))?;
        let fcpl = (api.H5Pcreate)(api.H5P_CLS_FILE_CREATE_ID_g);
        let fcpl = handles.keep("H5Pcreate", fcpl, api.H5Pclose)?;
        api.checked("H5Pset_userblock", (api.H5Pset_userblock)(fcpl, USER_BLOCK))?;
        let truncate: c_uint = 2;
        // Files in memory are distinguished by name alone, and another thread may be probing, or
        // another copy of this code: an address that lives through the probe is nobody else's.
        let name = CString::new(format!("chunkwise-probe-{:p}.h5", &raw const fapl));
        let name = name.unwrap_or_default();
        let file = (api.H5Fcreate)(name.as_ptr(), truncate, fcpl, fapl);
        let file = handles.keep("H5Fcreate", file, api.H5Fclose)?;
        let dims = [2 * CHUNK];
        let space = (api.H5Screate_simple)(1, dims.as_ptr(), std::ptr::null());
        let space = handles.keep("H5Screate_simple", space, api.H5Sclose)?;
        let dcpl = (api.H5Pcreate)(api.H5P_CLS_DATASET_CREATE_ID_g);
        let dcpl = handles.keep("H5Pcreate", dcpl, api.H5Pclose)?;
        api.checked("H5Pset_chunk", (api.H5Pset_chunk)(dcpl, 1, [CHUNK].as_ptr()))?;
        let byte = api.H5T_NATIVE_UCHAR_g;
        let name = c"probe".as_ptr();
        let dataset = (api.H5Dcreate2)(file, name, byte, space, DEFAULT, dcpl, DEFAULT);
        let dataset = handles.keep("H5Dcreate2", dataset, api.H5Dclose)?;
        let mut data = [0u8; 2 * CHUNK as usize];
        data[CHUNK as usize..][..PATTERN.len()].copy_from_slice(PATTERN);
        let written =
            (api.H5Dwrite)(dataset, byte, DEFAULT, DEFAULT, DEFAULT, data.as_ptr().cast());
        api.checked("H5Dwrite", written)?;
        let everywhere: c_int = 1;
        api.checked("H5Fflush", (api.H5Fflush)(file, everywhere))?;

        let last = Listed { origin: [CHUNK, 0], ..ask_by_coord(api, dataset, [CHUNK, 0])? };
        let found = find_pattern(api, file, fapl)?;
        let mut seen = last;
        let mut chunk_iter_is_scaled = false;
        if let Some(chunk_iter) = api.H5Dchunk_iter {
            let data = (&raw mut seen).cast();
            api.checked("H5Dchunk_iter", chunk_iter(dataset, DEFAULT, keep_last, data))?;
            chunk_iter_is_scaled = seen.origin[0] == 1;
            if chunk_iter_is_scaled {
                seen.size &= hsize_t::from(u32::MAX);
            }
        }
        let address_includes_user_block = match found.checked_sub(seen.address) {
            Some(0) => true,
            Some(USER_BLOCK) => false,
            _ => {
                let message = format!("a chunk at byte {found} is said to lie at {}", seen.address);
                return Err(BindError::Call { call: "H5Dget_chunk_info_by_coord", message });
            }
        };
        if seen.size != CHUNK {
            let message = format!("a chunk of {CHUNK} bytes is said to take {}", seen.size);
            return Err(BindError::Call { call: "H5Dchunk_iter", message });
        }
        Ok(ChunkConventions {
            address_includes_user_block,
            has_chunk_iter: api.H5Dchunk_iter.is_some(),
            chunk_iter_is_scaled,
            arrays_count_largest_extent: probe_array(api, file)?,
        })
    }
}

/// One chunk, as the library lists it.
#[derive(Clone, Copy)]
struct Listed {
    origin: [hsize_t; 2],
    address: haddr_t,
    size: hsize_t,
}

unsafe fn ask_by_coord(
    api: &Api,
    dataset: hid_t,
    origin: [hsize_t; 2],
) -> Result<Listed, BindError> {
    let (mut mask, mut address, mut size): (c_uint, haddr_t, hsize_t) = (0, 0, 0);
    // SAFETY: a live dataset of at most two dimensions, and valid pointers.
    unsafe {
        let status = (api.H5Dget_chunk_info_by_coord)(
            dataset,
            origin.as_ptr(),
            &raw mut mask,
            &raw mut address,
            &raw mut size,
        );
        api.checked("H5Dget_chunk_info_by_coord", status)?;
    }
    Ok(Listed { origin, address, size })
}

unsafe extern "C" fn keep_last(
    offset: *const hsize_t,
    _mask: c_uint,
    address: haddr_t,
    size: hsize_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: libhdf5 passes at least one offset (the dataset has one dimension), and
    // `data` is the probe's variable.
    unsafe { *data.cast::<Listed>() = Listed { origin: [*offset, 0], address, size } };
    0
}

/// A fixed array of 2x2 chunks that may grow to 2x4: is the one chunk written, that at
/// (1, 0), listed there?  By the present extent it would be at (2, 0), which is nowhere.
///
/// # Safety
/// As [`probe`].
unsafe fn probe_array(api: &Api, file: hid_t) -> Result<bool, BindError> {
    let mut handles = Handles { api, open: Vec::new() };
    // SAFETY: handles are checked, pointers live through each call.
    unsafe {
        let space = (api.H5Screate_simple)(2, [2, 2].as_ptr(), [2, 4].as_ptr());
        let space = handles.keep("H5Screate_simple", space, api.H5Sclose)?;
        let one = (api.H5Screate_simple)(2, [1, 1].as_ptr(), std::ptr::null());
        let one = handles.keep("H5Screate_simple", one, api.H5Sclose)?;
        let dcpl = (api.H5Pcreate)(api.H5P_CLS_DATASET_CREATE_ID_g);
        let dcpl = handles.keep("H5Pcreate", dcpl, api.H5Pclose)?;
        api.checked("H5Pset_chunk", (api.H5Pset_chunk)(dcpl, 2, [1, 1].as_ptr()))?;
        let byte = api.H5T_NATIVE_UCHAR_g;
        let name = c"array".as_ptr();
        let dataset = (api.H5Dcreate2)(file, name, byte, space, DEFAULT, dcpl, DEFAULT);
        let dataset = handles.keep("H5Dcreate2", dataset, api.H5Dclose)?;
        let null = std::ptr::null();
        let (start, count) = ([1, 0], [1, 1]);
        let set: c_int = 0;
        let selected =
            (api.H5Sselect_hyperslab)(space, set, start.as_ptr(), null, count.as_ptr(), null);
        api.checked("H5Sselect_hyperslab", selected)?;
        let written = (api.H5Dwrite)(dataset, byte, one, space, DEFAULT, [7u8].as_ptr().cast());
        api.checked("H5Dwrite", written)?;
        let everywhere: c_int = 1;
        api.checked("H5Fflush", (api.H5Fflush)(file, everywhere))?;
        // A version that finds it elsewhere gives an undefined address, or fails.
        let found = ask_by_coord(api, dataset, start);
        Ok(found.is_ok_and(|chunk| chunk.address != HADDR_UNDEF && chunk.size == 1))
    }
}

/// Where the pattern lies in the file's image, which the core driver hands out.
///
/// # Safety
/// `file` must be a flushed file of the core driver; the lock must be held.
unsafe fn find_pattern(api: &Api, file: hid_t, fapl: hid_t) -> Result<u64, BindError> {
    let mut handle: *mut c_void = null_mut();
    let mut nbytes: hsize_t = 0;
    // SAFETY: the core driver gives a pointer to its pointer to the image, of the file's
    // size; nothing changes the file meanwhile.
    let image = unsafe {
        let status = (api.H5Fget_vfd_handle)(file, fapl, &raw mut handle);
        api.checked("H5Fget_vfd_handle", status)?;
        api.checked("H5Fget_filesize", (api.H5Fget_filesize)(file, &raw mut nbytes))?;
        std::slice::from_raw_parts(*handle.cast::<*const u8>(), nbytes as usize)
    };
    let found = image.windows(PATTERN.len()).position(|window| window == PATTERN);
    found.map(|at| at as u64).ok_or(BindError::Call {
        call: "H5Fflush",
        message: "the data written is not in the file's image".to_string(),
    })
}
