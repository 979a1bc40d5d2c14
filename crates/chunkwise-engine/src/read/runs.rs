//! How are runs of stored elements read without a system call for each?
//!
//! Bytes that are stored as they are (contiguous datasets, unfiltered chunks) are read
//! by positioned reads.  A long run goes straight into the result, in pieces on several
//! threads if they have nothing else to do; so does one whose elements become others on the way.
//! Many short ones are copied out of a memory map where there is one ([`ReadMap`]); otherwise those
//! that lie near each other are read in one call, gaps included, and copied out.

use chunkwise_codec::resize;
use chunkwise_select::{ChunkTask, Strip};
use smallvec::SmallVec;

use crate::crew::{Pieces, share, share_beside};
use crate::profile::{Phase, timed};
use crate::read::decode::with_buffers;
use crate::read::fields::Fields;
use crate::read::read_map::ReadMap;
use crate::read::schedule::Batch;
use crate::read::short_runs::ShortRuns;
use crate::read::view::{StripView, TaskView};
use crate::{ReadError, Storage, StorageCost};

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

/// Of a task whose elements take more than this, nothing is fetched before it is read.
const MOST_FETCHED_NBYTES: u64 = 64 << 20;

/// Fresh memory that is filled as it is stored is worth a thread for each so many bytes: the system
/// clears it, and several threads that do it at the same time hold each other up.
const FRESH_NBYTES: usize = 32 << 20;

/// A long run from a disk is shared among threads in small pieces, so that together they read the
/// file from its beginning to its end: for such readers systems read ahead.
const FAR_PIECE_NBYTES: usize = 512 << 10;
/// Where it is at hand, each thread fills huge pages of the result by itself.
const NEAR_PIECE_NBYTES: usize = 4 << 20;

/// Elements that are converted are shared in pieces of about this size, and this many at most.
const PIECE_NBYTES: usize = 1 << 20;
const MOST_PIECES: usize = 4096;

/// How many threads gain where bytes between two addresses go straight into a result: all that there
/// are, unless the bytes are at hand.
pub fn threads_that_gain(storage: &dyn Storage, ends: [u64; 2], nbytes: usize) -> usize {
    let at_hand = |address: u64| storage.read_at_once(address, &mut [0]);
    let many = nbytes < 2 * PIECE_NBYTES || !ends.into_iter().all(at_hand);
    if many { usize::MAX } else { nbytes.div_ceil(FRESH_NBYTES) }
}

/// Bytes stored row-major at an address, and where they go.
pub struct RawRead<'a> {
    pub storage: &'a dyn Storage,
    pub address: u64,
    /// Bytes of an element.
    pub size: u64,
    /// Where some fields of each element are wanted, or other types.
    pub fields: Option<&'a Fields>,
    /// Out of which short runs are copied.
    pub map: &'a ReadMap,
    pub short_runs: &'a ShortRuns,
    /// Threads that may share a long run.
    pub helpers: usize,
}

