//! How do stored bytes arrive before a thread comes to decode them?
//!
//! Bytes that are in memory already (the page cache) are best read by the thread that
//! decodes them.  The first time that a read would have to wait for its storage, a few
//! threads begin to read ahead of the decoding ones, in the same order, as much as
//! [`Setting::PrefetchNbytes`] says.  Where each request takes long ([`StorageCost::is_remote`]), they
//! begin at once, and each asks for several segments together.
//!
//! [`StorageCost::is_remote`]: crate::StorageCost::is_remote

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};

use chunkwise_codec::resize;

use crate::platform::take_no_signals;
use crate::read::schedule::{Batch, Batches};
use crate::settings::Setting;
use crate::{ReadError, Storage, StorageCost};

/// Stored bytes, from an address on.
pub struct Fetched {
    address: u64,
    bytes: Vec<u8>,
}

impl Fetched {
    /// Its bytes, if they are those of that batch.
    pub fn of(&self, batch: &Batch) -> Option<&[u8]> {
        let (address, nbytes) = (batch.address, batch.nbytes);
        let begin = usize::try_from(address.checked_sub(self.address)?).ok()?;
        self.bytes.get(begin..begin.checked_add(usize::try_from(nbytes).ok()?)?)
    }

    /// Its bytes from an address on.
    fn from(&self, address: u64) -> Option<&[u8]> {
        let begin = usize::try_from(address.checked_sub(self.address)?).ok()?;
        self.bytes.get(begin..).filter(|bytes| !bytes.is_empty())
    }
}

/// A storage of which some bytes were fetched already.
pub struct FetchedFirst<'a> {
    pub fetched: &'a [Fetched],
    pub storage: &'a dyn Storage,
}

impl Storage for FetchedFirst<'_> {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let (mut address, mut left) = (address, out);
        while !left.is_empty() {
            let Some(bytes) = self.fetched.iter().find_map(|one| one.from(address)) else {
                return self.storage.read_at(address, left);
            };
            let len = bytes.len().min(left.len());
            let (now, later) = left.split_at_mut(len);
            now.copy_from_slice(&bytes[..len]);
            (address, left) = (address + len as u64, later);
        }
        Ok(())
    }

    fn end(&self) -> u64 {
        self.storage.end()
    }

    fn cost(&self) -> StorageCost {
        self.storage.cost()
    }
}

enum Segment {
    /// A thread is reading it.
    Coming,
    /// Its bytes; those that could not be read are left out, for the decoding thread to find
    /// out why.
    Here(Vec<Fetched>),
}

pub struct State {
    /// The segment that is fetched next.
    next: u64,
    segments: HashMap<u64, Segment>,
    /// Bytes that are there.
    nbytes: u64,
    begun: bool,
    over: bool,
    /// Something could not be read: who decodes finds out what, and nothing else is requested.
    failed: bool,
}

/// The segments of one read, fetched ahead.
pub struct FetchAhead<'a> {
    storage: &'a dyn Storage,
    /// Segments there are.
    len: u64,
    /// What has to be read for a segment.
    batches: &'a (dyn Fn(u64) -> Batches + Sync),
    /// The most bytes that are there before they are wanted.
    most_nbytes: u64,
    /// Threads that may read ahead.
    fetchers: usize,
    /// Segments that each of them asks for together at most...
    group: u64,
    /// ... as long as they take no more requests, and no more bytes.
    requests: u64,
    group_nbytes: u64,
    state: Mutex<State>,
    changed: Condvar,
}

