//! What does an engine make of samples, and how sure is it of the rest?

use crate::deflater::Deflater;
use crate::{DeflateEngine, EncodeScratch, Encoding, Step};

/// Bytes that are tried: more at levels at which zlib takes less time.
const fn most_nbytes(level: u32) -> usize {
    if level <= 6 { 5 << 19 } else { 1 << 20 }
}

/// Chunks that come to deflate as they are may be tried in parts of this length.
const PART_NBYTES: usize = 128 << 10;

/// Longer chunks are tried in such parts whatever comes before.
const LONGEST_NBYTES: usize = 16 << 20;

/// What deflate is given of each sample.
pub(crate) struct Trial {
    parts: Vec<Vec<u8>>,
    /// Whether chunks that do not shrink are stored as they are.
    optional: bool,
}

impl Trial {
    /// For the deflate at place `at` of `steps`; None where nothing comes to it.
    ///
    /// Where data is alike all over, parts of chunks tell as much as chunks do, and more chunks
    /// can be tried.  Of shuffled ones only whole chunks tell the truth: what an engine makes
    /// depends on where its blocks meet the planes' ends, which is several percent.
    pub(crate) fn new(steps: &[Step], at: usize, level: u32, samples: &[&[u8]]) -> Option<Self> {
        let longest = samples.iter().map(|sample| sample.len()).max()?;
        let whole = if at == 0 { PART_NBYTES } else { LONGEST_NBYTES };
        let each = if longest <= whole { longest.max(1) } else { PART_NBYTES };
        let most = most_nbytes(level);
        let count = most.div_ceil(each).clamp(1, samples.len());
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
            for i in 0..parts_each {
                let begin = middle(i, parts_each, out.len() - PART_NBYTES);
                parts.push(out.get(begin..begin + PART_NBYTES)?.to_vec());
            }
        }
        Some(Self { parts, optional: steps.get(at)?.optional })
    }

    /// What `engine` makes of each; None where it fails.
    pub(crate) fn sizes(&self, engine: DeflateEngine) -> Option<Sizes> {
        let (mut deflater, mut out) = (Deflater::default(), Vec::new());
        let stored = self.parts.iter().map(|part| {
            let done = deflater.deflate(engine, part, &mut out).ok()?;
            let nbytes = if self.optional { out.len().min(part.len()) } else { out.len() };
            done.then_some(nbytes)
        });
        Some(Sizes(stored.collect::<Option<_>>()?))
    }
}

/// The middle of stretch `i` of `count` that `len` is divided into.
fn middle(i: usize, count: usize, len: usize) -> usize {
    len / count * i + len % count * i / count + len / count / 2
}

/// Bytes that an engine has made of each part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sizes(Vec<usize>);

impl Sizes {
    /// Of parts, in their order.
    #[cfg(test)]
    pub(crate) fn new(nbytes: Vec<usize>) -> Self {
        Self(nbytes)
    }

    /// Bytes of all.
    pub(crate) fn total(&self) -> usize {
        self.0.iter().sum()
    }

    /// How much more they are than `other`'s of the same parts, as a fraction; and how much
    /// more they may be of all that the parts stand for: two standard errors of the ratio.
    pub(crate) fn excess(&self, other: &Self) -> (f64, f64) {
        /// What one part alone leaves open.
        const UNKNOWN: f64 = 0.005;
        let total = other.total().max(1) as f64;
        let ratio = self.total() as f64 / total;
        let apart = |(&own, &other): (&usize, &usize)| (own as f64 - ratio * other as f64).powi(2);
        let count = self.0.len() as f64;
        let error = if count > 1.0 {
            let sum: f64 = self.0.iter().zip(&other.0).map(apart).sum();
            (sum * count / (count - 1.0)).sqrt() / total
        } else {
            UNKNOWN
        };
        (ratio - 1.0, ratio - 1.0 + 2.0 * error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encoder;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_spread_and_bounded(
            lens in prop::collection::vec(0usize..400_000, 0..20),
            shuffled in any::<bool>(),
            level in 1u32..=9,
        ) {
            let bytes = vec![1; 400_000];
            let samples: Vec<_> = lens.iter().map(|&len| &bytes[..len]).collect();
            let shuffle = Encoder::Shuffle { element_size: 4 };
            let encoders = shuffled.then_some(shuffle).into_iter().chain([Encoder::deflate(level)]);
            let steps: Vec<_> =
                encoders.map(|encoder| Step { encoder, optional: true }).collect();
            let Some(trial) = Trial::new(&steps, steps.len() - 1, level, &samples) else {
                prop_assert!(lens.is_empty());
                return Ok(());
            };
            let tried: usize = trial.parts.iter().map(Vec::len).sum();
            prop_assert!(tried < most_nbytes(level) + 400_000);
            prop_assert!(!trial.parts.is_empty());
            let whole = |part: &Vec<u8>| lens.contains(&part.len());
            let part = |part: &Vec<u8>| part.len() == PART_NBYTES && !shuffled;
            prop_assert!(trial.parts.iter().all(|one| whole(one) || part(one)));
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
        let sizes = |nbytes: &[usize]| Sizes::new(nbytes.to_vec());
        let zlib = sizes(&[100, 200, 300]);
        let (excess, at_most) = sizes(&[110, 220, 330]).excess(&zlib);
        assert!((excess - 0.1).abs() < 1e-9 && (at_most - 0.1).abs() < 1e-9);
        let (excess, at_most) = sizes(&[90, 200, 310]).excess(&zlib);
        // Apart by 10, 0 and 10: the root of 200 * 3 / 2, twice, of 600.
        assert!(excess.abs() < 1e-9 && (at_most - 300f64.sqrt() * 2.0 / 600.0).abs() < 1e-9);
        let (excess, at_most) = sizes(&[101]).excess(&sizes(&[100]));
        assert!((excess - 0.01).abs() < 1e-9 && (at_most - 0.02).abs() < 1e-9);
    }
}
