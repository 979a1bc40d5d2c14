//! How is one chunk encoded by several threads, to the very bytes that one of them would make?
//!
//! Filters that store blocks encode each by itself.  So a chunk can be encoded some blocks at a
//! time, in any order ([`BlockEncoding::encode`]), and [`BlockEncoding::join`] puts the parts
//! together.

use std::ops::Range;

use crate::blosc2::encode::Blosc2Parts;
use crate::filter::Encode;
use crate::lz4::{HEADER_LEN, Lz4};
use crate::{
    BitshuffleEncoder, BloscEncoder, EncodeError, EncodeScratch, EncodedBlocks, Encoder, Encoding,
};

/// How a chunk of a certain length is encoded block by block.
#[derive(Debug)]
pub struct BlockEncoding<'e> {
    coder: Coder<'e>,
    /// Bytes of the chunk, and of a block; of boxes, only how many there are is told by that.
    len: usize,
    block_len: usize,
}

#[derive(Debug)]
enum Coder<'e> {
    Bitshuffle(&'e BitshuffleEncoder),
    Lz4(&'e Lz4),
    Blosc(&'e BloscEncoder),
    Blosc2(Blosc2Parts<'e>),
}

impl Encoding {
    /// How a chunk of `len` bytes is encoded block by block; None where it can only be encoded as
    /// one.
    pub fn by_blocks(&self, len: usize) -> Option<BlockEncoding<'_>> {
        let [step] = self.steps() else { return None };
        let (coder, block_len) = match &step.encoder {
            Encoder::Bitshuffle(encoder) => {
                (Coder::Bitshuffle(encoder), encoder.block_len_of(len)?)
            }
            Encoder::Lz4(encoder) => (Coder::Lz4(encoder), encoder.block_nbytes as usize),
            Encoder::Blosc(encoder) => (Coder::Blosc(encoder), encoder.packed_block_len(len)?),
            Encoder::Blosc2(encoder) => {
                let parts = encoder.parts(len)?;
                let (blocks_len, block_len) = (parts.blocks_len(), parts.block_len());
                return (block_len > 0).then_some(BlockEncoding {
                    coder: Coder::Blosc2(parts),
                    len: blocks_len,
                    block_len,
                });
            }
            _ => return None,
        };
        (block_len > 0).then_some(BlockEncoding { coder, len, block_len })
    }
}

impl BlockEncoding<'_> {
    /// How many blocks there are.
    pub fn count(&self) -> usize {
        self.len.div_ceil(self.block_len)
    }

    /// Encode some blocks of the chunk `raw`; None where it has to be encoded as one, to find out
    /// what is wrong.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn encode(
        &self,
        raw: &[u8],
        numbers: Range<usize>,
        scratch: &mut EncodeScratch,
    ) -> Result<Option<EncodedBlocks>, EncodeError> {
        let (state, mut made) = (scratch.state(), EncodedBlocks::default());
        let part = || {
            let end = (numbers.end * self.block_len).min(self.len);
            &raw[numbers.start * self.block_len..end]
        };
        let done = match &self.coder {
            // What is before the blocks is that of a chunk of these blocks alone.
            Coder::Bitshuffle(encoder) => {
                let done = encoder.encode(part(), state, &mut made.bytes)?;
                made.bytes.drain(..encoder.header_len().min(made.bytes.len()));
                done
            }
            Coder::Lz4(encoder) => {
                let done = encoder.encode(part(), state, &mut made.bytes)?;
                made.bytes.drain(..HEADER_LEN.min(made.bytes.len()));
                done
            }
            Coder::Blosc(encoder) => encoder.put_part(
                part(),
                self.block_len,
                &mut state.buffers,
                &mut state.streams,
                &mut made,
            )?,
            Coder::Blosc2(parts) => {
                parts.put_part(raw, numbers, &mut state.buffers, &mut state.streams, &mut made)?
            }
        };
        Ok(done.then_some(made))
    }

    /// Put all blocks of the chunk together, which are in order; gives the filter mask, or None
    /// where the chunk has to be encoded as one.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn join(
        &self,
        parts: &[EncodedBlocks],
        out: &mut Vec<u8>,
    ) -> Result<Option<u32>, EncodeError> {
        out.clear();
        let nbytes = parts.iter().map(|part| part.bytes.len()).sum::<usize>();
        let nbytes = nbytes.saturating_add(4 * self.count() + (1 << 10));
        out.try_reserve_exact(nbytes).map_err(|_| EncodeError::Memory { nbytes })?;
        let sound = match &self.coder {
            Coder::Bitshuffle(encoder) => {
                encoder.put_header(self.len, out);
                true
            }
            Coder::Lz4(encoder) => {
                encoder.put_header(self.len, out);
                true
            }
            Coder::Blosc(encoder) => encoder.put_head(self.len, self.block_len, parts, out),
            Coder::Blosc2(encoder) => encoder.put_head(parts, out),
        };
        if !sound {
            return Ok(None);
        }
        parts.iter().for_each(|part| out.extend_from_slice(&part.bytes));
        if let Coder::Blosc2(encoder) = &self.coder {
            encoder.finish(out);
        }
        Ok(Some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoded_blocks::SLACK_NBYTES;
    use crate::{Fletcher32, Step};
    use proptest::prelude::*;

    fn encoders() -> impl Strategy<Value = (i32, Vec<u32>, usize)> {
        let size = prop_oneof![Just(1u32), Just(2), Just(4), Just(8), Just(3)];
        let bitshuffle =
            (size.clone(), 0u32..4, prop_oneof![Just(0u32), Just(2), Just(3)], 1usize..9000)
                .prop_map(|(size, eights, inner, elements)| {
                    (32008, vec![0, 4, size, eights * 64, inner, 3], elements * size as usize)
                });
        let lz4 = (20u32..5000, 1usize..30_000).prop_map(|(block, len)| (32004, vec![block], len));
        let codec = prop_oneof![Just(0u32), Just(1), Just(2), Just(4), Just(5)];
        let blosc = (size.clone(), 0u32..7, 0u32..3, codec.clone(), 1usize..400_000).prop_map(
            |(size, level, shuffle, codec, len)| {
                (32001, vec![2, 2, size, 0, level, shuffle, codec], len)
            },
        );
        let blosc2 = (size.clone(), 0u32..7, 0u32..4, codec, 1usize..30_000, 20u32..9000).prop_map(
            |(size, level, filter, codec, elements, block)| {
                let len = elements * size as usize;
                (32026, vec![2, block, size, len as u32, level, filter, codec], len)
            },
        );
        let boxes = (size, 0u32..7, 0u32..4, prop::collection::vec(1u32..40, 2..5), 20u32..9000)
            .prop_filter("not too large", |options| options.3.iter().product::<u32>() < 60_000)
            .prop_map(|(size, level, filter, shape, block)| {
                let len = size * shape.iter().product::<u32>();
                let mut options = vec![2, block, size, len, level, filter, 1, shape.len() as u32];
                options.extend(shape);
                (32026, options, len as usize)
            });
        prop_oneof![bitshuffle, lz4, blosc, blosc2, boxes]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Also where a chunk hardly shrinks, or does not.
        #[test]
        fn parts_make_up_what_one_thread_makes(
            (id, options, len) in encoders(),
            seed in any::<u64>(),
            noise in 0usize..101,
            taken in 1usize..9,
        ) {
            let mut state = seed | 1;
            let raw: Vec<u8> = (0..len).map(|at| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                if at / 300 % 100 < noise { (state >> 56) as u8 } else { (at / 100) as u8 }
            }).collect();
            let encoder = Encoder::from_hdf5(id, &options).unwrap();
            let encoding = Encoding::new(vec![Step { encoder, optional: false }]);
            let (mut scratch, mut expected) = (EncodeScratch::default(), Vec::new());
            encoding.encode(&raw, &mut scratch, &mut expected).unwrap();
            let Some(blocks) = encoding.by_blocks(len) else {
                // Stored as it is, or as differences to another block.
                prop_assert!(id == 32001 || id == 32026);
                prop_assert!(options[4] == 0 || options[5] == 3 || len < 128, "{:?}", options);
                return Ok(());
            };
            let mut parts = Vec::new();
            for first in (0..blocks.count()).step_by(taken) {
                let numbers = first..(first + taken).min(blocks.count());
                parts.push(blocks.encode(&raw, numbers, &mut scratch).unwrap().unwrap());
            }
            let mut out = vec![1, 2, 3];
            if blocks.join(&parts, &mut out).unwrap().is_some() {
                prop_assert!(out == expected);
            } else {
                prop_assert!(expected.len() + SLACK_NBYTES > len);
            }
        }
    }

    #[test]
    fn several_filters_are_applied_to_the_whole() {
        let lz4 = || Step { encoder: Encoder::Lz4(Lz4 { block_nbytes: 1000 }), optional: true };
        let two = vec![lz4(), Step { encoder: Encoder::Fletcher32(Fletcher32), optional: false }];
        assert!(Encoding::new(two).by_blocks(5000).is_none());
        assert!(Encoding::new(vec![]).by_blocks(5000).is_none());
        let one = Encoding::new(vec![lz4()]);
        assert_eq!(one.by_blocks(5001).map(|blocks| blocks.count()), Some(6));
    }
}
