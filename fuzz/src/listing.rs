//! Is any file listed or refused, and in the same way from afar, at the cost of the file?
//!
//! The input is that of `format`.  Checksums are as they are.

use std::sync::Arc;

use chunkwise_engine::{MemoryStorage, ReadError, Storage, StorageCost};
use chunkwise_metadata::{Metadata, Visit};

use crate::format::HEAD_LEN;
use crate::memory::small;

pub(crate) fn check(input: &[u8]) {
    // An input that ends early says nothing.
    let Some((_, file)) = input.split_first_chunk::<HEAD_LEN>() else { return };
    small(file.len(), || {
        let here = listed(Arc::new(MemoryStorage(file.to_vec())));
        let far = listed(Arc::new(Far(MemoryStorage(file.to_vec()))));
        assert_eq!(here, far, "from afar, something else is listed");
    });
}

/// Paths and depths of a listing, and names of a visit.
type Listed = (Option<Vec<(String, usize)>>, Vec<Vec<u8>>);

fn listed(storage: Arc<dyn Storage>) -> Option<Listed> {
    let metadata = Arc::new(Metadata::of_storage(storage)?);
    let _ = metadata.account();
    let found = metadata.listing();
    let paths = found.map(|all| all.into_iter().map(|one| (one.path, one.depth)).collect());
    let mut names = Vec::new();
    let root = metadata.root();
    for deep in [false, true] {
        let Some(mut visit) = Visit::new(Arc::clone(&metadata), root, deep) else { continue };
        while let Some(more) = visit.next(7) {
            if more.is_empty() {
                break;
            }
            names.extend(more.into_iter().map(|(name, _)| name));
        }
    }
    Some((paths, names))
}

/// Bytes that are far away.
struct Far(MemoryStorage);

impl Storage for Far {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.0.read_at(address, out)
    }

    fn end(&self) -> u64 {
        self.0.end()
    }

    fn cost(&self) -> StorageCost {
        StorageCost { latency_ns: 50_000_000, ..StorageCost::LOCAL }
    }
}
