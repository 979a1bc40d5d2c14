//! Which filters are decoded here, and what do their options mean?

use crate::blosc2::{Blosc2, Blosc2Blocks};
use crate::partial::PartialDecoder;
use crate::state::State;
use crate::{
    Bitshuffle, DecodeError, Nbit, Output, ScaleOffset, Szip, blosc, blosc2, bzip2, deflate, lz4,
    lzf, shuffle, zstd,
};

/// A kind of filter, whatever its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterKind {
    /// zlib streams.
    Deflate,
    /// Bytes of elements stored plane by plane.
    Shuffle,
    /// A checksum after the data.
    Fletcher32,
    /// The adaptive entropy code of CCSDS 121.
    Szip,
    /// The bits of elements that count.
    Nbit,
    /// Differences to the smallest element.
    ScaleOffset,
    /// bzip2 streams.
    Bzip2,
    /// h5py's own compression.
    Lzf,
    /// Blosc chunks.
    Blosc,
    /// LZ4 blocks.
    Lz4,
    /// Bits of elements stored plane by plane, and perhaps compressed.
    Bitshuffle,
    /// Zstandard frames.
    Zstd,
    /// Blosc2 frames.
    Blosc2,
}

impl FilterKind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Deflate,
        Self::Shuffle,
        Self::Fletcher32,
        Self::Szip,
        Self::Nbit,
        Self::ScaleOffset,
        Self::Bzip2,
        Self::Lzf,
        Self::Blosc,
        Self::Lz4,
        Self::Bitshuffle,
        Self::Zstd,
        Self::Blosc2,
    ];

    /// HDF5's number for it: `H5Zpublic.h`, or The HDF Group's registry of plugins.
    pub const fn id(self) -> i32 {
        match self {
            Self::Deflate => 1,
            Self::Shuffle => 2,
            Self::Fletcher32 => 3,
            Self::Szip => 4,
            Self::Nbit => 5,
            Self::ScaleOffset => 6,
            Self::Bzip2 => 307,
            Self::Lzf => 32000,
            Self::Blosc => 32001,
            Self::Lz4 => 32004,
            Self::Bitshuffle => 32008,
            Self::Zstd => 32015,
            Self::Blosc2 => 32026,
        }
    }

    /// Whether chunks are decoded here that went through it, unless [`Filter::from_hdf5`] knows
    /// of an option that only libhdf5 handles.
    pub const fn is_decoded(self) -> bool {
        match self {
            Self::Deflate | Self::Shuffle | Self::Fletcher32 | Self::Szip | Self::Nbit => true,
            Self::ScaleOffset | Self::Bzip2 | Self::Lzf | Self::Blosc | Self::Lz4 => true,
            Self::Bitshuffle | Self::Zstd | Self::Blosc2 => true,
        }
    }

    /// Whether chunks are put through it here, but for options that
    /// [`Encoder::from_hdf5`](crate::Encoder::from_hdf5) leaves to libhdf5.
    pub const fn is_encoded(self) -> bool {
        match self {
            Self::Deflate | Self::Shuffle | Self::Fletcher32 | Self::Szip | Self::Nbit => true,
            Self::ScaleOffset | Self::Bzip2 | Self::Lzf | Self::Blosc | Self::Lz4 => true,
            Self::Bitshuffle | Self::Zstd | Self::Blosc2 => true,
        }
    }

    /// Whether it stores a chunk in blocks that can be decoded one by one
    /// ([`Blocks`](crate::Blocks)).
    pub const fn is_in_blocks(self) -> bool {
        matches!(self, Self::Bitshuffle | Self::Blosc | Self::Blosc2 | Self::Lz4)
    }

    /// Its name in chunkwise's grammar of filters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deflate => "deflate",
            Self::Shuffle => "shuffle",
            Self::Fletcher32 => "fletcher32",
            Self::Szip => "szip",
            Self::Nbit => "nbit",
            Self::ScaleOffset => "scaleoffset",
            Self::Bzip2 => "bzip2",
            Self::Lzf => "lzf",
            Self::Blosc => "blosc",
            Self::Lz4 => "lz4",
            Self::Bitshuffle => "bitshuffle",
            Self::Zstd => "zstd",
            Self::Blosc2 => "blosc2",
        }
    }
}

/// A filter that is decoded here; its options are those that decoding needs.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// zlib streams.
    Deflate,
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
    Bzip2,
    /// h5py's own compression.
    Lzf,
    /// Blosc chunks.
    Blosc,
    /// LZ4 blocks.
    Lz4,
    /// Bits of elements stored plane by plane, and perhaps compressed.
    Bitshuffle(Bitshuffle),
    /// Zstandard frames.
    Zstd,
    /// Blosc2 frames.
    Blosc2(Blosc2),
}

