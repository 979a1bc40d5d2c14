//! In which steps does a program walk through a dataset?

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the reads of a dataset have wanted lately.
#[derive(Debug)]
pub(crate) struct AccessPattern {
    /// Position of the first chunk of the last read that wanted other chunks than the one
    /// before; looked at without the lock.
    first: AtomicU64,
    steps: Mutex<Steps>,
}

#[derive(Debug)]
struct Steps {
    first: u64,
    last: u64,
    /// From the first chunk of one read to that of the next, modulo 2^64; 0 at the beginning.
    step: u64,
}

impl AccessPattern {
    pub(crate) fn new() -> Self {
        // No chunk comes after this one.
        let nowhere = u64::MAX;
        let steps = Mutex::new(Steps { first: nowhere, last: nowhere, step: 0 });
        Self { first: AtomicU64::new(nowhere), steps }
    }

    /// A read wants chunks from `first` to `last`: how far on the next one will be, if that
    /// can be known.
    pub(crate) fn step_from(&self, first: u64, last: u64) -> Option<u64> {
        if self.first.load(Relaxed) == first {
            return None;
        }
        // Another reader of the same dataset is at it: whose pattern is it, then?
        let mut steps = self.steps.try_lock().ok()?;
        let step = first.wrapping_sub(steps.first);
        let alike = last.wrapping_sub(steps.last) == step;
        let follows = steps.last.checked_add(1) == Some(first);
        let is_known = alike && (step == steps.step || follows);
        *steps = Steps { first, last, step };
        self.first.store(first, Relaxed);
        is_known.then_some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_are_alike_tell_the_next() {
        let walk = |reads: &[(u64, u64)]| {
            let pattern = AccessPattern::new();
            reads.iter().map(|&(first, last)| pattern.step_from(first, last)).collect::<Vec<_>>()
        };
        // A row at a time, several of them in each chunk.
        assert_eq!(walk(&[(0, 0), (0, 0), (1, 1), (1, 1)]), [None, None, Some(1), None]);
        // Two chunks wide, and the next two.
        assert_eq!(walk(&[(4, 5), (6, 7)]), [None, Some(2)]);
        // Down a column of a grid ten chunks wide: known by the second step, also upwards.
        assert_eq!(walk(&[(3, 3), (13, 13), (23, 23)]), [None, None, Some(10)]);
        let up = 10u64.wrapping_neg();
        assert_eq!(walk(&[(23, 23), (13, 13), (3, 3)]), [None, None, Some(up)]);
        // Here and there.
        assert_eq!(walk(&[(3, 3), (17, 17), (4, 4), (9, 9)]), [None; 4]);
        // Of another size than the one before.
        assert_eq!(walk(&[(0, 1), (2, 2), (3, 3)]), [None, None, Some(1)]);
    }
}
