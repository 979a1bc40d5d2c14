//! Which chunks does a hyperslab touch, and what is copied out of each?

use smallvec::SmallVec;

use crate::axis_chunks::AxisChunks;
use crate::{ChunkGrid, Dims, Hyperslab, SelectError, Strip, Summary};

/// What a selection asks of a chunked dataset: an indexable sequence of
/// [`SlabTask`]s in row-major order of chunks.
///
/// Making a plan costs memory for each dimension at most, never for each chunk.
#[derive(Debug, Clone)]
pub(crate) struct SlabPlan<'a> {
    grid: &'a ChunkGrid,
    slab: &'a Hyperslab,
    out_shape: Dims,
    /// Elements selected.
    selected: u64,
    chunks: SmallVec<[AxisChunks; 4]>,
    len: u64,
}

impl<'a> SlabPlan<'a> {
    /// Plan the reading of `slab` from a dataset cut by `grid`.
    ///
    /// # Errors
    /// When the ranks differ or the selection is too large to count.
    pub(crate) fn new(grid: &'a ChunkGrid, slab: &'a Hyperslab) -> Result<Self, SelectError> {
        if grid.rank() != slab.rank() {
            return Err(SelectError::Rank { selection: slab.rank(), dataset: grid.rank() });
        }
        let selected = slab.len()?;
        let chunks: SmallVec<[AxisChunks; 4]> =
            slab.axes().iter().zip(grid.chunk()).map(|(a, &c)| AxisChunks::new(a, c)).collect();
        // Where nothing is selected along one dimension, the product of the others is nothing
        // that 64 bits have to hold.
        let len = if selected == 0 { 0 } else { chunks.iter().map(AxisChunks::len).product() };
        Ok(Self { grid, slab, out_shape: slab.shape(), selected, chunks, len })
    }

    /// Number of chunks touched.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The `number`-th task.
    pub(crate) fn task(&self, mut number: u64) -> SlabTask<'_> {
        let rank = self.grid.rank();
        let mut parts: SmallVec<[AxisPart; 4]> =
            smallvec::smallvec![AxisPart { chunk: 0, position: 0, len: 0 }; rank];
        for d in (0..rank).rev() {
            let (axis, chunk_len) = (&self.slab.axes()[d], self.grid.chunk()[d]);
            let along = self.chunks[d].len();
            let chunk = self.chunks[d].get(number % along, axis, chunk_len);
            number /= along;
            let position = axis.rank_of(chunk * chunk_len);
            let len = axis.rank_of((chunk + 1).saturating_mul(chunk_len)) - position;
            parts[d] = AxisPart { chunk, position, len };
        }
        SlabTask { plan: self, parts }
    }

    /// Elements wanted of the chunk at `chunk_index`; 0 when the plan does not touch it.
    pub(crate) fn selected_of(&self, chunk_index: &[u64]) -> u64 {
        if self.selected == 0 {
            return 0;
        }
        let axes = self.slab.axes().iter().zip(self.grid.chunk());
        axes.zip(chunk_index)
            .map(|((axis, &len), &i)| axis.rank_of((i + 1) * len) - axis.rank_of(i * len))
            .product()
    }

    /// The plan in figures, without walking it.
    pub(crate) fn summary(&self) -> Summary {
        Summary {
            chunks: self.len,
            selected_elements: self.selected,
            decoded_elements: self.len.saturating_mul(self.grid.chunk_len()),
        }
    }
}

/// The part of one dimension of the selection that lies in one chunk.
#[derive(Debug, Clone, Copy)]
struct AxisPart {
    /// Grid coordinate of the chunk.
    chunk: u64,
    /// Position in the result of the first element.
    position: u64,
    /// Number of elements.
    len: u64,
}

/// One chunk of a [`SlabPlan`], and the elements wanted from it.
#[derive(Debug, Clone)]
pub(crate) struct SlabTask<'p> {
    plan: &'p SlabPlan<'p>,
    parts: SmallVec<[AxisPart; 4]>,
}

