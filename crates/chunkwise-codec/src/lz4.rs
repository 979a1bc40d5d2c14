//! How are LZ4 blocks decompressed, alone and in the container of HDF5's filter?
//!
//! The filter (`H5Zlz4.c`) writes the chunk's length (8 bytes, big-endian), the length of
//! a block (4), and for each block its stored length (4) and bytes; a block that did not
//! shrink is stored as it is.

use std::ffi::c_int;

use crate::bytes::Reader;
use crate::{DecodeError, Output};

/// A byte of LZ4 gives at most this many.
pub(crate) const MOST_EXPANSION: usize = 255;

/// Decompress one block to exactly `out`; whether that went well.
pub(crate) fn decompress_exactly(stored: &[u8], out: &mut [u8]) -> bool {
    let (Ok(stored_len), Ok(len)) = (c_int::try_from(stored.len()), c_int::try_from(out.len()))
    else {
        return false;
    };
    // SAFETY: the lengths are those of live slices; the function reads and writes nothing
    // beyond them, whatever the bytes are.
    let written = unsafe {
        lz4_sys::LZ4_decompress_safe(
            stored.as_ptr().cast(),
            out.as_mut_ptr().cast(),
            stored_len,
            len,
        )
    };
    written == len
}

/// Decode what HDF5's LZ4 filter stored.
pub(crate) fn decode(stored: &[u8], output: &mut Output<'_>) -> Result<(), DecodeError> {
    let damaged = output.damaged();
    blocks(Reader::new(stored), output)?.ok_or(damaged)
}

/// None where the bytes are not what the filter writes.
fn blocks(mut stored: Reader<'_>, output: &mut Output<'_>) -> Result<Option<()>, DecodeError> {
    let Some((len, block_len)) = stored.u64_be().zip(stored.u32_be()) else { return Ok(None) };
    let (len, block_len) = (usize::try_from(len).unwrap_or(usize::MAX), block_len as usize);
    let out = output.room(len)?;
    if block_len == 0 && len > 0 {
        return Ok(None);
    }
    for block in out.chunks_mut(block_len.max(1)) {
        let Some(bytes) = stored.u32_be().and_then(|n| stored.take(n as usize)) else {
            return Ok(None);
        };
        if bytes.len() == block.len() {
            block.copy_from_slice(bytes);
        } else if !decompress_exactly(bytes, block) {
            return Ok(None);
        }
    }
    Ok(Some(()))
}