impl Filter {
    /// The filter with HDF5's identifier `id` and client data `cd_values`
    /// (`H5Pget_filter2`); None when only libhdf5 can decode it.
    pub fn from_hdf5(id: i32, cd_values: &[u32]) -> Option<Self> {
        let kind = FilterKind::ALL.into_iter().find(|kind| kind.id() == id)?;
        match kind {
            // libhdf5 refuses to inflate with anything but one level that there is.
            FilterKind::Deflate => matches!(cd_values, [0..=9]).then_some(Self::Deflate),
            FilterKind::Shuffle => {
                // libhdf5 stores the element's size when the dataset is made, and
                // refuses to decode with anything else.
                let &[element_size] = cd_values else { return None };
                let element_size = usize::try_from(element_size).ok()?;
                (element_size > 0).then_some(Self::Shuffle { element_size })
            }
            FilterKind::Fletcher32 => Some(Self::Fletcher32),
            FilterKind::Szip => Szip::from_cd_values(cd_values).map(Self::Szip),
            FilterKind::Nbit => Nbit::from_cd_values(cd_values).map(Self::Nbit),
            FilterKind::ScaleOffset => {
                ScaleOffset::from_cd_values(cd_values).map(Self::ScaleOffset)
            }
            FilterKind::Bzip2 => Some(Self::Bzip2),
            FilterKind::Lzf => Some(Self::Lzf),
            FilterKind::Blosc => blosc::knows(cd_values).then_some(Self::Blosc),
            FilterKind::Lz4 => Some(Self::Lz4),
            FilterKind::Bitshuffle => Bitshuffle::from_cd_values(cd_values).map(Self::Bitshuffle),
            FilterKind::Zstd => Some(Self::Zstd),
            FilterKind::Blosc2 => Blosc2::from_cd_values(cd_values).map(Self::Blosc2),
        }
    }

    /// What kind it is.
    pub fn kind(&self) -> FilterKind {
        match self {
            Self::Deflate => FilterKind::Deflate,
            Self::Shuffle { .. } => FilterKind::Shuffle,
            Self::Fletcher32 => FilterKind::Fletcher32,
            Self::Szip(_) => FilterKind::Szip,
            Self::Nbit(_) => FilterKind::Nbit,
            Self::ScaleOffset(_) => FilterKind::ScaleOffset,
            Self::Bzip2 => FilterKind::Bzip2,
            Self::Lzf => FilterKind::Lzf,
            Self::Blosc => FilterKind::Blosc,
            Self::Lz4 => FilterKind::Lz4,
            Self::Bitshuffle(_) => FilterKind::Bitshuffle,
            Self::Zstd => FilterKind::Zstd,
            Self::Blosc2(_) => FilterKind::Blosc2,
        }
    }

    /// The most bytes that `stored_len` bytes can decode to.
    pub(crate) fn most_decoded(&self, stored_len: usize) -> usize {
        let times = match self {
            Self::Shuffle { .. } | Self::Fletcher32 => return stored_len,
            Self::Deflate => deflate::MOST_EXPANSION,
            // One bit may be all that an element takes, or none.
            Self::Szip(_) | Self::Nbit(_) | Self::ScaleOffset(_) => return usize::MAX,
            // Nor need zeros be stored.
            Self::Blosc2(_) => return usize::MAX,
            Self::Bzip2 => bzip2::MOST_EXPANSION,
            Self::Lzf => lzf::MOST_EXPANSION,
            Self::Blosc => blosc::MOST_EXPANSION,
            Self::Lz4 => lz4::MOST_EXPANSION,
            Self::Bitshuffle(options) => options.most_expansion(),
            Self::Zstd => zstd::MOST_EXPANSION,
        };
        stored_len.saturating_mul(times).saturating_add(64)
    }

    /// Decode `source` to `output`; a checksum is not decoded but taken off, by the pipeline.
    pub(crate) fn decode(
        &self,
        source: &[u8],
        state: &mut State,
        output: &mut Output<'_>,
    ) -> Result<(), DecodeError> {
        match self {
            Self::Deflate => state.inflater.inflate(source, output),
            Self::Shuffle { element_size } => {
                shuffle::unshuffle(*element_size, source, output.room(source.len())?);
                Ok(())
            }
            Self::Fletcher32 => {
                output.room(source.len())?.copy_from_slice(source);
                Ok(())
            }
            Self::Szip(options) => options.decode(source, state, output),
            Self::Nbit(options) => options.decode(source, output),
            Self::ScaleOffset(options) => options.decode(source, output),
            Self::Bzip2 => bzip2::decode(source, output),
            Self::Lzf => lzf::decode(source, output),
            Self::Blosc => blosc::decode(source, state, output),
            Self::Lz4 => lz4::decode(source, output),
            Self::Bitshuffle(options) => options.decode(source, state, output),
            Self::Zstd => state.zstd.decompress(source, output),
            Self::Blosc2(stated) => blosc2::decode(stated, source, state, output),
        }
    }

    /// What decodes single blocks of a chunk; None where the filter stores none
    /// ([`FilterKind::is_in_blocks`]), or the chunk is damaged.
    pub(crate) fn partial<'a>(
        &self,
        stored: &'a [u8],
        state: &mut State,
    ) -> Option<Box<dyn PartialDecoder<'a> + 'a>> {
        Some(match self {
            Self::Lz4 => Box::new(lz4::Lz4Blocks::parse(stored).ok()?),
            Self::Bitshuffle(options) => Box::new(options.blocks(stored).ok()?),
            Self::Blosc => Box::new(blosc::BloscBlocks::parse(stored).ok()?),
            Self::Blosc2(stated) => Box::new(Blosc2Blocks::parse(stated, stored, state).ok()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_filters_are_not_claimed() {
        let shuffle = FilterKind::Shuffle.id();
        assert_eq!(Filter::from_hdf5(32013, &[3]), None);
        assert_eq!(Filter::from_hdf5(shuffle, &[]), None);
        assert_eq!(Filter::from_hdf5(shuffle, &[0]), None);
        assert_eq!(Filter::from_hdf5(shuffle, &[4, 4]), None);
        assert_eq!(Filter::from_hdf5(shuffle, &[8]), Some(Filter::Shuffle { element_size: 8 }));
    }

    #[test]
    fn each_kind_is_one_of_all() {
        for (position, kind) in FilterKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, position);
        }
    }
}
