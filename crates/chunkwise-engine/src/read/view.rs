//! Which elements of a result may a thread write?
//!
//! The tasks of a plan fill disjoint elements of the result, and the strips of a task too (tested as
//! properties in `chunkwise-select`).  So a task gets a [`TaskView`] of its elements, once; that gives a
//! [`StripView`] of each strip, and this can be cut into smaller ones.  Who has a view may write
//! to it: `unsafe` stands where the view of a task is made.

use std::ops::{Deref, Range};

use chunkwise_select::{ChunkTask, Part, Strip};

use crate::read::scatter::{SharedResult, copy_strip, fill_run};

/// A task of a plan, and the elements of the result that it alone may write.
pub struct TaskView<'a> {
    task: ChunkTask<'a>,
    result: SharedResult<'a>,
    /// Bytes of an element of the result.
    size: u64,
}

impl<'a> TaskView<'a> {
    /// The elements of a task in a result whose elements have `size` bytes.
    ///
    /// # Safety
    /// While the view is there, nobody else may touch these elements: the task is one of a plan,
    /// all views of the result are of other tasks of the same plan, and its bytes are not used
    /// in any other way.
    #[inline(always)]
    pub unsafe fn new(task: ChunkTask<'a>, result: SharedResult<'a>, size: usize) -> Self {
        Self { task, result, size: size as u64 }
    }

    /// The task.
    pub fn task(&self) -> &ChunkTask<'a> {
        &self.task
    }

    /// When the whole chunk lands in the result as one run: the bytes of that.
    pub fn whole(&mut self) -> Option<&mut [u8]> {
        let begin = self.task.lands_whole_at()?.checked_mul(self.size)?;
        let nbytes = self.task.selected_elements().checked_mul(self.size)?;
        // SAFETY: the elements are the task's own, and borrowed with it.
        unsafe { self.result.part(begin, nbytes) }
    }

    /// As [`ChunkTask::for_each_strip`], each strip with its elements of the result.
    pub fn for_each_strip<'s>(&'s mut self, mut visit: impl FnMut(StripView<'s>)) {
        let Self { task, result, size } = self;
        let (result, size) = (*result, *size);
        task.for_each_strip(|strip| visit(StripView { strip, result, size }));
    }

    /// As [`ChunkTask::for_each_strip_in_order`], each strip with its elements of the result.
    pub fn for_each_strip_in_order<'s>(&'s mut self, mut visit: impl FnMut(StripView<'s>)) {
        let Self { task, result, size } = self;
        let (result, size) = (*result, *size);
        task.for_each_strip_in_order(|strip| visit(StripView { strip, result, size }));
    }
}

/// A strip, and the elements of the result that who has it may write.
pub struct StripView<'a> {
    strip: Strip,
    result: SharedResult<'a>,
    /// Bytes of an element of the result.
    size: u64,
}

impl Deref for StripView<'_> {
    type Target = Strip;

    fn deref(&self) -> &Strip {
        &self.strip
    }
}

impl<'a> StripView<'a> {
    /// A strip of a result that is all its own.
    ///
    /// # Panics
    /// When runs of the strip overlap in the result.
    #[inline(always)]
    pub fn alone(strip: Strip, out: &'a mut [u8], size: usize) -> Self {
        assert!(strip.count <= 1 || strip.dst_step >= strip.len, "each run has its own elements");
        Self { strip, result: SharedResult::new(out), size: size as u64 }
    }

    /// Take the first `count` runs, or all that there are; None where none is left.
    #[inline(always)]
    pub fn take_runs(&mut self, count: u64) -> Option<Self> {
        let Self { strip, result, size } = *self;
        let count = count.min(strip.count);
        self.strip.count -= count;
        if self.strip.count > 0 {
            self.strip = strip.part(count, self.strip.count);
        }
        (count > 0).then(|| Self { strip: strip.part(0, count), result, size })
    }

    /// Take the first `len` elements of each run, or all that there are; None where none is left.
    pub fn take_elements(&mut self, len: u64) -> Option<Self> {
        let Self { strip, result, size } = *self;
        let len = len.min(strip.len);
        self.strip =
            Strip { src: strip.src + len, dst: strip.dst + len, len: strip.len - len, ..strip };
        (len > 0).then_some(Self { strip: Strip { len, ..strip }, result, size })
    }

    /// The elements are those of another chunk, where the first run begins at `src`, and each is so far
    /// from the one before.
    #[inline(always)]
    pub fn read_from(&mut self, src: u64, src_step: u64) {
        (self.strip.src, self.strip.src_step) = (src, src_step);
    }

