//! What does it cost to open a file and list all that it holds, and what takes its space?
//!
//! Counted is what a reader does that fetches one structure after the other, each once, and keeps
//! what it has; as libhdf5 with object headers, it fetches at least 512 bytes.  What is damaged is
//! left out.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use chunkwise_format::{Bytes, Dataspace, File, FormatError, Kind, Layout, Object, Target};

use crate::metadata::Metadata;

/// What is fetched at least.
const LEAST_NBYTES: u64 = 512;
/// Structures this close together count as one place: a disk or a network fetches the gap sooner
/// than it seeks or asks again.
const GAP_NBYTES: u64 = 4 << 10;
/// What readers that cache blocks of remote files fetch at least: fsspec and GDAL have blocks of
/// 16 KiB to 5 MiB.
const BLOCK_NBYTES: u64 = 1 << 20;

/// Requests, and the bytes that they fetch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads {
    /// How often something is fetched.
    pub requests: u64,
    /// Bytes of it.
    pub nbytes: u64,
}

/// What opening and listing a file costs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// To open the file and its root group.
    pub opening: Reads,
    /// Then to see each link, object header and attribute.
    pub listing: Reads,
    /// Then for all chunk indexes.
    pub indexes: Reads,
    /// Bytes of the structures that were read.
    pub nbytes: u64,
    /// Separate places in which they are.
    pub extents: u64,
    /// From the first of these bytes to the last.
    pub span_nbytes: u64,
    /// Blocks of a mebibyte that hold any of them.
    pub blocks: u64,
    /// Bytes of the datasets' data.
    pub raw_nbytes: u64,
    /// Bytes of the file that are neither structures nor data nor a user block.
    pub rest_nbytes: u64,
}

impl Metadata {
    /// What opening and listing this file costs; None where it has no sound superblock.
    #[must_use]
    pub fn account(&self) -> Option<Account> {
        let noted = Noted { bytes: self.file.bytes(), log: Mutex::default() };
        let file = File::open(noted).ok()?;
        let base = file.superblock().base;
        let mut raw_nbytes = 0u64;
        let mut seen = HashSet::from([file.superblock().root]);
        let mut waiting = vec![file.superblock().root];
        while let Some(address) = waiting.pop() {
            let Ok(object) = file.object(address) else { continue };
            file.bytes().in_phase(Phase::Aside);
            let _ = object.check_rest();
            file.bytes().in_phase(Phase::Listing);
            drop(object.readable_attributes());
            let links = object.readable_links().0.into_iter().rev();
            waiting.extend(links.filter_map(|link| match link.target {
                Target::Hard(address) => seen.insert(address).then_some(address),
                _ => None,
            }));
            if object.kind() == Kind::Dataset {
                file.bytes().in_phase(Phase::Indexes);
                raw_nbytes = raw_nbytes.saturating_add(data_nbytes(&object).unwrap_or(0));
                file.bytes().in_phase(Phase::Listing);
            }
        }
        let Log { reads: [opening, listing, indexes], mut read, taken, .. } = file.bytes().log();
        // A user block is looked at, in search of the superblock.
        read.retain(|begin, _| *begin >= base);
        let read: Vec<_> = read.into_iter().map(|(begin, end)| begin..end).collect();
        let found = merged(read.clone(), 0);
        let all = merged(read.into_iter().chain(taken).collect(), 0);
        let accounted = length(&all).saturating_add(raw_nbytes).saturating_add(base);
        Some(Account {
            opening,
            listing,
            indexes,
            nbytes: length(&found),
            span_nbytes: found.first().zip(found.last()).map_or(0, |(a, b)| b.end - a.start),
            blocks: blocks(&found),
            extents: merged(found, GAP_NBYTES).len() as u64,
            raw_nbytes,
            rest_nbytes: self.file.bytes().nbytes().saturating_sub(accounted),
        })
    }
}

/// Bytes that a dataset's data takes in this file, apart from its object header.
fn data_nbytes(object: &Object<'_>) -> Result<u64, FormatError> {
    match object.layout()? {
        _ if !object.external_files()?.is_empty() => Ok(0),
        Some(Layout::Contiguous { address: Some(_), nbytes }) => {
            let (datatype, space) = (object.datatype()?, object.dataspace()?);
            let count = space.and_then(|space| space.count()).unwrap_or(0);
            let each = datatype.map_or(0, |datatype| u64::from(datatype.nbytes));
            Ok(nbytes.unwrap_or_else(|| count.saturating_mul(each)))
        }
        Some(Layout::Chunked(_)) if object.dataspace()? != Some(Dataspace::Null) => {
            let mut nbytes = 0u64;
            object.each_chunk(None, &mut |chunk| {
                nbytes = nbytes.saturating_add(chunk.stored_nbytes);
            })?;
            Ok(nbytes)
        }
        _ => Ok(0),
    }
}

#[derive(Debug, Clone, Copy, Default)]
enum Phase {
    #[default]
    Opening,
    Listing,
    Indexes,
    /// What a reader does not read.
    Aside,
}

