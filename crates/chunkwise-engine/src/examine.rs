//! Which chunks of a dataset are not as they were written?
//!
//! All of them are read, in the order in which they lie in the file, and decoded, and nothing is
//! passed over that reading passes over: bytes after a stream's end, more than a chunk holds, chunks
//! that share their bytes.  What is found is listed, and does not end the examination.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use chunkwise_codec::{DecodeError, PassedOver, resize};
use chunkwise_select::Dims;

use crate::crew::share;
use crate::dataset::Layout;
use crate::read::decode::{Buffers, with_buffers};
use crate::{ChunkIndex, ChunkPlace, ChunkRecord, Dataset, Lacking, ReadError};

/// Bytes without filters are read in pieces of this many.
const PIECE_NBYTES: u64 = 4 << 20;
/// This many chunks are put in the order of their addresses at a time.
const SORTED_CHUNKS: usize = 1 << 20;
/// Threads take this many chunks at a time...
const SEGMENT_CHUNKS: usize = 64;
/// ... and fewer of large ones.
const SEGMENT_NBYTES: u64 = 8 << 20;
/// All threads together hold so much of chunks, or one of them one chunk.
const HELD_NBYTES: u64 = 1 << 30;

/// What is wrong with a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Its bytes are not all there.
    BeyondEnd {
        /// Where the file, or its data, ends.
        end: u64,
    },
    /// Another chunk has some of its bytes.
    Overlap {
        /// Where the other begins.
        address: u64,
    },
    /// It does not decode.
    Decode(DecodeError),
    /// It decodes to fewer bytes than the dataset's elements in it take.
    Short(Lacking),
    /// It decodes, and was written otherwise.
    PassedOver(PassedOver),
    /// The system does not give its bytes.
    Unreadable(String),
}

/// A chunk that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Which one; of contiguous data, a part.
    pub place: ChunkPlace,
    /// What is wrong with it.
    pub fault: Fault,
}

/// How a dataset is examined.
#[derive(Debug, Clone, Copy)]
pub struct Examining<'a> {
    /// Threads that work on it at most.
    pub threads: usize,
    /// Where the file's data ends, as the file says; None where it does not.
    pub end: Option<u64>,
    /// Whether its pipeline is known; without, chunks are only read.
    pub decodes: bool,
    /// Flaws that are listed at most; the others are counted.
    pub most_flaws: usize,
    /// No other chunk is begun once this is set.
    pub cancelled: &'a AtomicBool,
    /// Bytes of chunks that are done, as decoded.
    pub done_nbytes: &'a AtomicU64,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Examined {
    /// Chunks that were read.
    pub chunks: u64,
    /// Their bytes in the file; of contiguous data, too.
    pub stored_nbytes: u64,
    /// What is wrong, by address.
    pub flaws: Vec<Flaw>,
    /// How many flaws there are, listed or not.
    pub flaw_count: u64,
    /// Chunks that use what is not decoded here: libhdf5 has to.
    pub undecided: Vec<Dims>,
}

/// A chunk, by where it lies.
#[derive(Debug, Clone, Copy)]
struct Lying {
    address: u64,
    stored_nbytes: u64,
    position: u64,
    filter_mask: u32,
}

impl Dataset {
    /// Read and decode all that is stored of it.
    ///
    /// # Errors
    /// [`ReadError::Index`], [`ReadError::Cancelled`], [`ReadError::Memory`].
    pub fn examine(&self, how: &Examining<'_>) -> Result<Examined, ReadError> {
        let work = Work { dataset: self, how, found: Mutex::default(), lack: Mutex::default() };
        match &self.info.layout {
            Layout::Contiguous { address: None } => {}
            Layout::Contiguous { address: Some(address) } => work.contiguous(*address),
            Layout::Chunked { index, .. } => work.chunked(index.all()?, SORTED_CHUNKS)?,
        }
        if how.cancelled.load(Relaxed) {
            return Err(ReadError::Cancelled);
        }
        if let Some(error) = work.lack.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let mut found = work.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.flaws.sort_by_key(|flaw| flaw.place.address);
        found.undecided.sort();
        Ok(found)
    }
}

