//! How does a later run use the chunks that a killed one has encoded?
//!
//! `H5Dwrite_chunk` hands a chunk's bytes to the system at once: they are in the half-written
//! file even when the process is killed, though nothing in that file leads to them.  So the
//! journal holds no bytes: it says where in that file each chunk's bytes lie, and what their
//! checksum is.  libhdf5 tells addresses by listing all chunks, which is asked for only every
//! few seconds.  The next run reads those bytes as they are, without libhdf5, and what is not
//! what the journal says is made again.

mod format;

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chunkwise_codec::resize;
use chunkwise_engine::platform::read_exact_at;
use chunkwise_engine::{ChunkRecord, CommitError, EncodedChunk};
use chunkwise_select::{ChunkGrid, Dims};

use crate::CopyError;
use crate::checksum::checksum;
use format::{Entry, MAGIC, put_frame, take_frame};

/// Chunks are noted after this time...
const INTERVAL: Duration = Duration::from_secs(3);
/// ... and not before this many times as long as listing them has taken.
const PATIENCE: u32 = 30;

/// Chunks of one dataset, by where they begin.
type Entries = HashMap<Dims, Entry>;

/// The journal of one run, and what the run before it left.
#[derive(Debug)]
pub struct Journal {
    file: Mutex<File>,
    old: Option<(File, HashMap<String, Entries>)>,
}

impl Journal {
    /// Begin a journal in an empty file.  `identity` says of which work: the source and what is
    /// made of it.
    ///
    /// `resume_from` are the journal and the half-written file of a run before, which are read
    /// and left as they are; where they are of other work, nothing is resumed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(
        mut file: File,
        identity: &[u8],
        resume_from: Option<(File, File)>,
    ) -> Result<Self, CopyError> {
        let old = resume_from.and_then(|(mut journal, half)| {
            let mut bytes = Vec::new();
            journal.read_to_end(&mut bytes).ok()?;
            Some((half, entries_of(&bytes, identity)?))
        });
        let mut head = MAGIC.to_vec();
        put_frame(&mut head, identity);
        file.write_all(&head).map_err(|error| failed(&error))?;
        Ok(Self { file: Mutex::new(file), old })
    }

    /// Chunks that the run before has noted.
    pub fn noted_chunks(&self) -> usize {
        self.old.as_ref().map_or(0, |(_, old)| old.values().map(HashMap::len).sum())
    }

    fn append(&self, bytes: &[u8]) -> Result<(), CopyError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(bytes).map_err(|error| failed(&error))
    }
}

fn failed(error: &std::io::Error) -> CopyError {
    CopyError::Journal { message: error.to_string() }
}

/// What a journal of that identity holds, by dataset.
fn entries_of(bytes: &[u8], identity: &[u8]) -> Option<HashMap<String, Entries>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    if take_frame(&mut rest)? != identity {
        return None;
    }
    let mut found: HashMap<String, Entries> = HashMap::new();
    while let Some((label, entry)) = take_frame(&mut rest).and_then(Entry::take) {
        found.entry(label.to_string()).or_default().insert(entry.chunk_origin.clone(), entry);
    }
    Some(found)
}

struct State {
    /// Chunks that are written, but not noted; their addresses are not known.
    pending: Vec<Entry>,
    listed: Instant,
    interval: Duration,
}

/// Tells where chunks of the target lie that begin at these origins.
type Finder<'a> = dyn Fn(&[Dims]) -> Result<Vec<Option<ChunkRecord>>, String> + Sync + 'a;

