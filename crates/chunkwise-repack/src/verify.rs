//! Is what was written what was read?

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use chunkwise_codec::resize;
use chunkwise_engine::{
    ChunkIndex, CommitError, Committer, EncodedChunk, InOrder, ReadError, Storage, thread_count,
};
use chunkwise_libhdf5::{
    Library, StoredBoxes, Unsuited, describe_as_stored, facts_of, hid_t, storage_of, written_chunks,
};
use chunkwise_select::{ChunkGrid, Dims};

use crate::cells::Extent;
use crate::checksums::{Checksums, Taken, checksum};
use crate::source::Source;
use crate::{CopyError, Progress};

/// Read `target` again, and compare each cell with its checksum; so many others are compared
/// `elsewhere`.
///
/// # Errors
/// [`CopyError::Mismatch`], naming the first chunk found that differs, is missing, or should
/// not be there; and whatever reading gives.
///
/// # Safety
/// A live handle of a dataset of this library, which stays so until this returns.
pub unsafe fn verify(
    library: &Arc<Library>,
    target: hid_t,
    checksums: &Checksums,
    elsewhere: u64,
    progress: &Progress,
) -> Result<(), CopyError> {
    // SAFETY: the caller's contract, here and below.
    let facts = unsafe { facts_of(library, target)? };
    if facts.shape != checksums.shape {
        return Err(CopyError::Refused("it has not the shape that was written".into()));
    }
    let Some(shape) = &facts.shape else { return Ok(()) };
    let grid = ChunkGrid::new(shape, &checksums.cell)?;
    let index = match &facts.chunk {
        None => None,
        // SAFETY: as above.
        Some(_) => Some(unsafe { written_chunks(library, target)? }),
    };
    if let Some(index) = &index {
        same_chunks(&grid, index, &checksums.cells, elsewhere)?;
    }
    match (checksums.taken, index) {
        (Taken::OfStoredBytes, Some(index)) => {
            // SAFETY: as above.
            let storage = unsafe { storage_of(library, target)? };
            verify_stored(&*storage, &grid, &index, &checksums.cells, progress)
        }
        (Taken::OfStoredBytes, None) => Err(CopyError::Refused("it has no chunks any more".into())),
        (Taken::OfElements, index) => {
            // SAFETY: as above.
            let described = unsafe { describe_as_stored(library, target) };
            let engine = match described {
                Ok(dataset) => Some(dataset),
                Err(Unsuited::Reason(_)) => None,
                Err(Unsuited::Failed(error)) => return Err(CopyError::Facts(error.to_string())),
            };
            if facts.holds_pointers {
                return Err(CopyError::Refused("its elements are not plain bytes".into()));
            }
            let size = facts.element_size;
            // SAFETY: as above; elements that point nowhere, of that size.
            let boxes = unsafe { StoredBoxes::new(Arc::clone(library), target, size) };
            let written = index.map(|index| (grid.clone(), Arc::new(index)));
            let source = Source {
                engine,
                boxes,
                element_size: size,
                fill: facts.fill,
                written,
                stays_sparse: true,
                ahead_nbytes: 0,
                lost: None,
            };
            let read = |extent: &Extent, out: &mut Vec<u8>| {
                let nbytes = extent.nbytes(size);
                let len = usize::try_from(nbytes).map_err(|_| ReadError::Memory(Some(nbytes)))?;
                resize(out, len).map_err(ReadError::from)?;
                let cost = source.read(extent, out, 1, progress)?;
                progress.read_nbytes.fetch_add(cost.stored_nbytes, Relaxed);
                progress.done_nbytes.fetch_add(nbytes, Relaxed);
                Ok(())
            };
            compare(&grid, &checksums.cells, &read, progress)
        }
    }
}

