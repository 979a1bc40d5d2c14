//! Which blocks of a chunk does a read need, and who decodes them?
//!
//! Chunks that are stored in blocks ([`chunkwise_codec::Blocks`]) are read out of a memory map:
//!
//! * Of a chunk of which a small part is wanted, the blocks that hold it are decoded, and kept, so
//!   that none is decoded twice; what is wanted of kept blocks is all that is copied from them.
//!   Nothing else of the chunk is read from the file.
//! * Where more and more of a chunk is wanted, or much of it at once, it is decoded whole, and kept
//!   as any other; blocks that are there are not decoded again.
//! * The blocks of a large chunk are decoded by all threads that have nothing else to do.
//!
//! Where anything is wrong, the chunk is left to those who read and decode it whole, and report it.

use std::ops::Range;
use std::sync::Arc;

use chunkwise_codec::{Blocks, Scratch, resize};
use chunkwise_select::ChunkTask;

use crate::cache_entry::{ChunkKey, KeptBlock};
use crate::crew::{Pieces, share_beside};
use crate::dataset::Layout;
use crate::platform::Map;
use crate::process::ProcessState;
use crate::profile::{Laps, Phase};
use crate::read::decode::{Buffers, Mapped, StoredBytes, StoredChunk, with_buffers};
use crate::read::reading::{Reading, SHARED_NBYTES};
use crate::read::view::TaskView;
use crate::{ChunkRecord, Dataset};

/// Smaller chunks are decoded whole by one thread: that takes no longer than finding their blocks.
const LEAST_NBYTES: u64 = 128 << 10;
/// What a thread takes at a time, about.
const PIECE_NBYTES: usize = 64 << 10;
/// Of a chunk of which one part in this many is there, all is decoded when more is wanted: several
/// threads do that together, and a walk that goes on finds the next chunks decoded ahead.
const WALKED_SHARE: usize = 4;
/// The same holds once this many reads have come to it that decoding it would have taken no longer:
/// as many bytes are decoded in the time in which one read finds its blocks.
const READ_NBYTES: u64 = 4096;
/// A first read gets some bytes of blocks where these are at most one part in this many of them...
const FEW_SHARE: u64 = 4;
/// ... in this many runs at most.
const FEW_RUNS: u64 = 4096;
/// What the system gives at a time to memory that is written for the first time.
const PAGE_NBYTES: usize = 4096;

