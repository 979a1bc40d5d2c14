//! How does an element become one of another type, as libhdf5 converts it?
//!
//! Elements pass through a block that stays in the processor's cache: gathered, their bytes swapped
//! where they are in foreign order, converted, swapped again, and put into the result.  What lies
//! together in native order is taken from, and put to, its place at once.

use crate::read::numbers::{Becomes, Half, Number, each, swap};

/// The numbers that are converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberKind {
    /// With a sign, in two's complement.
    Signed,
    /// Without a sign.
    Unsigned,
    /// Of IEEE 754.
    Float,
}

/// A type of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberType {
    /// Which numbers.
    pub kind: NumberKind,
    /// 1, 2, 4 or 8; of floats at least 2.
    pub size: usize,
    /// Whether bytes come in the order that is not the processor's; never of single bytes.
    pub swapped: bool,
}

/// Where the text of an element of fixed length ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// Before the first byte that is 0.
    Null,
    /// Before the spaces at its end.
    Spaces,
}

type Kernel = fn(&[u8], &mut [u8]);

/// Elements of one type made elements of another.
#[derive(Debug, Clone, Copy)]
pub struct Conversion {
    from_size: usize,
    to_size: usize,
    how: How,
}

#[derive(Debug, Clone, Copy)]
enum How {
    /// With bytes swapped before and behind.
    Numbers { kernel: Kernel, from_swapped: bool, to_swapped: bool },
    /// To text that is padded with 0.
    Text(Padding),
}

impl Conversion {
    /// Between numbers; None of a type that there is not.
    pub fn of_numbers(from: NumberType, to: NumberType) -> Option<Self> {
        let integers = from.kind != NumberKind::Float && to.kind != NumberKind::Float;
        let differ = from.swapped != to.swapped;
        let foreign = differ || (from.swapped && !integers);
        let kernel = kernel(from, to, foreign)?;
        let (from_swapped, to_swapped) = (from.swapped, to.swapped);
        let how = How::Numbers { kernel, from_swapped, to_swapped };
        Some(Self { from_size: from.size, to_size: to.size, how })
    }

    /// Of text of one length to text of another, padded with 0; None of no length.
    pub fn of_text(from_size: usize, padding: Padding, to_size: usize) -> Option<Self> {
        let how = How::Text(padding);
        (from_size > 0 && to_size > 0).then_some(Self { from_size, to_size, how })
    }

    /// Bytes of an element.
    pub fn from_size(&self) -> usize {
        self.from_size
    }

    /// Bytes of an element that is made.
    pub fn to_size(&self) -> usize {
        self.to_size
    }

    /// Whether elements that lie together need no block between.
    pub(crate) fn is_direct(&self) -> bool {
        !matches!(
            self.how,
            How::Numbers { from_swapped: true, .. } | How::Numbers { to_swapped: true, .. }
        )
    }

    /// Convert elements that lie together, in native order.
    ///
    /// Both must hold equally many elements; what is left over stays as it is.
    pub(crate) fn direct(&self, from: &[u8], to: &mut [u8]) {
        match self.how {
            How::Numbers { kernel, .. } => kernel(from, to),
            How::Text(padding) => {
                let elements = from.chunks_exact(self.from_size);
                for (from, to) in elements.zip(to.chunks_exact_mut(self.to_size)) {
                    let len = text_len(from, padding).min(to.len());
                    to[..len].copy_from_slice(&from[..len]);
                    to[len..].fill(0);
                }
            }
        }
    }

    /// Convert elements that lie together, whose bytes may be changed on the way.
    pub(crate) fn by_block(&self, from: &mut [u8], to: &mut [u8]) {
        if let How::Numbers { from_swapped: true, .. } = self.how {
            swap(from, self.from_size);
        }
        self.direct(from, to);
        if let How::Numbers { to_swapped: true, .. } = self.how {
            swap(to, self.to_size);
        }
    }
}

fn text_len(text: &[u8], padding: Padding) -> usize {
    match padding {
        Padding::Null => text.iter().position(|&byte| byte == 0).unwrap_or(text.len()),
        Padding::Spaces => text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1),
    }
}

fn kernel(from: NumberType, to: NumberType, foreign: bool) -> Option<Kernel> {
    use NumberKind::{Float, Signed, Unsigned};
    match (from.kind, from.size) {
        (Signed, 1) => kernel_from::<i8>(to, foreign),
        (Signed, 2) => kernel_from::<i16>(to, foreign),
        (Signed, 4) => kernel_from::<i32>(to, foreign),
        (Signed, 8) => kernel_from::<i64>(to, foreign),
        (Unsigned, 1) => kernel_from::<u8>(to, foreign),
        (Unsigned, 2) => kernel_from::<u16>(to, foreign),
        (Unsigned, 4) => kernel_from::<u32>(to, foreign),
        (Unsigned, 8) => kernel_from::<u64>(to, foreign),
        (Float, 2) => kernel_from::<Half>(to, foreign),
        (Float, 4) => kernel_from::<f32>(to, foreign),
        (Float, 8) => kernel_from::<f64>(to, foreign),
        _ => None,
    }
}

fn kernel_from<S>(to: NumberType, foreign: bool) -> Option<Kernel>
where
    S: Number
        + Becomes<i8>
        + Becomes<u8>
        + Becomes<i16>
        + Becomes<u16>
        + Becomes<i32>
        + Becomes<u32>
        + Becomes<i64>
        + Becomes<u64>
        + Becomes<Half>
        + Becomes<f32>
        + Becomes<f64>,
{
    use NumberKind::{Float, Signed, Unsigned};
    Some(match (to.kind, to.size) {
        (Signed, 1) => either::<S, i8>(foreign),
        (Signed, 2) => either::<S, i16>(foreign),
        (Signed, 4) => either::<S, i32>(foreign),
        (Signed, 8) => either::<S, i64>(foreign),
        (Unsigned, 1) => either::<S, u8>(foreign),
        (Unsigned, 2) => either::<S, u16>(foreign),
        (Unsigned, 4) => either::<S, u32>(foreign),
        (Unsigned, 8) => either::<S, u64>(foreign),
        (Float, 2) => either::<S, Half>(foreign),
        (Float, 4) => either::<S, f32>(foreign),
        (Float, 8) => either::<S, f64>(foreign),
        _ => return None,
    })
}

fn either<S: Number + Becomes<D>, D: Number>(foreign: bool) -> Kernel {
    if foreign {
        |from, to| each(from, to, |number: S| -> D { number.foreign() })
    } else {
        |from, to| each(from, to, |number: S| -> D { number.native() })
    }
}
