//! A product selects what its factors' choices lead to, one by one, and its plan copies each
//! element of the result once.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use chunkwise_select::{ChunkGrid, Dims, Plan, Product, SelectError};
use proptest::prelude::*;
use proptest::sample::Index;

/// What is given for some neighbouring dimensions.
#[derive(Debug, Clone)]
enum Given {
    Slice { start: u64, step: i64, count: u64 },
    Points(Vec<Vec<i64>>),
    Mask(Vec<u64>, Vec<u8>),
}

/// Shape, chunk shape and factors, which may leave dimensions over.
type Case = (Vec<u64>, Vec<u64>, Vec<Given>);

/// A factor of the first dimensions of `shape`: how many, and which.
fn factor(shape: &[u64]) -> BoxedStrategy<Given> {
    let size = shape[0];
    let slice = (any::<Index>(), 1u64..5, any::<Index>(), any::<bool>()).prop_map(
        move |(start, step, count, backwards)| {
            let start = start.index(size as usize) as u64;
            let most = (size - 1 - start) / step + 1;
            let count = count.index(most as usize + 1) as u64;
            let last = start + count.saturating_sub(1) * step;
            match backwards {
                true => Given::Slice { start: last, step: -(step as i64), count },
                false => Given::Slice { start, step: step as i64, count },
            }
        },
    );
    let several = shape.to_vec();
    let points = (1..=shape.len(), 0usize..12).prop_flat_map(move |(rank, len)| {
        let column = |&size: &u64| prop::collection::vec(-(size as i64)..size as i64, len);
        several[..rank].iter().map(column).collect::<Vec<_>>().prop_map(Given::Points)
    });
    // Runs of neighbours and of equal distances, which are copied together.
    let runs =
        prop::collection::vec((any::<Index>(), 1i64..4, 1i64..6), 0..4).prop_map(move |runs| {
            let runs = runs.into_iter().flat_map(|(first, step, len)| {
                let first = first.index(size as usize) as i64;
                (0..len).map(move |i| (first + i * step).min(size as i64 - 1))
            });
            Given::Points(vec![runs.collect()])
        });
    let several = shape.to_vec();
    let mask = (1..=shape.len()).prop_flat_map(move |rank| {
        let shape = several[..rank].to_vec();
        let len = shape.iter().product::<u64>() as usize;
        let some = prop::collection::vec(any::<bool>(), len);
        let most = prop::collection::vec(prop::bool::weighted(0.97), len);
        prop_oneof![some, most, Just(vec![true; len])].prop_map(move |mask| {
            Given::Mask(shape.clone(), mask.into_iter().map(u8::from).collect())
        })
    });
    prop_oneof![slice, points, runs, mask].boxed()
}

impl Given {
    fn rank(&self) -> usize {
        match self {
            Self::Slice { .. } => 1,
            Self::Points(columns) => columns.len(),
            Self::Mask(shape, _) => shape.len(),
        }
    }
}

fn factors(shape: Vec<u64>, so_far: Vec<Given>) -> BoxedStrategy<Vec<Given>> {
    let first = so_far.iter().map(Given::rank).sum();
    if first == shape.len() {
        return Just(so_far).boxed();
    }
    let more = factor(&shape[first..]).prop_map(Some);
    prop_oneof![9 => more, 1 => Just(None)]
        .prop_flat_map(move |next| match next {
            None => Just(so_far.clone()).boxed(),
            Some(next) => {
                let mut longer = so_far.clone();
                longer.push(next);
                factors(shape.clone(), longer)
            }
        })
        .boxed()
}

fn cases() -> impl Strategy<Value = Case> {
    let dimensions = prop::collection::vec((1u64..10, 1u64..8), 1..4);
    dimensions.prop_flat_map(|dimensions| {
        let (shape, chunk): (Vec<u64>, Vec<u64>) = dimensions.into_iter().unzip();
        (Just(shape.clone()), Just(chunk), factors(shape, Vec::new()))
    })
}

fn made(shape: &[u64], given: &[Given]) -> Product {
    let mut builder = Product::of(shape);
    for one in given {
        builder = match one {
            Given::Slice { start, step, count } => builder.slice(*start, *step, *count),
            Given::Points(columns) => {
                builder.points(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>())
            }
            Given::Mask(shape, mask) => builder.mask(shape, mask),
        }
        .unwrap();
    }
    builder.finish().unwrap()
}

/// The coordinates that each choice of a factor stands for, one after another.
fn choices(one: &Given, shape: &[u64]) -> Vec<Dims> {
    match one {
        Given::Slice { start, step, count } => (0..*count as i64)
            .map(|i| Dims::from_slice(&[(*start as i64 + i * step) as u64]))
            .collect(),
        Given::Points(columns) => (0..columns[0].len())
            .map(|i| {
                let each = columns.iter().zip(shape);
                each.map(|(c, &n)| c[i].rem_euclid(n as i64) as u64).collect()
            })
            .collect(),
        Given::Mask(shape, mask) => {
            let grid = ChunkGrid::new(shape, &vec![1; shape.len()]).unwrap();
            let set = (0..mask.len()).filter(|&i| mask[i] != 0);
            set.map(|i| grid.chunk_index(i as u64)).collect()
        }
    }
}

