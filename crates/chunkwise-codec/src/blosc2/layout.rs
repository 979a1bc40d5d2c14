//! Which bytes of a frame are not a chunk's blocks?
//!
//! As C-Blosc2 writes them: the frame's header in msgpack, with the shapes of an array, the
//! chunk's header, a chunk with the places of all chunks (one: 0) and the trailer.

/// Bytes of a chunk's header.
pub(super) const CHUNK_HEADER_LEN: usize = 32;
/// Bytes of the frame's header without metalayers.
const HEADER_LEN: u8 = 0x57;
/// Where lengths are that are known at last, in the frame's header.
const FRAME_LEN_AT: usize = 0x10;
const CHUNK_LEN_AT: usize = 0x27;

const U16: u8 = 0xcd;
const U32: u8 = 0xce;
const U64: u8 = 0xcf;
const I16: u8 = 0xd1;
const I32: u8 = 0xd2;
const I64: u8 = 0xd3;
const STRING: u8 = 0xa0;
const ARRAY: u8 = 0x90;
const ARRAY_16: u8 = 0xdc;
const MAP_16: u8 = 0xde;
const FALSE: u8 = 0xc2;
const BYTES: u8 = 0xc6;
const EXTENSION_16: u8 = 0xd8;
const LONG_STRING: u8 = 0xdb;

/// What headers say.
#[derive(Debug)]
pub(super) struct FrameOptions {
    pub(super) element_size: usize,
    /// Blosc's number for the compressor, and for what decompresses.
    pub(super) compressor: u8,
    pub(super) format: u8,
    pub(super) level: u32,
    pub(super) filter: u8,
    /// Bytes that the chunk, and a block, decode to.
    pub(super) len: usize,
    pub(super) block_len: usize,
}

/// Append the frame's header; `shapes` are those of an array and its blocks.
pub(super) fn put_frame_header(
    options: &FrameOptions,
    shapes: Option<(&[usize], &[usize])>,
    out: &mut Vec<u8>,
) {
    /// Of the format, and places of eight bytes.
    const VERSION: u8 = 2 | 0x10;
    /// Split where that was always done.
    const SPLIT_MODE: u8 = 3;
    let content = shapes.map(|(shape, block)| array_layer(options.element_size, shape, block));
    let layer_len = content.as_ref().map_or(0, |content| NAME_LEN + 5 + content.len());
    let header_len = usize::from(HEADER_LEN) + 10 + layer_len;
    out.extend([ARRAY + 14, STRING + 8]);
    out.extend(b"b2frame\0");
    put_i32(header_len, out);
    put_wide(U64, 0, out);
    out.extend([STRING + 4, VERSION, 0]);
    out.extend([options.compressor | (options.level as u8) << 4, SPLIT_MODE]);
    put_wide(I64, options.len, out);
    put_wide(I64, 0, out);
    put_i32(options.element_size, out);
    put_i32(options.block_len, out);
    put_i32(options.len, out);
    // Threads.
    out.extend([I16, 0, 0, I16, 0, 1, FALSE]);
    out.extend([EXTENSION_16, 6, 0, 0, 0, 0, 0, options.filter, options.compressor, 0]);
    out.extend([0; 8]);
    // Metalayers: an index, and their contents.
    let index_len = if content.is_some() { 7 + NAME_LEN as u8 } else { 7 };
    let count = u8::from(content.is_some());
    out.extend([ARRAY + 3, U16, 0, index_len, MAP_16, 0, count]);
    if content.is_some() {
        out.extend(b"\xa4b2nd");
        put_i32(usize::from(HEADER_LEN) + 10 + NAME_LEN, out);
    }
    out.extend([ARRAY_16, 0, count]);
    if let Some(content) = content {
        out.push(BYTES);
        out.extend((content.len() as u32).to_be_bytes());
        out.extend(content);
    }
}

/// Bytes of the array's metalayer in the index.
const NAME_LEN: usize = 10;

