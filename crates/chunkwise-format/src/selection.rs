//! Which elements does a stored selection take?
//!
//! Mappings of virtual datasets and references to regions store selections of a dataspace
//! (format specification, VIII.A).

use crate::dataspace::{Dims, MOST_RANK};
use crate::error::{FormatError, Problem};
use crate::fields::Fields;

/// A stored selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// No element.
    None,
    /// All elements.
    All,
    /// Single elements, in their order.
    Points(Vec<Dims>),
    /// A regular hyperslab, by dimension.
    Regular(Vec<Slab>),
    /// Boxes: their first and their last elements.
    Boxes(Vec<(Dims, Dims)>),
}

/// A regular hyperslab in one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slab {
    /// Where the first block begins.
    pub start: u64,
    /// From the beginning of one block to that of the next.
    pub stride: u64,
    /// Blocks; None where there is no limit.
    pub count: Option<u64>,
    /// Elements in a block; None where there is no limit.
    pub block: Option<u64>,
}

const NONE: u32 = 0;
const POINTS: u32 = 1;
const HYPERSLAB: u32 = 2;
const ALL: u32 = 3;

impl Selection {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, FormatError> {
        let (kind, version) = (fields.u32()?, fields.u32()?);
        match kind {
            NONE | ALL => {
                if version != 1 {
                    return Err(fields.error(Problem::Version(version as u8)));
                }
                fields.skip(8)?;
                Ok(if kind == ALL { Self::All } else { Self::None })
            }
            POINTS => points(fields, version),
            HYPERSLAB => hyperslab(fields, version),
            kind => Err(fields.unknown("a selection of kind", kind)),
        }
    }
}

fn points(fields: &mut Fields<'_>, version: u32) -> Result<Selection, FormatError> {
    let width = match version {
        1 => {
            fields.skip(8)?;
            4
        }
        2 => fields.u8()?,
        version => return Err(fields.error(Problem::Version(version as u8))),
    };
    let rank = rank(fields)?;
    let count = fields.number(width)?;
    let mut points = Vec::new();
    for _ in 0..count {
        points.push(dims(fields, rank, width)?);
    }
    Ok(Selection::Points(points))
}

fn hyperslab(fields: &mut Fields<'_>, version: u32) -> Result<Selection, FormatError> {
    let (regular, width) = match version {
        1 => {
            fields.skip(8)?;
            (false, 4)
        }
        2 => {
            let flags = fields.u8()?;
            fields.skip(4)?;
            (flags & 1 != 0, 8)
        }
        3 => (fields.u8()? & 1 != 0, fields.u8()?),
        version => return Err(fields.error(Problem::Version(version as u8))),
    };
    let rank = rank(fields)?;
    if regular {
        return slabs(fields, rank, width);
    }
    let count = fields.number(width)?;
    let mut boxes = Vec::new();
    for _ in 0..count {
        boxes.push((dims(fields, rank, width)?, dims(fields, rank, width)?));
    }
    Ok(Selection::Boxes(boxes))
}

fn slabs(fields: &mut Fields<'_>, rank: u32, width: u8) -> Result<Selection, FormatError> {
    let most = match width {
        2 => u64::from(u16::MAX),
        4 => u64::from(u32::MAX),
        _ => u64::MAX,
    };
    let mut slabs = Vec::new();
    for _ in 0..rank {
        let (start, stride) = (fields.number(width)?, fields.number(width)?);
        let limited = |number: u64| (number != most).then_some(number);
        let (count, block) = (limited(fields.number(width)?), limited(fields.number(width)?));
        slabs.push(Slab { start, stride, count, block });
    }
    Ok(Selection::Regular(slabs))
}

/// The number of dimensions; at least one, so that counts are bounded by what is there.
fn rank(fields: &mut Fields<'_>) -> Result<u32, FormatError> {
    match fields.u32()? {
        rank if rank > 0 && rank as usize <= MOST_RANK => Ok(rank),
        _ => Err(fields.wrong("it has no dimensions, or more than HDF5 allows")),
    }
}

fn dims(fields: &mut Fields<'_>, rank: u32, width: u8) -> Result<Dims, FormatError> {
    if width == 0 {
        return Err(fields.wrong("its numbers have no bytes"));
    }
    (0..rank).map(|_| fields.number(width)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Selection, Slab};
    use crate::error::{FormatError, Structure};
    use crate::fields::{Fields, Place, Widths};

    fn read(bytes: &[u8]) -> Result<Selection, FormatError> {
        let place = Place::new(Structure::Selection, 0);
        let widths = Widths { offset: 8, length: 8 };
        Selection::read(&mut Fields::new(bytes, place, widths))
    }

    #[test]
    fn slabs_may_be_unlimited() {
        let mut bytes = vec![2, 0, 0, 0, 3, 0, 0, 0, 1, 2, 1, 0, 0, 0];
        bytes.extend([1, 0, 5, 0, 0xff, 0xff, 2, 0]);
        let slab = Slab { start: 1, stride: 5, count: None, block: Some(2) };
        assert_eq!(read(&bytes), Ok(Selection::Regular(vec![slab])));
    }

    #[test]
    fn counts_are_bounded_by_what_there_is() {
        let mut points = vec![1, 0, 0, 0, 2, 0, 0, 0, 8, 1, 0, 0, 0];
        points.extend([0xff; 16]);
        assert!(read(&points).is_err());
        // Points without dimensions take nothing.
        points[9] = 0;
        assert!(read(&points).is_err());
    }
}
