//! How do a chunk's stored bytes become the bytes it holds?

use crate::{
    Blocks, DecodeError, Filter, FilterKind, Fletcher32, Output, PassedOver, Scratch, fletcher32,
    resize,
};

/// A dataset's filters, in the order in which they were applied when writing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pipeline {
    filters: Vec<Filter>,
}

/// What comes out of a filter, other than the last to be undone, may be this many times a chunk...
const MOST_OVERSIZE: usize = 2;
/// ...or this many bytes, before it is given up: libhdf5 has no limit, and a file of a few bytes
/// could take all memory.
const MOST_BETWEEN_NBYTES: usize = 4 << 20;
const CHECKSUM: Filter = Filter::Fletcher32(Fletcher32);

impl Pipeline {
    /// `filters` in pipeline order, the first applied first when writing.
    pub fn new(filters: Vec<Filter>) -> Self {
        Self { filters }
    }

    /// The filters, in pipeline order.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// Whether a chunk with this filter mask is stored as it is.
    pub fn is_identity(&self, filter_mask: u32) -> bool {
        (0..self.filters.len()).all(|i| masked(filter_mask, i))
    }

    /// Whether chunks with this filter mask are stored in [`Blocks`], as far as the filters tell.
    pub fn has_blocks(&self, filter_mask: u32) -> bool {
        self.only_filter(filter_mask).is_some_and(Filter::is_in_blocks)
    }

