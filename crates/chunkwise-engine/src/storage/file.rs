//! How are a local file's bytes read, and how many files can be open at once?

use std::fs::{File, Metadata};
use std::io;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

use super::descriptors::{self, Own, Slot};
use super::map::{Map, faults_are_handled};
use crate::{ReadError, Storage};

/// A local file, read with `pread` through a descriptor of its own: no file position
/// is shared, and a file that shrinks meanwhile gives an error, never a signal.
#[derive(Debug)]
pub struct FileStorage {
    /// From what the descriptor can be made again; None where it has to be kept.
    source: Option<Source>,
    slot: Arc<Slot>,
    map: RwLock<Option<Arc<Map>>>,
}

/// Where to find a file again, and how to know that it is the same.
#[derive(Debug)]
struct Source {
    /// A descriptor of somebody else, who may have closed it by now.
    descriptor: AtomicI32,
    /// The path behind it.
    path: PathBuf,
    identity: Identity,
}

/// Which file it is, and whether it was changed.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    len: u64,
    /// Seconds and nanoseconds, as programs may set them.
    modified: (i64, i64),
    /// The same, of any change to the file, as the system keeps it.
    changed: (i64, i64),
    /// Permissions, owner, group and links: changing one of them is a change as well.
    manner: (u32, u32, u32, u64),
}

impl Identity {
    fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|metadata| Self::from(&metadata))
    }

    fn from(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            manner: (metadata.mode(), metadata.uid(), metadata.gid(), metadata.nlink()),
        }
    }

    /// Whether it is that file with the same bytes.  Where the time of change alone differs, a
    /// program has written to it and set the other time back.
    fn is_unchanged(&self, other: &Self) -> bool {
        self.is_same_file(other)
            && (self.len, self.modified) == (other.len, other.modified)
            && (self.changed == other.changed || self.manner != other.manner)
    }

    fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl Source {
    /// What there is to know of a file that is open.
    fn of(file: &File) -> io::Result<Self> {
        let (descriptor, identity) = (AtomicI32::new(file.as_raw_fd()), Identity::of(file)?);
        let path = std::fs::read_link(name_of(file.as_raw_fd()))?;
        Ok(Self { descriptor, path, identity })
    }

    /// Open the file anew.
    fn reopen(&self) -> io::Result<File> {
        // The descriptor's number may be another file's by now, or a pipe's, which is not to
        // be opened; so it is looked at first.
        let theirs = name_of(self.descriptor.load(Relaxed));
        if std::fs::metadata(&theirs).is_ok_and(|m| self.identity.is_same_file(&Identity::from(&m)))
            && let Ok(file) = File::open(&theirs)
            && self.identity.is_same_file(&Identity::of(&file)?)
        {
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

/// The kernel's name for what a descriptor of this process has open.
fn name_of(descriptor: RawFd) -> String {
    format!("/proc/self/fd/{descriptor}")
}

impl FileStorage {
    /// Reads through `descriptor`, which is closed on drop.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self::with(Slot::new(File::from(descriptor)), None)
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
        let opened = Source::of(file).and_then(|source| Ok((source.reopen()?, source)));
        match opened {
            Ok((own, source)) => {
                let storage = Self::with(Slot::new(own), Some(source));
                descriptors::register(&storage.slot);
                Ok(Arc::new(storage))
            }
            Err(_) => Ok(Arc::new(Self::with(Slot::new(file.try_clone()?), None))),
        }
    }

    fn with(slot: Slot, source: Option<Source>) -> Self {
        Self { source, slot: Arc::new(slot), map: RwLock::new(None) }
    }

    /// Whether `file` is this storage's file, unchanged; if so, it is what a descriptor is
    /// made from next.
    pub fn is_of(&self, file: &File) -> bool {
        let Some(source) = &self.source else { return true };
        let same = Identity::of(file).is_ok_and(|identity| identity == source.identity);
        if same {
            source.descriptor.store(file.as_raw_fd(), Relaxed);
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
        let source = self.source.as_ref();
        let source = source.ok_or_else(|| io::Error::other("its descriptor was lost"))?;
        let file = Arc::new(Own::new(source.reopen()?));
        self.slot.put(&file);
        Ok(file)
    }
}

impl Storage for FileStorage {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let len = out.len() as u64;
        let read = self.file().and_then(|file| file.read_exact_at(out, address));
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
        let (Ok(file), Ok(offset)) = (self.file(), i64::try_from(address)) else { return false };
        read_cached(&file, offset, out)
    }

    fn is_unchanged(&self) -> bool {
        let Some(source) = &self.source else { return true };
        let found = std::fs::metadata(&source.path);
        found.is_ok_and(|metadata| source.identity.is_unchanged(&Identity::from(&metadata)))
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

/// Fill `out` from the page cache; false if not all of it is there.
#[cfg(target_os = "linux")]
fn read_cached(file: &File, offset: i64, out: &mut [u8]) -> bool {
    let part = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
    // SAFETY: one part, which is `out`, exclusively borrowed; the descriptor is open.
    let read = unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, offset, libc::RWF_NOWAIT) };
    usize::try_from(read) == Ok(out.len())
}

#[cfg(not(target_os = "linux"))]
fn read_cached(_: &File, _: i64, _: &mut [u8]) -> bool {
    false
}
