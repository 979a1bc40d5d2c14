//! What does the cache keep, and what goes first?

use super::*;

/// A chunk that costs `nbytes` thousand bytes to keep.
fn chunk(nbytes: usize) -> Decoded {
    Arc::new(vec![0; 1000 * nbytes - ENTRY_NBYTES])
}

#[test]
fn the_oldest_goes_first_and_the_budget_holds() {
    let mut cache = ChunkCache::new(100_000);
    for position in 0..10 {
        cache.put((1, position), chunk(30), position);
        assert!(cache.stats().held_nbytes <= 100_000);
    }
    assert!(cache.get((1, 9), 11).is_some());
    assert!(cache.get((1, 7), 11).is_some());
    assert!(cache.get((1, 6), 11).is_none());
}

#[test]
fn the_newest_stays_even_when_it_is_too_large() {
    let mut cache = ChunkCache::new(100_000);
    cache.put((1, 0), chunk(30), 0);
    cache.put((1, 1), chunk(500), 1);
    assert!(cache.get((1, 1), 2).is_some());
    assert!(cache.get((1, 0), 2).is_none());
    cache.put((1, 2), chunk(50), 3);
    assert!(cache.get((1, 1), 4).is_none());
    assert_eq!(cache.stats().held_nbytes, 50_000);
}

/// A walk whose every step touches more than fits: with plain least-recently-used
/// no step would find anything.
#[test]
fn a_cyclic_scan_keeps_what_fits() {
    let mut cache = ChunkCache::new(100_000);
    let mut hits = 0;
    for read in 0..5 {
        for position in 0..15 {
            match cache.get((1, position), read) {
                Some(_) => hits += 1,
                None => cache.put((1, position), chunk(10), read),
            }
        }
    }
    assert!(hits >= 4 * 5, "{hits} hits");
    assert!(cache.stats().held_nbytes <= 100_000);
}

#[test]
fn prefetching_grows_when_it_pays_and_stops_when_it_does_not() {
    let mut cache = ChunkCache::new(100_000);
    assert_eq!(cache.prefetch_depth(8), 1);
    cache.put_prefetched((1, 0), chunk(10), 0);
    assert!(cache.get((1, 0), 1).is_some());
    assert_eq!(cache.prefetch_depth(8), 8);
    for position in 1..14 {
        cache.put_prefetched((1, position), chunk(10), position);
    }
    assert_eq!(cache.prefetch_depth(8), 0);
}

/// What a program keeps coming back to survives one pass over something larger.
#[test]
fn a_scan_does_not_drive_out_what_is_used_again() {
    let mut cache = ChunkCache::new(100_000);
    for read in 0..3 {
        for position in 0..5 {
            if cache.get((1, position), read).is_none() {
                cache.put((1, position), chunk(10), read);
            }
        }
    }
    // One read of a chunk after the other, and one that touches them all.
    for position in 0..20 {
        cache.put((2, position), chunk(10), 10 + position);
    }
    for position in 0..20 {
        cache.put((3, position), chunk(10), 50);
    }
    assert!((0..5).all(|position| cache.get((1, position), 60).is_some()));
    assert!(cache.stats().held_nbytes <= 100_000);
    // Until something else is used again and again.
    for read in 100..103 {
        for position in 0..8 {
            if cache.get((4, position), read).is_none() {
                cache.put((4, position), chunk(10), read);
            }
        }
    }
    assert!((0..8).all(|position| cache.get((4, position), 200).is_some()));
    assert!(cache.stats().held_nbytes <= 100_000);
}

#[test]
fn memory_of_chunks_that_went_is_used_again_within_bounds() {
    let mut cache = ChunkCache::new(1_000_000);
    for position in 0..100 {
        assert!(cache.would_keep(10_000, position));
        cache.put((1, position), chunk(10), position);
    }
    cache.forget(1);
    let spared: usize = cache.spares.iter().map(Vec::len).sum();
    assert!(spared <= 125_000 && spared > 100_000, "{spared}");
    assert!(cache.spare(9_000).len() >= 9_000);
    // What was cut to a smaller chunk counts as what it takes.
    let mut cut = cache.spare(6_000);
    cut.truncate(6_000);
    cache.put((2, 0), Arc::new(cut), 200);
    assert!(cache.stats().held_nbytes >= 10_000 - ENTRY_NBYTES);
    // Neither too small nor far too large.
    assert!(cache.spare(20_000).is_empty() && cache.spare(100).is_empty());
    // A chunk that somebody copies from is left alone.
    let mut other = ChunkCache::new(1_000_000);
    let held = chunk(10);
    other.put((1, 0), Arc::clone(&held), 0);
    other.forget(1);
    assert!(other.spares.is_empty());
}

#[test]
fn what_one_read_brings_beyond_the_budget_is_not_kept() {
    let mut cache = ChunkCache::new(100_000);
    for position in 0..20 {
        let keeps = cache.would_keep(10_000 - ENTRY_NBYTES as u64, 1);
        cache.put((1, position), chunk(10), 1);
        assert_eq!(cache.holds((1, position)), keeps);
    }
    assert!(!cache.would_keep(10_000, 1));
    assert!(cache.would_keep(10_000, 2));
    // Alone, as the last chunk.
    assert!(cache.would_keep(1 << 40, 1));
}

#[test]
fn a_chunk_that_comes_twice_counts_once() {
    let mut cache = ChunkCache::new(100_000);
    for read in 0..4 {
        cache.put((1, 0), chunk(10), read);
        assert!(cache.get((1, 0), read + 10).is_some());
        assert_eq!(cache.stats().held_nbytes, 10_000);
    }
    cache.forget(1);
    assert_eq!((cache.stats().held_nbytes, cache.protected_nbytes), (0, 0));
}

