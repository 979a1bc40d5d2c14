//! How is contiguous data read that lies in other files?

use std::sync::Arc;

use crate::{ReadError, Storage};

/// A run of the data, and where it lies.
pub struct ExternalRun {
    /// Bytes of the data; of a last one without end, as many as there can be.
    pub len: u64,
    /// The file.
    pub file: Arc<dyn Storage>,
    /// Where the run begins in it.
    pub offset: u64,
}

/// Runs in other files, one behind the other.  What lies beyond a file's end is 0, as libhdf5 has it.
pub struct ExternalStorage(pub Vec<ExternalRun>);

impl Storage for ExternalStorage {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let len = out.len() as u64;
        let (mut skipped, mut left) = (address, out);
        for run in &self.0 {
            if left.is_empty() {
                return Ok(());
            }
            if skipped >= run.len {
                skipped -= run.len;
                continue;
            }
            let nbytes = (run.len - skipped).min(left.len() as u64);
            let (part, rest) = left.split_at_mut(nbytes as usize);
            let begin = run.offset.saturating_add(skipped);
            let there = run.file.end().saturating_sub(begin).min(nbytes) as usize;
            if there > 0 {
                run.file.read_at(begin, &mut part[..there])?;
            }
            part[there..].fill(0);
            (skipped, left) = (0, rest);
        }
        if left.is_empty() {
            return Ok(());
        }
        Err(ReadError::Truncated { address, len, end: self.end() })
    }

    fn end(&self) -> u64 {
        self.0.iter().fold(0, |end: u64, run| end.saturating_add(run.len))
    }

    fn is_unchanged(&self) -> bool {
        self.0.iter().all(|run| run.file.is_unchanged())
    }
}