/// The journal as one dataset's copying sees it.
pub struct Records<'a> {
    journal: &'a Journal,
    label: &'a str,
    find: &'a Finder<'a>,
    /// What the run before left, and is still there.
    replayable: Entries,
    /// Checksums of the stored bytes of chunks on their way.
    notes: Mutex<HashMap<Dims, u64>>,
    state: Mutex<State>,
    /// Whether what is made now may be used by a later run.
    sound: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Records<'a> {
    /// Of the dataset called `label`, whose chunks in the target `find` finds.
    pub fn new(
        journal: &'a Journal,
        label: &'a str,
        grid: &'a ChunkGrid,
        find: &'a Finder<'a>,
    ) -> Self {
        let mut buffer = Vec::new();
        let mut replayable = Entries::new();
        let old = journal.old.as_ref().and_then(|(half, old)| Some((half, old.get(label)?)));
        if let Some((half, entries)) = old {
            let fits = |entry: &&Entry| grid.linear_index_of_origin(&entry.chunk_origin).is_some();
            let sound =
                entries.values().filter(fits).filter(|entry| read(half, entry, &mut buffer));
            replayable = sound.map(|entry| (entry.chunk_origin.clone(), entry.clone())).collect();
        }
        let state = State { pending: Vec::new(), listed: Instant::now(), interval: INTERVAL };
        Self {
            journal,
            label,
            find,
            replayable,
            notes: Mutex::default(),
            state: Mutex::new(state),
            sound: AtomicBool::new(true),
        }
    }

    /// Whether a chunk need not be made.
    pub fn holds(&self, origin: &Dims) -> bool {
        self.replayable.contains_key(origin)
    }

    /// Fill in the chunk as the run before has made it, and say whether that was possible.
    pub fn replay(&self, origin: &Dims, chunk: &mut EncodedChunk) -> bool {
        let Some(entry) = self.replayable.get(origin) else { return false };
        let Some((half, _)) = self.journal.old.as_ref() else { return false };
        chunk.filter_mask = entry.filter_mask;
        read(half, entry, &mut chunk.bytes)
    }

    /// How many chunks need not be made.
    pub fn replayable_chunks(&self) -> usize {
        self.replayable.len()
    }

    /// Whether chunks made from now on are what the source holds.
    pub fn set_sound(&self, sound: bool) {
        self.sound.store(sound, Relaxed);
    }

    /// A chunk was made.
    pub fn note(&self, origin: &Dims, stored: u64) {
        locked(&self.notes).insert(origin.clone(), stored);
    }

    /// Chunks were written.
    pub fn committed(&self, chunks: &[EncodedChunk]) -> Result<(), CommitError> {
        let sound = self.sound.load(Relaxed);
        let mut state = locked(&self.state);
        let mut notes = locked(&self.notes);
        for chunk in chunks {
            let Some(stored) = notes.remove(&chunk.chunk_origin) else { continue };
            let entry = Entry {
                chunk_origin: chunk.chunk_origin.clone(),
                filter_mask: chunk.filter_mask,
                address: 0,
                stored_nbytes: chunk.bytes.len() as u64,
                stored,
            };
            if sound {
                state.pending.push(entry);
            }
        }
        drop(notes);
        if state.listed.elapsed() < state.interval {
            return Ok(());
        }
        self.write(&mut state).map_err(|error| CommitError {
            chunk_origin: chunks
                .first()
                .map(|chunk| chunk.chunk_origin.clone())
                .unwrap_or_default(),
            stored_nbytes: 0,
            message: error.to_string(),
        })
    }

    /// Note what is left.
    pub fn finish(&self) -> Result<(), CopyError> {
        self.write(&mut locked(&self.state))
    }

    fn write(&self, state: &mut State) -> Result<(), CopyError> {
        let begun = Instant::now();
        // Where libhdf5 does not tell, a later run makes the chunks again.
        let origins: Vec<Dims> =
            state.pending.iter().map(|entry| entry.chunk_origin.clone()).collect();
        let found = (self.find)(&origins).unwrap_or_default();
        let mut bytes = Vec::new();
        for (mut entry, record) in state.pending.drain(..).zip(found) {
            let Some(record) = record else { continue };
            if record.stored_nbytes == entry.stored_nbytes {
                entry.address = record.address;
                entry.put(self.label, &mut bytes);
            }
        }
        self.journal.append(&bytes)?;
        state.interval = INTERVAL.max(begun.elapsed() * PATIENCE);
        state.listed = Instant::now();
        Ok(())
    }
}

/// Read an entry's bytes; whether they are what it says.
fn read(half: &File, entry: &Entry, out: &mut Vec<u8>) -> bool {
    let Ok(nbytes) = usize::try_from(entry.stored_nbytes) else { return false };
    let last = entry.address.checked_add(entry.stored_nbytes);
    // Before there is room for what a damaged journal may claim.
    let end = half.metadata().map_or(0, |metadata| metadata.len());
    last.is_some_and(|last| last <= end)
        && resize(out, nbytes).is_ok()
        && read_exact_at(half, out, entry.address).is_ok()
        && checksum(out) == entry.stored
}
