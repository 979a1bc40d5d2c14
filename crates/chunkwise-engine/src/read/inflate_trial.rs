//! Which way of inflating was faster for a dataset's first chunks?

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Groups that are timed, in turns one way and the other.
pub(crate) const TIMED_GROUPS: usize = 4;
/// The other way has to be faster by this, in percent of its time.
const LEAST_GAIN_PERCENT: u64 = 5;

/// What is known of a dataset.
#[derive(Debug, Default)]
pub(crate) struct InflateTrial {
    /// Groups that were begun to be timed, and those that ended.
    begun: AtomicUsize,
    ended: AtomicUsize,
    /// Bytes, and processor time in nanoseconds: one after another, at the same time.
    nbytes: [AtomicU64; 2],
    took: [AtomicU64; 2],
}

impl InflateTrial {
    /// How the next group is inflated: whether at the same time, and whether it is timed.  None if it
    /// is to be decoded as all others.
    pub(crate) fn next(&self) -> Option<(bool, bool)> {
        if self.ended.load(Relaxed) >= TIMED_GROUPS {
            return self.is_faster().then_some((true, false));
        }
        let number = self.begun.fetch_add(1, Relaxed);
        // At the same time first: who comes second has its memory at hand already.
        (number < TIMED_GROUPS).then_some((number.is_multiple_of(2), true))
    }

    /// A group of so many bytes took so long.
    pub(crate) fn add(&self, together: bool, nbytes: u64, took: u64) {
        self.nbytes[usize::from(together)].fetch_add(nbytes, Relaxed);
        self.took[usize::from(together)].fetch_add(took, Relaxed);
        self.ended.fetch_add(1, Relaxed);
    }

    fn is_faster(&self) -> bool {
        let of = |values: &[AtomicU64; 2]| values.each_ref().map(|v| u128::from(v.load(Relaxed)));
        let ([nbytes, nbytes_together], [took, took_together]) = (of(&self.nbytes), of(&self.took));
        let percent = u128::from(100 + LEAST_GAIN_PERCENT);
        took_together * nbytes * percent <= took * nbytes_together * 100
    }

    /// Whether chunks may still be inflated at the same time.
    pub(crate) fn is_open(&self) -> bool {
        self.ended.load(Relaxed) < TIMED_GROUPS || self.is_faster()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_way_is_kept() {
        let trial = InflateTrial::default();
        let ways: Vec<_> = (0..TIMED_GROUPS).map(|_| trial.next()).collect();
        assert_eq!(ways[..2], [Some((true, true)), Some((false, true))]);
        // The others are still being timed.
        assert_eq!(trial.next(), None);
        assert!(trial.is_open());
        for (together, nbytes, took) in [(false, 100, 100), (true, 100, 96)].repeat(2) {
            trial.add(together, nbytes, took);
        }
        // Not by enough.
        assert_eq!((trial.next(), trial.is_open()), (None, false));
        trial.add(true, 50, 0);
        assert_eq!((trial.next(), trial.is_open()), (Some((true, false)), true));
    }
}
