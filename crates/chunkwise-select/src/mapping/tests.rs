use super::*;
use crate::Product;
use proptest::prelude::*;

/// A dimension's selection of this many elements.
fn axis(len: u64) -> impl Strategy<Value = Axis> {
    let blocks: Vec<u64> = (1..=len).filter(|&block| len.is_multiple_of(block)).collect();
    (0u64..3, 0u64..3, prop::sample::select(blocks)).prop_map(move |(start, gap, block)| {
        Axis::new((start, block + gap, len / block, block), 0, 100).unwrap()
    })
}

fn slab(lens: Vec<u64>) -> impl Strategy<Value = Hyperslab> {
    lens.into_iter()
        .map(axis)
        .collect::<Vec<_>>()
        .prop_map(|axes| Hyperslab::from_axes(axes.into()))
}

/// Two hyperslabs of one shape but for a dimension of one element, and an index of the first.
fn cases() -> impl Strategy<Value = (Hyperslab, Hyperslab, Selection)> {
    prop::collection::vec(1u64..5, 1..4).prop_flat_map(|lens| {
        let mut others = lens.clone();
        others.insert(lens.len() / 2, 1);
        let shape: Vec<u64> = vec![20; lens.len()];
        let listed = prop::collection::vec(prop::collection::vec(0i64..20, 1..9), lens.len());
        let sliced = prop::collection::vec((0u64..20, 1i64..4, 0u64..7), lens.len());
        let wanted = (listed, sliced, any::<u8>(), any::<bool>()).prop_map(
            move |(listed, sliced, kinds, paired)| {
                let mut builder = Product::of(&shape);
                if paired {
                    let len = listed.iter().map(Vec::len).min().unwrap();
                    let columns: Vec<&[i64]> = listed.iter().map(|l| &l[..len]).collect();
                    return builder.points(&columns).unwrap().finish().unwrap().into();
                }
                for (d, (list, (start, step, count))) in listed.iter().zip(sliced).enumerate() {
                    let count = count.min((19 - start) / step as u64 + 1);
                    let back = start + (count.max(1) - 1) * step as u64;
                    builder = match kinds >> (2 * d) & 3 {
                        0 => builder.points(&[list]).unwrap(),
                        1 => builder.slice(back, -step, count).unwrap(),
                        _ => builder.slice(start, step, count).unwrap(),
                    };
                }
                builder.finish().unwrap().into()
            },
        );
        (slab(lens), slab(others), wanted)
    })
}

/// The elements of a hyperslab, in row-major order.
fn elements(slab: &Hyperslab) -> Vec<Dims> {
    let all: Vec<Vec<u64>> = slab
        .axes()
        .iter()
        .map(|axis| (0..axis.len()).map(|at| axis.index_of(at)).collect())
        .collect();
    product(&all)
}

fn product(all: &[Vec<u64>]) -> Vec<Dims> {
    all.iter().fold(vec![Dims::new()], |found, choices| {
        let longer = |one: &Dims, &at: &u64| one.iter().copied().chain([at]).collect();
        found.iter().flat_map(|one| choices.iter().map(move |at| longer(one, at))).collect()
    })
}

/// The elements of a selection in the order of its result.
fn selected(selection: &Selection) -> Vec<Dims> {
    match selection {
        Selection::Hyperslab(slab) => elements(slab),
        Selection::Union { union, .. } => {
            (0..union.len()).map(|rank| union.element(rank).unwrap()).collect()
        }
        Selection::Product(product) => {
            product.choices().iter().fold(vec![Dims::new()], |found, choices| {
                let choices: Vec<Dims> = match choices {
                    Choices::Slice { start, step, count } => (0..*count as i64)
                        .map(|at| smallvec::smallvec![(*start as i64 + at * step) as u64])
                        .collect(),
                    Choices::Points(columns) => (0..columns[0].len())
                        .map(|at| columns.iter().map(|column| column[at]).collect())
                        .collect(),
                };
                found
                    .iter()
                    .flat_map(|one| {
                        choices.iter().map(move |c| one.iter().chain(c).copied().collect())
                    })
                    .collect()
            })
        }
    }
}

