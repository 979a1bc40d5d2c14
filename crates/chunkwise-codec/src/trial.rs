//! What does an engine make of samples, and how sure is it of the rest?

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::deflater::Deflater;
use crate::{DeflateEngine, Effort, EncodeScratch, Encoder, Encoding, Step};

/// Bytes that are tried: more at levels at which zlib takes less time, and few where nothing
/// depends on them.
pub(crate) const fn most_nbytes(effort: Effort, level: u32) -> usize {
    if let Effort::Fast = effort {
        return 1 << 19;
    }
    match level {
        0..=3 => 5 << 19,
        4..=6 => 3 << 19,
        _ => 1 << 20,
    }
}

/// Longer chunks are tried in parts: those that come to deflate as they are, or such planes of shuffled
/// chunks...
const LONGEST_PLAIN_NBYTES: usize = 1 << 20;
/// ... and those that come from another filter, shuffled ones at the most.
const LONGEST_NBYTES: usize = 16 << 20;

/// The length of such a part.
const PART_NBYTES: usize = 128 << 10;

/// Two standard errors of what one chunk alone tells of all.
const ONE_CHUNK: f64 = 0.01;

/// What parts tell of whole chunks may be wrong by as much: 1.9% was seen, of a chunk that is
/// mostly empty.
const PARTS: f64 = 0.02;

/// What deflate is given of each sample.
pub(crate) struct Trial {
    parts: Vec<Vec<u8>>,
    /// What whole chunks may differ by.
    unknown: f64,
}

impl Trial {
    /// For the deflate at place `at` of `steps`, with about `most` bytes of the samples; None where
    /// nothing comes to it, or where the least that can be tried, a part or a whole sample, has
    /// more than `limit` bytes.
    ///
    /// Of shuffled chunks with short planes parts tell little: what an engine makes depends on where
    /// its blocks meet the planes' ends, which is several percent.  Of long planes, each gives as many
    /// parts.
    pub(crate) fn new(
        steps: &[Step],
        at: usize,
        (most, limit): (usize, usize),
        samples: &[&[u8]],
    ) -> Option<Self> {
        let most = most.min(limit);
        let longest = samples.iter().map(|sample| sample.len()).max()?;
        let planes = match at.checked_sub(1).and_then(|before| steps.get(before)) {
            Some(Step { encoder: Encoder::Shuffle(shuffle), .. }) => shuffle.element_size,
            _ => 1,
        };
        let whole = match (at, planes) {
            (0, _) => LONGEST_PLAIN_NBYTES,
            (_, 1) => LONGEST_NBYTES,
            _ => LONGEST_PLAIN_NBYTES.saturating_mul(planes).min(LONGEST_NBYTES),
        };
        let in_parts = longest > whole;
        let each = if in_parts { PART_NBYTES } else { longest.max(1) };
        if each > limit {
            return None;
        }
        let from_one = if in_parts { planes.min(most / each).max(1) } else { 1 };
        let count = most.div_ceil(each * from_one).clamp(1, samples.len());
        let parts_each = (most / each / count).max(1);

        let before = Encoding::new(steps.get(..at)?.to_vec());
        let (mut scratch, mut parts) = (EncodeScratch::default(), Vec::new());
        for i in 0..count {
            let sample = samples.get(middle(i, count, samples.len()))?;
            let mut out = Vec::new();
            before.encode(sample, &mut scratch, &mut out).ok()?;
            if out.len() <= whole {
                parts.push(out);
                continue;
            }
            for part in 0..parts_each {
                // Each sample from other places.
                let stretch = part * count + i;
                let begin = middle(stretch, parts_each * count, out.len() - PART_NBYTES);
                parts.push(out.get(begin..begin + PART_NBYTES)?.to_vec());
            }
        }
        let unknown = if in_parts {
            PARTS
        } else if count == 1 {
            ONE_CHUNK
        } else {
            0.0
        };
        Some(Self { parts, unknown })
    }

    /// What `engine` makes of each; None where it fails.
    pub(crate) fn sizes(&self, engine: DeflateEngine) -> Option<Sizes> {
        self.sizes_of(&[engine], &alone).pop().flatten()
    }

    /// The same of several engines, on as many threads as `crew` has.
    pub(crate) fn sizes_of(&self, engines: &[DeflateEngine], crew: Crew<'_>) -> Vec<Option<Sizes>> {
        let parts = self.parts.len();
        let made: Vec<AtomicUsize> =
            (0..engines.len() * parts).map(|_| AtomicUsize::new(FAILED)).collect();
        let next = AtomicUsize::new(0);
        crew(&|| {
            let (mut deflater, mut out) = (Deflater::default(), Vec::new());
            let task = || next.fetch_add(1, Relaxed);
            while let Some((task, made)) = Some(task()).and_then(|at| Some((at, made.get(at)?))) {
                let done =
                    deflater.deflate(engines[task / parts], &self.parts[task % parts], &mut out);
                if matches!(done, Ok(true)) {
                    made.store(out.len(), Relaxed);
                }
            }
        });
        let found: Vec<usize> = made.into_iter().map(AtomicUsize::into_inner).collect();
        found
            .chunks_exact(parts)
            .map(|nbytes| {
                let complete = !nbytes.contains(&FAILED);
                complete.then(|| Sizes { nbytes: nbytes.to_vec(), unknown: self.unknown })
            })
            .collect()
    }
}

