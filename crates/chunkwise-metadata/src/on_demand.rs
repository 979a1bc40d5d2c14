//! Which chunks that an index names does libhdf5 read, too?

use std::sync::Arc;
use std::time::Duration;

use chunkwise_codec::Pipeline;
use chunkwise_engine::{ChunkIndex, Chunks, FindChunks, OnDemand, Storage};

use chunkwise_format::Bytes;
use chunkwise_select::ChunkGrid;

use crate::index::StoredIndex;

/// The chunks of a dataset, held against the end of its file's data.
///
/// libhdf5 reads nothing beyond it, even where the file goes on: chunks that lie there are left to
/// it.  Those beyond the file itself, the engine finds.
pub struct Checked {
    storage: Arc<dyn Storage>,
    /// Where the file's data ends, user block included; None of one that grows.
    end: Option<u64>,
    pipeline: Pipeline,
    chunk_nbytes: u64,
    grid_len: u64,
}

impl Checked {
    /// Of the file with this storage, whose data ends there, and in which chunks have elements of so
    /// many bytes.
    #[must_use]
    pub fn new(
        storage: &Arc<dyn Storage>,
        end: Option<u64>,
        pipeline: &Pipeline,
        (grid, element_size): (&ChunkGrid, u64),
    ) -> Self {
        Self {
            storage: Arc::clone(storage),
            end,
            pipeline: pipeline.clone(),
            chunk_nbytes: grid.chunk_len().saturating_mul(element_size),
            grid_len: grid.len(),
        }
    }

    /// Chunks of this index, looked up as they are needed.
    #[must_use]
    pub fn on_demand(self, found: Box<dyn FindChunks>) -> Chunks {
        let grid_len = self.grid_len;
        let finder = Finder { found, checked: self };
        Chunks::OnDemand(Arc::new(OnDemand::new(Box::new(finder), grid_len)))
    }

    /// Whether the engine reads these chunks as libhdf5 does.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, index: &ChunkIndex) -> Result<(), String> {
        let Some(end) = self.end.filter(|&end| index.furthest() > end) else { return Ok(()) };
        let file_end = self.storage.end();
        for record in index.positions().filter_map(|position| index.get(position)) {
            let chunk_end = record.address.saturating_add(record.stored_nbytes);
            // Of a chunk that is stored as it is, the engine reads what a chunk holds.
            let cut = self.pipeline.is_identity(record.filter_mask)
                && record.stored_nbytes != self.chunk_nbytes;
            if chunk_end > end && (chunk_end <= file_end || cut) {
                return Err("a chunk lies beyond the end of the file's data".into());
            }
        }
        Ok(())
    }
}

impl<B: Bytes + Send + Sync> FindChunks for StoredIndex<B> {
    fn find(&self, positions: &[u64]) -> Result<ChunkIndex, String> {
        Self::find(self, positions)
    }

    fn list(&self) -> Result<ChunkIndex, String> {
        Self::list(self)
    }
}

/// An index that a program is writing (SWMR): its parts have wrong checksums until they are written.
pub struct Followed(pub Box<StoredIndex>);

/// So often, and so long between, is it looked at again before it is damaged; libhdf5 does 100 times.
const LOOKED_AGAIN: u32 = 50;
const PAUSE: Duration = Duration::from_millis(1);

impl Followed {
    fn tried(
        &self,
        look: impl Fn(&StoredIndex) -> Result<ChunkIndex, String>,
    ) -> Result<ChunkIndex, String> {
        for _ in 0..LOOKED_AGAIN {
            if let Ok(found) = look(&self.0) {
                return Ok(found);
            }
            std::thread::sleep(PAUSE);
        }
        look(&self.0)
    }
}

impl FindChunks for Followed {
    fn find(&self, positions: &[u64]) -> Result<ChunkIndex, String> {
        self.tried(|stored| stored.find(positions))
    }

    fn list(&self) -> Result<ChunkIndex, String> {
        self.tried(StoredIndex::list)
    }
}

/// Looks chunks up, in a file or beside it.
struct Finder {
    found: Box<dyn FindChunks>,
    checked: Checked,
}

impl FindChunks for Finder {
    fn find(&self, positions: &[u64]) -> Result<ChunkIndex, String> {
        let index = self.found.find(positions)?;
        self.checked.check(&index).map(|()| index)
    }

    fn list(&self) -> Result<ChunkIndex, String> {
        let index = self.found.list()?;
        self.checked.check(&index).map(|()| index)
    }
}
