//! What may a read take, and lose, that is a part of one pass over a dataset?

use std::sync::Mutex;

use chunkwise_select::Dims;

use crate::ReadError;

/// A chunk that could not be read, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostChunk {
    /// Element where it begins, slowest dimension first.
    pub chunk_origin: Dims,
    /// What is wrong with it.
    pub error: ReadError,
}

/// What a read may take that is a part of one pass over a dataset.
#[derive(Debug, Clone, Copy)]
pub struct OnePass<'a> {
    /// Threads that work on it at most.
    pub threads: usize,
    /// Stored bytes that may be fetched before they are wanted.
    pub ahead_nbytes: u64,
    /// Where chunks are listed that cannot be read or decoded; their elements get the fill
    /// value, or zeros where there is none.  None: such a chunk is an error.
    pub lost: Option<&'a Mutex<Vec<LostChunk>>>,
}
