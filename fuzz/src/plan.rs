//! Do a plan's strips take each selected element once, and stay within their bounds?

use std::collections::HashMap;

use arbitrary::{Result, Unstructured};
use chunkwise_select::{ChunkGrid, Dims, Hyperslab, Plan, Selected, Union};

use crate::memory::within;
use crate::numbers::{dims, slab};
use crate::product::product;

/// Plans with more elements or chunks than this are asked for figures, not walked.
const MOST_WALKED: u64 = 1 << 12;

/// A union of few hyperslabs has at most so many bytes of spans, or is refused.
const MOST_NBYTES: usize = 64 << 20;

/// Hyperslabs of more blocks than this are not made a union: its spans take memory for
/// each of them, rightly.
const MOST_BLOCKS: u64 = 1 << 14;

pub(crate) fn check(input: &[u8]) {
    let mut input = Unstructured::new(input);
    within(MOST_NBYTES, || {
        // An input that ends early says nothing.
        let _: Result<()> = any_plan(&mut input);
    });
}

fn any_plan(input: &mut Unstructured<'_>) -> Result<()> {
    let rank = input.int_in_range(1..=4)?;
    let (shape, chunk) = (dims(input, rank, 0)?, dims(input, rank, 1)?);
    let Ok(grid) = ChunkGrid::new(&shape, &chunk) else { return Ok(()) };
    let mut slabs = Vec::new();
    for _ in 0..input.int_in_range(1..=4)? {
        slabs.extend(slab(input, &shape)?);
    }
    if let Some(slab) = slabs.first() {
        let at = |place| position_in_slab(slab, place);
        planned(&grid, slab.into(), true, at);
    }
    let few = |slab: &Hyperslab| slab.axes().iter().all(|axis| axis.count() <= MOST_BLOCKS);
    if slabs.iter().all(few)
        && let Ok(union) = Union::new(rank, &slabs)
    {
        planned(&grid, (&union).into(), true, |place| union.element(place));
    }
    if let Some(listed) = product(input, &shape)? {
        planned(&grid, (&listed.product).into(), false, |place| listed.element(place));
    }
    Ok(())
}

/// Which element comes at a place of the result.
fn position_in_slab(slab: &Hyperslab, mut place: u64) -> Option<Dims> {
    let mut element: Dims = slab.shape();
    for (index, axis) in element.iter_mut().zip(slab.axes()).rev() {
        let len = *index;
        *index = axis.index_of(place.checked_rem(len)?);
        place /= len;
    }
    Some(element)
}

/// Make the plan, and walk it if it is not too long.  `once`: no element is wanted twice, and
/// strips come in the order of the chunk where that is asked for.
fn planned(
    grid: &ChunkGrid,
    selected: Selected<'_>,
    once: bool,
    element: impl Fn(u64) -> Option<Dims>,
) {
    let Ok(plan) = Plan::new(grid, selected) else { return };
    let summary = plan.summary();
    assert_eq!(summary.chunks, plan.len());
    if plan.len() > MOST_WALKED || summary.selected_elements > MOST_WALKED {
        for number in [0, plan.len() / 2, plan.len() - 1] {
            let task = plan.task(number);
            let chunk_index = task.chunk_index();
            assert_eq!(grid.linear_index(&chunk_index), Some(task.linear_index()));
            assert_eq!(plan.selected_of(&chunk_index), task.selected_elements());
            assert!(!once || task.selected_elements() <= grid.chunk_len());
            assert!(task.lands_whole_at().is_none() || task.takes_all());
        }
        return;
    }
    // Places in the result, and from which chunk and element of it they come.
    let mut taken: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut last = None;
    for task in plan.tasks() {
        let position = task.linear_index();
        assert!(last.is_none_or(|last| last < position), "tasks are not in order");
        last = Some(position);
        assert_eq!(grid.linear_index(&task.chunk_index()), Some(position));
        assert_eq!(plan.selected_of(&task.chunk_index()), task.selected_elements());
        let before = taken.len() as u64;
        task.for_each_strip(|strip| {
            for (src, dst) in strip.places() {
                assert!(src < grid.chunk_len(), "{strip:?} leaves its chunk");
                let other = taken.insert(dst, (position, src));
                assert_eq!(other, None, "{strip:?} takes an element again");
            }
        });
        assert_eq!(taken.len() as u64 - before, task.selected_elements());
        let mut end = 0;
        task.for_each_strip_in_order(|strip| {
            for (src, dst) in strip.places() {
                assert!(!once || src >= end, "{strip:?} goes back");
                end = src + 1;
                assert_eq!(taken.get(&dst), Some(&(position, src)));
            }
        });
        if let Some(begin) = task.lands_whole_at() {
            assert!(task.takes_all());
            assert_eq!(task.selected_elements(), grid.chunk_len());
            let all = 0..grid.chunk_len();
            assert!(all.into_iter().all(|i| taken.get(&(begin + i)) == Some(&(position, i))));
        }
    }
    assert_eq!(taken.len() as u64, summary.selected_elements);
    for place in 0..summary.selected_elements {
        let wanted = element(place).map(|element| place_in_chunk(grid, &element));
        assert_eq!(taken.get(&place).copied(), wanted, "at {place}");
    }
}

/// An element's chunk, and its place there, each in row-major order.
fn place_in_chunk(grid: &ChunkGrid, element: &[u64]) -> (u64, u64) {
    let dims = element.iter().zip(grid.chunk()).zip(grid.counts());
    dims.fold((0, 0), |(chunk, inside), ((&index, &size), &count)| {
        (chunk * count + index / size, inside * size + index % size)
    })
}
