//! How is what HDF5's Blosc2 filter stored decoded ([`encode`]: made)?
//!
//! The filter stores a file format of its own, a contiguous frame ([`frame`]), with one Blosc2
//! chunk in it ([`chunk`]).  Of arrays of two dimensions and more, the chunk's blocks are
//! boxes, and put back in their places ([`grid`]).

mod chunk;
mod damage;
pub(crate) mod encode;
mod frame;
mod grid;
mod layout;
#[cfg(test)]
mod tests;

use crate::state::State;
use crate::{DecodeError, Output};
use chunk::Chunk;
use damage::DAMAGED;
use frame::Frame;

/// Whether all that HDF5's filter writes with these `cd_values` can be decoded here: they
/// end with the level, the filter before compressing and the compressor; of arrays of several
/// dimensions follow how many, and a chunk's lengths, of which the filter refuses too few.
pub(crate) fn knows(cd_values: &[u32]) -> bool {
    /// Lossy: what it drops is not put back.
    const TRUNCATE: u32 = 4;
    const CODECS: [u32; 5] = [0, 1, 2, 4, 5];
    cd_values.get(5).is_none_or(|&filter| filter <= TRUNCATE)
        && cd_values.get(6).is_none_or(|codec| CODECS.contains(codec))
        && cd_values.get(7).is_none_or(|&rank| cd_values[8..].len() == rank as usize)
}

/// Decode what HDF5's Blosc2 filter stored.
pub(crate) fn decode(
    stored: &[u8],
    state: &mut State,
    output: &mut Output<'_>,
) -> Result<(), DecodeError> {
    let frame = Frame::parse(stored)?;
    let chunk = frame.chunk(state)?;
    // The first block, to which others may be differences.
    let mut first = Vec::new();
    let Some(grid) = frame.grid()? else {
        let out = output.room(chunk.len)?;
        for (number, block) in out.chunks_mut(chunk.block_len).enumerate() {
            chunk.decode_block(number, &mut first, state, block)?;
        }
        return Ok(());
    };
    if grid.nbytes() != Some(chunk.len) || grid.block_nbytes() != Some(chunk.block_len) {
        return Err(DAMAGED);
    }
    let out = output.room(grid.wanted_nbytes().ok_or(DAMAGED)?)?;
    let mut buffer = std::mem::take(&mut state.block);
    let decoded = decode_boxes(&chunk, &grid, &mut first, state, &mut buffer, out);
    state.block = buffer;
    decoded
}

fn decode_boxes(
    chunk: &Chunk<'_>,
    grid: &grid::Grid,
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
            grid.put(number, buffer, out);
        }
    }
    Ok(())
}
