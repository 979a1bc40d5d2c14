//! How is a frame's chunk decoded, or single blocks of it?

use super::chunk::Chunk;
use super::damage::{DAMAGED, unsupported};
use super::frame::Frame;
use super::grid::Grid;
use super::{Blosc2, checked_grid};
use crate::cut::Cut;
use crate::filter::{Decode, Decoded};
use crate::partial::PartialDecoder;
use crate::state::State;
use crate::{DecodeError, Output};

/// The chunk of a frame, of which each block can be decoded by itself.
#[derive(Debug)]
struct Blosc2Blocks<'a> {
    chunk: Chunk<'a>,
    /// Where the blocks are boxes of an array.
    grid: Option<Grid>,
    cut: Cut,
}

impl Decode for Blosc2 {
    fn decode(&self, stored: &[u8], state: &mut State, output: &mut Output<'_>) -> Decoded {
        self.decode_whole(stored, state, output)
    }

    fn is_in_blocks(&self) -> bool {
        true
    }

    fn partial<'a>(
        &self,
        stored: &'a [u8],
        state: &mut State,
    ) -> Option<Box<dyn PartialDecoder<'a> + 'a>> {
        Some(Box::new(Blosc2Blocks::parse(self, stored, state).ok()?))
    }
}

impl<'a> Blosc2Blocks<'a> {
    /// The blocks of a frame.
    fn parse(stated: &Blosc2, stored: &'a [u8], state: &mut State) -> Result<Self, DecodeError> {
        let frame = Frame::parse(stored)?;
        let chunk = frame.chunk(state)?;
        let grid = checked_grid(stated, &frame, &chunk)?;
        let len = match &grid {
            Some(grid) => grid.wanted_nbytes().ok_or(DAMAGED)?,
            None => chunk.len,
        };
        if !chunk.is_independent() {
            return Err(unsupported("differences between blocks"));
        }
        let cut = Cut { len, block_len: chunk.block_len };
        Ok(Self { chunk, grid, cut })
    }
}

impl<'a> PartialDecoder<'a> for Blosc2Blocks<'a> {
    fn cut(&self) -> Cut {
        self.cut
    }

    fn listed(&self) -> Option<Vec<&'a [u8]>> {
        self.chunk.places(self.grid.as_ref().map_or_else(|| self.cut.count(), Grid::blocks))
    }

    fn boxes(&self) -> Option<&Grid> {
        self.grid.as_ref()
    }

    fn decode(&self, stored: &[u8], state: &mut State, out: &mut [u8]) -> Result<(), DecodeError> {
        self.chunk.decode_bytes(stored, state, out)
    }
}
