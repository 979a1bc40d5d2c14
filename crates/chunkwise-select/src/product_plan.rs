//! Which chunks does a product touch, and what is copied out of each?
//!
//! Each factor touches chunks of its own dimensions; those of the dataset are every choice
//! of one in each.

use smallvec::SmallVec;

use crate::factor_plan::{FactorPart, FactorPlan, Regular, Run};
use crate::{ChunkGrid, Dims, Product, SelectError, Strip, Summary};

/// Strips of fewer elements than this on average are short.
const SHORT_LEN: u64 = 16;

/// A plan of a product.
///
/// It costs memory for each point of its factors and for each chunk that a mask touches.
#[derive(Debug, Clone)]
pub(crate) struct ProductPlan<'a> {
    grid: &'a ChunkGrid,
    factors: Vec<FactorPlan<'a>>,
    selected: u64,
    len: u64,
}

impl<'a> ProductPlan<'a> {
    pub(crate) fn new(grid: &'a ChunkGrid, product: &'a Product) -> Result<Self, SelectError> {
        if grid.shape() != product.array_shape() {
            return Err(SelectError::Shape {
                selection: product.array_shape().into(),
                dataset: grid.shape().into(),
            });
        }
        let selected = product.len()?;
        if selected == 0 {
            // Nor need anything be counted of dimensions of which nothing is wanted.
            return Ok(Self { grid, factors: Vec::new(), selected, len: 0 });
        }
        let mut first = 0;
        let factors = product.factors().iter().map(|factor| {
            let dims = first..first + factor.rank();
            first = dims.end;
            FactorPlan::new(factor, &grid.shape()[dims.clone()], &grid.chunk()[dims])
        });
        let factors: Vec<FactorPlan<'a>> = factors.collect::<Result<_, _>>()?;
        let len = factors.iter().map(FactorPlan::len).product();
        Ok(Self { grid, factors, selected, len })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn task(&self, mut number: u64) -> ProductTask<'_> {
        let mut parts: SmallVec<[FactorPart<'_>; 4]> = SmallVec::new();
        for factor in self.factors.iter().rev() {
            parts.push(factor.part(number % factor.len()));
            number /= factor.len();
        }
        parts.reverse();
        // How far on the next element of each factor lies in the chunk and in the result.
        let (mut src, mut dst) = (1, 1);
        let mut units: SmallVec<[Unit; 4]> = SmallVec::new();
        for factor in self.factors.iter().rev() {
            units.push(Unit { src, dst });
            src *= factor.chunk_len();
            dst *= factor.out_len;
        }
        units.reverse();
        ProductTask { plan: self, parts, units }
    }

    pub(crate) fn selected_of(&self, chunk_index: &[u64]) -> u64 {
        if self.len == 0 {
            return 0;
        }
        let mut rest = chunk_index;
        let wanted = self.factors.iter().map(|factor| {
            let (own, others) = rest.split_at_checked(factor.rank()).unwrap_or_default();
            rest = others;
            factor.selected_of(own)
        });
        wanted.product()
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary {
            chunks: self.len,
            selected_elements: self.selected,
            decoded_elements: self.len.saturating_mul(self.grid.chunk_len()),
        }
    }
}

/// How far on something lies in the chunk and in the result.
#[derive(Debug, Clone, Copy)]
struct Unit {
    src: u64,
    dst: u64,
}

impl Unit {
    /// What lies `src` and `dst` of these further on than `from`.
    fn after(self, from: Self, src: u64, dst: u64) -> Self {
        Self { src: from.src + src * self.src, dst: from.dst + dst * self.dst }
    }

    /// A strip of `count` runs of `len` elements at regular places.
    fn strip(self, regular: Regular, len: u64, count: u64) -> Strip {
        Strip {
            src: regular.src * self.src,
            dst: regular.dst * self.dst,
            len,
            count,
            // A stride may be of any length where it is never taken.
            src_step: if count > 1 { regular.src_step * self.src } else { 0 },
            dst_step: self.dst,
            backwards: regular.backwards,
        }
    }

    /// The strip, so far on.
    fn moved(self, strip: Strip) -> Strip {
        Strip { src: self.src + strip.src, dst: self.dst + strip.dst, ..strip }
    }
}

/// One chunk of a [`ProductPlan`], and the elements wanted from it.
#[derive(Debug, Clone)]
pub(crate) struct ProductTask<'p> {
    plan: &'p ProductPlan<'p>,
    parts: SmallVec<[FactorPart<'p>; 4]>,
    /// Of each part, how far on its next element lies.
    units: SmallVec<[Unit; 4]>,
}

impl ProductTask<'_> {
    pub(crate) fn chunk_index(&self) -> Dims {
        self.parts.iter().flat_map(FactorPart::chunk_index).collect()
    }

    pub(crate) fn linear_index(&self) -> u64 {
        let parts = self.parts.iter().zip(&self.plan.factors);
        parts.fold(0, |linear, (part, factor)| linear * factor.grid_len() + part.chunk)
    }

