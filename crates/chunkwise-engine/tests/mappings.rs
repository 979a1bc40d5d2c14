//! Is what a virtual dataset gives what a plain one with the same elements gives?

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chunkwise_engine::{
    AnyDataset, Conversion, Dataset, DatasetInfo, FieldBytes, Fields, Layout, Made, MappedSource,
    MemoryStorage, NumberKind, NumberType, ReadError, VirtualDataset,
};
use chunkwise_select::{Dims, Hyperslab, Mapping, Product, Selection};
use proptest::prelude::*;

/// Of what nothing is mapped to.
const FILL: [u8; 2] = [0xEE, 0xDD];

fn plain(shape: &[u64], bytes: Vec<u8>) -> AnyDataset {
    let layout = Layout::Contiguous { address: Some(0) };
    let info = DatasetInfo { shape: shape.into(), element_size: 2, fill: None, layout };
    AnyDataset::Stored(Dataset::new(info, Arc::new(MemoryStorage(bytes))).unwrap())
}

fn virtual_one(shape: &[u64], fill: Option<Vec<u8>>, sources: Vec<MappedSource>) -> AnyDataset {
    let made = VirtualDataset::new(shape.into(), 2, fill, sources).unwrap();
    AnyDataset::Virtual(made.unwrap())
}

fn mapped(mapping: Mapping, source: AnyDataset) -> MappedSource {
    MappedSource { mapping, source, fields: None, name: "source".to_string() }
}

fn boxed(shape: &[u64], start: &[u64], count: &[u64]) -> Hyperslab {
    Hyperslab::new(shape, start, &[1, 1], &[1, 1], count).unwrap()
}

fn read(source: &AnyDataset, selection: &Selection, fields: Option<&Fields>) -> Vec<u8> {
    let size = fields.map_or(2, |_| 8);
    // What nobody sets is the fill value all the same.
    let mut out = FILL.repeat(selection.len().unwrap() as usize * size / 2);
    source.read(selection, fields, &mut out, &AtomicBool::new(false)).unwrap();
    out
}

/// The two of a shape cut into boxes, each of which is missing, or one of several kinds: a virtual
/// dataset, and a plain one with the same elements.
fn pair(
    rows: &[u64],
    columns: &[u64],
    kinds: &[u8],
    fills: bool,
) -> (AnyDataset, AnyDataset, Vec<u64>) {
    let shape = vec![rows.iter().sum(), columns.iter().sum()];
    let mut elements = FILL.repeat((shape[0] * shape[1]) as usize);
    let (mut sources, mut number, mut top) = (Vec::new(), 0u16, 0);
    for (i, &height) in rows.iter().enumerate() {
        let mut left = 0;
        for (j, &width) in columns.iter().enumerate() {
            let kind = kinds[(i * columns.len() + j) % kinds.len()];
            let here = boxed(&shape, &[top, left], &[height, width]);
            // Every second row, every third column; or a row alone, in one dimension.
            let inner: Vec<u64> = vec![2 * height + 1, 3 * width + 2];
            let (source_shape, start, stride, count) = match kind {
                1 if height == 1 => (inner[1..].to_vec(), vec![2], vec![3], vec![width]),
                _ => (inner, vec![1, 2], vec![2, 3], vec![height, width]),
            };
            let ones = vec![1; start.len()];
            let there = Hyperslab::new(&source_shape, &start, &stride, &count, &ones).unwrap();
            let total: u64 = source_shape.iter().product();
            let bytes: Vec<u8> =
                (0..total as u16).flat_map(|at| (number.wrapping_add(at)).to_le_bytes()).collect();
            for (row, column) in (0..height).flat_map(|r| (0..width).map(move |c| (r, c))) {
                let row_of_source = if start.len() == 2 { 2 * row + 1 } else { 0 };
                let from = row_of_source * source_shape[source_shape.len() - 1] + 3 * column + 2;
                let to = (top + row) * shape[1] + left + column;
                if kind > 0 {
                    let two = &bytes[2 * from as usize..][..2];
                    elements[2 * to as usize..][..2].copy_from_slice(two);
                }
            }
            number = number.wrapping_mul(31).wrapping_add(total as u16);
            left += width;
            let stored = plain(&source_shape, bytes);
            let source = match kind {
                0 => continue,
                2 => {
                    let all = Hyperslab::all(&source_shape);
                    let same = Mapping::new(all.clone(), all, &source_shape).unwrap();
                    virtual_one(&source_shape, None, vec![mapped(same, stored)])
                }
                _ => stored,
            };
            sources.push(mapped(Mapping::new(here, there, &source_shape).unwrap(), source));
        }
        top += height;
    }
    let fill = fills.then(|| FILL.to_vec());
    (virtual_one(&shape, fill, sources), plain(&shape, elements), shape)
}

