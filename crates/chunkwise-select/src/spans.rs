//! How is an irregular set of elements held, and how are two of them combined?
//!
//! As a tree of spans, as libhdf5 has it: a node cuts one dimension into spans of
//! indexes, and what is selected at each index of a span is the node below it.  The tree
//! is canonical: spans are in order, do not overlap, and two that touch differ below.
//! So a set of elements has one tree, however it came about.  Nodes are shared: a
//! hyperslab of a thousand blocks has one node below all of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::{Axis, Dims, Hyperslab, SelectError};

/// Boxes that a selection is taken apart into, at most.
const MOST_BOXES: usize = 1 << 20;

/// Spans that one selection may have: 1 GiB of them.  Whoever selects more has made a
/// mistake, and should hear of it rather than run out of memory.
const MOST_SPANS: u64 = 1 << 25;

/// What is selected in the dimensions from one on; never empty.
///
/// The node below the last dimension has no spans and counts as one element.
#[derive(Debug, PartialEq, Eq)]
pub struct Node {
    pub spans: Box<[Span]>,
    /// Elements selected.
    pub len: u64,
}

/// The indexes `start..end` of one dimension, and what is selected at each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub end: u64,
    /// Elements selected in the spans before this one of the same node.
    pub before: u64,
    pub below: Arc<Node>,
}

impl Node {
    fn point() -> Arc<Self> {
        Arc::new(Self { spans: Box::default(), len: 1 })
    }

    /// The trees of hyperslabs, which together have so few spans that memory holds them.
    pub fn of_hyperslabs(slabs: &[&Hyperslab]) -> Result<Vec<Option<Arc<Self>>>, SelectError> {
        let spans = slabs.iter().flat_map(|slab| slab.axes()).map(Axis::count);
        if spans.fold(0, u64::saturating_add) > MOST_SPANS {
            return Err(SelectError::TooManySpans);
        }
        slabs.iter().map(|slab| Self::of_hyperslab(slab)).collect()
    }

    /// The tree of a hyperslab; None when it selects nothing.
    fn of_hyperslab(slab: &Hyperslab) -> Result<Option<Arc<Self>>, SelectError> {
        if slab.is_empty() {
            return Ok(None);
        }
        let mut node = Self::point();
        for axis in slab.axes().iter().rev() {
            let mut spans = Builder::default();
            for number in 0..axis.count() {
                let start = axis.start() + number * axis.stride();
                spans.push(start, start + axis.block(), &node)?;
            }
            node = spans.finish().ok_or(SelectError::Overflow("elements selected"))?;
        }
        Ok(Some(node))
    }

    /// The spans that hold any of the indexes `begin..end`.
    pub fn within(&self, begin: u64, end: u64) -> &[Span] {
        let first = self.spans.partition_point(|span| span.end <= begin);
        let rest = &self.spans[first..];
        &rest[..rest.partition_point(|span| span.start < end)]
    }

    /// The span that holds `index`.
    pub fn span_of(&self, index: u64) -> Option<&Span> {
        self.within(index, index.checked_add(1)?).first()
    }

    /// Where the element of rank `rank` in row-major order lies; it must be below `len`.
    pub fn element(&self, mut rank: u64) -> Dims {
        let mut at = Dims::new();
        let mut node = self;
        while let Some(number) = node.spans.partition_point(|s| s.before <= rank).checked_sub(1) {
            let span = &node.spans[number];
            rank -= span.before;
            at.push(span.start + rank / span.below.len);
            rank %= span.below.len;
            node = &span.below;
        }
        at
    }

    /// How many selected elements come before `element`, itself a selected one, or None.
    pub fn rank_of(&self, element: &[u64]) -> Option<u64> {
        let mut node = self;
        element.iter().try_fold(0, |rank, &index| {
            let span = node.span_of(index)?;
            node = &span.below;
            Some(rank + span.before + (index - span.start) * span.below.len)
        })
    }

    /// In each dimension the first index selected, and one past the last.
    pub fn bounds(self: &Arc<Self>) -> (Dims, Dims) {
        let (mut starts, mut ends) = (Dims::new(), Dims::new());
        let mut level = vec![self];
        loop {
            let firsts = level.iter().filter_map(|node| Some(node.spans.first()?.start));
            let lasts = level.iter().filter_map(|node| Some(node.spans.last()?.end));
            let (Some(start), Some(end)) = (firsts.min(), lasts.max()) else {
                return (starts, ends);
            };
            starts.push(start);
            ends.push(end);
            let mut seen = HashSet::new();
            level = level
                .iter()
                .flat_map(|node| node.spans.iter().map(|span| &span.below))
                .filter(|below| seen.insert(Arc::as_ptr(below)))
                .collect();
        }
    }
}

