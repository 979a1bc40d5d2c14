//! Which elements of another array are those wanted of a virtual one, and where do they go?
//!
//! A [`Mapping`] says that a hyperslab of a virtual array is a hyperslab of a source, element by
//! element.  Of what is [`Wanted`] of the virtual array each mapping has a [`Part`]: a selection of
//! the source, and the places of its elements in the result.

use smallvec::SmallVec;

use crate::line::{Line, position_on};
use crate::{Axis, Choices, Dims, Hyperslab, Product, SelectError, Selection, Union};

/// A hyperslab of a virtual array that is a hyperslab of its source.
#[derive(Debug, Clone)]
pub struct Mapping {
    wanted: Hyperslab,
    source: Hyperslab,
    source_shape: Dims,
    /// Which axis of the source each one of the virtual array is; None where it has one element.
    pairs: SmallVec<[Option<usize>; 4]>,
}

impl Mapping {
    /// The elements of `wanted`, in row-major order, are those of `source`; None where the two have
    /// not the same shape, dimensions of one element aside, or one is empty.
    pub fn new(wanted: Hyperslab, source: Hyperslab, source_shape: &[u64]) -> Option<Self> {
        if wanted.is_empty() || source.is_empty() || source.rank() != source_shape.len() {
            return None;
        }
        let long = |slab: &Hyperslab| -> Vec<(usize, u64)> {
            let axes = slab.axes().iter().map(Axis::len).enumerate();
            axes.filter(|(_, len)| *len > 1).collect()
        };
        let (here, there) = (long(&wanted), long(&source));
        let same = here.iter().map(|(_, len)| len).eq(there.iter().map(|(_, len)| len));
        if !same {
            return None;
        }
        let mut pairs: SmallVec<[Option<usize>; 4]> = smallvec::smallvec![None; wanted.rank()];
        for ((axis, _), (other, _)) in here.into_iter().zip(there) {
            pairs[axis] = Some(other);
        }
        Some(Self { wanted, source, source_shape: source_shape.into(), pairs })
    }

    /// Split a mapping of whatever hyperslabs into such with the same shape, at most `most`; None
    /// where more would be needed, or the two have not as many elements.
    pub fn of_any(
        wanted: &[Hyperslab],
        source: &[Hyperslab],
        source_shape: &[u64],
        most: usize,
    ) -> Option<Vec<Self>> {
        if let ([wanted], [source]) = (wanted, source) {
            if wanted.is_empty() && source.is_empty() {
                return Some(Vec::new());
            }
            if let Some(mapping) = Self::new(wanted.clone(), source.clone(), source_shape) {
                return Some(vec![mapping]);
            }
        }
        if source_shape.is_empty() || wanted.iter().any(|slab| slab.rank() == 0) {
            return None;
        }
        // Both as runs of neighbours, cut where one of either ends.
        let (here, there) = (runs(wanted, most)?, runs(source, most)?);
        let (mut here, mut there) = (here.into_iter(), there.into_iter());
        let (mut one, mut other) = (here.next(), there.next());
        let mut found = Vec::new();
        while let (Some((place, len)), Some((origin, length))) = (&mut one, &mut other) {
            if found.len() >= most {
                return None;
            }
            let count = (*len).min(*length);
            found.push(Self::new(run(place, count), run(origin, count), source_shape)?);
            (*len, *length) = (*len - count, *length - count);
            advance(place, count);
            advance(origin, count);
            let (ended, other_ended) = (*len == 0, *length == 0);
            if ended {
                one = here.next();
            }
            if other_ended {
                other = there.next();
            }
        }
        (one.is_none() && other.is_none()).then_some(found)
    }

    /// The elements of the virtual array.
    pub fn wanted(&self) -> &Hyperslab {
        &self.wanted
    }

    /// Whether it is one between arrays of these shapes.
    pub fn fits(&self, shape: &[u64], source: &[u64]) -> bool {
        let within = |slab: &Hyperslab, shape: &[u64]| {
            slab.rank() == shape.len()
                && slab.axes().iter().zip(shape).all(|(axis, &n)| axis.index_of(axis.len() - 1) < n)
        };
        within(&self.wanted, shape)
            && within(&self.source, source)
            && self.source_shape.as_slice() == source
    }

    /// Whether both may be about the same elements of the virtual array.
    pub fn may_overlap(&self, other: &Self) -> bool {
        self.wanted.axes().iter().zip(other.wanted.axes()).all(|(one, two)| may_meet(one, two))
    }

