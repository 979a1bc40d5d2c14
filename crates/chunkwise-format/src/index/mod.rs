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

use crate::context::Context;
use crate::dataspace::{Dataspace, Dims};
use crate::error::FormatError;
use crate::fields::Place;
use crate::layout::{ChunkIndex, Chunked};
use crate::source::Source;

pub use wanted::ChunkRecord;
use wanted::{Each, Wanted};

/// What leads to a dataset's chunks, as its header says.
#[derive(Debug, Clone)]
pub struct ChunkTable {
    /// How it is stored.
    pub layout: Chunked,
    /// Its shape.
    pub dataspace: Dataspace,
    /// Whether there are filters.
    pub filtered: bool,
    /// Where the header is.
    pub(crate) place: Place,
}

impl ChunkTable {
    /// Give each chunk that was written, or of those of `places`, in the order of the index.
    pub(crate) fn each(
        &self,
        context: Context<'_>,
        places: Option<&[Dims]>,
        each: &mut dyn FnMut(ChunkRecord),
    ) -> Result<(), FormatError> {
        let Self { layout, dataspace, filtered, place } = self;
        let source = context.source();
        let extension = context.facts.extension.as_ref().ok();
        let chunk_k = extension.and_then(|extension| extension.btree_k);
        let wanted = Wanted {
            chunk: &layout.chunk,
            max_shape: dataspace.max_shape(),
            shape: dataspace.shape(),
            element_nbytes: layout.element_nbytes,
            filtered: *filtered,
            chunk_k: chunk_k.map_or(context.facts.superblock.chunk_k, |[chunk_k, ..]| chunk_k),
            places,
        };
        let mut count = 0u64;
        let found = read(&source, layout, &wanted, &mut |chunk| {
            count = count.saturating_add(1);
            source.count(*place, count)?;
            each(chunk);
            Ok(())
        });
        found.map_err(|error| error.of(place.address))
    }
}

/// Give each chunk that was written and is wanted, in the order of the index.
fn read(
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