/// An examination at work.
struct Work<'a> {
    dataset: &'a Dataset,
    how: &'a Examining<'a>,
    found: Mutex<Examined>,
    /// Why it cannot go on.
    lack: Mutex<Option<ReadError>>,
}

impl Work<'_> {
    /// Look at this many chunks at a time.
    fn chunked(&self, index: &ChunkIndex, sorted_chunks: usize) -> Result<(), ReadError> {
        let mut positions = index.positions();
        let (mut batch, mut before): (Vec<Lying>, Vec<Range<u64>>) = (Vec::new(), Vec::new());
        loop {
            batch.clear();
            batch.extend(positions.by_ref().take(sorted_chunks).filter_map(|position| {
                let ChunkRecord { address, stored_nbytes, filter_mask } = index.get(position)?;
                Some(Lying { address, stored_nbytes, position, filter_mask })
            }));
            if batch.is_empty() || self.is_over() {
                return Ok(());
            }
            let first = batch.first().map_or(0, |chunk| chunk.position);
            batch.sort_unstable_by_key(|chunk| chunk.address);
            let spans = self.overlaps(&batch, &before, &|shared| {
                let others = index.positions().take_while(|&position| position < first);
                let others = others.filter_map(|position| index.get(position));
                let end = self.end();
                let mut spans = others.filter_map(|one| span(one.address, one.stored_nbytes, end));
                spans.find(|other| meet(other, shared)).map(|other| other.start)
            });
            before = joined(before, spans);
            let largest = batch.iter().map(|chunk| chunk.stored_nbytes).max().unwrap_or(0);
            let held = self.dataset.chunk_nbytes.saturating_mul(2).saturating_add(largest);
            let most = usize::try_from(HELD_NBYTES / held.max(1)).unwrap_or(usize::MAX);
            let wanted = SEGMENT_NBYTES / self.dataset.chunk_nbytes.max(1);
            let segment = (wanted as usize).clamp(1, SEGMENT_CHUNKS);
            self.each(batch.len(), segment, most, &|buffers, number| {
                self.chunk(&batch[number], buffers)
            });
        }
    }

    fn contiguous(&self, address: u64) {
        let shape = self.dataset.shape();
        let size = self.dataset.info.element_size as u64;
        let nbytes = shape.iter().fold(size, |nbytes, length| nbytes.saturating_mul(*length));
        let end = self.end();
        if address.checked_add(nbytes).is_none_or(|last| last > end) {
            let chunk_origin = shape.iter().map(|_| 0).collect();
            let place = ChunkPlace { chunk_origin, address, stored_nbytes: nbytes };
            self.note(Flaw { place, fault: Fault::BeyondEnd { end } });
            return;
        }
        let pieces = usize::try_from(nbytes.div_ceil(PIECE_NBYTES)).unwrap_or(usize::MAX);
        self.each(pieces, 1, usize::MAX, &|buffers, number| {
            let begin = number as u64 * PIECE_NBYTES;
            let len = PIECE_NBYTES.min(nbytes - begin);
            let origin = || unravelled(begin / size, shape);
            self.bytes(address + begin, len, &mut buffers.stored, &origin)?;
            self.how.done_nbytes.fetch_add(len, Relaxed);
            self.locked().stored_nbytes += len;
            Ok(())
        });
    }

    /// Do numbered work on all threads, which take `segment` of it at a time.
    fn each(
        &self,
        count: usize,
        segment: usize,
        most_threads: usize,
        one: &(dyn Fn(&mut Buffers, usize) -> Result<(), ReadError> + Sync),
    ) {
        let next = AtomicUsize::new(0);
        let helpers = self.how.threads.min(most_threads).saturating_sub(1);
        share(helpers.min(count.saturating_sub(1)), &|| {
            with_buffers(|buffers| {
                loop {
                    let begin = next.fetch_add(segment, Relaxed);
                    if begin >= count || self.is_over() {
                        return;
                    }
                    for number in begin..count.min(begin + segment) {
                        if let Err(error) = one(buffers, number) {
                            *self.lack.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                            return;
                        }
                    }
                }
            });
        });
    }

    /// Read and decode one chunk.
    fn chunk(&self, chunk: &Lying, buffers: &mut Buffers) -> Result<(), ReadError> {
        let Lying { address, stored_nbytes, .. } = *chunk;
        let fault = match self.fault(chunk, buffers) {
            // What there is no memory for was not examined.
            Err(ReadError::Memory(nbytes)) => return Err(ReadError::Memory(nbytes)),
            Err(other) => Some(self.unreadable(&other)),
            Ok(Some(Fault::Decode(DecodeError::Memory { nbytes }))) => {
                return Err(ReadError::Memory(Some(nbytes as u64)));
            }
            Ok(Some(Fault::Decode(DecodeError::Unsupported { .. }))) => {
                self.locked().undecided.push(self.origin(chunk.position));
                None
            }
            Ok(fault) => fault,
        };
        let is_there = !matches!(fault, Some(Fault::BeyondEnd { .. }));
        if let Some(fault) = fault {
            let chunk_origin = self.origin(chunk.position);
            self.note(Flaw { place: ChunkPlace { chunk_origin, address, stored_nbytes }, fault });
        }
        let mut found = self.locked();
        found.chunks += 1;
        if is_there {
            found.stored_nbytes = found.stored_nbytes.saturating_add(stored_nbytes);
        }
        drop(found);
        self.how.done_nbytes.fetch_add(self.dataset.chunk_nbytes, Relaxed);
        Ok(())
    }

    fn fault(&self, chunk: &Lying, buffers: &mut Buffers) -> Result<Option<Fault>, ReadError> {
        let Lying { address, stored_nbytes, position, filter_mask } = *chunk;
        let end = self.end();
        if address.checked_add(stored_nbytes).is_none_or(|last| last > end) {
            return Ok(Some(Fault::BeyondEnd { end }));
        }
        let Buffers { stored, raw, scratch, .. } = buffers;
        let Layout::Chunked { pipeline, unfiltered_partial_chunks, .. } = &self.dataset.info.layout
        else {
            return Ok(None);
        };
        if !self.how.decodes {
            return self.read_in_pieces(address, stored_nbytes, stored).map(|()| None);
        }
        let raw_nbytes = self.dataset.chunk_nbytes;
        let chunk_index = self.dataset.grid.chunk_index(position);
        let unfiltered = pipeline.is_identity(filter_mask)
            || (*unfiltered_partial_chunks && self.dataset.grid.is_partial(&chunk_index));
        if unfiltered {
            self.read_in_pieces(address, stored_nbytes, stored)?;
            return Ok(self.sized(&chunk_index, stored_nbytes));
        }
        let stored_len = length(stored_nbytes)?;
        let raw_len = length(raw_nbytes)?;
        let needed_len = self.dataset.needed_len(&chunk_index)?;
        if let Err(error) = pipeline.check_len(stored_len, filter_mask, needed_len) {
            return Ok(Some(Fault::Decode(error)));
        }
        resize(stored, stored_len)?;
        self.dataset.storage.read_at(address, stored)?;
        resize(raw, raw_len)?;
        Ok(match pipeline.decode_strictly(stored, filter_mask, scratch, raw) {
            Ok((passed_over, len)) => match self.dataset.lacking(&chunk_index, len) {
                Some(lacking) => Some(Fault::Short(lacking)),
                None if passed_over.is_nothing() => None,
                None => Some(Fault::PassedOver(passed_over)),
            },
            Err(error) => Some(Fault::Decode(error)),
        })
    }

    /// What is wrong with a chunk of this many bytes that is stored as it is.
    fn sized(&self, chunk_index: &[u64], stored_nbytes: u64) -> Option<Fault> {
        let number = |nbytes: u64| usize::try_from(nbytes).unwrap_or(usize::MAX);
        let Some(more) = stored_nbytes.checked_sub(self.dataset.chunk_nbytes) else {
            return self.dataset.lacking(chunk_index, number(stored_nbytes)).map(Fault::Short);
        };
        let passed_over = PassedOver { trailing_nbytes: number(more), beyond_chunk: false };
        (more > 0).then_some(Fault::PassedOver(passed_over))
    }

    fn read_in_pieces(
        &self,
        address: u64,
        nbytes: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let mut done = 0;
        while done < nbytes {
            let len = PIECE_NBYTES.min(nbytes - done);
            resize(out, length(len)?)?;
            self.dataset.storage.read_at(address + done, out)?;
            done += len;
        }
        Ok(())
    }

    /// Read a piece of contiguous data.
    fn bytes(
        &self,
        address: u64,
        nbytes: u64,
        out: &mut Vec<u8>,
        origin: &dyn Fn() -> Dims,
    ) -> Result<(), ReadError> {
        match self.read_in_pieces(address, nbytes, out) {
            Err(ReadError::Memory(nbytes)) => Err(ReadError::Memory(nbytes)),
            Err(error) => {
                let place = ChunkPlace { chunk_origin: origin(), address, stored_nbytes: nbytes };
                self.note(Flaw { place, fault: self.unreadable(&error) });
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Note chunks that share bytes, with each other or with those `before`; they are in the order
    /// of their addresses.  Gives what they take of the file, in order and apart.
    ///
    /// `first_of` says where a chunk of those before begins that has some of these bytes, which
    /// takes a look at all of them.
    fn overlaps(
        &self,
        chunks: &[Lying],
        before: &[Range<u64>],
        first_of: &dyn Fn(&Range<u64>) -> Option<u64>,
    ) -> Vec<Range<u64>> {
        let end = self.end();
        let mut furthest: Option<(u64, &Lying)> = None;
        let mut spans: Vec<Range<u64>> = Vec::new();
        for chunk in chunks {
            let Lying { address, stored_nbytes, position, .. } = *chunk;
            let Some(span) = span(address, stored_nbytes, end) else { continue };
            let other =
                furthest.filter(|(last, _)| *last > address).map(|(_, other)| other.address);
            let other = other.or_else(|| {
                let next = before.partition_point(|span| span.end <= address);
                let is_shared = before.get(next).is_some_and(|before| meet(before, &span));
                // Of flaws that are only counted nobody asks.
                let is_listed = self.locked().flaws.len() < self.how.most_flaws;
                is_shared.then(|| is_listed.then(|| first_of(&span)).flatten().unwrap_or(address))
            });
            if let Some(address_of_other) = other {
                let chunk_origin = self.origin(position);
                let place = ChunkPlace { chunk_origin, address, stored_nbytes };
                self.note(Flaw { place, fault: Fault::Overlap { address: address_of_other } });
            }
            if furthest.is_none_or(|(known, _)| span.end > known) {
                furthest = Some((span.end, chunk));
            }
            match spans.last_mut().filter(|last| last.end >= span.start) {
                Some(last) => last.end = last.end.max(span.end),
                None => spans.push(span),
            }
        }
        spans
    }

    fn unreadable(&self, error: &ReadError) -> Fault {
        match error {
            ReadError::Truncated { end, .. } => Fault::BeyondEnd { end: *end },
            ReadError::Io { message, .. } => Fault::Unreadable(message.clone()),
            other => Fault::Unreadable(other.to_string()),
        }
    }

    /// Where the file, or its data, ends.
    fn end(&self) -> u64 {
        let end = self.dataset.storage.end();
        self.how.end.map_or(end, |stated| stated.min(end))
    }

    fn origin(&self, position: u64) -> Dims {
        let grid = &self.dataset.grid;
        grid.origin(&grid.chunk_index(position))
    }

    fn note(&self, flaw: Flaw) {
        let mut found = self.locked();
        found.flaw_count += 1;
        if found.flaws.len() < self.how.most_flaws {
            found.flaws.push(flaw);
        }
    }

    fn is_over(&self) -> bool {
        self.how.cancelled.load(Relaxed)
            || self.lack.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Examined> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn meet(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// The bytes of the file that a chunk takes; None where there are none, or where it reaches beyond
/// the end, which is reported as that.
fn span(address: u64, stored_nbytes: u64, end: u64) -> Option<Range<u64>> {
    let last = address.checked_add(stored_nbytes).filter(|last| *last <= end);
    last.filter(|_| stored_nbytes > 0).map(|last| address..last)
}

/// What two lists of ranges take together, each of which is in order and apart.
fn joined(one: Vec<Range<u64>>, other: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
    let mut both: Vec<Range<u64>> = Vec::new();
    loop {
        let is_first = match (one.peek(), other.peek()) {
            (Some(one), Some(other)) => one.start <= other.start,
            (one, _) => one.is_some(),
        };
        let Some(next) = (if is_first { one.next() } else { other.next() }) else { return both };
        match both.last_mut().filter(|last| last.end >= next.start) {
            Some(last) => last.end = last.end.max(next.end),
            None => both.push(next),
        }
    }
}

fn length(nbytes: u64) -> Result<usize, ReadError> {
    usize::try_from(nbytes).map_err(|_| ReadError::Memory(Some(nbytes)))
}

/// The place of an element by its number in row-major order.
fn unravelled(mut element: u64, shape: &[u64]) -> Dims {
    let mut place: Dims = shape.iter().map(|_| 0).collect();
    for (at, length) in place.iter_mut().zip(shape).rev() {
        *at = element % (*length).max(1);
        element /= (*length).max(1);
    }
    place
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chunkwise_codec::{Filter, Fletcher32, Pipeline};
    use proptest::prelude::*;

    use super::*;
    use crate::{ChunkIndexBuilder, Chunks, DatasetInfo, MemoryStorage};

    /// Chunks of four bytes with a checksum behind each, the first at address 10.
    fn checked(chunks: u64) -> Vec<u8> {
        let mut bytes = vec![7; 10];
        for number in 0..chunks {
            let chunk = [number as u8, 1, 2, 3];
            bytes.extend(chunk);
            let sum = |words: [u8; 4]| {
                let [a, b, c, d] = words.map(u32::from);
                let (first, second) = (a << 8 | b, c << 8 | d);
                let (one, two) = ((first + second) % 65535, (2 * first + second) % 65535);
                two << 16 | one
            };
            bytes.extend(sum(chunk).to_le_bytes());
        }
        bytes
    }

    fn dataset(bytes: Vec<u8>, records: &[(u64, u64)]) -> Arc<Dataset> {
        let mut builder = ChunkIndexBuilder::default();
        for (position, &(address, stored_nbytes)) in records.iter().enumerate() {
            let record = ChunkRecord { address, stored_nbytes, filter_mask: 0 };
            builder.push(position as u64, record).unwrap();
        }
        let count = records.len() as u64;
        let layout = Layout::Chunked {
            chunk: [4].into_iter().collect(),
            pipeline: Pipeline::new(vec![Filter::Fletcher32(Fletcher32)]),
            unfiltered_partial_chunks: false,
            index: Chunks::from(builder.finish(count).unwrap()),
        };
        let info = DatasetInfo {
            shape: [4 * count].into_iter().collect(),
            element_size: 1,
            fill: None,
            layout,
        };
        Dataset::new(info, Arc::new(MemoryStorage(bytes))).unwrap()
    }

    fn examine(dataset: &Dataset, end: Option<u64>) -> Examined {
        let how = Examining {
            threads: 2,
            end,
            decodes: true,
            most_flaws: 100,
            cancelled: &AtomicBool::new(false),
            done_nbytes: &AtomicU64::new(0),
        };
        let found = dataset.examine(&how).unwrap();
        assert_eq!(how.done_nbytes.load(Relaxed), 4 * found.chunks);
        found
    }

    proptest! {
        #[test]
        fn each_changed_chunk_is_found_and_no_other(
            count in 1u64..300,
            bits in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let mut bytes = checked(count);
            let mut changed = std::collections::BTreeSet::new();
            for bit in bits {
                let bit = bit.index(count as usize * 64);
                // Two bits of a chunk might undo each other.
                if changed.insert(bit as u64 / 64 * 4) {
                    bytes[10 + bit / 8] ^= 1 << (bit % 8);
                }
            }
            let records: Vec<(u64, u64)> = (0..count).map(|n| (10 + 8 * n, 8)).collect();
            let found = examine(&dataset(bytes, &records), None);
            let origins: std::collections::BTreeSet<u64> =
                found.flaws.iter().map(|flaw| flaw.place.chunk_origin[0]).collect();
            prop_assert_eq!(origins, changed.clone());
            prop_assert_eq!(found.flaw_count, changed.len() as u64);
            prop_assert_eq!((found.chunks, found.stored_nbytes), (count, 8 * count));
        }
    }

    proptest! {
        /// However few are looked at together.
        #[test]
        fn chunks_that_share_bytes_are_found(
            records in prop::collection::vec((0u64..400, 0u64..12), 1..40),
            sorted_chunks in 1usize..45,
        ) {
            let dataset = dataset(vec![7; 400], &records);
            let spans: Vec<_> = records.iter().map(|&(at, len)| span(at, len, 400)).collect();
            let shares = |one: usize, other: usize| match (&spans[one], &spans[other]) {
                (Some(one), Some(other)) => meet(one, other),
                _ => false,
            };
            let how = Examining {
                threads: 1,
                end: None,
                decodes: false,
                most_flaws: 1000,
                cancelled: &AtomicBool::new(false),
                done_nbytes: &AtomicU64::new(0),
            };
            let (found, lack) = (Mutex::default(), Mutex::default());
            let work = Work { dataset: &dataset, how: &how, found, lack };
            let Layout::Chunked { index, .. } = &dataset.info.layout else { unreachable!() };
            work.chunked(index.all().unwrap(), sorted_chunks).unwrap();
            let found = work.found.into_inner().unwrap();
            let mut reported = vec![false; records.len()];
            for flaw in found.flaws {
                let number = (flaw.place.chunk_origin[0] / 4) as usize;
                let Fault::Overlap { address } = flaw.fault else { continue };
                reported[number] = true;
                let mut others = (0..records.len()).filter(|&other| records[other].0 == address);
                prop_assert!(others.any(|other| other != number && shares(number, other)));
            }
            // Of those that share bytes, the first alone may go untold.
            for one in 0..records.len() {
                for other in 0..one {
                    prop_assert!(!shares(one, other) || reported[one] || reported[other]);
                }
            }
        }
    }

    #[test]
    fn chunks_beyond_the_end_and_over_others_are_found() {
        let bytes = checked(3);
        let nbytes = bytes.len() as u64;
        let sound = [(10, 8), (18, 8), (26, 8)];
        assert_eq!(examine(&dataset(bytes.clone(), &sound), None).flaws, []);
        let fault = |records: &[(u64, u64)], end| {
            let found = examine(&dataset(bytes.clone(), records), end);
            found.flaws.into_iter().map(|flaw| flaw.fault).collect::<Vec<_>>()
        };
        assert_eq!(fault(&sound, Some(33)), [Fault::BeyondEnd { end: 33 }]);
        assert_eq!(fault(&[(10, 8), (18, 8), (26, 9)], None), [Fault::BeyondEnd { end: nbytes }]);
        assert_eq!(fault(&[(10, 8), (u64::MAX - 9, 8)], None), [Fault::BeyondEnd { end: nbytes }]);
        assert_eq!(fault(&[(10, 8), (10, 8)], None), [Fault::Overlap { address: 10 }]);
    }
}
