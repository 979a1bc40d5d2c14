//! What is copied into what, and on which way?

use std::fs::File;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use chunkwise_codec::{Choices, Effort};
use chunkwise_engine::{ChunkPlaces, Committer, LostChunk, PlacedChunks};
use chunkwise_libhdf5::{
    BoxCommitter, ChunkCommitter, DatasetFacts, Library, StoredBoxes, Unsuited, describe_as_stored,
    encoding_of, facts_of, file_stamp, hid_t, same_stored_type, storage_of, written_chunks,
};
use chunkwise_select::{ChunkGrid, Dims};

use crate::cells::Cells;
use crate::copying::{Copying, Done};
use crate::journal::{Journal, Records};
use crate::maker::Form;
use crate::raw::{Probe, RawCopying, difference};
use crate::share::Share;
use crate::source::Source;
use crate::turns::Turn;
use crate::{CopyError, Progress, RechunkPlan, Rechunking};

/// How a dataset is to be copied.
pub struct Request<'a> {
    /// Names the dataset in the journal.
    pub label: &'a str,
    /// Memory that copying may take.
    pub memory_nbytes: u64,
    /// How much deflate is to be asked for.
    pub effort: Effort,
    /// What was chosen for datasets like this one.
    pub choices: &'a Choices,
    /// Threads that work on it.
    pub threads: usize,
    /// When it may write, if it is one of many.
    pub turn: Option<Turn<'a>>,
    /// Other processes that work on the same dataset, and what is this one's part.
    pub part: Option<Part<'a>>,
    /// Stored chunks are copied as they are.
    pub raw: bool,
    /// Chunks that cannot be read are filled and listed.
    pub salvage: bool,
    /// Where chunks that are done are noted.
    pub journal: Option<&'a Journal>,
    /// Who looks on.
    pub progress: &'a Progress,
}

/// A part of the work on a dataset, done by one of several processes.
pub struct Part<'a> {
    /// This many processes, among which there have to be super-blocks for each.
    pub processes: u64,
    /// Which pieces are this one's.
    pub share: &'a dyn Share,
    /// What keeps the target's index, of which this process has only the form...
    pub places: &'a dyn Fn() -> Box<dyn ChunkPlaces>,
    /// ... and the file to which its chunks' bytes are written.
    pub file: &'a Arc<File>,
}

/// What copying a dataset has come to.
#[derive(Debug, Default)]
pub struct CopyResult {
    /// Chunks of the source that went through filters, each time they did.
    pub decodes: u64,
    /// Chunks, or pieces without chunks, that were written.
    pub chunks_written: u64,
    /// Chunks of which an earlier run's bytes were used.
    pub chunks_replayed: u64,
    /// Bytes that were written.
    pub stored_nbytes_written: u64,
    /// The encoder chosen, in words.
    pub tuning: Option<String>,
    /// Chunks that could not be read, and why.
    pub lost_chunks: Vec<LostChunk>,
    /// Why libhdf5 read or wrote the data.
    pub through_libhdf5: Option<String>,
    /// Seconds spent reading blocks.
    pub read_s: f64,
    /// Seconds spent making and writing chunks.
    pub encode_s: f64,
    /// Seconds from the first to the last.
    pub elapsed_s: f64,
}

/// Copy the data of `source` into `target`.
///
/// # Errors
/// When they do not go together, or something cannot be read or written; what was written of
/// the target until then stays there.
///
/// # Safety
/// Two live handles of datasets of this library, which stay so until this returns.
pub unsafe fn copy(
    library: &Arc<Library>,
    source: hid_t,
    target: hid_t,
    request: &Request<'_>,
) -> Result<CopyResult, CopyError> {
    let begun = Instant::now();
    // SAFETY: the caller's contract, here and below.
    let (from, to) = unsafe { (facts_of(library, source)?, facts_of(library, target)?) };
    if from.shape != to.shape {
        return Err(CopyError::Refused("source and target are not of the same shape".into()));
    }
    if from.holds_pointers {
        let message = "elements of variable length and references cannot be copied as bytes";
        return Err(CopyError::Refused(message.into()));
    }
    // SAFETY: as above.
    if !unsafe { same_stored_type(library, source, target)? } {
        return Err(CopyError::Refused("source and target are not of the same type".into()));
    }
    let Some(shape) = from.shape.clone() else { return Ok(CopyResult::default()) };
    // SAFETY: as above.
    let stamp = unsafe { file_stamp(library, source) };
    let pair = Pair { library, source, target, from, to, shape };
    // SAFETY: as above.
    let result = unsafe { if request.raw { pair.copy_raw(request) } else { pair.copy(request) } };
    // SAFETY: as above.
    if stamp != unsafe { file_stamp(library, source) } {
        return Err(CopyError::Changed);
    }
    result.map(|result| CopyResult { elapsed_s: begun.elapsed().as_secs_f64(), ..result })
}

/// Two datasets of the same shape and type.
struct Pair<'a> {
    library: &'a Arc<Library>,
    source: hid_t,
    target: hid_t,
    from: DatasetFacts,
    to: DatasetFacts,
    shape: Dims,
}

