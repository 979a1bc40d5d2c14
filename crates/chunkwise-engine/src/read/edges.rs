//! At which numbers may two libraries convert differently?
//!
//! At the ends of ranges, between two numbers of the other type, and at NaNs.  Whoever has the
//! engine convert in a library's place compares both at these first.

use std::collections::BTreeSet;

use crate::read::convert::{NumberKind, NumberType};

/// Exponents of 2 at the ends of ranges: of floats, of integers, and of what floats count exactly.
const LIMITS: [i64; 19] =
    [-1074, -149, -126, -24, -14, 0, 7, 8, 10, 15, 16, 23, 31, 32, 52, 63, 64, 127, 128];

/// Some thousands of numbers of a type, one after the other, as they lie in memory; none of a type
/// that there is not.
pub fn edge_numbers(of: NumberType) -> Vec<u8> {
    let bits = match (of.kind, of.size) {
        (NumberKind::Float, 2) => floats(10, 15, 16),
        (NumberKind::Float, 4) => floats(23, 127, 32),
        (NumberKind::Float, 8) => floats(52, 1023, 64),
        (NumberKind::Signed | NumberKind::Unsigned, 1 | 2 | 4 | 8) => integers(),
        _ => Vec::new(),
    };
    let mut numbers = Vec::with_capacity(bits.len() * of.size);
    for number in bits {
        let mut bytes = number.to_le_bytes();
        let number = &mut bytes[..of.size];
        if of.swapped == cfg!(target_endian = "little") {
            number.reverse();
        }
        numbers.extend_from_slice(number);
    }
    numbers
}

/// Powers of 2 and their neighbours, also with the first bits that a float has no room for.
fn integers() -> Vec<u64> {
    let mut around: Vec<u64> = (65_500..65_560).collect();
    for exponent in 0..64 {
        let power = 1u64 << exponent;
        around.push(power);
        for digits in [10, 11, 12, 23, 24, 25, 52, 53, 54] {
            let tail = power >> digits;
            around.extend([power + tail, power.wrapping_add(tail.wrapping_mul(3))]);
        }
    }
    let near = |number: &u64| [number.wrapping_sub(1), *number, number.wrapping_add(1)];
    let positive: Vec<u64> = around.iter().flat_map(near).collect();
    let negative = positive.iter().map(|number| number.wrapping_neg());
    positive.iter().copied().chain(negative).collect()
}

/// Bits of floats: exponents near limits, with digits near where shorter floats are cut.
fn floats(digits: i64, bias: i64, bits: u32) -> Vec<u64> {
    let most = 2 * bias + 1;
    let near = LIMITS.iter().flat_map(|limit| (-2..2).map(move |step| bias + limit + step));
    let exponents: BTreeSet<i64> = near
        .chain([0, 1, most - 1, most])
        .filter(|exponent| (0..=most).contains(exponent))
        .collect();
    let cuts =
        [0, 10, 23].into_iter().flat_map(|kept| (-3..3).map(move |step| digits - kept + step));
    let chosen: BTreeSet<i64> =
        cuts.chain([0, 1, 2, digits]).filter(|cut| (0..=digits).contains(cut)).collect();
    let every = (1u64 << digits) - 1;
    let low = chosen.iter().map(|cut| (1u64 << cut) - 1);
    let tails: BTreeSet<u64> = low
        .flat_map(|low| [low, low + 1, every - low, (every - low).wrapping_sub(1)])
        .map(|tail| tail & every)
        .collect();
    let mut made = Vec::with_capacity(2 * exponents.len() * tails.len());
    for exponent in exponents {
        for tail in &tails {
            let number = ((exponent as u64) << digits) | tail;
            made.extend([number, number | (1 << (bits - 1))]);
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::edge_numbers;
    use crate::read::convert::{NumberKind, NumberType};

    #[test]
    fn they_hold_the_ends_of_ranges_and_nans() {
        let of = |kind, size| edge_numbers(NumberType { kind, size, swapped: false });
        let floats: Vec<f32> = of(NumberKind::Float, 4)
            .chunks_exact(4)
            .map(|bytes| f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            .collect();
        assert!(floats.iter().any(|number| number.is_nan()));
        for wanted in [0.0, f32::INFINITY, f32::MAX, f32::MIN_POSITIVE, -2147483648.0, 65504.0] {
            assert!(floats.contains(&wanted), "{wanted}");
        }
        let bytes = of(NumberKind::Signed, 1);
        assert!((0..=u8::MAX).filter(|byte| !bytes.contains(byte)).count() < 200);
        assert!(
            edge_numbers(NumberType { kind: NumberKind::Float, size: 3, swapped: false })
                .is_empty()
        );
    }

    #[test]
    fn of_the_other_byte_order_they_are_the_same() {
        let of =
            |swapped| edge_numbers(NumberType { kind: NumberKind::Unsigned, size: 4, swapped });
        let turned: Vec<u8> =
            of(true).chunks_exact(4).flat_map(|bytes| bytes.iter().rev().copied()).collect();
        assert_eq!(turned, of(false));
    }
}
