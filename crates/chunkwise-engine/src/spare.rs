//! What becomes of the memory of encoded chunks that were handed over?
//!
//! The next write of this process uses it again: fresh memory is zeroed by the system, which takes
//! a fifth of what encoding does where each write is short.

use std::sync::{Mutex, PoisonError};

/// At most this many bytes are kept.
pub const MOST_NBYTES: usize = 32 << 20;

/// Memory that nobody uses.
#[derive(Debug, Default)]
pub struct SpareMemory(Mutex<Vec<Vec<u8>>>);

impl SpareMemory {
    /// Take all pieces that are not larger than `largest`.
    pub fn take(&self, largest: usize) -> Vec<Vec<u8>> {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (taken, left) =
            std::mem::take(&mut *spare).into_iter().partition(|one| one.capacity() <= largest);
        *spare = left;
        taken
    }

    /// Give back what was taken, and what has come in meanwhile; what is too much is freed.
    pub fn give(&self, memory: impl Iterator<Item = Vec<u8>>) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut nbytes: usize = spare.iter().map(Vec::capacity).sum();
        for one in memory {
            nbytes = nbytes.saturating_add(one.capacity());
            if nbytes <= MOST_NBYTES {
                spare.push(one);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_than_may_be() {
        let of = |nbytes| Vec::with_capacity(nbytes);
        let spare = SpareMemory::default();
        spare.give([of(MOST_NBYTES / 2), of(10)].into_iter());
        spare.give([of(MOST_NBYTES), of(MOST_NBYTES / 4)].into_iter());
        assert_eq!(spare.take(10).len(), 1);
        spare.give([of(10)].into_iter());
        let kept: Vec<usize> = spare.take(usize::MAX).iter().map(Vec::capacity).collect();
        assert_eq!(kept, [MOST_NBYTES / 2, 10]);
        assert!(spare.take(usize::MAX).is_empty());
    }
}
