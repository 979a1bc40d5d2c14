//! How is a zlib stream made, and by which library?
//!
//! zlib makes what libhdf5 would make; libdeflate is two to four times as fast for much the same
//! size, and ISA-L five times as fast again.  Of data that are mostly runs, `runs` makes the smallest
//! and soonest.  Which of them loses how much to zlib depends on the data: see `tuning`.

use std::ffi::{c_int, c_uint};
use std::fmt;
use std::mem::{MaybeUninit, size_of};
use std::ptr::NonNull;

use crate::EncodeError;
use crate::runs::Runs;

/// A library that deflates, and the level at which it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeflateEngine {
    /// zlib itself, 0 to 9: what libhdf5 uses.
    Zlib(u32),
    /// libdeflate, 0 to 12.
    Libdeflate(u32),
    /// ISA-L, 0 to 3, where it has been built ([`DeflateEngine::is_built`]); zlib at level 1
    /// elsewhere.
    Isal(u32),
    /// Our own, for data that are mostly runs.
    Runs,
}

impl DeflateEngine {
    /// Whether this program has it.
    pub fn is_built(self) -> bool {
        match self {
            Self::Zlib(_) | Self::Libdeflate(_) | Self::Runs => true,
            Self::Isal(_) => isal::BUILT,
        }
    }
}

impl fmt::Display for DeflateEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zlib(level) => write!(f, "zlib {level}"),
            Self::Libdeflate(level) => write!(f, "libdeflate {level}"),
            Self::Isal(level) => write!(f, "ISA-L {level}"),
            Self::Runs => f.write_str("runs"),
        }
    }
}

/// Reusable state for deflating with one engine after another; one for each thread.
#[derive(Default)]
pub(crate) struct Deflater {
    made: Option<(DeflateEngine, Made)>,
}

enum Made {
    Zlib(Zlib),
    Libdeflate(Libdeflate),
    Isal(isal::Compressor),
    Runs(Runs),
}

impl Deflater {
    /// Write the zlib stream of `source` to `out`, whatever was in it, also where it becomes
    /// longer than `source`; false where the engine cannot do it.
    pub(crate) fn deflate(
        &mut self,
        engine: DeflateEngine,
        source: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, EncodeError> {
        let made = match &mut self.made {
            Some((last, made)) if *last == engine => made,
            made => {
                // The former one's memory first.
                *made = None;
                let fresh = Made::new(engine).ok_or(EncodeError::Memory { nbytes: 1 << 20 })?;
                &mut made.insert((engine, fresh)).1
            }
        };
        // More than any of them needs for bytes that cannot be compressed.
        let nbytes = source.len().saturating_add(source.len() / 512).saturating_add(64);
        out.clear();
        out.try_reserve_exact(nbytes).map_err(|_| EncodeError::Memory { nbytes })?;
        let room = out.spare_capacity_mut();
        let written = match made {
            Made::Zlib(zlib) => zlib.compress(source, room),
            Made::Libdeflate(libdeflate) => libdeflate.compress(source, room),
            Made::Isal(isal) => isal.zlib_compress(source, room),
            Made::Runs(runs) => runs.compress(source, room),
        };
        // SAFETY: this many bytes of the room have been initialised.
        unsafe { out.set_len(written.unwrap_or(0)) };
        Ok(written.is_some())
    }
}

impl Made {
    /// None without memory for it.
    fn new(engine: DeflateEngine) -> Option<Self> {
        match engine {
            DeflateEngine::Zlib(level) => Zlib::new(level).map(Self::Zlib),
            DeflateEngine::Libdeflate(level) => Libdeflate::new(level).map(Self::Libdeflate),
            DeflateEngine::Isal(level) => match isal::Compressor::new(level) {
                Some(isal) => Some(Self::Isal(isal)),
                None => Zlib::new(1).map(Self::Zlib),
            },
            DeflateEngine::Runs => Runs::new().map(Self::Runs),
        }
    }
}

/// zlib's state, which points to itself and so must not move.
struct Zlib(Box<libz_sys::z_stream>);

// SAFETY: its memory is its own; zlib keeps nothing for a thread.
unsafe impl Send for Zlib {}

impl Zlib {
    fn new(level: u32) -> Option<Self> {
        let mut stream = Box::new(MaybeUninit::<libz_sys::z_stream>::zeroed());
        let level = c_int::try_from(level.min(9)).ok()?;
        // SAFETY: zeros are null pointers, with which zlib allocates by itself (its functions
        // are options in C, and never called here); version and size are this structure's.
        let status = unsafe {
            libz_sys::deflateInit_(
                stream.as_mut_ptr(),
                level,
                libz_sys::zlibVersion(),
                size_of::<libz_sys::z_stream>() as c_int,
            )
        };
        if status != libz_sys::Z_OK {
            return None;
        }
        // SAFETY: zlib has set its functions, which are all that may not be zero.
        Some(Self(unsafe { stream.assume_init() }))
    }

