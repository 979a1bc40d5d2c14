//! Where does every chunk of a dataset lie, or where do some of them?
//!
//! Of the index, only what leads to the wanted chunks is read.

mod array;
mod btree1;
mod btree2;
mod extensible_array;
mod fixed_array;
mod implicit;
mod numbered;
mod wanted;

use crate::error::FormatError;
use crate::layout::{ChunkIndex, Chunked};
use crate::source::Source;

pub use wanted::ChunkRecord;
pub(crate) use wanted::{Each, Wanted};

/// Give each chunk that was written and is wanted, in the order of the index.
pub(crate) fn each(
    source: &Source<'_>,
    layout: &Chunked,
    wanted: &Wanted<'_>,
    each: &mut Each<'_>,
) -> Result<(), FormatError> {
    match layout.index {
        ChunkIndex::BTree1(Some(root)) => btree1::read(source, root, wanted, each),
        ChunkIndex::BTree2(Some(header)) => btree2::read(source, header, wanted, each),
        ChunkIndex::FixedArray(Some(header)) => fixed_array::read(source, header, wanted, each),
        ChunkIndex::ExtensibleArray(Some(header)) => {
            extensible_array::read(source, header, wanted, each)
        }
        ChunkIndex::Implicit(Some(address)) => implicit::read(source, address, wanted, each),
        ChunkIndex::Single { address: Some(address), filtered } => {
            let (stored_nbytes, filter_mask) = filtered.unwrap_or((wanted.chunk_nbytes(), 0));
            let scaled = wanted.chunk.iter().map(|_| 0).collect();
            wanted.give(ChunkRecord { scaled, address, stored_nbytes, filter_mask }, each)
        }
        _ => Ok(()),
    }
}
