//! How are Zstandard frames decompressed, and made ([`context`])?

pub(crate) mod context;

use crate::Output;
use crate::filter::{Decode, Decoded, Encode, Encoded, Options, expanded};
use crate::state::{EncoderState, State};

/// A block of at most 128 KiB takes four bytes at least.
pub(crate) const MOST_EXPANSION: usize = 1 << 16;

/// The filter's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zstd {
    /// zstd's level.
    pub(crate) level: i32,
}

impl Options for Zstd {
    /// From the level, as HDF5's filter takes it: none is zstd's own default, and what is beyond the
    /// highest, the highest.
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        let stated =
            cd_values.first().map_or(zstd_safe::CLEVEL_DEFAULT, |level| level.cast_signed());
        let level = stated.clamp(zstd_safe::min_c_level(), zstd_safe::max_c_level());
        Some(Self { level })
    }
}

impl Decode for Zstd {
    fn most_decoded(&self, stored_len: usize) -> usize {
        expanded(stored_len, MOST_EXPANSION)
    }

    fn decode(&self, stored: &[u8], state: &mut State, output: &mut Output<'_>) -> Decoded {
        state.zstd.decompress(stored, output)
    }
}

impl Encode for Zstd {
    fn encode(&self, raw: &[u8], state: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        state.zstd.compress(self.level, raw, out)
    }
}

#[cfg(test)]
mod tests {
    use super::context::Compressor;
    use super::*;
    use crate::{Filter, Pipeline, Scratch};
    use proptest::prelude::*;

    fn level_of(cd_values: &[u32]) -> i32 {
        Zstd::from_cd_values(cd_values).unwrap().level
    }

    proptest! {
        #[test]
        fn frames_decompress_and_tell_their_length(
            raw in prop::collection::vec(0u8..4, 0..3000),
            stated in prop_oneof![-100i32..30, any::<i32>()],
        ) {
            let (mut compressor, mut stored) = (Compressor::default(), vec![1; 5]);
            let level = level_of(&[stated.cast_unsigned()]).min(9);
            prop_assert!(compressor.compress(level, &raw, &mut stored).unwrap());
            let told = zstd_safe::get_frame_content_size(&stored);
            prop_assert!(told.is_ok_and(|told| told == Some(raw.len() as u64)));
            let mut out = vec![7; raw.len()];
            let pipeline = Pipeline::new(vec![Filter::Zstd(Zstd { level: 3 })]);
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
        let pipeline = Pipeline::new(vec![Filter::Zstd(Zstd { level: 3 })]);
        let decoded = pipeline.decode(&stored, 0, &mut Scratch::default(), &mut out);
        assert!(matches!(decoded, Err(crate::DecodeError::Unsupported { .. })), "{decoded:?}");
    }

    #[test]
    fn levels_are_those_that_there_are() {
        let levels = [&[][..], &[19], &[4_294_967_291]].map(level_of);
        assert_eq!(levels, [3, 19, -5]);
        assert_eq!(level_of(&[1000]), zstd_safe::max_c_level());
    }
}
