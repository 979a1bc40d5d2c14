//! Which way of inflating was faster for a dataset's first chunks?

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Groups that are timed, in turns one way and the other...
pub(crate) const TIMED_GROUPS: usize = 4;
/// ... or fewer, of as many bytes each way.
const ENOUGH_NBYTES: u64 = 2 << 20;
/// For each group that is inflated at the same time to be timed, a read has this many chunks: such a
/// group of four may take half as long again.
const TRIED_CHUNKS: u64 = 96;
/// What one after another takes, in percent of what all take at the same time, from which on up to
/// two, three, or more are inflated so: the fewer they are, the less they gain.
const LEAST_PERCENT: [u64; 3] = [130, 115, 105];

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
    /// How the next group, of this many chunks and bytes, is inflated: whether at the same time, and
    /// whether it is timed.  None if it is to be decoded as all others.
    pub(crate) fn next(&self, chunks: usize, nbytes: u64) -> Option<(bool, bool)> {
        if let Some(percent) = self.percent() {
            let least = LEAST_PERCENT[chunks.clamp(2, 4) - 2];
            return (percent >= least).then(|| (true, self.begun.load(Relaxed) < TIMED_GROUPS));
        }
        let number = self.begun.fetch_add(1, Relaxed);
        // At the same time first: who comes second has its memory at hand already.
        (number < Self::groups(nbytes)).then_some((number.is_multiple_of(2), true))
    }

    /// How many groups of this many bytes are timed.
    fn groups(nbytes: u64) -> usize {
        if nbytes < ENOUGH_NBYTES { TIMED_GROUPS } else { 2 }
    }

    /// A group of this many bytes took so long.
    pub(crate) fn add(&self, together: bool, nbytes: u64, took: u64) {
        self.nbytes[usize::from(together)].fetch_add(nbytes, Relaxed);
        self.took[usize::from(together)].fetch_add(took, Relaxed);
        self.ended.fetch_add(1, Relaxed);
    }

    /// Both ways took so long for the first bytes of some chunks, which are enough to go on with.
    pub(crate) fn add_sample(&self, nbytes: u64, took: [u64; 2]) {
        self.add(false, nbytes, took[0]);
        self.add(true, nbytes, took[1]);
        self.ended.fetch_add(TIMED_GROUPS, Relaxed);
    }

    /// What one after another takes, in percent of what all take at the same time; None while too
    /// little was timed.
    fn percent(&self) -> Option<u64> {
        let of = |values: &[AtomicU64; 2]| values.each_ref().map(|v| u128::from(v.load(Relaxed)));
        let ([nbytes, nbytes_together], [took, took_together]) = (of(&self.nbytes), of(&self.took));
        let least = nbytes.min(nbytes_together);
        if self.ended.load(Relaxed) < TIMED_GROUPS && least < u128::from(ENOUGH_NBYTES) {
            return None;
        }
        let together = (took_together * nbytes).max(1);
        Some(u64::try_from(took * nbytes_together * 100 / together).unwrap_or(u64::MAX))
    }

    /// Whether it is not known yet which way is faster.
    pub(crate) fn is_undecided(&self) -> bool {
        self.percent().is_none()
    }

    /// Whether a trial with groups of this many bytes costs too much for a read of this many chunks.
    pub(crate) fn is_too_dear(chunks: u64, group_nbytes: u64) -> bool {
        chunks < Self::groups(group_nbytes) as u64 / 2 * TRIED_CHUNKS
    }

    /// Whether chunks may still be inflated at the same time.
    pub(crate) fn is_open(&self) -> bool {
        self.percent().is_none_or(|percent| percent >= LEAST_PERCENT[2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_way_is_kept() {
        let trial = InflateTrial::default();
        let ways: Vec<_> = (0..TIMED_GROUPS).map(|_| trial.next(4, 100)).collect();
        assert_eq!(ways[..2], [Some((true, true)), Some((false, true))]);
        // The others are still being timed.
        assert_eq!(trial.next(4, 100), None);
        assert!(trial.is_open() && trial.is_undecided());
        for (together, nbytes, took) in [(false, 100, 100), (true, 100, 96)].repeat(2) {
            trial.add(together, nbytes, took);
        }
        // Not by enough.
        assert_eq!((trial.next(4, 100), trial.is_open()), (None, false));
        trial.add(true, 30, 0);
        assert_eq!((trial.next(16, 100), trial.is_open()), (Some((true, false)), true));
        // Fewer at a time do not gain as much.
        assert_eq!([2, 3].map(|chunks| trial.next(chunks, 100)), [None, Some((true, false))]);
    }

    #[test]
    fn large_groups_and_samples_are_enough() {
        let trial = InflateTrial::default();
        let ways = [0; 3].map(|_| trial.next(4, ENOUGH_NBYTES));
        assert_eq!(ways, [Some((true, true)), Some((false, true)), None]);
        trial.add(true, ENOUGH_NBYTES, 100);
        assert!(trial.is_undecided());
        trial.add(false, ENOUGH_NBYTES, 170);
        assert_eq!(trial.next(2, 100), Some((true, true)));
        assert!(InflateTrial::is_too_dear(95, ENOUGH_NBYTES));
        assert!(!InflateTrial::is_too_dear(96, ENOUGH_NBYTES));
        assert!(InflateTrial::is_too_dear(191, ENOUGH_NBYTES - 1));
        let trial = InflateTrial::default();
        trial.add_sample(1000, [170, 100]);
        assert_eq!(trial.next(2, 100), Some((true, true)));
        // What comes after it shows that it said too much.
        trial.add(true, 100_000, 20_000);
        assert_eq!((trial.next(4, 100), trial.is_open()), (None, false));
    }
}
