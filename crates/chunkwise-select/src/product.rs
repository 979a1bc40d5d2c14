//! Which elements do lists, masks and slices of several dimensions select together?
//!
//! Each stands for one or more neighbouring dimensions, and is a factor of the selection:
//! every choice in one goes with every choice in the others.  A slice is a factor of one
//! dimension, possibly read backwards; points are places in any number of dimensions, in
//! any order and repeated at will (an index list in one, paired lists in several); a mask
//! marks places.  The result has one dimension for each factor.

use smallvec::SmallVec;

use crate::bits::Bits;
use crate::{Axis, Dims, Hyperslab, MAX_RANK, SelectError};

/// A selection that is the product of its factors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    shape: Dims,
    factors: SmallVec<[Factor; 4]>,
}

/// What is wanted along some neighbouring dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Factor {
    /// Elements of one dimension at equal distances.
    Axis {
        axis: Axis,
        /// The last of them comes first in the result.
        backwards: bool,
    },
    /// Places in the dimensions, counted row-major, in the order of the result.
    Points { rank: usize, places: Box<[u64]> },
    /// The places whose bits are set, row-major.
    Mask { rank: usize, bits: Bits },
}

impl Factor {
    /// Number of dimensions it stands for.
    pub(crate) fn rank(&self) -> usize {
        match self {
            Self::Axis { .. } => 1,
            Self::Points { rank, .. } | Self::Mask { rank, .. } => *rank,
        }
    }

    /// Number of choices.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Axis { axis, .. } => axis.len(),
            Self::Points { places, .. } => places.len() as u64,
            Self::Mask { bits, .. } => bits.len(),
        }
    }
}

/// What one factor chooses, for those who hand it to a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choices {
    /// Of one dimension, elements at equal distances; a negative step goes backwards.
    Slice {
        /// The first in the result.
        start: u64,
        /// From each to the next.
        step: i64,
        /// How many.
        count: u64,
    },
    /// Elements by their coordinates, a column a dimension.
    Points(Vec<Vec<u64>>),
}

impl Choices {
    /// Those of an axis of single elements, or of one block.
    pub(crate) fn of_axis(axis: &Axis, backwards: bool) -> Self {
        let count = axis.len();
        let step = if axis.is_contiguous() { 1 } else { axis.stride() as i64 };
        if backwards {
            Self::Slice { start: axis.index_of(count - 1), step: -step, count }
        } else {
            Self::Slice { start: axis.start(), step, count }
        }
    }

    fn of_places(places: impl Iterator<Item = u64>, shape: &[u64]) -> Self {
        let mut columns = vec![Vec::with_capacity(places.size_hint().0); shape.len()];
        for mut place in places {
            for (column, &size) in columns.iter_mut().zip(shape).rev() {
                column.push(place % size);
                place /= size;
            }
        }
        Self::Points(columns)
    }
}

impl Product {
    /// Begin a selection of an array of `shape`; factors are added from the slowest dimension
    /// on.
    pub fn of(shape: &[u64]) -> ProductBuilder {
        ProductBuilder { product: Self { shape: shape.into(), factors: SmallVec::new() }, rank: 0 }
    }

    /// Shape of the array that it selects from.
    pub fn array_shape(&self) -> &[u64] {
        &self.shape
    }

    pub(crate) fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// Shape of the result: the number of choices of each factor.
    pub fn shape(&self) -> Dims {
        self.factors.iter().map(Factor::len).collect()
    }

    /// The choices of each factor, in the order of the result.
    pub fn choices(&self) -> Vec<Choices> {
        let mut dimension = 0;
        let choices = self.factors.iter().map(|factor| {
            let shape = &self.shape[dimension..dimension + factor.rank()];
            dimension += factor.rank();
            match factor {
                Factor::Axis { axis, backwards } => Choices::of_axis(axis, *backwards),
                Factor::Points { places, .. } => Choices::of_places(places.iter().copied(), shape),
                Factor::Mask { bits, .. } => {
                    let mut places = Vec::with_capacity(bits.len() as usize);
                    bits.visit_runs(0, shape.iter().product(), |begin, len| {
                        places.extend(begin..begin + len);
                        true
                    });
                    Choices::of_places(places.into_iter(), shape)
                }
            }
        });
        choices.collect()
    }

    /// Whether it is a single mask.
    pub fn is_mask(&self) -> bool {
        matches!(self.factors.as_slice(), [Factor::Mask { .. }])
    }

    /// Number of elements selected, repeated ones counted each time.
    ///
    /// # Errors
    /// When that number does not fit into 64 bits.
    pub fn len(&self) -> Result<u64, SelectError> {
        if self.is_empty() {
            return Ok(0);
        }
        let len = self.factors.iter().try_fold(1u64, |n, factor| n.checked_mul(factor.len()));
        len.ok_or(SelectError::Overflow("elements selected"))
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.factors.iter().any(|factor| factor.len() == 0)
    }

    /// The hyperslab that selects the same in the same order, if there is one: what it costs
    /// to plan does not grow with what it selects.
    pub fn hyperslab(&self) -> Option<Hyperslab> {
        let axes = self.factors.iter().map(|factor| match factor {
            Factor::Axis { axis, backwards: false } => Some(*axis),
            _ => None,
        });
        axes.collect::<Option<_>>().map(Hyperslab::from_axes)
    }
}

/// A [`Product`] that is being put together.
#[derive(Debug, Clone)]
pub struct ProductBuilder {
    product: Product,
    /// Dimensions that the factors so far stand for.
    rank: usize,
}

