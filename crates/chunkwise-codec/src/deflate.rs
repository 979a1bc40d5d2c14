//! What does HDF5's deflate filter make of a chunk: zlib streams of which level?

use crate::filter::{Decode, Decoded, Encode, Encoded, Options, expanded};
use crate::inflater::MOST_EXPANSION;
use crate::state::{EncoderState, State};
use crate::{DeflateEngine, Output};

/// The filter, which decodes without options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deflate;

impl Options for Deflate {
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        // libhdf5 refuses to inflate with anything but one level that there is.
        matches!(cd_values, [0..=9]).then_some(Self)
    }
}

impl Decode for Deflate {
    fn most_decoded(&self, stored_len: usize) -> usize {
        expanded(stored_len, MOST_EXPANSION)
    }

    fn decode(&self, stored: &[u8], state: &mut State, output: &mut Output<'_>) -> Decoded {
        state.inflater.inflate(stored, output)
    }
}

/// The filter's options when writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeflateEncoder {
    /// zlib's level as the file states it, 0 to 9.
    pub level: u32,
    /// What makes the streams: zlib at that level until [`Encoding::tuned`](crate::Encoding::tuned)
    /// has chosen.
    pub engine: DeflateEngine,
}

impl Options for DeflateEncoder {
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        let &[level @ 0..=9] = cd_values else { return None };
        Some(Self { level, engine: DeflateEngine::Zlib(level) })
    }
}

impl Encode for DeflateEncoder {
    fn encode(&self, raw: &[u8], state: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        state.deflater.deflate(self.engine, raw, out)
    }
}
