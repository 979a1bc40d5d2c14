//! Which engine makes a dataset's chunks small enough, soonest?
//!
//! No engine is right for all data: ISA-L makes satellite radiances smaller than zlib does at any
//! level, twenty times as fast, and counted integers twice as large.  So the candidates deflate
//! samples of the dataset's own chunks, fastest first, and zlib does at the level stated.  How
//! fast they are is taken from a table, not measured: the same samples give the same choice,
//! whatever else the machine does.

use std::fmt;

use crate::deflater::Deflater;
use crate::{DeflateEngine, EncodeScratch, Encoder, Encoding, Step};

/// What is asked of encoders that have a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// Files no larger than those of zlib at the level stated, or hardly so.
    #[default]
    AsStated,
    /// As fast as can be, whatever the size; what it costs is said.
    Fast,
}

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
        write!(f, "{encoder}, {:+.1}% beside zlib {level}", 100.0 * self.excess())
    }
}

/// Candidates, fastest first, with MB/s of one thread on shuffled floating-point numbers.
const CANDIDATES: [(DeflateEngine, u32); 12] = [
    (DeflateEngine::Isal(1), 600),
    (DeflateEngine::Isal(2), 580),
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

/// The same of zlib at its levels 0 to 9.
const ZLIB_SPEEDS: [u32; 10] = [600, 71, 70, 58, 54, 42, 29, 21, 9, 5];

/// An engine that makes more than zlib does must be so many times as fast as one that does not.
const WORTH: u32 = 2;

/// How much more it may make, in thousandths: who asks for low levels asks for speed.  The rest
/// up to 2% is left to what samples do not tell.
const fn tolerance(level: u32) -> usize {
    if level <= 3 { 15 } else { 10 }
}

/// Bytes that are tried: more at levels at which zlib takes less time.
const fn most_nbytes(level: u32) -> usize {
    if level <= 6 { 2 << 20 } else { 1 << 20 }
}

/// Larger chunks are tried in parts of this length.
const PART_NBYTES: usize = 512 << 10;

impl Encoding {
    /// The same filters with the engine of deflate chosen for data such as `samples`, whole raw
    /// chunks spread over the dataset; and what was chosen, None without deflate, at its level
    /// 0, or without samples.
    ///
    /// It takes as long as encoding up to 2 MiB of the samples with zlib and a few others: a
    /// tenth of a second at usual levels.  The same samples give the same choice.
    pub fn tuned(&self, effort: Effort, samples: &[&[u8]]) -> (Self, Option<Tuning>) {
        let found = self.steps().iter().enumerate().find_map(|(at, step)| match step.encoder {
            Encoder::Deflate { level: level @ 1..=9, .. } => Some((at, level)),
            _ => None,
        });
        let chosen = found.and_then(|(at, level)| {
            let trial = Trial::new(self.steps(), at, most_nbytes(level), samples)?;
            let zlib_nbytes = trial.nbytes(DeflateEngine::Zlib(level))?;
            let (engine, stored_nbytes) = match effort {
                Effort::AsStated => as_stated(level, zlib_nbytes, |engine| trial.nbytes(engine)),
                Effort::Fast => built(0).find_map(|(engine, _)| {
                    trial.nbytes(engine).map(|stored_nbytes| (engine, stored_nbytes))
                })?,
            };
            let tuning = Tuning { encoder: engine.to_string(), level, stored_nbytes, zlib_nbytes };
            let mut steps = self.steps().to_vec();
            steps.get_mut(at)?.encoder = Encoder::Deflate { level, engine };
            Some((Self::new(steps), tuning))
        });
        match chosen {
            Some((encoding, tuning)) => (encoding, Some(tuning)),
            None => (self.clone(), None),
        }
    }
}

/// The candidates faster than `speed` that this program has.
fn built(speed: u32) -> impl Iterator<Item = (DeflateEngine, u32)> {
    CANDIDATES.into_iter().filter(move |(engine, fast)| engine.is_built() && *fast > speed)
}

/// The fastest engine that makes no more than zlib's `zlib_nbytes` at `level`, or a little more
/// where that is worth it; and what it makes.
fn as_stated(
    level: u32,
    zlib_nbytes: usize,
    nbytes: impl Fn(DeflateEngine) -> Option<usize>,
) -> (DeflateEngine, usize) {
    let zlib_speed = ZLIB_SPEEDS.get(level as usize).copied().unwrap_or_default();
    let within = zlib_nbytes.saturating_add(zlib_nbytes / 1000 * tolerance(level));
    let mut tolerable: Option<(DeflateEngine, usize, u32)> = None;
    for (engine, speed) in built(zlib_speed) {
        if let Some((engine, nbytes, faster)) = tolerable
            && faster >= WORTH * speed
        {
            return (engine, nbytes);
        }
        match nbytes(engine) {
            Some(nbytes) if nbytes <= zlib_nbytes => return (engine, nbytes),
            Some(nbytes) if nbytes <= within && tolerable.is_none() => {
                tolerable = Some((engine, nbytes, speed));
            }
            _ => (),
        }
    }
    match tolerable {
        Some((engine, nbytes, speed)) if speed >= WORTH * zlib_speed => (engine, nbytes),
        _ => (DeflateEngine::Zlib(level), zlib_nbytes),
    }
}

/// What deflate is given for each sample.
struct Trial {
    parts: Vec<Vec<u8>>,
    /// Whether chunks that do not shrink are stored as they are.
    optional: bool,
}

impl Trial {
    /// For the deflate at place `at`; None where nothing comes to it.
    fn new(steps: &[Step], at: usize, most: usize, samples: &[&[u8]]) -> Option<Self> {
        let (before, deflate) = (steps.get(..at)?, steps.get(at)?);
        let unit = before.iter().try_fold(1, |unit: usize, step| match step.encoder {
            Encoder::Shuffle { element_size } => unit.checked_mul(element_size),
            Encoder::Fletcher32 => Some(unit),
            // What the filter makes of a part may tell nothing of what it makes of a chunk.
            _ => None,
        });
        let before = Encoding::new(before.to_vec());
        let mut scratch = EncodeScratch::default();
        let parts = parts(samples, unit, most).into_iter().filter_map(|part| {
            let mut out = Vec::new();
            before.encode(part, &mut scratch, &mut out).is_ok().then_some(out)
        });
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        (!parts.is_empty()).then_some(Self { parts, optional: deflate.optional })
    }

    /// What `engine` makes of all; None where it fails.
    fn nbytes(&self, engine: DeflateEngine) -> Option<usize> {
        let (mut deflater, mut out) = (Deflater::default(), Vec::new());
        let stored = self.parts.iter().map(|part| {
            deflater
                .deflate(engine, part, &mut out)
                .is_ok_and(|done| done)
                .then(|| if self.optional { out.len().min(part.len()) } else { out.len() })
        });
        stored.sum()
    }
}

/// About `most` bytes of the samples, spread over them: whole ones, or parts of large ones, which
/// begin and end at multiples of `unit`; without a unit, only whole ones.
fn parts<'a>(samples: &[&'a [u8]], unit: Option<usize>, most: usize) -> Vec<&'a [u8]> {
    let longest = samples.iter().map(|sample| sample.len()).max().unwrap_or(0);
    let part = match unit {
        Some(unit) => longest.min(PART_NBYTES.next_multiple_of(unit)),
        None => longest,
    };
    let (unit, part) = (unit.unwrap_or(1), part.max(1));
    let count = (most / part).clamp(1, samples.len().saturating_mul(longest / part).max(1));
    // In the middle of each of `count` stretches of equal length.
    (0..count)
        .filter_map(|i| {
            let place = (2 * i + 1) * samples.len();
            let sample = samples.get(place / (2 * count))?;
            let free = sample.len().saturating_sub(part);
            let begin = free / (2 * count) * (place % (2 * count)) / unit * unit;
            sample.get(begin..sample.len().min(begin + part))
        })
        .collect()
}