impl ProductBuilder {
    /// In the next dimension `count` elements from `start` on, each `step` after the one
    /// before; a negative step goes backwards.
    ///
    /// # Errors
    /// When they do not lie within the dimension, or there is none left.
    pub fn slice(mut self, start: u64, step: i64, count: u64) -> Result<Self, SelectError> {
        let dimension = self.rank;
        let &[size] = self.next(1)? else { return Err(self.too_many(1)) };
        let axis = if step < 0 && count > 1 {
            let before = (count - 1).checked_mul(step.unsigned_abs());
            let first = before.and_then(|before| start.checked_sub(before));
            let first = first.ok_or(SelectError::Overflow("elements selected"))?;
            Axis::new((first, step.unsigned_abs(), count, 1), dimension, size)?
        } else {
            Axis::new((start, step.unsigned_abs(), count, 1), dimension, size)?
        };
        Ok(self.push(Factor::Axis { axis, backwards: step < 0 && axis.len() > 1 }))
    }

    /// In the next dimensions, one a column, the elements whose coordinates stand side by
    /// side, in the order given; a negative coordinate counts from the end.
    ///
    /// # Errors
    /// When a coordinate is out of range, columns differ in length, or there are fewer
    /// dimensions left.
    pub fn points(mut self, columns: &[&[i64]]) -> Result<Self, SelectError> {
        let dimension = self.rank;
        let shape = Dims::from_slice(self.next(columns.len())?);
        let len = columns.first().map_or(0, |column| column.len());
        if columns.iter().any(|column| column.len() != len) {
            let lengths = columns.iter().map(|column| column.len()).collect();
            return Err(SelectError::Unpaired { lengths });
        }
        // Places are counted in 64 bits; where nothing is selected none is.
        let overflow = SelectError::Overflow("elements in the dimensions of points");
        let total = shape.iter().try_fold(1u64, |n, &size| n.checked_mul(size));
        if total.is_none() && len > 0 && !shape.contains(&0) {
            return Err(overflow);
        }
        let mut places = vec![0u64; len];
        for (d, (column, &size)) in columns.iter().zip(&shape).enumerate() {
            for (place, &index) in places.iter_mut().zip(*column) {
                let from_start =
                    if index < 0 { (index as u64).wrapping_add(size) } else { index as u64 };
                if from_start >= size {
                    return Err(SelectError::OutOfRange { index, dimension: dimension + d, size });
                }
                // Wraps only where a later dimension is empty, and an error.
                *place = place.wrapping_mul(size).wrapping_add(from_start);
            }
        }
        if let ([_], Some((axis, backwards))) = (columns, progression(&places)) {
            return Ok(self.push(Factor::Axis { axis, backwards }));
        }
        let (rank, places) = (columns.len(), places.into_boxed_slice());
        Ok(self.push(Factor::Points { rank, places }))
    }

    /// In the next dimensions, as many as `shape` has, the elements whose byte in the
    /// row-major `mask` is not zero.
    ///
    /// # Errors
    /// When the mask is not of the shape of the dimensions it stands for.
    pub fn mask(mut self, shape: &[u64], mask: &[u8]) -> Result<Self, SelectError> {
        let left = &self.product.shape[self.rank..];
        let rank = shape.len();
        let elements = shape.iter().try_fold(1u64, |n, &size| n.checked_mul(size));
        if rank == 0 || left.get(..rank) != Some(shape) || elements != Some(mask.len() as u64) {
            let dataset = &left[..rank.min(left.len())];
            return Err(SelectError::MaskShape { mask: shape.into(), dataset: dataset.into() });
        }
        self.next(rank)?;
        Ok(self.push(Factor::Mask { rank, bits: Bits::of_bytes(mask) }))
    }

    /// The selection; dimensions for which nothing was said are taken whole.
    ///
    /// # Errors
    /// When there are more dimensions than HDF5 allows, or elements than 64 bits can count.
    pub fn finish(mut self) -> Result<Product, SelectError> {
        if self.product.shape.len() > MAX_RANK {
            return Err(SelectError::TooManyDimensions(self.product.shape.len()));
        }
        for &size in &self.product.shape[self.rank..] {
            let axis = Axis::range(0, size);
            self.product.factors.push(Factor::Axis { axis, backwards: false });
        }
        self.product.len()?;
        Ok(self.product)
    }

    /// The sizes of the next `count` dimensions, which a factor takes.
    fn next(&mut self, count: usize) -> Result<&[u64], SelectError> {
        let begin = self.rank;
        if count == 0 || self.product.shape.len() - begin < count {
            return Err(self.too_many(count));
        }
        self.rank += count;
        Ok(&self.product.shape[begin..self.rank])
    }

    fn too_many(&self, count: usize) -> SelectError {
        SelectError::TooManyIndices {
            indices: self.rank + count,
            dataset: self.product.shape.len(),
        }
    }

    fn push(mut self, factor: Factor) -> Self {
        self.product.factors.push(factor);
        self
    }
}

/// The axis of equally distant places, and whether it is gone through backwards.
fn progression(places: &[u64]) -> Option<(Axis, bool)> {
    let (&[first, second, ..], Some(&last)) = (places, places.last()) else {
        let axis = places.first().map_or(Axis::range(0, 0), |&place| Axis::range(place, 1));
        return Some((axis, false));
    };
    let step = second.abs_diff(first);
    let backwards = second < first;
    // Places lie below a dimension's size, and so below 2^63.
    let even = places.windows(2).all(|pair| {
        let (low, high) = if backwards { (pair[1], pair[0]) } else { (pair[0], pair[1]) };
        high.wrapping_sub(low) == step && low < high
    });
    let parts = (first.min(last), step, places.len() as u64, 1);
    let axis = Axis::new(parts, 0, u64::MAX).ok().filter(|_| even)?;
    Some((axis, backwards))
}
