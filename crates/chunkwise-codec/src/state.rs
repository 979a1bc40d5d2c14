//! What do decoders keep from chunk to chunk?

use crate::deflate::Inflater;
use crate::interleaved::Interleaved;
use crate::zstd::Decompressor;

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
