//! How does a selection become bytes in the caller's memory: looked up, fetched, decoded on every
//! thread, copied to where each element goes.

mod blocks;
mod call;
mod convert;
pub(crate) mod decode;
mod edges;
mod fetch;
mod fields;
pub(crate) mod inflate_trial;
mod inflating;
mod mapped;
mod numbers;
mod one_pass;
mod prefetch;
mod read_map;
mod reading;
mod repeated;
mod runs;
pub(crate) mod scatter;
mod scatter_task;
mod schedule;
pub(crate) mod short_runs;
mod tasks;
pub(crate) mod view;

pub use convert::{Conversion, NumberKind, NumberType, Padding};
pub use edges::edge_numbers;
pub use fields::{FieldBytes, Fields, Made, convert_all};
pub use mapped::{AnyDataset, MappedSource, VirtualDataset};
pub use one_pass::{LostChunk, OnePass};
pub use scatter::fill_run;
