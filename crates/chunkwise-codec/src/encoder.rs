//! Which filters are applied here, and what do their options mean when writing?

use crate::bitshuffle::encode::{BitshuffleEncoder, Buffers};
use crate::blosc::encode::BloscEncoder;
use crate::blosc2::encode::Blosc2Encoder;
use crate::deflater::Deflater;
use crate::streams::Streams;
use crate::{
    DeflateEngine, EncodeError, FilterKind, Nbit, ScaleOffset, Szip, bzip2, fletcher32, grown, lz4,
    lzf, shuffle, zstd,
};

/// A filter that is applied here; its options are those that encoding needs.
#[derive(Debug, Clone, PartialEq)]
pub enum Encoder {
    /// zlib streams.
    Deflate {
        /// zlib's level as the file states it, 0 to 9.
        level: u32,
        /// What makes them: zlib at that level until [`Encoding::tuned`](crate::Encoding::tuned)
        /// has chosen.
        engine: DeflateEngine,
    },
    /// Bytes of elements stored plane by plane.
    Shuffle {
        /// Bytes in an element.
        element_size: usize,
    },
    /// A checksum after the data.
    Fletcher32,
    /// The adaptive entropy code of CCSDS 121.
    Szip(Szip),
    /// The bits of elements that count.
    Nbit(Nbit),
    /// Differences to the smallest element.
    ScaleOffset(ScaleOffset),
    /// bzip2 streams.
    Bzip2 {
        /// Bytes of a block in units of 100,000, 1 to 9.
        level: u32,
    },
    /// h5py's own compression.
    Lzf,
    /// Blosc chunks.
    Blosc(BloscEncoder),
    /// Bits of elements stored plane by plane, and perhaps compressed.
    Bitshuffle(BitshuffleEncoder),
    /// Blosc2 frames.
    Blosc2(Blosc2Encoder),
    /// LZ4 blocks.
    Lz4 {
        /// Bytes in a block.
        block_nbytes: u32,
    },
    /// Zstandard frames.
    Zstd {
        /// zstd's level.
        level: i32,
    },
}

impl Encoder {
    /// The filter with HDF5's identifier `id` and client data `cd_values`, as a dataset that
    /// has been made states them (`H5Pget_filter2`); None when only libhdf5 can apply it.
    pub fn from_hdf5(id: i32, cd_values: &[u32]) -> Option<Self> {
        let kind = FilterKind::ALL.into_iter().find(|kind| kind.id() == id)?;
        match kind {
            FilterKind::Deflate => {
                let &[level @ 0..=9] = cd_values else { return None };
                Some(Self::deflate(level))
            }
            FilterKind::Shuffle => {
                let &[element_size] = cd_values else { return None };
                let element_size = usize::try_from(element_size).ok()?;
                (element_size > 0).then_some(Self::Shuffle { element_size })
            }
            FilterKind::Fletcher32 => Some(Self::Fletcher32),
            FilterKind::Szip => {
                Szip::from_cd_values(cd_values).filter(Szip::is_possible).map(Self::Szip)
            }
            FilterKind::Nbit => Nbit::from_cd_values(cd_values).map(Self::Nbit),
            FilterKind::ScaleOffset => {
                ScaleOffset::from_cd_values(cd_values).map(Self::ScaleOffset)
            }
            FilterKind::Bzip2 => {
                let level = cd_values.first().copied().unwrap_or(9);
                (1..=9).contains(&level).then_some(Self::Bzip2 { level })
            }
            FilterKind::Lzf => Some(Self::Lzf),
            FilterKind::Blosc => BloscEncoder::from_cd_values(cd_values).map(Self::Blosc),
            FilterKind::Bitshuffle => {
                BitshuffleEncoder::from_cd_values(cd_values).map(Self::Bitshuffle)
            }
            FilterKind::Blosc2 => Blosc2Encoder::from_cd_values(cd_values).map(Self::Blosc2),
            FilterKind::Lz4 => Some(Self::Lz4 { block_nbytes: lz4::block_nbytes(cd_values) }),
            FilterKind::Zstd => Some(Self::Zstd { level: zstd::level(cd_values) }),
        }
    }

