//! How do a chunk's stored bytes become the bytes it holds?

use thiserror::Error;

use crate::deflate::MOST_EXPANSION;
use crate::{Inflater, filter_id, fletcher32, resize, shuffle};

/// A filter that is decoded here; its options are those that decoding needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
}

impl Filter {
    /// The filter with HDF5's identifier `id` and client data `cd_values`
    /// (`H5Pget_filter2`); None when only libhdf5 can decode it.
    pub fn from_hdf5(id: i32, cd_values: &[u32]) -> Option<Self> {
        match id {
            filter_id::DEFLATE => Some(Self::Deflate),
            filter_id::SHUFFLE => {
                // libhdf5 stores the element's size when the dataset is made, and
                // refuses to decode with anything else.
                let &[element_size] = cd_values else { return None };
                let element_size = usize::try_from(element_size).ok()?;
                (element_size > 0).then_some(Self::Shuffle { element_size })
            }
            filter_id::FLETCHER32 => Some(Self::Fletcher32),
            _ => None,
        }
    }
}

/// Why a chunk could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Not a zlib stream, or a damaged one.
    #[error("the deflate stream is damaged")]
    Deflate,
    /// The output is larger than any chunk it could be.
    #[error("the deflate stream holds more than {most} bytes")]
    TooLong {
        /// Bytes after which decoding stopped.
        most: usize,
    },
    /// No memory for what comes out.
    #[error("there is no memory for {nbytes} bytes")]
    Memory {
        /// Bytes needed.
        nbytes: usize,
    },
    /// Fewer bytes than the checksum itself takes.
    #[error("{len} bytes are too few to hold a Fletcher-32 checksum")]
    NoChecksum {
        /// Bytes there are.
        len: usize,
    },
    /// The data is not what was written.
    #[error("the Fletcher-32 checksum is {stored:#010x}, the data's is {computed:#010x}")]
    Checksum {
        /// As stored with the data.
        stored: u32,
        /// As computed now.
        computed: u32,
    },
    /// Far too few bytes for a chunk, seen before decoding.
    #[error("{stored_len} stored bytes cannot decode to the {raw_len} that a chunk holds")]
    CannotHold {
        /// Bytes stored.
        stored_len: usize,
        /// Bytes a chunk holds.
        raw_len: usize,
    },
    /// Too few bytes for a chunk.
    #[error("decoding gave {len} bytes where a chunk holds {expected}")]
    TooShort {
        /// Bytes decoded.
        len: usize,
        /// Bytes a chunk holds.
        expected: usize,
    },
}

/// Buffers and state that decoding reuses; one for each thread.
#[derive(Debug, Default)]
pub struct Scratch {
    buffers: [Vec<u8>; 2],
    inflater: Inflater,
}

impl Scratch {
    /// Give back buffers of more than `most` bytes.
    pub fn trim(&mut self, most: usize) {
        for buffer in &mut self.buffers {
            if buffer.capacity() > most {
                *buffer = Vec::new();
            }
        }
    }
}

/// A dataset's filters, in the order in which they were applied when writing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pipeline {
    filters: Vec<Filter>,
}

/// How much more than a chunk a damaged or strange stream may inflate to before it is
/// given up; what lies beyond a chunk's bytes is thrown away, as libhdf5 does.
const MOST_OVERSIZE: usize = 2;

impl Pipeline {
    /// `filters` in pipeline order, the first applied first when writing.
    pub fn new(filters: Vec<Filter>) -> Self {
        Self { filters }
    }

    /// The filters, in pipeline order.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// Whether a chunk with this filter mask is stored as it is.
    pub fn is_identity(&self, filter_mask: u32) -> bool {
        (0..self.filters.len()).all(|i| masked(filter_mask, i))
    }

    /// Whether `stored_len` bytes could decode to a chunk of `raw_len` at all, so that
    /// no memory need be spent on one that cannot.
    ///
    /// # Errors
    /// [`DecodeError::CannotHold`] when they could not.
    pub fn check_len(
        &self,
        stored_len: usize,
        filter_mask: u32,
        raw_len: usize,
    ) -> Result<(), DecodeError> {
        let applied = (0..self.filters.len()).filter(|&i| !masked(filter_mask, i));
        let most = applied.fold(stored_len, |most, i| match self.filters[i] {
            Filter::Deflate => most.saturating_mul(MOST_EXPANSION).saturating_add(64),
            Filter::Shuffle { .. } | Filter::Fletcher32 => most,
        });
        if most < raw_len { Err(DecodeError::CannotHold { stored_len, raw_len }) } else { Ok(()) }
    }

    /// Decode `stored` into `out`, which is of exactly a chunk's length.
    ///
    /// Bit `i` of `filter_mask` says that filter `i` was not applied to this chunk
    /// (`H5Dget_chunk_info`).  Bytes that decode beyond a chunk's length are dropped,
    /// as libhdf5 drops them.
    ///
    /// # Errors
    /// When a filter finds damage or fewer bytes come out than a chunk holds; `out` is
    /// then unspecified.
    pub fn decode(
        &self,
        stored: &[u8],
        filter_mask: u32,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        self.decode_in_steps(stored, filter_mask, scratch, out, |_| ())
    }