impl Reading<'_> {
    /// Copy what is wanted of a chunk, where it is stored in blocks and that is of use; whether
    /// it was done.  Otherwise, also where something is wrong, it is to be read and decoded whole.
    pub(crate) fn by_blocks(
        &self,
        view: &mut TaskView<'_>,
        chunk: &StoredChunk,
        buffers: &mut Buffers,
        helpers: usize,
    ) -> bool {
        self.try_by_blocks(view, chunk, buffers, helpers).is_some()
    }

    fn try_by_blocks(
        &self,
        view: &mut TaskView<'_>,
        chunk: &StoredChunk,
        buffers: &mut Buffers,
        helpers: usize,
    ) -> Option<()> {
        let (dataset, task) = (self.dataset, view.task());
        let state = ProcessState::of_this_process();
        let key: ChunkKey = (dataset.number, task.linear_index());
        let (shared, all) =
            (helpers > 0 && dataset.chunk_nbytes >= SHARED_NBYTES, task.takes_all());
        if !dataset.has_blocks(chunk) || all && !shared || state.in_flight.has(key) {
            return None;
        }
        dataset.stored_len(chunk).ok()?;
        let map = dataset.storage.map()?;
        let bytes = chunk.record.bytes_of(map.bytes())?;
        let mapped = Mapped { map: &map, bytes, helpers, key, read: self.read };
        let held = state.cache().blocks_held(key);
        if !all {
            let mut blocks = dataset.blocks(chunk, bytes, &mut buffers.scratch)?;
            if let Some(places) = held.and_then(|_| state.cache().places(key)) {
                blocks.know(places);
            }
            if let Some(part) = self.part(task, blocks, key, held) {
                self.decode_part(part, mapped, buffers, held)?;
                if !dataset.is_sound(chunk, &map) {
                    return None;
                }
                self.copy(view, &buffers.part[..dataset.chunk_nbytes as usize]);
                return Some(());
            }
        }
        if !shared && held.unwrap_or(0) == 0 {
            return None;
        }
        let Buffers { raw, scratch, .. } = buffers;
        self.finish(view, chunk, StoredBytes::Mapped(mapped), (raw, scratch)).ok()
    }

    /// The part of a chunk that a task wants; None where the chunk is better decoded whole.
    fn part<'b>(
        &self,
        task: &ChunkTask<'_>,
        blocks: Blocks<'b>,
        key: ChunkKey,
        held: Option<usize>,
    ) -> Option<Part<'b>> {
        let mut wanted = self.dataset.blocks_of(task, &blocks)?;
        let seen = held.is_some();
        let held = held.unwrap_or(0);
        let runs = match held > 0 || !seen && blocks.gives_some() {
            true => self.dataset.few_runs_of(task, &blocks, &wanted),
            false => None,
        };
        let (kept, reads) = match held {
            0 => (Vec::new(), 0),
            _ => ProcessState::of_this_process().cache().blocks(key, self.read, &mut wanted),
        };
        let often = reads.saturating_mul(READ_NBYTES) >= self.dataset.chunk_nbytes;
        let walked = (often || held * WALKED_SHARE >= wanted.len()) && wanted.contains(&true);
        (!walked).then_some(Part { blocks, wanted, kept, runs, seen })
    }

    /// Decode a part of a chunk to its places in `buffers.part`, and keep what was not kept before;
    /// None where something is wrong.
    fn decode_part(
        &self,
        part: Part<'_>,
        mapped: Mapped<'_>,
        buffers: &mut Buffers,
        held: Option<usize>,
    ) -> Option<()> {
        let Part { mut blocks, wanted, kept, mut runs, seen } = part;
        let Buffers { stored, part: raw, part_nbytes, scratch, .. } = buffers;
        let nbytes = usize::try_from(self.dataset.chunk_nbytes).ok()?;
        if raw.len() < nbytes {
            // Fresh memory, of which nothing is in use.
            (*raw, *part_nbytes) = (Vec::new(), 0);
            resize(raw, nbytes).ok()?;
        }
        let raw = &mut raw[..nbytes];
        let numbers = (0..wanted.len()).filter(|&number| wanted[number]);
        let decoded: usize = numbers.map(|number| blocks.nbytes_of(number)).sum();
        let copied: usize = kept.iter().map(|(number, _)| blocks.nbytes_of(*number)).sum();
        let pages = runs.as_ref().map_or(usize::MAX, |runs| runs.len() * PAGE_NBYTES);
        *part_nbytes += decoded + copied.min(pages);
        for (number, kept) in &kept {
            match &runs {
                Some(runs) => blocks.put_some(*number, kept.bytes(), runs, raw),
                None => blocks.put(*number, kept.bytes(), raw),
            }
        }
        if seen {
            // Of what is read again, whole blocks are decoded, and kept.
            runs = None;
        }
        let Some(last) = wanted.iter().rposition(|&wanted| wanted) else { return Some(()) };
        if !blocks.find(last + 1) {
            return None;
        }
        let work = BlockWork { blocks: &blocks, wanted: &wanted, helpers: mapped.helpers };
        let phase = self.dataset.phase_of_blocks();
        match &runs {
            Some(runs) => work.decode_some(runs, phase, raw, (stored, scratch))?,
            None => work.decode(phase, raw, (stored, scratch))?,
        }
        let state = ProcessState::of_this_process();
        state.count_decoded_blocks(count(&wanted) as u64);
        if held.is_none() {
            state.count_decoded();
        }
        match &runs {
            _ if self.once.is_some() => {}
            Some(_) => {
                state.cache().keep_blocks(mapped.key, Vec::new(), blocks.found(), self.read);
            }
            None => self.keep(&blocks, &wanted, mapped, raw),
        }
        Some(())
    }

    /// Keep blocks that were decoded to `raw`, if there is room and memory for them.
    fn keep(&self, blocks: &Blocks<'_>, decoded: &[bool], mapped: Mapped<'_>, raw: &[u8]) {
        let numbers = || (0..decoded.len()).filter(|&number| decoded[number]);
        let nbytes = numbers().map(|number| blocks.nbytes_of(number)).sum::<usize>();
        let state = ProcessState::of_this_process();
        let mut together = {
            let mut cache = state.cache();
            if !cache.would_keep(nbytes as u64, self.read) {
                return;
            }
            cache.spare(nbytes)
        };
        together.clear();
        if together.try_reserve_exact(nbytes).is_err() {
            return;
        }
        let kept = numbers().map(|number| {
            let begin = together.len();
            blocks.take(number, raw, &mut together);
            (number, begin..together.len())
        });
        let kept: Vec<_> = kept.collect();
        let kept = KeptBlock::of(Arc::new(together), kept);
        state.cache().keep_blocks(mapped.key, kept, blocks.found(), self.read);
    }
}

