//! Which elements of its source does a mapping have of those wanted, and where do they go?

use smallvec::SmallVec;

use crate::line::Line;
use crate::{Dims, Product, SelectError, Selection};

/// What of one group of dimensions a part has: its places in the result, and a column for each axis
/// of the source that belongs to it.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    pub(super) places: Line,
    pub(super) columns: SmallVec<[(usize, Line); 1]>,
}

/// What one mapping has of the elements wanted.
#[derive(Debug, Clone)]
pub struct Part {
    pub(super) chosen: SmallVec<[Chosen; 4]>,
    /// Of each axis of the source, where it is where nothing else is said.
    pub(super) fixed: Dims,
    pub(super) source_shape: Dims,
    /// Choices of each group in the whole result.
    pub(super) result: Dims,
}

impl Part {
    /// Elements of the result that it has.
    pub fn len(&self) -> u64 {
        self.chosen.iter().fold(1, |n: u64, chosen| n.saturating_mul(chosen.places.len()))
    }

    /// Whether it has none, which does not happen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many numbers it keeps in lists, one for each place that follows from no other.
    pub fn listed(&self) -> u64 {
        let lines = |one: &Chosen| one.columns.iter().map(|(_, line)| line.listed()).sum::<u64>();
        self.chosen.iter().map(|one| one.places.listed() + lines(one)).sum()
    }

    /// The elements of the source.
    ///
    /// # Errors
    /// When they do not lie within the source, or cannot be counted.
    pub fn selection(&self) -> Result<Selection, SelectError> {
        let mut builder = Product::of(&self.source_shape);
        let mut next = 0;
        for chosen in &self.chosen {
            let (Some((first, line)), Some((last, _))) =
                (chosen.columns.first(), chosen.columns.last())
            else {
                continue;
            };
            while next < *first {
                builder = builder.slice(self.fixed[next], 1, 1)?;
                next += 1;
            }
            builder = match line {
                Line::Even { start, step, count } if first == last => {
                    builder.slice(*start, *step, *count)?
                }
                _ => {
                    let count = line.len() as usize;
                    let column = |axis: usize| -> Vec<i64> {
                        match chosen.columns.iter().find(|(other, _)| *other == axis) {
                            Some((_, line)) => {
                                (0..line.len()).map(|at| line.get(at) as i64).collect()
                            }
                            None => vec![self.fixed[axis] as i64; count],
                        }
                    };
                    let columns: Vec<Vec<i64>> = (*first..=*last).map(column).collect();
                    let columns: Vec<&[i64]> = columns.iter().map(Vec::as_slice).collect();
                    builder.points(&columns)?
                }
            };
            next = last + 1;
        }
        while next < self.source_shape.len() {
            builder = builder.slice(self.fixed[next], 1, 1)?;
            next += 1;
        }
        builder.finish().map(Selection::from)
    }

    /// Where all elements land in the result as one run, in the order of the source's selection:
    /// at which element it begins.
    pub fn lands_whole_at(&self) -> Option<u64> {
        let runs = self.runs();
        runs.outer.is_empty().then(|| self.first_place())
    }

    fn first_place(&self) -> u64 {
        let strides = self.strides();
        self.chosen.iter().zip(strides).map(|(chosen, stride)| chosen.places.get(0) * stride).sum()
    }

    /// Elements of the result from one choice of a group to the next.
    fn strides(&self) -> Dims {
        let mut strides: Dims = smallvec::smallvec![1; self.result.len()];
        for at in (1..self.result.len()).rev() {
            strides[at - 1] = strides[at].saturating_mul(self.result[at]);
        }
        strides
    }