impl SlabTask<'_> {
    /// Grid coordinates of the chunk.
    pub(crate) fn chunk_index(&self) -> Dims {
        self.parts.iter().map(|p| p.chunk).collect()
    }

    /// Position of the chunk in row-major order of the grid.
    pub(crate) fn linear_index(&self) -> u64 {
        let counts = self.plan.grid.counts();
        self.parts.iter().zip(counts).fold(0, |linear, (p, &n)| linear * n + p.chunk)
    }

    /// Number of elements wanted from this chunk.
    pub(crate) fn selected_elements(&self) -> u64 {
        self.parts.iter().map(|p| p.len).product()
    }

    /// Whether every element of the chunk that lies within the dataset is wanted.
    pub(crate) fn takes_all(&self) -> bool {
        let grid = self.plan.grid;
        self.parts.iter().enumerate().all(|(d, p)| {
            let begin = p.chunk * grid.chunk()[d];
            p.len == grid.chunk()[d].min(grid.shape()[d] - begin)
        })
    }

    /// When the whole chunk, edges included, lands in the result as one run: where it
    /// begins there, in elements.  Such a chunk can be decoded in place.
    pub(crate) fn lands_whole_at(&self) -> Option<u64> {
        let chunk_len = self.plan.grid.chunk_len();
        let mut found = None;
        // At most two strips are looked at: a whole landing has exactly one.
        let mut seen = 0;
        self.visit_strips(|strip| {
            seen += 1;
            found = (seen == 1 && strip.count == 1 && strip.len == chunk_len).then_some(strip.dst);
            seen < 2
        });
        found
    }

    /// Call `visit` with each strip to copy; all strips together cover each wanted
    /// element of this chunk exactly once.
    pub(crate) fn for_each_strip(&self, mut visit: impl FnMut(Strip)) {
        self.visit_strips(|strip| {
            visit(strip);
            true
        });
    }

    /// As [`for_each_strip`](Self::for_each_strip), until `visit` returns false.
    fn visit_strips(&self, mut visit: impl FnMut(Strip) -> bool) {
        let grid = self.plan.grid;
        let (chunk, out) = (grid.chunk(), &self.plan.out_shape);
        let axes = self.plan.slab.axes();
        let rank = grid.rank();
        // Where a position of the result lies in the chunk, along one dimension.
        let within =
            |d: usize, position: u64| axes[d].index_of(position) - self.parts[d].chunk * chunk[d];

        // Innermost dimensions that are taken without gaps merge into one run, as long
        // as those inside them are whole both in the chunk and in the result.
        let (mut run, mut src_unit, mut dst_unit) = (1, 1, 1);
        let (mut src0, mut dst0) = (0, 0);
        let mut outer = rank;
        while outer > 0 {
            let d = outer - 1;
            let part = self.parts[d];
            if part.len == 0 {
                return;
            }
            let first = within(d, part.position);
            if within(d, part.position + part.len - 1) - first != part.len - 1 {
                break;
            }
            src0 += first * src_unit;
            dst0 += part.position * dst_unit;
            run *= part.len;
            src_unit *= chunk[d];
            dst_unit *= out[d];
            outer = d;
            if part.len != chunk[d] || part.len != out[d] {
                break;
            }
        }
        // Where one element of a dimension is taken, it only moves what is inside it: a series
        // through a chunk is one strip.
        while outer > 0 && self.parts[outer - 1].len == 1 {
            outer -= 1;
            let position = self.parts[outer].position;
            src0 += within(outer, position) * src_unit;
            dst0 += position * dst_unit;
            src_unit *= chunk[outer];
            dst_unit *= out[outer];
        }
        if outer == 0 {
            visit(Strip::run(src0, dst0, run));
            return;
        }

        // The next dimension gives the runs of a strip; those outside it are walked.
        let s = outer - 1;
        let part = self.parts[s];
        let regular = axes[s].is_contiguous() || axes[s].block() == 1;
        // A stride longer than the chunk takes one element of it, and may be of any length.
        let stride = if axes[s].is_contiguous() { 1 } else { axes[s].stride().min(chunk[s]) };
        let src_step = stride * src_unit;
        let mut at: Dims = self.parts[..s].iter().map(|p| p.position).collect();
        loop {
            let (mut src, mut dst) = (src0, dst0);
            let (mut src_size, mut dst_size) = (src_unit * chunk[s], dst_unit * out[s]);
            for d in (0..s).rev() {
                src += within(d, at[d]) * src_size;
                dst += at[d] * dst_size;
                src_size *= chunk[d];
                dst_size *= out[d];
            }
            let end = part.position + part.len;
            let mut position = part.position;
            while position < end {
                // Blocks of several elements: one strip a block.
                let block = axes[s].block();
                let count = if regular {
                    end - position
                } else {
                    (block - position % block).min(end - position)
                };
                let strip = Strip {
                    src: src + within(s, position) * src_unit,
                    dst: dst + position * dst_unit,
                    len: run,
                    count,
                    src_step: if regular { src_step } else { src_unit },
                    dst_step: dst_unit,
                    backwards: false,
                };
                if !visit(strip.merged()) {
                    return;
                }
                position += count;
            }
            // The odometer over the outer dimensions.
            let mut d = s;
            loop {
                if d == 0 {
                    return;
                }
                d -= 1;
                at[d] += 1;
                if at[d] < self.parts[d].position + self.parts[d].len {
                    break;
                }
                at[d] = self.parts[d].position;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use proptest::prelude::*;

    /// One dimension: its size, chunk length and hyperslab (start, stride, count, block).
    type Case = (u64, u64, (u64, u64, u64, u64));

    fn dimension() -> impl Strategy<Value = Case> {
        (1u64..90, 1u64..12, 0u64..40, 1u64..9, 0u64..25, 0u64..14).prop_map(
            |(size, chunk, start, block, gap, count)| {
                let stride = block + gap;
                let start = start % size;
                let room = size - start;
                let most = if room < block { 0 } else { (room - block) / stride + 1 };
                (size, chunk, (start, stride, count.min(most), block))
            },
        )
    }

    fn select(cases: &[Case]) -> (ChunkGrid, Hyperslab) {
        let pick = |f: fn(&Case) -> u64| cases.iter().map(f).collect::<Vec<_>>();
        let shape = pick(|c| c.0);
        let grid = ChunkGrid::new(&shape, &pick(|c| c.1)).unwrap();
        let slab = Hyperslab::new(
            &shape,
            &pick(|c| c.2.0),
            &pick(|c| c.2.1),
            &pick(|c| c.2.2),
            &pick(|c| c.2.3),
        )
        .unwrap();
        (grid, slab)
    }

    /// Row-major offset of `index` in `shape`.
    fn offset(index: &[u64], shape: &[u64]) -> u64 {
        index.iter().zip(shape).fold(0, |o, (i, n)| o * n + i)
    }

    proptest! {
        /// Copying every strip of every task gives each wanted element once, and the
        /// right one, whatever the shape, the chunks and the hyperslab.
        #[test]
        fn strips_copy_the_selection(cases in prop::collection::vec(dimension(), 1..4)) {
            let (grid, slab) = select(&cases);
            let plan = Plan::new(&grid, &slab).unwrap();
            let total = slab.len().unwrap() as usize;
            let mut result = vec![None; total];
            let mut touched = std::collections::HashSet::new();
            for task in plan.tasks() {
                prop_assert!(touched.insert(task.linear_index()));
                prop_assert_eq!(grid.linear_index(&task.chunk_index()), Some(task.linear_index()));
                let mut wanted = 0;
                task.for_each_strip(|strip| {
                    for run in 0..strip.count {
                        for i in 0..strip.len {
                            let src = strip.src + run * strip.src_step + i;
                            let dst = (strip.dst + run * strip.dst_step + i) as usize;
                            assert!(src < grid.chunk_len());
                            assert!(result[dst].is_none(), "element {dst} copied twice");
                            result[dst] = Some((task.linear_index(), src));
                            wanted += 1;
                        }
                    }
                });
                prop_assert_eq!(plan.selected_of(&task.chunk_index()), wanted);
                prop_assert!(wanted > 0, "a chunk that holds nothing wanted is not in the plan");
                if let Some(at) = task.lands_whole_at() {
                    prop_assert!(task.takes_all());
                    prop_assert_eq!(wanted, grid.chunk_len());
                    prop_assert!(at + wanted <= total as u64);
                }
            }
            prop_assert_eq!(plan.summary().chunks, touched.len() as u64);
            let by_chunk: u64 =
                (0..grid.len()).map(|i| plan.selected_of(&grid.chunk_index(i))).sum();
            prop_assert_eq!(by_chunk, total as u64);
            for (number, found) in result.iter().enumerate() {
                let mut rest = number as u64;
                let mut index = vec![0; cases.len()];
                for d in (0..cases.len()).rev() {
                    let axis = slab.axes()[d];
                    index[d] = axis.index_of(rest % axis.len());
                    rest /= axis.len();
                }
                let chunk: Vec<u64> = (0..cases.len()).map(|d| index[d] / cases[d].1).collect();
                let inside: Vec<u64> = (0..cases.len()).map(|d| index[d] % cases[d].1).collect();
                let want = (offset(&chunk, grid.counts()), offset(&inside, grid.chunk()));
                prop_assert_eq!(*found, Some(want));
            }
        }
    }

    #[test]
    fn a_plan_over_a_billion_chunks_costs_nothing() {
        let grid = ChunkGrid::new(&[1 << 40, 1000], &[1 << 10, 1000]).unwrap();
        let slab = Hyperslab::all(grid.shape());
        let plan = Plan::new(&grid, &slab).unwrap();
        assert_eq!(plan.len(), 1 << 30);
        let last = plan.task(plan.len() - 1);
        assert_eq!(last.linear_index(), (1 << 30) - 1);
        assert_eq!(last.lands_whole_at(), Some((1 << 40) * 1000 - (1 << 10) * 1000));
    }

    #[test]
    fn a_billion_blocks_cost_nothing() {
        let shape = [1 << 50];
        let grid = ChunkGrid::new(&shape, &[7]).unwrap();
        let slab = Hyperslab::new(&shape, &[3], &[1000], &[1 << 40], &[20]).unwrap();
        let plan = Plan::new(&grid, &slab).unwrap();
        let last = plan.task(plan.len() - 1);
        let end = 3 + ((1u64 << 40) - 1) * 1000 + 19;
        assert_eq!(last.linear_index(), end / 7);
        assert!(plan.len() > 3 << 40 && plan.len() < 4 << 40);
    }

    #[test]
    fn far_apart_elements_skip_the_chunks_between() {
        let grid = ChunkGrid::new(&[1_000_000], &[10]).unwrap();
        let slab = Hyperslab::new(&[1_000_000], &[5], &[1000], &[100], &[1]).unwrap();
        let plan = Plan::new(&grid, &slab).unwrap();
        assert_eq!(plan.len(), 100);
        assert_eq!(plan.task(99).linear_index(), 9900);
    }
}
