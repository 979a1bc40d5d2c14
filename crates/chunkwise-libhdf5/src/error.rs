//! What can go wrong when binding or calling libhdf5?

use chunkwise_metadata::readable::Left;
use thiserror::Error;

use crate::version::LibraryVersion;

/// Why libhdf5 could not be bound, or a call of it failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BindError {
    /// No library at that path, or none of that name loaded.
    #[error("cannot open {path} as a library: {message}")]
    Open {
        /// The path.
        path: String,
        /// What the loader said.
        message: String,
    },
    /// A library that lacks a function.
    #[error("{path} has no {symbol}: it is not libhdf5 1.10.5 or later")]
    Symbol {
        /// The path.
        path: String,
        /// The function's name.
        symbol: &'static str,
    },
    /// No libhdf5 in this process.
    #[error("no libhdf5 is loaded in this process")]
    None,
    /// More than one.
    #[error("{} copies of libhdf5 are loaded in this process ({}); say which one by a handle or path", .0.len(), .0.join(", "))]
    Several(Vec<String>),
    /// A libhdf5, but not the one that made the handle.
    #[error("{path} is libhdf5 {version}, but another one")]
    Another {
        /// The path.
        path: String,
        /// The library's version.
        version: LibraryVersion,
    },
    /// No library in this process made the handle.
    #[error("cannot find the libhdf5 that h5py calls: install another build of h5py, such as PyPI's or conda-forge's; tried: {}; {others} more libraries of this process, which lead to no H5open", .tried.join("; "))]
    NoMaker {
        /// What was tried, with the reason why it does not fit.
        tried: Vec<String>,
        /// How many other libraries are loaded.
        others: usize,
    },
    /// A version before what this crate needs.
    #[error("{path}: libhdf5 {version} is older than 1.10.5, the first that lists chunks")]
    TooOld {
        /// The path.
        path: String,
        /// The library's version.
        version: LibraryVersion,
    },
    /// A call that failed, with libhdf5's own messages.
    #[error("{call} failed: {message}")]
    Call {
        /// The function.
        call: &'static str,
        /// The innermost message of libhdf5's error stack.
        message: String,
    },
}

/// Why the engine does not read or write a dataset itself: the rule is in `eligibility`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsuited {
    /// Something that only libhdf5 handles; in words that follow "because".
    Reason(String),
    /// A call of libhdf5 failed.
    Failed(BindError),
}

impl From<BindError> for Unsuited {
    fn from(error: BindError) -> Self {
        Self::Failed(error)
    }
}

impl From<Left> for Unsuited {
    fn from(Left(why): Left) -> Self {
        Self::Reason(why)
    }
}

impl std::fmt::Display for Unsuited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Reason(reason) => f.write_str(reason),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

/// A reason why the engine does not read or write a dataset.
pub(crate) fn because<T>(reason: impl Into<String>) -> Result<T, Unsuited> {
    Err(Unsuited::Reason(reason.into()))
}
