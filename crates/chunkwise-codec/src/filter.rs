//! What does a filter say and do, and what becomes of the table of all filters (`lib.rs`)?

use crate::partial::PartialDecoder;
use crate::state::{EncoderState, State};
use crate::{DecodeError, EncodeError, Output};

pub(crate) type Decoded = Result<(), DecodeError>;
/// Whether there is anything to be stored.
pub(crate) type Encoded = Result<bool, EncodeError>;

/// A filter's options.
pub(crate) trait Options: Sized {
    /// From client data, as a dataset that has been made states them (`H5Pget_filter2`); None when only
    /// libhdf5 can use them.
    fn from_cd_values(cd_values: &[u32]) -> Option<Self>;
}

/// How chunks are decoded.
pub(crate) trait Decode {
    /// The most bytes that `stored_len` bytes can decode to.  One bit may be all that an element takes,
    /// or none.
    fn most_decoded(&self, _stored_len: usize) -> usize {
        usize::MAX
    }

    /// Decode `stored` to `output`.
    fn decode(&self, stored: &[u8], state: &mut State, output: &mut Output<'_>) -> Decoded;

    /// Whether a chunk is stored in blocks that can be decoded one by one
    /// ([`Blocks`](crate::Blocks)).
    fn is_in_blocks(&self) -> bool {
        false
    }

    /// What decodes single blocks of a chunk; None where there are none, or the chunk is damaged.
    fn partial<'a>(
        &self,
        _stored: &'a [u8],
        _state: &mut State,
    ) -> Option<Box<dyn PartialDecoder<'a> + 'a>> {
        None
    }
}

/// [`Decode::most_decoded`] of a filter that makes of each byte so many at most.
pub(crate) fn expanded(stored_len: usize, times: usize) -> usize {
    stored_len.saturating_mul(times).saturating_add(64)
}

/// How chunks are encoded.
pub(crate) trait Encode {
    /// Whether chunks are encoded with these options; else only libhdf5 can do it.
    fn is_possible(&self) -> bool {
        true
    }

    /// Encode `raw` to `out`, whatever was in it; whether there is anything to be stored.
    ///
    /// A filter that cannot encode these bytes gives false; `out` is then unspecified.  One that
    /// compresses may make them longer.  A filter that libhdf5 may leave out never makes as many
    /// bytes as it was given: libhdf5, when it rewrites the chunk without the filter, would keep
    /// the mask that says that it was applied.
    fn encode(&self, raw: &[u8], state: &mut EncoderState, out: &mut Vec<u8>) -> Encoded;

    /// Encode what is in `bytes` where it is, which some filters can.
    fn encode_in_place(&self, _bytes: &mut Vec<u8>) -> Encoded {
        Ok(false)
    }
}

/// The enums of all filters: of each its variant, HDF5's number for it (`H5Zpublic.h`, or The HDF
/// Group's registry of plugins), its name in chunkwise's grammar of filters, and its options, with
/// which chunks are decoded and encoded.
macro_rules! filters {
    ($($(#[$doc:meta])* $kind:ident = $id:literal, $name:literal, $decoder:ty, $encoder:ty;)*) => {
        /// A kind of filter, whatever its options.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum FilterKind { $($(#[$doc])* $kind,)* }

        impl FilterKind {
            /// All of them.
            pub const ALL: [Self; [$($id),*].len()] = [$(Self::$kind),*];

            /// HDF5's number for it.
            pub const fn id(self) -> i32 {
                match self { $(Self::$kind => $id,)* }
            }

            /// Its name in chunkwise's grammar of filters.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }

        /// A filter that is decoded here; its options are those that decoding needs.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Filter { $($(#[$doc])* $kind($decoder),)* }

        impl Filter {
            /// The filter with HDF5's identifier `id` and client data `cd_values`
            /// (`H5Pget_filter2`); None when only libhdf5 can decode it.
            pub fn from_hdf5(id: i32, cd_values: &[u32]) -> Option<Self> {
                use $crate::filter::Options;
                match id {
                    $($id => <$decoder as Options>::from_cd_values(cd_values).map(Self::$kind),)*
                    _ => None,
                }
            }

            /// What kind it is.
            pub fn kind(&self) -> FilterKind {
                match self { $(Self::$kind(_) => FilterKind::$kind,)* }
            }

            /// Whether it stores a chunk in blocks that can be decoded one by one ([`Blocks`]).
            pub fn is_in_blocks(&self) -> bool {
                self.decoder().is_in_blocks()
            }

            pub(crate) fn decoder(&self) -> &dyn $crate::filter::Decode {
                match self { $(Self::$kind(options) => options,)* }
            }
        }

        /// A filter that is applied here; its options are those that encoding needs.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Encoder { $($(#[$doc])* $kind($encoder),)* }

        impl Encoder {
            /// The filter with HDF5's identifier `id` and client data `cd_values`, as a dataset that
            /// has been made states them (`H5Pget_filter2`); None when only libhdf5 can apply it.
            pub fn from_hdf5(id: i32, cd_values: &[u32]) -> Option<Self> {
                use $crate::filter::Options;
                let stated = match id {
                    $($id => <$encoder as Options>::from_cd_values(cd_values).map(Self::$kind),)*
                    _ => None,
                };
                stated.filter(|stated| stated.encoder().is_possible())
            }

            /// What kind it is.
            pub fn kind(&self) -> FilterKind {
                match self { $(Self::$kind(_) => FilterKind::$kind,)* }
            }

            pub(crate) fn encoder(&self) -> &dyn $crate::filter::Encode {
                match self { $(Self::$kind(options) => options,)* }
            }
        }
    };
}
pub(crate) use filters;

#[cfg(test)]
mod tests {
    use crate::{Filter, FilterKind, Shuffle};

    #[test]
    fn unknown_filters_are_not_claimed() {
        let shuffle = FilterKind::Shuffle.id();
        let known = Filter::Shuffle(Shuffle { element_size: 8 });
        assert_eq!(Filter::from_hdf5(32013, &[3]), None);
        assert_eq!(Filter::from_hdf5(shuffle, &[]), None);
        assert_eq!(Filter::from_hdf5(shuffle, &[0]), None);
        assert_eq!(Filter::from_hdf5(shuffle, &[4, 4]), None);
        assert_eq!(Filter::from_hdf5(shuffle, &[8]), Some(known));
    }
}
