//! Where does every chunk lie, as the file itself says?
//!
//! libhdf5 lists an array index element by element, written or not, a version 1 B-tree without
//! the keys by which it looks chunks up, and looks up one chunk at a time.  All are read here from
//! the file's bytes, as a whole or as far as some chunks need it: an array costs what was written
//! of it, and a tree whose keys would lead `H5Dread` to other chunks than a listing names is found
//! out.
//!
//! Nothing is taken at its word: what is not exactly as libhdf5 writes it is left to libhdf5.  The
//! file must not be open for writing, as what libhdf5 holds in memory is not here; unless by SWMR,
//! whose writer keeps what is in the file in order (`Wanted::grows`).

mod arrays;
mod btree1;
mod btree2;
mod bytes;
mod collected;
mod header;

use std::sync::Arc;

use chunkwise_engine::{ChunkIndex, Storage};

use bytes::{Damage, Source};
pub use chunkwise_format::checksum;
use collected::Chunks;
pub use collected::Wanted;
use header::{Index, Layout};

/// What a dataset's header says.
pub enum Stored {
    /// An index that can be read here.
    Found(Box<StoredIndex>),
    /// An index of another kind: libhdf5 lists it.
    OtherKind,
    /// Something is not as it should be, in words.
    Unsound(String),
}

/// The chunk index of a dataset, in the bytes of its file.
pub struct StoredIndex {
    storage: Arc<dyn Storage>,
    wanted: Wanted,
    /// Where the file's data ends, counted from its address 0.
    end: u64,
    /// Bytes of a stored element.
    element_size: u64,
    index: Index,
}

impl StoredIndex {
    /// Find the chunk index of a dataset.
    pub fn open(storage: Arc<dyn Storage>, wanted: Wanted) -> Stored {
        match Self::found(storage, wanted) {
            Ok(Some(index)) => Stored::Found(Box::new(index)),
            Ok(None) => Stored::OtherKind,
            Err(damage) => Stored::Unsound(in_words(&damage)),
        }
    }

    fn found(storage: Arc<dyn Storage>, wanted: Wanted) -> Result<Option<Self>, Damage> {
        let end = match wanted.grows {
            true => Some(storage.end()),
            // A file may be shorter than it says.
            false => end_of_data(&*storage, wanted.user_block).map(|end| end.min(storage.end())),
        };
        let Some(end) = end.and_then(|end| end.checked_sub(wanted.user_block)) else {
            return Ok(None);
        };
        let source = Source::new(&*storage, wanted.user_block, end);
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
        if matches!(index, Index::Other) {
            return Ok(None);
        }
        Ok(Some(Self { storage, wanted, end, element_size, index }))
    }

    /// All chunks that were written.
    ///
    /// # Errors
    /// Why they are left to libhdf5.
    pub fn list(&self) -> Result<ChunkIndex, String> {
        self.read(None)
    }

    /// Those of the chunks at these row-major positions, in ascending order, that were written.
    /// Of the index, only what leads to them is looked at.
    ///
    /// # Errors
    /// Why they are left to libhdf5.
    pub fn find(&self, positions: &[u64]) -> Result<ChunkIndex, String> {
        self.read(Some(positions))
    }

    fn read(&self, only: Option<&[u64]>) -> Result<ChunkIndex, String> {
        let user_block = self.wanted.user_block;
        let end = match self.wanted.grows {
            true => self.storage.end().saturating_sub(user_block),
            false => self.end,
        };
        let source = Source::new(&*self.storage, user_block, end);
        let mut chunks = Chunks::new(&self.wanted, self.element_size, only);
        let read = match self.index {
            Index::None | Index::Other => Ok(()),
            Index::BTree1 { root } => btree1::read(&source, root, &mut chunks),
            Index::BTree2 { header } => btree2::read(&source, header, &mut chunks),
            Index::Fixed { header } => arrays::fixed(&source, header, &mut chunks),
            Index::Extensible { header } => arrays::extensible(&source, header, &mut chunks),
        };
        read.and_then(|()| chunks.finish()).map_err(|damage| in_words(&damage))
    }
}

fn in_words(Damage(reason): &Damage) -> String {
    format!("its chunk index cannot be used: {reason}")
}

/// Where the file's data ends, as its superblock says, user block included: libhdf5 reads nothing
/// beyond.  None where that cannot be told.
pub fn end_of_data(storage: &dyn Storage, user_block: u64) -> Option<u64> {
    let mut superblock = [0; 64];
    storage.read_metadata(user_block, &mut superblock).ok()?;
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
