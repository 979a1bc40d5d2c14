//! What do decoders and encoders keep from chunk to chunk?

use crate::deflater::Deflater;
use crate::inflater::Inflater;
use crate::interleaved::Interleaved;
use crate::streams::{Buffers, Streams};
use crate::zstd::context::{Compressor, Decompressor};

/// State and buffers of all decoders; one for each thread.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) inflater: Inflater,
    pub(crate) interleaved: Interleaved,
    pub(crate) zstd: Decompressor,
    /// A block that is still shuffled.
    pub(crate) packed: Vec<u8>,
    /// A block whose bytes are still apart.
    pub(crate) planes: Vec<u8>,
    /// A block that is a box of an array.
    pub(crate) block: Vec<u8>,
}

/// State and buffers of all encoders; one for each thread.
#[derive(Default)]
pub(crate) struct EncoderState {
    pub(crate) deflater: Deflater,
    pub(crate) zstd: Compressor,
    pub(crate) buffers: Buffers,
    pub(crate) streams: Streams,
}

impl std::fmt::Debug for EncoderState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EncoderState")
    }
}
