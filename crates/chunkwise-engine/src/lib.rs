//! Reading chunked and contiguous data without libhdf5: storage, chunk index, cache,
//! thread pool and the read path.
//!
//! Knows neither Python nor libhdf5.  A [`Dataset`] is made from facts that somebody
//! else has found out ([`DatasetInfo`]: shape, layout, filters, addresses) and a
//! [`Storage`] that gives bytes; from there on everything happens here.

mod ahead;
mod cache;
mod crew;
mod dataset;
mod decode;
mod error;
mod fetch;
mod huge;
mod index;
mod jobs;
mod landing;
mod limits;
mod process;
mod profile;
mod read;
mod reading;
mod runs;
mod scatter;
mod schedule;
mod storage;
mod touched;
mod walk;
mod write;

pub use cache::CacheStats;
pub use dataset::{Dataset, DatasetInfo, Explanation, Layout};
pub use error::{ChunkPlace, ReadError};
pub use huge::zeroed;
pub use index::{ChunkIndex, ChunkIndexBuilder, ChunkRecord, IndexError};
pub use limits::{default_cache_nbytes, thread_limit};
pub use process::{cache_stats, set_threads, thread_count};
pub use profile::{Phase, PhaseTimes, Profile, profile, set_profiling, timed};
pub use read::{LostChunk, OnePass};
pub use scatter::fill_run;
pub use storage::{FileStorage, Map, MemoryStorage, Storage, ThrottledStorage};
pub use touched::{BareReads, Touches, count_touches, time_bare_reads};
pub use walk::{
    Inspect, Lap, Stopwatch, WalkBounds, WalkRecord, WriteRecord, gather, time_parts, time_walk,
    time_writes,
};
pub use write::{
    ChunkStore, CommitError, Committer, DatasetWriter, EncodedChunk, InOrder, WriteError,
    WriteInfo, WriteStats,
};