    fn compress(&mut self, source: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
        let stream = self.0.as_mut();
        // SAFETY: made by `deflateInit_`.
        if unsafe { libz_sys::deflateReset(stream) } != libz_sys::Z_OK {
            return None;
        }
        stream.next_in = source.as_ptr().cast_mut();
        stream.next_out = out.as_mut_ptr().cast();
        let (mut unread, mut room) = (source.len(), out.len());
        let part = |left: usize| c_uint::try_from(left).unwrap_or(c_uint::MAX);
        // What zlib counts in 32 bits is given in parts.
        loop {
            if stream.avail_in == 0 {
                stream.avail_in = part(unread);
                unread -= stream.avail_in as usize;
            }
            if stream.avail_out == 0 {
                stream.avail_out = part(room);
                room -= stream.avail_out as usize;
            }
            let flush = if unread == 0 { libz_sys::Z_FINISH } else { libz_sys::Z_NO_FLUSH };
            // SAFETY: both pointers are followed by as many bytes as they are said to be.
            match unsafe { libz_sys::deflate(stream, flush) } {
                libz_sys::Z_STREAM_END => break,
                libz_sys::Z_OK if stream.avail_out > 0 || room > 0 => (),
                _ => {
                    stream.avail_out = 0;
                    stream.avail_in = 0;
                    return None;
                }
            }
        }
        let left = room + stream.avail_out as usize;
        stream.avail_out = 0;
        Some(out.len() - left)
    }
}

impl Drop for Zlib {
    fn drop(&mut self) {
        // SAFETY: made by `deflateInit_`, and not used again.
        unsafe { libz_sys::deflateEnd(self.0.as_mut()) };
    }
}

/// libdeflate's state.
struct Libdeflate(NonNull<libdeflate_sys::libdeflate_compressor>);

// SAFETY: its memory is its own; libdeflate keeps nothing for a thread.
unsafe impl Send for Libdeflate {}

impl Libdeflate {
    fn new(level: u32) -> Option<Self> {
        let level = c_int::try_from(level.min(12)).ok()?;
        // SAFETY: any level may be given; null comes back without memory.
        NonNull::new(unsafe { libdeflate_sys::libdeflate_alloc_compressor(level) }).map(Self)
    }

    fn compress(&mut self, source: &[u8], out: &mut [MaybeUninit<u8>]) -> Option<usize> {
        // SAFETY: a live compressor, and the lengths are those of live slices.
        let written = unsafe {
            libdeflate_sys::libdeflate_zlib_compress(
                self.0.as_ptr(),
                source.as_ptr().cast(),
                source.len(),
                out.as_mut_ptr().cast(),
                out.len(),
            )
        };
        (written > 0).then_some(written)
    }
}

impl Drop for Libdeflate {
    fn drop(&mut self) {
        // SAFETY: made by `libdeflate_alloc_compressor`, and not used again.
        unsafe { libdeflate_sys::libdeflate_free_compressor(self.0.as_ptr()) };
    }
}

#[cfg(feature = "isal")]
use chunkwise_isal as isal;

#[cfg(not(feature = "isal"))]
mod isal {
    use std::mem::MaybeUninit;

    pub(super) const BUILT: bool = false;

    /// There is none.
    pub(super) enum Compressor {}

    impl Compressor {
        pub(super) fn new(_level: u32) -> Option<Self> {
            None
        }

