//! The one crate that calls libhdf5, bound at run time.
//!
//! There is one right libhdf5 for a handle: the one that made it.  So nothing is linked;
//! a [`Library`] is looked up in the process ([`Library::from_handle`],
//! [`Library::from_process`]) or loaded from a file ([`Library::from_path`]), and what
//! its version does differently is found out by a probe when it is bound.
//!
//! libhdf5 is not thread-safe: every call happens inside [`Library::locked`], under the
//! [`LibraryLock`] of whoever else uses the same library.

mod api;
mod boxes;
mod census;
mod chunks;
mod committer;
mod dataset;
mod error;
mod facts;
mod file;
mod library;
mod lock;
mod maker;
mod probe;
mod properties;
mod reopened;
mod room;
mod selecting;
pub mod stored;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod timed;
mod timed_writes;
mod tree;
mod writing;
mod written;

pub use api::{Api, hid_t};
pub use boxes::{BoxCommitter, StoredBoxes};
pub use census::{ChunkCensus, Placement, census};
pub use committer::ChunkCommitter;
pub use dataset::{Described, describe};
pub use error::{BindError, Unsuited};
pub use facts::{
    DatasetFacts, FileStamp, StoredFilter, describe_as_stored, facts_of, file_stamp,
    same_stored_type, storage_of,
};
pub use file::OpenDataset;
pub use library::{Library, LibraryVersion};
pub use lock::{LibraryLock, MutexLock};
pub use maker::Witness;
pub use probe::ChunkConventions;
pub use properties::{ChunkCache, ChunkCacheInForce, FormatBound, Properties};
pub use reopened::{Reopened, read_by_engine};
pub use table::{ChunkTable, chunk_table};
pub use tally::{Calls, FilterTally};
pub use timed_writes::{EngineWrites, WriteRequest, WrittenBy};
pub use tree::{Progress, TreeCopy, TreeError};
pub use writing::{describe_for_writing, encoding_of};
pub use written::written_chunks;
