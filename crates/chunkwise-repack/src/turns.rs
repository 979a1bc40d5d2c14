//! Whose turn is it to write, of many datasets that are copied side by side?

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use chunkwise_engine::{CommitError, Committer, EncodedChunk};

use crate::CopyError;

/// Whose turn it is to write.
#[derive(Debug, Default)]
pub struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next: usize,
    ended: bool,
}

/// A dataset's place among the turns.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    turns: &'a Turns,
    number: usize,
}

impl Turns {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn of the dataset of this number.
    pub fn turn(&self, number: usize) -> Turn<'_> {
        Turn { turns: self, number }
    }

    /// Nobody writes any more.
    pub fn end(&self) {
        self.locked().ended = true;
        self.changed.notify_all();
    }
}

impl Turn<'_> {
    /// Wait until all before have written.
    ///
    /// # Errors
    /// [`CopyError::Cancelled`] where one of them never will.
    pub fn wait(&self) -> Result<(), CopyError> {
        let mut state = self.turns.locked();
        while state.next != self.number && !state.ended {
            state = self.turns.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.ended { Err(CopyError::Cancelled) } else { Ok(()) }
    }

    /// Wait until all before have written, and let the next one write.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn pass(&self) -> Result<(), CopyError> {
        self.wait()?;
        self.turns.locked().next = self.number + 1;
        self.turns.changed.notify_all();
        Ok(())
    }
}

/// Keeps chunks until it is their turn.
#[derive(Debug, Default)]
pub struct Kept(Vec<EncodedChunk>);

impl Kept {
    /// Hand them over.
    ///
    /// # Errors
    /// As the committer.
    pub fn hand_over(&self, committer: &mut dyn Committer) -> Result<(), CommitError> {
        if self.0.is_empty() { Ok(()) } else { committer.commit(&self.0) }
    }
}

impl Committer for Kept {
    fn commit(&mut self, chunks: &[EncodedChunk]) -> Result<(), CommitError> {
        self.0.extend_from_slice(chunks);
        Ok(())
    }
}
