//! How are the bytes of many planes interleaved, sixteen elements at a time?
//!
//! With one step that SSE2 and NEON have as an instruction or two, and which every x86-64
//! and every 64-bit Arm processor knows: the bytes of two vectors in turns.  Wider vectors
//! were not faster, as memory is the limit.

/// Bytes in a vector.
pub(crate) const LANES: usize = 16;

pub(crate) use arch::Lanes;

/// Element `i` of `W` planes, a power of two, for each of sixteen `i`: its `W` bytes side by
/// side.
#[inline(always)]
pub(crate) fn interleave<const W: usize>(mut planes: [Lanes; W]) -> [Lanes; W] {
    debug_assert!(W.is_power_of_two());
    // Halves in turns, as a deck of cards is shuffled: after log2(W) times, each byte is
    // where it belongs.
    let mut step = 1;
    while step < W {
        let mut next = planes;
        for k in 0..W / 2 {
            (next[2 * k], next[2 * k + 1]) = planes[k].zip(planes[k + W / 2]);
        }
        planes = next;
        step *= 2;
    }
    planes
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::x86_64::{
        __m128i, _mm_loadu_si128, _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpacklo_epi8,
    };

    /// Sixteen bytes.
    #[derive(Clone, Copy)]
    pub(crate) struct Lanes(__m128i);

    impl Lanes {
        #[inline(always)]
        pub(crate) fn load(bytes: &[u8; 16]) -> Self {
            // SAFETY: sixteen bytes that may be read, at any alignment; x86-64 has SSE2.
            Self(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
        }

        #[inline(always)]
        pub(crate) fn store(self, bytes: &mut [u8; 16]) {
            // SAFETY: sixteen bytes that may be written, at any alignment; x86-64 has SSE2.
            unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), self.0) }
        }

        /// The bytes of both in turns: of the lower halves, of the upper halves.
        #[inline(always)]
        pub(crate) fn zip(self, other: Self) -> (Self, Self) {
            // SAFETY: x86-64 has SSE2.
            unsafe {
                let low = _mm_unpacklo_epi8(self.0, other.0);
                (Self(low), Self(_mm_unpackhi_epi8(self.0, other.0)))
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use std::arch::aarch64::{uint8x16_t, vld1q_u8, vst1q_u8, vzip1q_u8, vzip2q_u8};

    /// Sixteen bytes.
    #[derive(Clone, Copy)]
    pub(crate) struct Lanes(uint8x16_t);

    impl Lanes {
        #[inline(always)]
        pub(crate) fn load(bytes: &[u8; 16]) -> Self {
            // SAFETY: sixteen bytes that may be read; the target has NEON.
            Self(unsafe { vld1q_u8(bytes.as_ptr()) })
        }

        #[inline(always)]
        pub(crate) fn store(self, bytes: &mut [u8; 16]) {
            // SAFETY: sixteen bytes that may be written; the target has NEON.
            unsafe { vst1q_u8(bytes.as_mut_ptr(), self.0) }
        }

        /// The bytes of both in turns: of the lower halves, of the upper halves.
        #[inline(always)]
        pub(crate) fn zip(self, other: Self) -> (Self, Self) {
            // SAFETY: the target has NEON.
            unsafe { (Self(vzip1q_u8(self.0, other.0)), Self(vzip2q_u8(self.0, other.0))) }
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    /// Sixteen bytes.
    #[derive(Clone, Copy)]
    pub(crate) struct Lanes([u8; 16]);

    impl Lanes {
        pub(crate) fn load(bytes: &[u8; 16]) -> Self {
            Self(*bytes)
        }

        pub(crate) fn store(self, bytes: &mut [u8; 16]) {
            *bytes = self.0;
        }

        /// The bytes of both in turns: of the lower halves, of the upper halves.
        pub(crate) fn zip(self, other: Self) -> (Self, Self) {
            let zipped = |i: usize| if i % 2 == 0 { self.0[i / 2] } else { other.0[i / 2] };
            let upper = std::array::from_fn(|i| zipped(i + 16));
            (Self(std::array::from_fn(zipped)), Self(upper))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_interleaves<const W: usize>() {
        let bytes: [[u8; LANES]; W] =
            std::array::from_fn(|j| std::array::from_fn(|i| (j * LANES + i) as u8));
        let mut records = [[0; LANES]; W];
        for (to, lanes) in records.iter_mut().zip(interleave(bytes.map(|b| Lanes::load(&b)))) {
            lanes.store(to);
        }
        for (at, byte) in records.as_flattened().iter().enumerate() {
            assert_eq!(*byte, bytes[at % W][at / W]);
        }
    }

    #[test]
    fn each_element_has_its_bytes_side_by_side() {
        assert_interleaves::<1>();
        assert_interleaves::<2>();
        assert_interleaves::<4>();
        assert_interleaves::<8>();
        assert_interleaves::<16>();
    }
}
