//! Which filters are applied here, and what do their options mean when writing?

use crate::deflater::Deflater;
use crate::{DeflateEngine, EncodeError, FilterKind, fletcher32, resize, shuffle};

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
            _ => None,
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
        }
    }

    /// Whether a chunk that it does not make smaller is better stored without it.
    pub(crate) fn is_for_size(&self) -> bool {
        matches!(self, Self::Deflate { .. })
    }

    /// Encode `source` to `out`, whatever was in it; whether there is anything to be stored.
    ///
    /// A filter that cannot encode these bytes gives false; `out` is then unspecified.  One that
    /// compresses may make them longer: see [`Encoder::is_for_size`].
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
        }
    }
}

/// What encoders keep from chunk to chunk.
#[derive(Default)]
pub(crate) struct EncoderState {
    deflater: Deflater,
}

impl std::fmt::Debug for EncoderState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EncoderState")
    }
}
