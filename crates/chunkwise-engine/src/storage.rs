//! Where do stored bytes come from?

use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use crate::ReadError;

/// Bytes by address.  Any number of threads may read at the same time.
pub trait Storage: Send + Sync {
    /// Fill `out` with the bytes from `address` on.
    ///
    /// # Errors
    /// [`ReadError::Truncated`] when the storage ends before, [`ReadError::Io`] for the
    /// system's errors.
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError>;

    /// One past the last byte, as it is now.
    fn end(&self) -> u64;
}

/// A local file, read with `pread` through a descriptor of its own: no file position
/// is shared, and a file that shrinks meanwhile gives an error, never a signal.
#[derive(Debug)]
pub struct FileStorage {
    file: File,
}

impl FileStorage {
    /// Reads through `descriptor`, which is closed on drop.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self { file: File::from(descriptor) }
    }
}

impl Storage for FileStorage {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let len = out.len() as u64;
        self.file.read_exact_at(out, address).map_err(|error| {
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
        self.file.metadata().map_or(0, |m| m.len())
    }
}

/// Bytes in memory, for tests.
#[derive(Debug, Default)]
pub struct MemoryStorage(pub Vec<u8>);

impl Storage for MemoryStorage {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let found = usize::try_from(address)
            .ok()
            .and_then(|begin| self.0.get(begin..begin.checked_add(out.len())?));
        match found {
            Some(bytes) => {
                out.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(ReadError::Truncated { address, len: out.len() as u64, end: self.end() }),
        }
    }

    fn end(&self) -> u64 {
        self.0.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every storage must do.
    fn behaves(storage: &dyn Storage, bytes: &[u8]) {
        let mut out = vec![0; 4];
        storage.read_at(3, &mut out).unwrap();
        assert_eq!(out, &bytes[3..7]);
        storage.read_at(bytes.len() as u64, &mut []).unwrap();
        let past = storage.read_at(bytes.len() as u64 - 2, &mut out).unwrap_err();
        let address = bytes.len() as u64 - 2;
        assert_eq!(past, ReadError::Truncated { address, len: 4, end: bytes.len() as u64 });
        assert!(storage.read_at(u64::MAX - 1, &mut out).is_err());
    }

    #[test]
    fn memory_and_file_behave_alike() {
        let bytes: Vec<u8> = (0..100).collect();
        behaves(&MemoryStorage(bytes.clone()), &bytes);
        let path = std::env::temp_dir().join(format!("chunkwise-storage-{}", std::process::id()));
        std::fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        behaves(&FileStorage::new(file.into()), &bytes);
    }
}
