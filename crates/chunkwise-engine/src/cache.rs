//! Which decoded chunks are kept, and which are evicted first?
//!
//! One budget of bytes for the whole process.  A chunk that a second read has used is
//! worth more than one that was read once: it moves from the probation to the protected segment
//! of a segmented LRU, which may take up to four fifths of the budget, so that one pass over a large dataset does not
//! drive out what a program keeps coming back to.  Among equals the least recently used
//! goes first, with two exceptions that keep sequential patterns from decoding twice: the
//! newest chunk stays even when it is larger than the budget, and a read never drops
//! chunks that it has itself used or brought (a walk whose steps are each larger than
//! the budget would otherwise find nothing of what the step before left).

use std::collections::HashMap;
use std::sync::Arc;

use chunkwise_codec::Places;
use lru::LruCache;

use crate::cache_entry::{ChunkKey, Decoded, ENTRY_NBYTES, Entry, Held, HeldBlocks, KeptBlock};

/// What the cache holds and has done since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Bytes of decoded chunks held now, with what keeping each of them costs.
    pub held_nbytes: usize,
    /// The most it may hold.
    pub budget_nbytes: usize,
    /// Chunks found.
    pub hits: u64,
    /// Chunks looked for in vain.
    pub misses: u64,
    /// Chunks decoded, for the cache or past it; those of which a part was as well.
    pub decoded: u64,
    /// Blocks decoded of chunks of which a part was wanted.
    pub decoded_blocks: u64,
}

/// Decoded chunks, least recently used last.
pub struct ChunkCache {
    /// Those that one read has used, or none yet.
    probation: LruCache<ChunkKey, Entry>,
    /// Those that were used again, and their bytes.
    protected: LruCache<ChunkKey, Entry>,
    protected_nbytes: usize,
    /// Entries of each dataset that has any, so that most are forgotten for nothing.
    counts: HashMap<u64, usize>,
    /// Of the chunks that were prefetched, those that were wanted, and those that had to
    /// go before they were.
    prefetched_used: usize,
    prefetched_wasted: usize,
    /// Memory of chunks that had to go, for new ones: fresh memory is zeroed by the system,
    /// which takes a tenth of what decoding takes.
    spares: Vec<Vec<u8>>,
    stats: CacheStats,
}

/// At most this fraction of the budget is kept as spare memory, and in as many pieces.
const SPARE_FRACTION: usize = 8;
const MOST_SPARES: usize = 64;

impl ChunkCache {
    /// An empty cache that may hold `budget_nbytes`.
    pub fn new(budget_nbytes: usize) -> Self {
        let stats = CacheStats { budget_nbytes, ..CacheStats::default() };
        Self {
            probation: LruCache::unbounded(),
            protected: LruCache::unbounded(),
            protected_nbytes: 0,
            counts: HashMap::new(),
            prefetched_used: 0,
            prefetched_wasted: 0,
            spares: Vec::new(),
            stats,
        }
    }

    /// The chunk, if it is held whole; marks it as used by read number `read`.
    pub fn get(&mut self, key: ChunkKey, read: u64) -> Option<Decoded> {
        let found = self.entry(key).and_then(Entry::whole).map(Arc::clone);
        match &found {
            Some(_) => {
                self.stats.hits += 1;
                self.use_entry(key, read);
            }
            None => self.stats.misses += 1,
        }
        found
    }

    /// Whether the chunk is held whole, without using it.
    pub fn holds(&self, key: ChunkKey) -> bool {
        self.entry(key).is_some_and(|entry| entry.whole().is_some())
    }

    /// How many blocks are held of a chunk that is not held whole, without using them; None where
    /// it was not read yet.
    pub fn blocks_held(&self, key: ChunkKey) -> Option<usize> {
        match self.entry(key).map(|entry| &entry.held) {
            Some(Held::Blocks(held)) => Some(held.by_number.len()),
            _ => None,
        }
    }

    /// Those of the wanted blocks that are held of a chunk, which [`get`](Self::get) has not
    /// found, and how many reads have wanted them; they are wanted no more.
    pub fn blocks(
        &mut self,
        key: ChunkKey,
        read: u64,
        wanted: &mut [bool],
    ) -> (Vec<(usize, KeptBlock)>, u64) {
        let entry = match self.protected.peek_mut(&key) {
            None => self.probation.peek_mut(&key),
            protected => protected,
        };
        let Some(Entry { held: Held::Blocks(held), .. }) = entry else { return (Vec::new(), 0) };
        held.reads += 1;
        let reads = held.reads;
        let mut found = Vec::new();
        for (number, wanted) in wanted.iter_mut().enumerate().filter(|(_, wanted)| **wanted) {
            if let Some(block) = held.by_number.get(&number) {
                found.push((number, block.clone()));
                *wanted = false;
            }
        }
        if !found.is_empty() {
            self.use_entry(key, read);
        }
        if !wanted.contains(&true) {
            // After all.
            self.stats.misses -= 1;
            self.stats.hits += 1;
        }
        (found, reads)
    }