impl RawRead<'_> {
    /// Copy a strip out of bytes that were read.
    fn copy(&self, bytes: &[u8], strip: &mut StripView<'_>) -> Option<()> {
        match self.fields {
            None => strip.copy(bytes),
            Some(fields) => fields.copy(bytes, strip, self.size as usize),
        }
    }

    /// Whether a run of so many bytes goes straight into the result.
    fn is_direct(&self, nbytes: u64) -> bool {
        nbytes >= DIRECT_NBYTES && self.fields.is_none()
    }

    /// Read the elements of a task.
    pub fn read(&self, view: &mut TaskView<'_>, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        let in_bytes = |elements: u64| elements.saturating_mul(self.size);
        // Of a storage that is far away, what is wanted was fetched, and not the whole.
        let near = !self.storage.cost().is_remote();
        let whole = view.task().scattered_over().map(in_bytes).filter(|&nbytes| {
            let wanted = in_bytes(view.task().selected_elements());
            near && nbytes <= WHOLE_NBYTES && nbytes / WHOLE_SHARE <= wanted
        });
        if let Some(nbytes) = whole {
            return self.read_whole(view, buffer, nbytes);
        }
        if let Some(pieces) = self.pieces(view) {
            return self.read_pieces(pieces, buffer);
        }
        let mut group = Group::new(self, buffer);
        let mut outcome = Ok(());
        view.for_each_strip_in_order(|strip| {
            if outcome.is_ok() {
                outcome = group.add(strip);
            }
        });
        outcome?;
        group.flush()
    }

    /// Read the chunk's first `nbytes`, and copy the elements of a task out of them.
    fn read_whole(
        &self,
        view: &mut TaskView<'_>,
        buffer: &mut Vec<u8>,
        nbytes: u64,
    ) -> Result<(), ReadError> {
        resize(buffer, nbytes as usize)?;
        timed(Phase::Storage, || self.storage.read_at(self.address, buffer))?;
        timed(Phase::Scatter, || {
            view.for_each_strip(|mut strip| {
                let copied = self.copy(buffer, &mut strip);
                debug_assert!(copied.is_some(), "a plan's strips lie within chunk and result");
            });
        });
        Ok(())
    }

    /// What threads take at a time of elements that are converted; None where there are few of
    /// them, or they are scattered.
    fn pieces<'v>(&self, view: &'v mut TaskView<'_>) -> Option<Vec<StripView<'v>>> {
        let nbytes = view.task().selected_elements().saturating_mul(self.size);
        if self.fields.is_none() || self.helpers == 0 || nbytes < 2 * PIECE_NBYTES as u64 {
            return None;
        }
        let most = (PIECE_NBYTES as u64 / self.size).max(1);
        let mut pieces = Vec::new();
        view.for_each_strip_in_order(|mut strip| {
            let runs = (most / strip.len.max(1)).max(1);
            while pieces.len() <= MOST_PIECES
                && let Some(mut part) = strip.take_runs(runs)
            {
                // Runs that are taken together are short enough as they are.
                let len = if part.count > 1 { part.len } else { most };
                while pieces.len() <= MOST_PIECES
                    && let Some(piece) = part.take_elements(len)
                {
                    pieces.push(piece);
                }
            }
        });
        (pieces.len() <= MOST_PIECES).then_some(pieces)
    }

    /// Read one run straight into the result.  Copying a long one out of the page cache is worth
    /// sharing among threads, unless this is one of several that each read a run of their own.
    fn read_run(&self, mut run: StripView<'_>) -> Result<(), ReadError> {
        let storage = self.storage;
        let address = self.address.saturating_add(run.src * self.size);
        let out = run.run();
        debug_assert!(out.is_some(), "a plan's strips lie within the result");
        let out = out.unwrap_or_default();
        if self.helpers == 0 || out.len() < 2 * PIECE_NBYTES || storage.cost().is_remote() {
            return timed(Phase::Storage, || storage.read_at(address, out));
        }
        let ends = [address, address.saturating_add(out.len() as u64 - 1)];
        let gain = threads_that_gain(storage, ends, out.len());
        let nbytes = if gain == usize::MAX { FAR_PIECE_NBYTES } else { NEAR_PIECE_NBYTES };
        let pieces = Pieces::new(out.chunks_mut(nbytes).enumerate());
        share(self.helpers.min(gain - 1), &|| {
            pieces.each(|(number, piece)| {
                let address = address.saturating_add((number * nbytes) as u64);
                timed(Phase::Storage, || storage.read_at(address, piece))
            });
        });
        pieces.outcome()
    }

    /// Read pieces on several threads.
    fn read_pieces(
        &self,
        pieces: Vec<StripView<'_>>,
        buffer: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let helpers = self.helpers.min(pieces.len() - 1);
        let pieces = Pieces::new(pieces.into_iter());
        let work = |buffer: &mut Vec<u8>| {
            pieces.each(|piece| {
                let mut group = Group::new(self, buffer);
                group.add(piece)?;
                group.flush()
            });
        };
        let theirs = || with_buffers(|buffers| work(&mut buffers.stored));
        share_beside(helpers, &theirs, || work(buffer));
        pieces.outcome()
    }
}

/// Strips that one call will read.
struct Group<'a, 'v> {
    of: &'a RawRead<'a>,
    buffer: &'a mut Vec<u8>,
    strips: SmallVec<[StripView<'v>; 4]>,
    /// Some were copied out of the map, up to this byte of the storage.
    mapped: bool,
    taken_until: u64,
    /// One past the last element of all the strips, in the chunk.
    end: u64,
}

impl<'a, 'v> Group<'a, 'v> {
    fn new(of: &'a RawRead<'a>, buffer: &'a mut Vec<u8>) -> Self {
        let mapped = of.map.serves_single_runs();
        Self { of, buffer, strips: SmallVec::new(), mapped, taken_until: 0, end: 0 }
    }

    /// Read the strip now, or with those that follow.
    fn add(&mut self, mut strip: StripView<'v>) -> Result<(), ReadError> {
        let run = strip.len * self.of.size;
        let step = strip.src_step * self.of.size;
        if run < DIRECT_NBYTES && self.is_worth_a_map(&strip, step) && self.copy_mapped(&mut strip)
        {
            return Ok(());
        }
        // How many runs may be read together: one where they are long or far apart.
        let far = step.saturating_sub(run) > GAP_NBYTES;
        let together = if strip.count == 1 || run >= DIRECT_NBYTES || far {
            1
        } else {
            (GROUP_NBYTES / step.max(1)).max(1)
        };
        if together >= strip.count && (strip.count > 1 || self.of.fields.is_none()) {
            return self.add_piece(strip);
        }
        while let Some(mut piece) = strip.take_runs(together) {
            // Of what passes a buffer, no more than that holds.
            let whole = piece.count > 1 || self.of.fields.is_none();
            let most = if whole { piece.len } else { (GROUP_NBYTES / self.of.size).max(1) };
            while let Some(part) = piece.take_elements(most) {
                self.add_piece(part)?;
            }
        }
        Ok(())
    }

