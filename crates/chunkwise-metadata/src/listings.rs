//! What do many files hold, each listed by one of several threads?

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chunkwise_engine::FileStorage;
use chunkwise_engine::platform::{is_locked, open_without_waiting};

use crate::listing::Entry;
use crate::metadata::Metadata;

/// No other file is begun once so many names were found, which have to fit memory together, or after
/// this time, when a program looks for signals.
const MOST_NAMES: usize = 1 << 16;
const MOST_TIME: Duration = Duration::from_millis(50);

/// All names in a file, as of [`Metadata::listing`]; None, too, where it is being written, and an
/// error where it cannot be opened.
pub type Listed = io::Result<Option<Vec<Entry>>>;

/// List the first of some files, in their order: at least one, and as many as may be.
pub fn listings(paths: &[PathBuf], threads: usize) -> Vec<Listed> {
    let (next, names) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (done, begun) = (Mutex::new(Vec::new()), Instant::now());
    let goes_on = || names.load(Relaxed) < MOST_NAMES && begun.elapsed() < MOST_TIME;
    let work = || {
        // Whoever takes a number lists that file, so that none is left out.
        loop {
            let number = next.fetch_add(1, Relaxed);
            let Some(path) = paths.get(number) else { break };
            let listed = listing(path);
            if let Ok(Some(entries)) = &listed {
                names.fetch_add(entries.len(), Relaxed);
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, listed));
            if !goes_on() {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(paths.len()) {
            // Where the system has no thread to give, fewer do it.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, listed)| listed).collect()
}

fn listing(path: &Path) -> Listed {
    let file = open_without_waiting(path)?;
    // libhdf5 refuses what somebody writes to: half of that may not have come to the file yet.
    if is_locked(&file) {
        return Ok(None);
    }
    // It is opened once: nothing is read of it later.
    let metadata = Metadata::of_storage(Arc::new(FileStorage::new(file)));
    Ok(metadata.and_then(|metadata| metadata.listing()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_its_place_whoever_lists_it() {
        let folder = std::env::temp_dir().join(format!("chunkwise-many-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let paths: Vec<_> = (0..40).map(|number| folder.join(number.to_string())).collect();
        for path in paths.iter().step_by(2) {
            std::fs::write(path, b"no HDF5 file").unwrap();
        }
        for threads in [0, 1, 2, 7, 100] {
            let mut listed = Vec::new();
            while listed.len() < paths.len() {
                let more = listings(&paths[listed.len()..], threads);
                assert!(!more.is_empty());
                listed.extend(more);
            }
            for (number, listed) in listed.iter().enumerate() {
                assert_eq!(matches!(listed, Ok(None)), number % 2 == 0);
                assert_eq!(listed.is_err(), number % 2 == 1);
            }
        }
        assert!(listings(&[], 2).is_empty());
        // A folder is no file.
        assert!(!matches!(listings(std::slice::from_ref(&folder), 2)[..], [Ok(Some(_))]));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
