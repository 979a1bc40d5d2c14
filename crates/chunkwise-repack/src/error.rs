//! What can go wrong while a dataset's data is copied?

use chunkwise_codec::EncodeError;
use chunkwise_engine::{CommitError, ReadError};
use chunkwise_libhdf5::Unsuited;
use chunkwise_select::{Dims, SelectError};
use thiserror::Error;

use crate::PlanError;

/// Why data was not copied.  The caller adds the file's and the dataset's name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CopyError {
    /// Source and target do not go together, or something was requested that cannot be.
    #[error("{0}")]
    Refused(String),
    /// No plan within the memory there may be.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The source cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// libhdf5 cannot read the source.
    #[error("libhdf5 cannot read the elements from {:?} on: {message}", .origin.as_slice())]
    Library {
        /// Where the requested box begins.
        origin: Dims,
        /// What libhdf5 says.
        message: String,
    },
    /// A chunk cannot be encoded.
    #[error("the chunk at element {:?} cannot be encoded: {source}", .chunk_origin.as_slice())]
    Encode {
        /// Element where it begins.
        chunk_origin: Dims,
        /// Why.
        source: EncodeError,
    },
    /// A chunk cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// libhdf5 does not say what is needed.
    #[error("{0}")]
    Facts(String),
    /// The source was written to meanwhile.
    #[error("the file that is copied was changed meanwhile")]
    Changed,
    /// The journal cannot be written.
    #[error("the journal cannot be written: {message}")]
    Journal {
        /// What the system says.
        message: String,
    },
    /// Those who work on the same dataset do not say what is left to do.
    #[error("{0}")]
    Share(String),
    /// The caller wants it to stop.
    #[error("copying was cancelled")]
    Cancelled,
}

impl From<SelectError> for CopyError {
    fn from(error: SelectError) -> Self {
        Self::Read(error.into())
    }
}

impl From<Unsuited> for CopyError {
    fn from(error: Unsuited) -> Self {
        Self::Facts(error.to_string())
    }
}
