//! The one crate that calls libhdf5, bound at run time.
//!
//! There is one right libhdf5 for a handle: the one that made it.  So nothing is linked;
//! a [`Library`] is looked up in the process ([`Library::from_handle`],
//! [`Library::from_process`]) or loaded from a file ([`Library::from_path`]), and what
//! its version does differently is found out by a probe when it is bound.
//!
//! libhdf5 is not thread-safe: every call happens inside [`Library::locked`], under the
//! [`LibraryLock`] of others that use the same library.

// For tests that other crates take as well.
#[cfg(test)]
extern crate self as chunkwise_libhdf5;

mod abandoned;
mod api;
pub mod binding;
mod boxes;
mod census;
mod chunks;
mod committer;
mod disk_space;
mod eligibility;
mod error;
mod facts;
mod file;
mod handle;
mod index;
mod library;
mod lock;
mod maker;
mod probe;
mod tally;
#[cfg(test)]
mod tests;
mod version;
mod written;

pub use abandoned::flush_or_abandon;
pub use api::{Api, hid_t};
pub use boxes::{BoxCommitter, StoredBoxes};
pub use census::census;
pub use committer::ChunkCommitter;
pub use eligibility::{
    DescribeOptions, Described, Examinable, ExternalFile, Saved, describe, describe_as,
    describe_as_stored, describe_for_writing, describe_listed, encoding_of, examinable, look_again,
};
pub use error::{BindError, Unsuited};
pub use facts::{DatasetFacts, StoredFilter, facts_of, same_stored_type};
pub use file::{FileBytes, FileStamp, driver_info, file_stamp, opened_locally, storage_of};
pub use library::Library;
pub use lock::{LibraryLock, MutexLock};
pub use maker::Witness;
pub use probe::ChunkConventions;
pub use tally::{Calls, FilterTally, SLOT_COUNT, TallySlot, decodes, tally, tally_slot};
pub use version::LibraryVersion;
pub use written::{grid_and_written, written_chunks, written_origins};
