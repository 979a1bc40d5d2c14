//! How is BloscLZ, Blosc's own compression, decompressed?
//!
//! It is FastLZ: as LZF, but lengths go on while their bytes are 255, and a distance that
//! is all ones is followed by two bytes that are added to it.  The first control byte
//! starts with bytes to be copied, whatever its upper bits say.

use crate::lzf::repeat;

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
