//! How are the bytes of a file read, of which metadata takes many small parts?

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use chunkwise_engine::Storage;
use chunkwise_format::Bytes;

/// Files up to this size are read whole; of others, parts of this size are kept.
const WHOLE_NBYTES: u64 = 1 << 19;
const PART_NBYTES: u64 = 16 << 10;
/// No more bytes than this do most structures take.
const USUAL_NBYTES: u64 = 4 << 10;
/// This many parts are kept, of a file that is here, and of one that is far away.
const MOST_PARTS: usize = 1 << 8;
const MOST_FAR_PARTS: usize = 1 << 10;
/// So often are parts fetched together; what is still missing is read as it is needed.
const MOST_ROUNDS: usize = 16;

/// A file's bytes.
pub(crate) struct CachedBytes {
    storage: Arc<dyn Storage>,
    nbytes: u64,
    is_far: bool,
    whole: Option<Vec<u8>>,
    parts: Mutex<HashMap<u64, Arc<[u8]>>>,
    /// Parts that this thread has missed, which notes them now, and does not wait for them.
    missed: Mutex<Option<(ThreadId, BTreeSet<u64>)>>,
}

impl CachedBytes {
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Result<Self, String> {
        let (nbytes, is_far) = (storage.end(), storage.cost().is_remote());
        let whole = match nbytes <= WHOLE_NBYTES && !is_far {
            true => {
                let mut bytes = vec![0; usize::try_from(nbytes).unwrap_or_default()];
                storage.read_at(0, &mut bytes).map_err(|error| error.to_string())?;
                Some(bytes)
            }
            false => None,
        };
        let (parts, missed) = Default::default();
        Ok(Self { storage, nbytes, is_far, whole, parts, missed })
    }

    /// Whether all of the file is in memory.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole.is_some()
    }

    /// Do what reads parts of a file that is far away, again and again without those that are
    /// missing: these are then fetched together.
    pub(crate) fn together(&self, work: &dyn Fn()) {
        for _ in 0..if self.is_far { MOST_ROUNDS } else { 0 } {
            *locked(&self.missed) = Some((std::thread::current().id(), BTreeSet::new()));
            work();
            let missed = locked(&self.missed).take();
            let missed = missed.map(|(_, parts)| parts).unwrap_or_default();
            if missed.is_empty() {
                break;
            }
            self.fetch(&missed);
        }
    }

    /// Whether a part is not here, and is noted for later.
    fn is_missed(&self, number: u64) -> bool {
        match &mut *locked(&self.missed) {
            Some((by, parts)) if *by == std::thread::current().id() => {
                parts.insert(number);
                true
            }
            _ => false,
        }
    }

    /// Have parts come together; what is wrong is reported when they are read.
    fn fetch(&self, parts: &BTreeSet<u64>) {
        let ranges: Vec<_> =
            parts.iter().map(|&part| (part * PART_NBYTES, self.len_of(part))).collect();
        self.storage.expect_metadata(&ranges);
        for &part in parts {
            let _ = self.part(part);
        }
    }

    fn len_of(&self, part: u64) -> u64 {
        PART_NBYTES.min(self.nbytes.saturating_sub(part * PART_NBYTES))
    }

    fn part(&self, number: u64) -> Result<Arc<[u8]>, String> {
        if let Some(part) = locked(&self.parts).get(&number) {
            return Ok(Arc::clone(part));
        }
        if self.is_far && self.is_missed(number) {
            return Err("it is not here yet".into());
        }
        let mut bytes = vec![0; usize::try_from(self.len_of(number)).unwrap_or_default()];
        let read = self.storage.read_metadata(number * PART_NBYTES, &mut bytes);
        read.map_err(|error| error.to_string())?;
        let part: Arc<[u8]> = bytes.into();
        let mut parts = locked(&self.parts);
        if parts.len() >= if self.is_far { MOST_FAR_PARTS } else { MOST_PARTS } {
            parts.clear();
        }
        parts.insert(number, Arc::clone(&part));
        Ok(part)
    }

    fn gathered(&self, position: u64, nbytes: usize) -> Result<Vec<u8>, String> {
        let mut found = Vec::with_capacity(nbytes);
        if nbytes as u64 > PART_NBYTES && !self.is_far {
            found.resize(nbytes, 0);
            let read = self.storage.read_at(position, &mut found);
            return read.map(|()| found).map_err(|error| error.to_string());
        }
        if self.is_far {
            // Each that is missing is noted.
            self.expect(&[(position, nbytes)]);
        }
        while found.len() < nbytes {
            let at = position + found.len() as u64;
            let part = self.part(at / PART_NBYTES)?;
            let begin = usize::try_from(at % PART_NBYTES).unwrap_or(usize::MAX);
            // Short only at the end of the file, beyond which nothing is wanted.
            let Some(rest) = part.get(begin..).filter(|rest| !rest.is_empty()) else { break };
            found.extend_from_slice(&rest[..rest.len().min(nbytes - found.len())]);
        }
        Ok(found)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bytes for CachedBytes {
    fn read(&self, position: u64, nbytes: usize) -> Result<Cow<'_, [u8]>, String> {
        match &self.whole {
            Some(whole) => whole.read(position, nbytes),
            None => self.gathered(position, nbytes).map(Cow::Owned),
        }
    }

    fn nbytes(&self) -> u64 {
        self.nbytes
    }

    fn is_far(&self) -> bool {
        self.is_far
    }

    fn expect(&self, ranges: &[(u64, usize)]) {
        let parts = ranges.iter().flat_map(|&(position, nbytes)| {
            // Most structures go on behind the bytes that say how long they are.
            let end = position.saturating_add(USUAL_NBYTES.max(nbytes as u64)).min(self.nbytes);
            position / PART_NBYTES..end.div_ceil(PART_NBYTES)
        });
        let known = locked(&self.parts);
        let missing: BTreeSet<u64> = parts.filter(|part| !known.contains_key(part)).collect();
        drop(known);
        let noted: Vec<bool> = missing.iter().map(|&part| self.is_missed(part)).collect();
        if missing.len() > 1 && !noted.contains(&true) {
            self.fetch(&missing);
        }
    }
}
