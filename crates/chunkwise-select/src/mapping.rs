//! Which elements of another array are those wanted of a virtual one, and where do they go?
//!
//! A [`Mapping`] says that a hyperslab of a virtual array is a hyperslab of a source, element by
//! element.  Of what is [`Wanted`] of the virtual array each mapping has a [`Part`]: a selection of
//! the source, and the places of its elements in the result.

mod part;

use smallvec::SmallVec;

pub use self::part::Part;

use self::part::Chosen;
use crate::line::{Line, position_on};
use crate::{Axis, Choices, Dims, Hyperslab, SelectError, Selection, Union};

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

    /// The elements of a union, at most this many at a time, in order.
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

#[cfg(test)]
mod tests;
