//! What does `d[3, ::2, ...]` select?

use smallvec::{SmallVec, smallvec};

use crate::{Axis, Dims, Hyperslab, SelectError};

/// One entry of an index, as Python writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexItem {
    /// An integer; negative counts from the end.  Its dimension is dropped from the result.
    Integer(i64),
    /// `start:stop:step`, as Python's `slice`; the step must be at least 1.
    Slice {
        /// First element, or None for 0.
        start: Option<i64>,
        /// One past the last, or None for the size.
        stop: Option<i64>,
        /// Distance between elements, or None for 1.
        step: Option<i64>,
    },
    /// `...`: as many whole dimensions as are missing.
    Ellipsis,
}

/// An index resolved against a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    /// The elements.
    pub slab: Hyperslab,
    /// Shape of the result, without the dimensions that were indexed by integers.
    pub result_shape: Dims,
}

impl Indexed {
    /// Whether every dimension was indexed by an integer, so that the result is a scalar
    /// rather than an array; in h5py an Ellipsis beside the integers changes nothing.
    pub fn is_scalar(&self) -> bool {
        self.result_shape.is_empty()
    }
}

/// Resolve an index as h5py does (`h5py.Dataset.__getitem__`): slices are clipped,
/// integers must be in range, missing dimensions are taken whole.
///
/// # Errors
/// When there are too many indices, an integer is out of range, a step is below 1,
/// or two Ellipses are given.
pub fn resolve_index(shape: &[u64], items: &[IndexItem]) -> Result<Indexed, SelectError> {
    let ellipses = items.iter().filter(|i| matches!(i, IndexItem::Ellipsis)).count();
    let given = items.len() - ellipses;
    if ellipses > 1 {
        return Err(SelectError::TwoEllipses);
    }
    if given > shape.len() {
        return Err(SelectError::TooManyIndices { indices: given, dataset: shape.len() });
    }
    let missing = shape.len() - given;
    let mut axes: SmallVec<[Axis; 4]> = smallvec![];
    let mut result_shape: Dims = smallvec![];
    let take_whole = |n: usize, axes: &mut SmallVec<[Axis; 4]>, out: &mut Dims| {
        for _ in 0..n {
            let size = shape[axes.len()];
            axes.push(Axis::range(0, size));
            out.push(size);
        }
    };
    for item in items {
        let dimension = axes.len();
        match *item {
            IndexItem::Ellipsis => take_whole(missing, &mut axes, &mut result_shape),
            IndexItem::Integer(index) => {
                axes.push(Axis::range(resolve_integer(index, dimension, shape[dimension])?, 1));
            }
            IndexItem::Slice { start, stop, step } => {
                let axis = resolve_slice(start, stop, step, shape[dimension])?;
                result_shape.push(axis.len());
                axes.push(axis);
            }
        }
    }
    if ellipses == 0 {
        take_whole(missing, &mut axes, &mut result_shape);
    }
    Ok(Indexed { slab: Hyperslab::from_axes(axes), result_shape })
}

fn resolve_integer(index: i64, dimension: usize, size: u64) -> Result<u64, SelectError> {
    let out_of_range = SelectError::OutOfRange { index, dimension, size };
    let resolved = if index < 0 {
        size.checked_sub(index.unsigned_abs()).ok_or(out_of_range.clone())?
    } else {
        index.unsigned_abs()
    };
    if resolved < size { Ok(resolved) } else { Err(out_of_range) }
}

fn resolve_slice(
    start: Option<i64>,
    stop: Option<i64>,
    step: Option<i64>,
    size: u64,
) -> Result<Axis, SelectError> {
    let step = match step {
        None => 1,
        Some(step) if step >= 1 => step.unsigned_abs(),
        Some(step) => return Err(SelectError::Step(step)),
    };
    let clip = |bound: i64| {
        if bound < 0 {
            size.saturating_sub(bound.unsigned_abs())
        } else {
            bound.unsigned_abs().min(size)
        }
    };
    let start = start.map_or(0, clip);
    let stop = stop.map_or(size, clip);
    let count = stop.saturating_sub(start).div_ceil(step);
    if step == 1 || count <= 1 {
        return Ok(Axis::range(start, count));
    }
    Ok(Axis::strided(start, step, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: IndexItem = IndexItem::Slice { start: None, stop: None, step: None };

    #[test]
    fn integers_drop_dimensions_and_ellipsis_fills() {
        let got =
            resolve_index(&[4, 5, 6], &[IndexItem::Integer(-1), IndexItem::Ellipsis]).unwrap();
        assert_eq!(got.result_shape.as_slice(), &[5, 6]);
        assert_eq!(got.slab.axes()[0], Axis::range(3, 1));
        assert!(!got.is_scalar());
        assert!(resolve_index(&[4], &[IndexItem::Integer(2)]).unwrap().is_scalar());
        let beside = resolve_index(&[4], &[IndexItem::Integer(2), IndexItem::Ellipsis]).unwrap();
        assert!(beside.is_scalar());
    }

    #[test]
    fn wrong_indices_are_refused() {
        let error = |items: &[IndexItem]| resolve_index(&[4, 5], items).unwrap_err();
        assert!(matches!(error(&[ALL, ALL, ALL]), SelectError::TooManyIndices { indices: 3, .. }));
        assert!(matches!(error(&[IndexItem::Integer(4)]), SelectError::OutOfRange { .. }));
        assert!(matches!(error(&[IndexItem::Integer(-5)]), SelectError::OutOfRange { .. }));
        assert!(matches!(error(&[IndexItem::Integer(i64::MIN)]), SelectError::OutOfRange { .. }));
        assert_eq!(error(&[IndexItem::Ellipsis, IndexItem::Ellipsis]), SelectError::TwoEllipses);
        let backwards = IndexItem::Slice { start: None, stop: None, step: Some(-1) };
        assert_eq!(error(&[backwards]), SelectError::Step(-1));
    }

    #[test]
    fn slices_follow_python() {
        let pick = |start, stop, step| {
            let item = IndexItem::Slice { start, stop, step };
            let axis = resolve_index(&[10], &[item]).unwrap().slab.axes()[0];
            (0..axis.len()).map(|p| axis.index_of(p)).collect::<Vec<_>>()
        };
        assert_eq!(pick(Some(1), Some(8), Some(3)), [1, 4, 7]);
        assert_eq!(pick(Some(-3), None, None), [7, 8, 9]);
        assert_eq!(pick(Some(8), Some(2), None), [] as [u64; 0]);
        assert_eq!(pick(Some(9), Some(100), Some(i64::MAX)), [9]);
    }
}