    /// The elements of the source that those of a union are, whatever their order in a result; None
    /// where it has none of them.  This takes memory for each box of the union, not for each element.
    ///
    /// # Errors
    /// When they are too irregular.
    pub fn source_of(&self, union: &Union) -> Result<Option<Selection>, SelectError> {
        let common = union.and(&Union::new(union.rank(), [&self.wanted])?)?;
        let mut slabs = Vec::new();
        for slab in common.boxes()? {
            let wanted = Wanted::of(&Selection::Hyperslab(slab));
            match self.part(&wanted).map(|part| part.selection()).transpose()? {
                None => {}
                Some(Selection::Hyperslab(slab)) => slabs.push(slab),
                Some(_) => return Err(SelectError::TooManySpans),
            }
        }
        match slabs.len() {
            0 => Ok(None),
            _ => Selection::union(self.source_shape.len(), slabs).map(Some),
        }
    }

    /// What of the elements wanted this mapping has; None where it is nothing.
    pub fn part(&self, wanted: &Wanted) -> Option<Part> {
        let axes = self.wanted.axes();
        let mut chosen = SmallVec::new();
        let mut first = 0;
        for group in &wanted.groups {
            let rank = group.rank();
            let of_source = |axis: usize, positions: Line| {
                let other = self.pairs[axis]?;
                Some((other, positions.on(&self.source.axes()[other])))
            };
            let (places, columns) = match group {
                Group::One(line) => {
                    let (places, positions) = line.within(&axes[first]);
                    (places, of_source(first, positions).into_iter().collect())
                }
                Group::Points(points) => {
                    let (places, positions) = points.within(&axes[first..first + rank]);
                    let columns = positions.into_iter().enumerate();
                    let columns =
                        columns.filter_map(|(d, line)| of_source(first + d, line.into())).collect();
                    (places.into(), columns)
                }
            };
            if places.len() == 0 {
                return None;
            }
            chosen.push(Chosen { places, columns });
            first += rank;
        }
        let fixed = self.source.axes().iter().map(Axis::start).collect();
        let result = wanted.groups.iter().map(Group::len).collect();
        Some(Part { chosen, fixed, source_shape: self.source_shape.clone(), result })
    }
}

/// Runs of neighbours in the last dimension, in row-major order; None where there are more than so
/// many.
fn runs(slabs: &[Hyperslab], most: usize) -> Option<Vec<(Dims, u64)>> {
    let union = Union::new(slabs.first()?.rank(), slabs).ok()?;
    let found: Vec<_> = union.runs().take(most + 1).collect();
    (found.len() <= most).then_some(found)
}

fn run(origin: &[u64], count: u64) -> Hyperslab {
    let last = origin.len() - 1;
    let axis = |(d, &at): (usize, &u64)| Axis::range(at, if d == last { count } else { 1 });
    Hyperslab::from_axes(origin.iter().enumerate().map(axis).collect())
}

fn advance(origin: &mut Dims, count: u64) {
    if let Some(last) = origin.last_mut() {
        *last += count;
    }
}

/// Whether two axes may select the same element.
fn may_meet(one: &Axis, two: &Axis) -> bool {
    let end = |axis: &Axis| axis.index_of(axis.len() - 1);
    if one.start() > end(two) || two.start() > end(one) {
        return false;
    }
    for (block, other) in [(one, two), (two, one)] {
        if block.is_contiguous() {
            return other.rank_of(block.start()) < other.rank_of(end(block) + 1);
        }
    }
    if one.stride() != two.stride() {
        return true;
    }
    // Blocks at equal distances: they meet in the first place or never.
    let stride = one.stride();
    let ahead = (two.start() % stride + stride - one.start() % stride) % stride;
    ahead < one.block() || stride - ahead < two.block()
}

/// Places in several dimensions together, a column each.
#[derive(Debug, Clone)]
struct Points {
    columns: Vec<Vec<u64>>,
    /// Whether the first column never falls, as in row-major order.
    sorted: bool,
}

impl Points {
    fn new(columns: Vec<Vec<u64>>) -> Self {
        let sorted = columns.first().is_some_and(|first| first.is_sorted());
        Self { columns, sorted }
    }