    /// Whether a strip of short runs, so many bytes apart, is copied out of the map.
    fn is_worth_a_map(&self, strip: &Strip, step: u64) -> bool {
        if strip.count > 1 && !self.mapped && ShortRuns::are_far_apart(step) {
            return self.of.short_runs.map_pays(strip.count);
        }
        strip.count > 1 || !self.strips.is_empty() || self.mapped
    }

    /// Copy a strip out of the map; false when there is none, or it does not reach so far.
    fn copy_mapped(&mut self, strip: &mut StripView<'_>) -> bool {
        let RawRead { storage, address, size, map, .. } = *self.of;
        let Some(bytes) = map.bytes_from(storage, address) else { return false };
        let copied = self.of.copy(bytes, strip);
        if copied.is_some() {
            self.taken_until = self.taken_until.max(address + end_of(strip) * size);
            self.mapped = true;
        }
        copied.is_some()
    }

    fn add_piece(&mut self, piece: StripView<'v>) -> Result<(), ReadError> {
        let size = self.of.size;
        if piece.count == 1 && self.of.is_direct(piece.len * size) {
            return self.of.read_run(piece);
        }
        if let Some(first) = self.strips.first() {
            // Elements that are wanted several times lead back to where others began.
            let gap = piece.src.saturating_sub(self.end) * size;
            let span = end_of(&piece).saturating_sub(first.src) * size;
            if piece.src < first.src || gap > GAP_NBYTES || span > GROUP_NBYTES {
                self.flush()?;
            }
        }
        self.end = self.end.max(end_of(&piece));
        self.strips.push(piece);
        Ok(())
    }

    /// Read what is left.
    fn flush(&mut self) -> Result<(), ReadError> {
        let Some(first) = self.strips.first() else { return Ok(()) };
        let size = self.of.size;
        let (begin, end) = (first.src, std::mem::take(&mut self.end));
        if self.strips.len() == 1
            && first.count == 1
            && self.of.fields.is_none()
            && let Some(alone) = self.strips.pop()
        {
            // A run that is alone needs no buffer.
            return self.of.read_run(alone);
        }
        let nbytes = (end - begin) * size;
        resize(self.buffer, nbytes as usize)?;
        let address = self.of.address.saturating_add(begin * size);
        timed(Phase::Storage, || self.of.storage.read_at(address, self.buffer))?;
        timed(Phase::Scatter, || {
            for mut strip in self.strips.drain(..) {
                strip.read_from(strip.src - begin, strip.src_step);
                let copied = self.of.copy(self.buffer, &mut strip);
                debug_assert!(copied.is_some(), "a plan's strips lie within chunk and result");
            }
        });
        Ok(())
    }
}

/// Said once: all threads share what the map knows, and strips are many.
impl Drop for Group<'_, '_> {
    fn drop(&mut self) {
        if self.taken_until > 0 {
            self.of.map.took_until(self.taken_until);
        }
    }
}

/// What is fetched for a task whose elements, of `size` bytes, are stored as they are from an address
/// on; nothing where that is too much to be held.
pub fn raw_batches(
    task: &ChunkTask<'_>,
    (address, size): (u64, u64),
    cost: StorageCost,
) -> Vec<Batch> {
    let (gap_nbytes, mut found) = (cost.gap_nbytes().max(GAP_NBYTES), Vec::<Batch>::new());
    let mut add = |begin: u64, end: u64| {
        let begin = address.saturating_add(begin.saturating_mul(size));
        let end = address.saturating_add(end.saturating_mul(size));
        if let Some(last) = found.last_mut()
            && begin >= last.address
            && begin.saturating_sub(last.address + last.nbytes) <= gap_nbytes
        {
            last.nbytes = last.nbytes.max(end - last.address);
            return;
        }
        found.push(Batch { first: 0, count: 0, address: begin, nbytes: end - begin });
    };
    task.for_each_strip_in_order(|strip| {
        let far = strip.src_step.saturating_sub(strip.len).saturating_mul(size) > gap_nbytes;
        if far {
            for begin in (0..strip.count).map(|run| strip.src + run * strip.src_step) {
                add(begin, begin + strip.len);
            }
        } else {
            add(strip.src, end_of(&strip));
        }
    });
    let nbytes = found.iter().fold(0u64, |sum, batch| sum.saturating_add(batch.nbytes));
    if nbytes > MOST_FETCHED_NBYTES { Vec::new() } else { found }
}

/// One past the last element of a strip, in the chunk.
fn end_of(strip: &Strip) -> u64 {
    strip.src + (strip.count - 1) * strip.src_step + strip.len
}
