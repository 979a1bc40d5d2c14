//! What does `d[3, ::2, [1, 4]]` select?

use smallvec::{SmallVec, smallvec};

use crate::{Axis, Dims, Hyperslab, Product, SelectError, Selection};

/// One entry of an index, as Python writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexItem<'a> {
    /// An integer; negative counts from the end.  Its dimension is dropped from the result.
    Integer(i64),
    /// `start:stop:step`, as Python's `slice`; a negative step goes backwards.
    Slice {
        /// First element, or None for the first in the direction of the step.
        start: Option<i64>,
        /// One past the last, or None for all there are.
        stop: Option<i64>,
        /// Distance between elements, or None for 1.
        step: Option<i64>,
    },
    /// `...`: as many whole dimensions as are missing.
    Ellipsis,
    /// A list of indices, or several that pair up, in any order; negative ones count from the end.
    Points {
        /// The coordinates, a column for each of as many neighbouring dimensions.
        columns: &'a [&'a [i64]],
        /// In which they stand in the result.
        shape: &'a [u64],
    },
    /// The elements of neighbouring dimensions whose byte is not zero.
    Mask {
        /// Of these dimensions.
        shape: &'a [u64],
        /// Row-major.
        bytes: &'a [u8],
    },
}

impl IndexItem<'_> {
    /// For how many dimensions it stands; an Ellipsis fills what the others leave.
    pub fn rank(&self) -> usize {
        match self {
            Self::Integer(_) | Self::Slice { .. } => 1,
            Self::Ellipsis => 0,
            Self::Points { columns, .. } => columns.len(),
            Self::Mask { shape, .. } => shape.len(),
        }
    }

    /// Whether its elements lie at equal distances, in rising order.
    fn is_regular(&self) -> bool {
        match self {
            Self::Integer(_) | Self::Ellipsis => true,
            Self::Slice { step, .. } => step.is_none_or(|step| step >= 0),
            Self::Points { .. } | Self::Mask { .. } => false,
        }
    }
}

/// A selection of an array of known shape, and the shape of what is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The elements.
    pub selection: Selection,
    /// Shape of the result, without the dimensions that were indexed by integers.
    pub result_shape: Dims,
    /// Of each dimension of the selection's shape, whether an integer has dropped it.
    pub dropped: SmallVec<[bool; 8]>,
}

impl Resolved {
    /// Whether every dimension was indexed by an integer, so that the result is a scalar
    /// rather than an array; in h5py an Ellipsis beside the integers changes nothing.
    pub fn is_scalar(&self) -> bool {
        self.result_shape.is_empty()
    }
}

impl From<Selection> for Resolved {
    fn from(selection: Selection) -> Self {
        let result_shape = selection.shape();
        let dropped = smallvec![false; result_shape.len()];
        Self { selection, result_shape, dropped }
    }
}

