//! What do those need who call libhdf5 themselves, such as what copies trees and what measures?
//!
//! The table of functions ([`Api`]), handles that close themselves, and what a dataset says of
//! itself.  All of it is used inside [`Library::locked`](crate::Library::locked), with handles of
//! that very library.

pub use crate::api::{
    Api, DEFAULT, HADDR_UNDEF, ObjectInfo, constant, haddr_t, herr_t, hid_t, hsize_t, htri_t,
};
pub use crate::facts::{
    Chunking, StatedFilter, chunk_options, filters_of, holds_pointers, shape_of,
};
pub use crate::handle::{Handle, list};
pub use crate::written::written_in;
