//! Does the engine that was chosen for one dataset serve the next one that is like it?
//!
//! Choosing takes as long as encoding a MiB or two, which is more than a small dataset takes
//! itself.  So what was chosen for a dataset is tried on a few pieces of the next: an engine stays
//! if it does as well beside zlib there as it did on such pieces of the dataset that it was chosen
//! for.  Where data differ, the choice is made anew.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::trial::{Sizes, Trial};
use crate::tuning::{MOST_EXCESS, tolerance};
use crate::{DeflateEngine, Effort, Encoding, Tuning};

/// A piece that is tried, and how many of them, each of another sample.
const PIECE_NBYTES: usize = 32 << 10;
const PIECES: usize = 3;
/// Data that shrink to shares further apart are not alike: what pieces tell of whole chunks of the
/// ones they do not tell of the others.
const ALIKE: f64 = 1.25;
/// The latest choices are tried...
const KEPT: usize = 2;
/// ... and when this many datasets in a row had no better engine than zlib, the others have zlib as
/// well, without a trial...
const IN_VAIN: u32 = 3;
/// ... but for each so-many-th.
const AGAIN: u32 = 8;

/// What was chosen for datasets of the same type, chunk shape and filters, by whatever threads.
#[derive(Debug, Default)]
pub struct Choices(Mutex<Made>);

#[derive(Debug, Default)]
struct Made {
    /// Latest first.
    choices: Vec<Choice>,
    /// Datasets since then for which zlib was chosen.
    in_vain: u32,
}

/// One choice.
#[derive(Debug, Clone, Copy)]
struct Choice {
    engine: DeflateEngine,
    /// How much more than zlib it made of the samples, and of the pieces.
    excess: f64,
    of_pieces: f64,
    /// What zlib makes of a byte of the pieces.
    share: f64,
}

impl Choice {
    /// Whether it serves data of whose pieces the engine makes so much more than zlib, and zlib
    /// such a share.
    fn holds(&self, level: u32, of_pieces: f64, share: f64) -> bool {
        let expected = self.excess + of_pieces - self.of_pieces;
        let alike = share <= ALIKE * self.share && self.share <= ALIKE * share;
        alike && expected <= tolerance(level) && of_pieces <= self.of_pieces.max(tolerance(level))
    }
}

impl Choices {
    fn locked(&self) -> MutexGuard<'_, Made> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether zlib will do, without a trial.
    fn is_in_vain(&self) -> bool {
        let mut made = self.locked();
        let is_settled = made.in_vain >= IN_VAIN && !made.in_vain.is_multiple_of(AGAIN);
        made.in_vain += u32::from(is_settled);
        is_settled
    }

    fn note(&self, choice: Option<Choice>) {
        let mut made = self.locked();
        let Some(choice) = choice else {
            made.in_vain = made.in_vain.saturating_add(1);
            return;
        };
        made.in_vain = 0;
        made.choices.retain(|known| known.engine != choice.engine);
        made.choices.insert(0, choice);
        made.choices.truncate(KEPT);
    }
}

impl Encoding {
    /// As [`tuned`](Self::tuned), but with an engine chosen for data like these before, where it
    /// does as well for `samples`; a new choice is added.
    ///
    /// Of an engine that is taken over, the excess is that of pieces of the samples.  `itemsize`
    /// are an element's bytes.
    pub fn tuned_like(
        &self,
        effort: Effort,
        samples: &[&[u8]],
        itemsize: usize,
        choices: &Choices,
    ) -> (Self, Option<Tuning>) {
        let Some((at, level)) = self.deflate() else { return self.tuned(effort, samples) };
        let known = choices.locked().choices.clone();
        let pieces = pieces_of(samples, itemsize);
        let trial = Trial::new(self.steps(), at, (PIECES * PIECE_NBYTES, usize::MAX), &pieces);
        let nbytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let share = |zlib: &Sizes| zlib.total() as f64 / nbytes.max(1) as f64;
        let sizes = |engine| trial.as_ref().and_then(|trial| trial.sizes(engine));
        let zlib = if known.is_empty() { None } else { sizes(DeflateEngine::Zlib(level)) };
        if let Some(zlib) = &zlib {
            for choice in known {
                let Some(sizes) = sizes(choice.engine) else { continue };
                let of_pieces = sizes.excess(zlib).0;
                if (choice.holds(level, of_pieces, share(zlib)) || effort == Effort::Fast)
                    && let Some(encoding) = self.with_engine(at, level, choice.engine)
                {
                    let tuning = tuning_of(choice.engine, level, &sizes, zlib);
                    return (encoding, Some(tuning));
                }
            }
        }
        if effort == Effort::AsStated && choices.is_in_vain() {
            let zlib = zlib.or_else(|| sizes(DeflateEngine::Zlib(level)));
            let tuning =
                zlib.map(|zlib| tuning_of(DeflateEngine::Zlib(level), level, &zlib, &zlib));
            return (self.clone(), tuning);
        }
        let (tuned, tuning) = self.tuned(effort, samples);
        if let (Some(engine), Some(tuning)) = (tuned.engine(), &tuning) {
            let of_pieces = || {
                let zlib = zlib.or_else(|| sizes(DeflateEngine::Zlib(level)))?;
                Some((sizes(engine)?.excess(&zlib).0, share(&zlib)))
            };
            let is_zlib = engine == DeflateEngine::Zlib(level);
            let choice = if is_zlib { None } else { of_pieces() };
            let excess = tuning.excess();
            let choice =
                choice.map(|(of_pieces, share)| Choice { engine, excess, of_pieces, share });
            // Where pieces tell little of whole chunks, each dataset is tried for itself.
            if choice.is_none_or(|choice| choice.of_pieces <= MOST_EXCESS) {
                choices.note(choice);
            }
        }
        (tuned, tuning)
    }
}

