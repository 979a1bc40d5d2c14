//! How is a box of elements copied from one row-major array into another?

use chunkwise_select::Dims;

/// A row-major array of which a box is meant.
#[derive(Debug, Clone, Copy)]
pub struct ArrayBox<'a> {
    /// Elements of the array in each dimension.
    pub shape: &'a [u64],
    /// Where the box begins.
    pub at: &'a [u64],
}

/// Copy a box of `extent` elements of `size` bytes; None where it does not lie within both
/// arrays, with some of it copied.
pub fn copy_box(
    extent: &[u64],
    size: usize,
    (src, from): (&[u8], ArrayBox<'_>),
    (dst, to): (&mut [u8], ArrayBox<'_>),
) -> Option<()> {
    let rank = extent.len();
    if [from.shape, from.at, to.shape, to.at].iter().any(|dims| dims.len() != rank) {
        return None;
    }
    if extent.contains(&0) {
        return Some(());
    }
    // Inner dimensions that are whole on both sides are one run.
    let (mut run, mut src_step, mut dst_step) = (size as u64, size as u64, size as u64);
    let (mut src_at, mut dst_at) = (0u64, 0u64);
    let mut outer = rank;
    while outer > 0 {
        let d = outer - 1;
        run = run.checked_mul(extent[d])?;
        src_at = src_at.checked_add(from.at[d].checked_mul(src_step)?)?;
        dst_at = dst_at.checked_add(to.at[d].checked_mul(dst_step)?)?;
        src_step = src_step.checked_mul(from.shape[d])?;
        dst_step = dst_step.checked_mul(to.shape[d])?;
        outer = d;
        if extent[d] != from.shape[d] || extent[d] != to.shape[d] {
            break;
        }
    }
    // Runs follow each other along the next dimension; those outside it are walked.
    let (count, src_gap, dst_gap) = match outer.checked_sub(1) {
        None => (1, 0, 0),
        Some(d) => {
            let gaps = (src_step, dst_step);
            src_at = src_at.checked_add(from.at[d].checked_mul(src_step)?)?;
            dst_at = dst_at.checked_add(to.at[d].checked_mul(dst_step)?)?;
            src_step = src_step.checked_mul(from.shape[d])?;
            dst_step = dst_step.checked_mul(to.shape[d])?;
            outer = d;
            (extent[d], gaps.0, gaps.1)
        }
    };
    let mut steps: Vec<(u64, u64, u64)> = vec![(0, 0, 0); outer];
    for d in (0..outer).rev() {
        src_at = src_at.checked_add(from.at[d].checked_mul(src_step)?)?;
        dst_at = dst_at.checked_add(to.at[d].checked_mul(dst_step)?)?;
        steps[d] = (extent[d], src_step, dst_step);
        src_step = src_step.checked_mul(from.shape[d])?;
        dst_step = dst_step.checked_mul(to.shape[d])?;
    }
    let runs = Runs {
        count: usize::try_from(count).ok()?,
        len: usize::try_from(run).ok()?,
        src_gap: usize::try_from(src_gap).ok()?,
        dst_gap: usize::try_from(dst_gap).ok()?,
    };
    let mut index: Dims = (0..outer).map(|_| 0).collect();
    loop {
        let src = src.get(usize::try_from(src_at).ok()?..)?;
        let dst = dst.get_mut(usize::try_from(dst_at).ok()?..)?;
        runs.copy(src, dst)?;
        // The next place, the innermost dimension first.
        let mut d = outer;
        loop {
            let Some(inner) = d.checked_sub(1) else { return Some(()) };
            d = inner;
            let (len, src_step, dst_step) = steps[d];
            index[d] += 1;
            (src_at, dst_at) = (src_at + src_step, dst_at + dst_step);
            if index[d] < len {
                break;
            }
            index[d] = 0;
            (src_at, dst_at) = (src_at - len * src_step, dst_at - len * dst_step);
        }
    }
}

/// `count` runs of `len` bytes.
struct Runs {
    count: usize,
    len: usize,
    src_gap: usize,
    dst_gap: usize,
}

impl Runs {
    fn copy(&self, src: &[u8], dst: &mut [u8]) -> Option<()> {
        // Single elements are moved as such.
        match self.len {
            1 => self.copy_fixed::<1>(src, dst),
            2 => self.copy_fixed::<2>(src, dst),
            4 => self.copy_fixed::<4>(src, dst),
            8 => self.copy_fixed::<8>(src, dst),
            16 => self.copy_fixed::<16>(src, dst),
            len => {
                for i in 0..self.count {
                    let from = src.get(i * self.src_gap..i * self.src_gap + len)?;
                    dst.get_mut(i * self.dst_gap..i * self.dst_gap + len)?.copy_from_slice(from);
                }
                Some(())
            }
        }
    }

    fn copy_fixed<const N: usize>(&self, src: &[u8], dst: &mut [u8]) -> Option<()> {
        for i in 0..self.count {
            let from: &[u8; N] = src.get(i * self.src_gap..)?.first_chunk()?;
            *dst.get_mut(i * self.dst_gap..)?.first_chunk_mut()? = *from;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn offset(shape: &[u64], at: &[u64]) -> usize {
        shape.iter().zip(at).fold(0, |n, (d, i)| n * d + i) as usize
    }

    proptest! {
        #[test]
        fn each_element_goes_to_its_place(
            dims in prop::collection::vec((1u64..5, 0u64..3, 0u64..3, 0u64..3, 0u64..3), 0..4),
            size in prop_oneof![Just(1usize), Just(2), Just(3), Just(4), Just(8), Just(16)],
        ) {
            let extent: Vec<_> = dims.iter().map(|d| d.0).collect();
            let (from_at, to_at): (Vec<_>, Vec<_>) = dims.iter().map(|d| (d.1, d.2)).unzip();
            let from_shape: Vec<_> = dims.iter().map(|d| d.0 + d.1 + d.3).collect();
            let to_shape: Vec<_> = dims.iter().map(|d| d.0 + d.2 + d.4).collect();
            let len = |shape: &[u64]| shape.iter().product::<u64>() as usize * size;
            let src: Vec<u8> = (0..len(&from_shape)).map(|i| (i % 251) as u8 + 1).collect();
            let mut dst = vec![0; len(&to_shape)];
            copy_box(
                &extent,
                size,
                (&src, ArrayBox { shape: &from_shape, at: &from_at }),
                (&mut dst, ArrayBox { shape: &to_shape, at: &to_at }),
            )
            .unwrap();
            let mut expected = vec![0; dst.len()];
            for n in 0..extent.iter().product::<u64>() {
                let mut rest = n;
                let mut index = vec![0; extent.len()];
                for d in (0..extent.len()).rev() {
                    index[d] = rest % extent[d];
                    rest /= extent[d];
                }
                let place = |at: &[u64]| -> Vec<u64> {
                    index.iter().zip(at).map(|(i, a)| i + a).collect()
                };
                let from = offset(&from_shape, &place(&from_at)) * size;
                let to = offset(&to_shape, &place(&to_at)) * size;
                expected[to..to + size].copy_from_slice(&src[from..from + size]);
            }
            prop_assert_eq!(dst, expected);
        }
    }

    #[test]
    fn what_reaches_beyond_is_refused() {
        let part = |shape, at| ArrayBox { shape, at };
        let copy = |extent: &[u64], at| {
            copy_box(extent, 1, (&[1; 6], part(&[2, 3], at)), (&mut [0; 6], part(&[2, 3], &[0, 0])))
        };
        assert_eq!(copy(&[2, 3], &[0, 0]), Some(()));
        assert_eq!(copy(&[2, 2], &[1, 0]), None);
        assert_eq!(copy(&[2], &[0, 0]), None);
        assert_eq!(copy(&[0, 9], &[5, 5]), Some(()));
    }
}
