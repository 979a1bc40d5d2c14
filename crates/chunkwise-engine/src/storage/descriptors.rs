//! Which of many open files keep a descriptor?
//!
//! A program may have thousands of files open; libhdf5 has a descriptor for each, and ours
//! come on top.  So there are at most [`most_descriptors`] of ours: beyond that, those go
//! that were not used since the last time some had to go, and are made again when needed.
//!
//! In a foreign program ([`distrust_descriptors`]) one may be closed behind our back, and its number
//! be another file's: there it is looked at before each use, and lies where programs seldom come.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};

use crate::platform::{FileKey, above_others, key_of, most_open_files};

/// The most descriptors kept where the system's limit allows.
const MOST: usize = 256;
/// No more than this fraction of the limit.
const FRACTION: usize = 8;

/// Where a storage keeps its descriptor while it has one.
///
/// Locks are only tried, never waited for: a forked child may find one locked for ever.
#[derive(Debug)]
pub struct Slot {
    file: RwLock<Option<Arc<Own>>>,
    used: AtomicBool,
}

static DISTRUSTED: AtomicBool = AtomicBool::new(false);

/// From now on, reckon with descriptors that are closed behind our back.
pub fn distrust_descriptors() {
    DISTRUSTED.store(true, Relaxed);
}

/// A descriptor of ours, and which file it is.
#[derive(Debug)]
pub struct Own {
    file: ManuallyDrop<File>,
    /// None where the system does not say.
    key: Option<FileKey>,
}

impl Own {
    pub fn new(file: File) -> Self {
        let file = if DISTRUSTED.load(Relaxed) { above_others(file) } else { file };
        let key = key_of(&file).ok();
        Self { file: ManuallyDrop::new(file), key }
    }

    /// Whether it is still that file's.
    fn is_intact(&self) -> bool {
        self.key.is_none() || key_of(&self.file).ok() == self.key
    }
}

impl Deref for Own {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // What is another's by now is not closed.
        if self.is_intact() {
            // SAFETY: dropped once, here, and not used any more.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

static KEPT: AtomicUsize = AtomicUsize::new(0);
static SLOTS: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());

fn most_descriptors() -> usize {
    static FOUND: OnceLock<usize> = OnceLock::new();
    *FOUND.get_or_init(|| (most_open_files() / FRACTION).clamp(1, MOST))
}

impl Slot {
    pub fn new(file: File) -> Self {
        KEPT.fetch_add(1, Relaxed);
        Self { file: RwLock::new(Some(Arc::new(Own::new(file)))), used: AtomicBool::new(true) }
    }

    /// The descriptor, if it is kept, and ours.
    pub fn get(&self) -> Option<Arc<Own>> {
        // Looked at first: a store would take the line from other threads' caches.
        if !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
        let file = self.file.try_read().ok()?.clone()?;
        if DISTRUSTED.load(Relaxed) && !file.is_intact() {
            self.clear();
            return None;
        }
        Some(file)
    }

    /// Keep a descriptor that was made again.
    pub fn put(&self, file: &Arc<Own>) {
        let Ok(mut place) = self.file.try_write() else { return };
        if place.replace(Arc::clone(file)).is_none() {
            KEPT.fetch_add(1, Relaxed);
        }
        drop(place);
        make_room();
    }

