//! How are numbers stored as small differences to the smallest one?
//!
//! What is lost of floating-point numbers, and of integers for whose differences too few bits
//! were asked for, is what HDF5's filter loses; that takes its very arithmetic, down to what
//! becomes of values that are not numbers.

use super::{HEADER_LEN, Kind, ScaleOffset};
use crate::bit_writer::{BitWriter, SLACK};
use crate::filter::{Encode, Encoded};
use crate::state::EncoderState;
use crate::{EncodeError, grown};

/// How the elements of a chunk are stored.
struct Plan {
    /// Bits of a difference; all of an element's where elements are stored as they are.
    width: u32,
    /// The smallest value's bits.
    smallest: u64,
}

/// What has been found of a chunk's values, those that stand for the fill value left out.
#[derive(Clone, Copy)]
struct Range<T> {
    least: T,
    most: T,
}

impl Encode for ScaleOffset {
    /// Encode `raw`; false where that is not the chunk that the options describe.
    fn encode(&self, raw: &[u8], _: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        if self.kind == Kind::Whole {
            grown(out, raw.len())?;
            out.copy_from_slice(raw);
            return Ok(true);
        }
        if self.elements.checked_mul(self.size) != Some(raw.len()) || raw.is_empty() {
            return Ok(false);
        }
        match self.size {
            1 => self.encode_as::<1>(raw, out),
            2 => self.encode_as::<2>(raw, out),
            4 => self.encode_as::<4>(raw, out),
            _ => self.encode_as::<8>(raw, out),
        }
    }
}