/// A file's bytes, with a note of what is read.
struct Noted<'a, B> {
    bytes: &'a B,
    log: Mutex<Log>,
}

#[derive(Debug, Clone, Default)]
struct Log {
    phase: Phase,
    reads: [Reads; 3],
    /// What the last request fetched.
    held: Option<Range<u64>>,
    /// Where structures that were read begin and end.
    read: HashMap<u64, u64>,
    taken: Vec<Range<u64>>,
}

impl Log {
    fn note(&mut self, begin: u64, end: u64) {
        let Some(reads) = self.reads.get_mut(self.phase as usize) else {
            self.taken.push(begin..end);
            return;
        };
        let known = self.read.entry(begin).or_insert(begin);
        let before = std::mem::replace(known, end.max(*known));
        let held = self.held.get_or_insert_default();
        let is_held = held.start <= begin && end <= held.end;
        if end <= before || is_held {
            return;
        }
        // The rest of a structure comes with its head.
        if held.start != begin || held.is_empty() {
            *held = begin..begin;
            reads.requests += 1;
        }
        let to = end.max(begin.saturating_add(LEAST_NBYTES));
        reads.nbytes = reads.nbytes.saturating_add(to.saturating_sub(held.end));
        held.end = to;
    }
}

impl<B: Bytes> Noted<'_, B> {
    fn with<T>(&self, work: impl FnOnce(&mut Log) -> T) -> T {
        work(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn in_phase(&self, phase: Phase) {
        self.with(|log| log.phase = phase);
    }

    fn log(&self) -> Log {
        self.with(std::mem::take)
    }
}

impl<B: Bytes> Bytes for Noted<'_, B> {
    fn read(&self, position: u64, nbytes: usize) -> Result<Cow<'_, [u8]>, String> {
        self.with(|log| log.note(position, position.saturating_add(nbytes as u64)));
        self.bytes.read(position, nbytes)
    }

    fn nbytes(&self) -> u64 {
        self.bytes.nbytes()
    }

    fn takes(&self, position: u64, nbytes: u64) {
        let end = position.saturating_add(nbytes).min(self.nbytes());
        self.with(|log| log.taken.push(position..end));
    }
}

/// Ranges in their order, without those that overlap or are at most `gap` bytes apart.
fn merged(mut ranges: Vec<Range<u64>>, gap: u64) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, one| {
        let joined = next.start <= one.end.saturating_add(gap);
        if joined {
            one.end = one.end.max(next.end);
        }
        joined
    });
    ranges
}

fn length(merged: &[Range<u64>]) -> u64 {
    merged.iter().map(|range| range.end.saturating_sub(range.start)).sum()
}

/// How many blocks hold any byte of ranges that are in their order.
fn blocks(merged: &[Range<u64>]) -> u64 {
    let (mut count, mut next) = (0, 0);
    for range in merged {
        let begin = (range.start / BLOCK_NBYTES).max(next);
        next = range.end.div_ceil(BLOCK_NBYTES).max(begin);
        count += next - begin;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_NBYTES, Log, Reads, blocks, length, merged};

    #[test]
    fn ranges_that_are_close_are_one() {
        let ranges = || vec![30..40, 0..10, 5..12, 15..20, 6..7];
        assert_eq!(merged(ranges(), 0), [0..12, 15..20, 30..40]);
        assert_eq!(merged(ranges(), 3), [0..20, 30..40]);
        assert_eq!(length(&merged(ranges(), 10)), 40);
        assert_eq!(length(&merged(ranges(), 0)), 27);
        assert!(merged(Vec::new(), 9).is_empty());
    }

    #[test]
    fn a_block_counts_once() {
        let block = BLOCK_NBYTES;
        assert_eq!(blocks(&[0..1, 2..3, block - 1..block]), 1);
        assert_eq!(blocks(&[0..1, block - 1..block + 1, 2 * block..3 * block]), 3);
        assert_eq!(blocks(&[0..1, 5 * block..9 * block + 1]), 6);
    }

    #[test]
    fn a_structure_is_fetched_once() {
        let mut log = Log::default();
        let mut after = |begin, end| {
            log.note(begin, end);
            (log.reads[0].requests, log.reads[0].nbytes)
        };
        assert_eq!(after(0, 8), (1, 512));
        assert_eq!(after(0, 100), (1, 512));
        assert_eq!(after(200, 500), (1, 512), "it came with the other");
        assert_eq!(after(2000, 2024), (2, 1024));
        assert_eq!(after(2000, 3000), (2, 512 + 1000), "the rest follows its head");
        assert_eq!(after(0, 100), (2, 1512), "it is known");
        assert_eq!(after(400, 600), (3, 2024));
        assert_eq!(after(700, 750), (3, 2024));
        assert_eq!(after(700, 1000), (4, 2536), "it did not all come with the other");
        assert_eq!(log.reads[1], Reads::default());
    }
}
