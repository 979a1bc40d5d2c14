//! How long does netCDF-C take to read, or to write, a variable selection by selection?
//! And what makes a netCDF-4 file of one of netCDF-3?
//!
//! netCDF-C (libnetcdf) is bound at run time: nothing is linked, and which libnetcdf is
//! measured is said by its path ([`NetCdf::open`]).  It reads netCDF-4 (HDF5) files
//! through the libhdf5 that it was built with, and netCDF-3 files itself.  Written
//! are files of all its formats.
//!
//! `nc_get_vara` and `nc_put_vara` give and take values in the byte order of this machine,
//! whichever the file has: bytes and checksums can be compared with those of a reader
//! whose elements are as they are stored only where the two orders are the same.

mod api;
mod convert;
mod definition;
mod error;
mod format;
mod library;
mod new_variable;
mod number;
mod request;
#[cfg(test)]
mod tests;
mod timed;
mod variable;
mod writing;

pub use error::NetCdfError;
pub use format::Format;
pub use library::NetCdf;
pub use new_variable::{Filter, NewVariable};
pub use number::Number;
pub use variable::{ChunkCache, OpenVariable};
pub use writing::Written;
