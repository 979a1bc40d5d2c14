//! How do elements get from a decoded chunk into the result?

use std::marker::PhantomData;

use chunkwise_select::Strip;

/// A result that several threads fill at the same time, each its own elements.
///
/// What makes that sound is the contract of [`part`](Self::part).
#[derive(Clone, Copy)]
pub struct SharedResult<'a> {
    start: *mut u8,
    len: usize,
    lifetime: PhantomData<&'a mut [u8]>,
}

// SAFETY: all access goes through `part`, whose contract makes the callers' ranges
// disjoint; the borrow of the underlying slice is held for 'a.
unsafe impl Send for SharedResult<'_> {}
// SAFETY: as above.
unsafe impl Sync for SharedResult<'_> {}

impl<'a> SharedResult<'a> {
    /// Borrow `out` for as long as threads write to it.
    pub fn new(out: &'a mut [u8]) -> Self {
        Self { start: out.as_mut_ptr(), len: out.len(), lifetime: PhantomData }
    }

    /// The bytes `begin..begin + len`, or None when they reach beyond the result.
    ///
    /// # Safety
    /// No other live slice from this result may overlap them.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, begin: u64, len: u64) -> Option<&'a mut [u8]> {
        let start = self.at(begin, len)?;
        // SAFETY: within the slice borrowed in `new`; not aliased by the caller's contract.
        Some(unsafe { std::slice::from_raw_parts_mut(start, usize::try_from(len).ok()?) })
    }

    /// Where byte `begin` lies, or None when `begin..begin + len` reach beyond the result.
    fn at(&self, begin: u64, len: u64) -> Option<*mut u8> {
        let (begin, len) = (usize::try_from(begin).ok()?, usize::try_from(len).ok()?);
        if begin.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: within the slice borrowed in `new`, or one past its end.
        Some(unsafe { self.start.add(begin) })
    }
}

/// Copy one strip of elements of `size` bytes from `chunk`.
///
/// Gives None, with nothing or part of the strip copied, when the strip reaches
/// beyond either side; a plan's strips never do.
///
/// # Safety
/// No other thread may touch the strip's elements of `result` meanwhile.
#[inline(always)]
pub unsafe fn copy_strip(
    chunk: &[u8],
    result: &SharedResult<'_>,
    strip: &Strip,
    size: usize,
) -> Option<()> {
    let (span_src, span_dst) = (span(strip, strip.src_step)?, span(strip, strip.dst_step)?);
    let size64 = size as u64;
    let begin = usize::try_from(strip.src.checked_mul(size64)?).ok()?;
    let src = chunk
        .get(begin..begin.checked_add(usize::try_from(span_src.checked_mul(size64)?).ok()?)?)?;
    let run = usize::try_from(strip.len).ok()? * size;
    let neighbours = strip.dst_step == strip.len && !strip.backwards;
    if strip.count == 1 || (neighbours && strip.src_step == strip.len) {
        // SAFETY: the caller's contract.
        let dst = unsafe { result.part(strip.dst * size64, src.len() as u64)? };
        dst.copy_from_slice(src);
        return Some(());
    }
    let src_step = usize::try_from(strip.src_step).ok()? * size;
    let dst_step = usize::try_from(strip.dst_step).ok()? * size;
    if neighbours {
        // Runs that are neighbours in the result: one slice, and elements of a size
        // that the compiler knows where a run is a single one.
        // SAFETY: the caller's contract; without gaps the span is the strip itself.
        let dst = unsafe { result.part(strip.dst * size64, span_dst.checked_mul(size64)?)? };
        match run {
            1 => gather::<1>(src, src_step, dst),
            2 => gather::<2>(src, src_step, dst),
            4 => gather::<4>(src, src_step, dst),
            8 => gather::<8>(src, src_step, dst),
            16 => gather::<16>(src, src_step, dst),
            _ => {
                for (i, piece) in dst.chunks_exact_mut(run).enumerate() {
                    piece.copy_from_slice(&src[i * src_step..][..run]);
                }
            }
        }
        return Some(());
    }
    let dst = result.at(strip.dst * size64, span_dst.checked_mul(size64)?)?;
    let count = usize::try_from(strip.count).ok()?;
    let spread = Spread { dst, dst_step, count, backwards: strip.backwards };
    // SAFETY: both spans were checked; no other thread touches the runs.
    unsafe {
        match run {
            1 => spread.copy::<1>(src, src_step),
            2 => spread.copy::<2>(src, src_step),
            4 => spread.copy::<4>(src, src_step),
            8 => spread.copy::<8>(src, src_step),
            16 => spread.copy::<16>(src, src_step),
            _ => spread.copy_runs(src, src_step, run),
        }
    }
    Some(())
}

fn gather<const N: usize>(src: &[u8], src_step: usize, dst: &mut [u8]) {
    for (i, piece) in dst.chunks_exact_mut(N).enumerate() {
        piece.copy_from_slice(&src[i * src_step..][..N]);
    }
}

/// Where the runs of a strip go that are not neighbours, or come in the opposite order.
struct Spread {
    dst: *mut u8,
    dst_step: usize,
    count: usize,
    backwards: bool,
}

impl Spread {
    /// Copy runs of `N` bytes.
    ///
    /// # Safety
    /// As [`copy_runs`](Self::copy_runs), for runs of `N` bytes.
    unsafe fn copy<const N: usize>(&self, src: &[u8], src_step: usize) {
        // SAFETY: the caller's contract.
        unsafe { self.copy_runs(src, src_step, N) }
    }

    /// Copy runs of `run` bytes.
    ///
    /// # Safety
    /// From `dst` on there are `count - 1` steps and one run of writeable bytes, of which no
    /// other thread touches the runs.
    #[inline(always)]
    unsafe fn copy_runs(&self, src: &[u8], src_step: usize, run: usize) {
        for i in 0..self.count {
            let place = if self.backwards { self.count - 1 - i } else { i };
            let from = &src[i * src_step..][..run];
            // SAFETY: the caller's contract; the chunk and the result are different memory.
            unsafe {
                let to = self.dst.add(place * self.dst_step);
                std::ptr::copy_nonoverlapping(from.as_ptr(), to, run);
            }
        }
    }
}

/// Elements from a strip's first to one past its last.
fn span(strip: &Strip, step: u64) -> Option<u64> {
    strip.count.checked_sub(1)?.checked_mul(step)?.checked_add(strip.len)
}

/// Repeat `fill` over `run`, whose length is a multiple of it.
pub fn fill_run(run: &mut [u8], fill: &[u8]) {
    if let [first, rest @ ..] = fill
        && rest.iter().all(|byte| byte == first)
    {
        run.fill(*first);
        return;
    }
    for element in run.chunks_exact_mut(fill.len()) {
        element.copy_from_slice(fill);
    }
}
