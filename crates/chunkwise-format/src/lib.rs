//! What does an HDF5 file say of the objects that it holds?
//!
//! Everything here makes records of bytes: no file, no thread, no libhdf5.  [`Bytes`] gives the
//! bytes of a file by position; a [`File`] finds its superblock and root group, and an [`Object`]
//! says what its header says: links, attributes, type, shape, fill value, layout, filters, and
//! where each chunk lies.
//!
//! Nothing is taken at its word.  Sizes and counts are bounded by the bytes that there are, depths
//! by constants, and what leads to the same bytes again and again is refused, so that no file
//! costs more than its length.  An error says which structure is wrong, and where it is.
//!
//! The names of sections in the modules are those of the HDF5 File Format Specification 3.0.

#![forbid(unsafe_code)]
// Nothing that a file says makes an index or a sum panic.
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

mod attribute;
mod attributes;
mod btree2;
mod bytes;
mod checksum;
mod context;
mod dataspace;
mod datatype;
mod error;
mod external;
mod fields;
mod file;
mod fill_value;
mod filters;
mod header;
mod heap_fractal;
mod heap_global;
mod heap_local;
mod index;
mod layout;
mod link;
mod links;
mod object;
mod reference;
mod selection;
mod shared;
mod source;
mod superblock;
mod symbol_table;
mod times;
mod virtual_mapping;

pub use attribute::Attribute;
pub use bytes::Bytes;
pub use checksum::checksum;
pub use context::{Extension, SharedIndex};
pub use dataspace::{Dataspace, Dims};
pub use datatype::{Bits, ByteOrder, Charset, Class, Datatype, FloatParts, Member, Text};
pub use error::{FormatError, Problem, Structure};
pub use external::ExternalFile;
pub use file::File;
pub use fill_value::{FillValue, Value};
pub use filters::Filter;
pub use header::kind;
pub use heap_global::Collection;
pub use index::{ChunkRecord, ChunkTable};
pub use layout::{ChunkIndex, Chunked, Layout};
pub use link::{Link, Target};
pub use object::{Kind, Object};
pub use reference::Reference;
pub use selection::{Selection, Slab};
pub use superblock::Superblock;
pub use virtual_mapping::VirtualMapping;
