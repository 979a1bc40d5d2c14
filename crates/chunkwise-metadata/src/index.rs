//! Where do a dataset's chunks lie, looked up in the file's own bytes?
//!
//! libhdf5 lists an array index element by element, written or not, a version 1 B-tree without
//! the keys by which it looks chunks up, and looks up one chunk at a time.  Here an index costs
//! what was written of it, and some chunks what leads to them.
//!
//! The file must not be open for writing, as what libhdf5 holds in memory is not here; unless by
//! SWMR, whose writer keeps what is in the file in order (`Wanted::grows`).

use std::borrow::Cow;
use std::sync::Arc;

use chunkwise_engine::{ChunkIndex, ChunkIndexBuilder, ChunkRecord, Storage};
use chunkwise_format::{Bytes, ChunkTable, File, FormatError, Problem};
use chunkwise_select::{ChunkGrid, Dims};

/// More chunks than this are left to libhdf5: their index would take a gigabyte.
pub const MOST_LISTED: u64 = 50_000_000;

/// The bytes of a file that are read as they are needed, to the end of its data.
pub struct Unread {
    storage: Arc<dyn Storage>,
    /// None of a file that grows.
    end: Option<u64>,
}

impl Bytes for Unread {
    fn read(&self, position: u64, nbytes: usize) -> Result<Cow<'_, [u8]>, String> {
        let mut bytes = vec![0; nbytes];
        let read = self.storage.read_metadata(position, &mut bytes);
        read.map(|()| Cow::Owned(bytes)).map_err(|error| error.to_string())
    }

    fn nbytes(&self) -> u64 {
        self.end.unwrap_or_else(|| self.storage.end())
    }

    fn is_far(&self) -> bool {
        self.storage.cost().is_remote()
    }

    fn expect(&self, parts: &[(u64, usize)]) {
        let parts: Vec<_> = parts.iter().map(|&(at, len)| (at, len as u64)).collect();
        self.storage.expect_metadata(&parts);
    }
}

/// What libhdf5 says of the dataset whose index is wanted.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The address of its object header.
    pub header: u64,
    /// Bytes before the file's address 0.
    pub user_block: u64,
    /// Its grid of chunks.
    pub grid: ChunkGrid,
    /// Bytes of an element; None where libhdf5 gives those in memory alone.
    pub element_size: Option<u64>,
    /// Whether a program writes to the file (SWMR), whose superblock then says an older end.
    pub grows: bool,
}

/// What a dataset's header says.
pub enum StoredKind {
    /// An index that can be read here.
    Found(Box<StoredIndex>),
    /// An index of another kind: libhdf5 lists it.
    OtherKind,
    /// Something is not as it should be, in words.
    Unsound(String),
}

/// The chunk index of a dataset, in the bytes of its file.
pub struct StoredIndex<B = Unread> {
    file: Arc<File<B>>,
    table: ChunkTable,
    grid: ChunkGrid,
}

impl StoredIndex {
    /// Find the chunk index of a dataset.
    pub fn open(storage: Arc<dyn Storage>, wanted: Wanted) -> StoredKind {
        let Wanted { header, user_block, grid, element_size, grows } = wanted;
        let end = match (grows, end_of_data(&storage, user_block)) {
            (true, _) => None,
            (false, None) => return StoredKind::OtherKind,
            // A file may be shorter than it says.
            (false, Some(end)) => Some(end.min(storage.end())),
        };
        let file = File::open(Unread { storage, end });
        let Some(file) = file.ok().filter(|file| file.superblock().base == user_block) else {
            return StoredKind::OtherKind;
        };
        let table = match file.object(header).and_then(|object| object.chunk_table()) {
            Ok(Some(table)) => table,
            Ok(None) => return StoredKind::OtherKind,
            Err(error) if is_unknown(&error) => return StoredKind::OtherKind,
            Err(error) => return StoredKind::Unsound(in_words(&error)),
        };
        if element_size.is_some_and(|size| size != table.layout.element_nbytes) {
            return StoredKind::Unsound(in_words(&"its header says another size of elements"));
        }
        if table.layout.chunk.as_slice() != grid.chunk() {
            return StoredKind::Unsound(in_words(&"its header says another chunk shape"));
        }
        StoredKind::Found(Box::new(Self::new(Arc::new(file), table, grid)))
    }
}

impl<B: Bytes> StoredIndex<B> {
    /// That of a dataset of a file, whose header says this.
    pub(crate) fn new(file: Arc<File<B>>, table: ChunkTable, grid: ChunkGrid) -> Self {
        Self { file, table, grid }
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
        let places: Vec<Dims> = positions.iter().map(|&at| self.grid.chunk_index(at)).collect();
        self.read(Some(&places))
    }

    fn read(&self, places: Option<&[Dims]>) -> Result<ChunkIndex, String> {
        let base = self.file.superblock().base;
        let mut builder = ChunkIndexBuilder::default();
        let (mut count, mut refused) = (0, None);
        let found = self.file.each_chunk(&self.table, places, &mut |chunk| {
            // Others lie outside of the present extent.
            let Some(position) = self.grid.linear_index(&chunk.scaled) else { return };
            count += 1;
            if count > MOST_LISTED || refused.is_some() {
                return;
            }
            let record = ChunkRecord {
                address: base.saturating_add(chunk.address),
                stored_nbytes: chunk.stored_nbytes,
                filter_mask: chunk.filter_mask,
            };
            refused = builder.push(position, record).err();
        });
        found.map_err(|error| in_words(&error))?;
        if count > MOST_LISTED {
            return Err(in_words(&"its chunks are more than can be indexed in memory"));
        }
        let built = refused.map_or_else(|| builder.finish(self.grid.len()), Err);
        built.map_err(|error| in_words(&error))
    }
}

/// Whether another version of the format may be behind it.
fn is_unknown(error: &FormatError) -> bool {
    use Problem::{Unknown, Unsupported, Version};
    matches!(error.problem, Version(_) | Unknown { .. } | Unsupported(_))
}

fn in_words(reason: &dyn std::fmt::Display) -> String {
    format!("its chunk index cannot be used: {reason}")
}

/// Where the file's data ends, as its superblock says, user block included: libhdf5 reads nothing
/// beyond.  None where that is not known.
pub fn end_of_data(storage: &Arc<dyn Storage>, user_block: u64) -> Option<u64> {
    let file = File::open(Unread { storage: Arc::clone(storage), end: None }).ok()?;
    let superblock = file.superblock();
    (superblock.base == user_block).then(|| user_block.checked_add(superblock.end)).flatten()
}
