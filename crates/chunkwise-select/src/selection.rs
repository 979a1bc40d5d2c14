//! What can be asked for in one read?

use std::sync::Arc;

use crate::{Axis, Dims, Hyperslab, Product, SelectError, Union};

/// What one read asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// A regular hyperslab; its result has the hyperslab's shape.
    Hyperslab(Hyperslab),
    /// Hyperslabs together; their elements come as one row, in row-major order.
    Union {
        /// As they were given: who hands them to a library has to do so one by one.
        slabs: Arc<[Hyperslab]>,
        /// What they select.
        union: Union,
    },
    /// Lists, points, masks and slices together, in the order of their choices.
    Product(Product),
}

impl Selection {
    /// The union of hyperslabs of `rank` dimensions.
    ///
    /// # Errors
    /// As [`Union::new`].
    pub fn union(rank: usize, slabs: Vec<Hyperslab>) -> Result<Self, SelectError> {
        let union = Union::new(rank, &slabs)?;
        Ok(Self::Union { slabs: slabs.into(), union })
    }

    /// The same, worked out anew: what a program pays that comes with hyperslabs and
    /// wants them read.
    ///
    /// # Errors
    /// As [`Union::new`].
    pub fn anew(&self) -> Result<Self, SelectError> {
        Ok(match self {
            Self::Hyperslab(_) | Self::Product(_) => self.clone(),
            Self::Union { slabs, union } => Self::Union {
                slabs: Arc::clone(slabs),
                union: Union::new(union.rank(), slabs.iter())?,
            },
        })
    }

    /// Number of dimensions of the array it selects from.
    pub fn rank(&self) -> usize {
        match self {
            Self::Hyperslab(slab) => slab.rank(),
            Self::Union { union, .. } => union.rank(),
            Self::Product(product) => product.array_shape().len(),
        }
    }

    /// Shape of the result, slowest dimension first; of a union, its number of elements, of a
    /// product the number of each factor's choices.
    pub fn shape(&self) -> Dims {
        match self {
            Self::Hyperslab(slab) => slab.shape(),
            Self::Union { union, .. } => smallvec::smallvec![union.len()],
            Self::Product(product) => product.shape(),
        }
    }

    /// Number of elements selected.
    ///
    /// # Errors
    /// When that number does not fit into 64 bits.
    pub fn len(&self) -> Result<u64, SelectError> {
        match self {
            Self::Hyperslab(slab) => slab.len(),
            Self::Union { union, .. } => Ok(union.len()),
            Self::Product(product) => product.len(),
        }
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Hyperslab(slab) => slab.is_empty(),
            Self::Union { union, .. } => union.is_empty(),
            Self::Product(product) => product.is_empty(),
        }
    }
}

impl From<Product> for Selection {
    /// What is regular after all becomes a hyperslab, whose plan costs nothing for each element.
    fn from(product: Product) -> Self {
        product.hyperslab().map_or(Self::Product(product), Self::Hyperslab)
    }
}

impl From<Hyperslab> for Selection {
    fn from(slab: Hyperslab) -> Self {
        Self::Hyperslab(slab)
    }
}

/// The elements of any kind of selection, borrowed: what a plan is made of.
#[derive(Debug, Clone, Copy)]
pub enum Selected<'a> {
    /// Those of a hyperslab.
    Hyperslab(&'a Hyperslab),
    /// Those of a union.
    Union(&'a Union),
    /// Those of a product, in the order of its result.
    Product(&'a Product),
}

impl Selected<'_> {
    /// One past the last index selected, in each dimension.  Of an empty union there are none,
    /// of a product it is the array's shape.
    pub fn ends(self) -> Dims {
        match self {
            Self::Hyperslab(slab) => {
                let end = |axis: &Axis| match axis.len() {
                    0 => 0,
                    len => axis.index_of(len - 1) + 1,
                };
                slab.axes().iter().map(end).collect()
            }
            Self::Union(union) => union.bounds().map(|(_, ends)| ends).unwrap_or_default(),
            Self::Product(product) => product.array_shape().into(),
        }
    }
}

impl<'a> From<&'a Hyperslab> for Selected<'a> {
    fn from(slab: &'a Hyperslab) -> Self {
        Self::Hyperslab(slab)
    }
}

impl<'a> From<&'a Union> for Selected<'a> {
    fn from(union: &'a Union) -> Self {
        Self::Union(union)
    }
}

impl<'a> From<&'a Product> for Selected<'a> {
    fn from(product: &'a Product) -> Self {
        Self::Product(product)
    }
}

impl<'a> From<&'a Selection> for Selected<'a> {
    fn from(selection: &'a Selection) -> Self {
        match selection {
            Selection::Hyperslab(slab) => Self::Hyperslab(slab),
            Selection::Union { union, .. } => Self::Union(union),
            Selection::Product(product) => Self::Product(product),
        }
    }
}
