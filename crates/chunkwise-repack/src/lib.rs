//! Copies a dataset's data into one of another layout: other chunks, other filters.
//!
//! Knows the engine, which reads, the codecs, which encode, and libhdf5's adapter, to which
//! encoded chunks are handed; not Python, and nothing of a file but its datasets' elements.

mod boxes;
mod cells;
mod checksums;
mod copy;
mod copying;
mod encoders;
mod error;
mod frontier;
mod handing;
mod journal;
mod maker;
mod plan;
mod progress;
mod raw;
mod source;
mod turns;
mod verify;

pub use checksums::Checksums;
pub use copy::{CopyResult, Request, copy};
pub use encoders::Encoders;
pub use error::CopyError;
pub use journal::Journal;
pub use plan::{PlanError, RechunkPlan, Rechunking};
pub use progress::Progress;
pub use turns::{Task, copy_side_by_side};
pub use verify::verify;
