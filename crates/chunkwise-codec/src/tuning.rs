//! Which engine makes a dataset's chunks small enough, soonest?
//!
//! No engine is right for all data: ISA-L makes satellite radiances smaller than zlib does at any
//! level, twenty times as fast, and integers that count twice as large.  So the candidates deflate
//! samples of the dataset's own chunks, fastest first, and zlib does at the level stated.  How
//! fast they are is taken from a table, not measured: the same samples give the same choice,
//! whatever else the machine does.

use std::fmt;

use crate::trial::{Crew, Sizes, Trial, alone, most_nbytes};
use crate::{DeflateEncoder, DeflateEngine, Effort, Encoder, Encoding};

/// What was chosen for a dataset, and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// The engine and its own level, such as "libdeflate 2".
    pub encoder: String,
    /// The level stated, of zlib.
    pub level: u32,
    /// What the samples came to, in bytes.
    pub stored_nbytes: usize,
    /// What zlib makes of them at the level stated.
    pub zlib_nbytes: usize,
}

impl Tuning {
    /// How much larger the samples are than zlib's, as a fraction: 0.02 is 2% larger.
    pub fn excess(&self) -> f64 {
        self.stored_nbytes as f64 / self.zlib_nbytes.max(1) as f64 - 1.0
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { encoder, level, .. } = self;
        if *encoder == DeflateEngine::Zlib(*level).to_string() {
            return f.write_str(encoder);
        }
        let percent = 100.0 * self.excess();
        write!(f, "{encoder}, {percent:+.1}% beside zlib {level} by samples")
    }
}

/// Candidates, fastest first, with MB/s of one thread on shuffled floating-point numbers.
const CANDIDATES: [(DeflateEngine, u32); 13] = [
    (DeflateEngine::Isal(1), 600),
    (DeflateEngine::Isal(2), 580),
    (DeflateEngine::Runs, 400),
    (DeflateEngine::Libdeflate(1), 180),
    (DeflateEngine::Libdeflate(2), 150),
    (DeflateEngine::Libdeflate(3), 140),
    (DeflateEngine::Libdeflate(5), 120),
    (DeflateEngine::Libdeflate(6), 105),
    (DeflateEngine::Libdeflate(7), 75),
    (DeflateEngine::Libdeflate(8), 42),
    (DeflateEngine::Libdeflate(9), 31),
    (DeflateEngine::Libdeflate(10), 15),
    (DeflateEngine::Libdeflate(11), 10),
];

/// The same of zlib at its levels 1 to 9.
const ZLIB_SPEEDS: [u32; 9] = [71, 70, 58, 54, 42, 29, 21, 9, 5];

/// Faster engines are tried beside zlib, the others one after another as long as none does.
const LIKELY_SPEED: u32 = 150;

/// An engine that makes more than zlib does must be this many times as fast as one that does not.
const WORTH: u32 = 2;

/// How much more it may make of the samples: who asks for low levels asks for speed.
pub(crate) const fn tolerance(level: u32) -> f64 {
    if level <= 3 { 0.015 } else { 0.01 }
}

/// How much more an engine may make of the dataset, as far as samples can tell.
pub(crate) const MOST_EXCESS: f64 = 0.02;

impl Encoding {
    /// The same filters with the engine of deflate chosen for data such as `samples`, whole raw
    /// chunks spread over the dataset; and what was chosen, None without deflate, at its level
    /// 0, or without samples.
    ///
    /// It takes as long as encoding one or two MiB of the samples, or one chunk, with zlib and a
    /// few others: a twentieth of a second at usual levels.  The same samples give the same
    /// choice; more than 20 are of use where chunks are small.
    pub fn tuned(&self, effort: Effort, samples: &[&[u8]]) -> (Self, Option<Tuning>) {
        self.tuned_by(effort, samples, usize::MAX, None, &alone)
    }

    /// The same, tried by a `crew` of threads; None, too, where more than `limit` bytes of the
    /// samples would have to be tried, which would take longer than it gains.
    ///
    /// With `former`, these are other samples of a dataset that was begun with its engine, which
    /// is given up only where they speak against it, so that chance does not decide.
    pub fn tuned_by(
        &self,
        effort: Effort,
        samples: &[&[u8]],
        limit: usize,
        former: Option<&Self>,
        crew: Crew<'_>,
    ) -> (Self, Option<Tuning>) {
        self.chosen(effort, samples, limit, former.and_then(Self::engine), crew)
    }

    /// Whether there is an engine to choose.
    pub fn has_engines(&self) -> bool {
        self.deflate().is_some()
    }

