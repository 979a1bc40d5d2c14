//! How do elements get from the caller's memory into a chunk?

use std::ops::Range;

use chunkwise_select::Strip;

/// Copy one strip of elements of `size` bytes from `data` to where they belong in `chunk`.
///
/// Gives None, with nothing or part of the strip copied, when it reaches beyond either side; a
/// plan's strips never do.
pub(super) fn gather_strip(
    data: &[u8],
    chunk: &mut [u8],
    strip: &Strip,
    size: usize,
) -> Option<()> {
    let bytes = |elements: u64| usize::try_from(elements).ok()?.checked_mul(size);
    let (mut to, mut from, run) = (bytes(strip.src)?, bytes(strip.dst)?, bytes(strip.len)?);
    let (to_step, from_step) = (bytes(strip.src_step)?, bytes(strip.dst_step)?);
    for i in 0..strip.count {
        let at = if strip.backwards {
            bytes(strip.dst)?.checked_add(from_step.checked_mul((strip.count - 1 - i) as usize)?)?
        } else {
            from
        };
        let source = data.get(at..at.checked_add(run)?)?;
        let target = chunk.get_mut(to..to.checked_add(run)?)?;
        // Single elements of a size that the compiler knows are moved without a call.
        match run {
            1 => target[0] = source[0],
            2 => copy::<2>(source, target),
            4 => copy::<4>(source, target),
            8 => copy::<8>(source, target),
            _ => target.copy_from_slice(source),
        }
        to = to.checked_add(to_step)?;
        from = from.checked_add(from_step)?;
    }
    Some(())
}

/// The same, of each element only the bytes in `members`.
pub(super) fn gather_members(
    data: &[u8],
    chunk: &mut [u8],
    strip: &Strip,
    size: usize,
    members: &[Range<usize>],
) -> Option<()> {
    for (to, from) in strip.places() {
        let begin = |place: u64| usize::try_from(place).ok()?.checked_mul(size);
        let (to, from) = (begin(to)?, begin(from)?);
        let source = data.get(from..from.checked_add(size)?)?;
        let target = chunk.get_mut(to..to.checked_add(size)?)?;
        for member in members {
            target.get_mut(member.clone())?.copy_from_slice(source.get(member.clone())?);
        }
    }
    Some(())
}

#[inline(always)]
fn copy<const N: usize>(source: &[u8], target: &mut [u8]) {
    if let (Some(source), Some(target)) = (source.first_chunk::<N>(), target.first_chunk_mut::<N>())
    {
        *target = *source;
    }
}
