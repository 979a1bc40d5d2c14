//! HDF5's filters, one file each, and the pipeline that chains them.
//!
//! Knows bytes, not files: a [`Pipeline`] turns the stored bytes of a chunk into the
//! bytes the chunk holds.  What it does not know it says at construction
//! ([`Filter::from_hdf5`] gives None), so that the caller can leave the dataset to
//! libhdf5.

mod crc;
mod deflate;
mod fletcher32;
mod memory;
mod pipeline;
mod shuffle;

pub use crc::crc32;
pub use deflate::Inflater;
pub use memory::resize;
pub use pipeline::{DecodeError, Filter, Pipeline, Scratch};

/// Identifiers of the filters in HDF5's registry (`H5Zpublic.h`).
pub mod filter_id {
    /// `H5Z_FILTER_DEFLATE`
    pub const DEFLATE: i32 = 1;
    /// `H5Z_FILTER_SHUFFLE`
    pub const SHUFFLE: i32 = 2;
    /// `H5Z_FILTER_FLETCHER32`
    pub const FLETCHER32: i32 = 3;
}
