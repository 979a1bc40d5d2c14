//! Bytes in a file of their own, which is gone with the storage.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use chunkwise_engine::{FileStorage, Storage};

/// A file with these bytes that no name leads to.
pub fn file_of(bytes: &[u8]) -> File {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    let name = format!("chunkwise-stored-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// The same as a storage, of which there is a memory map.
pub fn stored_in(file: &File) -> Arc<dyn Storage> {
    Arc::new(FileStorage::new(file.try_clone().unwrap()))
}
