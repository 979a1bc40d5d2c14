//! HDF5's filters, one file each, and the pipeline that chains them.
//!
//! Knows bytes, not files: a [`Pipeline`] turns the stored bytes of a chunk into the
//! bytes the chunk holds, an [`Encoding`] the other way.  What it does not know it says at construction
//! ([`Filter::from_hdf5`] gives None), so that the caller can leave the dataset to
//! libhdf5.

mod alike;
mod bit_writer;
mod bits;
mod bitshuffle;
mod blocks;
mod blosc;
mod blosc2;
mod blosclz;
mod bytes;
mod bzip2;
mod crc;
mod cut;
mod deflate;
mod deflater;
mod effort;
mod encoded_blocks;
mod encoder;
mod encoding;
mod error;
mod filter;
mod fletcher32;
mod huffman;
mod interleaved;
mod lanes;
mod lz4;
mod lzf;
mod memory;
mod nbit;
mod output;
mod partial;
mod parts;
mod pipeline;
mod repeats;
mod runs;
mod scaleoffset;
mod scratch;
mod shuffle;
#[cfg(feature = "simulated")]
pub mod simulated;
mod state;
mod streams;
mod szip;
#[cfg(test)]
mod tests;
mod trial;
mod tuning;
mod zstd;

pub use alike::Choices;
pub use bitshuffle::encode::BitshuffleEncoder;
pub use bitshuffle::{Bitshuffle, Inner};
pub use blocks::{Blocks, Places};
pub use blosc::encode::BloscEncoder;
pub use blosc2::encode::Blosc2Encoder;
pub use crc::crc32;
pub use deflater::DeflateEngine;
pub use effort::Effort;
pub use encoded_blocks::EncodedBlocks;
pub use encoder::Encoder;
pub use encoding::{EncodeScratch, Encoding, Step};
pub use error::{DecodeError, EncodeError, PassedOver};
pub use filter::{Filter, FilterKind};
pub use interleaved::{Interleaved, Job, STREAMS};
pub use memory::resize;
pub use nbit::Nbit;
pub use parts::BlockEncoding;
pub use pipeline::Pipeline;
pub use scaleoffset::ScaleOffset;
pub use scratch::Scratch;
pub use szip::Szip;
pub use trial::Crew;
pub use tuning::Tuning;

pub(crate) use memory::grown;
pub(crate) use output::Output;
