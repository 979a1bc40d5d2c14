//! How are zlib streams made with ISA-L, and is it there?
//!
//! ISA-L's deflate is assembler for x86-64, made by `nasm`; where either is missing, nothing is
//! built and [`Compressor::new`] gives None.

use std::mem::MaybeUninit;

/// The highest of ISA-L's levels, which begin at 0.
pub const HIGHEST_LEVEL: u32 = 3;

/// Whether ISA-L has been built.
pub const BUILT: bool = cfg!(built);

/// Makes zlib streams at one level; keeps its working memory from one to the next.
pub struct Compressor {
    #[cfg_attr(not(built), expect(dead_code, reason = "never made"))]
    level: u32,
    /// In words, as the C structure is aligned to 8 bytes.
    #[cfg_attr(not(built), expect(dead_code, reason = "never made"))]
    state: Vec<u64>,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Compressor")
    }
}

#[cfg(not(built))]
impl Compressor {
    /// None: ISA-L has not been built.
    pub fn new(_level: u32) -> Option<Self> {
        None
    }

    /// None: ISA-L has not been built.
    pub fn zlib_compress(&mut self, _source: &[u8], _out: &mut [MaybeUninit<u8>]) -> Option<usize> {
        None
    }
}

#[cfg(built)]
impl Compressor {
    /// At `level`, at most [`HIGHEST_LEVEL`].
    pub fn new(level: u32) -> Option<Self> {
        if level > HIGHEST_LEVEL {
            return None;
        }
        // SAFETY: the level is one of those that there are.
        let nbytes = unsafe { built::chunkwise_isal_state_nbytes(level) };
        Some(Self { level, state: vec![0; nbytes.div_ceil(8)] })
    }

    /// Write the zlib stream of `source` to `out`; gives its length, the bytes that have been
    /// initialised, or None where `out` is too short, or `source` is longer than ISA-L counts
    /// (4 GiB).
    pub fn zlib_compress(&mut self, source: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
        let len = u32::try_from(source.len()).ok()?;
        let room = u32::try_from(out.len()).unwrap_or(u32::MAX);
        // SAFETY: the state has the size that the level needs and its alignment; both lengths
        // are within live slices, and nothing is kept after the call.
        let written = unsafe {
            built::chunkwise_isal_deflate(
                self.level,
                self.state.as_mut_ptr().cast(),
                source.as_ptr(),
                len,
                out.as_mut_ptr().cast(),
                room,
            )
        };
        (written > 0).then_some(written)
    }
}

#[cfg(built)]
mod built {
    use std::ffi::c_void;

    unsafe extern "C" {
        pub(super) fn chunkwise_isal_state_nbytes(level: u32) -> usize;
        pub(super) fn chunkwise_isal_deflate(
            level: u32,
            state: *mut c_void,
            source: *const u8,
            len: u32,
            out: *mut u8,
            room: u32,
        ) -> usize;
    }
}
