//! When is deflate's encoder chosen for what is being written, and by which chunks?

use std::borrow::Cow;

use chunkwise_codec::{Effort, Encoding, Tuning};

use crate::crew::share;
use crate::process::thread_count;
use crate::write::WriteError;
use crate::write::buffers::Buffers;
use crate::write::chunk_maker::{ChunkJob, ChunkMaker, Stored};

/// Chunks by which deflate's encoder is chosen first, at least.
const SAMPLES: usize = 4;

/// Each time it takes about as many bytes, of at most this many chunks.
const SAMPLES_NBYTES: usize = 1 << 19;
const MOST_SAMPLES: usize = 16;

/// At most such a part of the dataset is tried: to try takes several times as long as to encode.
const TRIED_PART: u64 = 4;

/// Samples are kept for the next choice unless they take more.
const MOST_KEPT_NBYTES: usize = 8 << 20;

/// It is chosen anew when this many bytes are made, ...
const SECOND_NBYTES: u64 = 8 << 20;

/// ... and from then on whenever there are this many times as many.
const GROWTH: u64 = 3;

/// When deflate's encoder is chosen next, and by what beside the chunks of then.
#[derive(Default)]
pub(super) struct EncoderChoice {
    made_nbytes: u64,
    next_nbytes: u64,
    samples: Vec<Vec<u8>>,
}

impl EncoderChoice {
    /// Choose when this many bytes are made, and not before: until then the encoding is as stated.
    pub(super) fn from(nbytes: u64) -> Self {
        Self { next_nbytes: nbytes, ..Self::default() }
    }

    /// Choose by some of these chunks and of those before, when it is time; `former` is the
    /// encoding in use, if one was chosen.
    ///
    /// A dataset need not begin as it goes on, and so what was chosen is looked at again each
    /// time that there are [`GROWTH`] times as many bytes.
    pub(super) fn made(
        &mut self,
        maker: &ChunkMaker<'_>,
        jobs: &[ChunkJob],
        stored: &[Stored],
        effort: Effort,
        former: Option<&Encoding>,
    ) -> Result<Option<(Encoding, Option<Tuning>)>, WriteError> {
        let nbytes = (jobs.len() as u64).saturating_mul(maker.chunk_nbytes as u64);
        self.made_nbytes = self.made_nbytes.saturating_add(nbytes);
        let again = former.is_some();
        if self.made_nbytes < self.next_nbytes {
            return Ok(None);
        }
        let most = (SAMPLES_NBYTES / maker.chunk_nbytes.max(1)).clamp(1, MOST_SAMPLES);
        let most = if again { most } else { most.max(SAMPLES) };
        // As many of each stretch as it is long.
        let kept = std::mem::take(&mut self.samples).into_iter().step_by(GROWTH as usize);
        let mut samples: Vec<Cow<'_, [u8]>> = kept.map(Cow::Owned).collect();
        for at in (0..jobs.len()).step_by(jobs.len().div_ceil(most).max(1)) {
            let mut buffers = Buffers::default();
            let elsewhere = maker.raw(&jobs[at], &stored[at], &mut buffers)?;
            samples.push(elsewhere.map_or(Cow::Owned(buffers.raw), Cow::Borrowed));
        }
        let spread: Vec<&[u8]> = samples.iter().map(AsRef::as_ref).collect();
        let stated = &maker.info.encoding;
        let limit = match effort {
            Effort::AsStated => {
                let all = self.made_nbytes.max(nbytes_of(maker, maker.grid.shape()));
                usize::try_from(all / TRIED_PART).unwrap_or(usize::MAX)
            }
            Effort::Fast => usize::MAX,
        };
        let crew = |work: &(dyn Fn() + Sync)| share(thread_count().saturating_sub(1), work);
        let (encoding, tuning) = stated.tuned_by(effort, &spread, limit, former, &crew);
        // Where there is no choice, or it does not depend on the data, it stays.
        let settled = !stated.has_engines() || effort == Effort::Fast;
        self.next_nbytes = if settled {
            u64::MAX
        } else {
            self.made_nbytes.saturating_mul(GROWTH).max(SECOND_NBYTES)
        };
        if !settled
            && nbytes_of(maker, &maker.info.max_shape) >= self.next_nbytes
            && samples.len().saturating_mul(maker.chunk_nbytes) <= MOST_KEPT_NBYTES
        {
            self.samples = samples.into_iter().map(Cow::into_owned).collect();
        }
        Ok((settled || tuning.is_some()).then_some((encoding, tuning)))
    }
}

/// Bytes of a dataset of this shape.
fn nbytes_of(maker: &ChunkMaker<'_>, shape: &[u64]) -> u64 {
    shape.iter().fold(maker.info.element_size as u64, |nbytes, &len| nbytes.saturating_mul(len))
}
