//! A union is what an array of flags says it is, and its plan copies each element once.

#![allow(clippy::unwrap_used)]

use chunkwise_select::{ChunkGrid, Dims, Hyperslab, Plan, SelectError, Selection, Union};
use proptest::prelude::*;

/// Start, gap, count and block of one dimension, before they are cut to fit.
type Part = (u64, u64, u64, u64);

/// Shape, chunk shape, and the hyperslabs of two unions.
type Case = (Vec<u64>, Vec<u64>, [Vec<Hyperslab>; 2]);

fn fit(shape: &[u64], parts: &[Part]) -> Hyperslab {
    let (mut start, mut stride, mut count, mut block) = (vec![], vec![], vec![], vec![]);
    for (&size, &(first, gap, wanted, len)) in shape.iter().zip(parts) {
        let first = first % size;
        let len = len.min(size - first);
        start.push(first);
        stride.push(len + gap);
        count.push(wanted.min((size - first - len) / (len + gap) + 1));
        block.push(len);
    }
    Hyperslab::new(shape, &start, &stride, &count, &block).unwrap()
}

fn cases() -> impl Strategy<Value = Case> {
    let dimensions = prop::collection::vec((1u64..13, 1u64..8), 1..5);
    dimensions.prop_flat_map(|dimensions| {
        let (shape, chunk): (Vec<u64>, Vec<u64>) = dimensions.into_iter().unzip();
        // Now and then a count of zero, and blocks that touch.
        let part = (0u64..13, 0u64..4, 0u64..5, 1u64..9);
        let slab = prop::collection::vec(part, shape.len());
        let slabs = move |shape: Vec<u64>| {
            prop::collection::vec(slab.clone(), 0..7)
                .prop_map(move |slabs| slabs.iter().map(|parts| fit(&shape, parts)).collect())
        };
        let (left, right) = (slabs(shape.clone()), slabs(shape.clone()));
        (Just(shape), Just(chunk), [left.boxed(), right.boxed()])
    })
}

/// The index of every element of an array, in row-major order.
fn elements(shape: &[u64]) -> Vec<Dims> {
    let grid = ChunkGrid::new(shape, &vec![1; shape.len()]).unwrap();
    (0..grid.len()).map(|number| grid.chunk_index(number)).collect()
}

fn selects(slab: &Hyperslab, element: &[u64]) -> bool {
    let mut axes = slab.axes().iter().zip(element);
    axes.all(|(axis, &index)| axis.rank_of(index + 1) > axis.rank_of(index))
}

/// The elements that the hyperslabs select, one flag an element.
fn flags(shape: &[u64], slabs: &[Hyperslab]) -> Vec<bool> {
    elements(shape).iter().map(|at| slabs.iter().any(|slab| selects(slab, at))).collect()
}

fn wanted(shape: &[u64], flags: &[bool]) -> Vec<Dims> {
    let elements = elements(shape).into_iter().zip(flags);
    elements.filter(|(_, wanted)| **wanted).map(|(at, _)| at).collect()
}

fn listed(union: &Union) -> Vec<Dims> {
    let runs = union.runs().map(|(start, len)| {
        (0..len).map(move |i| {
            let mut at = start.clone();
            if let Some(last) = at.last_mut() {
                *last += i;
            }
            at
        })
    });
    runs.flatten().collect()
}

fn row_major(index: &[u64], shape: &[u64]) -> u64 {
    index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i)
}

