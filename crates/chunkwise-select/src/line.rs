//! Which places of one dimension, one behind the other?

use std::ops::Range;
use std::sync::Arc;

use crate::Axis;

/// Places of one dimension in the order in which they are wanted.
#[derive(Debug, Clone)]
pub(crate) enum Line {
    /// At equal distances; a negative step goes backwards.
    Even { start: u64, step: i64, count: u64 },
    /// In any order.
    List(List),
}

/// Places that take memory, which parts and clones share.
#[derive(Debug, Clone)]
pub(crate) struct List {
    all: Arc<Vec<u64>>,
    within: Range<usize>,
}

impl List {
    fn places(&self) -> &[u64] {
        &self.all[self.within.clone()]
    }
}

impl From<Vec<u64>> for Line {
    fn from(places: Vec<u64>) -> Self {
        let within = 0..places.len();
        Self::List(List { all: Arc::new(places), within })
    }
}

impl Line {
    pub(crate) fn range(start: u64, count: u64) -> Self {
        Self::Even { start, step: 1, count }
    }

    /// What an axis selects.
    pub(crate) fn of(axis: &Axis) -> Self {
        if axis.is_contiguous() {
            Self::range(axis.start(), axis.len())
        } else if axis.block() == 1 {
            let step = axis.stride() as i64;
            Self::Even { start: axis.start(), step, count: axis.count() }
        } else {
            Self::collected((0..axis.len()).map(|at| axis.index_of(at)))
        }
    }

    fn collected(places: impl Iterator<Item = u64>) -> Self {
        places.collect::<Vec<_>>().into()
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Even { count, .. } => *count,
            Self::List(list) => list.within.len() as u64,
        }
    }

    /// How many of them take memory.
    pub(crate) fn listed(&self) -> u64 {
        match self {
            Self::Even { .. } => 0,
            Self::List(_) => self.len(),
        }
    }

    /// The `at`-th place; `at` must be below [`len`](Self::len).
    pub(crate) fn get(&self, at: u64) -> u64 {
        match self {
            Self::Even { start, step, .. } => {
                // Places lie within a dimension, so that nothing wraps for good.
                start.wrapping_add(at.wrapping_mul(*step as u64))
            }
            Self::List(list) => list.places()[at as usize],
        }
    }

    /// `count` of them, from the `begin`-th on.
    pub(crate) fn part(&self, begin: u64, count: u64) -> Self {
        match self {
            Self::Even { step, .. } => Self::Even { start: self.get(begin), step: *step, count },
            Self::List(List { all, within }) => {
                let begin = within.start + begin as usize;
                let within = begin..begin + count as usize;
                Self::List(List { all: Arc::clone(all), within })
            }
        }
    }

    /// Whether these are neighbours in rising order.
    pub(crate) fn is_range(&self) -> bool {
        matches!(self, Self::Even { step: 1, .. } | Self::Even { count: 1, .. })
    }

    /// What of this line lies on `axis`: where it stands in this line, and which of the axis'
    /// elements it is.
    pub(crate) fn within(&self, axis: &Axis) -> (Self, Self) {
        match self {
            Self::Even { start, step, count } if axis.is_contiguous() => {
                let (first, end) = between((*start, *step, *count), axis);
                let positions = match first < end {
                    true => self.get(first) - axis.start(),
                    false => 0,
                };
                let count = end.saturating_sub(first);
                (Self::range(first, count), Self::Even { start: positions, step: *step, count })
            }
            Self::Even { start, step: 1, count } => {
                let end = start.saturating_add(*count);
                let (first, end) = (axis.rank_of(*start), axis.rank_of(end));
                let places = match axis.block() {
                    1 if first < end => Self::Even {
                        start: axis.index_of(first) - start,
                        step: axis.stride() as i64,
                        count: end - first,
                    },
                    _ => Self::collected((first..end).map(|at| axis.index_of(at) - start)),
                };
                (places, Self::range(first, end - first))
            }
            _ => {
                let (mut places, mut positions) = (Vec::new(), Vec::new());
                for at in 0..self.len() {
                    if let Some(position) = position_on(axis, self.get(at)) {
                        places.push(at);
                        positions.push(position);
                    }
                }
                (places.into(), positions.into())
            }
        }
    }

    /// The elements of `axis` that stand at these positions.
    pub(crate) fn on(self, axis: &Axis) -> Self {
        match self {
            Self::Even { start, step, count } if axis.is_contiguous() => {
                Self::Even { start: axis.start().saturating_add(start), step, count }
            }
            Self::Even { start, step, count } if axis.block() == 1 => {
                let stride = axis.stride();
                let start = axis.start().saturating_add(start.saturating_mul(stride));
                Self::Even { start, step: step.saturating_mul(stride as i64), count }
            }
            Self::Even { .. } => {
                Self::collected((0..self.len()).map(|at| axis.index_of(self.get(at))))
            }
            Self::List(list) => Self::collected(list.places().iter().map(|&at| axis.index_of(at))),
        }
    }
}

/// As which of its elements an axis selects `index`; None where it does not.
pub(crate) fn position_on(axis: &Axis, index: u64) -> Option<u64> {
    let past = index.checked_sub(axis.start())?;
    if axis.is_contiguous() {
        // Most are, and divisions take longest.
        return (past < axis.len()).then_some(past);
    }
    let position = axis.rank_of(index);
    (position < axis.len() && axis.index_of(position) == index).then_some(position)
}

/// Which of evenly distant places lie in the one block of an axis: the first, and one past the last.
fn between((start, step, count): (u64, i64, u64), axis: &Axis) -> (u64, u64) {
    let (low, high) = (axis.start(), axis.start().saturating_add(axis.len()));
    let stride = step.unsigned_abs().max(1);
    let (first, end) = if step >= 0 {
        let to = |bound: u64| bound.saturating_sub(start).div_ceil(stride);
        (to(low), to(high))
    } else {
        // The first at most high - 1, and the first below low.
        let to = |bound: u64| if start < bound { 0 } else { (start - bound) / stride + 1 };
        (to(high), to(low))
    };
    (first.min(count), end.min(count))
}