/// Resolve an index: slices are clipped, integers must be in range, missing dimensions are
/// taken whole, and every choice of one entry goes with every choice of the others.
///
/// What h5py takes (`h5py.Dataset.__getitem__`) means the same here.
///
/// # Errors
/// When there are too many indices, one is out of range, a step is 0, a mask has another shape
/// than its dimensions, or two Ellipses are given.
pub fn resolve_index(shape: &[u64], items: &[IndexItem<'_>]) -> Result<Resolved, SelectError> {
    if items.iter().all(IndexItem::is_regular) {
        resolve_regular(shape, items)
    } else {
        resolve_product(shape, items)
    }
}

fn resolve_regular(shape: &[u64], items: &[IndexItem<'_>]) -> Result<Resolved, SelectError> {
    let (mut result_shape, mut dropped) = (Dims::new(), smallvec![]);
    let mut axes: SmallVec<[Axis; 4]> = smallvec![];
    for_each_entry(shape, items, |entry| {
        let Entry::Regular { start, step, count, drops } = entry else { return };
        axes.push(match step {
            2.. if count > 1 => Axis::strided(start, step.unsigned_abs(), count),
            _ => Axis::range(start, count),
        });
        if !drops {
            result_shape.push(count);
        }
        dropped.push(drops);
    })?;
    Ok(Resolved { selection: Hyperslab::from_axes(axes).into(), result_shape, dropped })
}

fn resolve_product(shape: &[u64], items: &[IndexItem<'_>]) -> Result<Resolved, SelectError> {
    let mut entries = Vec::new();
    for_each_entry(shape, items, |entry| entries.push(entry))?;
    let mut builder = Product::of(shape);
    for entry in &entries {
        builder = match entry {
            Entry::Regular { start, step, count, .. } => builder.slice(*start, *step, *count)?,
            Entry::Points { columns, .. } => builder.points(columns)?,
            Entry::Mask { shape, bytes } => builder.mask(shape, bytes)?,
        };
    }
    let product = builder.finish()?;
    let (mut result_shape, mut dropped) = (Dims::new(), smallvec![]);
    for (entry, choices) in entries.iter().zip(product.shape()) {
        let drops = matches!(entry, Entry::Regular { drops: true, .. });
        match entry {
            _ if drops => {}
            Entry::Points { shape, .. } => result_shape.extend_from_slice(shape),
            Entry::Regular { .. } | Entry::Mask { .. } => result_shape.push(choices),
        }
        dropped.push(drops);
    }
    Ok(Resolved { selection: product.into(), result_shape, dropped })
}

/// What an index says of one dimension, or of several.
#[derive(Clone, Copy)]
enum Entry<'a> {
    Regular { start: u64, step: i64, count: u64, drops: bool },
    Points { columns: &'a [&'a [i64]], shape: &'a [u64] },
    Mask { shape: &'a [u64], bytes: &'a [u8] },
}

/// Call `visit` with what an index says of all dimensions, slowest first.
fn for_each_entry<'a>(
    shape: &[u64],
    items: &[IndexItem<'a>],
    mut visit: impl FnMut(Entry<'a>),
) -> Result<(), SelectError> {
    let ellipses = items.iter().filter(|item| matches!(item, IndexItem::Ellipsis)).count();
    let given = items.iter().map(IndexItem::rank).sum();
    if ellipses > 1 {
        return Err(SelectError::TwoEllipses);
    }
    if given > shape.len() {
        return Err(SelectError::TooManyIndices { indices: given, dataset: shape.len() });
    }
    let mut missing = shape.len() - given;
    let at_the_end = (ellipses == 0).then_some(&IndexItem::Ellipsis);
    let mut dimension = 0;
    for item in items.iter().chain(at_the_end) {
        match *item {
            IndexItem::Ellipsis => {
                for &count in &shape[dimension..dimension + missing] {
                    visit(Entry::Regular { start: 0, step: 1, count, drops: false });
                }
                dimension += missing;
                missing = 0;
            }
            IndexItem::Integer(index) => {
                let start = resolve_integer(index, dimension, shape[dimension])?;
                visit(Entry::Regular { start, step: 1, count: 1, drops: true });
            }
            IndexItem::Slice { start, stop, step } => {
                let (start, step, count) = resolve_slice(start, stop, step, shape[dimension])?;
                visit(Entry::Regular { start, step, count, drops: false });
            }
            IndexItem::Points { columns, shape } => visit(Entry::Points { columns, shape }),
            IndexItem::Mask { shape, bytes } => visit(Entry::Mask { shape, bytes }),
        }
        dimension += item.rank();
    }
    Ok(())
}

/// The element that an integer means in a dimension, slowest first, of this size.
///
/// # Errors
/// When there is none.
pub fn resolve_integer(index: i64, dimension: usize, size: u64) -> Result<u64, SelectError> {
    let out_of_range = SelectError::OutOfRange { index, dimension, size };
    let resolved = if index < 0 {
        size.checked_sub(index.unsigned_abs()).ok_or(out_of_range.clone())?
    } else {
        index.unsigned_abs()
    };
    if resolved < size { Ok(resolved) } else { Err(out_of_range) }
}

/// First element, step and count of a slice, as Python clips it.
fn resolve_slice(
    start: Option<i64>,
    stop: Option<i64>,
    step: Option<i64>,
    size: u64,
) -> Result<(u64, i64, u64), SelectError> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(SelectError::ZeroStep);
    }
    // Counted from one before the first element, where a slice that goes backwards may end.
    let past = size.saturating_add(1);
    let from_before = |bound: i64| {
        if bound < 0 {
            past.saturating_sub(bound.unsigned_abs())
        } else {
            bound.unsigned_abs().saturating_add(1).min(past)
        }
    };
    let count_between = |low: u64, high: u64| {
        let step = step.unsigned_abs();
        high.saturating_sub(low).div_ceil(step)
    };
    if step > 0 {
        let start = start.map_or(1, from_before).max(1);
        let stop = stop.map_or(past, from_before).max(1);
        return Ok((start - 1, step, count_between(start, stop)));
    }
    let start = start.map_or(size, from_before).min(size);
    let stop = stop.map_or(0, from_before).min(size);
    let count = count_between(stop, start);
    Ok((if count == 0 { 0 } else { start - 1 }, step, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab(resolved: &Resolved) -> &Hyperslab {
        match &resolved.selection {
            Selection::Hyperslab(slab) => slab,
            other => panic!("{other:?} is no hyperslab"),
        }
    }

    const ALL: IndexItem = IndexItem::Slice { start: None, stop: None, step: None };

    #[test]
    fn integers_drop_dimensions_and_ellipsis_fills() {
        let got =
            resolve_index(&[4, 5, 6], &[IndexItem::Integer(-1), IndexItem::Ellipsis]).unwrap();
        assert_eq!(got.result_shape.as_slice(), &[5, 6]);
        assert_eq!(slab(&got).axes()[0], Axis::range(3, 1));
        assert_eq!(got.dropped.as_slice(), &[true, false, false]);
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
        let nowhere = IndexItem::Slice { start: None, stop: None, step: Some(0) };
        assert_eq!(error(&[nowhere]), SelectError::ZeroStep);
    }

    #[test]
    fn slices_follow_python() {
        let pick = |start, stop, step| {
            let item = IndexItem::Slice { start, stop, step };
            let resolved = resolve_index(&[10], &[item]).unwrap();
            let axis = slab(&resolved).axes()[0];
            (0..axis.len()).map(|p| axis.index_of(p)).collect::<Vec<_>>()
        };
        assert_eq!(pick(Some(1), Some(8), Some(3)), [1, 4, 7]);
        assert_eq!(pick(Some(-3), None, None), [7, 8, 9]);
        assert_eq!(pick(Some(8), Some(2), None), [] as [u64; 0]);
        assert_eq!(pick(Some(9), Some(100), Some(i64::MAX)), [9]);
    }

    #[test]
    fn slices_backwards_follow_python() {
        let pick = |start, stop, step, size| resolve_slice(start, stop, Some(step), size).unwrap();
        assert_eq!(pick(None, None, -1, 10), (9, -1, 10));
        assert_eq!(pick(Some(7), Some(1), -3, 10), (7, -3, 2));
        assert_eq!(pick(Some(-1), Some(-20), -4, 10), (9, -4, 3));
        assert_eq!(pick(Some(99), Some(7), -1, 10), (9, -1, 2));
        assert_eq!(pick(Some(2), Some(2), -1, 10), (0, -1, 0));
        assert_eq!(pick(Some(-20), None, -1, 10), (0, -1, 0));
        assert_eq!(pick(Some(0), Some(i64::MIN), i64::MIN, 10), (0, i64::MIN, 1));
        assert_eq!(pick(None, None, 1, 0), (0, 1, 0));
        // No dimension is as large; nothing may wrap around.
        assert_eq!(pick(Some(-2), None, 1, u64::MAX).2, 2);
    }
}
