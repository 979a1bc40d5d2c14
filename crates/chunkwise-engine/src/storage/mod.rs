//! Where do stored bytes come from?

mod descriptors;
mod external;
mod file;
mod growing;
mod map;
mod memory;
mod throttled;

use std::sync::Arc;

pub use descriptors::distrust_descriptors;
pub use external::{ExternalRun, ExternalStorage};
pub use file::FileStorage;
pub use growing::GrowingStorage;
pub use map::Map;
pub use memory::MemoryStorage;
pub use throttled::ThrottledStorage;

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

    /// As [`read_at`](Self::read_at), but only if that takes no waiting for a device or a
    /// network; false means that it would, or failed, and `out` is unspecified.
    fn read_at_once(&self, address: u64, out: &mut [u8]) -> bool {
        self.read_at(address, out).is_ok()
    }

    /// Whether the bytes are still those that were there when it was opened, as far as the system
    /// tells; what cannot change is unchanged.
    fn is_unchanged(&self) -> bool {
        true
    }

    /// The bytes as memory; None where they cannot be had so.
    fn map(&self) -> Option<Arc<Map>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

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
        // At once or not at all, and never something else.
        out.fill(0);
        if storage.read_at_once(5, &mut out) {
            assert_eq!(out, &bytes[5..9]);
        }
        assert!(!storage.read_at_once(address, &mut out));
        assert!(!storage.read_at_once(u64::MAX - 1, &mut out));
        if let Some(map) = storage.map() {
            assert_eq!(map.bytes(), bytes);
        }
    }

    #[test]
    fn external_data_ends_in_zeros_where_its_files_end() {
        let run =
            |len, offset| ExternalRun { len, file: Arc::new(MemoryStorage(vec![7; 4])), offset };
        let storage = ExternalStorage(vec![run(3, 2), run(2, 9), run(u64::MAX, 3)]);
        let mut out = [1; 8];
        storage.read_at(1, &mut out).unwrap();
        assert_eq!(out, [7, 0, 0, 0, 7, 0, 0, 0]);
    }

    #[test]
    fn all_storages_behave_alike() {
        let bytes: Vec<u8> = (0..100).collect();
        behaves(&MemoryStorage(bytes.clone()), &bytes);
        let path = std::env::temp_dir().join(format!("chunkwise-storage-{}", std::process::id()));
        std::fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        behaves(&FileStorage::new(file.try_clone().unwrap().into()), &bytes);
        behaves(&*FileStorage::reopening(&file).unwrap(), &bytes);
        behaves(&GrowingStorage(FileStorage::reopening(&file).unwrap()), &bytes);
        let slow = ThrottledStorage::new(
            Arc::new(MemoryStorage(bytes.clone())),
            Duration::from_micros(1),
            None,
        );
        behaves(&slow, &bytes);
        let run =
            |len, offset| ExternalRun { len, file: Arc::new(MemoryStorage(bytes.clone())), offset };
        behaves(&ExternalStorage(vec![run(5, 0), run(0, 9), run(95, 5)]), &bytes);
    }
}