impl ScaleOffset {
    fn encode_as<const N: usize>(
        &self,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, EncodeError> {
        let elements = raw.as_chunks::<N>().0;
        let bits = elements.iter().map(|element| self.bits_of(element));
        match self.kind {
            Kind::Float(power) if N == 4 => {
                let scale = 10f32.powf(power as f32);
                // The filter compares in single and in double precision, in turns.
                let near = [10f64.powf(-f64::from(power)), 10f32.powf(-(power as f32)).into()];
                let fill = self.fill.map(|fill| f32::from_bits(fill as u32));
                let distance = |a: f32, b: f32| f64::from((a - b).abs());
                let is_fill = |value: f32, eps| fill.is_some_and(|f| distance(value, f) < eps);
                let values = bits.map(|bits| f32::from_bits(bits as u32));
                let range = range(values.clone().filter(|&v| !is_fill(v, near[0])), 0.0);
                let span = f64::from(range.most * scale - range.least * scale);
                let plan = self.float_plan(span, range.least.to_bits().into());
                self.pack(raw, &plan, out, values, |value| {
                    let steps = value * scale - range.least * scale;
                    (!is_fill(value, near[1])).then(|| rounded(steps.into()))
                })
            }
            Kind::Float(power) => {
                let scale = 10f64.powf(f64::from(power));
                let near = 10f64.powf(-f64::from(power));
                let fill = self.fill.map(f64::from_bits);
                let is_fill = |value: f64| fill.is_some_and(|f| (value - f).abs() < near);
                let values = bits.map(f64::from_bits);
                let range = range(values.clone().filter(|&v| !is_fill(v)), 0.0);
                let span = range.most * scale - range.least * scale;
                let plan = self.float_plan(span, range.least.to_bits());
                self.pack(raw, &plan, out, values, |value| {
                    let steps = value * scale - range.least * scale;
                    (!is_fill(value)).then(|| rounded(steps))
                })
            }
            Kind::Integer { signed: true, width } => {
                let unused = 64 - 8 * N as u32;
                let extended = |bits: u64| (bits << unused).cast_signed() >> unused;
                let wanted = bits.clone().filter(|bits| Some(*bits) != self.fill).map(extended);
                let range = range(wanted, 0);
                let span = range.most.wrapping_sub(range.least).cast_unsigned();
                let plan = self.integer_plan(width, span, range.least.cast_unsigned());
                self.pack(raw, &plan, out, bits, |bits| self.difference(bits, &plan))
            }
            Kind::Integer { signed: false, width } => {
                let range = range(bits.clone().filter(|bits| Some(*bits) != self.fill), 0);
                let plan = self.integer_plan(width, range.most - range.least, range.least);
                self.pack(raw, &plan, out, bits, |bits| self.difference(bits, &plan))
            }
            Kind::Whole | Kind::Never => Ok(false),
        }
    }

    /// An element's bits, whatever order its bytes have.
    #[inline(always)]
    fn bits_of<const N: usize>(&self, element: &[u8; N]) -> u64 {
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(element);
        let bits = u64::from_le_bytes(bytes);
        if self.big_endian { bits.swap_bytes() >> (64 - 8 * N) } else { bits }
    }

    fn difference(&self, bits: u64, plan: &Plan) -> Option<u64> {
        (Some(bits) != self.fill).then(|| bits.wrapping_sub(plan.smallest))
    }

    fn integer_plan(&self, width: u32, span: u64, smallest: u64) -> Plan {
        let full = 8 * self.size as u32;
        let most = u64::MAX >> (64 - full);
        let width = match width {
            // Two numbers are needed beyond those of the differences.
            0 if span > most - 2 => full,
            0 => self.width_of(span + 1),
            stated => stated,
        };
        Plan { width, smallest }
    }

    fn float_plan(&self, span: f64, smallest: u64) -> Plan {
        let full = 8 * self.size as u32;
        let too_far = span.round() > 2f64.powi(full as i32 - 1);
        // Of values that are not numbers, the span is none, and wider than any.
        let width = self.width_of(rounded(span).wrapping_add(1));
        Plan { width: if too_far { full } else { width.min(full) }, smallest }
    }

    /// Bits for this many different values, and the one that stands for the fill value.
    fn width_of(&self, values: u64) -> u32 {
        let values = if self.fill.is_some() { values.wrapping_add(1) } else { values };
        u64::BITS - values.saturating_sub(1).leading_zeros()
    }

    /// Write the header, and of each value what `steps` gives or, for None, what stands for the
    /// fill value.
    fn pack<I: Iterator>(
        &self,
        raw: &[u8],
        plan: &Plan,
        out: &mut Vec<u8>,
        values: I,
        steps: impl Fn(I::Item) -> Option<u64>,
    ) -> Result<bool, EncodeError> {
        let Plan { width, smallest } = *plan;
        let full = 8 * self.size as u32;
        // A byte more than is full, as the original has it, which may look at it.
        let packed_len = raw.len() / full as usize * width as usize
            + raw.len() % full as usize * width as usize / full as usize
            + usize::from(width < full);
        let room = HEADER_LEN + packed_len + SLACK;
        grown(out, room)?;
        out.truncate(room);
        out.fill(0);
        let (header, packed) = out.split_at_mut(HEADER_LEN);
        header[..4].copy_from_slice(&width.to_le_bytes());
        header[4] = 8;
        header[5..13].copy_from_slice(&smallest.to_le_bytes());
        if width == full {
            packed[..raw.len()].copy_from_slice(raw);
            if self.big_endian {
                packed[..raw.len()].chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
            }
        } else {
            let marker = (1 << width) - 1;
            let mut writer = BitWriter::new(packed);
            for value in values {
                writer.put(steps(value).unwrap_or(marker) & marker, width);
            }
            if writer.finish().is_none() {
                return Ok(false);
            }
        }
        out.truncate(HEADER_LEN + packed_len);
        Ok(true)
    }
}

/// The least and the most; `zero` where there are none, and what is not a number only where it
/// comes first.
fn range<T: PartialOrd + Copy>(mut values: impl Iterator<Item = T>, zero: T) -> Range<T> {
    let first = values.next().unwrap_or(zero);
    values.fold(Range { least: first, most: first }, |Range { least, most }, value| Range {
        least: if value < least { value } else { least },
        most: if value > most { value } else { most },
    })
}

/// The nearest integer's bits; those of the lowest one where there is none, as C's `llround`
/// has it on common processors.
fn rounded(value: f64) -> u64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let nearest = if (-LIMIT..LIMIT).contains(&value) { value.round() as i64 } else { i64::MIN };
    nearest.cast_unsigned()
}
