//! How are stored chunks copied as they are?
//!
//! In their grid's order: a source in which they lie in another one is copied to have them in
//! order, too, and in most sources that is the order in which they lie, which the system reads ahead.

use std::sync::atomic::Ordering::Relaxed;

use chunkwise_codec::resize;
use chunkwise_engine::{
    ChunkIndex, ChunkPlace, Committer, EncodedChunk, InOrder, LostChunk, ReadError, Storage,
};
use chunkwise_libhdf5::DatasetFacts;
use chunkwise_select::ChunkGrid;
use std::sync::{Mutex, PoisonError};

use crate::cells::Extent;
use crate::checksums::{Collector, checksum};
use crate::copying::Done;
use crate::handing::Handing;
use crate::share::{Pieces, Share, enough_for};
use crate::turns::{Kept, Turn};
use crate::{CopyError, Progress};

/// Stored chunks of a source.
pub struct RawCopying<'a> {
    pub storage: &'a dyn Storage,
    pub grid: &'a ChunkGrid,
    pub index: &'a ChunkIndex,
    pub element_size: usize,
    pub threads: usize,
    pub collector: Option<&'a Collector>,
    pub lost: Option<&'a Mutex<Vec<LostChunk>>>,
    pub turn: Option<Turn<'a>>,
    pub share: Option<&'a dyn Share>,
    pub progress: &'a Progress,
}

/// Why stored chunks of one dataset are not those of the other; None where they are.
pub fn difference(source: &DatasetFacts, target: &DatasetFacts) -> Option<&'static str> {
    if source.holds_pointers {
        return Some("they point elsewhere in the file");
    }
    if source.chunk.is_none() || source.shape != target.shape || source.chunk != target.chunk {
        return Some("the chunks are not of the same shape");
    }
    if source.element_size != target.element_size {
        return Some("the elements are not of the same size");
    }
    // Whether a filter may be left out matters to what is written, not to what is stored.
    let values = |facts: &DatasetFacts| -> Vec<(i32, Vec<u32>)> {
        facts.filters.iter().map(|(id, _, values)| (*id, values.clone())).collect()
    };
    if values(source) != values(target) {
        return Some("the filters are not the same");
    }
    if source.unfiltered_partial_chunks != target.unfiltered_partial_chunks {
        return Some("chunks at the edges are not filtered alike");
    }
    None
}

impl RawCopying<'_> {
    /// Copy them all.
    pub fn run(&self, committer: &mut dyn Committer) -> Result<Done, CopyError> {
        let mut places: Vec<u64> = self.index.positions().collect();
        places.sort_unstable();
        let progress = self.progress;
        if let Some(turn) = self.turn {
            let mut kept = Kept::default();
            let aside = Progress::default();
            let done = self.run_to(&mut Handing::new(&mut kept, &aside, None), &places)?;
            turn.wait()?;
            kept.hand_over(&mut Handing::new(committer, progress, None))?;
            return Ok(done);
        }
        self.run_to(&mut Handing::new(committer, progress, None), &places)
    }

    fn run_to(&self, handing: &mut Handing<'_>, places: &[u64]) -> Result<Done, CopyError> {
        let progress = self.progress;
        let mut pieces = Pieces::new(self.share, 0, places.len() as u64, enough_for(self.threads));
        while let Some(tasks) = pieces.next()? {
            let encode = |number: u64, chunk: &mut EncodedChunk| {
                self.fetch(places[(tasks.start + number) as usize], chunk)
            };
            let all = InOrder {
                tasks: tasks.end - tasks.start,
                helpers: self.threads - 1,
                encode: &encode,
                progress: &mut |_| (),
                cancelled: &progress.cancelled,
                spare: &mut Vec::new(),
            }
            .run(handing)?;
            if !all {
                return Err(CopyError::Cancelled);
            }
        }
        let mut done = Done { chunks_written: handing.chunks, ..Done::default() };
        done.cost.stored_nbytes = progress.figures().1;
        Ok(done)
    }

    fn fetch(&self, position: u64, chunk: &mut EncodedChunk) -> Result<bool, CopyError> {
        let Some(record) = self.index.get(position) else { return Ok(false) };
        let extent = Extent::of_chunk(self.grid, position);
        if let Err(error) = self.read(record.address, record.stored_nbytes, &mut chunk.bytes) {
            let error = match error {
                ReadError::Truncated { end, .. } => {
                    let chunk_origin = extent.origin.clone();
                    let (address, stored_nbytes) = (record.address, record.stored_nbytes);
                    let place = ChunkPlace { chunk_origin, address, stored_nbytes };
                    ReadError::TruncatedChunk { place, end }
                }
                other => other,
            };
            let Some(lost) = self.lost else { return Err(error.into()) };
            let chunk_origin = extent.origin;
            lost.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(LostChunk { chunk_origin, error });
            return Ok(false);
        }
        chunk.filter_mask = record.filter_mask;
        if let Some(collector) = self.collector {
            collector.add(position, checksum(&chunk.bytes));
        }
        self.progress.read_nbytes.fetch_add(record.stored_nbytes, Relaxed);
        self.progress.done_nbytes.fetch_add(extent.nbytes(self.element_size), Relaxed);
        chunk.chunk_origin = extent.origin;
        Ok(true)
    }

    fn read(&self, address: u64, nbytes: u64, out: &mut Vec<u8>) -> Result<(), ReadError> {
        let end = self.storage.end();
        // Before there is room for what a damaged index may claim.
        if address.checked_add(nbytes).is_none_or(|last| last > end) {
            return Err(ReadError::Truncated { address, len: nbytes, end });
        }
        let nbytes = usize::try_from(nbytes).map_err(|_| ReadError::Memory(Some(nbytes)))?;
        resize(out, nbytes)?;
        self.storage.read_at(address, out)
    }
}