#[test]
fn a_smaller_budget_counts_at_once() {
    let mut cache = ChunkCache::new(100_000);
    for position in 0..10 {
        cache.put((1, position), chunk(10), position);
        // Every other one is used again.
        let _ = (position % 2 == 0).then(|| cache.get((1, position), 100));
    }
    cache.set_budget(45_000);
    assert_eq!(cache.stats(), CacheStats { held_nbytes: 40_000, ..cache.stats() });
    // What was used again is worth more.
    assert!([2, 4, 6, 8].iter().all(|&position| cache.holds((1, position))));
    assert!(cache.protected_nbytes <= 36_000);
    assert!(cache.spares.is_empty());
    cache.set_budget(1_000_000);
    assert_eq!((cache.stats().held_nbytes, cache.stats().budget_nbytes), (40_000, 1_000_000));
    cache.set_budget(0);
    assert_eq!((cache.stats().held_nbytes, cache.protected_nbytes), (0, 0));
    assert!(cache.spares.is_empty() && cache.counts.is_empty());
}

#[test]
fn without_a_budget_nothing_is_kept() {
    let mut cache = ChunkCache::new(0);
    assert!(!cache.would_keep(10, 0) && !cache.would_keep(1 << 40, 0));
    cache.put((1, 0), chunk(10), 0);
    cache.put_prefetched((1, 1), chunk(10), 0);
    assert_eq!((cache.stats().held_nbytes, cache.spares.len()), (0, 0));
    assert!(cache.get((1, 0), 1).is_none());
}

#[test]
fn a_cleared_cache_is_empty_and_goes_on() {
    let mut cache = ChunkCache::new(100_000);
    for read in 0..3 {
        cache.put((1, read), chunk(10), read);
        assert!(cache.get((1, read), 10).is_some());
    }
    let before = cache.stats();
    cache.clear();
    assert_eq!(cache.stats(), CacheStats { held_nbytes: 0, ..before });
    assert_eq!((cache.protected_nbytes, cache.spares.len(), cache.counts.len()), (0, 0, 0));
    cache.put((1, 0), chunk(10), 0);
    cache.forget(1);
    assert_eq!(cache.stats().held_nbytes, 0);
}

#[test]
fn a_dataset_is_forgotten_whole() {
    let mut cache = ChunkCache::new(100_000);
    cache.put((1, 0), chunk(10), 0);
    cache.put((2, 0), chunk(20), 0);
    cache.put((2, 0), chunk(20), 0);
    cache.forget(1);
    cache.forget(3);
    assert!(cache.get((1, 0), 1).is_none());
    assert_eq!(cache.stats().held_nbytes, 20_000);
}

/// Blocks of `nbytes` thousand bytes together, one for each number.
fn blocks(numbers: std::ops::Range<usize>, nbytes: usize) -> Vec<(usize, KeptBlock)> {
    let each = 1000 * nbytes / numbers.len();
    let ranges =
        numbers.clone().map(|n| (n, (n - numbers.start) * each..(n - numbers.start + 1) * each));
    KeptBlock::of(Arc::new(vec![7; 1000 * nbytes]), ranges.collect())
}

#[test]
fn blocks_of_a_chunk_count_as_what_they_take_and_give_way_to_the_chunk() {
    let mut cache = ChunkCache::new(100_000);
    assert!(cache.get((1, 0), 0).is_none());
    cache.keep_blocks((1, 0), blocks(0..4, 20), None, 0);
    assert!((20_000..21_000).contains(&cache.stats().held_nbytes));
    cache.keep_blocks((1, 0), blocks(6..8, 10), None, 1);
    assert!((30_000..31_500).contains(&cache.stats().held_nbytes));
    assert_eq!((cache.blocks_held((1, 0)), cache.holds((1, 0))), (Some(6), false));
    // What is there is wanted no more.
    let mut wanted = [false, true, true, false, true, false, true];
    let (found, reads) = cache.blocks((1, 0), 2, &mut wanted);
    assert_eq!(reads, 1);
    assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 6]);
    assert!(found.iter().all(|(_, block)| block.bytes().len() == 5000));
    assert_eq!(wanted, [false, false, false, false, true, false, false]);
    // A miss that was none after all.
    assert!(cache.get((1, 0), 3).is_none());
    let before = cache.stats();
    assert_eq!(cache.blocks((1, 0), 3, &mut [true, true]).1, 2);
    let after = cache.stats();
    assert_eq!((after.hits, after.misses), (before.hits + 1, before.misses - 1));
    cache.put((1, 0), chunk(40), 4);
    assert_eq!((cache.stats().held_nbytes, cache.blocks_held((1, 0))), (40_000, None));
    // The chunk is better.
    cache.keep_blocks((1, 0), blocks(0..4, 20), None, 5);
    assert!(cache.holds((1, 0)) && cache.stats().held_nbytes == 40_000);
}

#[test]
fn blocks_go_as_chunks_do_and_their_memory_is_used_again() {
    let mut cache = ChunkCache::new(1_000_000);
    for position in 0..200 {
        cache.keep_blocks((1, position), blocks(0..3, 20), None, position);
        assert!(cache.stats().held_nbytes <= 1_000_000);
    }
    assert!(cache.blocks_held((1, 199)) == Some(3) && cache.blocks_held((1, 0)).is_none());
    assert!(cache.spare(20_000).capacity() >= 20_000);
    cache.forget(1);
    assert_eq!((cache.stats().held_nbytes, cache.protected_nbytes), (0, 0));
    cache.set_budget(0);
    cache.keep_blocks((1, 0), blocks(0..3, 20), None, 0);
    assert_eq!((cache.stats().held_nbytes, cache.blocks_held((1, 0))), (0, None));
}
