//! How are single blocks of a frame's chunk decoded?

use std::ops::Range;

use super::chunk::Chunk;
use super::damage::{DAMAGED, unsupported};
use super::frame::Frame;
use super::grid::Grid;
use super::{Blosc2, checked_grid};
use crate::state::State;
use crate::{DecodeError, resize};

/// The chunk of a frame, of which each block can be decoded by itself.
#[derive(Debug)]
pub(crate) struct Blosc2Blocks<'a> {
    chunk: Chunk<'a>,
    /// Where the blocks are boxes of an array.
    grid: Option<Grid>,
    nbytes: usize,
}

impl<'a> Blosc2Blocks<'a> {
    /// The blocks of a frame.
    pub(crate) fn parse(
        stated: &Blosc2,
        stored: &'a [u8],
        state: &mut State,
    ) -> Result<Self, DecodeError> {
        let frame = Frame::parse(stored)?;
        let chunk = frame.chunk(state)?;
        let grid = checked_grid(stated, &frame, &chunk)?;
        let nbytes = match &grid {
            Some(grid) => grid.wanted_nbytes().ok_or(DAMAGED)?,
            None => chunk.len,
        };
        if !chunk.is_independent() {
            return Err(unsupported("differences between blocks"));
        }
        Ok(Self { chunk, grid, nbytes })
    }

    pub(crate) fn are_boxes(&self) -> bool {
        self.grid.is_some()
    }

    /// Bytes of the whole chunk, decoded.
    pub(crate) fn nbytes(&self) -> usize {
        self.nbytes
    }

    pub(crate) fn block_len(&self) -> usize {
        self.chunk.block_len
    }

    /// How many blocks there are.
    pub(crate) fn count(&self) -> usize {
        match &self.grid {
            Some(grid) => grid.blocks(),
            None => self.chunk.len.div_ceil(self.chunk.block_len),
        }
    }

    /// The stored bytes of each block; None where the table of them makes no sense.
    pub(crate) fn places(&self) -> Option<Vec<&'a [u8]>> {
        self.chunk.places(self.count())
    }

    /// Ranges of the array that blocks in a row make up.
    pub(crate) fn slabs(&self) -> usize {
        self.grid.as_ref().map_or(0, Grid::slabs)
    }

    /// Such a range, in bytes, and its blocks.
    pub(crate) fn slab(&self, number: usize) -> (Range<usize>, Range<usize>) {
        self.grid.as_ref().map_or((0..0, 0..0), |grid| grid.slab(number))
    }

    /// Bytes of a row of a box, or a block where there are none.
    pub(crate) fn row_len(&self) -> usize {
        self.grid.as_ref().map_or(self.chunk.block_len, Grid::row_len)
    }

    /// Mark the boxes in which these bytes of the array are.
    pub(crate) fn mark(&self, bytes: Range<usize>, marks: &mut [bool]) {
        if let Some(grid) = &self.grid {
            grid.mark(bytes, marks);
        }
    }

    /// Decode a block to its place; `out` is the array from byte `begin` on.
    pub(crate) fn decode(
        &self,
        number: usize,
        stored: &[u8],
        state: &mut State,
        begin: usize,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        let run = match &self.grid {
            None => {
                let start = number * self.chunk.block_len;
                Some(start..(start + self.chunk.block_len).min(self.nbytes))
            }
            Some(grid) => grid.run_of(number),
        };
        if let Some(run) = run {
            let out = &mut out[run.start - begin..run.end - begin];
            return self.chunk.decode_bytes(stored, state, out);
        }
        let nbytes = self.chunk.block_len;
        let mut block = std::mem::take(&mut state.block);
        let sized = resize(&mut block, nbytes).map_err(|_| DecodeError::Memory { nbytes });
        let decoded = sized.and_then(|()| self.chunk.decode_bytes(stored, state, &mut block));
        if let (Ok(()), Some(grid)) = (&decoded, &self.grid) {
            grid.put(number, &block, begin, out);
        }
        state.block = block;
        decoded
    }

    /// Append a box of the array to `block`, as long as all are.
    pub(crate) fn take(&self, number: usize, array: &[u8], block: &mut Vec<u8>) {
        if let Some(grid) = &self.grid {
            let begin = block.len();
            block.resize(begin + self.chunk.block_len, 0);
            grid.take(number, array, &mut block[begin..]);
        }
    }

    /// Put a box back into the array.
    pub(crate) fn put(&self, number: usize, block: &[u8], array: &mut [u8]) {
        if let Some(grid) = &self.grid {
            grid.put(number, block, 0, array);
        }
    }

    /// Put those of its bytes back that are in `runs`: bytes of the array, in order and apart.
    pub(crate) fn put_some(
        &self,
        number: usize,
        block: &[u8],
        runs: &[Range<usize>],
        array: &mut [u8],
    ) {
        if let Some(grid) = &self.grid {
            grid.put_some(number, block, runs, array);
        }
    }
}
