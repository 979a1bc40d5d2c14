//! Who takes encoded chunks, and how do they become part of a file?

use chunkwise_select::Dims;
use thiserror::Error;

/// A chunk as it is to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EncodedChunk {
    /// Element where the chunk begins, slowest dimension first.
    pub chunk_origin: Dims,
    /// Bit `i` says that filter `i` of the pipeline was not applied.
    pub filter_mask: u32,
    /// The stored bytes.
    pub bytes: Vec<u8>,
}

/// Why a chunk did not become part of the file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the chunk at element {:?} ({stored_nbytes} bytes) cannot be written: {message}", .chunk_origin.as_slice())]
pub struct CommitError {
    /// Element where the chunk begins.
    pub chunk_origin: Dims,
    /// Bytes that were to be stored.
    pub stored_nbytes: u64,
    /// What the library or the system said.
    pub message: String,
}

/// Makes encoded chunks part of a file.
///
/// Writing knows nothing else of how chunks get there: `H5Dwrite_chunk` now; where other
/// processes write the bytes, something that only accounts for their space.
pub trait Committer {
    /// Take these chunks, in this order; those before the one that an error names are taken.
    ///
    /// Called by one thread, the one that called for the write.
    ///
    /// # Errors
    /// When a chunk cannot be written.
    fn commit(&mut self, chunks: &[EncodedChunk]) -> Result<(), CommitError>;
}

/// A [`Committer`] that also gives back what a chunk holds in the file already.
pub trait ChunkStore: Committer + Send {
    /// Which of the chunks that begin at these origins are in the file.
    ///
    /// Called by the thread that called for the write.
    fn are_stored(&mut self, chunk_origins: &[Dims]) -> Vec<bool>;

    /// Read the stored bytes of the chunk that begins at `chunk_origin` to `bytes`, whatever
    /// was in it; gives its filter mask, or None where the chunk was never written.
    ///
    /// Called by the thread that called for the write.
    ///
    /// # Errors
    /// What the library or the system said.
    fn stored(&mut self, chunk_origin: &[u64], bytes: &mut Vec<u8>) -> Result<Option<u32>, String>;
}
