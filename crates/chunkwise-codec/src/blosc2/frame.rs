//! Where in a contiguous frame is its chunk, and which boxes are the chunk's blocks?
//!
//! A frame (`README_CFRAME_FORMAT.rst` of C-Blosc2) is a header in msgpack with lengths and
//! named "metalayers", then chunks, then a chunk that lists where they are.  The metalayer
//! "b2nd" has the shapes of an array, of its chunks and of their blocks.

use super::chunk::Chunk;
use super::damage::{DAMAGED, unsupported};
use super::grid::Grid;
use crate::DecodeError;
use crate::bytes::Reader;
use crate::state::State;

/// The header's length without metalayers.
const HEADER_LEN: usize = 0x57;
/// A chunk number's place: bytes from the header's end.
const OFFSET_LEN: usize = 8;
/// The end of the trailer: its length, and room for a checksum that nobody writes.
const TRAILER_END_LEN: usize = 23;
/// Where the trailer has the number of its metalayers.
const TRAILER_MAP_AT: usize = 6;

const U32: u8 = 0xce;
const MAP: u8 = 0xde;

/// A frame's header, as far as it is needed.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    bytes: &'a [u8],
    header_len: usize,
    element_size: usize,
    /// Bytes that the chunk decodes to, and a block of it.
    chunk_len: usize,
    block_len: usize,
    /// Bytes of all chunks, as stored.
    stored_len: usize,
}

