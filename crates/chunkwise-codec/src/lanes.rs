//! How are the bytes of many planes interleaved, and bits transposed, sixteen bytes at a time?
//!
//! With one step that SSE2 and NEON have as an instruction or two, and which every x86-64
//! and every 64-bit Arm processor knows: the bytes of two vectors in turns.  Wider vectors
//! were not faster, as memory is the limit.

/// Bytes in a vector.
pub(crate) const LANES: usize = 16;

pub(crate) use arch::Lanes;

/// Sixteen bytes of each of `W` rows of `row_len` bytes, from byte `at` on; None beyond the end.
#[inline(always)]
pub(crate) fn load_rows<const W: usize>(
    rows: &[u8],
    row_len: usize,
    at: usize,
) -> Option<[Lanes; W]> {
    let mut lanes = [Lanes::load(&[0; LANES]); W];
    for (j, lanes) in lanes.iter_mut().enumerate() {
        *lanes = Lanes::load(rows.get(j * row_len + at..)?.first_chunk()?);
    }
    Some(lanes)
}

/// Store a vector to each of `W` rows of `row_len` bytes, at byte `at` on; false where one would
/// go beyond the end.
#[inline(always)]
pub(crate) fn store_rows<const W: usize>(
    lanes: [Lanes; W],
    rows: &mut [u8],
    row_len: usize,
    at: usize,
) -> bool {
    for (j, lanes) in lanes.into_iter().enumerate() {
        let Some(to) = rows.get_mut(j * row_len + at..).and_then(|row| row.first_chunk_mut())
        else {
            return false;
        };
        lanes.store(to);
    }
    true
}

/// Element `i` of `W` planes, a power of two, for each of sixteen `i`: its `W` bytes side by
/// side.
#[inline(always)]
pub(crate) fn interleave<const W: usize>(planes: [Lanes; W]) -> [Lanes; W] {
    riffle(planes, W.trailing_zeros())
}

/// The inverse of [`interleave`].
#[inline(always)]
pub(crate) fn deinterleave<const W: usize>(records: [Lanes; W]) -> [Lanes; W] {
    // After as many times as a byte's place has binary digits, every byte is back.
    riffle(records, LANES.trailing_zeros())
}

/// Put both halves of the bytes in turns, as a deck of cards is shuffled, this many times.  Each
/// time the binary digits of a byte's place are rotated by one: after log2(`W`) times, the
/// number of the vector and that within it have changed places.
#[inline(always)]
fn riffle<const W: usize>(mut vectors: [Lanes; W], times: u32) -> [Lanes; W] {
    debug_assert!(W.is_power_of_two());
    for _ in 0..times {
        let mut next = vectors;
        for k in 0..W / 2 {
            (next[2 * k], next[2 * k + 1]) = vectors[k].zip(vectors[k + W / 2]);
        }
        vectors = next;
    }
    vectors
}

/// Eight rows of bits: bit `i` of byte `c` of row `j` becomes bit `j` of byte `c` of row `i`.
#[inline(always)]
pub(crate) fn transpose_bits(mut rows: [Lanes; 8]) -> [Lanes; 8] {
    for (a, b) in [(0, 4), (1, 5), (2, 6), (3, 7)] {
        (rows[a], rows[b]) = rows[a].swap_bits::<4>(rows[b], 0x0f);
    }
    for (a, b) in [(0, 2), (1, 3), (4, 6), (5, 7)] {
        (rows[a], rows[b]) = rows[a].swap_bits::<2>(rows[b], 0x33);
    }
    for (a, b) in [(0, 1), (2, 3), (4, 5), (6, 7)] {
        (rows[a], rows[b]) = rows[a].swap_bits::<1>(rows[b], 0x55);
    }
    rows
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_loadu_si128, _mm_set1_epi8, _mm_slli_epi64, _mm_srli_epi64,
        _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpacklo_epi8, _mm_xor_si128,
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

        /// In each byte, the bits of `mask` of `other` change places with the bits of `self`
        /// that are `N` higher; no bit leaves its byte.
        #[inline(always)]
        pub(crate) fn swap_bits<const N: i32>(self, other: Self, mask: u8) -> (Self, Self) {
            // SAFETY: x86-64 has SSE2.
            unsafe {
                let mask = _mm_set1_epi8(mask.cast_signed());
                let changed = _mm_xor_si128(_mm_srli_epi64::<N>(self.0), other.0);
                let changed = _mm_and_si128(changed, mask);
                let high = _mm_xor_si128(self.0, _mm_slli_epi64::<N>(changed));
                (Self(high), Self(_mm_xor_si128(other.0, changed)))
            }
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
    use std::arch::aarch64::{
        uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vshlq_n_u8, vshrq_n_u8, vst1q_u8,
        vzip1q_u8, vzip2q_u8,
    };

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

        /// In each byte, the bits of `mask` of `other` change places with the bits of `self`
        /// that are `N` higher; no bit leaves its byte.
        #[inline(always)]
        pub(crate) fn swap_bits<const N: i32>(self, other: Self, mask: u8) -> (Self, Self) {
            // SAFETY: the target has NEON.
            unsafe {
                let changed = veorq_u8(vshrq_n_u8::<N>(self.0), other.0);
                let changed = vandq_u8(changed, vdupq_n_u8(mask));
                let high = veorq_u8(self.0, vshlq_n_u8::<N>(changed));
                (Self(high), Self(veorq_u8(other.0, changed)))
            }
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

        /// In each byte, the bits of `mask` of `other` change places with the bits of `self`
        /// that are `N` higher; no bit leaves its byte.
        pub(crate) fn swap_bits<const N: i32>(mut self, mut other: Self, mask: u8) -> (Self, Self) {
            for (high, low) in self.0.iter_mut().zip(&mut other.0) {
                let changed = (*high >> N ^ *low) & mask;
                *high ^= changed << N;
                *low ^= changed;
            }
            (self, other)
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
        let back = deinterleave(interleave(bytes.map(|b| Lanes::load(&b))));
        for (lanes, bytes) in back.into_iter().zip(bytes) {
            let mut found = [0; LANES];
            lanes.store(&mut found);
            assert_eq!((W, found), (W, bytes));
        }
    }

    #[test]
    fn bits_are_mirrored_at_the_diagonal() {
        let bytes: [[u8; LANES]; 8] =
            std::array::from_fn(|j| std::array::from_fn(|c| (j * 37 + c * 101 + j * c * 7) as u8));
        let mirrored = transpose_bits(bytes.map(|b| Lanes::load(&b)));
        for (i, lanes) in mirrored.into_iter().enumerate() {
            let mut found = [0; LANES];
            lanes.store(&mut found);
            for (c, byte) in found.into_iter().enumerate() {
                let expected = (0..8).map(|j| (bytes[j][c] >> i & 1) << j).sum::<u8>();
                assert_eq!(byte, expected);
            }
        }
    }

    #[test]
    fn each_element_has_its_bytes_side_by_side() {
        assert_interleaves::<2>();
        assert_interleaves::<4>();
        assert_interleaves::<8>();
        assert_interleaves::<16>();
    }
}
