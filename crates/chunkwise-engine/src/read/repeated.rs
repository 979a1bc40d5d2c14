//! Which chunks does a program read whole again and again?
//!
//! A chunk that is wanted whole is decoded in place, and not kept: most walks do not come back.
//! One that is wanted whole a second time, by a read that leaves room for others, is kept.  What a
//! small read wants is kept at once, as libhdf5's cache keeps it: to copy it costs little.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::cache_entry::ChunkKey;

/// This many chunks are remembered; others take their places.
const PLACES: usize = 4096;
/// A read may be as large as one part in this many of what the cache may hold.
const SHARE: usize = 4;
/// As much as libhdf5's cache of a dataset held until 2.0.
const SMALL_NBYTES: usize = 1 << 20;

static WHOLE: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// Whether a read of `nbytes` leaves room for others in a cache of this many.
pub fn leaves_room(nbytes: usize, budget_nbytes: usize) -> bool {
    nbytes <= budget_nbytes / SHARE
}

/// Whether a read is so small that all of it is kept.
pub fn is_small(nbytes: usize) -> bool {
    nbytes <= SMALL_NBYTES
}

/// Whether this chunk was wanted whole before; from now on it was.
pub fn was_wanted_whole((dataset, position): ChunkKey) -> bool {
    // Neighbours get places of their own; two datasets seldom the same ones.
    let place = position.wrapping_add(dataset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32);
    let name = dataset.wrapping_shl(40) ^ position.wrapping_add(1);
    WHOLE[(place % PLACES as u64) as usize].swap(name, Relaxed) == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_time() {
        // Numbers that no other test's datasets have.
        let (one, other) = (1 << 22, (1 << 22) + 1);
        assert!((0..1000).all(|position| !was_wanted_whole((one, position))));
        assert!((0..1000).all(|position| was_wanted_whole((one, position))));
        assert!(!was_wanted_whole((other, 3)));
        assert!(leaves_room(100, 400) && !leaves_room(101, 400) && !leaves_room(1, 0));
    }
}
