//! What can go wrong in a timed walk?

use chunkwise_engine::{ReadError, WriteError};
use chunkwise_libhdf5::{BindError, Unsuited};
use thiserror::Error;

/// Why a walk stopped.
#[derive(Debug, Error)]
pub enum WalkError {
    /// The engine could not read.
    #[error(transparent)]
    Engine(#[from] ReadError),
    /// The engine could not write.
    #[error(transparent)]
    Writer(#[from] WriteError),
    /// libhdf5 could not do what was asked.
    #[error(transparent)]
    Library(#[from] BindError),
    /// Anything else, in words.
    #[error("{0}")]
    Words(String),
}

impl From<Unsuited> for WalkError {
    fn from(error: Unsuited) -> Self {
        Self::Words(error.to_string())
    }
}