/// The elements of the result, in order, and the result's shape.
fn wanted(shape: &[u64], given: &[Given]) -> (Vec<Dims>, Vec<u64>) {
    let mut given = given.to_vec();
    for &count in &shape[given.iter().map(Given::rank).sum()..] {
        given.push(Given::Slice { start: 0, step: 1, count });
    }
    let (mut elements, mut sizes, mut first) = (vec![Dims::new()], Vec::new(), 0);
    for one in &given {
        let choices = choices(one, &shape[first..]);
        first += one.rank();
        sizes.push(choices.len() as u64);
        let longer = elements.iter().flat_map(|start| {
            choices.iter().map(|end| start.iter().chain(end).copied().collect::<Dims>())
        });
        elements = longer.collect();
    }
    (elements, sizes)
}

fn row_major(index: &[u64], shape: &[u64]) -> u64 {
    index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i)
}

proptest! {
    #[test]
    fn strips_copy_the_product((shape, chunk, given) in cases()) {
        let (elements, sizes) = wanted(&shape, &given);
        let product = made(&shape, &given);
        prop_assert_eq!(product.shape().to_vec(), sizes);
        prop_assert_eq!(product.len().unwrap(), elements.len() as u64);
        let grid = ChunkGrid::new(&shape, &chunk).unwrap();
        let plan = Plan::new(&grid, &product).unwrap();
        let mut result = vec![None; elements.len()];
        let mut before = None;
        for task in plan.tasks() {
            let number = task.linear_index();
            prop_assert!(before < Some(number), "chunks come in row-major order");
            before = Some(number);
            prop_assert_eq!(grid.linear_index(&task.chunk_index()), Some(number));
            let mut copied = Vec::new();
            task.for_each_strip(|strip| {
                for (src, dst) in strip.places() {
                    assert!(src < grid.chunk_len());
                    assert!(result[dst as usize].is_none(), "element {dst} copied twice");
                    result[dst as usize] = Some((number, src));
                    copied.push((src, dst));
                }
            });
            prop_assert!(!copied.is_empty(), "a chunk that holds nothing wanted is not in the plan");
            prop_assert_eq!(task.selected_elements(), copied.len() as u64);
            prop_assert_eq!(plan.selected_of(&task.chunk_index()), copied.len() as u64);

            let sources: HashSet<u64> = copied.iter().map(|place| place.0).collect();
            let (mut end, mut in_order, mut strips) = (0, Vec::new(), 0);
            task.for_each_strip_in_order(|strip| {
                let forward = strip.src >= end;
                assert!(forward || sources.len() < copied.len(), "goes back without repeating");
                end = strip.src + (strip.count - 1) * strip.src_step + strip.len;
                in_order.extend(strip.places());
                strips += 1;
            });
            let first = in_order[0].1;
            let whole = in_order.iter().copied().eq((0..grid.chunk_len()).map(|i| (i, first + i)));
            // A mask may happen to put together what its strips do not.
            prop_assert_eq!(task.lands_whole_at(), (whole && strips == 1).then_some(first));
            in_order.sort_unstable();
            copied.sort_unstable();
            prop_assert_eq!(in_order, copied);
            let inside = task.chunk_index();
            let extent = (0..shape.len()).map(|d| chunk[d].min(shape[d] - inside[d] * chunk[d]));
            prop_assert_eq!(task.takes_all(), sources.len() as u64 == extent.product::<u64>());
        }
        for (at, found) in elements.iter().zip(&result) {
            let place: Vec<u64> = at.iter().zip(&chunk).map(|(i, c)| i / c).collect();
            let inside: Vec<u64> = at.iter().zip(&chunk).map(|(i, c)| i % c).collect();
            let from = (row_major(&place, grid.counts()), row_major(&inside, &chunk));
            prop_assert_eq!(*found, Some(from));
        }
        let all = (0..grid.len()).map(|number| plan.selected_of(&grid.chunk_index(number)));
        prop_assert_eq!(all.sum::<u64>(), elements.len() as u64);
        let summary = plan.summary();
        prop_assert_eq!(summary.chunks, plan.tasks().count() as u64);
        prop_assert_eq!(summary.selected_elements, elements.len() as u64);
    }

    #[test]
    fn what_a_hyperslab_can_select_is_one((shape, _, given) in cases()) {
        let product = made(&shape, &given);
        if let Some(slab) = product.hyperslab() {
            let elements = (0..product.len().unwrap()).map(|number| {
                let sizes: Vec<u64> = slab.axes().iter().map(|axis| axis.len()).collect();
                let at = ChunkGrid::new(&sizes, &vec![1; sizes.len()]).unwrap().chunk_index(number);
                slab.axes().iter().zip(at).map(|(axis, i)| axis.index_of(i)).collect::<Dims>()
            });
            prop_assert_eq!(elements.collect::<Vec<_>>(), wanted(&shape, &given).0);
        }
    }
}

