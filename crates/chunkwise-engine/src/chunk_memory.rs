//! Where does the memory of chunks come from that are kept after a read?
//!
//! Out of slabs: large pieces of fresh memory, in huge pages where the system has them, each cut into
//! places of one size.  The system takes as long to give 4 KiB at a time as a third of decoding
//! takes, and a fifth of that for huge pages.  Places that nobody uses are kept for the next chunks,
//! up to a limit; beyond it their memory goes back to the system.  Small chunks, and those that find
//! no room here, have memory of their own.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chunkwise_codec::resize;
use memmap2::{MmapMut, MmapRaw};

use crate::ReadError;
use crate::platform::{advise_huge_pages, discard_pages};

/// Sizes of places are multiples of this.
const PAGE: usize = 4 << 10;
const HUGE_PAGE: usize = 2 << 20;
/// Smaller chunks have memory of their own.
const LEAST_NBYTES: usize = 32 << 10;
/// A slab is as large as all others of its size together, within these bounds.
const SLAB_NBYTES: (usize, usize) = (2 * HUGE_PAGE, 8 * HUGE_PAGE);

/// Memory of one chunk, or of some of its blocks.
pub enum ChunkMemory {
    /// Its own.
    Alone(Vec<u8>),
    /// A place in a slab.
    Place(Place),
}

/// A part of a slab, which nobody else has.
pub struct Place {
    start: NonNull<u8>,
    /// Bytes in use, of `size`.
    len: usize,
    size: usize,
    /// Its slab, and which place it is there.
    slab: usize,
    number: usize,
    slabs: Arc<Slabs>,
}

// SAFETY: a place owns its bytes as a vector does: `Slabs` gives each to one owner at a time.
unsafe impl Send for Place {}
// SAFETY: as above; shared, its bytes are only read.
unsafe impl Sync for Place {}

impl ChunkMemory {
    /// The bytes that it takes, in use or not.
    pub fn capacity(&self) -> usize {
        match self {
            Self::Alone(bytes) => bytes.capacity(),
            Self::Place(place) => place.size,
        }
    }
}

impl Deref for ChunkMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Alone(bytes) => bytes,
            // SAFETY: these bytes are initialised (zeros at first), belong to this place alone, and
            // are mapped until it is given back.
            Self::Place(place) => unsafe {
                std::slice::from_raw_parts(place.start.as_ptr(), place.len)
            },
        }
    }
}

impl DerefMut for ChunkMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Alone(bytes) => bytes,
            // SAFETY: as above, and the place is borrowed exclusively.
            Self::Place(place) => unsafe {
                std::slice::from_raw_parts_mut(place.start.as_ptr(), place.len)
            },
        }
    }
}

impl From<Vec<u8>> for ChunkMemory {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Alone(bytes)
    }
}

impl fmt::Debug for ChunkMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkMemory({} of {} bytes)", self.len(), self.capacity())
    }
}

impl PartialEq for ChunkMemory {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.slabs.locked().give(self.slab, self.number);
    }
}

/// The slabs of a process.
pub struct Slabs(Mutex<Table>);

struct Table {
    /// By the number of their creation.
    slabs: BTreeMap<usize, Slab>,
    created: usize,
    /// The most bytes that are kept though nobody uses them.
    most_idle_nbytes: usize,
    idle_nbytes: usize,
}

struct Slab {
    map: MmapRaw,
    /// Where its places begin.
    begin: usize,
    /// Bytes of a place.
    size: usize,
    /// How many are in use.
    used: usize,
    /// The others: those with memory, and those whose memory went back to the system.
    idle: Vec<usize>,
    empty: Vec<usize>,
}

impl Slabs {
    /// None, of which at most so many bytes are kept though nobody uses them.
    pub fn new(most_idle_nbytes: usize) -> Arc<Self> {
        let slabs = BTreeMap::new();
        Arc::new(Self(Mutex::new(Table { slabs, created: 0, most_idle_nbytes, idle_nbytes: 0 })))
    }