    /// The blocks of a chunk of `raw_len` bytes, of which all stored bytes are at hand; None where
    /// it is not stored in blocks that can be decoded one by one, or is damaged.
    pub fn blocks<'a>(
        &self,
        stored: &'a [u8],
        filter_mask: u32,
        raw_len: usize,
        scratch: &mut Scratch,
    ) -> Option<Blocks<'a>> {
        Blocks::new(self.only_filter(filter_mask)?, stored, raw_len, &mut scratch.state)
    }

    /// The filter mask of a chunk of which the deflate stream was inflated already, to just the chunk's
    /// length; None where its stored bytes are no such stream.
    pub fn mask_when_inflated(&self, filter_mask: u32) -> Option<u32> {
        let mut applied = (0..self.filters.len()).rev().filter(|&i| !masked(filter_mask, i));
        let last =
            applied.next().filter(|&last| matches!(self.filters[last], Filter::Deflate(_)))?;
        let shuffled = applied.all(|i| matches!(self.filters[i], Filter::Shuffle(_)));
        let bit = 1u32.checked_shl(u32::try_from(last).ok()?)?;
        shuffled.then_some(filter_mask | bit)
    }

    /// The filter that was applied, if it is a single one.
    fn only_filter(&self, filter_mask: u32) -> Option<&Filter> {
        let mut applied = (0..self.filters.len()).filter(|&i| !masked(filter_mask, i));
        let only = applied.next()?;
        applied.next().is_none().then(|| &self.filters[only])
    }

    /// Whether `stored_len` bytes could decode to a chunk of `raw_len` at all, so that
    /// no memory need be spent on one that cannot.
    ///
    /// # Errors
    /// [`DecodeError::CannotHold`] when they could not.
    pub fn check_len(
        &self,
        stored_len: usize,
        filter_mask: u32,
        raw_len: usize,
    ) -> Result<(), DecodeError> {
        let applied = (0..self.filters.len()).rev().filter(|&i| !masked(filter_mask, i));
        let most = applied.fold(stored_len, |most, i| self.filters[i].decoder().most_decoded(most));
        if most < raw_len { Err(DecodeError::CannotHold { stored_len, raw_len }) } else { Ok(()) }
    }

    /// Decode `stored` into `out`, which is of exactly a chunk's length.
    ///
    /// Bit `i` of `filter_mask` says that filter `i` was not applied to this chunk
    /// (`H5Dget_chunk_info`).  Bytes that decode beyond a chunk's length are dropped,
    /// as libhdf5 drops them.
    ///
    /// # Errors
    /// When a filter finds damage or fewer bytes come out than a chunk holds; `out` is
    /// then unspecified.
    pub fn decode(
        &self,
        stored: &[u8],
        filter_mask: u32,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        let expected = out.len();
        let len = self.decode_in_steps(stored, filter_mask, scratch, out, |_| ())?;
        if len < expected { Err(DecodeError::TooShort { len, expected }) } else { Ok(()) }
    }

    /// As [`decode_in_steps`](Self::decode_in_steps), and say what was passed over: nothing, of a
    /// chunk that is as it was written.
    ///
    /// # Errors
    /// The same.
    pub fn decode_strictly(
        &self,
        stored: &[u8],
        filter_mask: u32,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<(PassedOver, usize), DecodeError> {
        self.run(stored, filter_mask, scratch, out, |_| ())
    }

    /// As [`decode`](Self::decode), and give how many bytes came out: those that a short stream
    /// lacks are zero.  `done` is called after each filter.
    ///
    /// # Errors
    /// When a filter finds damage; `out` is then unspecified.
    pub fn decode_in_steps(
        &self,
        stored: &[u8],
        filter_mask: u32,
        scratch: &mut Scratch,
        out: &mut [u8],
        done: impl FnMut(FilterKind),
    ) -> Result<usize, DecodeError> {
        self.run(stored, filter_mask, scratch, out, done).map(|(_, len)| len)
    }

    fn run(
        &self,
        stored: &[u8],
        filter_mask: u32,
        scratch: &mut Scratch,
        out: &mut [u8],
        mut done: impl FnMut(FilterKind),
    ) -> Result<(PassedOver, usize), DecodeError> {
        #[cfg(feature = "simulated")]
        crate::simulated::wait();
        let mut passed_over = PassedOver::default();
        let Scratch { buffers: [first, second], state } = scratch;
        let raw_len = out.len();
        // What the next stage reads: the stored bytes at first (None), then that many
        // bytes of `from`.
        let mut current: Option<usize> = None;
        let (mut from, mut to) = (&mut *first, &mut *second);
        let mut left = (0..self.filters.len()).filter(|&i| !masked(filter_mask, i)).count();
        for (i, filter) in self.filters.iter().enumerate().rev() {
            if masked(filter_mask, i) {
                continue;
            }
            left -= 1;
            let source: &[u8] = match current {
                None => stored,
                Some(len) => &from[..len],
            };
            if *filter == CHECKSUM {
                let len = fletcher32::verify(source)?.len();
                done(filter.kind());
                if current.is_some() {
                    // In place: only the end moves.
                    current = Some(len);
                    continue;
                }
                if left == 0 {
                    return Ok(finish(&stored[..len], out, passed_over));
                }
                resize(to, len).map_err(|_| DecodeError::Memory { nbytes: len })?;
                to.copy_from_slice(&stored[..len]);
            } else {
                let expected = self.len_before(i, filter_mask, raw_len);
                let most = raw_len.saturating_mul(MOST_OVERSIZE).max(MOST_BETWEEN_NBYTES);
                let most = most.max(source.len());
                let chunk = (left == 0).then_some(&mut *out);
                let mut output = Output::new(filter.kind().name(), chunk, to, expected, most);
                filter.decoder().decode(source, state, &mut output)?;
                done(filter.kind());
                passed_over = passed_over.and(output.passed_over(source.len()));
                if let Some(len) = output.in_chunk() {
                    out[len..].fill(0);
                    return Ok((passed_over, len));
                }
            }
            std::mem::swap(&mut from, &mut to);
            current = Some(from.len());
        }
        Ok(match current {
            None => finish(stored, out, passed_over),
            Some(len) => finish(&from[..len], out, passed_over),
        })
    }

    /// Bytes that came into filter `i` when a chunk of `raw_len` bytes was written, as
    /// far as the filters before it say; a guess where one that compresses comes first.
    fn len_before(&self, i: usize, filter_mask: u32, raw_len: usize) -> usize {
        let checksums =
            (0..i).filter(|&k| !masked(filter_mask, k) && self.filters[k] == CHECKSUM).count();
        raw_len.saturating_add(checksums * fletcher32::CHECKSUM_LEN)
    }
}

/// Whether bit `i` of the mask is set; filters beyond 32 are always applied.
fn masked(filter_mask: u32, i: usize) -> bool {
    u32::try_from(i).ok().and_then(|i| filter_mask.checked_shr(i)).is_some_and(|m| m & 1 == 1)
}

/// Copy what was decoded to the chunk, with zeros for what it lacks.
fn finish(decoded: &[u8], out: &mut [u8], passed_over: PassedOver) -> (PassedOver, usize) {
    let len = decoded.len().min(out.len());
    out[..len].copy_from_slice(&decoded[..len]);
    out[len..].fill(0);
    let beyond_chunk = decoded.len() > out.len();
    (passed_over.and(PassedOver { trailing_nbytes: 0, beyond_chunk }), len)
}