/// What is wanted of a chunk.
struct Part<'b> {
    blocks: Blocks<'b>,
    /// The blocks to decode.
    wanted: Vec<bool>,
    /// Those that are there already.
    kept: Vec<(usize, KeptBlock)>,
    /// Where only some bytes of the blocks are needed: these of the chunk, in order.
    runs: Option<Vec<Range<usize>>>,
    /// Whether something of the chunk was wanted before.
    seen: bool,
}

fn count(marks: &[bool]) -> usize {
    marks.iter().filter(|&&marked| marked).count()
}

impl Dataset {
    /// Whether a chunk is stored in blocks, and large enough for that to matter.
    pub(crate) fn has_blocks(&self, chunk: &StoredChunk) -> bool {
        let Layout::Chunked { pipeline, unfiltered_partial_chunks, .. } = &self.info.layout else {
            return false;
        };
        self.chunk_nbytes >= LEAST_NBYTES
            && pipeline.has_blocks(chunk.record.filter_mask)
            && !(*unfiltered_partial_chunks && self.grid.is_partial(&chunk.chunk_index))
    }

    /// Whether that is so of its chunks, unless their filter masks or places say otherwise.
    pub(crate) fn is_in_blocks(&self) -> bool {
        match &self.info.layout {
            Layout::Chunked { pipeline, .. } => {
                self.chunk_nbytes >= LEAST_NBYTES && pipeline.has_blocks(0)
            }
            Layout::Contiguous { .. } => false,
        }
    }

