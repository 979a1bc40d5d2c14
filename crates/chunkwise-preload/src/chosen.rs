//! What of a dataset has a call chosen, in little room?

use chunkwise_select::{Axis, Hyperslab};

/// A box of more dimensions is kept as any other hyperslab.
pub const MOST_RANK: usize = 4;

/// A hyperslab without gaps.
#[derive(Clone, Copy)]
pub struct Boxed {
    pub rank: usize,
    /// First element and length of each dimension.
    pub axes: [(u64, u64); MOST_RANK],
}

/// What is selected, in little room.
pub enum Chosen {
    Box(Boxed),
    Slab(Box<Hyperslab>),
    /// What is no regular hyperslab.
    Odd,
}

impl From<Option<Hyperslab>> for Chosen {
    fn from(slab: Option<Hyperslab>) -> Self {
        let Some(slab) = slab else { return Self::Odd };
        let rank = slab.rank();
        if rank > MOST_RANK || !slab.axes().iter().all(Axis::is_contiguous) {
            return Self::Slab(Box::new(slab));
        }
        let mut axes = [(0, 0); MOST_RANK];
        for (to, axis) in axes.iter_mut().zip(slab.axes()) {
            *to = (axis.start(), axis.len());
        }
        Self::Box(Boxed { rank, axes })
    }
}

impl Chosen {
    /// As others take it.
    pub fn slab(&self) -> Option<Hyperslab> {
        match self {
            Self::Box(Boxed { rank, axes }) => {
                let axes = axes[..*rank].iter().map(|&(start, len)| Axis::range(start, len));
                Some(Hyperslab::from_axes(axes.collect()))
            }
            Self::Slab(slab) => Some((**slab).clone()),
            Self::Odd => None,
        }
    }

    /// Dimensions.
    pub fn rank(&self) -> Option<usize> {
        match self {
            Self::Box(boxed) => Some(boxed.rank),
            Self::Slab(slab) => Some(slab.rank()),
            Self::Odd => None,
        }
    }
}