    /// As [`decode`](Self::decode); `done` is called after each filter.
    ///
    /// # Errors
    /// The same.
    pub fn decode_in_steps(
        &self,
        stored: &[u8],
        filter_mask: u32,
        scratch: &mut Scratch,
        out: &mut [u8],
        mut done: impl FnMut(Filter),
    ) -> Result<(), DecodeError> {
        let Scratch { buffers: [first, second], inflater } = scratch;
        // What the next stage reads: the stored bytes at first (None), then that many
        // bytes of `from`.
        let mut current: Option<usize> = None;
        let (mut from, mut to) = (&mut *first, &mut *second);
        let steps: Vec<usize> =
            (0..self.filters.len()).rev().filter(|&i| !masked(filter_mask, i)).collect();
        for (number, &i) in steps.iter().enumerate() {
            let last = number + 1 == steps.len();
            let source: &[u8] = match current {
                None => stored,
                Some(len) => &from[..len],
            };
            let filter = self.filters[i];
            match filter {
                Filter::Deflate => {
                    let expected = self.len_before(i, filter_mask, out.len());
                    if last && inflater.inflate_into(source, out)? == Some(out.len()) {
                        done(filter);
                        return Ok(());
                    }
                    let most = out.len().saturating_mul(MOST_OVERSIZE).saturating_add(4096);
                    inflater.inflate_growing(source, to, expected, most)?;
                    done(filter);
                }
                Filter::Shuffle { element_size } => {
                    if last && source.len() == out.len() {
                        shuffle::unshuffle(element_size, source, out);
                        done(filter);
                        return Ok(());
                    }
                    let nbytes = source.len();
                    resize(to, nbytes).map_err(|_| DecodeError::Memory { nbytes })?;
                    shuffle::unshuffle(element_size, source, to);
                    done(filter);
                }
                Filter::Fletcher32 => {
                    let len = fletcher32::verify(source)?.len();
                    done(filter);
                    if current.is_some() {
                        // In place: only the end moves.
                        current = Some(len);
                        continue;
                    }
                    if last {
                        return finish(&stored[..len], out);
                    }
                    resize(to, len).map_err(|_| DecodeError::Memory { nbytes: len })?;
                    to.copy_from_slice(&stored[..len]);
                }
            }
            std::mem::swap(&mut from, &mut to);
            current = Some(from.len());
        }
        match current {
            None => finish(stored, out),
            Some(len) => finish(&from[..len], out),
        }
    }

    /// Bytes that came into filter `i` when a chunk of `raw_len` bytes was written, as
    /// far as the filters before it say; a guess where another deflate comes first.
    fn len_before(&self, i: usize, filter_mask: u32, raw_len: usize) -> usize {
        let checksums = (0..i)
            .filter(|&k| !masked(filter_mask, k) && self.filters[k] == Filter::Fletcher32)
            .count();
        raw_len.saturating_add(checksums * fletcher32::CHECKSUM_LEN)
    }
}

/// Whether bit `i` of the mask is set; filters beyond 32 are always applied.
fn masked(filter_mask: u32, i: usize) -> bool {
    u32::try_from(i).ok().and_then(|i| filter_mask.checked_shr(i)).is_some_and(|m| m & 1 == 1)
}

