//! How are some bytes of a block decoded, and the others left alone?
//!
//! A stream ends for us where nothing after it is wanted, if its compressor can stop there, and one
//! that is stored as it is gives only what is wanted.  Of shuffled elements, those that are wanted
//! are put together.

use std::ops::Range;

use super::{DAMAGED, Streams};
use crate::bytes::Reader;
use crate::memory::copy;
use crate::state::State;
use crate::{DecodeError, resize, shuffle};

impl Streams {
    /// Whether some bytes of a block cost less than all of them.
    pub(super) fn gives_some(&self) -> bool {
        // Bits are put together in rows of eight elements.
        !self.bits_shuffled
    }

    /// Decode `runs` of a block to their places in `out`, which is the block; its other bytes are
    /// unspecified.  What is stored is copied to `copied` before it is decompressed, so that it may
    /// change meanwhile.
    ///
    /// # Panics
    /// When a run reaches beyond the block.
    pub(super) fn decode_some(
        &self,
        stored: &[u8],
        runs: &[Range<usize>],
        copied: &mut Vec<u8>,
        state: &mut State,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        let (size, nbytes) = (self.element_size, out.len());
        let first = runs.iter().map(|run| run.start).min().unwrap_or(0);
        let last = runs.iter().map(|run| run.end).max().unwrap_or(0);
        let elements = nbytes / size;
        if !self.shuffled || elements < 2 {
            return self.decompress_some(
                stored,
                &|stream| {
                    let inside = |byte: usize| byte.clamp(stream.start, stream.end) - stream.start;
                    inside(first)..inside(last)
                },
                copied,
                state,
                out,
            );
        }
        // What is left over by elements comes after their bytes.
        let whole = elements * size;
        let (begin, end) = (first / size, last.div_ceil(size).min(elements));
        let wanted = |stream: Range<usize>| match stream.len() {
            len if len < nbytes => begin..end,
            _ if last > whole => begin.min(whole)..last,
            _ => begin..whole - elements + end,
        };
        let mut packed = std::mem::take(&mut state.packed);
        let sized = resize(&mut packed, nbytes).map_err(|_| DecodeError::Memory { nbytes });
        let done = sized.and_then(|()| {
            self.decompress_some(stored, &wanted, copied, state, &mut packed)?;
            let (planes, rest) = packed.split_at(whole);
            for run in runs {
                let begin = (run.start / size).min(elements);
                let end = run.end.div_ceil(size).min(elements);
                shuffle::unshuffle_some(size, planes, begin, &mut out[begin * size..end * size]);
                let left = run.start.max(whole)..run.end.max(whole);
                out[left.clone()].copy_from_slice(&rest[left.start - whole..left.end - whole]);
            }
            Ok(())
        });
        state.packed = packed;
        done
    }

    /// Decompress what is `wanted` of each stream, which is such a range of the block: a range of
    /// the stream.
    fn decompress_some(
        &self,
        stored: &[u8],
        wanted: &dyn Fn(Range<usize>) -> Range<usize>,
        copied: &mut Vec<u8>,
        state: &mut State,
        out: &mut [u8],
    ) -> Result<(), DecodeError> {
        let streams = self.streams_of(out.len());
        let stream_len = out.len() / streams;
        if stream_len * streams != out.len() {
            return Err(DAMAGED);
        }
        let mut stored = Reader::new(stored);
        for (number, out) in out.chunks_exact_mut(stream_len.max(1)).enumerate() {
            let len = stored.u32_le().ok_or(DAMAGED)? as usize;
            let bytes = stored.take(len).ok_or(DAMAGED)?;
            let wanted = wanted(number * stream_len..(number + 1) * stream_len);
            if wanted.is_empty() {
                continue;
            }
            if bytes.len() == out.len() {
                out[wanted.clone()].copy_from_slice(&bytes[wanted]);
                continue;
            }
            copy(bytes, copied)?;
            if !self.codec.decompress_first(copied, state, wanted.end, out)? {
                return Err(DAMAGED);
            }
        }
        Ok(())
    }
}