    /// The blocks of a chunk of which these are the stored bytes.
    pub(crate) fn blocks<'a>(
        &self,
        chunk: &StoredChunk,
        stored: &'a [u8],
        scratch: &mut Scratch,
    ) -> Option<Blocks<'a>> {
        let Layout::Chunked { pipeline, .. } = &self.info.layout else { return None };
        let raw_len = usize::try_from(self.chunk_nbytes).ok()?;
        pipeline.blocks(stored, chunk.record.filter_mask, raw_len, scratch)
    }

    /// Of a chunk in blocks: how many a task needs, how many there are, and the bytes of the former.
    pub(crate) fn explain_blocks(
        &self,
        task: &ChunkTask<'_>,
        record: ChunkRecord,
    ) -> Option<(u64, u64, u64)> {
        let chunk = StoredChunk { chunk_index: task.chunk_index(), record };
        if !self.has_blocks(&chunk) {
            return None;
        }
        self.stored_len(&chunk).ok()?;
        let map = self.storage.map()?;
        let bytes = record.bytes_of(map.bytes())?;
        with_buffers(|Buffers { scratch, .. }| {
            let blocks = self.blocks(&chunk, bytes, scratch)?;
            let all = blocks.count() as u64;
            let Some(wanted) = self.blocks_of(task, &blocks) else {
                return Some((all, all, self.chunk_nbytes));
            };
            let numbers = (0..wanted.len()).filter(|&number| wanted[number]);
            let nbytes = numbers.map(|number| blocks.nbytes_of(number) as u64).sum();
            Some((count(&wanted) as u64, all, nbytes))
        })
    }

    /// The blocks that hold what a task wants; None where that is most of them.
    pub(crate) fn blocks_of(&self, task: &ChunkTask<'_>, blocks: &Blocks<'_>) -> Option<Vec<bool>> {
        let size = self.info.element_size as u64;
        let selected = task.selected_elements().saturating_mul(size);
        if task.takes_all() || selected > self.chunk_nbytes / 2 {
            return None;
        }
        let mut wanted = vec![false; blocks.count()];
        let len = self.chunk_nbytes as usize;
        let apart = blocks.least_run() as u64;
        task.for_each_strip(|strip| {
            // Within the chunk, whose bytes were counted.
            let (begin, step, run) = (strip.src * size, strip.src_step * size, strip.len * size);
            let mut mark = |from: u64, nbytes: u64| {
                let (from, to) = (from as usize, (from + nbytes) as usize);
                blocks.mark(from.min(len)..to.min(len), &mut wanted);
            };
            if strip.count == 1 || step.saturating_sub(run) < apart {
                mark(begin, (strip.count - 1) * step + run);
            } else {
                (0..strip.count).for_each(|number| mark(begin + number * step, run));
            }
        });
        (2 * count(&wanted) <= wanted.len()).then_some(wanted)
    }

    /// Which bytes of the chunk a task wants, in order, where these are few runs, and a small part of
    /// the blocks that hold them.
    fn few_runs_of(
        &self,
        task: &ChunkTask<'_>,
        blocks: &Blocks<'_>,
        wanted: &[bool],
    ) -> Option<Vec<Range<usize>>> {
        let size = self.info.element_size as u64;
        let numbers = (0..wanted.len()).filter(|&number| wanted[number]);
        let held: u64 = numbers.map(|number| blocks.nbytes_of(number) as u64).sum();
        let selected = task.selected_elements().saturating_mul(size);
        if selected > held / FEW_SHARE {
            return None;
        }
        let mut runs = Vec::new();
        task.for_each_strip(|strip| {
            // One too many shows that there are too many.
            let left = (FEW_RUNS + 1).saturating_sub(runs.len() as u64);
            runs.extend((0..strip.count.min(left)).map(|number| {
                let begin = (strip.src + number * strip.src_step) * size;
                begin as usize..(begin + strip.len * size) as usize
            }));
        });
        if runs.len() as u64 > FEW_RUNS {
            return None;
        }
        runs.sort_unstable_by_key(|run| run.start);
        // An element may be wanted twice.
        runs.dedup_by(|next, before| {
            let joins = next.start <= before.end;
            before.end = if joins { before.end.max(next.end) } else { before.end };
            joins
        });
        Some(runs)
    }

    /// Whether all that was taken from the map was in the file.
    fn is_sound(&self, chunk: &StoredChunk, map: &Map) -> bool {
        let record = &chunk.record;
        let end = record.address.checked_add(record.stored_nbytes);
        map.is_intact() && end.is_some_and(|end| self.storage.end() >= end)
    }

    /// Decode a whole chunk out of a map, block by block, on as many threads as may help; None
    /// where something is wrong.
    pub(crate) fn decode_mapped(
        &self,
        chunk: &StoredChunk,
        mapped: Mapped<'_>,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Option<()> {
        let mut blocks = self.blocks(chunk, mapped.bytes, scratch)?;
        let mut wanted = vec![true; blocks.count()];
        let state = ProcessState::of_this_process();
        let (seen, kept) = {
            let mut cache = state.cache();
            let seen = cache.blocks_held(mapped.key).is_some();
            let (kept, _) = cache.blocks(mapped.key, mapped.read, &mut wanted);
            (seen, kept)
        };
        for (number, kept) in &kept {
            blocks.put(*number, kept.bytes(), out);
        }
        if !blocks.find(blocks.count()) {
            return None;
        }
        let work = BlockWork { blocks: &blocks, wanted: &wanted, helpers: mapped.helpers };
        work.decode(self.phase_of_blocks(), out, (&mut Vec::new(), scratch))?;
        if !self.is_sound(chunk, mapped.map) {
            return None;
        }
        // Of others a part was decoded, and counted.
        if !seen {
            state.count_decoded();
        }
        Some(())
    }

    fn phase_of_blocks(&self) -> Option<Phase> {
        let Layout::Chunked { pipeline, .. } = &self.info.layout else { return None };
        let in_blocks = pipeline.filters().iter().find(|filter| filter.is_in_blocks());
        in_blocks.map(|filter| Phase::Decode(filter.kind()))
    }
}

/// Blocks of a chunk that are to be decoded.
struct BlockWork<'b, 'a> {
    blocks: &'b Blocks<'a>,
    wanted: &'b [bool],
    helpers: usize,
}

