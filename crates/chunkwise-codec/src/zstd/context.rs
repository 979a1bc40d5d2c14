//! What decompresses and compresses Zstandard frames, and is kept from one to the next?

use zstd_safe::{CCtx, DCtx};

use crate::{DecodeError, EncodeError, Output};

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
        // HDF5's filter makes as much room as the first frame says, and no more; where it says
        // nothing, most versions refuse it.
        let len = match zstd_safe::get_frame_content_size(stored) {
            Ok(Some(len)) => len,
            Ok(None) => return Err(output.unsupported("a frame without its content's length")),
            Err(_) => return Err(output.damaged()),
        };
        let len = usize::try_from(len).map_err(|_| output.damaged())?;
        if self.decompress_exactly(stored, output.room(len)?)? {
            Ok(())
        } else {
            Err(output.damaged())
        }
    }

    /// Decompress `stored` to exactly `out`; whether that went well.
    pub(crate) fn decompress_exactly(
        &mut self,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<bool, DecodeError> {
        let room = out.len();
        let state = match &mut self.state {
            Some(state) => state,
            None => self.state.insert(DCtx::try_create().ok_or(DecodeError::Memory { nbytes: 0 })?),
        };
        Ok(state.decompress(out, stored) == Ok(room))
    }
}

/// Reusable state for compressing, made when it is first needed; one for each thread.
#[derive(Default)]
pub(crate) struct Compressor {
    state: Option<CCtx<'static>>,
}

impl Compressor {
    /// Compress `source` to one frame in `out`, whatever was in it; the frame tells its
    /// content's length, without which HDF5's filter cannot decompress it.
    pub(crate) fn compress(
        &mut self,
        level: i32,
        source: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, EncodeError> {
        let state = match &mut self.state {
            Some(state) => state,
            None => self.state.insert(CCtx::try_create().ok_or(EncodeError::Memory { nbytes: 0 })?),
        };
        let nbytes = zstd_safe::compress_bound(source.len());
        out.clear();
        out.try_reserve_exact(nbytes).map_err(|_| EncodeError::Memory { nbytes })?;
        Ok(state.compress(out, source, level).is_ok())
    }
}
