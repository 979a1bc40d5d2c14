//! Where does every chunk lie, as the file itself says?
//!
//! libhdf5 lists an array index element by element, written or not, and a version 1 B-tree without
//! the keys by which it looks chunks up.  Both are read here from the file's bytes: an array costs
//! what was written of it, and a tree whose keys would lead `H5Dread` to other chunks than a
//! listing names is found out.
//!
//! Nothing is taken at its word: what is not exactly as libhdf5 writes it is [`Stored::Unsound`],
//! and left to libhdf5.  The file must not be open for writing, as what libhdf5 holds in memory is
//! not here.

mod arrays;
mod btree1;
mod bytes;
mod collected;
mod header;

use chunkwise_engine::{ChunkIndex, Storage};

pub use bytes::checksum;
use bytes::{Damage, Source};
use collected::Chunks;
pub use collected::Wanted;
use header::{Index, Layout};

/// What was found.
#[derive(Debug)]
pub enum Stored {
    /// The written chunks.
    Found(ChunkIndex),
    /// An index of another kind: libhdf5 lists it.
    OtherKind,
    /// Something is not as it should be, in words.
    Unsound(String),
}

/// Read the chunk index of a dataset.
pub fn read_index(storage: &dyn Storage, wanted: &Wanted<'_>) -> Stored {
    match found(storage, wanted) {
        Ok(Some(index)) => Stored::Found(index),
        Ok(None) => Stored::OtherKind,
        Err(Damage(reason)) => Stored::Unsound(format!("its chunk index cannot be used: {reason}")),
    }
}

/// Where the file's data ends, as its superblock says, user block included: libhdf5 reads nothing
/// beyond.  None where that cannot be told.
pub fn end_of_data(storage: &dyn Storage, user_block: u64) -> Option<u64> {
    let mut superblock = [0; 64];
    storage.read_at(user_block, &mut superblock).ok()?;
    let base = match (superblock.starts_with(b"\x89HDF\r\n\x1a\n"), superblock[8]) {
        (true, 0) if superblock[13] == 8 => 24,
        (true, 1) if superblock[13] == 8 => 28,
        (true, 2..) if superblock[9] == 8 => 12,
        _ => return None,
    };
    let number = |at: usize| superblock[at..].first_chunk().map(|n| u64::from_le_bytes(*n));
    // What it takes for the beginning is not always where it is.
    number(base + 16)?.checked_sub(number(base)?)?.checked_add(user_block)
}

fn found(storage: &dyn Storage, wanted: &Wanted<'_>) -> Result<Option<ChunkIndex>, Damage> {
    let end = end_of_data(storage, wanted.user_block);
    let Some(end) = end.and_then(|end| end.checked_sub(wanted.user_block)) else { return Ok(None) };
    let source = Source::new(storage, wanted.user_block, end);
    let Some(layout) = header::layout(&source, wanted.header)? else { return Ok(None) };
    let Layout { dims, index } = layout;
    let (element_size, chunk) = match dims.split_last() {
        Some((&size, chunk)) if wanted.element_size.is_none_or(|known| known == size) => {
            (size, chunk)
        }
        _ => return Err(Damage("its header says another size of elements".into())),
    };
    if chunk != wanted.grid.chunk() {
        return Err(Damage("its header says another chunk shape".into()));
    }
    let mut chunks = Chunks::new(wanted, element_size);
    match index {
        Index::None => {}
        Index::BTree1 { root } => btree1::read(&source, root, &mut chunks)?,
        Index::Fixed { header } => arrays::fixed(&source, header, &mut chunks)?,
        Index::Extensible { header } => arrays::extensible(&source, header, &mut chunks)?,
        Index::Other => return Ok(None),
    }
    Ok(Some(chunks.finish()?))
}
