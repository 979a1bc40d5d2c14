//! How are a local file's bytes read, and how many files can be open at once?

use std::fs::File;
use std::io;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Arc, RwLock};

use super::descriptors::{self, Slot};
use super::map::Map;
use crate::{ReadError, Storage};

/// A local file, read with `pread` through a descriptor of its own: no file position
/// is shared, and a file that shrinks meanwhile gives an error, never a signal.
#[derive(Debug)]
pub struct FileStorage {
    /// The descriptor of somebody else from which ours can be made again, and the device and
    /// inode that it must lead to; None where ours has to be kept.
    source: Option<(RawFd, (u64, u64))>,
    slot: Arc<Slot>,
    map: RwLock<Option<Arc<Map>>>,
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
        let identity = identity_of(file)?;
        let source = file.as_raw_fd();
        match reopen(source, identity) {
            Ok(own) => {
                let slot = Slot::new(own);
                let storage = Self::with(slot, Some((source, identity)));
                descriptors::register(&storage.slot);
                Ok(Arc::new(storage))
            }
            Err(_) => Ok(Arc::new(Self::with(Slot::new(file.try_clone()?), None))),
        }
    }

    fn with(slot: Slot, source: Option<(RawFd, (u64, u64))>) -> Self {
        Self { source, slot: Arc::new(slot), map: RwLock::new(None) }
    }

    /// Whether this storage is made from that descriptor, or keeps one of its own anyway.
    pub fn is_of(&self, descriptor: RawFd) -> bool {
        self.source.is_none_or(|(source, _)| source == descriptor)
    }

    #[cfg(test)]
    pub(super) fn slot_for_tests(&self) -> &Slot {
        &self.slot
    }

    fn file(&self) -> io::Result<Arc<File>> {
        if let Some(file) = self.slot.get() {
            return Ok(file);
        }
        let (source, identity) =
            self.source.ok_or_else(|| io::Error::other("its descriptor was lost"))?;
        let file = Arc::new(reopen(source, identity)?);
        self.slot.put(&file);
        Ok(file)
    }
}

/// Device and inode.
fn identity_of(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Open the file behind a descriptor anew.
fn reopen(source: RawFd, identity: (u64, u64)) -> io::Result<File> {
    let file = File::open(format!("/proc/self/fd/{source}"))?;
    // The descriptor's number may be another file's by now.
    if identity_of(&file)? != identity {
        return Err(io::Error::other("the file was closed by the library that opened it"));
    }
    Ok(file)
}

impl Storage for FileStorage {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let len = out.len() as u64;
        let read = self.file().and_then(|file| file.read_exact_at(out, address));
        read.map_err(|error| {
            // A negative offset, which is how the system sees 2^63 and more, is beyond
            // the end as well.
            let beyond = error.kind() == ErrorKind::InvalidInput && address > i64::MAX as u64;
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

    fn map(&self) -> Option<Arc<Map>> {
        if let Ok(map) = self.map.try_read()
            && let Some(map) = map.as_ref().filter(|map| map.is_intact())
        {
            return Some(Arc::clone(map));
        }
        // While another thread is at it, this one reads.
        let mut place = self.map.try_write().ok()?;
        place.take();
        *place = Some(Arc::new(Map::new(&*self.file().ok()?)?));
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