impl<'a> Frame<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        const NEWEST_FORMAT: u8 = 3;
        /// Six filters, in msgpack.
        const FILTERS: u8 = 6;
        /// Blosc2's own filters, and its plugins.  C-Blosc2 refuses most others, and takes those of
        /// a program.
        const KNOWN: [std::ops::RangeInclusive<u8>; 2] = [0..=4, 32..=36];
        let header = bytes.get(..HEADER_LEN).ok_or(DAMAGED)?;
        if !header[2..].starts_with(b"b2frame\0") {
            return Err(DAMAGED);
        }
        let u32_at = |at: usize| Reader::new(&header[at..]).u32_be().map(|n| n as usize);
        let u64_at = |at: usize| usize::try_from(Reader::new(&header[at..]).u64_be()?).ok();
        let (general_flags, frame_type) = (header[0x19], header[0x1a]);
        // As C-Blosc2 refuses them: bytes that are missing, or too many.
        let frame_len = u64_at(0x10).ok_or(DAMAGED)?;
        let chunk_len = u32_at(0x3a).ok_or(DAMAGED)?;
        if frame_len != bytes.len() || header[0x46] != FILTERS {
            return Err(DAMAGED);
        }
        if general_flags & 15 > NEWEST_FORMAT || frame_type != 0 {
            return Err(unsupported("a frame of another kind"));
        }
        let parsed = || {
            Some(Self {
                bytes,
                header_len: u32_at(0x0b)?,
                element_size: u32_at(0x30)?,
                chunk_len: u64_at(0x1e)?,
                block_len: u32_at(0x35)?,
                stored_len: u64_at(0x27)?,
            })
        };
        let filters = &header[0x47..0x4d];
        if !filters.iter().all(|filter| KNOWN.iter().any(|known| known.contains(filter))) {
            return Err(unsupported("another filter"));
        }
        parsed()
            .filter(|frame| (HEADER_LEN..=bytes.len()).contains(&frame.header_len))
            .filter(|frame| frame.chunk_len <= chunk_len && chunk_len <= i32::MAX as usize)
            .ok_or(DAMAGED)
    }

    /// The one chunk of the frame.
    pub(super) fn chunk(&self, state: &mut State) -> Result<Chunk<'a>, DecodeError> {
        let rest = self.bytes.get(self.header_len..).ok_or(DAMAGED)?;
        let list = Chunk::parse(rest.get(self.stored_len..).ok_or(DAMAGED)?)?;
        if list.len != OFFSET_LEN {
            return Err(unsupported("several chunks in a frame"));
        }
        self.check_trailer(self.header_len + self.stored_len + list.stored_len)?;
        if list.element_size != OFFSET_LEN {
            return Err(DAMAGED);
        }
        let mut offset = [0; OFFSET_LEN];
        for (number, block) in offset.chunks_mut(list.block_len).enumerate() {
            list.decode_block(number, &mut Vec::new(), state, block)?;
        }
        let [.., kind] = offset;
        if kind & 0x80 != 0 {
            // Nothing is stored but what all elements are.
            return Chunk::of_one_value(
                kind & 7,
                self.element_size,
                self.chunk_len,
                self.block_len,
            );
        }
        let offset = usize::try_from(u64::from_le_bytes(offset)).map_err(|_| DAMAGED)?;
        let chunk = Chunk::parse(rest.get(offset..).ok_or(DAMAGED)?)?;
        let sound = chunk.len == self.chunk_len
            && offset.checked_add(chunk.stored_len) == Some(self.stored_len);
        if sound { Ok(chunk) } else { Err(DAMAGED) }
    }

    /// See that the frame ends with a trailer that begins at `start`: C-Blosc2 opens no other, and
    /// one that is cut off or overwritten says that the frame is.
    fn check_trailer(&self, start: usize) -> Result<(), DecodeError> {
        let trailer = self.bytes.get(start..).ok_or(DAMAGED)?;
        let end = trailer.len().checked_sub(TRAILER_END_LEN).ok_or(DAMAGED)?;
        let mut end = Reader::new(&trailer[end..]);
        let map = trailer.get(TRAILER_MAP_AT..).ok_or(DAMAGED)?;
        let mut map = Reader::new(map);
        if end.u8() != Some(U32)
            || end.u32_be().map(|len| len as usize) != Some(trailer.len())
            || map.u8() != Some(MAP)
        {
            return Err(DAMAGED);
        }
        match map.u16_be() {
            Some(0) => Ok(()),
            _ => Err(unsupported("metalayers of variable length")),
        }
    }

    /// The array's shape, and the boxes that the chunk's blocks are; None where blocks follow each
    /// other.
    pub(super) fn grid(&self) -> Result<Option<(Vec<usize>, Grid)>, DecodeError> {
        if self.header_len == HEADER_LEN {
            return Ok(None);
        }
        let Some(layers) = self.metalayers() else { return Err(DAMAGED) };
        for (name, content) in layers {
            match name {
                b"b2nd" => return self.parse_grid(content).map(Some),
                b"caterva" => return Err(unsupported("Caterva's metalayer")),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Names and contents; None where they are not written as they should be.
    fn metalayers(&self) -> Option<Vec<(&'a [u8], &'a [u8])>> {
        const U16: u8 = 0xcd;
        const NAME: u8 = 0xa0;
        const I32: u8 = 0xd2;
        const BYTES: u8 = 0xc6;
        let header = self.bytes.get(..self.header_len)?;
        let mut reader = Reader::new(header.get(HEADER_LEN..)?);
        let sound = reader.u8()? == 0x93 && reader.u8()? == U16;
        let _index_len = reader.u16_be()?;
        if !sound || reader.u8()? != MAP {
            return None;
        }
        let count = reader.u16_be()?;
        let mut layers = Vec::new();
        for _ in 0..count {
            let name_len = reader.u8()?.checked_sub(NAME).filter(|&len| len < 32)?;
            let name = reader.take(usize::from(name_len))?;
            if reader.u8()? != I32 {
                return None;
            }
            let mut content = Reader::new(header.get(reader.u32_be()? as usize..)?);
            if content.u8()? != BYTES {
                return None;
            }
            let len = content.u32_be()? as usize;
            layers.push((name, content.take(len)?));
        }
        Some(layers)
    }

    fn parse_grid(&self, content: &[u8]) -> Result<(Vec<usize>, Grid), DecodeError> {
        let (shape, chunk, block) = shapes(content).ok_or(DAMAGED)?;
        if shape != chunk {
            return Err(unsupported("an array that is not one chunk"));
        }
        let grid = Grid::new(shape.clone(), block, self.element_size).ok_or(DAMAGED)?;
        Ok((shape, grid))
    }
}

/// The metalayer "b2nd": a version, the rank, the shapes of array, chunk and block, and NumPy's
/// name for the elements.
fn shapes(content: &[u8]) -> Option<(Vec<usize>, Vec<usize>, Vec<usize>)> {
    const ARRAY: u8 = 0x90;
    const I64: u8 = 0xd3;
    const I32: u8 = 0xd2;
    const LONG_STRING: u8 = 0xdb;
    let mut reader = Reader::new(content);
    let (_fields, _version, rank) = (reader.u8()?, reader.u8()?, reader.u8()?);
    let mut shape = |kind: u8| -> Option<Vec<usize>> {
        if reader.u8()? != ARRAY | rank {
            return None;
        }
        (0..rank)
            .map(|_| {
                let sound = reader.u8()? == kind;
                let n = if kind == I64 { reader.u64_be()? } else { reader.u32_be()?.into() };
                usize::try_from(n).ok().filter(|_| sound)
            })
            .collect()
    };
    let shapes = (shape(I64)?, shape(I32)?, shape(I32)?);
    let (_kind, sound) = (reader.u8()?, reader.u8()? == LONG_STRING);
    let len = reader.u32_be()? as usize;
    reader.take(len)?;
    sound.then_some(shapes)
}