/// Ranges of blocks that follow each other, and the bytes of the chunk that they make up.
struct Piece<'o> {
    ranges: Range<usize>,
    begin: usize,
    out: &'o mut [u8],
}

impl BlockWork<'_, '_> {
    /// Decode them to their places in the chunk; None where something is wrong.
    fn decode(
        &self,
        phase: Option<Phase>,
        out: &mut [u8],
        (stored, scratch): (&mut Vec<u8>, &mut Scratch),
    ) -> Option<()> {
        let (pieces, nbytes) = self.pieces(out);
        let helpers = if (nbytes as u64) < SHARED_NBYTES { 0 } else { self.helpers };
        let helpers = helpers.min(pieces.len().saturating_sub(1));
        let pieces = Pieces::new(pieces.into_iter());
        let work = |stored: &mut Vec<u8>, scratch: &mut Scratch| {
            let mut laps = Laps::begin();
            pieces.each(|piece| self.decode_piece(piece, stored, scratch).ok_or(()));
            if let Some(phase) = phase {
                laps.end(phase);
            }
        };
        let theirs = || with_buffers(|buffers| work(&mut buffers.stored, &mut buffers.scratch));
        share_beside(helpers, &theirs, || work(stored, scratch));
        pieces.outcome().ok()
    }

    /// Decode some bytes of them to their places in the chunk; None where something is wrong.
    fn decode_some(
        &self,
        runs: &[Range<usize>],
        phase: Option<Phase>,
        chunk: &mut [u8],
        (copied, scratch): (&mut Vec<u8>, &mut Scratch),
    ) -> Option<()> {
        let mut laps = Laps::begin();
        for number in (0..self.wanted.len()).filter(|&number| self.wanted[number]) {
            let stored = self.blocks.stored(number)?;
            let with = (&mut *copied, &mut *scratch);
            self.blocks.decode_some(number, stored, runs, with, chunk).ok()?;
        }
        if let Some(phase) = phase {
            laps.end(phase);
        }
        Some(())
    }

    /// What threads take at a time, and the bytes of all blocks to decode.
    fn pieces<'o>(&self, out: &'o mut [u8]) -> (Vec<Piece<'o>>, usize) {
        let (mut pieces, mut nbytes) = (Vec::new(), 0);
        let (mut rest, mut rest_begin) = (out, 0);
        let mut open: Option<(Range<usize>, Range<usize>)> = None;
        let mut close = |(ranges, bytes): (Range<usize>, Range<usize>)| {
            let (_, from) = std::mem::take(&mut rest).split_at_mut(bytes.start - rest_begin);
            let (out, after) = from.split_at_mut(bytes.len());
            pieces.push(Piece { ranges, begin: bytes.start, out });
            (rest, rest_begin) = (after, bytes.end);
        };
        for number in 0..self.blocks.ranges() {
            let (bytes, blocks) = self.blocks.range(number);
            let wanted = blocks.filter(|&block| self.wanted[block]);
            let here: usize = wanted.map(|block| self.blocks.nbytes_of(block)).sum();
            nbytes += here;
            if here > 0 {
                let (ranges, before) = open.take().unwrap_or((number..number, bytes.clone()));
                open = Some((ranges.start..number + 1, before.start..bytes.end));
            }
            let full =
                |(_, bytes): &mut (_, Range<usize>)| here == 0 || bytes.len() >= PIECE_NBYTES;
            open.take_if(full).into_iter().for_each(&mut close);
        }
        open.into_iter().for_each(&mut close);
        (pieces, nbytes)
    }

    fn decode_piece(
        &self,
        piece: Piece<'_>,
        copied: &mut Vec<u8>,
        scratch: &mut Scratch,
    ) -> Option<()> {
        for range in piece.ranges {
            let (_, blocks) = self.blocks.range(range);
            for number in blocks.filter(|&number| self.wanted[number]) {
                // Out of the map first: what is decoded must not change meanwhile.
                let stored = self.blocks.stored(number)?;
                copied.clear();
                copied.try_reserve(stored.len()).ok()?;
                copied.extend_from_slice(stored);
                self.blocks.decode(number, copied, scratch, piece.begin, piece.out).ok()?;
            }
        }
        Some(())
    }
}