proptest! {
    #[test]
    fn a_union_is_what_flags_say((shape, _, [slabs, _]) in cases()) {
        let union = Union::new(shape.len(), &slabs).unwrap();
        let flags = flags(&shape, &slabs);
        let wanted = wanted(&shape, &flags);
        prop_assert_eq!(union.len(), wanted.len() as u64);
        prop_assert_eq!(union.is_empty(), wanted.is_empty());
        prop_assert_eq!(&listed(&union), &wanted);
        for (at, flag) in elements(&shape).iter().zip(&flags) {
            prop_assert_eq!(union.contains(at), *flag);
        }
        for (rank, at) in wanted.iter().enumerate() {
            prop_assert_eq!(union.rank_of(at), Some(rank as u64));
            prop_assert_eq!(union.element(rank as u64), Some(at.clone()));
        }
        prop_assert_eq!(union.element(union.len()), None);
        let ends = |d: usize| {
            let along = wanted.iter().map(|at| at[d]);
            Some((along.clone().min()?, along.max()? + 1))
        };
        let bounds = union.bounds();
        for d in 0..shape.len() {
            prop_assert_eq!(bounds.as_ref().map(|(starts, ends)| (starts[d], ends[d])), ends(d));
        }
        // Runs are as long as can be.
        let runs: Vec<_> = union.runs().collect();
        for pair in runs.windows(2) {
            let (first, second) = (&pair[0], &pair[1]);
            let last = shape.len() - 1;
            prop_assert!(
                first.0[..last] != second.0[..last] || first.0[last] + first.1 < second.0[last]
            );
        }
    }

    #[test]
    fn a_set_of_elements_has_one_tree((shape, _, [slabs, others]) in cases()) {
        let union = Union::new(shape.len(), &slabs).unwrap();
        let backwards: Vec<_> = slabs.iter().rev().chain(&slabs).cloned().collect();
        prop_assert_eq!(&union, &Union::new(shape.len(), &backwards).unwrap());
        let single: Vec<_> = listed(&union)
            .iter()
            .map(|at| {
                let ones = vec![1; shape.len()];
                Hyperslab::new(&shape, at, &ones, &ones, &ones).unwrap()
            })
            .collect();
        prop_assert_eq!(&union, &Union::new(shape.len(), &single).unwrap());
        let boxes = union.boxes().unwrap();
        prop_assert_eq!(boxes.iter().map(|slab| slab.len().unwrap()).sum::<u64>(), union.len());
        prop_assert_eq!(&union, &Union::new(shape.len(), &boxes).unwrap());
        let other = Union::new(shape.len(), &others).unwrap();
        prop_assert_eq!(union == other, listed(&union) == listed(&other));
    }

    #[test]
    fn sets_combine_as_flags_do((shape, _, [left, right]) in cases()) {
        let rank = shape.len();
        let (l, r) = (Union::new(rank, &left).unwrap(), Union::new(rank, &right).unwrap());
        let flags = [flags(&shape, &left), flags(&shape, &right)];
        let combined = |keep: fn(bool, bool) -> bool| {
            let flags: Vec<bool> =
                flags[0].iter().zip(&flags[1]).map(|(&l, &r)| keep(l, r)).collect();
            wanted(&shape, &flags)
        };
        prop_assert_eq!(listed(&l.or(&r).unwrap()), combined(|l, r| l || r));
        prop_assert_eq!(listed(&l.and(&r).unwrap()), combined(|l, r| l && r));
        prop_assert_eq!(listed(&l.minus(&r).unwrap()), combined(|l, r| l && !r));
        prop_assert_eq!(l.or(&r).unwrap(), r.or(&l).unwrap());
        prop_assert_eq!(l.minus(&r).unwrap().or(&l.and(&r).unwrap()).unwrap(), l);
    }

    #[test]
    fn strips_copy_the_union((shape, chunk, [slabs, _]) in cases()) {
        let grid = ChunkGrid::new(&shape, &chunk).unwrap();
        let union = Union::new(shape.len(), &slabs).unwrap();
        let plan = Plan::new(&grid, &union).unwrap();
        let mut result = vec![None; union.len() as usize];
        let mut before = None;
        for task in plan.tasks() {
            let number = task.linear_index();
            prop_assert!(before < Some(number), "chunks come in row-major order");
            before = Some(number);
            prop_assert_eq!(grid.linear_index(&task.chunk_index()), Some(number));
            let mut copied = 0;
            task.for_each_strip(|strip| {
                for (src, dst) in strip.places() {
                    assert!(result[dst as usize].is_none(), "element {dst} copied twice");
                    result[dst as usize] = Some((number, src));
                    copied += 1;
                }
            });
            prop_assert!(copied > 0, "a chunk that holds nothing wanted is not in the plan");
            prop_assert_eq!(task.selected_elements(), copied);
            prop_assert_eq!(plan.selected_of(&task.chunk_index()), copied);

            let (mut end, mut in_order) = (0, Vec::new());
            task.for_each_strip_in_order(|strip| {
                assert!(strip.src >= end, "a strip begins before the last one ends");
                end = strip.src + (strip.count - 1) * strip.src_step + strip.len;
                in_order.extend(strip.places());
            });
            prop_assert_eq!(in_order.len() as u64, copied);
            for &(src, dst) in &in_order {
                prop_assert_eq!(result[dst as usize], Some((number, src)));
            }
            let inside = task.chunk_index();
            let extent = (0..shape.len()).map(|d| chunk[d].min(shape[d] - inside[d] * chunk[d]));
            prop_assert_eq!(task.takes_all(), copied == extent.product::<u64>());
            let first = in_order[0].1;
            let whole = in_order.iter().map(|p| p.1).eq(first..first + grid.chunk_len());
            prop_assert_eq!(task.lands_whole_at(), whole.then_some(first));
        }
        for (at, found) in listed(&union).iter().zip(&result) {
            let place: Vec<u64> = at.iter().zip(&chunk).map(|(i, c)| i / c).collect();
            let inside: Vec<u64> = at.iter().zip(&chunk).map(|(i, c)| i % c).collect();
            let from = (row_major(&place, grid.counts()), row_major(&inside, &chunk));
            prop_assert_eq!(*found, Some(from));
        }
        let all = (0..grid.len()).map(|number| plan.selected_of(&grid.chunk_index(number)));
        prop_assert_eq!(all.sum::<u64>(), union.len());
        prop_assert_eq!(plan.summary().chunks, plan.tasks().count() as u64);
    }
}

