//! How do a chunk's bytes become the bytes that are stored?

use crate::deflate::DeflateEncoder;
use crate::state::EncoderState;
use crate::streams::Buffers;
use crate::{DeflateEngine, EncodeError, Encoder, FilterKind};

/// One filter of a pipeline that is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The filter.
    pub encoder: Encoder,
    /// Whether a chunk may be stored without it (`H5Z_FLAG_OPTIONAL`).
    pub optional: bool,
}

/// Buffers and state that encoding reuses; one for each thread.
#[derive(Debug, Default)]
pub struct EncodeScratch {
    buffer: Vec<u8>,
    state: EncoderState,
}

impl EncodeScratch {
    pub(crate) fn state(&mut self) -> &mut EncoderState {
        &mut self.state
    }

    /// Give back buffers of more than `most` bytes.
    pub fn trim(&mut self, most: usize) {
        let Buffers { planes, shuffled, boxed } = &mut self.state.buffers;
        for buffer in [&mut self.buffer, planes, shuffled, boxed] {
            if buffer.capacity() > most {
                *buffer = Vec::new();
            }
        }
    }
}

/// A dataset's filters as they are applied, the first first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Encoding {
    steps: Vec<Step>,
}

impl Encoding {
    /// `steps` in pipeline order.
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps }
    }

    /// The filters, in pipeline order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Encode a chunk of `raw` bytes to `out`, whatever was in it; gives the filter mask, of
    /// which bit `i` says that filter `i` was not applied (`H5Dwrite_chunk`).
    ///
    /// A filter that makes nothing smaller is applied all the same.  libhdf5 keeps the mask that a
    /// chunk had when it rewrites the chunk itself and what it makes is as long as what was there:
    /// a mask of ours would then undo other filters than were applied.  Only what no filter of
    /// this kind can take, whatever the data, is left out, as libhdf5 leaves it out.
    ///
    /// # Errors
    /// When a filter that is not optional fails, or there is no memory.
    pub fn encode(
        &self,
        raw: &[u8],
        scratch: &mut EncodeScratch,
        out: &mut Vec<u8>,
    ) -> Result<u32, EncodeError> {
        self.encode_in_steps(raw, scratch, out, |_| ())
    }

    /// The same; `done` is told of each filter once it was applied, or left out.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_in_steps(
        &self,
        raw: &[u8],
        scratch: &mut EncodeScratch,
        out: &mut Vec<u8>,
        mut done: impl FnMut(FilterKind),
    ) -> Result<u32, EncodeError> {
        #[cfg(feature = "simulated")]
        crate::simulated::wait();
        let EncodeScratch { buffer, state } = scratch;
        let mut mask = 0u32;
        // Whether what the next filter takes is in `out`, rather than still `raw`.
        let mut encoded = false;
        for (i, step) in self.steps.iter().enumerate() {
            if encoded && step.encoder.encoder().encode_in_place(out)? {
                done(step.kind());
                continue;
            }
            let source: &[u8] = if encoded { out } else { raw };
            match step.encoder.encoder().encode(source, state, buffer) {
                Ok(true) => {
                    std::mem::swap(buffer, out);
                    encoded = true;
                }
                Ok(false) | Err(EncodeError::Failed { .. }) if step.optional && i < 32 => {
                    mask |= 1 << i;
                }
                Ok(false) => return Err(EncodeError::Failed { filter: step.kind().name() }),
                Err(error) => return Err(error),
            }
            done(step.kind());
        }
        if !encoded {
            out.clear();
            let nbytes = raw.len();
            out.try_reserve_exact(nbytes).map_err(|_| EncodeError::Memory { nbytes })?;
            out.extend_from_slice(raw);
        }
        Ok(mask)
    }
}

impl Encoder {
    /// Deflate as libhdf5 does it at `level`, 0 to 9.
    pub fn deflate(level: u32) -> Self {
        Self::Deflate(DeflateEncoder { level, engine: DeflateEngine::Zlib(level) })
    }
}

impl Step {
    /// What kind of filter it is.
    pub fn kind(&self) -> FilterKind {
        self.encoder.kind()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Deflate, Filter, Fletcher32, Pipeline, Scratch, Shuffle};
    use proptest::prelude::*;

    fn steps(optional: bool) -> Vec<Step> {
        [
            Encoder::Shuffle(Shuffle { element_size: 4 }),
            Encoder::deflate(4),
            Encoder::Fletcher32(Fletcher32),
        ]
        .map(|encoder| Step { encoder, optional })
        .to_vec()
    }

    /// Bytes that repeat nothing: an odd step through 2^32, scrambled.
    fn noise(len: u32) -> Vec<u8> {
        let scrambled = |i: u32| (i.wrapping_mul(0x9e37_79b1) ^ (i << 7)).wrapping_mul(i | 1);
        (0..len).map(|i| (scrambled(i + 1) >> 24) as u8).collect()
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(
            raw in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 1..3000),
        ) {
            let pipeline = Pipeline::new(vec![
                Filter::Shuffle(Shuffle { element_size: 4 }),
                Filter::Deflate(Deflate),
                Filter::Fletcher32(Fletcher32),
            ]);
            let mut stored = vec![9; 7];
            let encoding = Encoding::new(steps(true));
            let mask = encoding.encode(&raw, &mut EncodeScratch::default(), &mut stored).unwrap();
            let mut out = vec![0; raw.len()];
            pipeline.decode(&stored, mask, &mut Scratch::default(), &mut out).unwrap();
            prop_assert_eq!(out, raw);
        }
    }

    #[test]
    fn what_does_not_shrink_is_not_left_out() {
        let (mut scratch, mut out) = (EncodeScratch::default(), Vec::new());
        for raw in [noise(1 << 10), noise(5)] {
            for optional in [true, false] {
                let made = Encoding::new(steps(optional)).encode(&raw, &mut scratch, &mut out);
                assert_eq!(made, Ok(0));
                assert!(out.len() > raw.len() + 4);
            }
        }
    }

    #[test]
    fn each_filter_is_told_of_in_order() {
        for raw in [vec![0; 1 << 10], noise(1 << 10)] {
            let (mut applied, mut out) = (Vec::new(), Vec::new());
            let (encoding, mut scratch) = (Encoding::new(steps(true)), EncodeScratch::default());
            let done = |filter| applied.push(filter);
            encoding.encode_in_steps(&raw, &mut scratch, &mut out, done).unwrap();
            assert_eq!(applied, [FilterKind::Shuffle, FilterKind::Deflate, FilterKind::Fletcher32]);
        }
    }

    #[test]
    fn without_filters_the_bytes_are_stored() {
        let mut out = vec![7; 3];
        let mask = Encoding::default().encode(&[1, 2], &mut EncodeScratch::default(), &mut out);
        assert_eq!((mask, out), (Ok(0), vec![1, 2]));
    }
}
