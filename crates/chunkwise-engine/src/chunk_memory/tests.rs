use proptest::prelude::*;

use super::*;

const MIB: usize = 1 << 20;

fn idle(slabs: &Slabs) -> usize {
    slabs.locked().idle_nbytes
}

/// What nobody uses, counted anew.
fn counted(slabs: &Slabs) -> usize {
    slabs.locked().slabs.values().map(|slab| slab.idle.len() * slab.size).sum()
}

fn is_alone(memory: &ChunkMemory) -> bool {
    matches!(memory, ChunkMemory::Alone(_))
}

#[test]
fn chunks_of_one_size_share_slabs_which_grow() {
    let slabs = Slabs::new(32 * MIB);
    let chunks: Vec<_> = (0..64).map(|_| slabs.take(MIB - 5).unwrap()).collect();
    assert!(chunks.iter().all(|chunk| (chunk.len(), chunk.capacity()) == (MIB - 5, MIB)));
    let sizes: Vec<usize> = slabs.locked().slabs.values().map(Slab::nbytes).collect();
    assert_eq!(sizes, [4, 4, 8, 16, 16, 16].map(|size| size * MIB));
    drop(chunks);
    assert!(idle(&slabs) <= 32 * MIB && idle(&slabs) == counted(&slabs));
    assert!(idle(&slabs) >= 16 * MIB);
}

#[test]
fn small_chunks_and_those_without_room_have_memory_of_their_own() {
    let slabs = Slabs::new(0);
    for nbytes in [0, 1, LEAST_NBYTES - 1, LEAST_NBYTES, MIB / 2] {
        let chunk = slabs.take(nbytes).unwrap();
        assert!(is_alone(&chunk) && chunk.len() == nbytes);
    }
    // A large one goes back to the system at once.
    let large = slabs.take(3 * MIB).unwrap();
    assert!(!is_alone(&large) && large.len() == 3 * MIB);
    drop(large);
    assert!(slabs.locked().slabs.is_empty());
    assert!(slabs.take(usize::MAX).is_err() && slabs.take(usize::MAX / 2).is_err());
    assert!(slabs.take_about(usize::MAX).is_err());
}

#[test]
fn a_place_is_used_again_as_it_was_left() {
    let slabs = Slabs::new(8 * MIB);
    let mut first = slabs.take(MIB).unwrap();
    assert!(first.iter().all(|&byte| byte == 0));
    first.fill(7);
    let start = first.as_ptr();
    drop(first);
    let second = slabs.take(MIB - 100).unwrap();
    assert_eq!((second.as_ptr(), second[MIB - 101]), (start, 7));
    // Its memory goes to the system, and its neighbour's stays.
    let mut third = slabs.take(MIB).unwrap();
    third.fill(3);
    drop(second);
    slabs.give_back();
    assert_eq!((idle(&slabs), slabs.locked().slabs.len()), (0, 1));
    assert!(third.iter().all(|&byte| byte == 3));
    assert_eq!(slabs.take(MIB).unwrap().len(), MIB);
    slabs.limit(0);
    drop(third);
    assert!(slabs.locked().slabs.is_empty());
}

#[test]
fn parts_of_chunks_are_of_few_sizes() {
    let slabs = Slabs::new(32 * MIB);
    let chunks: Vec<_> = (600..700).map(|part| slabs.take_about(part * 1000).unwrap()).collect();
    assert!(chunks.iter().zip(600..).all(|(chunk, part)| chunk.len() == part * 1000));
    assert!(chunks.iter().all(|chunk| chunk.capacity() <= chunk.len() * 17 / 16 + PAGE));
    let sizes: std::collections::BTreeSet<_> = chunks.iter().map(ChunkMemory::capacity).collect();
    assert!(sizes.len() < 5, "{sizes:?}");
    assert_eq!(slabs.take_about(10).unwrap().len(), 10);
}

proptest! {
    /// Whatever is taken and given back, no two have the same bytes, and what nobody uses is counted
    /// and limited.
    #[test]
    fn nobody_has_the_memory_of_another(
        steps in prop::collection::vec((0..5_usize, 0..12_usize, any::<u8>()), 1..60),
        most in prop::sample::select(vec![0, MIB / 8, 2 * MIB, 20 * MIB]),
    ) {
        let slabs = Slabs::new(most);
        let mut held: Vec<(ChunkMemory, u8)> = Vec::new();
        for (size, what, byte) in steps {
            let nbytes = [40_000, 131_072, 700_001, MIB, 5 * MIB][size];
            match what {
                0 => slabs.give_back(),
                1 => slabs.limit(most / 2),
                2..6 if !held.is_empty() => {
                    let (chunk, byte) = held.swap_remove(size % held.len());
                    prop_assert!(chunk.iter().all(|&found| found == byte));
                }
                _ => {
                    let mut chunk = slabs.take(nbytes).unwrap();
                    prop_assert_eq!(chunk.len(), nbytes);
                    chunk.fill(byte);
                    held.push((chunk, byte));
                }
            }
            prop_assert_eq!(idle(&slabs), counted(&slabs));
            let used: usize = slabs.locked().slabs.values().map(|slab| slab.used * slab.size).sum();
            let places = held.iter().filter(|(chunk, _)| !is_alone(chunk));
            prop_assert_eq!(used, places.map(|(chunk, _)| chunk.capacity()).sum::<usize>());
            prop_assert!(idle(&slabs) <= most);
        }
        for (chunk, byte) in &held {
            prop_assert!(chunk.iter().all(|found| found == byte));
        }
        held.clear();
        slabs.give_back();
        prop_assert!(slabs.locked().slabs.is_empty());
    }
}