impl<'a> FetchAhead<'a> {
    /// `len` segments of about `nbytes` each, of which `most_nbytes` are there before they are
    /// wanted, or [`Setting::PrefetchNbytes`] if that is less; none of 0.
    pub fn new(
        storage: &'a dyn Storage,
        (len, nbytes): (u64, u64),
        most_nbytes: u64,
        batches: &'a (dyn Fn(u64) -> Batches + Sync),
    ) -> Self {
        let most_nbytes = most_nbytes.min(Setting::PrefetchNbytes.value() as u64);
        let state = State {
            next: 0,
            segments: HashMap::new(),
            nbytes: 0,
            begun: false,
            over: false,
            failed: false,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let cost = storage.cost();
        let mut nbytes = nbytes.max(1);
        let (mut fetchers, mut group) = (cost.fetchers(), 1);
        if cost.is_remote() && len > 0 && most_nbytes > 0 {
            // What is stored says more than what a segment holds decoded.
            let stored: u64 = batches(0).iter().map(|batch| batch.nbytes).sum();
            nbytes = if stored > 0 { stored } else { nbytes };
            let room = most_nbytes / fetchers / nbytes;
            group = len.div_ceil(fetchers).min(room).max(1);
            fetchers = fetchers.min(len.div_ceil(group));
        }
        let (requests, group_nbytes) = (cost.requests_a_fetcher(), most_nbytes / cost.fetchers());
        let most_fetchers = if most_nbytes == 0 { 0 } else { fetchers };
        let fetchers = (most_nbytes / nbytes.saturating_mul(group)).max(1);
        let fetchers = fetchers.min(most_fetchers) as usize;
        Self {
            storage,
            len,
            batches,
            most_nbytes,
            fetchers,
            group,
            requests,
            group_nbytes,
            state,
            changed,
        }
    }

    /// Begin to fetch, if each request takes long; otherwise that is seen when the first does.
    pub fn begin_where_slow<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        if self.is_slow() {
            self.begin(scope, 0);
        }
    }

    fn is_slow(&self) -> bool {
        self.fetchers > 0 && self.storage.cost().is_remote()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while holding it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was fetched of a segment; waits for it while it is coming.  Where nobody has begun it, it
    /// is empty, or fetched now, if each request takes long.
    pub fn take(&self, segment: u64) -> Vec<Fetched> {
        let mut state = self.state();
        if self.is_slow() && segment >= state.next {
            let segments = self.claim(&mut state, segment);
            drop(state);
            self.arrive(segments);
            state = self.state();
        }
        // Also before any thread reads ahead: what was taken is not fetched again.
        state.next = state.next.max(segment + 1);
        if !state.begun {
            return Vec::new();
        }
        let coming = |state: &mut State| {
            !state.over && matches!(state.segments.get(&segment), Some(Segment::Coming))
        };
        let waited = self.changed.wait_while(state, coming);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let Some(Segment::Here(fetched)) = state.segments.remove(&segment) else {
            return Vec::new();
        };
        state.nbytes -= fetched.iter().map(|one| one.bytes.len() as u64).sum::<u64>();
        self.changed.notify_all();
        fetched
    }

    /// Fill `stored` with the bytes of a batch of `segment`.  When they have to be waited for,
    /// those of later segments are fetched from now on, by threads of `scope`.
    ///
    /// # Errors
    /// What the storage says, or when there is no memory.
    pub fn read<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        segment: u64,
        batch: &Batch,
        stored: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let too_large = |_| ReadError::Memory(Some(batch.nbytes));
        resize(stored, usize::try_from(batch.nbytes).map_err(too_large)?)?;
        if self.storage.read_at_once(batch.address, stored) {
            return Ok(());
        }
        self.begin(scope, segment + 1);
        self.storage.read_at(batch.address, stored)
    }

