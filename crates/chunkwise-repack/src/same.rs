//! Are the chunks of two datasets stored alike, byte for byte?

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use chunkwise_codec::resize;
use chunkwise_engine::{
    ChunkIndex, ChunkRecord, CommitError, Committer, EncodedChunk, InOrder, ReadError, Storage,
    thread_count,
};
use chunkwise_libhdf5::{Library, facts_of, hid_t, storage_of, written_chunks};
use chunkwise_select::{ChunkGrid, Dims};

use crate::cells::Extent;
use crate::{CopyError, Progress};

/// Where the chunks of two datasets first differ, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differs {
    /// The first element of the chunk.
    pub chunk_origin: Dims,
    /// In words.
    pub how: String,
}

/// One of the two datasets.
struct ComparedDataset {
    storage: Arc<dyn Storage>,
    index: ChunkIndex,
}

/// Compare the stored bytes and filter masks of all written chunks, or of the `number`-th of `of`
/// parts of them.
///
/// # Errors
/// What reading the source gives.  What cannot be read in the result is a difference.
///
/// # Safety
/// Two live handles of datasets of this library, of the same shape and chunk shape, which stay so
/// until this returns.
pub unsafe fn same_chunks(
    library: &Arc<Library>,
    source: hid_t,
    result: hid_t,
    (number, of): (u64, u64),
    progress: &Progress,
) -> Result<Option<Differs>, CopyError> {
    // SAFETY: the caller's contract, here and below.
    let facts = unsafe { facts_of(library, source)? };
    let (Some(shape), Some(chunk)) = (&facts.shape, &facts.chunk) else { return Ok(None) };
    let grid = ChunkGrid::new(shape, chunk)?;
    // SAFETY: as above.
    let (mine, theirs) = unsafe { (side(library, source)?, side(library, result)) };
    let differs = |position: u64, how: String| {
        Ok(Some(Differs { chunk_origin: Extent::of_chunk(&grid, position).origin, how }))
    };
    let mut places: Vec<u64> = mine.index.positions().collect();
    places.sort_unstable();
    let theirs = match theirs {
        Ok(theirs) => theirs,
        Err(error) => return differs(0, format!("cannot be read ({error})")),
    };
    if let Some(&position) = places.iter().find(|&&at| theirs.index.get(at).is_none()) {
        return differs(position, "has no chunk that the source has".into());
    }
    if theirs.index.written() != mine.index.written()
        && let Some(position) = theirs.index.positions().find(|&at| mine.index.get(at).is_none())
    {
        return differs(position, "has a chunk that the source has not".into());
    }
    let share = places.len() as u64;
    let (begin, end) = (share * number / of.max(1), share * (number + 1) / of.max(1));
    let places = &places[begin as usize..end as usize];
    compare(&grid, &mine, &theirs, places, facts.filters.is_empty(), progress)
}

/// Whether a chunk without filters that ends with the dataset was completed by zeros.
fn is_padded(short: &[u8], whole: &[u8]) -> bool {
    whole.strip_prefix(short).is_some_and(|rest| rest.iter().all(|&byte| byte == 0))
}

/// # Safety
/// A live handle of a chunked dataset of this library.
unsafe fn side(library: &Arc<Library>, dataset: hid_t) -> Result<ComparedDataset, CopyError> {
    // SAFETY: the caller's contract.
    let (storage, index) =
        unsafe { (storage_of(library, dataset), written_chunks(library, dataset)?) };
    Ok(ComparedDataset { storage: storage?, index })
}

impl ComparedDataset {
    fn read(&self, record: &ChunkRecord, out: &mut Vec<u8>) -> Result<(), ReadError> {
        let (address, nbytes, end) = (record.address, record.stored_nbytes, self.storage.end());
        if address.checked_add(nbytes).is_none_or(|last| last > end) {
            return Err(ReadError::Truncated { address, len: nbytes, end });
        }
        let len = usize::try_from(nbytes).map_err(|_| ReadError::Memory(Some(nbytes)))?;
        resize(out, len)?;
        self.storage.read_at(address, out)
    }
}

/// Takes nothing: the tasks of a comparison make no chunks.
struct Nothing;

impl Committer for Nothing {
    fn commit(&mut self, _chunks: &[EncodedChunk]) -> Result<(), CommitError> {
        Ok(())
    }
}

/// Compare chunks on all threads.
fn compare(
    grid: &ChunkGrid,
    mine: &ComparedDataset,
    theirs: &ComparedDataset,
    places: &[u64],
    pads: bool,
    progress: &Progress,
) -> Result<Option<Differs>, CopyError> {
    let buffers: Mutex<Vec<(Vec<u8>, Vec<u8>)>> = Mutex::default();
    let first: Mutex<Option<(u64, String)>> = Mutex::default();
    let encode = |task: u64, _: &mut EncodedChunk| {
        let position = places[task as usize];
        let (Some(ours), Some(other)) = (mine.index.get(position), theirs.index.get(position))
        else {
            return Ok(false);
        };
        let popped = buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (mut a, mut b) = popped.unwrap_or_default();
        mine.read(&ours, &mut a)?;
        let how = match theirs.read(&other, &mut b) {
            Err(error) => Some(format!("cannot be read ({error})")),
            Ok(()) if ours.filter_mask != other.filter_mask => {
                Some("has a chunk that passed other filters than in the source".into())
            }
            Ok(()) if !(a == b || pads && is_padded(&a, &b)) => {
                Some("is not stored as in the source".into())
            }
            Ok(()) => None,
        };
        progress.read_nbytes.fetch_add(ours.stored_nbytes, Relaxed);
        progress.done_nbytes.fetch_add(ours.stored_nbytes, Relaxed);
        buffers.lock().unwrap_or_else(PoisonError::into_inner).push((a, b));
        if let Some(how) = how {
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|(at, _)| position < *at) {
                *first = Some((position, how));
            }
        }
        Ok::<bool, CopyError>(false)
    };
    let all = InOrder {
        tasks: places.len() as u64,
        helpers: thread_count() - 1,
        encode: &encode,
        progress: &mut |_| (),
        cancelled: &progress.cancelled,
        spare: &mut Vec::new(),
    }
    .run(&mut Nothing)?;
    if !all {
        return Err(CopyError::Cancelled);
    }
    let found = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(found.map(|(position, how)| Differs {
        chunk_origin: Extent::of_chunk(grid, position).origin,
        how,
    }))
}