    /// Where the first blocks of a chunk are stored, as far as that was kept.
    pub fn places(&self, key: ChunkKey) -> Option<Places> {
        match self.entry(key).map(|entry| &entry.held) {
            Some(Held::Blocks(held)) => Some(Arc::clone(&held.places)),
            _ => None,
        }
    }

    /// Offer blocks of a chunk that read number `read` has decoded together, beside those that are
    /// held; where there are none, the chunk counts as read.  With them comes where its first blocks
    /// are stored, if more is known of that than before.
    pub fn keep_blocks(
        &mut self,
        key: ChunkKey,
        fresh: Vec<(usize, KeptBlock)>,
        places: Option<Places>,
        read: u64,
    ) {
        if self.holds(key) {
            return;
        }
        let protected = self.protected.pop(&key);
        self.protected_nbytes -= protected.as_ref().map_or(0, Entry::nbytes);
        let before = protected.or_else(|| self.probation.pop(&key));
        let mut held = match before {
            Some(entry) => {
                self.uncount(key, entry.nbytes());
                match entry.held {
                    Held::Blocks(held) => held,
                    Held::Whole(_) => return,
                }
            }
            None => HeldBlocks::default(),
        };
        held.nbytes += fresh.first().map_or(0, |(_, block)| block.decoded.capacity());
        held.by_number.extend(fresh);
        if let Some(places) = places.filter(|places| places.len() > held.places.len()) {
            held.places = places;
        }
        self.keep(key, Entry { held: Held::Blocks(held), read, prefetched: false });
    }

    fn entry(&self, key: ChunkKey) -> Option<&Entry> {
        self.protected.peek(&key).or_else(|| self.probation.peek(&key))
    }

    /// An entry is used by read number `read`: it is the newest, and where that is another one
    /// than before, it is protected.
    fn use_entry(&mut self, key: ChunkKey, read: u64) {
        if let Some(entry) = self.protected.get_mut(&key) {
            entry.read = read;
            return;
        }
        let Some(entry) = self.probation.get_mut(&key) else { return };
        let again = !entry.prefetched && entry.read != read;
        entry.read = read;
        self.prefetched_used += usize::from(std::mem::take(&mut entry.prefetched));
        if again {
            self.promote(key);
        }
    }

    /// Whether a chunk of `nbytes` that read number `read` decodes would be kept, as far as one
    /// look tells.
    pub fn would_keep(&self, nbytes: u64, read: u64) -> bool {
        let nbytes = usize::try_from(nbytes).unwrap_or(usize::MAX).saturating_add(ENTRY_NBYTES);
        let fits = self.stats.held_nbytes.saturating_add(nbytes) <= self.stats.budget_nbytes;
        let oldest = || self.probation.peek_lru().or_else(|| self.protected.peek_lru());
        let keeps = fits
            || nbytes > self.stats.budget_nbytes
            || oldest().is_none_or(|(_, oldest)| oldest.read != read);
        keeps && self.stats.budget_nbytes > 0
    }

    /// Hold no more than `budget_nbytes` from now on.
    pub fn set_budget(&mut self, budget_nbytes: usize) {
        self.stats.budget_nbytes = budget_nbytes;
        self.spares.clear();
        self.limit_protected();
        while self.stats.held_nbytes > budget_nbytes
            && let Some((&key, _)) = self.probation.peek_lru().or_else(|| self.protected.peek_lru())
        {
            self.remove(key);
        }
    }

    /// Drop every chunk, and the memory for new ones.
    pub fn clear(&mut self) {
        self.probation.clear();
        self.protected.clear();
        self.protected_nbytes = 0;
        self.counts.clear();
        self.spares = Vec::new();
        self.stats.held_nbytes = 0;
    }

    /// Memory for a chunk of `nbytes`, with anything in it; empty where there is none to spare.
    pub fn spare(&mut self, nbytes: usize) -> Vec<u8> {
        let fits =
            |spare: &Vec<u8>| (nbytes..=nbytes.saturating_mul(2)).contains(&spare.capacity());
        let found = self.spares.iter().position(fits);
        found.map_or_else(Vec::new, |place| self.spares.swap_remove(place))
    }