    fn begin<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, next: u64) {
        {
            let mut state = self.state();
            state.next = state.next.max(next);
            if state.over || std::mem::replace(&mut state.begun, true) {
                return;
            }
        }
        for number in 0..self.fetchers {
            let named = Builder::new().name(format!("chunkwise-fetch-{number}"));
            // Without them, decoding threads read for themselves.
            if named
                .spawn_scoped(scope, || {
                    take_no_signals();
                    self.fetch();
                })
                .is_err()
            {
                break;
            }
        }
    }

    /// Read segment after segment, as the budget allows.
    fn fetch(&self) {
        loop {
            let segments = {
                // Before segments are taken: a decoding thread may wait for them then.
                let full = |state: &mut State| !state.over && state.nbytes >= self.most_nbytes;
                let waited = self.changed.wait_while(self.state(), full);
                let mut state = waited.unwrap_or_else(PoisonError::into_inner);
                let first = state.next;
                if state.over || state.failed || first >= self.len {
                    return;
                }
                self.claim(&mut state, first)
            };
            self.arrive(segments);
        }
    }

    /// Take some segments, which nobody else fetches then.
    fn claim(&self, state: &mut State, first: u64) -> Range<u64> {
        let segments = first..self.end_of_group(first);
        state.next = segments.end;
        state.segments.extend(segments.clone().map(|segment| (segment, Segment::Coming)));
        segments
    }

    /// Where the segments end that are requested together with `first`.
    fn end_of_group(&self, first: u64) -> u64 {
        let most = first.saturating_add(self.group).min(self.len);
        if self.group == 1 {
            return most;
        }
        let cost = self.storage.cost();
        let (mut requests, mut nbytes, mut run) = (0, 0_u64, None);
        for segment in first..most {
            for batch in &(self.batches)(segment) {
                let (begin, len) = (batch.address, batch.nbytes);
                let longer = run.and_then(|run: (u64, u64)| {
                    cost.joined(run, (begin, len)).map(|nbytes| (run.0, nbytes))
                });
                requests += u64::from(longer.is_none());
                run = longer.or(Some((begin, len)));
                nbytes = nbytes.saturating_add(len);
            }
            if segment > first && (requests > self.requests || nbytes > self.group_nbytes) {
                return segment;
            }
        }
        most
    }

    /// Fetch segments that were claimed.
    fn arrive(&self, segments: Range<u64>) {
        let fetched = segments.clone().map(|_| Vec::new()).collect();
        let mut arriving = Arriving { ahead: self, first: segments.start, fetched, failed: false };
        arriving.failed = !self.fetch_segments(segments, &mut arriving.fetched);
    }

    /// The bytes of some segments, none where they cannot be read; left out are those that make no
    /// sense to keep.  Whether they could be read.
    fn fetch_segments(&self, segments: Range<u64>, fetched: &mut [Vec<Fetched>]) -> bool {
        for (segment, fetched) in segments.zip(&mut *fetched) {
            let batches = (self.batches)(segment);
            fetched.extend(batches.iter().filter_map(|batch| self.room_for(batch)));
        }
        let mut all: Vec<_> = fetched.iter_mut().flatten().collect();
        let mut ranges: Vec<_> =
            all.iter_mut().map(|one| (one.address, one.bytes.as_mut_slice())).collect();
        let read = match ranges.as_mut_slice() {
            [] => Ok(()),
            [(address, out)] => self.storage.read_at(*address, out),
            ranges => self.storage.read_ranges(ranges),
        };
        if read.is_err() {
            fetched.iter_mut().for_each(Vec::clear);
        }
        read.is_ok()
    }

    /// Room for the bytes of a batch; None for a size that the file does not have, which is the
    /// decoding thread's to report.
    fn room_for(&self, batch: &Batch) -> Option<Fetched> {
        let nbytes = usize::try_from(batch.nbytes).ok()?;
        let end = batch.address.checked_add(batch.nbytes)?;
        if end > self.storage.end() {
            return None;
        }
        let mut bytes = Vec::new();
        resize(&mut bytes, nbytes).ok()?;
        Some(Fetched { address: batch.address, bytes })
    }

    /// No more is wanted once the result is dropped.
    pub fn ends(&self) -> End<'_> {
        End { state: &self.state, changed: &self.changed }
    }
}

/// Segments that are being fetched; they are there when this goes, also by a panic, with what
/// has come.
struct Arriving<'a> {
    ahead: &'a FetchAhead<'a>,
    first: u64,
    fetched: Vec<Vec<Fetched>>,
    failed: bool,
}

impl Drop for Arriving<'_> {
    fn drop(&mut self) {
        let mut state = self.ahead.state();
        state.failed |= self.failed;
        for (segment, fetched) in (self.first..).zip(std::mem::take(&mut self.fetched)) {
            state.nbytes += fetched.iter().map(|one| one.bytes.len() as u64).sum::<u64>();
            state.segments.insert(segment, Segment::Here(fetched));
        }
        self.ahead.changed.notify_all();
    }
}

