//! Who else calls the same libhdf5, and how do we keep out of each other's way?

use parking_lot::ReentrantMutex;

/// The lock under which a libhdf5 is called.
///
/// In a Python process it is h5py's `phil`; elsewhere a mutex of our own.  It must be
/// re-entrant: a caller may hold it already.
pub trait LibraryLock: Send + Sync {
    /// Run `work` while holding the lock.  `work` does not panic.
    fn with(&self, work: &mut dyn FnMut());
}

/// One plain lock for the whole process, for libraries that only this crate calls.
///
/// All its values are the same lock, so that binding one library twice is safe.
#[derive(Debug, Default, Clone, Copy)]
pub struct MutexLock;

static PROCESS: ReentrantMutex<()> = ReentrantMutex::new(());

impl LibraryLock for MutexLock {
    fn with(&self, work: &mut dyn FnMut()) {
        let _held = PROCESS.lock();
        work();
    }
}