    /// The engine of its deflate.
    pub(crate) fn engine(&self) -> Option<DeflateEngine> {
        self.steps().iter().find_map(|step| match step.encoder {
            Encoder::Deflate(DeflateEncoder { engine, .. }) => Some(engine),
            _ => None,
        })
    }

    fn chosen(
        &self,
        effort: Effort,
        samples: &[&[u8]],
        limit: usize,
        former: Option<DeflateEngine>,
        crew: Crew<'_>,
    ) -> (Self, Option<Tuning>) {
        let chosen = self.deflate().and_then(|(at, level)| {
            let most = most_nbytes(effort, level);
            // Whether what is in use still does is asked several times, of a dataset that grows.
            let most = if former.is_some() { most / 2 } else { most };
            let trial = Trial::new(self.steps(), at, (most, limit), samples)?;
            let stated = DeflateEngine::Zlib(level);
            // Zlib takes longer than all of these, one of which is mostly chosen.
            let likely = built(LIKELY_SPEED).map(|(engine, _)| engine);
            let first: Vec<DeflateEngine> = std::iter::once(stated).chain(likely).collect();
            let tried = trial.sizes_of(&first, crew);
            let sizes = |engine| match first.iter().position(|&one| one == engine) {
                Some(place) => tried[place].clone(),
                None => trial.sizes_of(&[engine], crew).pop().flatten(),
            };
            let zlib = sizes(stated)?;
            let (engine, sizes) = match effort {
                Effort::AsStated => as_stated(level, &zlib, former, sizes),
                Effort::Fast => fastest(sizes)?,
            };
            let tuning = Tuning {
                encoder: engine.to_string(),
                level,
                stored_nbytes: sizes.total(),
                zlib_nbytes: zlib.total(),
            };
            Some((self.with_engine(at, level, engine)?, tuning))
        });
        match chosen {
            Some((encoding, tuning)) => (encoding, Some(tuning)),
            None => (self.clone(), None),
        }
    }

    /// Where deflate stands among the filters, and its level; None where there is no choice.
    pub(crate) fn deflate(&self) -> Option<(usize, u32)> {
        self.steps().iter().enumerate().find_map(|(at, step)| match step.encoder {
            Encoder::Deflate(DeflateEncoder { level: level @ 1..=9, .. }) => Some((at, level)),
            _ => None,
        })
    }

    /// The same filters with another engine for the deflate at place `at`.
    pub(crate) fn with_engine(&self, at: usize, level: u32, engine: DeflateEngine) -> Option<Self> {
        let mut steps = self.steps().to_vec();
        steps.get_mut(at)?.encoder = Encoder::Deflate(DeflateEncoder { level, engine });
        Some(Self::new(steps))
    }
}

/// The candidates faster than `speed` that this program has.
fn built(speed: u32) -> impl Iterator<Item = (DeflateEngine, u32)> {
    CANDIDATES.into_iter().filter(move |(engine, fast)| engine.is_built() && *fast > speed)
}

/// The fastest engine, and what it makes.  Of data that are mostly runs, which tell themselves by
/// what they come to, that is the one for runs.
fn fastest(sizes: impl Fn(DeflateEngine) -> Option<Sizes>) -> Option<(DeflateEngine, Sizes)> {
    let others = built(0).filter(|(engine, _)| *engine != DeflateEngine::Runs);
    let other = others.map(|(engine, _)| engine).find_map(|engine| Some((engine, sizes(engine)?)));
    let (engine, made) = other?;
    match sizes(DeflateEngine::Runs) {
        Some(runs) if 2 * runs.total() < made.total() => Some((DeflateEngine::Runs, runs)),
        _ => Some((engine, made)),
    }
}

/// The fastest engine that makes no more than zlib does at `level`, or a little more where that
/// is worth it; and what it makes.
fn as_stated(
    level: u32,
    zlib: &Sizes,
    former: Option<DeflateEngine>,
    sizes: impl Fn(DeflateEngine) -> Option<Sizes>,
) -> (DeflateEngine, Sizes) {
    let zlib_speed = ZLIB_SPEEDS.get(level.saturating_sub(1) as usize).copied().unwrap_or(0);
    let mut tolerable: Option<(DeflateEngine, Sizes, u32)> = None;
    for (engine, speed) in built(zlib_speed) {
        if tolerable.as_ref().is_some_and(|(_, _, faster)| *faster >= WORTH * speed) {
            break;
        }
        let Some(sizes) = sizes(engine) else { continue };
        let (excess, at_most) = sizes.excess(zlib);
        if former == Some(engine) && holds(level, excess, at_most) {
            return (engine, sizes);
        }
        if at_most > MOST_EXCESS {
            continue;
        }
        if excess <= 0.0 {
            return (engine, sizes);
        }
        if excess <= tolerance(level) && tolerable.is_none() {
            tolerable = Some((engine, sizes, speed));
        }
    }
    match tolerable {
        Some((engine, sizes, speed)) if speed >= WORTH * zlib_speed => (engine, sizes),
        _ => (DeflateEngine::Zlib(level), zlib.clone()),
    }
}

