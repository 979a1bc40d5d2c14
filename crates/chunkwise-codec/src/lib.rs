//! Which of HDF5's filters are there, one file each, and what chains them?
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
mod encoding;
mod error;
mod filter;
mod fletcher32;
mod huffman;
mod inflater;
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

filter::filters! {
    /// zlib streams.
    Deflate = 1, "deflate", deflate::Deflate, deflate::DeflateEncoder;
    /// Bytes of elements stored plane by plane.
    Shuffle = 2, "shuffle", shuffle::Shuffle, shuffle::Shuffle;
    /// A checksum after the data.
    Fletcher32 = 3, "fletcher32", fletcher32::Fletcher32, fletcher32::Fletcher32;
    /// The adaptive entropy code of CCSDS 121.
    Szip = 4, "szip", szip::Szip, szip::Szip;
    /// The bits of elements that count.
    Nbit = 5, "nbit", nbit::Nbit, nbit::Nbit;
    /// Differences to the smallest element.
    ScaleOffset = 6, "scaleoffset", scaleoffset::ScaleOffset, scaleoffset::ScaleOffset;
    /// bzip2 streams.
    Bzip2 = 307, "bzip2", bzip2::Bzip2, bzip2::Bzip2;
    /// h5py's own compression.
    Lzf = 32000, "lzf", lzf::Lzf, lzf::Lzf;
    /// Blosc chunks.
    Blosc = 32001, "blosc", blosc::Blosc, blosc::encode::BloscEncoder;
    /// LZ4 blocks.
    Lz4 = 32004, "lz4", lz4::Lz4, lz4::Lz4;
    /// Bits of elements stored plane by plane, and perhaps compressed.
    Bitshuffle = 32008, "bitshuffle", bitshuffle::Bitshuffle, bitshuffle::encode::BitshuffleEncoder;
    /// Zstandard frames.
    Zstd = 32015, "zstd", zstd::Zstd, zstd::Zstd;
    /// Blosc2 frames.
    Blosc2 = 32026, "blosc2", blosc2::Blosc2, blosc2::encode::Blosc2Encoder;
}

pub use alike::Choices;
pub use bitshuffle::encode::BitshuffleEncoder;
pub use bitshuffle::{Bitshuffle, Inner};
pub use blocks::{Blocks, Places};
pub use blosc::encode::BloscEncoder;
pub use blosc2::encode::Blosc2Encoder;
pub use crc::crc32;
pub use deflate::{Deflate, DeflateEncoder};
pub use deflater::DeflateEngine;
pub use effort::Effort;
pub use encoded_blocks::EncodedBlocks;
pub use encoding::{EncodeScratch, Encoding, Step};
pub use error::{DecodeError, EncodeError, PassedOver};
pub use fletcher32::Fletcher32;
pub use interleaved::{Interleaved, Job, STREAMS};
pub use lzf::Lzf;
pub use memory::resize;
pub use nbit::Nbit;
pub use parts::BlockEncoding;
pub use pipeline::Pipeline;
pub use scaleoffset::ScaleOffset;
pub use scratch::Scratch;
pub use shuffle::Shuffle;
pub use szip::Szip;
pub use trial::Crew;
pub use tuning::Tuning;

pub(crate) use memory::grown;
pub(crate) use output::Output;
