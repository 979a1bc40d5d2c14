//! How do a chunk's bytes reach the file: encoded on every thread, handed over in order.

mod committer;
mod ordered;

pub use committer::{CommitError, Committer, EncodedChunk};
pub use ordered::InOrder;
