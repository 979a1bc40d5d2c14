//! What number of another type does libhdf5 make of a number?
//!
//! Between the processor's own numbers its compiler converts, with the ends of a range clipped; of
//! a foreign byte order its own routines do, which treat NaNs and roundings otherwise.  What C leaves
//! open is as this processor has it.  The caller compares with the library at hand first
//! (`python/chunkwise/routing/conversions.py`), since versions differ.

/// A number that becomes one of another type.
pub(crate) trait Becomes<D> {
    /// As between native numbers.
    fn native(self) -> D;
    /// As where either is of a foreign byte order.
    fn foreign(self) -> D;
}

/// A float of 16 bits.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Half(u16);

/// Numbers of the processor, of which any bytes are one.
///
/// # Safety
/// Only for types without padding, each of whose bit patterns is a value.
pub(crate) unsafe trait Number: Copy {}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        // SAFETY: a number.
        unsafe impl Number for $t {}
    )*};
}
numbers!(i8, u8, i16, u16, i32, u32, i64, u64, f32, f64, Half);

/// Make of each number in `from` one in `to`, wherever they lie; of as many as both hold.
#[inline(always)]
pub(crate) fn each<S: Number, D: Number>(from: &[u8], to: &mut [u8], become_one: impl Fn(S) -> D) {
    let count = (from.len() / size_of::<S>()).min(to.len() / size_of::<D>());
    let (from, to) = (from.as_ptr().cast::<S>(), to.as_mut_ptr().cast::<D>());
    let mut i = 0;
    while i < count {
        // SAFETY: `i` numbers and this one lie within both slices; they need no alignment here.
        unsafe { to.add(i).write_unaligned(become_one(from.add(i).read_unaligned())) };
        i += 1;
    }
}

/// Turn the order of the bytes of each number of `size` bytes.
pub(crate) fn swap(numbers: &mut [u8], size: usize) {
    #[inline(always)]
    fn swapped<T: Number>(numbers: &mut [u8], swap: impl Fn(T) -> T) {
        let count = numbers.len() / size_of::<T>();
        let numbers = numbers.as_mut_ptr().cast::<T>();
        let mut i = 0;
        while i < count {
            // SAFETY: as above.
            unsafe { numbers.add(i).write_unaligned(swap(numbers.add(i).read_unaligned())) };
            i += 1;
        }
    }
    match size {
        2 => swapped(numbers, u16::swap_bytes),
        4 => swapped(numbers, u32::swap_bytes),
        8 => swapped(numbers, u64::swap_bytes),
        _ => {}
    }
}

/// What is out of range becomes the end of the range.
macro_rules! integers {
    ($($s:ty => $($d:ty),*;)*) => {$($(
        impl Becomes<$d> for $s {
            #[inline(always)]
            fn native(self) -> $d {
                const LOW: $s =
                    if (<$d>::MIN as i128) > (<$s>::MIN as i128) { <$d>::MIN as $s } else { <$s>::MIN };
                const HIGH: $s =
                    if (<$d>::MAX as i128) < (<$s>::MAX as i128) { <$d>::MAX as $s } else { <$s>::MAX };
                self.clamp(LOW, HIGH) as $d
            }
            #[inline(always)]
            fn foreign(self) -> $d {
                // Of one size, its bytes are swapped, and no more.
                if size_of::<$s>() == size_of::<$d>() { self as $d } else { self.native() }
            }
        }
    )*)*};
}
integers! {
    i8 => i8, u8, i16, u16, i32, u32, i64, u64;
    u8 => i8, u8, i16, u16, i32, u32, i64, u64;
    i16 => i8, u8, i16, u16, i32, u32, i64, u64;
    u16 => i8, u8, i16, u16, i32, u32, i64, u64;
    i32 => i8, u8, i16, u16, i32, u32, i64, u64;
    u32 => i8, u8, i16, u16, i32, u32, i64, u64;
    i64 => i8, u8, i16, u16, i32, u32, i64, u64;
    u64 => i8, u8, i16, u16, i32, u32, i64, u64;
}

