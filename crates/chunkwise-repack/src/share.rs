//! Which pieces of a dataset are this process's, where several work on it?

use std::fs::File;
use std::ops::Range;

use crate::CopyError;

/// Hands out pieces (super-blocks, steps of reading, or chunks) to the processes that work on one
/// dataset.
pub trait Share: Sync {
    /// The next pieces of `all` that are this process's, `least` or more where there are as many;
    /// none when all are taken.  Each `round` is handed out for itself.
    ///
    /// # Errors
    /// When the others have failed, or cannot be asked.
    fn next(&self, round: u64, all: u64, least: u64) -> Result<Range<u64>, String>;

    /// Wait until all have called this as often.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    fn meet(&self) -> Result<(), String>;

    /// Memory of this many bytes that all of them share, which all ask for; None where there is none
    /// for one of them.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    fn memory(&self, nbytes: u64) -> Result<Option<File>, String>;
}

/// Chunks for this many threads, which wait for each other when they have done them.
pub fn enough_for(threads: usize) -> u64 {
    const EACH: u64 = 4;
    EACH * threads as u64
}

/// Pieces for this process: all at once where it works alone.
pub struct Pieces<'a> {
    share: Option<&'a dyn Share>,
    round: u64,
    all: u64,
    least: u64,
    taken: bool,
}

impl<'a> Pieces<'a> {
    /// Of `all`; this many at least are good to have at a time.
    pub fn new(share: Option<&'a dyn Share>, round: u64, all: u64, least: u64) -> Self {
        Self { share, round, all, least, taken: false }
    }

    /// There are this many.
    pub fn of(&mut self, all: u64) {
        self.all = all;
    }

    /// The next ones; None when there are no more.
    pub fn next(&mut self) -> Result<Option<Range<u64>>, CopyError> {
        let range = match self.share {
            None if std::mem::replace(&mut self.taken, true) => 0..0,
            None => 0..self.all,
            Some(share) => {
                share.next(self.round, self.all, self.least).map_err(CopyError::Share)?
            }
        };
        // What is not there is nobody's.
        let range = range.start.min(self.all)..range.end.min(self.all);
        Ok((!range.is_empty()).then_some(range))
    }
}
