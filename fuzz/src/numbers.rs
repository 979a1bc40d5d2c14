//! Numbers that programs get wrong, and shapes and selections made of them.

use arbitrary::{Result, Unstructured};
use chunkwise_select::{Dims, Hyperslab};

/// A small number, one at the edge of what some width of bits holds, or any.
pub(crate) fn hostile(input: &mut Unstructured<'_>) -> Result<u64> {
    let kind: u8 = input.arbitrary()?;
    let few = u32::from(kind / 8);
    Ok(match kind % 8 {
        0..=3 => u64::from(few),
        4 => 1 << (2 * few),
        5 => (1 << (2 * few)) - 1,
        6 => u64::MAX - u64::from(few),
        _ => input.arbitrary()?,
    })
}

/// A number below `end`; 0 where that is 0.
pub(crate) fn below(input: &mut Unstructured<'_>, end: u64) -> Result<u64> {
    Ok(hostile(input)?.checked_rem(end).unwrap_or(0))
}

/// A number for each of `rank` dimensions, at least `least`.
pub(crate) fn dims(input: &mut Unstructured<'_>, rank: usize, least: u64) -> Result<Dims> {
    (0..rank).map(|_| Ok(hostile(input)?.max(least))).collect()
}

/// A hyperslab, mostly one that fits `shape`; None where its numbers are refused.
pub(crate) fn slab(input: &mut Unstructured<'_>, shape: &[u64]) -> Result<Option<Hyperslab>> {
    let wild = input.ratio(1, 8)?;
    let mut parts: [Dims; 4] = Default::default();
    for &size in shape {
        let axis = if wild {
            [hostile(input)?, hostile(input)?, hostile(input)?, hostile(input)?]
        } else {
            let start = below(input, size)?;
            let block = below(input, size - start)? + 1;
            let stride = below(input, size)?.max(block);
            let most = (size.saturating_sub(start + block)) / stride + 1;
            [start, stride, below(input, most.saturating_add(1))?, block]
        };
        parts.iter_mut().zip(axis).for_each(|(part, number)| part.push(number));
    }
    let [start, stride, count, block] = &parts;
    Ok(Hyperslab::new(shape, start, stride, count, block).ok())
}