/// The spans of a node that is being made.
#[derive(Default)]
pub struct Builder {
    spans: Vec<Span>,
    len: u64,
}

impl Builder {
    /// Add a span that does not begin before the last one ends.
    pub fn push(&mut self, start: u64, end: u64, below: &Arc<Node>) -> Result<(), SelectError> {
        let overflow = SelectError::Overflow("elements selected");
        let len = (end - start).checked_mul(below.len);
        let len = len.and_then(|len| len.checked_add(self.len)).ok_or(overflow)?;
        let last = self.spans.last_mut().filter(|last| last.end == start && last.below == *below);
        if let Some(last) = last {
            last.end = end;
        } else if self.spans.len() as u64 >= MOST_SPANS {
            return Err(SelectError::TooManySpans);
        } else {
            self.spans.push(Span { start, end, before: self.len, below: Arc::clone(below) });
        }
        self.len = len;
        Ok(())
    }

    /// The node; None when nothing is selected.
    pub fn finish(self) -> Option<Arc<Node>> {
        let node = Node { spans: self.spans.into_boxed_slice(), len: self.len };
        (!node.spans.is_empty()).then(|| Arc::new(node))
    }
}

/// What becomes of elements of two sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Those of either.
    Or,
    /// Those of both.
    And,
    /// Those of the first that are not of the second.
    Minus,
}

impl Operation {
    /// Combine two trees of the same rank.
    pub fn of(
        self,
        left: Option<&Arc<Node>>,
        right: Option<&Arc<Node>>,
    ) -> Result<Option<Arc<Node>>, SelectError> {
        Combining { operation: self, done: HashMap::new(), spans: 0 }.either(left, right)
    }
}

/// A combination under way.
struct Combining {
    operation: Operation,
    /// Pairs of nodes that were met before, as they are where nodes are shared.  The
    /// trees that are combined outlive this, so that an address stays one node's.
    done: HashMap<(*const Node, *const Node), Option<Arc<Node>>>,
    spans: u64,
}

impl Combining {
    fn either(
        &mut self,
        left: Option<&Arc<Node>>,
        right: Option<&Arc<Node>>,
    ) -> Result<Option<Arc<Node>>, SelectError> {
        Ok(match (left, right) {
            (None, None) => None,
            (Some(node), None) => (self.operation != Operation::And).then(|| Arc::clone(node)),
            (None, Some(node)) => (self.operation == Operation::Or).then(|| Arc::clone(node)),
            (Some(left), Some(right)) => self.both(left, right)?,
        })
    }

    fn both(
        &mut self,
        left: &Arc<Node>,
        right: &Arc<Node>,
    ) -> Result<Option<Arc<Node>>, SelectError> {
        // The points below the last dimension are all the same.
        if Arc::ptr_eq(left, right) || left.spans.is_empty() {
            return Ok((self.operation != Operation::Minus).then(|| Arc::clone(left)));
        }
        let pair = (Arc::as_ptr(left), Arc::as_ptr(right));
        if let Some(done) = self.done.get(&pair) {
            return Ok(done.clone());
        }
        let mut spans = Builder::default();
        let (mut ours, mut theirs) = (left.spans.iter().peekable(), right.spans.iter().peekable());
        let mut at = 0;
        loop {
            // Up to `end`, either side has one and the same node below, or nothing.
            let inside = |span: Option<&&Span>| span.is_some_and(|span| span.start <= at);
            let until = |span: Option<&&Span>| {
                span.map(|span| if span.start <= at { span.end } else { span.start })
            };
            let (l, r) = (ours.peek(), theirs.peek());
            let Some(end) = until(l).into_iter().chain(until(r)).min() else { break };
            let below = self.either(
                l.filter(|_| inside(l)).map(|span| &span.below),
                r.filter(|_| inside(r)).map(|span| &span.below),
            )?;
            if let Some(below) = below {
                spans.push(at, end, &below)?;
            }
            at = end;
            ours.next_if(|span| span.end == at);
            theirs.next_if(|span| span.end == at);
        }
        self.spans += spans.spans.len() as u64;
        if self.spans > MOST_SPANS {
            return Err(SelectError::TooManySpans);
        }
        let node = spans.finish();
        self.done.insert(pair, node.clone());
        Ok(node)
    }
}

