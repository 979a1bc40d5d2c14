//! Which shape do a dataset's or an attribute's values have?
//!
//! A largest extent with all bits set is unlimited, however many bytes lengths have in the file.
//! HDF5 2.0 takes it as a number where they have fewer than eight, and then does not open datasets
//! whose chunks are in an extensible array (format specification, IV.A.2.b).

use smallvec::SmallVec;

use crate::error::{FormatError, Problem};
use crate::fields::Fields;

/// HDF5's limit on the number of dimensions (`H5S_MAX_RANK`).
pub(crate) const MOST_RANK: usize = 32;

/// A number for each dimension, the slowest first.
pub type Dims = SmallVec<[u64; 4]>;

/// The shape of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dataspace {
    /// No value at all.
    Null,
    /// One value.
    Scalar,
    /// An array.
    Simple {
        /// Its shape.
        shape: Dims,
        /// The largest shape: None where it is unlimited, and the same as the shape where the
        /// file says none.
        max_shape: SmallVec<[Option<u64>; 4]>,
    },
}

impl Dataspace {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, FormatError> {
        let version = fields.u8()?;
        let (rank, flags) = (usize::from(fields.u8()?), fields.u8()?);
        let kind = match version {
            1 => {
                fields.skip(5)?;
                u8::from(rank > 0)
            }
            2 => fields.u8()?,
            version => return Err(fields.error(Problem::Version(version))),
        };
        if rank > MOST_RANK {
            return Err(fields.wrong("it has more dimensions than HDF5 allows"));
        }
        match (kind, rank) {
            (0, 0) => return Ok(Self::Scalar),
            (2, 0) => return Ok(Self::Null),
            (1, _) => {}
            (0 | 2, _) => return Err(fields.wrong("it has dimensions and is no array")),
            (kind, _) => return Err(fields.unknown("a kind of number", kind)),
        }
        let shape = (0..rank).map(|_| fields.length()).collect::<Result<Dims, _>>()?;
        let max_shape: SmallVec<[Option<u64>; 4]> = match flags & 1 != 0 {
            true => (0..rank).map(|_| fields.defined_length()).collect::<Result<_, _>>()?,
            false => shape.iter().copied().map(Some).collect(),
        };
        if shape.iter().zip(&max_shape).any(|(&n, most)| most.is_some_and(|most| n > most)) {
            return Err(fields.wrong("its shape is larger than its largest shape"));
        }
        Ok(Self::Simple { shape, max_shape })
    }

    /// How many values there are; None where that is no number.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Null => Some(0),
            Self::Scalar => Some(1),
            // A zero makes all zero, wherever it stands.
            Self::Simple { shape, .. } if shape.contains(&0) => Some(0),
            Self::Simple { shape, .. } => {
                shape.iter().try_fold(1u64, |count, &n| count.checked_mul(n))
            }
        }
    }

    /// The shape; none of a null or scalar dataspace.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        match self {
            Self::Null | Self::Scalar => &[],
            Self::Simple { shape, .. } => shape,
        }
    }

    /// The largest shape, as `Simple` has it.
    #[must_use]
    pub fn max_shape(&self) -> &[Option<u64>] {
        match self {
            Self::Null | Self::Scalar => &[],
            Self::Simple { max_shape, .. } => max_shape,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dataspace;
    use crate::error::{FormatError, Structure};
    use crate::fields::{Fields, Place, Widths};

    fn read(bytes: &[u8]) -> Result<Dataspace, FormatError> {
        let widths = Widths { offset: 8, length: 2 };
        let place = Place::new(Structure::Message(1), 0);
        Dataspace::read(&mut Fields::new(bytes, place, widths))
    }

    #[test]
    fn shapes_may_be_unlimited() {
        let space = read(&[2, 2, 1, 1, 3, 0, 4, 0, 0xff, 0xff, 9, 0]).unwrap();
        assert_eq!((space.shape(), space.max_shape()), (&[3, 4][..], &[None, Some(9)][..]));
        assert_eq!(space.count(), Some(12));
    }

    #[test]
    fn one_value_none_and_no_number() {
        assert_eq!(read(&[1, 0, 0, 0, 0, 0, 0, 0]), Ok(Dataspace::Scalar));
        assert_eq!(read(&[2, 0, 0, 2]), Ok(Dataspace::Null));
        assert!(read(&[2, 1, 0, 2, 1, 0]).is_err());
        assert!(read(&[2, 33, 0, 1]).is_err());
        let vast = Dataspace::Simple {
            shape: [u64::MAX, 2, 0].into_iter().collect(),
            max_shape: [None; 3].into_iter().collect(),
        };
        assert_eq!(vast.count(), Some(0));
    }
}
