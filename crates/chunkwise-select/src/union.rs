//! Which elements do several hyperslabs select together?

use std::sync::Arc;

use crate::spans::{Node, Operation, Runs, boxes};
use crate::{Axis, Dims, Hyperslab, SelectError};

/// Any set of elements of an array, as the union of hyperslabs: each counted once, in
/// row-major order.
///
/// Two unions are equal when they select the same elements, whatever they were made of.
/// Cloning one is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Union {
    rank: usize,
    root: Option<Arc<Node>>,
}

impl Union {
    /// The elements of these hyperslabs of `rank` dimensions, which may overlap; of none
    /// of them, no elements.
    ///
    /// # Errors
    /// When ranks differ, or the selection is too irregular to hold or too large to count.
    pub fn new<'s>(
        rank: usize,
        slabs: impl IntoIterator<Item = &'s Hyperslab>,
    ) -> Result<Self, SelectError> {
        let mut slabs: Vec<&Hyperslab> = slabs.into_iter().collect();
        if let Some(odd) = slabs.iter().find(|slab| slab.rank() != rank) {
            return Err(SelectError::Rank { selection: odd.rank(), dataset: rank });
        }
        // Neighbours are combined first: what lies far apart only adds to the work.
        slabs.sort_by_key(|slab| slab.axes().first().map(Axis::start));
        let mut trees = Node::of_hyperslabs(&slabs)?;
        // In pairs, and pairs of those: large trees are gone through a few times, rather
        // than once for each hyperslab.
        while trees.len() > 1 {
            trees = trees
                .chunks(2)
                .map(|pair| {
                    let right = pair.get(1).and_then(Option::as_ref);
                    Operation::Or.of(pair[0].as_ref(), right)
                })
                .collect::<Result<_, _>>()?;
        }
        Ok(Self { rank, root: trees.pop().flatten() })
    }

    pub(crate) fn from_root(rank: usize, root: Option<Arc<Node>>) -> Self {
        Self { rank, root }
    }

    pub(crate) fn root(&self) -> Option<&Arc<Node>> {
        self.root.as_ref()
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of elements selected.
    pub fn len(&self) -> u64 {
        self.root.as_ref().map_or(0, |root| root.len)
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// In each dimension the first index selected, and one past the last; None when
    /// nothing is selected.
    pub fn bounds(&self) -> Option<(Dims, Dims)> {
        self.root.as_ref().map(Node::bounds)
    }

    /// Whether this element is selected.
    pub fn contains(&self, element: &[u64]) -> bool {
        self.rank_of(element).is_some()
    }

    /// How many selected elements come before this one in row-major order, which is its
    /// place in a result; None when it is not selected.
    pub fn rank_of(&self, element: &[u64]) -> Option<u64> {
        let root = self.root.as_ref().filter(|_| element.len() == self.rank)?;
        root.rank_of(element)
    }

    /// The selected element that this many others come before; None beyond the last.
    pub fn element(&self, rank: u64) -> Option<Dims> {
        self.root.as_ref().filter(|root| rank < root.len).map(|root| root.element(rank))
    }

    /// The runs of neighbours in the last dimension, in row-major order: the element where
    /// each begins, and its length.
    pub fn runs(&self) -> impl Iterator<Item = (Dims, u64)> {
        Runs::new(self.root.as_deref())
    }

    /// Boxes that do not overlap and together are the union, in order of their first
    /// elements.
    ///
    /// # Errors
    /// When there are more than anybody can have meant.
    pub fn boxes(&self) -> Result<Vec<Hyperslab>, SelectError> {
        let mut found = Vec::new();
        let complete = self.root.as_ref().is_none_or(|root| {
            let mut outer = Vec::with_capacity(self.rank);
            boxes(root, &mut outer, &mut found).is_some()
        });
        if complete { Ok(found) } else { Err(SelectError::TooManySpans) }
    }

    /// The elements of either.
    ///
    /// # Errors
    /// When the ranks differ, or the selection is too irregular to hold or too large to
    /// count.
    pub fn or(&self, other: &Self) -> Result<Self, SelectError> {
        self.combined(Operation::Or, other)
    }

    /// The elements of both.
    ///
    /// # Errors
    /// As [`or`](Self::or).
    pub fn and(&self, other: &Self) -> Result<Self, SelectError> {
        self.combined(Operation::And, other)
    }

    /// The elements of this one that are not of the other.
    ///
    /// # Errors
    /// As [`or`](Self::or).
    pub fn minus(&self, other: &Self) -> Result<Self, SelectError> {
        self.combined(Operation::Minus, other)
    }

    fn combined(&self, operation: Operation, other: &Self) -> Result<Self, SelectError> {
        if self.rank != other.rank {
            return Err(SelectError::Rank { selection: other.rank, dataset: self.rank });
        }
        let root = operation.of(self.root.as_ref(), other.root.as_ref())?;
        Ok(Self { rank: self.rank, root })
    }
}
