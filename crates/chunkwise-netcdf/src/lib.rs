//! How long does netCDF-C take to read a variable selection by selection?
//!
//! netCDF-C (libnetcdf) is bound at run time: nothing is linked, and which libnetcdf is
//! measured is said by its path ([`NetCdf::open`]).  It reads netCDF-4 (HDF5) files
//! through the libhdf5 that it was built with, and netCDF-3 files itself.
//!
//! `nc_get_vara` gives values in the byte order of this machine, whichever the file has:
//! bytes and checksums can be compared with those of a reader that gives elements as
//! they are stored only where the two orders are the same.

mod api;
mod error;
mod library;
#[cfg(test)]
mod tests;
mod timed;
mod variable;

pub use error::NetCdfError;
pub use library::NetCdf;
pub use variable::{ChunkCache, OpenVariable};
