//! How are Zstandard frames decompressed, and made?

use zstd_safe::{CCtx, DCtx};

use crate::{DecodeError, EncodeError, Output};

/// A block of at most 128 KiB takes four bytes at least.
pub(crate) const MOST_EXPANSION: usize = 1 << 16;

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

/// The level that a dataset states, as HDF5's filter takes it: none is zstd's own default, and
/// what is beyond the highest, the highest.
pub(crate) fn level(cd_values: &[u32]) -> i32 {
    let stated = cd_values.first().map_or(zstd_safe::CLEVEL_DEFAULT, |level| level.cast_signed());
    stated.clamp(zstd_safe::min_c_level(), zstd_safe::max_c_level())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, Pipeline, Scratch};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_decompress_and_tell_their_length(
            raw in prop::collection::vec(0u8..4, 0..3000),
            stated in prop_oneof![-100i32..30, any::<i32>()],
        ) {
            let (mut compressor, mut stored) = (Compressor::default(), vec![1; 5]);
            let level = level(&[stated.cast_unsigned()]).min(9);
            prop_assert!(compressor.compress(level, &raw, &mut stored).unwrap());
            let told = zstd_safe::get_frame_content_size(&stored);
            prop_assert!(told.is_ok_and(|told| told == Some(raw.len() as u64)));
            let mut out = vec![7; raw.len()];
            let pipeline = Pipeline::new(vec![Filter::Zstd]);
            pipeline.decode(&stored, 0, &mut Scratch::default(), &mut out).unwrap();
            prop_assert_eq!(out, raw);
        }
    }

    /// Whether its filter decompresses that depends on the filter's version.
    #[test]
    fn frames_that_do_not_tell_their_length_are_left_to_the_filter() {
        let (mut compressor, mut stored) = (Compressor::default(), Vec::new());
        compressor.compress(3, &[5; 100], &mut stored).unwrap();
        // Neither a single segment nor a length: a window of 1 KiB instead.
        assert_eq!(stored[4] & 0xe0, 0x20);
        (stored[4], stored[5]) = (stored[4] & 0x1f, 0);
        let mut out = [0; 100];
        let pipeline = Pipeline::new(vec![Filter::Zstd]);
        let decoded = pipeline.decode(&stored, 0, &mut Scratch::default(), &mut out);
        assert!(matches!(decoded, Err(crate::DecodeError::Unsupported { .. })), "{decoded:?}");
    }

    #[test]
    fn levels_are_those_that_there_are() {
        assert_eq!((level(&[]), level(&[19]), level(&[4_294_967_291])), (3, 19, -5));
        assert_eq!(level(&[1000]), zstd_safe::max_c_level());
    }
}