/// The metalayer "b2nd": shapes of array, chunk and block, and NumPy's name for elements.
fn array_layer(element_size: usize, shape: &[usize], block: &[usize]) -> Vec<u8> {
    let rank = shape.len() as u8;
    let mut out = vec![ARRAY + 7, 0, rank, ARRAY + rank];
    for &n in shape {
        put_wide(I64, n, &mut out);
    }
    for lens in [shape, block] {
        out.push(ARRAY + rank);
        for &n in lens {
            put_i32(n, &mut out);
        }
    }
    let kind = format!("|V{element_size}");
    out.extend([0, LONG_STRING]);
    out.extend((kind.len() as u32).to_be_bytes());
    out.extend(kind.as_bytes());
    out
}

fn put_i32(number: usize, out: &mut Vec<u8>) {
    out.push(I32);
    out.extend((number as u32).to_be_bytes());
}

fn put_wide(kind: u8, number: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend((number as u64).to_be_bytes());
}

/// Write the header at the beginning of `chunk`, of `chunk_len` bytes with it.
pub(super) fn put_chunk_header(
    options: &FrameOptions,
    stored: bool,
    split: bool,
    chunk_len: usize,
    chunk: &mut [u8],
) {
    const VERSIONS: [u8; 2] = [5, 1];
    const EXTENDED: u8 = 1 | 4;
    const STORED: u8 = 2;
    const NOT_SPLIT: u8 = 16;
    let how = match (stored, split) {
        (true, _) => STORED,
        (false, true) => 0,
        (false, false) => NOT_SPLIT,
    };
    let flags = EXTENDED | how | options.format << 5;
    let element_size = u8::try_from(options.element_size).unwrap_or(1);
    let lengths = [options.len, options.block_len, chunk_len].map(|n| (n as u32).to_le_bytes());
    let header = &mut chunk[..CHUNK_HEADER_LEN];
    header.fill(0);
    header[..2].copy_from_slice(&VERSIONS);
    header[2..4].copy_from_slice(&[flags, element_size]);
    header[4..16].copy_from_slice(lengths.as_flattened());
    header[21..23].copy_from_slice(&[options.filter, options.compressor]);
}

/// The places of chunks, and the trailer without a checksum.
const REST: [u8; REST_LEN] = {
    let mut rest = [0; REST_LEN];
    let places = [5, 1, 1 | 2 | 4, 8, 8, 0, 0, 0, 8, 0, 0, 0, 40];
    let trailer = [ARRAY + 4, 1, ARRAY + 3, U16, 0, 6, MAP_16, 0, 0, ARRAY_16, 0, 0];
    let end = [U32, 0, 0, 0, TRAILER_LEN, EXTENSION_16];
    copy(&mut rest, 0, &places);
    rest[22] = 1;
    copy(&mut rest, PLACES_LEN, &trailer);
    copy(&mut rest, PLACES_LEN + trailer.len(), &end);
    rest
};
const PLACES_LEN: usize = CHUNK_HEADER_LEN + 8;
const TRAILER_LEN: u8 = 35;
/// Bytes of what comes after the chunk.
pub(super) const REST_LEN: usize = PLACES_LEN + TRAILER_LEN as usize;

const fn copy(to: &mut [u8], at: usize, from: &[u8]) {
    let mut i = 0;
    while i < from.len() {
        to[at + i] = from[i];
        i += 1;
    }
}

/// Append what comes after the chunk.
pub(super) fn put_rest(out: &mut Vec<u8>) {
    out.extend(REST);
}

/// Write the lengths into the frame's header that only the chunk's length tells.
pub(super) fn finish_frame_header(header: &mut [u8], chunk_len: usize) {
    let frame_len = header.len() + chunk_len + REST_LEN;
    for (at, len) in [(FRAME_LEN_AT, frame_len), (CHUNK_LEN_AT, chunk_len)] {
        header[at..at + 8].copy_from_slice(&(len as u64).to_be_bytes());
    }
}