        pub(super) fn zlib_compress(
            &mut self,
            _source: &[u8],
            _out: &mut [MaybeUninit<u8>],
        ) -> Option<usize> {
            match *self {}
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Deflate, Filter, Pipeline, Scratch};
    use proptest::prelude::*;

    fn engines() -> Vec<DeflateEngine> {
        let zlib = (0..=9).map(DeflateEngine::Zlib);
        let libdeflate = (0..=12).map(DeflateEngine::Libdeflate);
        let isal = (0..=3).map(DeflateEngine::Isal);
        zlib.chain(libdeflate).chain(isal).chain([DeflateEngine::Runs]).collect()
    }

    /// Runs, noise and repetitions.
    fn data() -> impl Strategy<Value = Vec<u8>> {
        let piece = (any::<u8>(), 0usize..700, any::<u64>()).prop_map(|(kind, len, seed)| {
            let byte = |i: usize| match kind % 3 {
                0 => seed as u8,
                1 => {
                    (seed.wrapping_add(1 + i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56)
                        as u8
                }
                _ => (i as u64 % (1 + seed % 300)) as u8,
            };
            (0..len).map(byte).collect::<Vec<_>>()
        });
        prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn every_engine_makes_streams_that_inflate(raw in data()) {
            let (mut deflater, mut stored) = (Deflater::default(), vec![3; 9]);
            let pipeline = Pipeline::new(vec![Filter::Deflate(Deflate)]);
            for engine in engines() {
                prop_assert!(deflater.deflate(engine, &raw, &mut stored).unwrap(), "{}", engine);
                let mut out = vec![0; raw.len()];
                pipeline.decode(&stored, 0, &mut Scratch::default(), &mut out).unwrap();
                prop_assert_eq!(&out, &raw, "{}", engine);
                prop_assert_eq!(&inflated_by_zlib(&stored, raw.len()), &raw, "{}", engine);
            }
        }

        /// libhdf5 calls `compress2`, once a chunk.
        #[test]
        fn zlib_makes_what_libhdf5_makes(raw in data(), level in 0u32..=9) {
            let (mut deflater, mut stored) = (Deflater::default(), Vec::new());
            for _ in 0..2 {
                deflater.deflate(DeflateEngine::Zlib(level), &raw, &mut stored).unwrap();
                prop_assert_eq!(&stored, &compress2(&raw, level));
            }
        }
    }

    #[test]
    fn no_room_is_no_stream() {
        let raw: Vec<u8> =
            (0..200u32).flat_map(|i| (i * i).wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let mut room = [MaybeUninit::uninit(); 100];
        for engine in engines() {
            let mut made = Made::new(engine).unwrap();
            for _ in 0..2 {
                let written = match &mut made {
                    Made::Zlib(zlib) => zlib.compress(&raw, &mut room),
                    Made::Libdeflate(libdeflate) => libdeflate.compress(&raw, &mut room),
                    Made::Isal(isal) => isal.zlib_compress(&raw, &mut room),
                    Made::Runs(runs) => runs.compress(&raw, &mut room),
                };
                assert_eq!(written, None, "{engine}");
            }
        }
    }

    pub(crate) fn inflated_by_zlib(stored: &[u8], len: usize) -> Vec<u8> {
        let mut out = vec![0; len + 1];
        let mut written = out.len() as libz_sys::uLong;
        let stored_len = stored.len() as libz_sys::uLong;
        // SAFETY: the lengths are those of live slices.
        let status = unsafe {
            libz_sys::uncompress(out.as_mut_ptr(), &mut written, stored.as_ptr(), stored_len)
        };
        assert_eq!(status, libz_sys::Z_OK);
        out.truncate(written as usize);
        out
    }

    fn compress2(raw: &[u8], level: u32) -> Vec<u8> {
        let mut out = vec![0; raw.len() + raw.len() / 512 + 64];
        let mut written = out.len() as libz_sys::uLong;
        let len = raw.len() as libz_sys::uLong;
        // SAFETY: the lengths are those of live slices.
        let status = unsafe {
            libz_sys::compress2(out.as_mut_ptr(), &mut written, raw.as_ptr(), len, level as c_int)
        };
        assert_eq!(status, libz_sys::Z_OK);
        out.truncate(written as usize);
        out
    }
}
