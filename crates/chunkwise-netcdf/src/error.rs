//! What can go wrong when binding or calling netCDF-C?

use chunkwise_engine::ReadError;
use thiserror::Error;

/// Of a call that failed although more bytes could be written.
const NOT_THE_SYSTEM: &str = "there is room: a filter may have failed";

/// Why libnetcdf could not be bound, or what was requested could not be done.
///
/// The caller adds the file's and the variable's name where they are missing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NetCdfError {
    /// No library at that path.
    #[error("cannot open {path} as a library: {message}")]
    Library {
        /// The path.
        path: String,
        /// What the loader said.
        message: String,
    },
    /// A library that lacks a function.
    #[error("{path} has no {symbol}: it is not netCDF-C {since} or later")]
    Symbol {
        /// The path.
        path: String,
        /// The function's name.
        symbol: &'static str,
        /// The version that it came with.
        since: &'static str,
    },
    /// A file that netCDF-C does not open.
    #[error("netCDF-C cannot open {file}: {message}")]
    File {
        /// The file.
        file: String,
        /// What netCDF-C said.
        message: String,
    },
    /// A variable, or the group it should be in, that netCDF-C does not find.
    #[error("netCDF-C finds no variable {variable} in {file}: {message}")]
    Variable {
        /// The file.
        file: String,
        /// The variable as it was requested.
        variable: String,
        /// What netCDF-C said.
        message: String,
    },
    /// Elements that are not numbers or characters.
    #[error(
        "{variable} in {file} has elements of type {type_name}: only numbers and characters can be walked by netCDF-C"
    )]
    Type {
        /// The file.
        file: String,
        /// The variable as it was requested.
        variable: String,
        /// The type's name in the file.
        type_name: String,
    },
    /// A hyperslab that no single call of netCDF-C reads or writes.
    #[error(
        "the selection has {count} blocks of {block} elements in dimension {dimension}: netCDF-C takes one block, or single elements with a stride"
    )]
    Blocks {
        /// Dimension, slowest first.
        dimension: usize,
        /// Number of blocks.
        count: u64,
        /// Elements in each block.
        block: u64,
    },
    /// A union of this many hyperslabs.
    #[error(
        "the selection is a union of {0} hyperslabs: netCDF-C reads one block, or single elements with a stride"
    )]
    Union(usize),
    /// Lists, points or masks.
    #[error(
        "the selection is of lists, points or masks: netCDF-C reads one block, or single elements with a stride"
    )]
    Product,
    /// A call that failed.
    #[error("{call} failed: {message}")]
    Call {
        /// The function.
        call: &'static str,
        /// What netCDF-C said.
        message: String,
    },
    /// A variable that netCDF-C cannot make, or that the data do not fit.
    #[error("netCDF-C cannot make this variable: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// A file that cannot be created.
    #[error("netCDF-C cannot create this file: {message}")]
    Create {
        /// What the system or netCDF-C said.
        message: String,
    },
    /// A call that failed to write.
    #[error("{call} failed: {message} ({})", .system.as_deref().unwrap_or(NOT_THE_SYSTEM))]
    Write {
        /// The function.
        call: &'static str,
        /// What was said.
        message: String,
        /// Why the system takes no more bytes, where it does not.
        system: Option<String>,
    },
    /// A selection that does not fit the variable or the memory.
    #[error(transparent)]
    Read(#[from] ReadError),
}