/// Ends the threads that read ahead, also when the read panics.
pub struct End<'a> {
    state: &'a Mutex<State>,
    changed: &'a Condvar,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::{MemoryStorage, ThrottledStorage};

    /// Take all segments, one after the other, and give their bytes.
    fn all(storage: &dyn Storage, segments: u64) -> Vec<u8> {
        let batch = |segment: u64| Batch { first: 0, count: 1, address: segment * 10, nbytes: 10 };
        let batches = |segment: u64| [batch(segment)].into_iter().collect();
        let ahead = FetchAhead::new(storage, (segments, 10), u64::MAX, &batches);
        let (mut found, mut stored) = (Vec::new(), Vec::new());
        std::thread::scope(|scope| {
            let _end = ahead.ends();
            ahead.begin_where_slow(scope);
            for segment in 0..segments {
                let batch = batch(segment);
                let fetched = ahead.take(segment);
                match fetched.iter().find_map(|one| one.of(&batch)) {
                    Some(bytes) => found.extend(bytes),
                    None => {
                        ahead.read(scope, segment, &batch, &mut stored).unwrap();
                        found.extend(&stored);
                    }
                }
            }
        });
        found
    }

    #[test]
    fn what_is_slow_to_come_is_fetched_ahead_and_once() {
        let bytes: Vec<u8> = (0..200).collect();
        let memory = Arc::new(MemoryStorage(bytes.clone()));
        assert_eq!(all(&*memory, 20), bytes);
        let slow = ThrottledStorage::new(memory, Duration::from_millis(1), None);
        assert_eq!(all(&slow, 20), bytes);
        assert_eq!((slow.requests(), slow.nbytes()), (20, 200));
    }

    /// Zeros without end.
    struct Endless;

    impl Storage for Endless {
        fn read_at(&self, _: u64, out: &mut [u8]) -> Result<(), ReadError> {
            out.fill(0);
            Ok(())
        }

        fn end(&self) -> u64 {
            u64::MAX
        }
    }

    /// A storage far away, which counts requests for several ranges.
    struct Far(MemoryStorage, Mutex<Vec<usize>>);

    impl Storage for Far {
        fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
            self.1.lock().unwrap().push(1);
            self.0.read_at(address, out)
        }

        fn read_ranges(&self, ranges: &mut [(u64, &mut [u8])]) -> Result<(), ReadError> {
            self.1.lock().unwrap().push(ranges.len());
            ranges.iter_mut().try_for_each(|(address, out)| self.0.read_at(*address, out))
        }

        fn end(&self) -> u64 {
            self.0.end()
        }

        fn cost(&self) -> StorageCost {
            StorageCost {
                latency_ns: 50_000_000,
                nbytes_per_s: 100_000_000,
                request_nbytes: 8 << 20,
                in_flight: 64,
            }
        }
    }

    /// One that fails.
    struct Broken(Far);

    impl Storage for Broken {
        fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
            self.read_ranges(&mut [(address, out)])
        }

        fn read_ranges(&self, ranges: &mut [(u64, &mut [u8])]) -> Result<(), ReadError> {
            self.0.1.lock().unwrap().push(ranges.len());
            Err(ReadError::Cancelled)
        }

        fn end(&self) -> u64 {
            u64::MAX
        }

        fn cost(&self) -> StorageCost {
            self.0.cost()
        }
    }

    #[test]
    fn of_a_storage_far_away_several_segments_are_asked_for_together_and_once() {
        let bytes: Vec<u8> = (0..=255).cycle().take(2000).collect();
        let far = Far(MemoryStorage(bytes.clone()), Mutex::default());
        assert_eq!(all(&far, 200), bytes);
        let requests = far.1.into_inner().unwrap();
        assert_eq!(requests.iter().sum::<usize>(), 200);
        // They lie next to each other: a thread's share is one request.
        assert!(
            requests.iter().all(|&ranges| ranges <= 13) && requests.len() <= 20,
            "{requests:?}"
        );
    }

    #[test]
    fn what_lies_apart_takes_no_more_requests_at_a_time() {
        let far = Far(MemoryStorage(Vec::new()), Mutex::default());
        let batch = |segment: u64| Batch { first: 0, count: 1, address: segment << 21, nbytes: 9 };
        let apart = |segment| [batch(segment)].into_iter().collect();
        let ahead = FetchAhead::new(&far, (200, 9), u64::MAX, &apart);
        assert!(ahead.end_of_group(0) <= far.cost().requests_a_fetcher());
        assert_eq!(ahead.end_of_group(199), 200);
        // Nor more bytes than are this thread's share.
        let large = |segment: u64| {
            let nbytes = 1 << 20;
            [Batch { first: 0, count: 1, address: segment * nbytes, nbytes }].into_iter().collect()
        };
        let ahead = FetchAhead::new(&far, (200, 1 << 20), 32 << 20, &large);
        assert!(ahead.end_of_group(4) <= 6);
    }

    #[test]
    fn where_something_cannot_be_read_nothing_is_asked_for_besides() {
        let far = Far(MemoryStorage(Vec::new()), Mutex::default());
        let batch = |segment: u64| Batch { first: 0, count: 1, address: segment << 21, nbytes: 9 };
        let batches = |segment| [batch(segment)].into_iter().collect();
        let far = Broken(far);
        let ahead = FetchAhead::new(&far, (1000, 9), u64::MAX, &batches);
        std::thread::scope(|scope| ahead.begin_where_slow(scope));
        let fetchers = far.cost().fetchers() as usize;
        assert!(far.0.1.into_inner().unwrap().len() <= fetchers);
    }

    #[test]
    fn what_was_fetched_is_not_read_again() {
        let bytes: Vec<u8> = (0..100).collect();
        let slow =
            ThrottledStorage::new(Arc::new(MemoryStorage(bytes.clone())), Duration::ZERO, None);
        let piece = |begin: usize, end: usize| Fetched {
            address: begin as u64,
            bytes: bytes[begin..end].to_vec(),
        };
        let fetched = [piece(10, 20), piece(20, 30), piece(60, 61)];
        let storage = FetchedFirst { fetched: &fetched, storage: &slow };
        let mut out = [0; 15];
        storage.read_at(12, &mut out).unwrap();
        assert_eq!((&out[..], slow.requests()), (&bytes[12..27], 0));
        // What goes on beyond is read from there on.
        storage.read_at(25, &mut out).unwrap();
        assert_eq!((&out[..], slow.nbytes()), (&bytes[25..40], 10));
        assert!(storage.read_at(95, &mut out).is_err());
    }

    #[test]
    fn no_more_is_fetched_ahead_than_the_budget_allows() {
        let (nbytes, most) = (1 << 20, 8 << 20);
        let slow = ThrottledStorage::new(Arc::new(Endless), Duration::ZERO, None);
        let batch = |segment: u64| Batch { first: 0, count: 1, address: segment * nbytes, nbytes };
        let batches = |segment: u64| [batch(segment)].into_iter().collect();
        let ahead = FetchAhead::new(&slow, (1000, nbytes), most, &batches);
        std::thread::scope(|scope| {
            let _end = ahead.ends();
            ahead.read(scope, 0, &batch(0), &mut Vec::new()).unwrap();
            // Nobody takes anything: whatever has come by now, and more, stays in bounds.
            std::thread::sleep(Duration::from_millis(100));
            let fetchers = StorageCost::LOCAL.fetchers();
            assert!(ahead.state().nbytes <= most + fetchers * nbytes);
            assert!(slow.nbytes() <= nbytes + most + fetchers * nbytes);
        });
    }

    #[test]
    fn of_no_budget_nothing_is_fetched_ahead() {
        let slow = ThrottledStorage::new(Arc::new(Endless), Duration::ZERO, None);
        let batch = |segment: u64| Batch { first: 0, count: 1, address: segment * 10, nbytes: 10 };
        let batches = |segment: u64| [batch(segment)].into_iter().collect();
        let ahead = FetchAhead::new(&slow, (20, 10), 0, &batches);
        std::thread::scope(|scope| {
            let _end = ahead.ends();
            for segment in 0..20 {
                assert!(ahead.take(segment).is_empty());
                ahead.read(scope, segment, &batch(segment), &mut Vec::new()).unwrap();
            }
        });
        assert_eq!((slow.requests(), slow.nbytes()), (20, 200));
    }

    #[test]
    fn threads_that_read_ahead_end_with_the_read() {
        let memory = Arc::new(MemoryStorage(vec![7; 1000]));
        let slow = ThrottledStorage::new(memory, Duration::from_millis(1), None);
        let batch = Batch { first: 0, count: 1, address: 0, nbytes: 10 };
        let batches = |_| [batch].into_iter().collect();
        // Many seconds' work: a busy machine may keep this thread from ending it at once.
        let ahead = FetchAhead::new(&slow, (100_000, 10), u64::MAX, &batches);
        std::thread::scope(|scope| {
            let _end = ahead.ends();
            ahead.read(scope, 0, &batch, &mut Vec::new()).unwrap();
        });
        assert!(slow.requests() < 100_000);
    }
}
