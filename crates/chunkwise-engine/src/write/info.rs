//! What must a writer know of its dataset, and what does it report of its work?

use chunkwise_codec::{Encoding, Pipeline};
use chunkwise_select::Dims;

/// The facts from which a [`DatasetWriter`](crate::DatasetWriter) is made.
#[derive(Debug, Clone)]
pub struct WriteInfo {
    /// Elements in each dimension, slowest first; at least one dimension.
    pub shape: Dims,
    /// The most there may be; all bits set where that is unlimited.
    pub max_shape: Dims,
    /// Shape of a chunk.
    pub chunk: Dims,
    /// Bytes of an element; at least one.
    pub element_size: usize,
    /// The bytes of an element that was never written; None where nothing says.
    pub fill: Option<Vec<u8>>,
    /// The filters as they are applied...
    pub encoding: Encoding,
    /// ... and undone.
    pub pipeline: Pipeline,
    /// Chunks that reach beyond the shape are stored without filters
    /// (`H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`).
    pub unfiltered_partial_chunks: bool,
}

/// What a writer has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteStats {
    /// Chunks that were handed over, each time counted.
    pub committed: u64,
    /// Those of them whose stored bytes had to be read first.
    pub read_back: u64,
}