    pub(crate) fn selected_elements(&self) -> u64 {
        self.parts.iter().map(|part| part.wanted).product()
    }

    pub(crate) fn takes_all(&self) -> bool {
        self.parts.iter().all(FactorPart::takes_all)
    }

    pub(crate) fn lands_whole_at(&self) -> Option<u64> {
        let chunk_len = self.plan.grid.chunk_len();
        if self.selected_elements() != chunk_len {
            return None;
        }
        let mut found = None;
        self.visit_strips(true, |strip| {
            found = (strip.count == 1 && strip.len == chunk_len).then_some(strip.dst);
            false
        });
        found
    }

    pub(crate) fn for_each_strip(&self, visit: impl FnMut(Strip)) {
        self.strips(false, visit);
    }

    pub(crate) fn for_each_strip_in_order(&self, visit: impl FnMut(Strip)) {
        self.strips(true, visit);
    }

    fn strips(&self, in_order: bool, mut visit: impl FnMut(Strip)) {
        self.visit_strips(in_order, |strip| {
            visit(strip);
            true
        });
    }

    pub(crate) fn scattered_over(&self) -> Option<u64> {
        let (outer, inner) = self.inner();
        let part = &self.parts[outer.checked_sub(1)?];
        let len = inner.len * part.wanted / part.most_runs().max(1);
        if part.regular().is_some() || len >= SHORT_LEN {
            return None;
        }
        // Up to the last element of the chunk that lies within the dataset.
        let grid = self.plan.grid;
        let sizes = self.chunk_index();
        let sizes = sizes.iter().zip(grid.chunk()).zip(grid.shape());
        let last =
            sizes.fold(0, |last, ((i, &len), &size)| last * len + len.min(size - i * len) - 1);
        Some(last + 1)
    }

    /// The innermost parts that are one run each are one run together, as long as those
    /// inside them are whole both in the chunk and in the result: how many parts are outside
    /// of that run, and the run.
    fn inner(&self) -> (usize, Run) {
        let mut inner = Run { src: 0, dst: 0, len: 1 };
        for (d, part) in self.parts.iter().enumerate().rev() {
            let Some(single) = part.single() else { return (d + 1, inner) };
            inner.src += single.src * self.units[d].src;
            inner.dst += single.dst * self.units[d].dst;
            inner.len *= single.len;
            let factor = &self.plan.factors[d];
            if single.len != factor.chunk_len() || single.len != factor.out_len {
                return (d, inner);
            }
        }
        (0, inner)
    }

    /// Call `visit` with each strip until it returns false.
    fn visit_strips(&self, in_order: bool, mut visit: impl FnMut(Strip) -> bool) {
        let (outer, inner) = self.inner();
        let from = Unit { src: inner.src, dst: inner.dst };
        let Some(s) = outer.checked_sub(1) else {
            visit(Strip::run(inner.src, inner.dst, inner.len));
            return;
        };
        // The next part gives the strips; those outside it are gone through one by one.
        let (part, unit) = (&self.parts[s], self.units[s]);
        if let Some(regular) = part.regular() {
            let row = unit.strip(regular, inner.len, part.wanted);
            self.each_outer(s, 0, from, &mut |at| visit(at.moved(row).merged()));
            return;
        }
        // Many rows of few runs are done run by run, few rows of many runs row by row.
        if let (false, Some(rows)) = (in_order, s.checked_sub(1))
            && unit.src == inner.len
            && unit.dst == inner.len
            && let Some(regular) = self.parts[rows].regular()
            && part.most_runs() <= self.parts[rows].wanted
        {
            let column = self.units[rows].strip(regular, 1, self.parts[rows].wanted);
            self.each_outer(rows, 0, from, &mut |at| {
                part.visit_runs(&mut |run| {
                    let column = Strip { len: run.len * inner.len, ..column };
                    visit(unit.after(at, run.src, run.dst).moved(column).merged())
                })
            });
            return;
        }
        self.each_outer(s, 0, from, &mut |at| {
            part.visit_runs(&mut |run| {
                let Unit { src, dst } = unit.after(at, run.src, run.dst);
                let (src_step, dst_step) = (unit.src, unit.dst);
                let (len, count) = (inner.len, run.len);
                let strip = Strip { src, dst, len, count, src_step, dst_step, backwards: false };
                visit(strip.merged())
            })
        });
    }

    /// Call `work` with where each choice of elements in the parts `d..end` leads to, until
    /// it returns false; false if it did.
    fn each_outer(
        &self,
        end: usize,
        d: usize,
        from: Unit,
        work: &mut dyn FnMut(Unit) -> bool,
    ) -> bool {
        if d == end {
            return work(from);
        }
        self.parts[d].visit_runs(&mut |run| {
            (0..run.len).all(|i| {
                let at = self.units[d].after(from, run.src + i, run.dst + i);
                self.each_outer(end, d + 1, at, work)
            })
        })
    }
}
