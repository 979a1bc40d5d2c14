//! How is a part of a chunk decoded, by the filter that stores it in blocks?
//!
//! Such a filter gives a [`PartialDecoder`] of a chunk ([`Decode::partial`](crate::filter::Decode)): where its
//! blocks are, and how one of them is decoded.

use std::fmt::Debug;
use std::ops::Range;

use crate::DecodeError;
use crate::blosc2::grid::Grid;
use crate::bytes::Reader;
use crate::cut::Cut;
use crate::state::State;

/// What a filter makes of the stored bytes of one chunk, to decode its blocks one by one.
pub(crate) trait PartialDecoder<'a>: Debug + Send + Sync {
    /// The chunk's bytes, and those of a block.
    fn cut(&self) -> Cut;

    /// Where the first block is stored, if each other one begins where the one before ends: these are
    /// found one after the other.
    fn begins_at(&self) -> Option<usize> {
        None
    }

    /// The stored bytes of the next block, of `len` bytes when decoded.
    fn next_block(&self, _len: usize, _stored: &mut Reader<'a>) -> Option<&'a [u8]> {
        None
    }

    /// The stored bytes of all blocks, if something else says where each one is; None where that makes
    /// no sense.
    fn listed(&self) -> Option<Vec<&'a [u8]>> {
        None
    }

    /// Where the blocks go that are boxes of an array; otherwise each is a run of the chunk.
    fn boxes(&self) -> Option<&Grid> {
        None
    }

    /// Decode a block.
    fn decode(&self, stored: &[u8], state: &mut State, out: &mut [u8]) -> Result<(), DecodeError>;

    /// Whether some bytes of a block cost less than all of them.
    fn gives_some(&self) -> bool {
        false
    }

    /// If that is so: decode `runs` of a block, which is a run of the chunk, to their places in `out`,
    /// which is the block; its other bytes are unspecified.  What is stored is copied to `copied`
    /// first where it has to stay the same meanwhile.
    fn decode_some(
        &self,
        stored: &[u8],
        _runs: &[Range<usize>],
        _copied: &mut Vec<u8>,
        state: &mut State,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        self.decode(stored, state, out)
    }
}