impl Pair<'_> {
    /// # Safety
    /// Live handles.
    unsafe fn copy_raw(&self, request: &Request<'_>) -> Result<CopyResult, CopyError> {
        let refused = |why: &str| {
            Err(CopyError::Refused(format!("stored chunks cannot be copied as they are: {why}")))
        };
        if let Some(why) = difference(&self.from, &self.to) {
            return refused(why);
        }
        let Some(chunk) = &self.from.chunk else { return refused("there are none") };
        let grid = ChunkGrid::new(&self.shape, chunk)?;
        // SAFETY: the caller's contract.
        let (storage, index) = unsafe {
            (storage_of(self.library, self.source), written_chunks(self.library, self.source)?)
        };
        let storage = match storage {
            Ok(storage) => storage,
            Err(error) => return refused(&error.to_string()),
        };
        let lost = request.salvage.then(Mutex::default);
        let probe = if request.salvage { Probe::new(&self.from) } else { None };
        let copying = RawCopying {
            storage: &*storage,
            grid: &grid,
            index: &index,
            element_size: self.from.element_size,
            is_unfiltered: self.from.filters.is_empty(),
            threads: request.threads,
            lost: lost.as_ref(),
            probe: probe.as_ref(),
            turn: request.turn,
            share: request.part.as_ref().map(|part| part.share),
            progress: request.progress,
        };
        // SAFETY: the caller's contract.
        let mut committer = unsafe { self.committer(request) };
        let done = copying.run(&mut *committer)?;
        let mut lost_chunks = lost.and_then(|lost| lost.into_inner().ok()).unwrap_or_default();
        lost_chunks.sort_by(|a, b| a.chunk_origin.cmp(&b.chunk_origin));
        Ok(CopyResult { lost_chunks, ..result_of(done, request) })
    }

    /// # Safety
    /// Live handles.
    unsafe fn copy(&self, request: &Request<'_>) -> Result<CopyResult, CopyError> {
        let size = self.from.element_size;
        let (plan, shared) = self.plan(request)?;
        let cells = Cells { grid: ChunkGrid::new(&self.shape, &plan.cell)?, size };
        if cells.grid.is_empty() {
            return Ok(CopyResult::default());
        }
        // SAFETY: the caller's contract.
        let (source, read_so) = unsafe { self.source(request, plan.waiting_nbytes / 2)? };
        // SAFETY: as above.
        let (form, written_so) = unsafe { self.form()? };
        let mut committer: Box<dyn Committer> = match form {
            // SAFETY: as above.
            Form::Chunk { .. } => unsafe { self.committer(request) },
            Form::Elements if request.part.is_some() => {
                let message = "its chunks cannot be encoded here";
                return Err(CopyError::Refused(message.into()));
            }
            Form::Elements => {
                // SAFETY: as above; elements that point nowhere, of the source's size.
                let boxes =
                    unsafe { StoredBoxes::new(Arc::clone(self.library), self.target, size) };
                Box::new(BoxCommitter::new(boxes, &self.shape, &plan.cell))
            }
        };
        let places = Mutex::new(request.part.as_ref().map(|part| (part.places)()));
        let find = |origins: &[Dims]| {
            let mut places = places.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if let Some(places) = &mut *places {
                return places.find(origins);
            }
            // SAFETY: as above.
            let index = unsafe { written_chunks(self.library, self.target) };
            let index = index.map_err(|error| error.to_string())?;
            let position = |origin: &Dims| cells.grid.linear_index_of_origin(origin);
            Ok(origins.iter().map(|origin| index.get(position(origin)?)).collect())
        };
        // With where the source's data lie: a dataset that was written anew is another one.
        let journal = request.journal.filter(|_| matches!(form, Form::Chunk { .. }));
        let label = source.whereabouts().map(|sum| format!("{} {sum:016x}", request.label));
        let records = journal
            .zip(label.as_deref())
            .map(|(journal, label)| Records::new(journal, label, &cells.grid, &find));
        let copying = Copying {
            source: &source,
            plan: &plan,
            cells: &cells,
            effort: request.effort,
            choices: request.choices,
            turn: request.turn,
            share: request.part.as_ref().map(|part| part.share),
            shared: shared.as_ref(),
            records: records.as_ref(),
            progress: request.progress,
        };
        let done = copying.run(form, &mut *committer);
        if let Some(records) = &records {
            // Also of what was done before something went wrong.
            records.finish()?;
        }
        let reasons: Vec<String> = [
            read_so.map(|why| format!("read: {why}")),
            written_so.map(|why| format!("written: {why}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        Ok(CopyResult {
            lost_chunks: source.lost_chunks(),
            chunks_replayed: records.map_or(0, |records| records.replayable_chunks() as u64),
            through_libhdf5: (!reasons.is_empty()).then(|| reasons.join("; ")),
            ..result_of(done?, request)
        })
    }

    /// In which blocks it is copied, and the memory in which several processes share them.
    fn plan(&self, request: &Request<'_>) -> Result<(RechunkPlan, Option<File>), CopyError> {
        let with = |processes: u64, times: u64| {
            RechunkPlan::new(&Rechunking {
                shape: &self.shape,
                source_chunk: self.from.chunk.as_deref(),
                target_chunk: self.to.chunk.as_deref(),
                itemsize: self.from.element_size as u64,
                memory_nbytes: request.memory_nbytes.saturating_mul(times),
                threads: request.threads.saturating_mul(times as usize),
                processes,
            })
        };
        let Some(part) = &request.part else { return Ok((with(1, 1)?, None)) };
        // As one process with the memory and the threads of all.
        let together = RechunkPlan { threads: request.threads, ..with(1, part.processes)? };
        let nbytes = together
            .super_block
            .iter()
            .fold(self.from.element_size as u64, |n, &d| n.saturating_mul(d));
        if !together.is_direct
            && let Some(file) = part.share.memory(nbytes).map_err(CopyError::Share)?
        {
            return Ok((together, Some(file)));
        }
        Ok((with(part.processes, 1)?, None))
    }

    /// What chunks are handed to.
    ///
    /// # Safety
    /// Live handles.
    unsafe fn committer(&self, request: &Request<'_>) -> Box<dyn Committer> {
        match &request.part {
            Some(part) => Box::new(PlacedChunks::new((part.places)(), Arc::clone(part.file))),
            // SAFETY: the caller's contract.
            None => unsafe { Box::new(ChunkCommitter::new(Arc::clone(self.library), self.target)) },
        }
    }

    /// What reads the source, and the reason why libhdf5 does.
    ///
    /// # Safety
    /// Live handles.
    unsafe fn source(
        &self,
        request: &Request<'_>,
        ahead_nbytes: u64,
    ) -> Result<(Source, Option<String>), CopyError> {
        let described = if self.shape.is_empty() {
            Err(Unsuited::Reason("it is scalar".into()))
        } else {
            // SAFETY: the caller's contract.
            unsafe { describe_as_stored(self.library, self.source) }
        };
        let (engine, reason) = match described {
            Ok(dataset) => (Some(dataset), None),
            Err(Unsuited::Reason(reason)) => (None, Some(reason)),
            Err(Unsuited::Failed(error)) => return Err(CopyError::Facts(error.to_string())),
        };
        let written = match &self.from.chunk {
            None => None,
            Some(chunk) => {
                let grid = ChunkGrid::new(&self.shape, chunk)?;
                // SAFETY: as above.  Where libhdf5 does not tell, everything is read.
                let index = unsafe { written_chunks(self.library, self.source).ok() };
                index.map(|index| (grid, Arc::new(index)))
            }
        };
        // SAFETY: as above; elements that point nowhere, of that size.
        let boxes = unsafe {
            StoredBoxes::new(Arc::clone(self.library), self.source, self.from.element_size)
        };
        let (element_size, fill) = (self.from.element_size, self.from.fill.clone());
        let same_fill = fill.is_none() || fill == self.to.fill;
        // Without chunks everything has its place once anything has, and need not be filled.
        let nothing = written.as_ref().is_some_and(|(_, index)| index.written() == 0);
        let stays_sparse =
            same_fill && (self.to.chunk.is_some() || self.from.chunk.is_none() || nothing);
        let lost = request.salvage.then(Mutex::default);
        let source =
            Source { engine, boxes, element_size, fill, written, stays_sparse, ahead_nbytes, lost };
        Ok((source, reason))
    }

    /// What a target chunk is made into, and the reason why libhdf5 encodes it.
    ///
    /// # Safety
    /// Live handles.
    unsafe fn form(&self) -> Result<(Form, Option<String>), CopyError> {
        if self.to.chunk.is_none() {
            return Ok((Form::Elements, Some("its layout has no chunks".into())));
        }
        // SAFETY: the caller's contract.
        let encoding = match unsafe { encoding_of(self.library, self.target) } {
            Ok(encoding) => encoding,
            Err(Unsuited::Reason(reason)) => return Ok((Form::Elements, Some(reason))),
            Err(Unsuited::Failed(error)) => return Err(CopyError::Facts(error.to_string())),
        };
        // Overwriting a chunk with one of another mask is not safe (`H5Dwrite_chunk`).
        if !encoding.steps().is_empty() {
            // SAFETY: as above.
            let held = unsafe { written_chunks(self.library, self.target) };
            if held.is_ok_and(|index| index.written() > 0) {
                return Ok((Form::Elements, Some("it holds chunks already".into())));
            }
        }
        let padding = self.to.fill.clone().unwrap_or_else(|| vec![0; self.to.element_size]);
        let unfiltered_partial_chunks = self.to.unfiltered_partial_chunks;
        Ok((Form::Chunk { encoding, unfiltered_partial_chunks, padding }, None))
    }
}

fn result_of(done: Done, request: &Request<'_>) -> CopyResult {
    let (_, _, stored_nbytes_written) = request.progress.figures();
    CopyResult {
        decodes: done.decodes,
        chunks_written: done.chunks_written,
        stored_nbytes_written,
        tuning: done.tuning.map(|tuning| tuning.to_string()),
        read_s: done.read_s,
        encode_s: done.encode_s,
        ..CopyResult::default()
    }
}