fn finish(decoded: &[u8], out: &mut [u8]) -> Result<(), DecodeError> {
    match decoded.get(..out.len()) {
        Some(chunk) => {
            out.copy_from_slice(chunk);
            Ok(())
        }
        None => Err(DecodeError::TooShort { len: decoded.len(), expected: out.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libdeflater::{CompressionLvl, Compressor};
    use proptest::prelude::*;

    fn encode(filters: &[Filter], mask: u32, raw: &[u8]) -> Vec<u8> {
        let mut data = raw.to_vec();
        for (i, filter) in filters.iter().enumerate() {
            if masked(mask, i) {
                continue;
            }
            data = match *filter {
                Filter::Deflate => {
                    let mut c = Compressor::new(CompressionLvl::new(4).unwrap());
                    let mut out = vec![0; c.zlib_compress_bound(data.len())];
                    let n = c.zlib_compress(&data, &mut out).unwrap();
                    out.truncate(n);
                    out
                }
                Filter::Shuffle { element_size } => {
                    let elements = data.len() / element_size;
                    let mut out: Vec<u8> = (0..element_size)
                        .flat_map(|j| (0..elements).map(move |i| (i, j)))
                        .map(|(i, j)| data[i * element_size + j])
                        .collect();
                    out.extend(&data[elements * element_size..]);
                    out
                }
                Filter::Fletcher32 => {
                    let sum = fletcher32::checksum(&data);
                    data.extend(sum.to_le_bytes());
                    data
                }
            };
        }
        data
    }

    fn filters() -> impl Strategy<Value = Vec<Filter>> {
        let one = prop_oneof![
            Just(Filter::Deflate),
            (1usize..9).prop_map(|element_size| Filter::Shuffle { element_size }),
            Just(Filter::Fletcher32),
        ];
        prop::collection::vec(one, 0..5)
    }

    proptest! {
        /// Any order and repetition of filters, with any of them masked.
        #[test]
        fn decodes_what_was_encoded(
            filters in filters(),
            mask in 0u32..32,
            raw in prop::collection::vec(0u8..4, 0..2000),
        ) {
            let stored = encode(&filters, mask, &raw);
            let mut out = vec![9; raw.len()];
            let mut scratch = Scratch::default();
            let mut done = Vec::new();
            let applied = filters.iter().enumerate().filter(|&(i, _)| !masked(mask, i));
            let applied: Vec<Filter> = applied.map(|(_, &filter)| filter).rev().collect();
            Pipeline::new(filters)
                .decode_in_steps(&stored, mask, &mut scratch, &mut out, |filter| done.push(filter))
                .unwrap();
            prop_assert_eq!(out, raw);
            prop_assert_eq!(done, applied);
        }

        /// Bytes from anywhere give an error or a result, never a panic.
        #[test]
        fn survives_any_bytes(
            filters in filters(),
            mask in any::<u32>(),
            stored in prop::collection::vec(any::<u8>(), 0..300),
            len in 0usize..400,
        ) {
            let mut scratch = Scratch::default();
            let _ = Pipeline::new(filters).decode(&stored, mask, &mut scratch, &mut vec![0; len]);
        }

        /// A real stream with bytes changed, cut off or appended.
        #[test]
        fn survives_damage(
            filters in filters(),
            raw in prop::collection::vec(0u8..4, 1..500),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut stored = encode(&filters, 0, &raw);
            let at = at.index(stored.len());
            stored[at] = byte;
            stored.truncate(cut.index(stored.len() + 1));
            let mut scratch = Scratch::default();
            let _ = Pipeline::new(filters).decode(&stored, 0, &mut scratch, &mut vec![0; raw.len()]);
        }
    }

    #[test]
    fn a_short_chunk_is_an_error_and_a_long_one_is_cut() {
        let deflate = Pipeline::new(vec![Filter::Deflate]);
        let stored = encode(&[Filter::Deflate], 0, b"abcdefgh");
        let mut scratch = Scratch::default();
        let mut longer = [0; 9];
        assert_eq!(
            deflate.decode(&stored, 0, &mut scratch, &mut longer),
            Err(DecodeError::TooShort { len: 8, expected: 9 })
        );
        let mut shorter = [0; 3];
        deflate.decode(&stored, 0, &mut scratch, &mut shorter).unwrap();
        assert_eq!(&shorter, b"abc");
    }

    #[test]
    fn what_cannot_be_a_chunk_is_seen_before_decoding() {
        let pipeline = Pipeline::new(vec![Filter::Shuffle { element_size: 4 }, Filter::Deflate]);
        assert!(pipeline.check_len(17, 0, 17 * 1032 + 64).is_ok());
        assert!(pipeline.check_len(17, 0, 17 * 1032 + 65).is_err());
        assert!(pipeline.check_len(17, 0b10, 18).is_err());
        let zeros = vec![0; 10_000_000];
        let stored = encode(&[Filter::Deflate], 0, &zeros);
        assert!(
            Pipeline::new(vec![Filter::Deflate]).check_len(stored.len(), 0, zeros.len()).is_ok()
        );
    }

    #[test]
    fn bytes_after_the_stream_are_ignored() {
        let mut stored = encode(&[Filter::Deflate], 0, b"abcdefgh");
        stored.extend(b"trailing");
        let mut out = [0; 8];
        Pipeline::new(vec![Filter::Deflate])
            .decode(&stored, 0, &mut Scratch::default(), &mut out)
            .unwrap();
        assert_eq!(&out, b"abcdefgh");
    }

    #[test]
    fn a_bomb_is_given_up() {
        let stored = encode(&[Filter::Deflate], 0, &vec![0; 10_000_000]);
        let error = Pipeline::new(vec![Filter::Deflate])
            .decode(&stored, 0, &mut Scratch::default(), &mut [0; 100])
            .unwrap_err();
        assert!(matches!(error, DecodeError::TooLong { .. }));
    }

    #[test]
    fn unknown_filters_are_not_claimed() {
        assert_eq!(Filter::from_hdf5(32015, &[3]), None);
        assert_eq!(Filter::from_hdf5(filter_id::SHUFFLE, &[]), None);
        assert_eq!(Filter::from_hdf5(filter_id::SHUFFLE, &[0]), None);
        assert_eq!(Filter::from_hdf5(filter_id::SHUFFLE, &[4, 4]), None);
        assert_eq!(
            Filter::from_hdf5(filter_id::SHUFFLE, &[8]),
            Some(Filter::Shuffle { element_size: 8 })
        );
    }
}
