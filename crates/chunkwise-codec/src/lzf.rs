//! How is LZF, h5py's own filter, compressed and decompressed?
//!
//! A control byte below 32 is followed by this many bytes and one more, to be copied;
//! another stands for bytes that came before: three bits of length (7: a byte follows
//! that is added), 13 bits of distance.  A chunk that would not shrink is copied in runs of 32.

use crate::filter::{Decode, Decoded, Encode, Encoded, Options, expanded};
use crate::repeats::{Limits, Stream, repeat};
use crate::state::{EncoderState, State};
use crate::{EncodeError, Output, grown};

/// Three bytes give at most 264.
const MOST_EXPANSION: usize = 88;

/// The filter, which has no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lzf;

impl Options for Lzf {
    fn from_cd_values(_: &[u32]) -> Option<Self> {
        Some(Self)
    }
}

impl Decode for Lzf {
    fn most_decoded(&self, stored_len: usize) -> usize {
        expanded(stored_len, MOST_EXPANSION)
    }

    /// Decompress `stored`, whose length when decompressed is nowhere written.
    fn decode(&self, stored: &[u8], _: &mut State, output: &mut Output<'_>) -> Decoded {
        let ceiling = stored.len().saturating_mul(MOST_EXPANSION);
        let damaged = output.damaged();
        let attempt = |out: &mut [u8]| match decompress(stored, out) {
            Ok(written) => Ok(Some(written)),
            Err(Stopped::Full) => Ok(None),
            Err(Stopped::Damaged) => Err(damaged.clone()),
        };
        output.growing(ceiling, attempt, None)
    }
}

impl Encode for Lzf {
    /// Compress `raw`, or where that makes it no smaller, write it as bytes to be copied, which is
    /// longer.
    fn encode(&self, raw: &[u8], state: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        const LIMITS: Limits =
            Limits { distance: 1 << 13, len: 264, far: (usize::MAX, 0), tail: 0 };
        const MOST_COPIED: usize = 32;
        grown(out, raw.len())?;
        let len = state.streams.repeats.compress(raw, LIMITS, &mut out[..raw.len()], put_repeat);
        if let Some(len) = len.filter(|len| *len < raw.len()) {
            out.truncate(len);
            return Ok(true);
        }
        out.clear();
        let nbytes = raw.len() + raw.len().div_ceil(MOST_COPIED);
        out.try_reserve_exact(nbytes).map_err(|_| EncodeError::Memory { nbytes })?;
        for run in raw.chunks(MOST_COPIED) {
            out.push(run.len() as u8 - 1);
            out.extend_from_slice(run);
        }
        Ok(true)
    }
}

fn put_repeat(stream: &mut Stream<'_>, distance: usize, len: usize) -> Option<()> {
    let [high, low] = (distance as u16 - 1).to_be_bytes();
    match len - 2 {
        short @ ..7 => stream.put(&[(short as u8) << 5 | high, low]),
        long => stream.put(&[7 << 5 | high, (long - 7) as u8, low]),
    }
}

enum Stopped {
    /// There is more than `out` holds.
    Full,
    Damaged,
}

fn decompress(mut rest: &[u8], out: &mut [u8]) -> Result<usize, Stopped> {
    let mut at = 0;
    while let Some((&control, after)) = rest.split_first() {
        rest = after;
        if control < 32 {
            let len = usize::from(control) + 1;
            let (literal, after) = rest.split_at_checked(len).ok_or(Stopped::Damaged)?;
            out.get_mut(at..at + len).ok_or(Stopped::Full)?.copy_from_slice(literal);
            rest = after;
            at += len;
        } else {
            let mut len = usize::from(control >> 5) + 2;
            if len == 9 {
                let (&more, after) = rest.split_first().ok_or(Stopped::Damaged)?;
                len += usize::from(more);
                rest = after;
            }
            let (&low, after) = rest.split_first().ok_or(Stopped::Damaged)?;
            rest = after;
            let distance = (usize::from(control & 31) << 8 | usize::from(low)) + 1;
            let from = at.checked_sub(distance).ok_or(Stopped::Damaged)?;
            if out.len() - at < len {
                return Err(Stopped::Full);
            }
            repeat(out, from, at, len);
            at += len;
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn copies_and_repeats() {
        let mut out = [0; 32];
        // "ab", then 9 bytes from two before: they repeat; then 5 more of the last.
        let stored = [1, b'a', b'b', 7 << 5, 0, 1, 3 << 5, 0];
        assert!(matches!(decompress(&stored, &mut out), Ok(16)));
        assert_eq!(&out[..16], b"abababababaaaaaa");
        assert!(matches!(decompress(&stored, &mut out[..15]), Err(Stopped::Full)));
        assert!(matches!(decompress(&stored[..6], &mut out), Ok(11)));
        assert!(matches!(decompress(&stored[..5], &mut out), Err(Stopped::Damaged)));
        assert!(matches!(decompress(&[32, 0], &mut out), Err(Stopped::Damaged)));
    }

    proptest! {
        #[test]
        fn what_is_compressed_comes_back(
            raw in prop::collection::vec(prop_oneof![0u8..3, any::<u8>()], 0..3000),
            again in 1usize..6,
        ) {
            let raw = raw.repeat(again);
            let (mut stored, mut out) = (vec![1; 5], vec![0; raw.len()]);
            prop_assert!(Lzf.encode(&raw, &mut EncoderState::default(), &mut stored).unwrap());
            prop_assert!(raw.is_empty() || stored.len() != raw.len());
            prop_assert!(stored.len() < raw.len() || again < 4 || raw.len() < 100);
            prop_assert!(matches!(decompress(&stored, &mut out), Ok(n) if n == raw.len()));
            prop_assert_eq!(out, raw);
        }

        #[test]
        fn repeats_as_byte_by_byte(at in 1usize..40, distance in 1usize..40, len in 0usize..60) {
            let from = at.saturating_sub(distance);
            let mut out: Vec<u8> = (0..100).collect();
            let mut expected = out.clone();
            for i in 0..len {
                expected[at + i] = expected[from + i];
            }
            repeat(&mut out, from, at, len);
            prop_assert_eq!(out, expected);
        }
    }
}
