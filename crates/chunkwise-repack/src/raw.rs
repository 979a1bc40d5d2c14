//! How are stored chunks copied as they are?
//!
//! In their grid's order: a source in which they lie in another one is copied to have them in
//! order, too, and in most sources that is the order in which they lie, which the system reads ahead.

use std::sync::atomic::Ordering::Relaxed;

use chunkwise_codec::{DecodeError, Filter, Pipeline, Scratch, resize};
use chunkwise_engine::{
    ChunkIndex, ChunkPlace, ChunkRecord, Committer, EncodedChunk, InOrder, LostChunk, ReadError,
    Storage,
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
    /// Where chunks are listed that cannot be read, or not be decoded.
    pub lost: Option<&'a Mutex<Vec<LostChunk>>>,
    /// By what chunks are decoded before they are copied, to find those that are damaged.
    pub probe: Option<&'a Probe>,
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

/// Tells chunks that decode from those that do not.
#[derive(Debug, Default)]
pub struct Probe {
    pipeline: Pipeline,
    unfiltered_partial_chunks: bool,
    spare: Mutex<Vec<(Vec<u8>, Scratch)>>,
}

impl Probe {
    /// None where a filter is not decoded here.
    pub fn new(facts: &DatasetFacts) -> Option<Self> {
        let decoder = |(id, _, values): &(i32, u32, Vec<u32>)| Filter::from_hdf5(*id, values);
        let decoders: Option<Vec<Filter>> = facts.filters.iter().map(decoder).collect();
        Some(Self {
            pipeline: Pipeline::new(decoders?),
            unfiltered_partial_chunks: facts.unfiltered_partial_chunks,
            spare: Mutex::default(),
        })
    }

    /// Decode a chunk of so many bytes.
    fn check(&self, chunk: &EncodedChunk, mask: u32, nbytes: u64) -> Result<(), DecodeError> {
        let too_large = DecodeError::Memory { nbytes: usize::MAX };
        let nbytes = usize::try_from(nbytes).map_err(|_| too_large)?;
        self.pipeline.check_len(chunk.bytes.len(), mask, nbytes)?;
        let locked = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let popped = locked().pop();
        let (mut raw, mut scratch) = popped.unwrap_or_default();
        resize(&mut raw, nbytes).map_err(|_| DecodeError::Memory { nbytes })?;
        let decoded = self.pipeline.decode(&chunk.bytes, mask, &mut scratch, &mut raw);
        locked().push((raw, scratch));
        decoded
    }
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
        let read = self.read(record.address, record.stored_nbytes, &mut chunk.bytes);
        if let Err(error) = read.and_then(|()| self.probe(position, &record, chunk)) {
            let error = match error {
                ReadError::Truncated { end, .. } => {
                    ReadError::TruncatedChunk { place: place(&extent, &record), end }
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

    /// Whether a chunk that was read decodes, where that is asked for.
    fn probe(
        &self,
        position: u64,
        record: &ChunkRecord,
        chunk: &EncodedChunk,
    ) -> Result<(), ReadError> {
        let Some(probe) = self.probe else { return Ok(()) };
        let partial = self.grid.is_partial(&self.grid.chunk_index(position));
        if probe.unfiltered_partial_chunks && partial {
            return Ok(());
        }
        let nbytes = self.grid.chunk_len().saturating_mul(self.element_size as u64);
        match probe.check(chunk, record.filter_mask, nbytes) {
            Ok(()) => Ok(()),
            // What only libhdf5 can tell, or nobody here: it is copied.
            Err(DecodeError::Unsupported { .. } | DecodeError::Memory { .. }) => Ok(()),
            Err(source) => {
                let extent = Extent::of_chunk(self.grid, position);
                Err(ReadError::Decode { place: place(&extent, record), source })
            }
        }
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

fn place(extent: &Extent, record: &ChunkRecord) -> ChunkPlace {
    let (address, stored_nbytes) = (record.address, record.stored_nbytes);
    ChunkPlace { chunk_origin: extent.origin.clone(), address, stored_nbytes }
}