/// Whether an engine in use stays in use.  Where speed is asked for, it does unless more than a
/// standard error speaks against it.
fn holds(level: u32, excess: f64, at_most: f64) -> bool {
    let doubt = if level <= 3 { (at_most - excess) / 2.0 } else { 0.0 };
    excess - doubt <= if level <= 3 { MOST_EXCESS } else { tolerance(level) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EncodeScratch, Shuffle, Step};

    /// What an engine makes of samples of which zlib makes 1000 bytes each, in `as_stated`.
    fn chosen(level: u32, made: impl Fn(DeflateEngine) -> usize) -> DeflateEngine {
        let sizes = |nbytes| Sizes { nbytes: vec![nbytes; 9], unknown: 0.0 };
        as_stated(level, &sizes(1000), None, |engine| Some(sizes(made(engine)))).0
    }

    #[test]
    fn the_fastest_that_makes_no_more_is_chosen() {
        let libdeflate =
            |engine, wanted| matches!(engine, DeflateEngine::Libdeflate(n) if n >= wanted);
        for wanted in [1, 2, 3, 5, 6] {
            let made = |engine| if libdeflate(engine, wanted) { 1000 } else { 1100 };
            assert_eq!(chosen(4, made), DeflateEngine::Libdeflate(wanted));
        }
        assert_eq!(chosen(4, |_| 1100), DeflateEngine::Zlib(4));
        let slowest = |engine| if libdeflate(engine, 9) { 1000 } else { 1100 };
        // Those that make no more are slower than zlib.
        assert_eq!(chosen(4, slowest), DeflateEngine::Zlib(4));
        assert_eq!(chosen(8, slowest), DeflateEngine::Libdeflate(9));
    }

    #[test]
    fn a_little_more_is_taken_where_much_is_gained() {
        use DeflateEngine::{Libdeflate, Zlib};
        let made = |first, second| {
            move |engine| match engine {
                Libdeflate(1) => first,
                Libdeflate(2) => second,
                Libdeflate(_) | DeflateEngine::Isal(_) | Zlib(_) | DeflateEngine::Runs => 1100,
            }
        };
        assert_eq!(chosen(4, made(1009, 1000)), Libdeflate(2));
        assert_eq!(chosen(4, made(1009, 1100)), Libdeflate(1));
        assert_eq!(chosen(4, made(1011, 1100)), Zlib(4));
        assert_eq!(chosen(3, made(1014, 1100)), Libdeflate(1));
        assert_eq!(chosen(3, made(1016, 1014)), Libdeflate(2));
        if Libdeflate(1).is_built() && DeflateEngine::Isal(1).is_built() {
            let fast = |engine| if engine == Libdeflate(1) { 990 } else { 1009 };
            assert_eq!(chosen(1, fast), DeflateEngine::Isal(1));
        }
    }

    #[test]
    fn runs_are_deflated_by_the_engine_for_them() {
        let chunk: Vec<u8> =
            (0..90u32).flat_map(|row| (row as f32).sqrt().to_le_bytes().repeat(360)).collect();
        for effort in [Effort::AsStated, Effort::Fast] {
            for level in [1, 4, 9] {
                let plain = Encoding::new(deflating(level).steps()[1..].to_vec());
                let (_, tuning) = plain.tuned(effort, &[&chunk[..]; 4]);
                let tuning = tuning.unwrap();
                // Where there is no ISA-L, libdeflate is the fastest in its place.
                let other = !DeflateEngine::Isal(1).is_built()
                    && (level == 1 || matches!(effort, Effort::Fast));
                let least = level > 1 && tuning.excess() <= 0.0;
                assert!(tuning.encoder == "runs" || least || other, "{level}: {tuning}");
            }
        }
        let sizes = |runs| {
            move |engine| {
                let nbytes = if engine == DeflateEngine::Runs { runs } else { 1000 };
                Some(Sizes { nbytes: vec![nbytes], unknown: 0.0 })
            }
        };
        assert_eq!(fastest(sizes(499)).map(|made| made.0), Some(DeflateEngine::Runs));
        assert_ne!(fastest(sizes(501)).map(|made| made.0), Some(DeflateEngine::Runs));
    }

    #[test]
    fn an_engine_in_use_stays_unless_samples_speak_against_it() {
        use DeflateEngine::{Libdeflate, Zlib};
        let chosen = |level, first: [usize; 2]| {
            let sizes = |nbytes: [usize; 2]| Sizes { nbytes: nbytes.to_vec(), unknown: 0.0 };
            let made = |engine| match engine {
                Libdeflate(1) => Some(sizes(first)),
                Zlib(_) => Some(sizes([1000; 2])),
                Libdeflate(_) | DeflateEngine::Isal(_) | DeflateEngine::Runs => None,
            };
            as_stated(level, &sizes([1000; 2]), Some(Libdeflate(1)), made).0
        };
        // 1% more, give or take 4% or nothing.
        assert_eq!(chosen(4, [970, 1049]), Libdeflate(1));
        assert_eq!(chosen(4, [1030, 1010]), Zlib(4));
        assert_eq!(chosen(1, [1000, 1060]), Libdeflate(1));
        assert_eq!(chosen(1, [1060, 1060]), Zlib(1));
    }

    fn deflating(level: u32) -> Encoding {
        let encoders = [Encoder::Shuffle(Shuffle { element_size: 4 }), Encoder::deflate(level)];
        Encoding::new(encoders.map(|encoder| Step { encoder, optional: true }).to_vec())
    }

    /// Integers that count: what the fastest engines make is nearly twice zlib's.
    fn counting(chunk: u32) -> Vec<u8> {
        (0..2500).flat_map(|i| (chunk * 2500 + i).to_le_bytes()).collect()
    }

    #[test]
    fn files_are_not_much_larger_than_zlibs() {
        let chunks: Vec<_> = (0..8).map(counting).collect();
        let samples: Vec<_> = chunks.iter().map(Vec::as_slice).collect();
        let stored = |encoding: &Encoding| {
            let (mut scratch, mut out) = (EncodeScratch::default(), Vec::new());
            let nbytes = |chunk: &Vec<u8>| {
                encoding.encode(chunk, &mut scratch, &mut out).unwrap();
                out.len()
            };
            chunks.iter().map(nbytes).sum::<usize>()
        };
        for level in 1..=9 {
            for steps in [deflating(level).steps(), &deflating(level).steps()[1..]] {
                let stated = Encoding::new(steps.to_vec());
                let (tuned, tuning) = stated.tuned(Effort::AsStated, &samples);
                let tuning = tuning.unwrap();
                assert_eq!(
                    stated.tuned(Effort::AsStated, &samples),
                    (tuned.clone(), Some(tuning.clone()))
                );
                assert_eq!((tuning.level, tuning.zlib_nbytes), (level, stored(&stated)));
                assert_eq!(tuning.stored_nbytes, stored(&tuned));
                assert!(tuning.excess() <= MOST_EXCESS, "{tuning}");
            }
            let (fast, tuning) = deflating(level).tuned(Effort::Fast, &samples);
            assert_eq!(tuning.unwrap().stored_nbytes, stored(&fast));
        }
    }

    #[test]
    fn where_there_is_no_choice_nothing_changes() {
        let chunk = counting(0);
        let shuffled = Encoding::new(deflating(1).steps()[..1].to_vec());
        for (encoding, samples) in
            [(shuffled, vec![&chunk[..]]), (deflating(0), vec![&chunk]), (deflating(4), vec![])]
        {
            for effort in [Effort::AsStated, Effort::Fast] {
                assert_eq!(encoding.tuned(effort, &samples), (encoding.clone(), None));
            }
        }
        // Nor where to try a chunk would take longer than to encode all.
        for (limit, tried) in [(chunk.len() - 1, false), (chunk.len(), true)] {
            let (tuned, tuning) =
                deflating(4).tuned_by(Effort::AsStated, &[&chunk], limit, None, &alone);
            assert_eq!(tuning.is_some(), tried);
            assert!(tried || tuned == deflating(4));
        }
        // Nor does an empty chunk, or one byte, tell anything.
        for samples in [&[&[][..]][..], &[&[1u8][..]]] {
            let (tuned, _) = deflating(4).tuned(Effort::AsStated, samples);
            assert_eq!(tuned.steps().len(), 2);
        }
    }
}
