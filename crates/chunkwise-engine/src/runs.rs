//! How are runs of stored elements read without a system call for each?
//!
//! Bytes that are stored as they are (contiguous datasets, unfiltered chunks) are read
//! by positioned reads.  A long run goes straight into the result; short ones that lie
//! near each other are read in one call, gaps included, and copied out.

use chunkwise_codec::resize;
use chunkwise_select::{ChunkTask, Strip};
use rayon::prelude::*;

use crate::process::ProcessState;
use crate::profile::{Phase, timed};
use crate::scatter::{SharedResult, copy_strip};
use crate::{ReadError, Storage};

/// A run of at least this many bytes is read straight into the result.
const DIRECT_NBYTES: u64 = 32 << 10;
/// A gap of at most this many bytes is read rather than skipped: about what a system
/// call costs in copying.
const GAP_NBYTES: u64 = 8 << 10;
/// The most that one call reads for short runs.
const GROUP_NBYTES: u64 = 256 << 10;

/// A chunk of at most this many bytes is read whole where elements scattered over it make up
/// one part in so many.
const WHOLE_NBYTES: u64 = 16 << 20;
const WHOLE_SHARE: u64 = 16;

/// A long run is shared among threads in pieces of this size.
const PIECE_NBYTES: usize = 1 << 20;

/// Read the elements of `task` from bytes stored row-major at `address`.
///
/// # Safety
/// No other thread may touch the task's elements of `result` meanwhile.
pub unsafe fn read_raw(
    storage: &dyn Storage,
    address: u64,
    task: &ChunkTask<'_>,
    size: usize,
    result: &SharedResult<'_>,
    buffer: &mut Vec<u8>,
) -> Result<(), ReadError> {
    let in_bytes = |elements: u64| elements.saturating_mul(size as u64);
    let whole = task.scattered_over().map(in_bytes).filter(|&nbytes| {
        let wanted = in_bytes(task.selected_elements());
        nbytes <= WHOLE_NBYTES && nbytes / WHOLE_SHARE <= wanted
    });
    if let Some(nbytes) = whole {
        // SAFETY: the caller's contract.
        return unsafe { read_whole(storage, address, task, size, result, buffer, nbytes) };
    }
    let mut group =
        Group { storage, address, size: size as u64, result, buffer, strips: Vec::new(), end: 0 };
    let mut outcome = Ok(());
    task.for_each_strip_in_order(|strip| {
        if outcome.is_ok() {
            // SAFETY: the caller's contract; strips of one task are disjoint.
            outcome = unsafe { group.add(strip) };
        }
    });
    outcome?;
    // SAFETY: as above.
    unsafe { group.flush() }
}

/// Read the chunk's first `nbytes`, and copy the elements of `task` out of them.
///
/// # Safety
/// As [`read_raw`].
unsafe fn read_whole(
    storage: &dyn Storage,
    address: u64,
    task: &ChunkTask<'_>,
    size: usize,
    result: &SharedResult<'_>,
    buffer: &mut Vec<u8>,
    nbytes: u64,
) -> Result<(), ReadError> {
    resize(buffer, nbytes as usize)?;
    timed(Phase::Storage, || storage.read_at(address, buffer))?;
    timed(Phase::Scatter, || {
        task.for_each_strip(|strip| {
            // SAFETY: the caller's contract.
            let copied = unsafe { copy_strip(buffer, result, &strip, size) };
            debug_assert!(copied.is_some(), "a plan's strips lie within chunk and result");
        });
    });
    Ok(())
}

/// Strips that one call will read.
struct Group<'a, 'r> {
    storage: &'a dyn Storage,
    address: u64,
    size: u64,
    result: &'a SharedResult<'r>,
    buffer: &'a mut Vec<u8>,
    strips: Vec<Strip>,
    /// One past the last element of them all, in the chunk.
    end: u64,
}

impl Group<'_, '_> {
    /// Read the strip now, or with those that follow.
    ///
    /// # Safety
    /// No other thread may touch the strip's elements of the result meanwhile.
    unsafe fn add(&mut self, strip: Strip) -> Result<(), ReadError> {
        let run = strip.len * self.size;
        let step = strip.src_step * self.size;
        // How many runs may be read together: one where they are long or far apart.
        let together = if strip.count == 1 || run >= DIRECT_NBYTES || step - run > GAP_NBYTES {
            1
        } else {
            (GROUP_NBYTES / step).max(1)
        };
        let mut done = 0;
        while done < strip.count {
            let count = together.min(strip.count - done);
            let piece = strip.part(done, count);
            done += count;
            // SAFETY: the caller's contract; pieces of a strip are disjoint.
            unsafe { self.add_piece(piece)? };
        }
        Ok(())
    }

    unsafe fn add_piece(&mut self, piece: Strip) -> Result<(), ReadError> {
        if piece.count == 1 && piece.len * self.size >= DIRECT_NBYTES {
            let (begin, len) = (piece.dst * self.size, piece.len * self.size);
            // SAFETY: the caller's contract.
            let out = unsafe { self.result.part(begin, len) };
            let address = self.address.saturating_add(piece.src * self.size);
            return read_run(self.storage, address, out.unwrap_or_default());
        }
        if let Some(first) = self.strips.first() {
            // Elements that are wanted several times lead back to where others began.
            let gap = piece.src.saturating_sub(self.end) * self.size;
            let span = end_of(&piece).saturating_sub(first.src) * self.size;
            if piece.src < first.src || gap > GAP_NBYTES || span > GROUP_NBYTES {
                // SAFETY: the caller's contract.
                unsafe { self.flush()? };
            }
        }
        self.end = self.end.max(end_of(&piece));
        self.strips.push(piece);
        Ok(())
    }

    unsafe fn flush(&mut self) -> Result<(), ReadError> {
        let Some(first) = self.strips.first() else { return Ok(()) };
        let begin = first.src;
        let nbytes = (std::mem::take(&mut self.end) - begin) * self.size;
        self.buffer.resize(nbytes as usize, 0);
        let address = self.address.saturating_add(begin * self.size);
        timed(Phase::Storage, || self.storage.read_at(address, self.buffer))?;
        timed(Phase::Scatter, || {
            for strip in self.strips.drain(..) {
                let moved = Strip { src: strip.src - begin, ..strip };
                // SAFETY: the caller's contract.
                let copied =
                    unsafe { copy_strip(self.buffer, self.result, &moved, self.size as usize) };
                debug_assert!(copied.is_some(), "a plan's strips lie within chunk and result");
            }
        });
        Ok(())
    }
}

/// Read one long run: copying it out of the page cache is worth sharing among threads,
/// unless this is one of several that each read a run of their own.
fn read_run(storage: &dyn Storage, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
    let on_pool = rayon::current_thread_index().is_some();
    let pool = if on_pool || out.len() < 2 * PIECE_NBYTES {
        None
    } else {
        ProcessState::of_this_process().pool()
    };
    let Some(pool) = pool else {
        return timed(Phase::Storage, || storage.read_at(address, out));
    };
    let read_piece = |(number, piece): (usize, &mut [u8])| {
        let offset = (number * PIECE_NBYTES) as u64;
        timed(Phase::Storage, || storage.read_at(address.saturating_add(offset), piece))
    };
    timed(Phase::Waiting, || {
        pool.install(|| out.par_chunks_mut(PIECE_NBYTES).enumerate().try_for_each(read_piece))
    })
}

/// One past the last element of a strip, in the chunk.
fn end_of(strip: &Strip) -> u64 {
    strip.src + (strip.count - 1) * strip.src_step + strip.len
}
