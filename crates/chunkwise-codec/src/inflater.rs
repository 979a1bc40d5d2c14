//! How is a zlib stream inflated?
//!
//! libdeflate, which is about twice as fast as zlib, wants to know how many bytes
//! will come out.  HDF5 nearly always implies that number; where it does not (a
//! second deflate in one pipeline), the output grows, within deflate's own limit of expansion.
//! Of a chunk that holds more than it should, zlib inflates the rest, piece by piece, to see
//! whether it is sound.

use std::cell::Cell;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::{DecodeError, Output};

/// A byte of deflate gives at most this many (zlib's documentation: 1032 to 1).
pub(crate) const MOST_EXPANSION: usize = 1032;

/// Reusable state for inflating, made when it is first needed; one for each thread.
#[derive(Default)]
pub(crate) struct Inflater {
    state: Option<Libdeflate>,
}

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inflater")
    }
}

impl Inflater {
    /// Inflate `stored`.  Bytes after the stream's end are ignored, as zlib does in HDF5.
    pub(crate) fn inflate(
        &mut self,
        stored: &[u8],
        output: &mut Output<'_>,
    ) -> Result<(), DecodeError> {
        let ceiling = stored.len().saturating_mul(MOST_EXPANSION).saturating_add(64);
        let damaged = output.damaged();
        let state = self.state()?;
        let used = Cell::new(stored.len());
        let attempt = |out: &mut [u8]| match state.inflate(stored, out) {
            Inflated::Whole { read, written } => {
                used.set(read);
                Ok(Some(written))
            }
            Inflated::TooLong => Ok(None),
            Inflated::Damaged => Err(damaged.clone()),
        };
        let first = |chunk: &mut [u8]| match inflate_first(stored, chunk) {
            true => Ok(()),
            false => Err(damaged.clone()),
        };
        output.growing(ceiling, attempt, Some(&first))?;
        output.ends_after(used.get());
        Ok(())
    }

    /// Inflate `stored` to exactly `out`; whether that went well.
    pub(crate) fn inflate_exactly(&mut self, stored: &[u8], out: &mut [u8]) -> bool {
        let Ok(state) = self.state() else { return false };
        matches!(state.inflate(stored, out), Inflated::Whole { written, .. } if written == out.len())
    }

    fn state(&mut self) -> Result<&mut Libdeflate, DecodeError> {
        if self.state.is_none() {
            self.state = Libdeflate::new();
        }
        self.state.as_mut().ok_or(DecodeError::Memory { nbytes: 0 })
    }
}

/// What became of a stream.
enum Inflated {
    /// It ended after this many bytes, and this many came out.
    Whole { read: usize, written: usize },
    /// More comes out than there is room for.
    TooLong,
    /// It is no stream, or cut off, or its checksum is wrong.
    Damaged,
}

/// libdeflate's decompressor.  `libdeflater` does not tell where a stream ends.
struct Libdeflate(NonNull<libdeflate_sys::libdeflate_decompressor>);

// SAFETY: plain memory of its own, which no thread holds on to.
unsafe impl Send for Libdeflate {}

impl Libdeflate {
    /// None where there is no memory.
    fn new() -> Option<Self> {
        // SAFETY: takes nothing.
        NonNull::new(unsafe { libdeflate_sys::libdeflate_alloc_decompressor() }).map(Self)
    }

    fn inflate(&mut self, stored: &[u8], out: &mut [u8]) -> Inflated {
        let (mut read, mut written) = (0, 0);
        // SAFETY: a live decompressor, held exclusively; the lengths are those of live slices,
        // beyond which nothing is read or written, whatever the bytes are.
        let result = unsafe {
            libdeflate_sys::libdeflate_zlib_decompress_ex(
                self.0.as_ptr(),
                stored.as_ptr().cast(),
                stored.len(),
                out.as_mut_ptr().cast(),
                out.len(),
                &raw mut read,
                &raw mut written,
            )
        };
        match result {
            libdeflate_sys::libdeflate_result_LIBDEFLATE_SUCCESS => {
                Inflated::Whole { read, written }
            }
            libdeflate_sys::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Inflated::TooLong,
            _ => Inflated::Damaged,
        }
    }
}

