//! What is copied where, out of a chunk and into a result?

/// `count` runs of `len` elements each; offsets and steps are in elements, `src`
/// from the start of the chunk (row-major in the chunk's shape), `dst` from the start
/// of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strip {
    /// Where the first run begins in the chunk.
    pub src: u64,
    /// Where the first run begins in the result.
    pub dst: u64,
    /// Elements in a run.
    pub len: u64,
    /// Number of runs.
    pub count: u64,
    /// Elements from one run to the next in the chunk.
    pub src_step: u64,
    /// Elements from one run to the next in the result.
    pub dst_step: u64,
    /// The runs come in the result in the opposite order: the last one at `dst`.
    pub backwards: bool,
}

impl Strip {
    /// `len` elements that are neighbours on both sides.
    pub(crate) fn run(src: u64, dst: u64, len: u64) -> Self {
        Self { src, dst, len, count: 1, src_step: 0, dst_step: 0, backwards: false }
    }

    /// Where each element lies in the chunk and in the result, in the order of the chunk.
    pub fn places(self) -> impl Iterator<Item = (u64, u64)> {
        (0..self.count).flat_map(move |run| {
            let place = if self.backwards { self.count - 1 - run } else { run };
            let (src, dst) = (self.src + run * self.src_step, self.dst + place * self.dst_step);
            (0..self.len).map(move |i| (src + i, dst + i))
        })
    }

    /// Some of the runs: `count` of them, after the first `skipped` ones in the chunk.
    #[must_use]
    pub fn part(self, skipped: u64, count: u64) -> Self {
        let before = if self.backwards { self.count - skipped - count } else { skipped };
        Self {
            src: self.src + skipped * self.src_step,
            dst: self.dst + before * self.dst_step,
            count,
            ..self
        }
    }

    /// Runs that follow each other without gaps on both sides become one.
    pub(crate) fn merged(self) -> Self {
        let gapless = self.src_step == self.len && self.dst_step == self.len;
        if self.count > 1 && gapless && !self.backwards {
            return Self::run(self.src, self.dst, self.len * self.count);
        }
        self
    }
}
