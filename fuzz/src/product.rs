//! Selections of slices, points and masks, beside the elements that they name one by one.

use arbitrary::{Result, Unstructured};
use chunkwise_select::{Dims, Product};

use crate::numbers::{below, hostile};

/// Factors of more choices than this are not listed.
const MOST_CHOICES: u64 = 1 << 10;

/// A selection, and what each of its factors chooses: coordinates in the dimensions that it
/// stands for.
pub(crate) struct Listed {
    pub(crate) product: Product,
    choices: Vec<Vec<Dims>>,
}

impl Listed {
    /// The element that comes at a place of the result; None beyond the last.
    pub(crate) fn element(&self, mut place: u64) -> Option<Dims> {
        let mut parts: Vec<&Dims> = Vec::new();
        for choices in self.choices.iter().rev() {
            let len = choices.len() as u64;
            parts.push(choices.get(place.checked_rem(len)? as usize)?);
            place /= len;
        }
        Some(parts.into_iter().rev().flatten().copied().collect())
    }
}

/// A selection of an array of `shape`; None where its numbers are refused.
pub(crate) fn product(input: &mut Unstructured<'_>, shape: &[u64]) -> Result<Option<Listed>> {
    let mut builder = Product::of(shape);
    let mut choices = Vec::new();
    let mut rest = shape;
    while let &[size, ..] = rest {
        let rank = input.int_in_range(1..=rest.len())?;
        let (dims, others) = rest.split_at(rank);
        let total = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d));
        let added = match input.int_in_range(0..=2u8)? {
            0 => {
                let step = i64::from(input.arbitrary::<i8>()?);
                let count = below(input, size.min(MOST_CHOICES).saturating_add(1))?;
                let wild = input.ratio(1, 8)?;
                let start = if wild { hostile(input)? } else { below(input, size)? };
                rest = &rest[1..];
                let at = |i: u64| start.wrapping_add_signed(step.wrapping_mul(i as i64));
                choices.push((0..count).map(|i| Dims::from_slice(&[at(i)])).collect());
                builder.slice(start, step, count)
            }
            1 => {
                let count = input.int_in_range(0..=20)?;
                let mut columns = vec![Vec::new(); rank];
                for (column, &size) in columns.iter_mut().zip(dims) {
                    for _ in 0..count {
                        column.push(below(input, size)? as i64);
                    }
                }
                rest = others;
                let point =
                    |i: usize| columns.iter().map(move |column: &Vec<i64>| column[i] as u64);
                choices.push((0..count).map(|i| point(i).collect()).collect());
                builder.points(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>())
            }
            _ => {
                let Some(total) = total.filter(|&total| total <= MOST_CHOICES) else {
                    return Ok(None);
                };
                let mask = (0..total).map(|_| input.arbitrary()).collect::<Result<Vec<u8>>>()?;
                rest = others;
                let places = (0..total).filter(|&place| mask[place as usize] != 0);
                choices.push(places.map(|place| coordinates(place, dims)).collect());
                builder.mask(dims, &mask)
            }
        };
        let Ok(added) = added else { return Ok(None) };
        builder = added;
    }
    Ok(builder.finish().ok().map(|product| Listed { product, choices }))
}

/// Coordinates of the element at a row-major place.
fn coordinates(mut place: u64, shape: &[u64]) -> Dims {
    let mut found = Dims::from_slice(shape);
    for index in found.iter_mut().rev() {
        let size = *index;
        *index = place % size;
        place /= size;
    }
    found
}
