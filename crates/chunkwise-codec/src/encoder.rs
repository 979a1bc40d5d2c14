//! Which filters are applied here, and what do their options mean when writing?

use libdeflater::{CompressionLvl, Compressor};

use crate::bitshuffle::encode::{BitshuffleEncoder, Buffers};
use crate::blosc::encode::BloscEncoder;
use crate::blosc2::encode::Blosc2Encoder;
use crate::streams::Streams;
use crate::{
    EncodeError, FilterKind, Nbit, ScaleOffset, Szip, bzip2, fletcher32, lzf, resize, shuffle,
};

/// A filter that is applied here; its options are those that encoding needs.
#[derive(Debug, Clone, PartialEq)]
pub enum Encoder {
    /// zlib streams.
    Deflate {
        /// zlib's level as the file states it, 0 to 9.
        level: u32,
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
}

impl Encoder {
    /// The filter with HDF5's identifier `id` and client data `cd_values`, as a dataset that
    /// has been made states them (`H5Pget_filter2`); None when only libhdf5 can apply it.
    pub fn from_hdf5(id: i32, cd_values: &[u32]) -> Option<Self> {
        let kind = FilterKind::ALL.into_iter().find(|kind| kind.id() == id)?;
        match kind {
            FilterKind::Deflate => {
                let &[level @ 0..=9] = cd_values else { return None };
                Some(Self::Deflate { level })
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
            _ => None,
        }
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
        }
    }

    /// Encode `source` to `out`, whatever was in it; whether there is anything to be stored.
    ///
    /// A filter that compresses declines (gives false) where nothing is gained, `out` is then
    /// unspecified.
    pub(crate) fn encode(
        &self,
        source: &[u8],
        state: &mut EncoderState,
        out: &mut Vec<u8>,
    ) -> Result<bool, EncodeError> {
        match self {
            Self::Deflate { level } => {
                let most = source.len();
                resize(out, most).map_err(|_| EncodeError::Memory { nbytes: most })?;
                let level = i32::try_from(*level).unwrap_or(1).max(1);
                match state.deflater(level).zlib_compress(source, out) {
                    Ok(len) => {
                        out.truncate(len);
                        Ok(len < source.len())
                    }
                    Err(_) => Ok(false),
                }
            }
            Self::Shuffle { element_size } => {
                let nbytes = source.len();
                resize(out, nbytes).map_err(|_| EncodeError::Memory { nbytes })?;
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
        }
    }
}

/// What encoders keep from chunk to chunk.
#[derive(Default)]
pub(crate) struct EncoderState {
    deflater: Option<(i32, Compressor)>,
    pub(crate) buffers: Buffers,
    streams: Streams,
}

impl EncoderState {
    fn deflater(&mut self, level: i32) -> &mut Compressor {
        if self.deflater.as_ref().is_none_or(|(made, _)| *made != level) {
            self.deflater = None;
        }
        let make = || (level, Compressor::new(CompressionLvl::new(level).unwrap_or_default()));
        &mut self.deflater.get_or_insert_with(make).1
    }
}

impl std::fmt::Debug for EncoderState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EncoderState")
    }
}
