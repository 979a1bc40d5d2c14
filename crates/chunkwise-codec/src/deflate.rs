//! How is a zlib stream inflated?
//!
//! libdeflate, which is about twice as fast as zlib, wants to know how many bytes
//! will come out.  HDF5 nearly always implies that number; where it does not (a
//! second deflate in one pipeline, a chunk that holds more than it should), the
//! output grows, within deflate's own limit of expansion.

use libdeflater::{DecompressionError, Decompressor};

use crate::{DecodeError, Output};

/// A byte of deflate gives at most this many (zlib's documentation: 1032 to 1).
pub(crate) const MOST_EXPANSION: usize = 1032;

/// Reusable state for inflating; one for each thread.
pub(crate) struct Inflater {
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
    /// Inflate `stored`.  Bytes after the stream's end are ignored, as zlib does in HDF5.
    pub(crate) fn inflate(
        &mut self,
        stored: &[u8],
        output: &mut Output<'_>,
    ) -> Result<(), DecodeError> {
        let ceiling = stored.len().saturating_mul(MOST_EXPANSION).saturating_add(64);
        let damaged = output.damaged();
        output.growing(ceiling, |out| match self.state.zlib_decompress(stored, out) {
            Ok(written) => Ok(Some(written)),
            Err(DecompressionError::InsufficientSpace) => Ok(None),
            Err(DecompressionError::BadData) => Err(damaged.clone()),
        })
    }

    /// Inflate `stored` to exactly `out`; whether that went well.
    pub(crate) fn inflate_exactly(&mut self, stored: &[u8], out: &mut [u8]) -> bool {
        self.state.zlib_decompress(stored, out) == Ok(out.len())
    }
}