    fn len(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Which of them lie on all of the axes, which are not empty, and as which of their elements, a
    /// column an axis.
    fn within(&self, axes: &[Axis]) -> (Vec<u64>, Vec<Vec<u64>>) {
        let mut places = Vec::new();
        let mut positions = vec![Vec::new(); axes.len()];
        let candidates = match (self.columns.first(), axes.first()) {
            (Some(column), Some(axis)) if self.sorted => {
                // Of many mappings each has a few: the others are not gone through for it.
                let last = axis.index_of(axis.len() - 1);
                column.partition_point(|&at| at < axis.start())
                    ..column.partition_point(|&at| at <= last)
            }
            _ => 0..self.len(),
        };
        for at in candidates {
            let columns = self.columns.iter().zip(axes);
            let found: Option<Dims> =
                columns.map(|(column, axis)| position_on(axis, column[at])).collect();
            if let Some(found) = found {
                places.push(at as u64);
                for (column, position) in positions.iter_mut().zip(found) {
                    column.push(position);
                }
            }
        }
        (places, positions)
    }
}

/// What is wanted of a virtual array, as one or more groups of dimensions: every choice in one goes
/// with every choice in the others.
#[derive(Debug, Clone)]
pub struct Wanted {
    groups: SmallVec<[Group; 4]>,
}

#[derive(Debug, Clone)]
enum Group {
    /// Of one dimension.
    One(Line),
    /// Of several together.
    Points(Points),
}

impl Group {
    fn rank(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Points(points) => points.columns.len(),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::One(line) => line.len(),
            Self::Points(points) => points.len() as u64,
        }
    }
}

impl Wanted {
    /// What a selection selects, in its order.
    pub fn of(selection: &Selection) -> Self {
        let groups = match selection {
            Selection::Hyperslab(slab) => {
                slab.axes().iter().map(|axis| Group::One(Line::of(axis))).collect()
            }
            Selection::Union { union, .. } => {
                // All at once, or none.
                let all = Self::of_union(union, u64::MAX).next();
                return all.unwrap_or_else(|| {
                    let columns = vec![Vec::new(); union.rank()];
                    Self { groups: smallvec::smallvec![Group::Points(Points::new(columns))] }
                });
            }
            Selection::Product(product) => product
                .choices()
                .into_iter()
                .map(|choices| match choices {
                    Choices::Slice { start, step, count } => {
                        Group::One(Line::Even { start, step, count })
                    }
                    Choices::Points(columns) => Group::Points(Points::new(columns)),
                })
                .collect(),
        };
        Self { groups }
    }

    /// The elements of a union, at most so many at a time, in order.
    pub fn of_union(union: &Union, most: u64) -> impl Iterator<Item = Self> {
        let rank = union.rank();
        let mut runs = union.runs().peekable();
        let mut done = 0;
        std::iter::from_fn(move || {
            let mut columns = vec![Vec::new(); rank];
            let mut left = most.max(1);
            while let Some((origin, len)) = runs.peek()
                && left > 0
            {
                let (count, last) = (left.min(*len - done), rank.saturating_sub(1));
                for (d, (column, &at)) in columns.iter_mut().zip(origin).enumerate() {
                    if d == last {
                        column.extend(at + done..at + done + count);
                    } else {
                        column.extend(std::iter::repeat_n(at, count as usize));
                    }
                }
                (done, left) = (done + count, left - count);
                if done == *len {
                    done = 0;
                    runs.next();
                }
            }
            let found = Self { groups: smallvec::smallvec![Group::Points(Points::new(columns))] };
            (!found.is_empty()).then_some(found)
        })
    }

