//! How is a Zstandard frame decompressed?

use zstd_safe::DCtx;

use crate::{DecodeError, Output};

/// A block of at most 128 KiB takes four bytes at least.
pub(crate) const MOST_EXPANSION: usize = 1 << 16;

/// `ZSTD_error_dstSize_tooSmall`, as functions return it.
const TOO_SMALL: usize = 70usize.wrapping_neg();

/// Reusable state for decompressing, made when it is first needed; one for each thread.
#[derive(Default)]
pub(crate) struct Decompressor {
    state: Option<DCtx<'static>>,
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decompressor")
    }
}

impl Decompressor {
    /// Decompress all frames of `stored`.
    pub(crate) fn decompress(
        &mut self,
        stored: &[u8],
        output: &mut Output<'_>,
    ) -> Result<(), DecodeError> {
        let ceiling = stored.len().saturating_mul(MOST_EXPANSION);
        let damaged = output.damaged();
        output.growing(ceiling, |out| match self.decompress_into(stored, out)? {
            Ok(written) => Ok(Some(written)),
            Err(TOO_SMALL) => Ok(None),
            Err(_) => Err(damaged.clone()),
        })
    }

    /// Decompress `stored` to exactly `out`; whether that went well.
    pub(crate) fn decompress_exactly(
        &mut self,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<bool, DecodeError> {
        let room = out.len();
        Ok(self.decompress_into(stored, out)? == Ok(room))
    }

    fn decompress_into(
        &mut self,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<Result<usize, usize>, DecodeError> {
        let state = match &mut self.state {
            Some(state) => state,
            None => self.state.insert(DCtx::try_create().ok_or(DecodeError::Memory { nbytes: 0 })?),
        };
        Ok(state.decompress(out, stored))
    }
}