/// Whether the chunks there are are those that were written.
fn same_chunks(
    grid: &ChunkGrid,
    index: &ChunkIndex,
    cells: &[(u64, u64)],
    elsewhere: u64,
) -> Result<(), CopyError> {
    let mismatch = |position: u64, message: &str| CopyError::Mismatch {
        chunk_origin: Extent::of_chunk(grid, position).origin,
        message: message.to_string(),
    };
    if let Some((position, _)) = cells.iter().find(|(at, _)| index.get(*at).is_none()) {
        return Err(mismatch(*position, "is missing"));
    }
    let known = |at: &u64| cells.binary_search_by_key(at, |(position, _)| *position).is_ok();
    if elsewhere > 0 && index.written() != cells.len() as u64 + elsewhere {
        let (found, written) = (index.written(), cells.len() as u64 + elsewhere);
        return Err(CopyError::Refused(format!(
            "it has {found} chunks, and {written} were written"
        )));
    }
    if elsewhere == 0
        && index.written() != cells.len() as u64
        && let Some(position) = index.positions().find(|at| !known(at))
    {
        return Err(mismatch(position, "is there, and was not written"));
    }
    Ok(())
}

fn verify_stored(
    storage: &dyn Storage,
    grid: &ChunkGrid,
    index: &ChunkIndex,
    cells: &[(u64, u64)],
    progress: &Progress,
) -> Result<(), CopyError> {
    let read = |extent: &Extent, out: &mut Vec<u8>| {
        let position = grid.linear_index_of_origin(&extent.origin);
        let Some(record) = position.and_then(|at| index.get(at)) else { return Ok(()) };
        let (nbytes, end) = (record.stored_nbytes, storage.end());
        if record.address.checked_add(nbytes).is_none_or(|last| last > end) {
            let address = record.address;
            return Err(ReadError::Truncated { address, len: nbytes, end }.into());
        }
        let len = usize::try_from(nbytes).map_err(|_| ReadError::Memory(Some(nbytes)))?;
        resize(out, len).map_err(ReadError::from)?;
        storage.read_at(record.address, out)?;
        progress.read_nbytes.fetch_add(nbytes, Relaxed);
        progress.done_nbytes.fetch_add(nbytes, Relaxed);
        Ok(())
    };
    compare(grid, cells, &read, progress)
}

/// Takes nothing: the tasks of a comparison make no chunks.
struct Nothing;

impl Committer for Nothing {
    fn commit(&mut self, _chunks: &[EncodedChunk]) -> Result<(), CommitError> {
        Ok(())
    }
}

/// Fills a buffer with what a cell's checksum is taken of.
type Reader<'a> = dyn Fn(&Extent, &mut Vec<u8>) -> Result<(), CopyError> + Sync + 'a;

/// Compare all cells, on all threads.
fn compare(
    grid: &ChunkGrid,
    cells: &[(u64, u64)],
    read: &Reader<'_>,
    progress: &Progress,
) -> Result<(), CopyError> {
    let buffers: Mutex<Vec<Vec<u8>>> = Mutex::default();
    let locked = || buffers.lock().unwrap_or_else(PoisonError::into_inner);
    let encode = |task: u64, _: &mut EncodedChunk| {
        let (position, expected) = cells[task as usize];
        let extent = Extent::of_chunk(grid, position);
        let popped = locked().pop();
        let mut buffer = popped.unwrap_or_default();
        read(&extent, &mut buffer).map_err(|error| named(error, &extent.origin))?;
        let found = checksum(&buffer);
        locked().push(buffer);
        if found == expected {
            return Ok(false);
        }
        let message = "is not what was read from the source".to_string();
        Err(CopyError::Mismatch { chunk_origin: extent.origin, message })
    };
    let all = InOrder {
        tasks: cells.len() as u64,
        helpers: thread_count() - 1,
        encode: &encode,
        progress: &mut |_| (),
        cancelled: &progress.cancelled,
        spare: &mut Vec::new(),
    }
    .run(&mut Nothing)?;
    if all { Ok(()) } else { Err(CopyError::Cancelled) }
}

/// What cannot be read is not what was written.
fn named(error: CopyError, origin: &Dims) -> CopyError {
    match error {
        CopyError::Read(
            error @ (ReadError::Decode { .. }
            | ReadError::Short { .. }
            | ReadError::Truncated { .. }),
        ) => {
            let message = format!("cannot be read again: {error}");
            CopyError::Mismatch { chunk_origin: origin.clone(), message }
        }
        other => other,
    }
}
