//! Which encoder makes a dataset's chunks small enough, soonest?

use std::fmt;

use crate::{EncodeScratch, Encoder, Encoding, Step};

/// What is asked of encoders that have a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// Files no larger than those of zlib at the level stated.
    #[default]
    AsStated,
    /// As fast as can be, whatever the size; what it costs is said.
    Fast,
}

/// What was chosen for a dataset, and what it costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// The encoder and its own level, such as "libdeflate 2".
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

impl Encoding {
    /// The same filters with the encoder of deflate chosen for data such as `samples`, whole
    /// raw chunks spread over the dataset; and what was chosen, None without deflate, at its
    /// level 0, or without samples.
    ///
    /// The same samples give the same choice.
    pub fn tuned(&self, effort: Effort, samples: &[&[u8]]) -> (Self, Option<Tuning>) {
        let Some((at, asked)) = self.steps().iter().enumerate().find_map(|(i, step)| {
            if let Encoder::Deflate { level: level @ 1.. } = step.encoder {
                Some((i, level))
            } else {
                None
            }
        }) else {
            return (self.clone(), None);
        };
        if samples.is_empty() {
            return (self.clone(), None);
        }
        let level = match effort {
            Effort::AsStated => asked,
            Effort::Fast => 1,
        };
        let mut steps = self.steps().to_vec();
        steps[at] = Step { encoder: Encoder::Deflate { level }, ..steps[at] };
        let tuned = Self::new(steps);
        let sum = |encoding: &Self| {
            let (mut scratch, mut out) = (EncodeScratch::default(), Vec::new());
            samples
                .iter()
                .map(|raw| encoding.encode(raw, &mut scratch, &mut out).map_or(0, |_| out.len()))
                .sum::<usize>()
        };
        let tuning = Tuning {
            encoder: format!("libdeflate {level}"),
            level: asked,
            stored_nbytes: sum(&tuned),
            zlib_nbytes: sum(self),
        };
        (tuned, Some(tuning))
    }
}