fn strips_of(shape: &[u64], chunk: &[u64], product: &Product) -> u64 {
    let grid = ChunkGrid::new(shape, chunk).unwrap();
    let mut strips = 0;
    for task in Plan::new(&grid, product).unwrap().tasks() {
        task.for_each_strip(|_| strips += 1);
    }
    strips
}

#[test]
fn what_is_regular_is_copied_in_long_strips() {
    let shape = [60, 40, 30];
    let whole_rows = |rows: &[i64]| Product::of(&shape).points(&[rows]).unwrap().finish().unwrap();
    // A row is a strip; rows that follow each other are one.
    assert_eq!(strips_of(&shape, &[20, 40, 30], &whole_rows(&[3, 1, 7])), 3);
    assert_eq!(strips_of(&shape, &[20, 40, 30], &whole_rows(&[1, 2, 3, 9, 10, 7])), 3);
    // Lists that an axis can stand for are one.
    let even: Vec<i64> = (0..30).map(|i| 2 * i).collect();
    assert!(whole_rows(&even).hyperslab().is_some());
    assert_eq!(strips_of(&shape, &[60, 1, 30], &whole_rows(&even)), 40);
    // Few columns of many rows are done column by column.
    let columns = Product::of(&shape).slice(0, 1, 60).unwrap().slice(0, 1, 40).unwrap();
    let columns = columns.points(&[&[9, 3, 4]]).unwrap().finish().unwrap();
    assert_eq!(strips_of(&shape, &[60, 40, 30], &columns), 60 * 2);
    let backwards = Product::of(&[500, 20]).slice(0, 1, 500).unwrap().slice(19, -1, 20).unwrap();
    assert_eq!(strips_of(&[500, 20], &[500, 20], &backwards.finish().unwrap()), 500);
}

#[test]
fn a_slice_backwards_costs_nothing_however_long() {
    let shape = [1 << 50];
    let grid = ChunkGrid::new(&shape, &[1 << 20]).unwrap();
    let product = Product::of(&shape).slice((1 << 50) - 1, -2, 1 << 49).unwrap().finish().unwrap();
    let plan = Plan::new(&grid, &product).unwrap();
    assert_eq!(plan.len(), 1 << 30);
    let mut first = None;
    plan.task(plan.len() - 1).for_each_strip(|strip| first = Some((strip.src, strip.dst)));
    assert_eq!(first, Some((1, 0)));
}

#[test]
fn what_cannot_be_is_refused() {
    let of = || Product::of(&[4, 5, 6]);
    let outside = of().slice(0, 1, 4).unwrap().points(&[&[0, -6]]).unwrap_err();
    assert_eq!(outside, SelectError::OutOfRange { index: -6, dimension: 1, size: 5 });
    assert!(matches!(of().points(&[&[4], &[0]]), Err(SelectError::OutOfRange { index: 4, .. })));
    assert!(matches!(of().points(&[&[i64::MIN]]), Err(SelectError::OutOfRange { .. })));
    assert!(matches!(of().points(&[&[0, 1], &[0]]), Err(SelectError::Unpaired { .. })));
    assert!(matches!(of().points(&[&[0][..]; 4]), Err(SelectError::TooManyIndices { .. })));
    assert!(matches!(of().points(&[]), Err(SelectError::TooManyIndices { .. })));
    assert!(matches!(of().slice(0, 2, 3), Err(SelectError::BeyondShape { end: 5, .. })));
    assert!(matches!(of().slice(3, -2, 3), Err(SelectError::Overflow(_))));
    assert!(matches!(of().slice(4, -1, 2), Err(SelectError::BeyondShape { end: 5, .. })));
    assert!(matches!(of().slice(0, 0, 2), Err(SelectError::Overlap { .. })));
    let mask = of().mask(&[4, 6], &[1; 24]).unwrap_err();
    assert_eq!(mask.to_string(), "a mask of shape (4, 6) for dimensions of shape (4, 5)");
    assert!(matches!(of().mask(&[4, 5], &[1; 24]), Err(SelectError::MaskShape { .. })));
    assert!(matches!(of().mask(&[], &[1]), Err(SelectError::MaskShape { .. })));
    let many = Product::of(&[1 << 40, 1 << 40]).finish();
    assert_eq!(many, Err(SelectError::Overflow("elements selected")));
    let product = of().finish().unwrap();
    let grid = ChunkGrid::new(&[4, 5, 7], &[2, 2, 2]).unwrap();
    let error = Plan::new(&grid, &product).unwrap_err();
    assert!(error.to_string().ends_with("of shape (4, 5, 6), the dataset has shape (4, 5, 7)"));
}

#[test]
fn nothing_is_selected_of_nothing() {
    let shape = [0, 1 << 40, 1 << 40];
    let grid = ChunkGrid::new(&shape, &[1, 2, 3]).unwrap();
    for product in [
        Product::of(&shape).points(&[&[], &[], &[]]).unwrap(),
        Product::of(&shape).points(&[&[]]).unwrap().slice(5, -1, 3).unwrap(),
        Product::of(&shape).mask(&[0], &[]).unwrap(),
    ] {
        let product = product.finish().unwrap();
        assert!(product.is_empty());
        assert!(Plan::new(&grid, &product).unwrap().is_empty());
    }
}
