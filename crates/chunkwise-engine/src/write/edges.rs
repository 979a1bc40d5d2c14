//! Which elements of a chunk lie within an extent?

use smallvec::SmallVec;

/// How far into a chunk an extent reaches, a dimension each.
pub(super) type Reach = SmallVec<[u64; 4]>;

/// How far `extent` reaches into the chunk of shape `chunk` at `chunk_index`.
pub(super) fn reach(extent: &[u64], chunk: &[u64], chunk_index: &[u64]) -> Reach {
    let dims = extent.iter().zip(chunk).zip(chunk_index);
    dims.map(|((&end, &len), &i)| end.saturating_sub(i.saturating_mul(len)).min(len)).collect()
}

/// Call `visit` with where each run of a chunk's elements begins that lie beyond `reach`, and
/// how many there are; the runs do not overlap.
pub(super) fn for_each_beyond(reach: &[u64], chunk: &[u64], visit: &mut impl FnMut(u64, u64)) {
    beyond(reach, chunk, 0, visit);
}

fn beyond(reach: &[u64], chunk: &[u64], base: u64, visit: &mut impl FnMut(u64, u64)) {
    let ([within, inner_reach @ ..], [len, inner @ ..]) = (reach, chunk) else { return };
    let step: u64 = inner.iter().product();
    if inner_reach != inner {
        for i in 0..*within {
            beyond(inner_reach, inner, base + i * step, visit);
        }
    }
    if within < len {
        visit(base + within * step, (len - within) * step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beyond_is_what_is_not_within() {
        let (shape, chunk) = ([5, 9, 4], [3, 4, 4]);
        for index in [[0, 0, 0], [1, 0, 0], [0, 2, 0], [1, 2, 0], [2, 0, 0]] {
            let reach = reach(&shape, &chunk, &index);
            let mut seen = [0u8; 48];
            for_each_beyond(&reach, &chunk, &mut |begin, len| {
                seen[begin as usize..(begin + len) as usize].iter_mut().for_each(|n| *n += 1);
            });
            for (at, &n) in seen.iter().enumerate() {
                let place = [at / 16, at / 4 % 4, at % 4];
                let within = (0..3).all(|d| index[d] * chunk[d] + (place[d] as u64) < shape[d]);
                assert_eq!(n, u8::from(!within), "{index:?} {place:?}");
            }
        }
    }
}