/// Numbers of two bytes as such of eight.
fn wider() -> Fields {
    let number = |kind, size| NumberType { kind, size, swapped: false };
    let (from, to) = (number(NumberKind::Unsigned, 2), number(NumberKind::Float, 8));
    let made = Made::Converted(Conversion::of_numbers(from, to).unwrap());
    Fields::new(2, 8, vec![FieldBytes { src: 0, dst: 0, made }]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_virtual_dataset_is_a_plain_one(
        rows in prop::collection::vec(1u64..5, 1..5),
        columns in prop::collection::vec(1u64..6, 1..5),
        kinds in prop::collection::vec(0u8..4, 1..9),
        fills in any::<bool>(),
        listed in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 0..20),
        step in 1u64..4,
    ) {
        let (source, same, shape) = pair(&rows, &columns, &kinds, fills);
        let list = |d: usize| -> Vec<i64> {
            listed.iter().map(|at| at[d].index(shape[d] as usize) as i64).collect()
        };
        let (some_rows, some_columns) = (list(0), list(1));
        let of = || Product::of(&shape);
        let count = |d: usize| shape[d].div_ceil(step);
        let last = |d: usize| (count(d) - 1) * step;
        let corners: Vec<Hyperslab> = listed
            .iter()
            .map(|at| {
                let start: Vec<u64> = (0..2).map(|d| at[d].index(shape[d] as usize) as u64).collect();
                let count: Vec<u64> = (0..2).map(|d| (shape[d] - start[d]).min(step)).collect();
                boxed(&shape, &start, &count)
            })
            .collect();
        let backwards = of().slice(last(0), -(step as i64), count(0)).unwrap();
        let selections: Vec<Selection> = vec![
            Hyperslab::all(&shape).into(),
            of().slice(0, step as i64, count(0)).unwrap().finish().unwrap().into(),
            backwards.slice(last(1), -(step as i64), count(1)).unwrap().finish().unwrap().into(),
            of().points(&[&some_rows]).unwrap().finish().unwrap().into(),
            of().points(&[&some_rows]).unwrap().points(&[&some_columns]).unwrap().finish().unwrap().into(),
            of().points(&[&some_rows, &some_columns]).unwrap().finish().unwrap().into(),
            Selection::union(2, corners).unwrap(),
        ];
        let wider = wider();
        for selection in &selections {
            prop_assert_eq!(read(&source, selection, None), read(&same, selection, None));
            if fills {
                let (found, expected) =
                    (read(&source, selection, Some(&wider)), read(&same, selection, Some(&wider)));
                prop_assert_eq!(found, expected);
            }
        }
    }
}

/// More elements of a union than are looked up at a time, more than a piece has, and some missing.
#[test]
fn large_reads_are_those_of_a_plain_dataset() {
    let shape = [1300u64, 4000];
    let numbers = |from: u64, count: u64| -> Vec<u8> {
        (from..from + count)
            .flat_map(|n| (n.wrapping_mul(0x9e37_79b9) as u16).to_le_bytes())
            .collect()
    };
    let halves = [(0, 600), (700, 600)].map(|(top, height)| {
        let (here, all) = (boxed(&shape, &[top, 0], &[height, 4000]), [height, 4000]);
        let mapping = Mapping::new(here, Hyperslab::all(&all), &all).unwrap();
        mapped(mapping, plain(&all, numbers(top * 4000, height * 4000)))
    });
    let source = virtual_one(&shape, Some(FILL.to_vec()), halves.into());
    let gap = FILL.repeat(100 * 4000);
    let all = [numbers(0, 600 * 4000), gap, numbers(700 * 4000, 600 * 4000)].concat();
    let same = plain(&shape, all);
    let slabs = vec![boxed(&shape, &[1, 0], &[1250, 900]), boxed(&shape, &[0, 950], &[1300, 700])];
    for selection in [
        Hyperslab::all(&shape).into(),
        boxed(&shape, &[3, 5], &[1290, 3990]).into(),
        Selection::union(2, slabs).unwrap(),
    ] {
        assert!(read(&source, &selection, None) == read(&same, &selection, None));
    }
}

#[test]
fn what_is_wrong_is_said() {
    let shape = [4u64, 6];
    let all = || Hyperslab::all(&shape);
    let whole = |source| mapped(Mapping::new(all(), all(), &shape).unwrap(), source);
    let make = |fill: Option<Vec<u8>>, sources| {
        VirtualDataset::new(Dims::from_slice(&shape), 2, fill, sources)
    };
    let sound = || plain(&shape, vec![0; 48]);
    // Elements in two mappings, a fill value and a source of another size.
    assert!(matches!(make(None, vec![whole(sound()), whole(sound())]), Ok(None)));
    assert!(matches!(make(Some(vec![0]), vec![]), Err(ReadError::Fields)));
    let larger = plain(&[4, 7], vec![0; 56]);
    assert!(matches!(make(None, vec![whole(larger)]), Err(ReadError::Fields)));
    // The source's end is missing.
    let cut = virtual_one(&shape, None, vec![whole(plain(&shape, vec![0; 47]))]);
    let go_on = AtomicBool::new(false);
    let read = |source: &AnyDataset, out: &mut [u8], cancelled: &AtomicBool| {
        source.read(&all().into(), None, out, cancelled)
    };
    let error = read(&cut, &mut [0; 48], &go_on).unwrap_err();
    let ReadError::Source { name, error } = &error else { unreachable!("{error}") };
    assert!(name == "source" && matches!(**error, ReadError::Truncated { end: 47, .. }));
    // Room for fewer elements, and a reader who has gone.
    let source = virtual_one(&shape, None, vec![whole(sound())]);
    let short = read(&source, &mut [0; 46], &go_on);
    assert_eq!(short, Err(ReadError::Destination { selected: 48, destination: 46 }));
    assert_eq!(read(&source, &mut [0; 48], &AtomicBool::new(true)), Err(ReadError::Cancelled));
    // What is converted on the way cannot be converted once more.
    let made = MappedSource { fields: Some(wider()), ..whole(sound()) };
    let wide = VirtualDataset::new(Dims::from_slice(&shape), 8, None, vec![made]).unwrap().unwrap();
    assert!(wide.converts());
    let wide = AnyDataset::Virtual(wide);
    let mut out = [0; 24 * 8];
    let error = wide.read(&all().into(), Some(&wider()), &mut out, &go_on).unwrap_err();
    assert_eq!(error, ReadError::Fields);
    wide.read(&all().into(), None, &mut out, &go_on).unwrap();
}