    /// Close the descriptor, or let the last reader close it.
    fn clear(&self) {
        if let Ok(mut place) = self.file.try_write()
            && place.take().is_some()
        {
            KEPT.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.file.get_mut().is_ok_and(|file| file.is_some()) {
            KEPT.fetch_sub(1, Relaxed);
        }
    }
}

/// A slot whose descriptor may be closed when too many are kept.
pub fn register(slot: &Arc<Slot>) {
    if let Ok(mut slots) = SLOTS.try_lock() {
        // Those of closed files go before the list grows.
        if slots.len() == slots.capacity() {
            slots.retain(|slot| slot.strong_count() > 0);
        }
        slots.push(Arc::downgrade(slot));
    }
    make_room();
}

/// Close descriptors that were not used lately, until a quarter of the room is free.
fn make_room() {
    let most = most_descriptors();
    if KEPT.load(Relaxed) <= most {
        return;
    }
    let Ok(slots) = SLOTS.try_lock() else { return };
    // Twice: the first time round those are spared that were used since the last time.
    for slot in slots.iter().chain(slots.iter()).filter_map(Weak::upgrade) {
        if KEPT.load(Relaxed) <= most - most / 4 {
            return;
        }
        if !slot.used.swap(false, Relaxed) {
            slot.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FileStorage;
    use super::*;
    use crate::Storage;

    #[test]
    fn thousands_of_files_share_a_few_descriptors() {
        let path = std::env::temp_dir().join(format!("chunkwise-fds-{}", std::process::id()));
        std::fs::write(&path, [7; 16]).unwrap();
        let theirs = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let storages: Vec<_> =
            (0..1000).map(|_| FileStorage::reopening(&theirs).unwrap()).collect();
        let mut out = [0; 4];
        for storage in storages.iter().chain(&storages) {
            storage.read_at(5, &mut out).unwrap();
            assert_eq!(out, [7; 4]);
            // Other tests have a few of their own.
            assert!(KEPT.load(Relaxed) <= MOST + 50);
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_number_that_is_another_file_s_is_left_alone() {
        use std::os::fd::{AsRawFd, FromRawFd};
        let path = std::env::temp_dir().join(format!("chunkwise-stolen-{}", std::process::id()));
        std::fs::write(&path, [7; 16]).unwrap();
        let own = Own::new(File::open(&path).unwrap());
        assert!(own.is_intact());
        let number = own.as_raw_fd();
        let other = File::open("/dev/zero").unwrap();
        // SAFETY: both are open; what `number` was is closed by this.
        assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), number) }, number);
        assert!(!own.is_intact());
        drop(own);
        // SAFETY: made above, and left open.
        let theirs = unsafe { File::from_raw_fd(number) };
        assert!(theirs.metadata().is_ok());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_was_rewritten_under_its_old_time_is_another() {
        let path = std::env::temp_dir().join(format!("chunkwise-old-{}", std::process::id()));
        std::fs::write(&path, [7; 16]).unwrap();
        let theirs = File::open(&path).unwrap();
        let storage = FileStorage::reopening(&theirs).unwrap();
        assert!(storage.is_of(&theirs));
        let modified = theirs.metadata().unwrap().modified().unwrap();
        // The system's clock for files goes in steps.
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(&path, [8; 16]).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        assert!(!storage.is_of(&theirs));
        drop(theirs);
        storage.slot_for_tests().clear();
        // Whatever takes the number now, it is not that file.
        let other = File::open("/dev/zero").unwrap();
        assert!(storage.read_at(0, &mut [0; 4]).is_err());
        std::fs::remove_file(&path).unwrap();
        drop(other);
    }

    #[test]
    fn a_file_is_found_again_unless_it_was_replaced() {
        let path = std::env::temp_dir().join(format!("chunkwise-gone-{}", std::process::id()));
        std::fs::write(&path, [7; 16]).unwrap();
        let theirs = File::open(&path).unwrap();
        let storage = FileStorage::reopening(&theirs).unwrap();
        drop(theirs);
        let mut out = [0; 4];
        // Whatever takes the number now, it is not that file.
        let other = File::open("/dev/zero").unwrap();
        storage.slot_for_tests().clear();
        storage.read_at(0, &mut out).unwrap();
        assert_eq!(out, [7; 4]);
        // A link to it is no change of it.
        let link = path.with_extension("link");
        std::fs::hard_link(&path, &link).unwrap();
        storage.slot_for_tests().clear();
        storage.read_at(0, &mut out).unwrap();
        storage.slot_for_tests().clear();
        std::fs::write(&path, [8; 17]).unwrap();
        assert!(storage.read_at(0, &mut out).is_err());
        std::fs::remove_file(&link).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(storage.read_at(0, &mut out).is_err());
        drop(other);
    }
}
