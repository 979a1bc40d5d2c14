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

/// A plain lock, for a library that nobody else in the process calls.
#[derive(Debug, Default)]
pub struct MutexLock(ReentrantMutex<()>);

impl LibraryLock for MutexLock {
    fn with(&self, work: &mut dyn FnMut()) {
        let _held = self.0.lock();
        work();
    }
}