    /// How the elements fall into runs that are neighbours in the source's selection and in the
    /// result.
    fn runs(&self) -> Runs {
        let (mut len, mut at) = (1u64, self.chosen.len());
        let mut open = true;
        while open && at > 0 {
            let chosen = &self.chosen[at - 1];
            let count = chosen.places.len();
            let single = count == 1;
            let advances = !chosen.columns.is_empty();
            let goes_on = chosen.places.is_range() && advances;
            if !(single || goes_on) {
                break;
            }
            len *= count;
            // What is not all of its dimension ends the run.
            open = count == self.result[at - 1];
            at -= 1;
        }
        // Outside of the run, what has one choice is no step.
        let outer = (0..at).filter(|&g| self.chosen[g].places.len() > 1).collect();
        Runs { len, outer }
    }

    /// Call `visit` with each run of elements that are neighbours on both sides: where it begins in
    /// the source's selection and in the result, and how many it has.
    pub fn for_each_run(&self, mut visit: impl FnMut(u64, u64, u64)) {
        let strides = self.strides();
        let Runs { len, outer } = self.runs();
        // Elements of the source's selection from one choice to the next; 0 where a group has no
        // axis there.
        let mut steps: Dims = smallvec::smallvec![0; self.chosen.len()];
        let mut step = 1u64;
        for (at, chosen) in self.chosen.iter().enumerate().rev() {
            if !chosen.columns.is_empty() {
                steps[at] = step;
                step = step.saturating_mul(chosen.places.len());
            }
        }
        let base: u64 = self
            .chosen
            .iter()
            .zip(&strides)
            .enumerate()
            .filter(|(at, _)| !outer.contains(at))
            .map(|(_, (chosen, stride))| chosen.places.get(0) * stride)
            .sum();
        let mut counters: Dims = smallvec::smallvec![0; outer.len()];
        loop {
            let (mut from, mut to) = (0, base);
            for (&group, &counter) in outer.iter().zip(&counters) {
                from += counter * steps[group];
                to += self.chosen[group].places.get(counter) * strides[group];
            }
            visit(from, to, len);
            // The last group steps first.
            let mut at = outer.len();
            loop {
                if at == 0 {
                    return;
                }
                at -= 1;
                counters[at] += 1;
                if counters[at] < self.chosen[outer[at]].places.len() {
                    break;
                }
                counters[at] = 0;
            }
        }
    }

    /// Cut into pieces of about `most` elements where chunks of the source meet, so that no chunk
    /// is in two of them.
    pub fn pieces(self, most: u64, chunk: &[u64]) -> Vec<Self> {
        let mut pieces = Vec::new();
        self.cut(0, most.max(1), chunk, &mut pieces);
        pieces
    }

    fn cut(self, group: usize, most: u64, chunk: &[u64], pieces: &mut Vec<Self>) {
        let len = self.len();
        if len <= most || group == self.chosen.len() {
            pieces.push(self);
            return;
        }
        let chosen = &self.chosen[group];
        let count = chosen.places.len();
        let [(axis, line)] = chosen.columns.as_slice() else {
            return self.cut(group + 1, most, chunk, pieces);
        };
        let size = chunk.get(*axis).copied().unwrap_or(1).max(1);
        let inner = len / count;
        let wanted = (most / inner.max(1)).max(1);
        let same = |at: u64| line.get(at - 1) / size == line.get(at) / size;
        let mut begin = 0;
        while begin < count {
            let mut end = begin.saturating_add(wanted).min(count);
            while end > begin && end < count && same(end) {
                end -= 1;
            }
            if end == begin {
                // A chunk has more than is wanted at a time.
                end += 1;
                while end < count && same(end) {
                    end += 1;
                }
            }
            let mut piece = self.clone();
            let number = end - begin;
            piece.chosen[group] = Chosen {
                places: chosen.places.part(begin, number),
                columns: smallvec::smallvec![(*axis, line.part(begin, number))],
            };
            piece.cut(group + 1, most, chunk, pieces);
            begin = end;
        }
    }
}

struct Runs {
    len: u64,
    /// Groups with several choices outside of a run.
    outer: SmallVec<[usize; 4]>,
}