/// Rounded to the nearest, to even between two.
macro_rules! integers_to_floats {
    ($($s:ty),*) => {$(
        impl Becomes<f32> for $s {
            #[inline(always)]
            fn native(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn foreign(self) -> f32 {
                self as f32
            }
        }
        impl Becomes<f64> for $s {
            #[inline(always)]
            fn native(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn foreign(self) -> f64 {
                self as f64
            }
        }
        impl Becomes<Half> for $s {
            #[inline(always)]
            fn native(self) -> Half {
                // Beyond the largest it is infinite; so far f64 holds all integers.
                half_of((self as f64).clamp(-65505.0, 65505.0))
            }
            #[inline(always)]
            fn foreign(self) -> Half {
                self.native()
            }
        }
    )*};
}
integers_to_floats!(i8, u8, i16, u16, i32, u32, i64, u64);

/// What the processor makes of NaN, and of a number one past the end.  libhdf5 compares with the end
/// as a float, which may be rounded to one past it.
#[cfg(target_arch = "x86_64")]
macro_rules! of_nan {
    (i32) => {
        i32::MIN
    };
    (i64) => {
        i64::MIN
    };
    (u64) => {
        1 << 63
    };
    ($d:ident) => {
        0
    };
}
#[cfg(target_arch = "x86_64")]
macro_rules! of_end {
    ($d:ident) => {
        <$d>::MIN
    };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! of_nan {
    ($d:ident) => {
        0
    };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! of_end {
    ($d:ident) => {
        <$d>::MAX
    };
}

macro_rules! floats_to_integers {
    ($s:ty => $($d:ident),*) => {$(
        impl Becomes<$d> for $s {
            #[inline(always)]
            fn native(self) -> $d {
                const END: $s = <$d>::MAX as $s;
                let is_end = self == END && (END as i128) > (<$d>::MAX as i128);
                let made = if is_end { of_end!($d) } else { self as $d };
                if self.is_nan() { of_nan!($d) } else { made }
            }
            #[inline(always)]
            fn foreign(self) -> $d {
                // Its routine takes a small negative number for one out of range.
                if self > -0.5 && self < 0.0 { <$d>::MIN } else { self as $d }
            }
        }
    )*};
}
floats_to_integers!(f32 => i8, u8, i16, u16, i32, u32, i64, u64);
floats_to_integers!(f64 => i8, u8, i16, u16, i32, u32, i64, u64);

macro_rules! halves_to_integers {
    ($($d:ident),*) => {$(
        impl Becomes<$d> for Half {
            #[inline(always)]
            fn native(self) -> $d {
                float_of(self).native()
            }
            #[inline(always)]
            fn foreign(self) -> $d {
                float_of(self).foreign()
            }
        }
    )*};
}
halves_to_integers!(i8, u8, i16, u16, i32, u32, i64, u64);

macro_rules! same {
    ($($t:ty),*) => {$(
        impl Becomes<$t> for $t {
            #[inline(always)]
            fn native(self) -> $t {
                self
            }
            #[inline(always)]
            fn foreign(self) -> $t {
                self
            }
        }
    )*};
}
same!(f32, f64, Half);

impl Becomes<f64> for f32 {
    #[inline(always)]
    fn native(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn foreign(self) -> f64 {
        if self.is_nan() {
            // NaNs lose what they carry.
            f64::from_bits((u64::from(self.to_bits() >> 31) << 63) | (u64::MAX >> 1))
        } else {
            f64::from(self)
        }
    }
}

impl Becomes<f32> for f64 {
    #[inline(always)]
    fn native(self) -> f32 {
        // What would be rounded to the largest is infinite.
        if self > f64::from(f32::MAX) {
            f32::INFINITY
        } else if self < f64::from(f32::MIN) {
            f32::NEG_INFINITY
        } else {
            self as f32
        }
    }
    #[inline(always)]
    fn foreign(self) -> f32 {
        let bits = self.to_bits();
        let sign = ((bits >> 32) as u32) & (1 << 31);
        let magnitude = bits & (u64::MAX >> 1);
        const INFINITE: u64 = 0x7ff << 52;
        const TOO_LARGE: u64 = (1023 + 128) << 52;
        const NORMAL: u64 = (1023 - 126) << 52;
        let made = if magnitude > INFINITE {
            u32::MAX >> 1
        } else if magnitude >= TOO_LARGE {
            0xff << 23
        } else if magnitude >= NORMAL {
            // Away from zero between two, and to the largest at most.
            (((magnitude + (1 << 28) - (896 << 52)) >> 29) as u32).min(f32::MAX.to_bits())
        } else {
            let exponent = magnitude >> 52;
            let mantissa = (magnitude & ((1 << 52) - 1)) | (1 << 52);
            let shift = 29 + 897 - exponent;
            if shift > 53 {
                0
            } else {
                let below = (mantissa >> shift) as u32;
                let rounded = ((mantissa + (1 << (shift - 1))) >> shift) as u32;
                // Its routine loses a bit where one more is needed.
                let carried = rounded > below && below > 0 && rounded.is_power_of_two();
                if carried { below.div_ceil(2) } else { rounded }
            }
        };
        f32::from_bits(sign | made)
    }
}

impl Becomes<f32> for Half {
    #[inline(always)]
    fn native(self) -> f32 {
        float_of(self)
    }
    #[inline(always)]
    fn foreign(self) -> f32 {
        let float = float_of(self);
        let all = f32::from_bits(float.to_bits() | (u32::MAX >> 1));
        if float.is_nan() { all } else { float }
    }
}

impl Becomes<f64> for Half {
    #[inline(always)]
    fn native(self) -> f64 {
        f64::from(float_of(self))
    }
    #[inline(always)]
    fn foreign(self) -> f64 {
        float_of(self).foreign()
    }
}

impl Becomes<Half> for f32 {
    #[inline(always)]
    fn native(self) -> Half {
        half_of(f64::from(self))
    }
    #[inline(always)]
    fn foreign(self) -> Half {
        self.native()
    }
}

impl Becomes<Half> for f64 {
    #[inline(always)]
    fn native(self) -> Half {
        half_of(self)
    }
    #[inline(always)]
    fn foreign(self) -> Half {
        self.native()
    }
}

const LARGEST_HALF: f64 = 65504.0;

/// The nearest half, infinite beyond the largest one.
#[inline(always)]
fn half_of(number: f64) -> Half {
    let bits = number.to_bits();
    let sign = ((bits >> 48) as u16) & (1 << 15);
    let magnitude = bits & (u64::MAX >> 1);
    let absolute = f64::from_bits(magnitude);
    const NORMAL: u64 = (1023 - 14) << 52;
    // In steps of the smallest half: what is added has these as its last bit.
    const STEP: f64 = (1u64 << 28) as f64;
    let small = ((absolute + STEP).to_bits() - STEP.to_bits()) as u16;
    let even = (magnitude >> 42) & 1;
    let rounded = magnitude + ((1 << 41) - 1) + even;
    let normal = (rounded.wrapping_sub((1023 - 15) << 52) >> 42) as u16;
    let made = if number.is_nan() {
        0x7e00 | ((magnitude >> 42) as u16 & 0x3ff)
    } else if absolute > LARGEST_HALF {
        0x7c00
    } else if magnitude < NORMAL {
        small
    } else {
        normal
    };
    Half(sign | made)
}

/// The same number; a NaN that signals becomes quiet.
#[inline(always)]
fn float_of(half: Half) -> f32 {
    const EXPONENT: u32 = 0x1f << 23;
    const QUIET: u32 = 1 << 22;
    let sign = u32::from(half.0 & (1 << 15)) << 16;
    let magnitude = u32::from(half.0 & 0x7fff) << 13;
    let exponent = magnitude & EXPONENT;
    let normal = magnitude + ((127 - 15) << 23);
    let small = f32::from_bits(normal + (1 << 23)) - f32::from_bits((127 - 14) << 23);
    let endless = (0xff << 23) | magnitude & ((1 << 23) - 1);
    let made = if exponent == EXPONENT {
        if magnitude > EXPONENT { endless | QUIET } else { endless }
    } else if exponent == 0 {
        small.to_bits()
    } else {
        normal
    };
    f32::from_bits(sign | made)
}