fn tuning_of(engine: DeflateEngine, level: u32, sizes: &Sizes, zlib: &Sizes) -> Tuning {
    Tuning {
        encoder: engine.to_string(),
        level,
        stored_nbytes: sizes.total(),
        zlib_nbytes: zlib.total(),
    }
}

/// Pieces from the middle of samples spread over all, of whole elements.
fn pieces_of<'a>(samples: &[&'a [u8]], itemsize: usize) -> Vec<&'a [u8]> {
    let itemsize = itemsize.max(1);
    let few = samples.len().min(PIECES);
    (0..few)
        .filter_map(|number| {
            let sample = samples.get((2 * number + 1) * samples.len() / (2 * few))?;
            let elements = sample.len() / itemsize;
            let wanted = (PIECE_NBYTES / itemsize).clamp(1, elements.max(1));
            let begin = elements.saturating_sub(wanted) / 2 * itemsize;
            sample.get(begin..(begin + wanted * itemsize).min(sample.len()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EncodeScratch, Encoder, Shuffle, Step};

    fn deflating(level: u32) -> Encoding {
        let encoders = [Encoder::Shuffle(Shuffle { element_size: 4 }), Encoder::deflate(level)];
        Encoding::new(encoders.map(|encoder| Step { encoder, optional: true }).to_vec())
    }

    /// Integers that count: what the fastest engines make is nearly twice zlib's.
    fn counting(seed: u32) -> Vec<u8> {
        (0..16384).flat_map(|i| (seed * 16384 + i).to_le_bytes()).collect()
    }

    /// Numbers whose lower halves are noise, on which all engines do alike.
    fn noisy(seed: u32) -> Vec<u8> {
        let mut state = u64::from(seed) * 2 + 1;
        (0..16384u32)
            .flat_map(|i| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((i / 64) << 16 | (state >> 48) as u32).to_le_bytes()
            })
            .collect()
    }

    fn nbytes(encoding: &Encoding, chunks: &[Vec<u8>]) -> usize {
        let (mut scratch, mut out) = (EncodeScratch::default(), Vec::new());
        let one = |chunk: &Vec<u8>| {
            encoding.encode(chunk, &mut scratch, &mut out).unwrap();
            out.len()
        };
        chunks.iter().map(one).sum()
    }

    #[test]
    fn data_that_differ_are_tried_anew() {
        for level in 1..=9 {
            let (stated, choices) = (deflating(level), Choices::default());
            let (mut stored, mut zlib) = (0, 0);
            for dataset in 0..24u32 {
                let make = if dataset % 3 == 1 { counting } else { noisy };
                let chunks: Vec<_> = (0..4).map(|chunk| make(dataset * 4 + chunk)).collect();
                let samples: Vec<_> = chunks.iter().map(Vec::as_slice).collect();
                let (tuned, tuning) = stated.tuned_like(Effort::AsStated, &samples, 4, &choices);
                let (own, beside) = (nbytes(&tuned, &chunks), nbytes(&stated, &chunks));
                assert!(own as f64 <= 1.02 * beside as f64, "{level} {dataset} {tuning:?}");
                stored += own;
                zlib += beside;
            }
            assert!(stored as f64 <= 1.01 * zlib as f64);
        }
    }

    #[test]
    fn data_that_are_alike_have_one_choice() {
        let (stated, choices) = (deflating(6), Choices::default());
        let engine = |dataset: u32| {
            let chunks: Vec<_> = (0..4).map(|chunk| noisy(dataset * 4 + chunk)).collect();
            let samples: Vec<_> = chunks.iter().map(Vec::as_slice).collect();
            stated.tuned_like(Effort::AsStated, &samples, 4, &choices).0.engine()
        };
        let first = engine(0);
        if DeflateEngine::Libdeflate(1).is_built() {
            assert_ne!(first, Some(DeflateEngine::Zlib(6)));
        }
        for dataset in 1..9 {
            assert_eq!(engine(dataset), first);
        }
        assert!(choices.locked().choices.len() <= 1);
    }

    #[test]
    fn where_zlib_is_best_it_is_not_asked_each_time() {
        let (stated, choices) = (deflating(6), Choices::default());
        for dataset in 0..20 {
            let chunk = counting(dataset);
            let (tuned, tuning) = stated.tuned_like(Effort::AsStated, &[&chunk], 4, &choices);
            let own = nbytes(&tuned, std::slice::from_ref(&chunk));
            let beside = nbytes(&stated, std::slice::from_ref(&chunk));
            assert!(own as f64 <= 1.02 * beside as f64, "{tuning:?}");
        }
    }

    #[test]
    fn odd_samples() {
        let choices = Choices::default();
        let stated = deflating(6);
        for _ in 0..3 {
            for samples in [&[][..], &[&[][..]], &[&[1u8][..]], &[&[1u8; 7], &[2; 100_000]]] {
                for itemsize in [0, 1, 12, 1 << 20] {
                    stated.tuned_like(Effort::AsStated, samples, itemsize, &choices);
                    stated.tuned_like(Effort::Fast, samples, itemsize, &choices);
                }
            }
        }
    }
}