proptest! {
    #[test]
    fn parts_say_which_element_goes_where((here, there, wanted) in cases(), most in 1u64..40) {
        let shape: Dims = smallvec::smallvec![20; there.rank()];
        let pairs: Vec<_> = elements(&here).into_iter().zip(elements(&there)).collect();
        let mapping = Mapping::new(here, there, &shape).unwrap();
        let all = selected(&wanted);
        let mut expected = vec![None; all.len()];
        for (place, element) in all.iter().enumerate() {
            let found = pairs.iter().find(|(here, _)| here == element);
            expected[place] = found.map(|(_, there)| there.clone());
        }
        let part = mapping.part(&Wanted::of(&wanted));
        let count = expected.iter().flatten().count() as u64;
        prop_assert_eq!(part.as_ref().map_or(0, Part::len), count);
        let chunk: Dims = smallvec::smallvec![3; shape.len()];
        for parts in [part.clone().into_iter().collect(), part.map_or(vec![], |p| p.pieces(most, &chunk))] {
            let mut got = vec![None; all.len()];
            for part in parts {
                let from = selected(&part.selection().unwrap());
                let mut runs = 0;
                part.for_each_run(|source, place, len| {
                    runs += 1;
                    for at in 0..len {
                        let element = from[(source + at) as usize].clone();
                        assert!(got[(place + at) as usize].replace(element).is_none());
                    }
                });
                if let Some(begin) = part.lands_whole_at() {
                    prop_assert_eq!(runs, 1);
                    prop_assert_eq!(got[begin as usize].as_ref(), Some(&from[0]));
                }
            }
            prop_assert_eq!(&got, &expected);
        }
    }

    #[test]
    fn what_has_another_shape_is_split_into_runs(
        lens in prop::collection::vec(1u64..5, 1..4), seed in any::<prop::sample::Index>(),
    ) {
        let all: u64 = lens.iter().product();
        let here = Hyperslab::all(&lens);
        let start = seed.index(5) as u64;
        let there = Hyperslab::new(&[300], &[start], &[3], &[all], &[1]).unwrap();
        let found = Mapping::of_any(
            std::slice::from_ref(&here), std::slice::from_ref(&there), &[300], 1 << 10,
        ).unwrap();
        let pairs: Vec<_> = found.iter().flat_map(|mapping| {
            elements(&mapping.wanted).into_iter().zip(elements(&mapping.source))
        }).collect();
        let expected: Vec<_> = elements(&here).into_iter().zip(elements(&there)).collect();
        prop_assert_eq!(pairs, expected);
        prop_assert!(Mapping::of_any(&[here], &[Hyperslab::all(&[all + 1])], &[101], 9).is_none());
    }

    #[test]
    fn unions_are_looked_up_in_batches(
        slabs in prop::collection::vec(slab(vec![3, 2, 4]), 0..4), most in 1u64..30,
    ) {
        let union = Union::new(3, &slabs).unwrap();
        let expected: Vec<_> = (0..union.len()).map(|n| union.element(n).unwrap()).collect();
        let mut got: Vec<Dims> = Vec::new();
        for wanted in Wanted::of_union(&union, most) {
            prop_assert!(wanted.len() <= most);
            let Group::Points(Points { columns, .. }) = &wanted.groups[0] else { unreachable!() };
            got.extend((0..columns[0].len()).map(|n| columns.iter().map(|c| c[n]).collect()));
        }
        prop_assert_eq!(got, expected);
        let all = Wanted::of(&Selection::union(3, slabs).unwrap());
        prop_assert_eq!(all.len(), union.len());
    }

    #[test]
    fn what_a_union_is_in_the_source(
        (here, there, _) in cases(),
        boxes in prop::collection::vec(prop::collection::vec((0u64..12, 1u64..9), 3), 0..4),
    ) {
        let rank = here.rank();
        let range = |&(start, len): &(u64, u64)| Axis::range(start, len);
        let slabs: Vec<_> = boxes
            .iter()
            .map(|axes| Hyperslab::from_axes(axes[..rank].iter().map(range).collect()))
            .collect();
        let union = Union::new(rank, &slabs).unwrap();
        let shape: Dims = smallvec::smallvec![20; there.rank()];
        let pairs = elements(&here).into_iter().zip(elements(&there));
        let mut expected: Vec<Dims> =
            pairs.filter(|(here, _)| union.contains(here)).map(|(_, there)| there).collect();
        let is_block = |axis: &Axis| axis.is_contiguous() || axis.block() == 1;
        let is_plain = here.axes().iter().chain(there.axes()).all(is_block);
        match Mapping::new(here, there, &shape).unwrap().source_of(&union) {
            Ok(found) => {
                let mut found = found.map_or(Vec::new(), |found| selected(&found));
                found.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
            }
            Err(error) => {
                prop_assert_eq!(error, SelectError::TooManySpans);
                prop_assert!(!is_plain);
            }
        }
    }

    #[test]
    fn mappings_overlap_where_an_element_is_in_both(
        (one, two) in prop::collection::vec(1u64..5, 1..3)
            .prop_flat_map(|lens| (slab(lens.clone()), slab(lens))),
    ) {
        let shape: Vec<u64> = vec![100; one.rank()];
        let make = |slab: &Hyperslab| Mapping::new(slab.clone(), slab.clone(), &shape).unwrap();
        let common = elements(&one).iter().any(|element| elements(&two).contains(element));
        let said = make(&one).may_overlap(&make(&two));
        // Strides that differ are not looked into.
        let same = one.axes().iter().zip(two.axes()).all(|(a, b)| {
            a.stride() == b.stride() || a.is_contiguous() || b.is_contiguous()
        });
        prop_assert!(said || !common);
        prop_assert!(!same || said == common);
    }
}
