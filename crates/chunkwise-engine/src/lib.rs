//! Reading chunked and contiguous data without libhdf5: storage, chunk index, cache,
//! thread pool and the read path.
//!
//! Knows neither Python nor libhdf5.  A [`Dataset`] is made from facts that somebody
//! else has found out ([`DatasetInfo`]: shape, layout, filters, addresses) and a
//! [`Storage`] that gives bytes; from there on everything happens here.

mod access_pattern;
mod blocks;
mod cache;
mod cache_entry;
mod convert;
mod crew;
mod dataset;
mod decode;
mod edges;
mod error;
mod examine;
mod fetch;
mod fields;
mod huge;
mod in_flight;
mod in_memory;
mod index;
mod mapped;
mod memory;
mod numbers;
mod on_demand;
mod one_pass;
mod prefetch;
mod process;
mod profile;
mod published;
mod read;
mod read_map;
mod reading;
mod references;
mod repeated;
mod runs;
mod saved_index;
mod scatter;
mod scatter_task;
mod schedule;
mod settings;
mod spare;
mod storage;
mod threads;
mod write;

pub use cache::CacheStats;
pub use convert::{Conversion, NumberKind, NumberType, Padding};
pub use dataset::{Dataset, DatasetInfo, Explanation, Layout};
pub use decode::lacking;
pub use edges::edge_numbers;
pub use error::{ChunkPlace, Lacking, ReadError};
pub use examine::{Examined, Examining, Fault, Flaw};
pub use fields::{FieldBytes, Fields, Made, convert_all};
pub use huge::zeroed;
pub use in_memory::{gather, spread};
pub use index::{ChunkIndex, ChunkIndexBuilder, ChunkRecord, IndexError};
pub use mapped::{MappedSource, Source, VirtualDataset};
pub use on_demand::{Chunks, FindChunks, OnDemand};
pub use one_pass::{LostChunk, OnePass};
pub use process::{
    cache_clear, cache_stats, change, in_force, process_number, set_default, set_threads,
    thread_count,
};
pub use profile::{Phase, PhaseTimes, Profile, profile, set_profiling, timed};
pub use published::{Published, PublishedSet};
pub use references::write_references;
pub use saved_index::{SavedForm, SavedIndex, save_index};
pub use scatter::fill_run;
pub use settings::Setting;
pub use storage::{
    ExternalRun, ExternalStorage, FileStorage, GrowingStorage, Map, MemoryStorage, Storage,
    StorageCost, ThrottledStorage, distrust_descriptors,
};
pub use threads::thread_limit;
pub use write::{
    ChunkPlaces, ChunkStore, CommitError, Committer, DatasetWriter, EncodedChunk, Files, InOrder,
    KeptChunks, PlacedChunks, WholeChunks, WriteError, WriteInfo, WriteStats, encode_chunk,
};
