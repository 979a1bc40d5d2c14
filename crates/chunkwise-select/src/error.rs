//! What can be wrong with a selection or a shape?

use thiserror::Error;

/// A selection or shape that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectError {
    /// A selection with another number of dimensions than the dataset.
    #[error("the selection has {selection} dimension{}, the dataset has {dataset}", plural(*selection == 1))]
    Rank {
        /// Dimensions of the selection.
        selection: usize,
        /// Dimensions of the dataset.
        dataset: usize,
    },
    /// More dimensions than HDF5 allows.
    #[error("{0} dimensions are more than HDF5's limit of 32")]
    TooManyDimensions(usize),
    /// More indices than the dataset has dimensions.
    #[error(
        "{indices} ind{} for a dataset of {dataset} dimension{}",
        if *indices == 1 { "ex" } else { "ices" },
        plural(*dataset == 1)
    )]
    TooManyIndices {
        /// Indices given, Ellipsis not counted.
        indices: usize,
        /// Dimensions of the dataset.
        dataset: usize,
    },
    /// More than one Ellipsis in an index.
    #[error("an index may hold only one Ellipsis (...)")]
    TwoEllipses,
    /// An integer index outside the dataset.
    #[error("index {index} is out of range for dimension {dimension} of size {size}")]
    OutOfRange {
        /// The index as given, possibly negative.
        index: i64,
        /// Dimension, slowest first.
        dimension: usize,
        /// Size of that dimension.
        size: u64,
    },
    /// Lists of coordinates that do not pair up.
    #[error("lists of {lengths:?} coordinates cannot be paired")]
    Unpaired {
        /// Length of each list.
        lengths: Vec<usize>,
    },
    /// A mask of another shape than the dimensions it stands for.
    #[error("a mask of shape {} for dimensions of shape {}", shape_text(mask), shape_text(dataset))]
    MaskShape {
        /// Shape of the mask.
        mask: Vec<u64>,
        /// Shape of the dataset, from the mask's first dimension on.
        dataset: Vec<u64>,
    },
    /// A selection that was made for an array of another shape.
    #[error(
        "the selection is of an array of shape {}, the dataset has shape {}",
        shape_text(selection),
        shape_text(dataset)
    )]
    Shape {
        /// Shape that the selection was made for.
        selection: Vec<u64>,
        /// Shape of the dataset.
        dataset: Vec<u64>,
    },
    /// A slice with a step of 0.
    #[error("a slice's step cannot be zero")]
    ZeroStep,
    /// A hyperslab that reaches beyond the dataset.
    #[error(
        "the hyperslab ends at {end} in dimension {dimension}, which has only {size} element{}",
        plural(*size == 1)
    )]
    BeyondShape {
        /// One past the last element selected.
        end: u64,
        /// Dimension, slowest first.
        dimension: usize,
        /// Size of that dimension.
        size: u64,
    },
    /// A stride smaller than its block, so that blocks would overlap.
    #[error(
        "in dimension {dimension}, stride {stride} is smaller than block {block}: blocks would overlap"
    )]
    Overlap {
        /// Dimension, slowest first.
        dimension: usize,
        /// Stride given.
        stride: u64,
        /// Block given.
        block: u64,
    },
    /// A chunk or block with a size of zero.
    #[error("a size of zero in dimension {0}")]
    ZeroSize(usize),
    /// A number of elements or chunks beyond 64 bits.
    #[error("the number of {0} does not fit into 64 bits")]
    Overflow(&'static str),
    /// A union of more spans than anybody can have meant.
    #[error("the union is too irregular: it has too many separate parts")]
    TooManySpans,
}

/// What makes several of a thing.
fn plural(is_one: bool) -> &'static str {
    if is_one { "" } else { "s" }
}

/// A shape as Python writes it.
fn shape_text(shape: &[u64]) -> String {
    match shape {
        [size] => format!("({size},)"),
        sizes => {
            let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
            format!("({})", sizes.join(", "))
        }
    }
}
