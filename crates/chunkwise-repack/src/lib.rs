//! Copies a dataset's data into one of another layout: other chunks, other filters; and, in
//! [`TreeCopy`], all of a file that is no plain data.
//!
//! Knows the engine, which reads, the codecs, which encode, and libhdf5's adapter, to which
//! encoded chunks are handed and through whose binding trees are copied; not Python.

mod boxes;
mod cells;
mod checksum;
mod copy;
mod copying;
mod encoders;
mod error;
mod frontier;
mod handing;
mod journal;
// As `chunkwise-libhdf5` has it for its own tests.
#[cfg(test)]
#[path = "../../chunkwise-libhdf5/src/tests/libraries.rs"]
mod libraries;
mod maker;
mod plan;
mod progress;
mod raw;
mod same;
mod share;
mod side_by_side;
mod slab;
mod source;
mod tree;
mod turns;

pub use copy::{CopyResult, Part, Request, copy};
pub use encoders::Encoders;
pub use error::CopyError;
pub use journal::Journal;
pub use plan::{PlanError, RechunkPlan, Rechunking};
pub use progress::Progress;
pub use same::{Differs, same_chunks};
pub use share::Share;
pub use side_by_side::{Task, copy_side_by_side};
pub use tree::{
    ElementPart, Lead, Leads, Led, Meaning, Missing, Salvage, TreeCopy, TreeError, TreeProgress,
    comment_of, meaning_of,
};