#[test]
fn a_plan_over_a_billion_chunks_costs_nothing() {
    let shape = [1 << 40, 1000];
    let grid = ChunkGrid::new(&shape, &[1 << 10, 1000]).unwrap();
    let stripe =
        |start| Hyperslab::new(&shape, &[0, start], &[1; 2], &[1, 1], &[1 << 40, 9]).unwrap();
    let union = Union::new(2, &[stripe(990), stripe(10)]).unwrap();
    let plan = Plan::new(&grid, &union).unwrap();
    assert_eq!((plan.len(), union.len()), (1 << 30, 18 << 40));
    let last = plan.task(plan.len() - 1);
    assert_eq!((last.linear_index(), last.selected_elements()), ((1 << 30) - 1, 18 << 10));
    let mut strips = 0;
    last.for_each_strip(|strip| strips += u64::from(strip.count == 1 << 10));
    assert_eq!(strips, 2);
}

#[test]
fn what_cannot_be_is_refused() {
    let all = |shape: &[u64]| Hyperslab::all(shape);
    let flat = Union::new(1, &[all(&[4])]).unwrap();
    assert!(matches!(Union::new(1, &[all(&[4, 5])]), Err(SelectError::Rank { .. })));
    assert!(matches!(flat.or(&Union::new(2, &[]).unwrap()), Err(SelectError::Rank { .. })));
    let grid = ChunkGrid::new(&[3], &[2]).unwrap();
    assert!(matches!(Plan::new(&grid, &flat), Err(SelectError::BeyondShape { end: 4, .. })));
    let square = ChunkGrid::new(&[4, 4], &[2, 2]).unwrap();
    assert!(matches!(Plan::new(&square, &flat), Err(SelectError::Rank { .. })));
    // More blocks than memory has room for, and more elements than 64 bits count.
    let many = Hyperslab::new(&[1 << 50], &[0], &[1 << 10], &[1 << 40], &[1]).unwrap();
    assert_eq!(Union::new(1, &[many]), Err(SelectError::TooManySpans));
    let some = Hyperslab::new(&[1 << 50], &[0], &[1 << 10], &[1 << 20], &[1]).unwrap();
    assert_eq!(Union::new(1, &vec![some; 33]), Err(SelectError::TooManySpans));
    let huge = all(&[1 << 40, 1 << 40]);
    assert_eq!(Union::new(2, &[huge]), Err(SelectError::Overflow("elements selected")));
}

#[test]
fn ends_of_the_scale() {
    let none = Union::new(3, &[]).unwrap();
    assert!(none.is_empty() && none.bounds().is_none() && none.runs().next().is_none());
    let grid = ChunkGrid::new(&[4, 4, 4], &[2, 2, 2]).unwrap();
    assert!(Plan::new(&grid, &none).unwrap().is_empty());
    // Without dimensions there is one element.
    let scalar = Union::new(0, &[Hyperslab::all(&[])]).unwrap();
    assert_eq!((scalar.len(), scalar.runs().count()), (1, 1));
    let grid = ChunkGrid::new(&[], &[]).unwrap();
    let plan = Plan::new(&grid, &scalar).unwrap();
    assert_eq!((plan.len(), plan.task(0).lands_whole_at()), (1, Some(0)));
    // As many dimensions as HDF5 has, a strided block in each.
    let shape = [5; 32];
    let mut count = [1; 32];
    count[31] = 2;
    let strided = Hyperslab::new(&shape, &[1; 32], &[2; 32], &count, &[1; 32]).unwrap();
    let union = Union::new(32, &[strided]).unwrap();
    assert_eq!(union.len(), 2);
    assert_eq!(union.element(1).unwrap()[31], 3);
}

#[test]
fn a_selection_remembers_what_it_was_made_of() {
    let slab = |start| Hyperslab::new(&[10], &[start], &[1], &[1], &[4]).unwrap();
    let selection = Selection::union(1, vec![slab(5), slab(3)]).unwrap();
    let Selection::Union { slabs, union } = &selection else { panic!("a union") };
    assert_eq!((slabs.to_vec(), union.len()), (vec![slab(5), slab(3)], 6));
    assert_eq!((selection.len(), selection.shape().as_slice()), (Ok(6), [6].as_slice()));
    assert_eq!(selection.anew().unwrap(), selection);
}