/// Runs a piece of work on this thread, and at the same time on others: it takes tasks until none
/// is left.
pub type Crew<'a> = &'a dyn Fn(&(dyn Fn() + Sync));

/// No others.
pub(crate) fn alone(work: &(dyn Fn() + Sync)) {
    work();
}

/// What no engine makes.
const FAILED: usize = usize::MAX;

/// The middle of stretch `i` of `count` that `len` is divided into.
fn middle(i: usize, count: usize, len: usize) -> usize {
    len / count * i + len % count * i / count + len / count / 2
}

/// Bytes that an engine has made of each part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sizes {
    pub(crate) nbytes: Vec<usize>,
    /// What all chunks may differ by, beside what the parts' own differences say.
    pub(crate) unknown: f64,
}

impl Sizes {
    /// Bytes of all.
    pub(crate) fn total(&self) -> usize {
        self.nbytes.iter().sum()
    }

    /// How much more they are than `other`'s of the same parts, as a fraction; and how much
    /// more they may be of all that the parts stand for: two standard errors of the ratio, and
    /// what is unknown.
    pub(crate) fn excess(&self, other: &Self) -> (f64, f64) {
        let total = other.total().max(1) as f64;
        let ratio = self.total() as f64 / total;
        let apart = |(&own, &other): (&usize, &usize)| (own as f64 - ratio * other as f64).powi(2);
        let sum: f64 = self.nbytes.iter().zip(&other.nbytes).map(apart).sum();
        let count = self.nbytes.len() as f64;
        let error = (sum * count / (count - 1.0).max(1.0)).sqrt() / total;
        (ratio - 1.0, ratio - 1.0 + 2.0 * error + self.unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Encoder, Shuffle};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_spread_and_bounded(
            len in 0usize..3_500_000,
            count in 0usize..30,
            shuffled in any::<bool>(),
            level in 1u32..=9,
        ) {
            let bytes = vec![1; len];
            let samples = vec![&bytes[..]; count];
            let shuffle = Encoder::Shuffle(Shuffle { element_size: 2 });
            let encoders = shuffled.then_some(shuffle).into_iter().chain([Encoder::deflate(level)]);
            let steps: Vec<_> =
                encoders.map(|encoder| Step { encoder, optional: true }).collect();
            let most = most_nbytes(Effort::AsStated, level);
            let Some(trial) = Trial::new(&steps, steps.len() - 1, (most, usize::MAX), &samples) else {
                prop_assert_eq!(count, 0);
                return Ok(());
            };
            let tried: usize = trial.parts.iter().map(Vec::len).sum();
            prop_assert!(tried < most + len.max(1));
            prop_assert!(!trial.parts.is_empty());
            let whole = |part: &Vec<u8>| part.len() == len;
            let longest = LONGEST_PLAIN_NBYTES << u32::from(shuffled);
            let part = |part: &Vec<u8>| part.len() == PART_NBYTES && len > longest;
            prop_assert!(trial.parts.iter().all(|one| whole(one) || part(one)));
        }

        /// Planes compress each in their own way: a sample of one alone tells nothing.
        #[test]
        fn parts_are_of_all_planes_alike(
            planes in prop_oneof![Just(2usize), Just(4), Just(8)],
            count in 1usize..30,
            level in 1u32..=9,
        ) {
            let bytes: Vec<u8> = (0..planes as u8).cycle().take((planes + 1) << 20).collect();
            let samples = vec![&bytes[..]; count];
            let encoders = [Encoder::Shuffle(Shuffle { element_size: planes }), Encoder::deflate(level)];
            let steps = encoders.map(|encoder| Step { encoder, optional: true });
            let most = most_nbytes(Effort::AsStated, level);
            let trial = Trial::new(&steps, 1, (most, usize::MAX), &samples).unwrap();
            let mut met = vec![0usize; planes];
            for part in &trial.parts {
                met[usize::from(part[PART_NBYTES / 2])] += 1;
            }
            let (least, most) = (met.iter().min().unwrap(), met.iter().max().unwrap());
            prop_assert!(*least > 0 && most - least <= 1 + trial.parts.len() / 8, "{:?}", met);
        }

        #[test]
        fn middles_are_in_order_and_within(count in 1usize..50, more in 0usize..1000) {
            let len = count + more;
            let middles: Vec<_> = (0..count).map(|i| middle(i, count, len)).collect();
            prop_assert!(middles.iter().all(|&at| at < len));
            prop_assert!(middles.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn the_excess_and_its_error() {
        let sizes = |nbytes: &[usize]| Sizes { nbytes: nbytes.to_vec(), unknown: 0.0 };
        let zlib = sizes(&[100, 200, 300]);
        let (excess, at_most) = sizes(&[110, 220, 330]).excess(&zlib);
        assert!((excess - 0.1).abs() < 1e-9 && (at_most - 0.1).abs() < 1e-9);
        let (excess, at_most) = sizes(&[90, 200, 310]).excess(&zlib);
        // Apart by 10, 0 and 10: the root of 200 * 3 / 2, twice, of 600.
        assert!(excess.abs() < 1e-9 && (at_most - 300f64.sqrt() * 2.0 / 600.0).abs() < 1e-9);
        let one = Sizes { unknown: 0.01, ..sizes(&[101]) };
        let (excess, at_most) = one.excess(&sizes(&[100]));
        assert!((excess - 0.01).abs() < 1e-9 && (at_most - 0.02).abs() < 1e-9);
    }
}
