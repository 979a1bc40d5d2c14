//! What can go wrong while writing, and where?

use chunkwise_codec::{DecodeError, EncodeError};
use chunkwise_select::{Dims, SelectError};
use thiserror::Error;

use crate::Lacking;
use crate::write::CommitError;

/// Why a write failed.  The caller adds the file's and the dataset's name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The selection does not fit the dataset.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The data has another size than the selection.
    #[error("the selection takes {selected} bytes, {given} are given")]
    Source {
        /// Bytes selected.
        selected: u64,
        /// Bytes given.
        given: u64,
    },
    /// A chunk that a filter cannot take.
    #[error("the chunk at element {:?} cannot be encoded: {source}", .chunk_origin.as_slice())]
    Encode {
        /// Element where the chunk begins.
        chunk_origin: Dims,
        /// Why.
        source: EncodeError,
    },
    /// A chunk of which a part is overwritten, and whose other elements cannot be read.
    #[error(
        "the chunk at element {:?} is written in part, and what it holds cannot be read: {message}",
        .chunk_origin.as_slice()
    )]
    Stored {
        /// Element where the chunk begins.
        chunk_origin: Dims,
        /// What the library or the system said.
        message: String,
    },
    /// The same, because its bytes do not decode.
    #[error(
        "the chunk at element {:?} is written in part, and what it holds cannot be decoded: {source}",
        .chunk_origin.as_slice()
    )]
    Decode {
        /// Element where the chunk begins.
        chunk_origin: Dims,
        /// What is wrong with its bytes.
        source: DecodeError,
    },
    /// The same, because it has fewer elements than the dataset.
    #[error(
        "the chunk at element {:?} is written in part, and it is too short: {lacking}",
        .chunk_origin.as_slice()
    )]
    Short {
        /// Element where the chunk begins.
        chunk_origin: Dims,
        /// What it lacks.
        lacking: Box<Lacking>,
    },
    /// A chunk that does not become part of the file.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The writer was cancelled.
    #[error("the write was cancelled")]
    Cancelled,
    /// More memory than the machine gives, or than a program can address.
    #[error("there is no memory for a chunk of {0} bytes")]
    Memory(u64),
    /// A child process has what its parent wrote, and must not write it.
    #[error("it is open for writing in the process that this one was forked from")]
    Forked,
}
