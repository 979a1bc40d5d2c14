//! Which elements, which chunks, and where does each element go?
//!
//! Everything here is arithmetic on shapes: no I/O, no threads, no clock.  A
//! [`Hyperslab`], a [`Union`] of several, or a [`Product`] of index lists, points, masks and
//! slices says which elements are wanted, a [`ChunkGrid`] how a dataset is
//! cut into chunks, and a [`Plan`] puts the two together: an indexable sequence of
//! [`ChunkTask`]s, each of which knows the runs of elements to copy between a
//! decoded chunk and a row-major result.

mod axis_chunks;
mod bits;
mod error;
mod factor_plan;
mod grid;
mod hyperslab;
mod line;
mod mapping;
mod plan;
mod product;
mod product_plan;
mod resolve;
mod selection;
mod slab_plan;
mod spans;
mod strip;
mod summary;
mod union;
mod union_plan;

pub use error::SelectError;
pub use grid::ChunkGrid;
pub use hyperslab::{Axis, Hyperslab};
pub use mapping::{Mapping, Part, Wanted};
pub use plan::{ChunkTask, Plan};
pub use product::{Choices, Product, ProductBuilder};
pub use resolve::{IndexItem, Resolved, resolve_index, resolve_integer};
pub use selection::{Selected, Selection};
pub use strip::Strip;
pub use summary::Summary;
pub use union::Union;

/// HDF5's limit on the rank of a dataspace (`H5S_MAX_RANK`).
pub const MAX_RANK: usize = 32;

/// A short vector of per-dimension values, slowest dimension first; ranks up to
/// four need no allocation.
pub type Dims = smallvec::SmallVec<[u64; 4]>;
