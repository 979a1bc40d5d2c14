//! How are the blocks compressed that bitshuffle, Blosc and Blosc2 cut a chunk into?

use std::ffi::{c_char, c_int};

use libdeflater::{CompressionLvl, Compressor};
use zstd_safe::CCtx;

use crate::blosclz;
use crate::repeats::Repeats;

/// Buffers that are used again.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// A block whose bytes are apart.
    pub(crate) planes: Vec<u8>,
    /// A block that is shuffled.
    pub(crate) shuffled: Vec<u8>,
    /// A block that is a box of an array.
    pub(crate) boxed: Vec<u8>,
}

/// What compresses a stream, with the library's own level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamCodec {
    BloscLz,
    Lz4 { acceleration: c_int },
    Lz4Hc { level: c_int },
    Zlib { level: i32 },
    Zstd { level: i32 },
}

/// What compressors keep from stream to stream.
#[derive(Default)]
pub(crate) struct Streams {
    pub(crate) repeats: Repeats,
    zlib: Option<(i32, Compressor)>,
    zstd: Option<CCtx<'static>>,
}

impl Streams {
    /// Compress `raw` to `out`: the bytes written, or None where there is no room for them, or
    /// no memory.
    pub(crate) fn compress(
        &mut self,
        codec: StreamCodec,
        raw: &[u8],
        out: &mut [u8],
    ) -> Option<usize> {
        match codec {
            StreamCodec::BloscLz => blosclz::compress(raw, &mut self.repeats, out),
            StreamCodec::Lz4 { acceleration } => {
                lz4(lz4_sys::LZ4_compress_fast, raw, out, acceleration)
            }
            StreamCodec::Lz4Hc { level } => lz4(lz4_sys::LZ4_compress_HC, raw, out, level),
            StreamCodec::Zlib { level } => {
                if self.zlib.as_ref().is_none_or(|(made, _)| *made != level) {
                    let level_of = CompressionLvl::new(level).ok()?;
                    self.zlib = Some((level, Compressor::new(level_of)));
                }
                self.zlib.as_mut()?.1.zlib_compress(raw, out).ok()
            }
            StreamCodec::Zstd { level } => {
                if self.zstd.is_none() {
                    self.zstd = CCtx::try_create();
                }
                self.zstd.as_mut()?.compress(out, raw, level).ok()
            }
        }
    }
}

/// LZ4's functions: source, destination, their lengths, and a parameter.
type Lz4 = unsafe extern "C" fn(*const c_char, *mut c_char, c_int, c_int, c_int) -> c_int;

fn lz4(compress: Lz4, raw: &[u8], out: &mut [u8], parameter: c_int) -> Option<usize> {
    let (raw_len, room) = (c_int::try_from(raw.len()).ok()?, c_int::try_from(out.len()).ok()?);
    // SAFETY: the lengths are those of live slices; the function reads and writes nothing
    // beyond them.
    let written =
        unsafe { compress(raw.as_ptr().cast(), out.as_mut_ptr().cast(), raw_len, room, parameter) };
    usize::try_from(written).ok().filter(|&written| written > 0)
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Streams")
    }
}