    /// Deflate as libhdf5 does it at `level`, 0 to 9.
    pub fn deflate(level: u32) -> Self {
        Self::Deflate { level, engine: DeflateEngine::Zlib(level) }
    }

    /// What kind it is.
    pub fn kind(&self) -> FilterKind {
        match self {
            Self::Deflate { .. } => FilterKind::Deflate,
            Self::Shuffle { .. } => FilterKind::Shuffle,
            Self::Fletcher32 => FilterKind::Fletcher32,
            Self::Szip(_) => FilterKind::Szip,
            Self::Nbit(_) => FilterKind::Nbit,
            Self::ScaleOffset(_) => FilterKind::ScaleOffset,
            Self::Bzip2 { .. } => FilterKind::Bzip2,
            Self::Lzf => FilterKind::Lzf,
            Self::Blosc(_) => FilterKind::Blosc,
            Self::Bitshuffle(_) => FilterKind::Bitshuffle,
            Self::Blosc2(_) => FilterKind::Blosc2,
            Self::Lz4 { .. } => FilterKind::Lz4,
            Self::Zstd { .. } => FilterKind::Zstd,
        }
    }

    /// Encode `source` to `out`, whatever was in it; whether there is anything to be stored.
    ///
    /// A filter that cannot encode these bytes gives false; `out` is then unspecified.  One that
    /// compresses may make them longer.  A filter that libhdf5 may leave out never makes as many
    /// bytes as it was given: libhdf5, when it rewrites the chunk without the filter, would keep
    /// the mask that says that it was applied.
    pub(crate) fn encode(
        &self,
        source: &[u8],
        state: &mut EncoderState,
        out: &mut Vec<u8>,
    ) -> Result<bool, EncodeError> {
        match self {
            Self::Deflate { engine, .. } => state.deflater.deflate(*engine, source, out),
            Self::Shuffle { element_size } => {
                let nbytes = source.len();
                grown(out, nbytes)?;
                out.truncate(nbytes);
                shuffle::shuffle(*element_size, source, out);
                Ok(true)
            }
            Self::Fletcher32 => {
                out.clear();
                let nbytes = source.len() + fletcher32::CHECKSUM_LEN;
                out.try_reserve_exact(nbytes).map_err(|_| EncodeError::Memory { nbytes })?;
                out.extend_from_slice(source);
                out.extend_from_slice(&fletcher32::checksum(source).to_le_bytes());
                Ok(true)
            }
            Self::Szip(options) => options.encode(source, &mut state.buffers.planes, out),
            Self::Nbit(options) => options.encode(source, out),
            Self::ScaleOffset(options) => options.encode(source, out),
            Self::Bzip2 { level } => bzip2::encode(*level, source, out),
            Self::Lzf => lzf::encode(source, &mut state.streams.repeats, out),
            Self::Blosc(options) => {
                options.encode(source, &mut state.buffers, &mut state.streams, out)
            }
            Self::Blosc2(options) => {
                options.encode(source, &mut state.buffers, &mut state.streams, out)
            }
            Self::Bitshuffle(options) => {
                options.encode(source, &mut state.buffers, &mut state.streams, out)
            }
            Self::Lz4 { block_nbytes } => lz4::encode(*block_nbytes, source, out),
            Self::Zstd { level } => state.zstd.compress(*level, source, out),
        }
    }

    /// Encode what is in `bytes` where it is, which some filters can.
    pub(crate) fn encode_in_place(&self, bytes: &mut Vec<u8>) -> Result<bool, EncodeError> {
        if *self != Self::Fletcher32 {
            return Ok(false);
        }
        let nbytes = fletcher32::CHECKSUM_LEN;
        bytes.try_reserve(nbytes).map_err(|_| EncodeError::Memory { nbytes })?;
        bytes.extend(fletcher32::checksum(bytes).to_le_bytes());
        Ok(true)
    }
}

/// What encoders keep from chunk to chunk.
#[derive(Default)]
pub(crate) struct EncoderState {
    deflater: Deflater,
    zstd: zstd::Compressor,
    pub(crate) buffers: Buffers,
    pub(crate) streams: Streams,
}

impl std::fmt::Debug for EncoderState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EncoderState")
    }
}