    /// Offer a chunk that read number `read` has decoded.
    pub fn put(&mut self, key: ChunkKey, chunk: Decoded, read: u64) {
        self.keep(key, Entry { held: Held::Whole(chunk), read, prefetched: false });
    }

    /// Offer a chunk that was decoded because read number `read` may be followed by one
    /// that wants it.
    pub fn put_prefetched(&mut self, key: ChunkKey, chunk: Decoded, read: u64) {
        self.keep(key, Entry { held: Held::Whole(chunk), read, prefetched: true });
    }

    /// How many chunks to prefetch: one until that has paid, then one for each of
    /// `threads`, and none while too many had to go before they were wanted (a walk
    /// through so many datasets at once that their chunks drive each other out).
    pub fn prefetch_depth(&self, threads: usize) -> usize {
        match (self.prefetched_used, self.prefetched_wasted) {
            (used, wasted) if wasted > 2 + used / 8 => 0,
            (0, _) => 1,
            _ => threads,
        }
    }

    /// A chunk was used again: it moves to those that were, and the oldest of them make
    /// room.
    fn promote(&mut self, key: ChunkKey) {
        let Some(entry) = self.probation.pop(&key) else { return };
        self.protected_nbytes += entry.nbytes();
        self.protected.push(key, entry);
        self.limit_protected();
    }

    fn limit_protected(&mut self) {
        let most = self.stats.budget_nbytes / 5 * 4;
        while self.protected_nbytes > most && self.protected.len() > 1 {
            let Some((key, entry)) = self.protected.pop_lru() else { break };
            self.protected_nbytes -= entry.nbytes();
            self.probation.push(key, entry);
        }
    }

    fn keep(&mut self, key: ChunkKey, entry: Entry) {
        let read = entry.read;
        let nbytes = entry.nbytes();
        self.remove(key);
        if self.stats.budget_nbytes == 0 {
            return;
        }
        while self.stats.held_nbytes + nbytes > self.stats.budget_nbytes {
            let oldest = self.probation.peek_lru().or_else(|| self.protected.peek_lru());
            match oldest {
                None => break,
                // Larger than the budget: keep it alone, as the last decoded chunk.
                Some(_) if nbytes > self.stats.budget_nbytes => self.drop_oldest(),
                Some((_, oldest)) if oldest.read == read => return,
                Some(_) => self.drop_oldest(),
            }
        }
        self.stats.held_nbytes += nbytes;
        *self.counts.entry(key.0).or_default() += 1;
        self.probation.push(key, entry);
    }

    fn drop_oldest(&mut self) {
        let oldest = self.probation.peek_lru().or_else(|| self.protected.peek_lru());
        if let Some(key) = oldest.map(|(key, _)| *key) {
            self.prefetched_wasted += usize::from(self.remove(key));
        }
    }

    /// Drop a chunk, if it is held; returns whether it was prefetched in vain.
    fn remove(&mut self, key: ChunkKey) -> bool {
        let protected = self.protected.pop(&key);
        self.protected_nbytes -= protected.as_ref().map_or(0, Entry::nbytes);
        let Some(entry) = protected.or_else(|| self.probation.pop(&key)) else { return false };
        self.uncount(key, entry.nbytes());
        match entry.held {
            Held::Whole(chunk) => self.spare_memory(chunk),
            Held::Blocks(held) => {
                held.by_number.into_values().for_each(|block| self.spare_memory(block.decoded));
            }
        }
        entry.prefetched
    }

    /// Use memory again, unless a read is still copying from it.
    fn spare_memory(&mut self, decoded: Decoded) {
        let Some(memory) = Arc::into_inner(decoded) else { return };
        let spared: usize = self.spares.iter().map(Vec::capacity).sum();
        let room = self.stats.budget_nbytes / SPARE_FRACTION;
        if self.spares.len() < MOST_SPARES && spared + memory.capacity() <= room {
            self.spares.push(memory);
        }
    }

    /// An entry of `nbytes` is no more.
    fn uncount(&mut self, key: ChunkKey, nbytes: usize) {
        self.stats.held_nbytes -= nbytes;
        if let Some(count) = self.counts.get_mut(&key.0) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&key.0);
            }
        }
    }

    /// Drop every chunk of dataset number `dataset`.
    pub fn forget(&mut self, dataset: u64) {
        if !self.counts.contains_key(&dataset) {
            return;
        }
        let all = self.probation.iter().chain(self.protected.iter());
        let keys: Vec<ChunkKey> = all.map(|(key, _)| *key).filter(|key| key.0 == dataset).collect();
        for key in keys {
            self.remove(key);
        }
    }

    /// What it holds and has done.
    pub fn stats(&self) -> CacheStats {
        self.stats
    }
}

#[cfg(test)]
mod tests;