/// The chunks of these lengths that a tree touches, as a tree over the grid of chunks.
pub fn chunks_of(root: &Arc<Node>, chunk: &[u64]) -> Result<Arc<Node>, SelectError> {
    Coarsening { done: HashMap::new() }.node(root, chunk)
}

struct Coarsening {
    done: HashMap<*const Node, Arc<Node>>,
}

impl Coarsening {
    fn node(&mut self, node: &Arc<Node>, chunk: &[u64]) -> Result<Arc<Node>, SelectError> {
        let [len, rest @ ..] = chunk else { return Ok(Arc::clone(node)) };
        if let Some(done) = self.done.get(&Arc::as_ptr(node)) {
            return Ok(Arc::clone(done));
        }
        let mut spans = Builder::default();
        // The last chunk touched so far, which the next span may touch as well.
        let mut open: Option<(u64, Arc<Node>)> = None;
        for span in &node.spans {
            let (mut first, last) = (span.start / len, (span.end - 1) / len);
            let below = self.node(&span.below, rest)?;
            if let Some((at, touched)) = open.take() {
                if at == first {
                    let both = Operation::Or.of(Some(&touched), Some(&below))?;
                    let both = both.unwrap_or(touched);
                    if last == first {
                        open = Some((at, both));
                        continue;
                    }
                    spans.push(at, at + 1, &both)?;
                    first += 1;
                } else {
                    spans.push(at, at + 1, &touched)?;
                }
            }
            if first < last {
                spans.push(first, last, &below)?;
            }
            open = Some((last, below));
        }
        if let Some((at, touched)) = open {
            spans.push(at, at + 1, &touched)?;
        }
        let coarse = spans.finish().unwrap_or_else(|| Arc::clone(node));
        self.done.insert(Arc::as_ptr(node), Arc::clone(&coarse));
        Ok(coarse)
    }
}

/// One row-major run after another: the element where it begins, and its length.
#[derive(Debug, Clone)]
pub struct Runs<'a> {
    /// The node of each dimension, and which of its spans the next run lies in.
    path: Vec<(&'a Node, usize)>,
    /// The element where the next run begins; None at the end.
    at: Option<Dims>,
}

impl<'a> Runs<'a> {
    pub fn new(root: Option<&'a Node>) -> Self {
        let mut runs = Self { path: Vec::new(), at: root.map(|_| Dims::new()) };
        if let Some(root) = root {
            runs.descend(root);
        }
        runs
    }

    /// Go to the first run below `node`.
    fn descend(&mut self, mut node: &'a Node) {
        while let (Some(span), Some(at)) = (node.spans.first(), &mut self.at) {
            self.path.push((node, 0));
            at.push(span.start);
            node = &span.below;
        }
    }

    fn advance(&mut self) {
        let rank = self.path.len();
        while let (Some((node, number)), Some(at)) = (self.path.pop(), &mut self.at) {
            let span = &node.spans[number];
            let index = at.pop().unwrap_or_default() + 1;
            // In the last dimension a run is a whole span.
            let (number, index) = if self.path.len() + 1 < rank && index < span.end {
                (number, index)
            } else if let Some(next) = node.spans.get(number + 1) {
                (number + 1, next.start)
            } else {
                continue;
            };
            at.push(index);
            self.path.push((node, number));
            self.descend(&node.spans[number].below);
            return;
        }
        self.at = None;
    }
}

impl Iterator for Runs<'_> {
    type Item = (Dims, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at.clone()?;
        let len = self.path.last().map_or(1, |(node, number)| {
            let span = &node.spans[*number];
            span.end - span.start
        });
        self.advance();
        Some((start, len))
    }
}

/// One box after another that together are the selection: the spans met on the way down.
pub fn boxes(node: &Arc<Node>, outer: &mut Vec<Axis>, found: &mut Vec<Hyperslab>) -> Option<()> {
    if node.spans.is_empty() {
        found.push(Hyperslab::from_axes(outer.iter().copied().collect()));
        return (found.len() <= MOST_BOXES).then_some(());
    }
    node.spans.iter().try_for_each(|span| {
        outer.push(Axis::range(span.start, span.end - span.start));
        let boxes = boxes(&span.below, outer, found);
        outer.pop();
        boxes
    })
}
