//! How does BloscLZ, Blosc's own compression, compress and decompress?
//!
//! It is FastLZ: as LZF, but lengths go on while their bytes are 255, and a distance that
//! is all ones is followed by two bytes that are added to it.  The first control byte
//! starts with bytes to be copied, whatever its upper bits say.

use crate::repeats::{Limits, Repeats, Stream, repeat};

/// The longest distance of the short form.
const SHORT: usize = 8191;

/// Decompress `stored` to exactly `out`; None if that is not what comes out.
pub(crate) fn decompress_exactly(stored: &[u8], out: &mut [u8]) -> Option<()> {
    let (&control, mut rest) = stored.split_first()?;
    let mut control = control & 31;
    let mut at = 0;
    loop {
        if control < 32 {
            let len = usize::from(control) + 1;
            let (literal, after) = rest.split_at_checked(len)?;
            out.get_mut(at..at + len)?.copy_from_slice(literal);
            rest = after;
            at += len;
        } else {
            let mut next = || {
                let (&byte, after) = rest.split_first()?;
                rest = after;
                Some(usize::from(byte))
            };
            let mut len = usize::from(control >> 5) + 2;
            if len == 9 {
                loop {
                    let more = next()?;
                    len += more;
                    if more != 255 {
                        break;
                    }
                }
            }
            let mut distance = (usize::from(control & 31) << 8) + next()?;
            if distance == SHORT {
                distance += (next()? << 8) + next()?;
            }
            let from = at.checked_sub(distance + 1)?;
            if out.len() - at < len {
                return None;
            }
            repeat(out, from, at, len);
            at += len;
        }
        let Some((&byte, after)) = rest.split_first() else { break };
        (control, rest) = (byte, after);
    }
    (at == out.len()).then_some(())
}

/// Compress `raw`; the bytes written to `out`, or None where there is no room for them.
pub(crate) fn compress(raw: &[u8], repeats: &mut Repeats, out: &mut [u8]) -> Option<usize> {
    // Far repeats take two bytes more.  A stream ends with bytes as they are: its decoder stops
    // as soon as nothing more comes.
    const LIMITS: Limits =
        Limits { distance: SHORT + (1 << 16) - 2, len: usize::MAX, far: (SHORT, 7), tail: 4 };
    const MARK: u8 = 1 << 5;
    let len = repeats.compress(raw, LIMITS, out, put_repeat)?;
    *out.first_mut()? |= MARK;
    Some(len)
}

fn put_repeat(stream: &mut Stream<'_>, distance: usize, len: usize) -> Option<()> {
    let back = distance - 1;
    let (near, beyond) = (back.min(SHORT), back.saturating_sub(SHORT));
    let [high, low] = (near as u16).to_be_bytes();
    match len - 2 {
        short @ ..7 => stream.put(&[(short as u8) << 5 | high])?,
        long => {
            stream.put(&[7 << 5 | high])?;
            let mut rest = long - 7;
            while rest >= 255 {
                stream.put(&[255])?;
                rest -= 255;
            }
            stream.put(&[rest as u8])?;
        }
    }
    stream.put(&[low])?;
    if near == SHORT { stream.put(&(beyond as u16).to_be_bytes()) } else { Some(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_compressed_comes_back(
            raw in prop::collection::vec(prop_oneof![0u8..3, any::<u8>()], 1..20_000),
            again in 1usize..6,
        ) {
            let raw = raw.repeat(again);
            let (mut stored, mut out) = (vec![1; 2 * raw.len()], vec![0; raw.len()]);
            let len = compress(&raw, &mut Repeats::default(), &mut stored).unwrap();
            decompress_exactly(&stored[..len], &mut out).unwrap();
            prop_assert_eq!(out, raw);
        }
    }
}
