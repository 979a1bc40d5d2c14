//! How is a zlib stream inflated?
//!
//! libdeflate, which is about twice as fast as zlib, wants to know how many bytes
//! will come out.  HDF5 nearly always implies that number; where it does not (a
//! second deflate in one pipeline, a chunk that holds more than it should), the
//! output grows, within deflate's own limit of expansion.

use libdeflater::{DecompressionError, Decompressor};

use crate::{DecodeError, resize};

/// A byte of deflate gives at most this many (zlib's documentation: 1032 to 1).
pub(crate) const MOST_EXPANSION: usize = 1032;

/// Reusable state for inflating; one for each thread.
pub struct Inflater {
    state: Decompressor,
}

impl Default for Inflater {
    fn default() -> Self {
        Self { state: Decompressor::new() }
    }
}

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inflater")
    }
}

impl Inflater {
    /// Inflate `stored` into `out`; gives the number of bytes written, or None when
    /// there are more than `out` holds.  Bytes after the stream's end are ignored, as
    /// zlib does in HDF5.
    pub fn inflate_into(
        &mut self,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<Option<usize>, DecodeError> {
        match self.state.zlib_decompress(stored, out) {
            Ok(written) => Ok(Some(written)),
            Err(DecompressionError::InsufficientSpace) => Ok(None),
            Err(DecompressionError::BadData) => Err(DecodeError::Deflate),
        }
    }

    /// Inflate `stored` into `out`, which is resized to what comes out.
    ///
    /// # Errors
    /// When the stream is damaged, or holds more than `most` bytes.
    pub fn inflate_growing(
        &mut self,
        stored: &[u8],
        out: &mut Vec<u8>,
        expected: usize,
        most: usize,
    ) -> Result<(), DecodeError> {
        let most = most.min(stored.len().saturating_mul(MOST_EXPANSION).saturating_add(64));
        let mut room = expected.clamp(64, most.max(64));
        loop {
            resize(out, room).map_err(|_| DecodeError::Memory { nbytes: room })?;
            if let Some(written) = self.inflate_into(stored, out)? {
                out.truncate(written);
                return Ok(());
            }
            if room >= most {
                return Err(DecodeError::TooLong { most });
            }
            room = room.saturating_mul(2).min(most);
        }
    }
}