    /// Elements wanted.
    pub fn len(&self) -> u64 {
        self.groups.iter().fold(1, |n: u64, group| n.saturating_mul(group.len()))
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What of one group of dimensions a part has: its places in the result, and a column for each axis
/// of the source that belongs to it.
#[derive(Debug, Clone)]
struct Chosen {
    places: Line,
    columns: SmallVec<[(usize, Line); 1]>,
}

/// What one mapping has of the elements wanted.
#[derive(Debug, Clone)]
pub struct Part {
    chosen: SmallVec<[Chosen; 4]>,
    /// Of each axis of the source, where it is where nothing else is said.
    fixed: Dims,
    source_shape: Dims,
    /// Choices of each group in the whole result.
    result: Dims,
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A dimension's selection of so many elements.
    fn axis(len: u64) -> impl Strategy<Value = Axis> {
        let blocks: Vec<u64> = (1..=len).filter(|&block| len.is_multiple_of(block)).collect();
        (0u64..3, 0u64..3, prop::sample::select(blocks)).prop_map(move |(start, gap, block)| {
            Axis::new((start, block + gap, len / block, block), 0, 100).unwrap()
        })
    }

    fn slab(lens: Vec<u64>) -> impl Strategy<Value = Hyperslab> {
        lens.into_iter()
            .map(axis)
            .collect::<Vec<_>>()
            .prop_map(|axes| Hyperslab::from_axes(axes.into()))
    }

    /// Two hyperslabs of one shape but for a dimension of one element, and an index of the first.
    fn cases() -> impl Strategy<Value = (Hyperslab, Hyperslab, Selection)> {
        prop::collection::vec(1u64..5, 1..4).prop_flat_map(|lens| {
            let mut others = lens.clone();
            others.insert(lens.len() / 2, 1);
            let shape: Vec<u64> = vec![20; lens.len()];
            let listed = prop::collection::vec(prop::collection::vec(0i64..20, 1..9), lens.len());
            let sliced = prop::collection::vec((0u64..20, 1i64..4, 0u64..7), lens.len());
            let wanted = (listed, sliced, any::<u8>(), any::<bool>()).prop_map(
                move |(listed, sliced, kinds, paired)| {
                    let mut builder = Product::of(&shape);
                    if paired {
                        let len = listed.iter().map(Vec::len).min().unwrap();
                        let columns: Vec<&[i64]> = listed.iter().map(|l| &l[..len]).collect();
                        return builder.points(&columns).unwrap().finish().unwrap().into();
                    }
                    for (d, (list, (start, step, count))) in listed.iter().zip(sliced).enumerate() {
                        let count = count.min((19 - start) / step as u64 + 1);
                        let back = start + (count.max(1) - 1) * step as u64;
                        builder = match kinds >> (2 * d) & 3 {
                            0 => builder.points(&[list]).unwrap(),
                            1 => builder.slice(back, -step, count).unwrap(),
                            _ => builder.slice(start, step, count).unwrap(),
                        };
                    }
                    builder.finish().unwrap().into()
                },
            );
            (slab(lens), slab(others), wanted)
        })
    }

    /// The elements of a hyperslab, in row-major order.
    fn elements(slab: &Hyperslab) -> Vec<Dims> {
        let all: Vec<Vec<u64>> = slab
            .axes()
            .iter()
            .map(|axis| (0..axis.len()).map(|at| axis.index_of(at)).collect())
            .collect();
        product(&all)
    }

    fn product(all: &[Vec<u64>]) -> Vec<Dims> {
        all.iter().fold(vec![Dims::new()], |found, choices| {
            let longer = |one: &Dims, &at: &u64| one.iter().copied().chain([at]).collect();
            found.iter().flat_map(|one| choices.iter().map(move |at| longer(one, at))).collect()
        })
    }

    /// The elements of a selection in the order of its result.
    fn selected(selection: &Selection) -> Vec<Dims> {
        match selection {
            Selection::Hyperslab(slab) => elements(slab),
            Selection::Union { union, .. } => {
                (0..union.len()).map(|rank| union.element(rank).unwrap()).collect()
            }
            Selection::Product(product) => {
                product.choices().iter().fold(vec![Dims::new()], |found, choices| {
                    let choices: Vec<Dims> = match choices {
                        Choices::Slice { start, step, count } => (0..*count as i64)
                            .map(|at| smallvec::smallvec![(*start as i64 + at * step) as u64])
                            .collect(),
                        Choices::Points(columns) => (0..columns[0].len())
                            .map(|at| columns.iter().map(|column| column[at]).collect())
                            .collect(),
                    };
                    found
                        .iter()
                        .flat_map(|one| {
                            choices.iter().map(move |c| one.iter().chain(c).copied().collect())
                        })
                        .collect()
                })
            }
        }
    }

    proptest! {
        #[test]
        fn parts_say_which_element_goes_where((here, there, wanted) in cases(), most in 1u64..40) {
            let shape: Dims = smallvec::smallvec![20; there.rank()];
            let pairs: Vec<_> = elements(&here).into_iter().zip(elements(&there)).collect();
            let mapping = Mapping::new(here, there, &shape).unwrap();
            let all = selected(&wanted);
            let mut expected = vec![None; all.len()];
            for (place, element) in all.iter().enumerate() {
                let found = pairs.iter().find(|(here, _)| here == element);
                expected[place] = found.map(|(_, there)| there.clone());
            }
            let part = mapping.part(&Wanted::of(&wanted));
            let count = expected.iter().flatten().count() as u64;
            prop_assert_eq!(part.as_ref().map_or(0, Part::len), count);
            let chunk: Dims = smallvec::smallvec![3; shape.len()];
            for parts in [part.clone().into_iter().collect(), part.map_or(vec![], |p| p.pieces(most, &chunk))] {
                let mut got = vec![None; all.len()];
                for part in parts {
                    let from = selected(&part.selection().unwrap());
                    let mut runs = 0;
                    part.for_each_run(|source, place, len| {
                        runs += 1;
                        for at in 0..len {
                            let element = from[(source + at) as usize].clone();
                            assert!(got[(place + at) as usize].replace(element).is_none());
                        }
                    });
                    if let Some(begin) = part.lands_whole_at() {
                        prop_assert_eq!(runs, 1);
                        prop_assert_eq!(got[begin as usize].as_ref(), Some(&from[0]));
                    }
                }
                prop_assert_eq!(&got, &expected);
            }
        }

        #[test]
        fn what_has_another_shape_is_split_into_runs(
            lens in prop::collection::vec(1u64..5, 1..4), seed in any::<prop::sample::Index>(),
        ) {
            let all: u64 = lens.iter().product();
            let here = Hyperslab::all(&lens);
            let start = seed.index(5) as u64;
            let there = Hyperslab::new(&[300], &[start], &[3], &[all], &[1]).unwrap();
            let found = Mapping::of_any(
                std::slice::from_ref(&here), std::slice::from_ref(&there), &[300], 1 << 10,
            ).unwrap();
            let pairs: Vec<_> = found.iter().flat_map(|mapping| {
                elements(&mapping.wanted).into_iter().zip(elements(&mapping.source))
            }).collect();
            let expected: Vec<_> = elements(&here).into_iter().zip(elements(&there)).collect();
            prop_assert_eq!(pairs, expected);
            prop_assert!(Mapping::of_any(&[here], &[Hyperslab::all(&[all + 1])], &[101], 9).is_none());
        }

        #[test]
        fn unions_are_looked_up_in_batches(
            slabs in prop::collection::vec(slab(vec![3, 2, 4]), 0..4), most in 1u64..30,
        ) {
            let union = Union::new(3, &slabs).unwrap();
            let expected: Vec<_> = (0..union.len()).map(|n| union.element(n).unwrap()).collect();
            let mut got: Vec<Dims> = Vec::new();
            for wanted in Wanted::of_union(&union, most) {
                prop_assert!(wanted.len() <= most);
                let Group::Points(Points { columns, .. }) = &wanted.groups[0] else { unreachable!() };
                got.extend((0..columns[0].len()).map(|n| columns.iter().map(|c| c[n]).collect()));
            }
            prop_assert_eq!(got, expected);
            let all = Wanted::of(&Selection::union(3, slabs).unwrap());
            prop_assert_eq!(all.len(), union.len());
        }

        #[test]
        fn what_a_union_is_in_the_source(
            (here, there, _) in cases(),
            boxes in prop::collection::vec(prop::collection::vec((0u64..12, 1u64..9), 3), 0..4),
        ) {
            let rank = here.rank();
            let range = |&(start, len): &(u64, u64)| Axis::range(start, len);
            let slabs: Vec<_> = boxes
                .iter()
                .map(|axes| Hyperslab::from_axes(axes[..rank].iter().map(range).collect()))
                .collect();
            let union = Union::new(rank, &slabs).unwrap();
            let shape: Dims = smallvec::smallvec![20; there.rank()];
            let pairs = elements(&here).into_iter().zip(elements(&there));
            let mut expected: Vec<Dims> =
                pairs.filter(|(here, _)| union.contains(here)).map(|(_, there)| there).collect();
            let is_block = |axis: &Axis| axis.is_contiguous() || axis.block() == 1;
            let is_plain = here.axes().iter().chain(there.axes()).all(is_block);
            match Mapping::new(here, there, &shape).unwrap().source_of(&union) {
                Ok(found) => {
                    let mut found = found.map_or(Vec::new(), |found| selected(&found));
                    found.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(found, expected);
                }
                Err(error) => {
                    prop_assert_eq!(error, SelectError::TooManySpans);
                    prop_assert!(!is_plain);
                }
            }
        }

        #[test]
        fn mappings_overlap_where_an_element_is_in_both(
            (one, two) in prop::collection::vec(1u64..5, 1..3)
                .prop_flat_map(|lens| (slab(lens.clone()), slab(lens))),
        ) {
            let shape: Vec<u64> = vec![100; one.rank()];
            let make = |slab: &Hyperslab| Mapping::new(slab.clone(), slab.clone(), &shape).unwrap();
            let common = elements(&one).iter().any(|element| elements(&two).contains(element));
            let said = make(&one).may_overlap(&make(&two));
            // Strides that differ are not looked into.
            let same = one.axes().iter().zip(two.axes()).all(|(a, b)| {
                a.stride() == b.stride() || a.is_contiguous() || b.is_contiguous()
            });
            prop_assert!(said || !common);
            prop_assert!(!same || said == common);
        }
    }
}
