//! Which pieces of a dataset are this process's, where several work on it?

use std::ops::Range;

use crate::CopyError;

/// Hands out pieces (super-blocks, or chunks) to the processes that work on one dataset.
pub trait Share: Sync {
    /// The next pieces of `all` that are this process's; none when all are taken.
    ///
    /// # Errors
    /// When the others have failed, or cannot be asked.
    fn next(&self, all: u64) -> Result<Range<u64>, String>;
}

/// Pieces for this process: all at once where it works alone.
pub struct Pieces<'a> {
    share: Option<&'a dyn Share>,
    all: u64,
    taken: bool,
}

impl<'a> Pieces<'a> {
    /// Of `all`.
    pub fn new(share: Option<&'a dyn Share>, all: u64) -> Self {
        Self { share, all, taken: false }
    }

    /// The next ones; None when there are no more.
    pub fn next(&mut self) -> Result<Option<Range<u64>>, CopyError> {
        let range = match self.share {
            None if std::mem::replace(&mut self.taken, true) => 0..0,
            None => 0..self.all,
            Some(share) => share.next(self.all).map_err(CopyError::Share)?,
        };
        // What is not there is nobody's.
        let range = range.start.min(self.all)..range.end.min(self.all);
        Ok((!range.is_empty()).then_some(range))
    }
}
