//! How do numbers come back that were stored ([`encode`]) as small differences to the smallest
//! one?
//!
//! A chunk begins with the bits of a difference (4 bytes, little-endian), the length of
//! the smallest value (1) and that value (8, little-endian), and 8 bytes of nothing; then
//! come the differences, the highest bit first.  All bits set stand for the fill value,
//! if there is one.  Floating-point numbers were multiplied by a power of ten before
//! (`H5Zscaleoffset.c`).

mod encode;

use crate::Output;
use crate::bits::Bits;
use crate::filter::{Decode, Decoded, Options};
use crate::state::State;

/// Bytes before the differences.
const HEADER_LEN: usize = 21;

/// The filter's options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScaleOffset {
    elements: usize,
    /// Bytes in an element.
    size: usize,
    big_endian: bool,
    kind: Kind,
    /// The fill value's bits, if it is defined.
    fill: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Stored as they are: as many bits were asked for as an element has.
    Whole,
    Integer {
        signed: bool,
        /// Bits of a difference as the options state them; 0 where each chunk decides.
        width: u32,
    },
    /// The power of ten by which elements were multiplied.
    Float(i32),
    /// Of elements of a size that no number has, for which libhdf5 gives what lies in memory.
    Never,
}

impl Options for ScaleOffset {
    /// From `cd_values`: the kind of scale and its factor, elements in a chunk, class,
    /// size, sign, byte order, whether there is a fill value, and that value.
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        const DECIMAL: u32 = 0;
        const INTEGER: u32 = 2;
        let &[scale, factor, elements, class, size, sign, order, has_fill, ref fill @ ..] =
            cd_values
        else {
            return None;
        };
        let &[low, high, ..] = fill else { return None };
        let factor = factor.cast_signed();
        let width = factor.max(0).unsigned_abs();
        let kind = match (class, scale, size) {
            (0, INTEGER, 1 | 2 | 4 | 8) => match width.cmp(&(size * 8)) {
                std::cmp::Ordering::Less => Kind::Integer { signed: sign == 1, width },
                std::cmp::Ordering::Equal => Kind::Whole,
                std::cmp::Ordering::Greater => return None,
            },
            (1, DECIMAL, 4 | 8) => Kind::Float(factor),
            (.., 1 | 2 | 4 | 8) => return None,
            _ => Kind::Never,
        };
        // What the original reads out of other values is left to it.
        if cd_values.len() != 20 || sign > 1 || order > 1 || has_fill > 1 {
            return None;
        }
        let size = size as usize;
        let all = u64::from(low) | u64::from(high) << 32;
        let fill =
            (has_fill == 1 && kind != Kind::Never).then(|| all & (u64::MAX >> (64 - 8 * size)));
        Some(Self { elements: elements as usize, size, big_endian: order == 1, kind, fill })
    }
}

impl Decode for ScaleOffset {
    fn decode(&self, stored: &[u8], _: &mut State, output: &mut Output<'_>) -> Decoded {
        if self.kind == Kind::Whole {
            output.room(stored.len())?.copy_from_slice(stored);
            return Ok(());
        }
        let damaged = output.damaged();
        if self.kind == Kind::Never {
            return Err(damaged);
        }
        let Some((header, packed)) = stored.split_first_chunk::<HEADER_LEN>() else {
            return Err(damaged);
        };
        let [a, b, c, d, minimum_len, minimum @ ..] = *header;
        let width = u32::from_le_bytes([a, b, c, d]);
        let mut smallest = [0; 8];
        let minimum_len = usize::from(minimum_len).min(8);
        smallest[..minimum_len].copy_from_slice(&minimum[..minimum_len]);
        let smallest = u64::from_le_bytes(smallest);
        let full = 8 * self.size as u32;
        let needed = u128::from(width) * self.elements as u128;
        if width > full || needed > packed.len() as u128 * 8 {
            return Err(damaged);
        }
        let nbytes = self.elements.checked_mul(self.size).ok_or(damaged)?;
        let out = output.room(nbytes)?;
        if width == full {
            out.copy_from_slice(&packed[..nbytes]);
            if self.big_endian {
                out.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
            }
            return Ok(());
        }
        let bits = Bits::new(packed);
        match self.size {
            1 => self.unpack::<1>(bits, width, smallest, out),
            2 => self.unpack::<2>(bits, width, smallest, out),
            4 => self.unpack::<4>(bits, width, smallest, out),
            _ => self.unpack::<8>(bits, width, smallest, out),
        }
        Ok(())
    }
}

impl ScaleOffset {
    fn unpack<const N: usize>(&self, bits: Bits<'_>, width: u32, smallest: u64, out: &mut [u8]) {
        match self.kind {
            Kind::Float(power) if N == 4 => {
                let scale = 10f32.powf(power as f32);
                let smallest = f32::from_bits(smallest as u32);
                self.put::<N>(bits, width, out, |value| {
                    u64::from((value as i32 as f32 / scale + smallest).to_bits())
                });
            }
            Kind::Float(power) => {
                let scale = 10f64.powf(f64::from(power));
                let smallest = f64::from_bits(smallest);
                self.put::<N>(bits, width, out, |value| {
                    (value.cast_signed() as f64 / scale + smallest).to_bits()
                });
            }
            _ => self.put::<N>(bits, width, out, |value| value.wrapping_add(smallest)),
        }
    }

    /// Write each number's low bytes, in the dataset's order.
    #[inline(always)]
    fn put<const N: usize>(
        &self,
        mut bits: Bits<'_>,
        width: u32,
        out: &mut [u8],
        restore: impl Fn(u64) -> u64,
    ) {
        // No number has as many bits set where there is no fill value.
        let marker = self.fill.map_or(u64::MAX, |_| (1 << width) - 1);
        let fill = self.fill.unwrap_or(0);
        for element in out.as_chunks_mut::<N>().0 {
            let value = bits.take(width);
            let value = if value == marker { fill } else { restore(value) };
            let bytes = value.to_le_bytes();
            for (i, to) in element.iter_mut().enumerate() {
                *to = bytes[if self.big_endian { N - 1 - i } else { i }];
            }
        }
    }
}
