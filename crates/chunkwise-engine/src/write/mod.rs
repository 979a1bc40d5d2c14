//! How do a chunk's bytes reach the file: merged where they come in parts, encoded on every
//! thread, handed over in order.

mod committer;
mod coverage;
mod dirty;
mod edges;
mod error;
mod gather;
mod making;
mod ordered;
#[cfg(test)]
mod tests;
mod writer;

pub use committer::{ChunkStore, CommitError, Committer, EncodedChunk};
pub use error::WriteError;
pub use ordered::InOrder;
pub use writer::{DatasetWriter, WriteInfo, WriteStats};