impl Drop for Libdeflate {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and not used again.
        unsafe { libdeflate_sys::libdeflate_free_decompressor(self.0.as_ptr()) };
    }
}

/// Inflate the first bytes of `stored` to `chunk` and all others to nowhere; whether the stream is
/// sound to its end, and fills the chunk.
fn inflate_first(stored: &[u8], chunk: &mut [u8]) -> bool {
    const NOWHERE_NBYTES: usize = 32 << 10;
    let mut stream = Box::new(MaybeUninit::<libz_sys::z_stream>::zeroed());
    // SAFETY: a stream of zeros has no buffers, and zlib's own functions for memory.
    let begun = unsafe {
        libz_sys::inflateInit_(
            stream.as_mut_ptr(),
            libz_sys::zlibVersion(),
            size_of::<libz_sys::z_stream>() as c_int,
        )
    };
    if begun != libz_sys::Z_OK {
        return false;
    }
    // SAFETY: made by `inflateInit_`; of plain numbers and pointers that may be null.
    let stream = unsafe { stream.assume_init_mut() };
    let (mut unread, mut nowhere) = (stored, vec![0; NOWHERE_NBYTES]);
    let mut filled = 0;
    let sound = loop {
        let out = if filled < chunk.len() { &mut chunk[filled..] } else { &mut nowhere[..] };
        // Numbers of zlib have 32 bits.
        let room = out.len().min(u32::MAX as usize);
        let len = unread.len().min(u32::MAX as usize);
        stream.next_in = unread.as_ptr().cast_mut();
        stream.avail_in = len as u32;
        stream.next_out = out.as_mut_ptr();
        stream.avail_out = room as u32;
        // SAFETY: the lengths are those of live slices; zlib does not write to its input.
        let status = unsafe { libz_sys::inflate(stream, libz_sys::Z_NO_FLUSH) };
        let (read, written) = (len - stream.avail_in as usize, room - stream.avail_out as usize);
        unread = &unread[read..];
        filled += written.min(chunk.len() - filled);
        match status {
            libz_sys::Z_STREAM_END => break filled == chunk.len(),
            libz_sys::Z_OK if read + written > 0 => {}
            _ => break false,
        }
    };
    // SAFETY: made by `inflateInit_`, and not used again.
    unsafe { libz_sys::inflateEnd(stream) };
    sound
}

#[cfg(test)]
mod tests {
    use super::*;
    use libdeflater::{CompressionLvl, Compressor};

    fn deflated(raw: &[u8]) -> Vec<u8> {
        let mut compressor = Compressor::new(CompressionLvl::default());
        let mut stored = vec![0; compressor.zlib_compress_bound(raw.len())];
        let len = compressor.zlib_compress(raw, &mut stored).unwrap();
        stored.truncate(len);
        stored
    }

    #[test]
    fn the_first_bytes_of_a_long_stream_are_those_of_the_chunk() {
        let raw: Vec<u8> = (0..200_000u32).map(|i| (i / 7) as u8).collect();
        let mut stored = deflated(&raw);
        for len in [0, 1, 100, 32 << 10, raw.len()] {
            let mut chunk = vec![1; len];
            assert!(inflate_first(&stored, &mut chunk));
            assert_eq!(chunk, raw[..len]);
        }
        assert!(!inflate_first(&stored, &mut vec![0; raw.len() + 1]));
        assert!(!inflate_first(&stored[..stored.len() - 1], &mut [0; 10]));
        // The checksum, long after the chunk is full.
        *stored.last_mut().unwrap() ^= 1;
        assert!(!inflate_first(&stored, &mut [0; 10]));
    }
}
