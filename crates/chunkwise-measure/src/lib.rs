//! How long does a reader or writer take, and what did it do meanwhile?
//!
//! What only `chunkwise bench` and the studies need, so that the crates that read and write can
//! do without: access patterns as sequences of selections ([`Walk`]), timed loops over them by
//! libhdf5 and by the engine, and the chunks that a walk touches ([`ChunkTable`]).

mod cells;
mod chunk_table;
mod error;
mod memory_space;
mod open_dataset;
mod permutation;
mod properties;
mod reads;
mod reopened;
mod timed;
mod touched;
mod walk;
mod writes;

pub use cells::{CellError, CellWalk};
pub use chunk_table::{ChunkTable, chunk_table};
pub use error::WalkError;
pub use open_dataset::OpenDataset;
pub use permutation::Permutation;
pub use properties::{ChunkCache, ChunkCacheInForce, FormatBound, Properties};
pub use reopened::Reopened;
pub use timed::{
    Inspect, Lap, Stopwatch, WalkBounds, WalkRecord, WriteRecord, time_parts, time_walk,
    time_writes,
};
pub use touched::{BareReads, Touches, count_touches, time_bare_reads};
pub use walk::{BlockWalk, Order, Walk};
pub use writes::{EngineWrites, WriteRequest, WrittenBy};
