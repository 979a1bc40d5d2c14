//! How are stored chunks copied as they are?
//!
//! In their grid's order: a source in which they lie in another one is copied to have them in
//! order, too, and in most sources that is the order in which they lie, which the system reads ahead.

use std::sync::atomic::Ordering::Relaxed;

use chunkwise_codec::{DecodeError, Filter, Pipeline, Scratch, resize};
use chunkwise_engine::{
    ChunkIndex, ChunkPlace, ChunkRecord, Committer, EncodedChunk, InOrder, Lacking, LostChunk,
    ReadError, Storage, fill_run,
};
use chunkwise_libhdf5::DatasetFacts;
use chunkwise_select::ChunkGrid;
use std::sync::{Mutex, PoisonError};

use crate::cells::Extent;
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
    /// Whether the dataset has no filters.
    pub is_unfiltered: bool,
    pub threads: usize,
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
    fill: Vec<u8>,
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
            fill: facts.fill.clone().unwrap_or_else(|| vec![0; facts.element_size]),
            spare: Mutex::default(),
        })
    }

    /// Decode a chunk of this many bytes, the first of which the dataset needs; if elements are missing, it becomes one without filters
    /// that has the fill value for them, and they are given.  So does one with bytes too many.
    fn check(
        &self,
        chunk: &mut EncodedChunk,
        (nbytes, needed): (u64, u64),
        lacking: impl FnOnce(u64) -> Option<Lacking>,
    ) -> Result<Option<Lacking>, DecodeError> {
        let sized = |nbytes| {
            usize::try_from(nbytes).map_err(|_| DecodeError::Memory { nbytes: usize::MAX })
        };
        let (nbytes, needed) = (sized(nbytes)?, sized(needed)?);
        self.pipeline.check_len(chunk.bytes.len(), chunk.filter_mask, needed)?;
        let locked = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let popped = locked().pop();
        let (mut raw, mut scratch) = popped.unwrap_or_default();
        resize(&mut raw, nbytes).map_err(|_| DecodeError::Memory { nbytes })?;
        let (bytes, mask) = (&chunk.bytes, chunk.filter_mask);
        let decoded = self.pipeline.decode_strictly(bytes, mask, &mut scratch, &mut raw);
        let is_more = matches!(&decoded, Ok((passed_over, _)) if !passed_over.is_nothing());
        let found = decoded.map(|(_, len)| if len < nbytes { lacking(len as u64) } else { None });
        if let Ok(Some(found)) = &found {
            let size = self.fill.len().max(1);
            let held = found.nbytes as usize / size * size;
            fill_run(&mut raw[held..], &self.fill);
        }
        if is_more || matches!(found, Ok(Some(_))) {
            std::mem::swap(&mut chunk.bytes, &mut raw);
            let filters = self.pipeline.filters().len() as u32;
            chunk.filter_mask = 1_u32.checked_shl(filters).map_or(u32::MAX, |bit| bit - 1);
        }
        locked().push((raw, scratch));
        found
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
        Ok(Done { chunks_written: handing.chunks, ..Done::default() })
    }

    fn fetch(&self, position: u64, chunk: &mut EncodedChunk) -> Result<bool, CopyError> {
        let Some(record) = self.index.get(position) else { return Ok(false) };
        let extent = Extent::of_chunk(self.grid, position);
        chunk.filter_mask = record.filter_mask;
        let read = self.read(record.address, record.stored_nbytes, &mut chunk.bytes);
        match read.and_then(|()| self.probe(position, &record, chunk)) {
            Ok(None) => {}
            Ok(Some(lacking)) => {
                let error =
                    ReadError::Short { place: place(&extent, &record), lacking: Box::new(lacking) };
                self.lose(&extent, error)?;
            }
            Err(ReadError::Truncated { end, .. }) => {
                let place = place(&extent, &record);
                self.lose(&extent, ReadError::TruncatedChunk { place, end })?;
                return Ok(false);
            }
            Err(error) => {
                self.lose(&extent, error)?;
                return Ok(false);
            }
        }
        if self.is_unfiltered {
            // The target need not keep how long a chunk without filters is.
            let nbytes = self.chunk_nbytes();
            let len = usize::try_from(nbytes).map_err(|_| ReadError::Memory(Some(nbytes)))?;
            let short = chunk.bytes.len() < len;
            if short {
                resize(&mut chunk.bytes, len).map_err(ReadError::from)?;
            }
        }
        self.progress.read_nbytes.fetch_add(record.stored_nbytes, Relaxed);
        self.progress.done_nbytes.fetch_add(extent.nbytes(self.element_size), Relaxed);
        chunk.chunk_origin = extent.origin;
        Ok(true)
    }

    /// List what cannot be read, or fail where that is not wanted.
    fn lose(&self, extent: &Extent, error: ReadError) -> Result<(), CopyError> {
        let Some(lost) = self.lost else { return Err(error.into()) };
        let one = LostChunk { chunk_origin: extent.origin.clone(), error };
        lost.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        Ok(())
    }

    fn chunk_nbytes(&self) -> u64 {
        self.grid.chunk_len().saturating_mul(self.element_size as u64)
    }

    /// What a chunk that was read lacks, where that is asked for; an error if it does not decode.
    fn probe(
        &self,
        position: u64,
        record: &ChunkRecord,
        chunk: &mut EncodedChunk,
    ) -> Result<Option<Lacking>, ReadError> {
        let Some(probe) = self.probe else { return Ok(None) };
        let chunk_index = self.grid.chunk_index(position);
        let mask = chunk.filter_mask;
        if probe.unfiltered_partial_chunks && self.grid.is_partial(&chunk_index) {
            chunk.filter_mask = u32::MAX;
        }
        let needed = self.grid.needed_len(&chunk_index);
        let needed = needed.saturating_mul(self.element_size as u64);
        let found = probe.check(chunk, (self.chunk_nbytes(), needed), |nbytes| {
            Lacking::of(self.grid, &chunk_index, nbytes, self.element_size)
        });
        if chunk.filter_mask == u32::MAX {
            // It is as it was.
            chunk.filter_mask = mask;
        }
        match found {
            Ok(found) => Ok(found),
            // What only libhdf5 can tell, or nobody here: it is copied.
            Err(DecodeError::Unsupported { .. } | DecodeError::Memory { .. }) => Ok(None),
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
