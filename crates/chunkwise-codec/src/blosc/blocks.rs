//! How is a Blosc chunk decoded, or single blocks of it?

use std::ops::Range;

use super::{Blosc, DAMAGED, HEADER_LEN, Head, Streams};
use crate::cut::{Cut, places};
use crate::filter::{Decode, Decoded, expanded};
use crate::partial::PartialDecoder;
use crate::state::State;
use crate::{DecodeError, Output, zstd};

/// Bytes that are stored as they are are taken this many at a time.
const AS_IT_IS_NBYTES: usize = 64 << 10;

/// A chunk, of which each block can be decoded by itself.
#[derive(Debug)]
struct BloscBlocks<'a> {
    stored: &'a [u8],
    cut: Cut,
    /// None where the bytes are stored as they are.
    streams: Option<Streams>,
}

impl Decode for Blosc {
    fn most_decoded(&self, stored_len: usize) -> usize {
        // No compressor inside gives more.
        expanded(stored_len, zstd::MOST_EXPANSION)
    }

    fn decode(&self, stored: &[u8], state: &mut State, output: &mut Output<'_>) -> Decoded {
        self.decode_whole(stored, state, output)
    }

    fn is_in_blocks(&self) -> bool {
        true
    }

    fn partial<'a>(
        &self,
        stored: &'a [u8],
        _: &mut State,
    ) -> Option<Box<dyn PartialDecoder<'a> + 'a>> {
        Some(Box::new(BloscBlocks::parse(stored).ok()?))
    }
}

impl<'a> BloscBlocks<'a> {
    fn parse(stored: &'a [u8]) -> Result<Self, DecodeError> {
        let Head { mut cut, stored_len, streams } = Head::parse(stored)?;
        if streams.is_none() {
            cut.block_len = AS_IT_IS_NBYTES;
        }
        Ok(Self { stored: &stored[..stored_len], cut, streams })
    }
}

impl<'a> PartialDecoder<'a> for BloscBlocks<'a> {
    fn cut(&self) -> Cut {
        self.cut
    }

    fn listed(&self) -> Option<Vec<&'a [u8]>> {
        if self.streams.is_some() {
            return places(self.stored, HEADER_LEN, self.cut.count());
        }
        let bytes = self.stored.get(HEADER_LEN..)?;
        (0..self.cut.count()).map(|number| bytes.get(self.cut.run(number))).collect()
    }

    fn decode(&self, stored: &[u8], state: &mut State, out: &mut [u8]) -> Result<(), DecodeError> {
        match &self.streams {
            Some(streams) => streams.decode(stored, &mut stored.len(), state, out),
            None => {
                out.copy_from_slice(stored);
                Ok(())
            }
        }
    }

    fn gives_some(&self) -> bool {
        self.streams.is_none_or(|streams| streams.gives_some())
    }

    fn decode_some(
        &self,
        stored: &[u8],
        runs: &[Range<usize>],
        copied: &mut Vec<u8>,
        state: &mut State,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        match &self.streams {
            Some(streams) => streams.decode_some(stored, runs, copied, state, out),
            None => runs.iter().try_for_each(|run| {
                out[run.clone()].copy_from_slice(stored.get(run.clone()).ok_or(DAMAGED)?);
                Ok(())
            }),
        }
    }
}
