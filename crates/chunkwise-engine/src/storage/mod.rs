//! Where do stored bytes come from?

mod descriptors;
mod external;
mod file;
mod growing;
mod joining;
mod memory;
mod throttled;

use std::sync::Arc;

pub use descriptors::distrust_descriptors;
pub use external::{ExternalRun, ExternalStorage};
pub use file::FileStorage;
pub use growing::GrowingStorage;
pub use joining::StorageCost;
pub(crate) use joining::joined;
pub use memory::MemoryStorage;
pub use throttled::ThrottledStorage;

use crate::ReadError;
use crate::platform::Map;

/// Bytes by address.  Any number of threads may read at the same time.
pub trait Storage: Send + Sync {
    /// Fill `out` with the bytes from `address` on.
    ///
    /// # Errors
    /// [`ReadError::Truncated`] when the storage ends before, [`ReadError::Io`] for the
    /// system's errors.
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError>;

    /// Fill each destination with the bytes from its address on: by as many requests at a time as
    /// the storage takes.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at), for one of those that failed; all destinations are then
    /// unspecified.
    fn read_ranges(&self, ranges: &mut [(u64, &mut [u8])]) -> Result<(), ReadError> {
        ranges.iter_mut().try_for_each(|(address, out)| self.read_at(*address, out))
    }

    /// As [`read_at`](Self::read_at), of the file's own structures: what lies around them is wanted
    /// soon, and may be read and kept with them.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    fn read_metadata(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.read_at(address, out)
    }

    /// Structures at these addresses, of this many bytes, are about to be read by
    /// [`read_metadata`](Self::read_metadata), one after the other.  What is wrong is reported then.
    fn expect_metadata(&self, _ranges: &[(u64, u64)]) {}

    /// What a request costs, from which follows what is read together, and how far ahead.
    fn cost(&self) -> StorageCost {
        StorageCost::LOCAL
    }

    /// End the requests that are under way, with an error: nobody waits for them any more.
    fn interrupt(&self) {}

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
        let (mut one, mut other) = ([0; 5], [0; 2]);
        storage.read_ranges(&mut [(90, &mut one), (4, &mut other)]).unwrap();
        assert_eq!((&one[..], &other[..]), (&bytes[90..95], &bytes[4..6]));
        assert!(
            storage
                .read_ranges(&mut [(4, &mut one), (98, &mut other[..]), (99, &mut out)])
                .is_err()
        );
        storage.read_metadata(3, &mut out).unwrap();
        assert_eq!(out, &bytes[3..7]);
        let (end, most) = (bytes.len() as u64, i64::MAX as u64);
        for address in [end - 2, end, end + 1, most - 4, most - 3, most, most + 1, u64::MAX - 1] {
            let past = storage.read_at(address, &mut out).unwrap_err();
            assert_eq!(past, ReadError::Truncated { address, len: 4, end });
            assert!(!storage.read_at_once(address, &mut out));
        }
        // At once or not at all, and never something else.
        out.fill(0);
        if storage.read_at_once(5, &mut out) {
            assert_eq!(out, &bytes[5..9]);
        }
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
        behaves(&FileStorage::new(file.try_clone().unwrap()), &bytes);
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
