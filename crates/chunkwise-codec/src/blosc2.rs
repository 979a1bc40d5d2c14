//! How is what HDF5's Blosc2 filter stored decoded ([`encode`]: made)?
//!
//! The filter stores a file format of its own, a contiguous frame ([`frame`]), with one Blosc2
//! chunk in it ([`chunk`]).  Of arrays of two dimensions and more, the chunk's blocks are
//! boxes, and put back in their places ([`grid`]).

mod blocks;
mod chunk;
mod damage;
pub(crate) mod encode;
mod frame;
pub(crate) mod grid;
mod layout;
#[cfg(test)]
mod tests;

use crate::filter::{Decoded, Options};
use crate::state::State;
use crate::{DecodeError, Output};
use chunk::Chunk;
use damage::{DAMAGED, unsupported};
use frame::Frame;
use grid::Grid;

/// What HDF5's filter compares what is stored with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Blosc2 {
    /// Bytes of an element, as stated.
    element_size: usize,
    /// Bytes of a chunk, as stated.
    chunk_nbytes: usize,
    /// A chunk's lengths, as stated; none where it has one dimension.
    shape: Vec<usize>,
}

impl Options for Blosc2 {
    /// None where something else may be stored than what is decoded here: `cd_values` end with
    /// the level, the filter before compressing and the compressor; of arrays of several
    /// dimensions follow how many, and a chunk's lengths, of which the filter refuses too few.
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        /// Lossy: what it drops is not put back.
        const TRUNCATE: u32 = 4;
        const CODECS: [u32; 5] = [0, 1, 2, 4, 5];
        let &[_, _, element_size, chunk_nbytes, ref rest @ ..] = cd_values else { return None };
        let known = rest.get(1).is_none_or(|&filter| filter <= TRUNCATE)
            && rest.get(2).is_none_or(|codec| CODECS.contains(codec))
            && rest.get(3).is_none_or(|&rank| rank > 1 && rest[4..].len() == rank as usize);
        let shape = rest.get(4..).unwrap_or_default().iter().map(|&n| n as usize).collect();
        known.then_some(Self {
            // Elements of variable length are stated to have none.
            element_size: element_size.max(1) as usize,
            chunk_nbytes: chunk_nbytes as usize,
            shape,
        })
    }
}

impl Blosc2 {
    /// Decode what HDF5's Blosc2 filter stored.
    fn decode_whole(&self, stored: &[u8], state: &mut State, output: &mut Output<'_>) -> Decoded {
        let frame = Frame::parse(stored)?;
        let chunk = frame.chunk(state)?;
        // The first block, to which others may be differences.
        let mut first = Vec::new();
        let Some(grid) = checked_grid(self, &frame, &chunk)? else {
            let out = output.room(chunk.len)?;
            for (number, block) in out.chunks_mut(chunk.block_len).enumerate() {
                chunk.decode_block(number, &mut first, state, block)?;
            }
            return Ok(());
        };
        let out = output.room(grid.wanted_nbytes().ok_or(DAMAGED)?)?;
        let mut buffer = std::mem::take(&mut state.block);
        let decoded = decode_boxes(&chunk, &grid, &mut first, state, &mut buffer, out);
        state.block = buffer;
        decoded
    }

    /// Whether the filter takes an array of this shape for a chunk: newer ones compare each
    /// length, and the array has room in what is stated as a chunk's bytes.
    fn states(&self, shape: &[usize], array_nbytes: Option<usize>) -> bool {
        let nbytes = shape.iter().try_fold(self.element_size, |n, &len| n.checked_mul(len));
        (self.shape.is_empty() || self.shape == shape)
            && nbytes == array_nbytes
            && nbytes.is_some_and(|nbytes| nbytes <= self.chunk_nbytes)
    }
}

/// The boxes that the chunk's blocks are, of an array that is the one that the filter states; None
/// where blocks follow each other.
fn checked_grid(
    stated: &Blosc2,
    frame: &Frame<'_>,
    chunk: &Chunk<'_>,
) -> Result<Option<Grid>, DecodeError> {
    let Some((shape, grid)) = frame.grid()? else { return Ok(None) };
    if grid.nbytes() != Some(chunk.len) || grid.block_nbytes() != Some(chunk.block_len) {
        return Err(DAMAGED);
    }
    if !stated.states(&shape, grid.wanted_nbytes()) {
        // Whether that is refused depends on the filter's version.
        return Err(unsupported("an array of another shape than the dataset's filter states"));
    }
    Ok(Some(grid))
}

fn decode_boxes(
    chunk: &Chunk<'_>,
    grid: &Grid,
    first: &mut Vec<u8>,
    state: &mut State,
    buffer: &mut Vec<u8>,
    out: &mut [u8],
) -> Result<(), DecodeError> {
    let nbytes = chunk.block_len;
    for number in 0..grid.blocks() {
        if let Some(range) = grid.run_of(number) {
            chunk.decode_block(number, first, state, &mut out[range])?;
        } else {
            crate::resize(buffer, nbytes).map_err(|_| DecodeError::Memory { nbytes })?;
            chunk.decode_block(number, first, state, buffer)?;
            grid.put(number, buffer, 0, out);
        }
    }
    Ok(())
}
