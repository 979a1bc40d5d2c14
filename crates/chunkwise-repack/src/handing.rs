//! What happens to a chunk between its encoder and the file?

use std::sync::atomic::Ordering::Relaxed;

use chunkwise_engine::{CommitError, Committer, EncodedChunk};

use crate::Progress;
use crate::journal::Records;

/// Counts what is handed over, and notes it in the journal.
pub struct Handing<'a> {
    pub committer: &'a mut dyn Committer,
    pub progress: &'a Progress,
    pub records: Option<&'a Records<'a>>,
    /// Chunks handed over.
    pub chunks: u64,
    /// Memory of chunks from one block to the next.
    pub spare: Vec<EncodedChunk>,
}

impl<'a> Handing<'a> {
    /// To `committer`.
    pub fn new(
        committer: &'a mut dyn Committer,
        progress: &'a Progress,
        records: Option<&'a Records<'a>>,
    ) -> Self {
        Self { committer, progress, records, chunks: 0, spare: Vec::new() }
    }
}

impl Committer for Handing<'_> {
    fn commit(&mut self, chunks: &[EncodedChunk]) -> Result<(), CommitError> {
        self.committer.commit(chunks)?;
        self.chunks += chunks.len() as u64;
        let nbytes: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        self.progress.written_nbytes.fetch_add(nbytes as u64, Relaxed);
        if let Some(records) = self.records {
            records.committed(chunks)?;
        }
        Ok(())
    }
}