    fn locked(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory for a chunk of `nbytes`, with anything in it.
    ///
    /// # Errors
    /// When there is none.
    pub fn take(self: &Arc<Self>, nbytes: usize) -> Result<ChunkMemory, ReadError> {
        let place = if nbytes < LEAST_NBYTES { None } else { self.place(nbytes) };
        if let Some(place) = place {
            return Ok(ChunkMemory::Place(place));
        }
        let mut bytes = Vec::new();
        resize(&mut bytes, nbytes)?;
        Ok(ChunkMemory::Alone(bytes))
    }

    /// As [`take`](Self::take), for parts of chunks, whose sizes are many: of a few sizes only.
    ///
    /// # Errors
    /// When there is none.
    pub fn take_about(self: &Arc<Self>, nbytes: usize) -> Result<ChunkMemory, ReadError> {
        let step = (nbytes.checked_next_power_of_two().unwrap_or(0) / 16).max(1);
        let mut memory = self.take(nbytes.checked_next_multiple_of(step).unwrap_or(nbytes))?;
        match &mut memory {
            ChunkMemory::Alone(bytes) => bytes.truncate(nbytes),
            ChunkMemory::Place(place) => place.len = nbytes,
        }
        Ok(memory)
    }

    fn place(self: &Arc<Self>, nbytes: usize) -> Option<Place> {
        let size = nbytes.checked_next_multiple_of(PAGE)?;
        let (slab, number, start) = self.locked().take(size)?;
        Some(Place { start, len: nbytes, size, slab, number, slabs: Arc::clone(self) })
    }

    /// Keep no more than so many bytes that nobody uses from now on.
    pub fn limit(&self, most_idle_nbytes: usize) {
        let mut table = self.locked();
        table.most_idle_nbytes = most_idle_nbytes;
        table.shrink(most_idle_nbytes);
    }

    /// Keep nothing now that nobody uses.
    pub fn give_back(&self) {
        self.locked().shrink(0);
    }
}

impl Table {
    /// A place of that size: its slab, its number there, and where it begins.  None where there is
    /// no room for a slab.
    fn take(&mut self, size: usize) -> Option<(usize, usize, NonNull<u8>)> {
        let mut of_size = self.slabs.iter_mut().filter(|(_, slab)| slab.size == size);
        // The oldest that has one: so the last ones become empty.
        let number = match of_size.find(|(_, slab)| !slab.idle.is_empty()) {
            Some((&number, _)) => number,
            None => {
                let mut of_size = self.slabs.iter().filter(|(_, slab)| slab.size == size);
                match of_size.find(|(_, slab)| !slab.empty.is_empty()) {
                    Some((&number, _)) => number,
                    None => self.create(size)?,
                }
            }
        };
        let slab = self.slabs.get_mut(&number)?;
        let place = match slab.idle.pop() {
            Some(place) => {
                self.idle_nbytes -= size;
                place
            }
            None => slab.empty.pop()?,
        };
        slab.used += 1;
        Some((number, place, NonNull::new(slab.start(place))?))
    }

    /// Add a slab, all of it idle.
    fn create(&mut self, size: usize) -> Option<usize> {
        let of_size = self.slabs.values().filter(|slab| slab.size == size);
        let nbytes: usize = of_size.map(Slab::nbytes).sum();
        let room = self.most_idle_nbytes.saturating_sub(self.idle_nbytes).saturating_add(size);
        let count = (nbytes.clamp(SLAB_NBYTES.0, SLAB_NBYTES.1).min(room) / size).max(1);
        if count == 1 && size < HUGE_PAGE / 2 {
            return None;
        }
        let nbytes = count * size;
        let mut map = MmapMut::map_anon(nbytes.checked_add(HUGE_PAGE)?).ok()?;
        let begin = map.as_ptr().align_offset(HUGE_PAGE).min(HUGE_PAGE);
        // What is no whole huge page would take memory for more than the slab.
        advise_huge_pages(&mut map[begin..][..nbytes / HUGE_PAGE * HUGE_PAGE]);
        let idle = (0..count).rev().collect();
        let slab = Slab { map: map.into(), begin, size, used: 0, idle, empty: Vec::new() };
        self.idle_nbytes += nbytes;
        self.created += 1;
        self.slabs.insert(self.created, slab);
        Some(self.created)
    }

    /// A place is used no more.
    fn give(&mut self, number: usize, place: usize) {
        let Some(slab) = self.slabs.get_mut(&number) else { return };
        slab.used -= 1;
        slab.idle.push(place);
        self.idle_nbytes += slab.size;
        if self.idle_nbytes > self.most_idle_nbytes {
            self.idle_nbytes -= slab.shrink();
            if slab.used == 0 {
                self.slabs.remove(&number);
            }
        }
    }

    /// Let the system have what nobody uses, until no more than `most_nbytes` are left.
    fn shrink(&mut self, most_nbytes: usize) {
        for slab in self.slabs.values_mut() {
            if self.idle_nbytes <= most_nbytes {
                break;
            }
            self.idle_nbytes -= slab.shrink();
        }
        self.slabs.retain(|_, slab| slab.used > 0 || !slab.idle.is_empty());
    }
}

impl Slab {
    fn nbytes(&self) -> usize {
        (self.used + self.idle.len() + self.empty.len()) * self.size
    }

    /// Where a place begins.
    fn start(&self, place: usize) -> *mut u8 {
        // SAFETY: the map reaches to the end of the last place.
        unsafe { self.map.as_mut_ptr().add(self.begin + place * self.size) }
    }

    /// Let the system have the memory of all places that nobody uses, which is all of the slab where
    /// none is used; gives how much that is.
    fn shrink(&mut self) -> usize {
        let idle = std::mem::take(&mut self.idle);
        if self.used > 0 {
            for &place in &idle {
                // SAFETY: a place of the slab, which nobody uses.
                discard_pages(unsafe {
                    std::slice::from_raw_parts_mut(self.start(place), self.size)
                });
            }
        }
        let nbytes = idle.len() * self.size;
        self.empty.extend(idle);
        nbytes
    }
}

#[cfg(test)]
mod tests;
