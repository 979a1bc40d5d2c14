//! What does a file say of its objects, read by its storage: without libhdf5 and its lock?
//!
//! `chunkwise-format` makes records of bytes; here the bytes come from a file, datasets become
//! those of the engine, and all objects of a file are listed.

mod listing;
mod metadata;
mod stored;
mod types;
mod values;

pub use listing::{Entry, Facts, Found, Shown, Stored as StoredFacts};
pub use metadata::Metadata;
pub use types::{trimmed, type_of};
pub use values::Values;