    /// Call `visit` with strips of bytes: of each of `parts`, the bytes at `place` of each element of the
    /// result, which come from that byte on of elements of `size` bytes in the chunk.  That is one
    /// strip of all elements if each run is a single one, otherwise one of each run.
    #[inline(always)]
    pub fn for_each_part<P>(
        &mut self,
        size: u64,
        parts: &[P],
        place: impl Fn(&P) -> (u64, Range<u64>),
        mut visit: impl FnMut(&P, StripView<'_>) -> Option<()>,
    ) -> Option<()> {
        let Strip { src, dst, len, count, src_step, dst_step, backwards } = self.strip;
        let together = len == 1 && !backwards;
        let (runs, count) = if together { (1, count) } else { (count, len) };
        let apart = |step: u64| if together { step } else { 1 };
        let (src_apart, dst_apart) =
            (apart(src_step).checked_mul(size)?, apart(dst_step).checked_mul(self.size)?);
        for run in 0..runs {
            let number = if backwards { runs - 1 - run } else { run };
            let src = src.checked_add(run.checked_mul(src_step)?)?.checked_mul(size)?;
            let dst = dst.checked_add(number.checked_mul(dst_step)?)?.checked_mul(self.size)?;
            for part in parts {
                let (from, Range { start, end }) = place(part);
                if end > self.size {
                    return None;
                }
                let strip = Strip {
                    src: src.checked_add(from)?,
                    dst: dst + start,
                    len: end.checked_sub(start)?,
                    count,
                    src_step: src_apart,
                    dst_step: dst_apart,
                    backwards: false,
                };
                visit(part, StripView { strip, result: self.result, size: 1 })?;
            }
        }
        Some(())
    }

    /// The bytes, where they are one run of the result.
    #[inline(always)]
    pub fn run(&mut self) -> Option<&mut [u8]> {
        let Strip { dst, len, count, dst_step, backwards, .. } = self.strip;
        if count != 1 && (dst_step != len || backwards) {
            return None;
        }
        let nbytes = len.checked_mul(count)?.checked_mul(self.size)?;
        // SAFETY: the elements are this view's own, and borrowed with it.
        unsafe { self.result.part(dst.checked_mul(self.size)?, nbytes) }
    }

    /// Copy the elements from `chunk`; None, with nothing or part of them copied, when the strip
    /// reaches beyond either side; a plan's strips never do.
    #[inline(always)]
    pub fn copy(&mut self, chunk: &[u8]) -> Option<()> {
        // Strips of bytes are many, and short.
        if self.size == 1 { self.copy_elements::<1>(chunk) } else { self.copy_elements::<0>(chunk) }
    }

    /// The same, of elements of `SIZE` bytes; 0 stands for any size.
    #[inline(never)]
    fn copy_elements<const SIZE: usize>(&mut self, chunk: &[u8]) -> Option<()> {
        let size = if SIZE == 0 { self.size as usize } else { SIZE };
        // SAFETY: the elements are this view's own.
        unsafe { copy_strip(chunk, &self.result, &self.strip, size) }
    }

    /// Set the elements to `fill`, one element's bytes.
    pub fn fill(&mut self, fill: &[u8]) -> Option<()> {
        let Self { strip: Strip { dst, len, count, dst_step, .. }, result, size } = *self;
        for number in 0..count {
            let begin = (dst + number * dst_step) * size;
            // SAFETY: the elements are this view's own.
            fill_run(unsafe { result.part(begin, len * size)? }, fill);
        }
        Some(())
    }
}

/// A part of a mapping, and the elements of the result that it alone may write.
pub struct PartView<'a> {
    part: &'a Part,
    result: SharedResult<'a>,
    /// Bytes of an element of the result.
    size: u64,
}

impl<'a> PartView<'a> {
    /// The elements of a part in a result whose elements have `size` bytes.
    ///
    /// # Safety
    /// While the view is there, nobody else may touch these elements.
    pub unsafe fn new(part: &'a Part, result: SharedResult<'a>, size: u64) -> Self {
        Self { part, result, size }
    }

    /// The part.
    pub fn part(&self) -> &'a Part {
        self.part
    }

    /// Bytes of an element of the result.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// When the whole part lands in the result as one run: the bytes of that.
    pub fn whole(&mut self) -> Option<&mut [u8]> {
        let begin = self.part.lands_whole_at()?.checked_mul(self.size)?;
        // SAFETY: the elements are the part's own, and borrowed with it.
        unsafe { self.result.part(begin, self.part.len().checked_mul(self.size)?) }
    }

    /// Call `visit` with each run of the part's elements, as `elements` and the result have it;
    /// None where one reaches beyond either.
    pub fn exchange(
        &mut self,
        elements: &mut [u8],
        visit: impl Fn(&mut [u8], &mut [u8]),
    ) -> Option<()> {
        let mut done = Some(());
        self.part.for_each_run(|from, to, len| {
            let mut one = || {
                let begin = usize::try_from(from.checked_mul(self.size)?).ok()?;
                let nbytes = len.checked_mul(self.size)?;
                let end = begin.checked_add(usize::try_from(nbytes).ok()?)?;
                let run = elements.get_mut(begin..end)?;
                let to = to.checked_mul(self.size)?;
                // SAFETY: the elements are the part's own, and its runs do not overlap.
                visit(run, unsafe { self.result.part(to, nbytes)? });
                Some(())
            };
            done = done.and_then(|()| one());
        });
        done
    }
}
