//! How do a chunk's bytes reach the file: merged where they come in parts, encoded on every
//! thread, handed over in order.

mod buffers;
mod by_blocks;
mod chunk_maker;
mod committer;
mod coverage;
mod dirty;
mod edges;
mod encode;
mod encoder_choice;
mod error;
mod gather;
mod info;
mod ordered;
mod placed;
#[cfg(test)]
mod tests;
mod whole;
mod writer;

pub use by_blocks::encode_chunk;
pub use committer::{ChunkStore, CommitError, Committer, EncodedChunk};
pub use error::WriteError;
pub use info::{WriteInfo, WriteStats};
pub use ordered::InOrder;
pub use placed::{ChunkPlaces, KeptChunks, PlacedChunks};
pub use whole::WholeChunks;
pub use writer::DatasetWriter;
