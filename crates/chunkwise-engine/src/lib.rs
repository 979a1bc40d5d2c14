//! Reading chunked and contiguous data without libhdf5: storage, chunk index, cache,
//! thread pool and the read path.
//!
//! Knows neither Python nor libhdf5.  A [`Dataset`] is made from facts that somebody
//! else has found out ([`DatasetInfo`]: shape, layout, filters, addresses) and a
//! [`Storage`] that gives bytes; from there on everything happens here.

mod access_pattern;
mod cache;
mod cache_entry;
mod census;
mod crew;
mod dataset;
mod error;
mod examine;
mod huge;
mod in_flight;
mod in_memory;
mod index;
mod memory;
mod on_demand;
pub mod platform;
mod process;
mod profile;
mod published;
mod read;
mod references;
mod saved_index;
mod settings;
mod spare;
mod storage;
mod threads;
mod write;

pub use cache::CacheStats;
pub use census::{ChunkCensus, ChunkPlacement, census_of_index, spread_of};
pub use dataset::{Dataset, DatasetInfo, Explanation, Layout};
pub use error::{ChunkPlace, Lacking, ReadError};
pub use examine::{Examined, Examining, Fault, Flaw};
pub use huge::zeroed;
pub use in_memory::{gather, spread};
pub use index::{ChunkIndex, ChunkIndexBuilder, ChunkRecord, IndexError};
pub use on_demand::{Chunks, FindChunks, OnDemand};
pub use process::{
    cache_clear, cache_stats, change, in_force, process_number, set_default, set_threads,
    thread_count,
};
pub use profile::{Phase, PhaseTimes, Profile, profile, set_profiling, timed};
pub use published::{Published, PublishedSet};
pub use read::{
    AnyDataset, Conversion, FieldBytes, Fields, LostChunk, Made, MappedSource, NumberKind,
    NumberType, OnePass, Padding, VirtualDataset, convert_all, edge_numbers, fill_run,
};
pub use references::write_references;
pub use saved_index::{SavedForm, SavedIndex, save_index};
pub use settings::Setting;
pub use storage::{
    ExternalRun, ExternalStorage, FileStorage, GrowingStorage, MemoryStorage, Storage, StorageCost,
    ThrottledStorage, distrust_descriptors,
};
pub use threads::thread_limit;
pub use write::{
    ChunkPlaces, ChunkStore, CommitError, Committer, DatasetWriter, EncodedChunk, InOrder,
    KeptChunks, PlacedChunks, WholeChunks, WriteError, WriteInfo, WriteStats, encode_chunk,
};
