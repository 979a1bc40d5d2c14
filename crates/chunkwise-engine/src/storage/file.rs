//! How are a local file's bytes read, and how many files can be open at once?

use std::fs::File;
use std::io;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

use super::descriptors::{self, Own, Slot};
use crate::platform::{
    Identity, Map, faults_are_handled, number_of, path_of, read_cached, read_exact_at,
    readable_copy, reopened,
};
use crate::{ReadError, Storage};

/// A local file, read with `pread` through a descriptor of its own: no file position
/// is shared, and a file that shrinks meanwhile gives an error, never a signal.
#[derive(Debug)]
pub struct FileStorage {
    /// From what the descriptor can be made again; None where it has to be kept.
    origin: Option<FileOrigin>,
    slot: Arc<Slot>,
    map: RwLock<Option<Arc<Map>>>,
}

/// Where to find a file again, and how to know that it is the same.
#[derive(Debug)]
struct FileOrigin {
    /// The number of a descriptor of somebody else, who may have closed it by now.
    number: AtomicIsize,
    /// The path behind it.
    path: PathBuf,
    identity: Identity,
}

impl FileOrigin {
    /// What there is to know of a file that is open.
    fn of(file: &File) -> io::Result<Self> {
        let (number, identity) = (AtomicIsize::new(number_of(file)), Identity::of(file)?);
        Ok(Self { number, path: path_of(file)?, identity })
    }

    /// Open the file anew.
    fn reopen(&self) -> io::Result<File> {
        if let Some(file) = reopened(self.number.load(Relaxed), self.identity.key) {
            return Ok(file);
        }
        // A path leads anywhere: what is there must be that file, as it was.
        let file = File::open(&self.path)?;
        if self.identity.is_unchanged(&Identity::of(&file)?) {
            return Ok(file);
        }
        Err(io::Error::other("the file was changed or replaced after it was opened"))
    }
}

impl FileStorage {
    /// Reads through `file`, which is closed on drop.
    pub fn new(file: File) -> Self {
        Self::with(Slot::new(file), None)
    }

    /// Reads the file that `file` is, through a descriptor of its own that is closed when too
    /// many are in use, and opened again when it is needed.
    ///
    /// libhdf5 locks files with `flock`, and a lock belongs to what `dup` shares: a mere
    /// duplicate would keep the file locked after libhdf5 has closed it.  Opening it anew
    /// through the kernel's name for the descriptor leads to the very same file, even one
    /// that was renamed or removed, and shares nothing.  Where there is no such name, a
    /// duplicate it is.
    ///
    /// # Errors
    /// When neither can be had.
    pub fn reopening(file: &File) -> io::Result<Arc<Self>> {
        let opened = FileOrigin::of(file).and_then(|origin| Ok((origin.reopen()?, origin)));
        match opened {
            Ok((own, origin)) => {
                let storage = Self::with(Slot::new(own), Some(origin));
                descriptors::register(&storage.slot);
                Ok(Arc::new(storage))
            }
            Err(_) => Ok(Arc::new(Self::with(Slot::new(readable_copy(file)?), None))),
        }
    }

    fn with(slot: Slot, origin: Option<FileOrigin>) -> Self {
        Self { origin, slot: Arc::new(slot), map: RwLock::new(None) }
    }

    /// Whether `file` is this storage's file, unchanged; if so, it is what a descriptor is
    /// made from next.
    pub fn is_of(&self, file: &File) -> bool {
        let Some(origin) = &self.origin else { return true };
        let same = Identity::of(file).is_ok_and(|identity| identity == origin.identity);
        if same {
            origin.number.store(number_of(file), Relaxed);
        }
        same
    }

    #[cfg(test)]
    pub(super) fn slot_for_tests(&self) -> &Slot {
        &self.slot
    }

    fn file(&self) -> io::Result<Arc<Own>> {
        if let Some(file) = self.slot.get() {
            return Ok(file);
        }
        let origin = self.origin.as_ref();
        let origin = origin.ok_or_else(|| io::Error::other("its descriptor was lost"))?;
        let file = Arc::new(Own::new(origin.reopen()?));
        self.slot.put(&file);
        Ok(file)
    }
}

impl Storage for FileStorage {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let len = out.len() as u64;
        let read = self.file().and_then(|file| read_exact_at(&file, out, address));
        read.map_err(|error| {
            // What reaches 2^63, as far as the system counts, is beyond the end as well.
            let last = address.saturating_add(len);
            let beyond = error.kind() == ErrorKind::InvalidInput && last > i64::MAX as u64;
            if error.kind() == ErrorKind::UnexpectedEof || beyond {
                return ReadError::Truncated { address, len, end: self.end() };
            }
            ReadError::Io { address, len, message: error.to_string() }
        })
    }

    fn end(&self) -> u64 {
        self.file().and_then(|file| file.metadata()).map_or(0, |m| m.len())
    }

    fn read_at_once(&self, address: u64, out: &mut [u8]) -> bool {
        self.file().is_ok_and(|file| read_cached(&file, address, out))
    }

    fn is_unchanged(&self) -> bool {
        let Some(origin) = &self.origin else { return true };
        Identity::at(&origin.path).is_ok_and(|found| origin.identity.is_unchanged(&found))
    }

    fn map(&self) -> Option<Arc<Map>> {
        if !faults_are_handled() {
            return None;
        }
        if let Ok(map) = self.map.try_read()
            && let Some(map) = map.as_ref().filter(|map| map.is_intact())
        {
            return Some(Arc::clone(map));
        }
        // While another thread is at it, this one reads.
        let mut place = self.map.try_write().ok()?;
        place.take();
        let file = self.file().ok()?;
        *place = Some(Arc::new(Map::new(&file)?));
        place.clone()
    }
}
