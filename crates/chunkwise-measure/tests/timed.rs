//! The timed loops: what is written is what a NumPy slice would give, whatever the walk.

use std::time::Duration;

use chunkwise_engine::{ReadError, gather};
use chunkwise_measure::{
    BlockWalk, Lap, Order, Walk, WalkBounds, time_parts, time_walk, time_writes,
};
use chunkwise_select::{Hyperslab, SelectError, Selection};
use proptest::prelude::*;

const FREE: WalkBounds = WalkBounds { max_operations: u64::MAX, max_time: Duration::MAX };

fn place(shape: &[u64], at: &[u64]) -> usize {
    shape.iter().zip(at).fold(0, |place, (n, i)| place * *n as usize + *i as usize)
}

/// Every element of a selection in C order, one by one.
fn elements(slab: &Hyperslab) -> Vec<Vec<u64>> {
    slab.axes().iter().fold(vec![Vec::new()], |found, axis| {
        found
            .iter()
            .flat_map(|at| {
                (0..axis.len()).map(move |i| [at.as_slice(), &[axis.index_of(i)]].concat())
            })
            .collect()
    })
}

prop_compose! {
    fn arrays()(dims in prop::collection::vec((1..7u64, 1..7u64), 1..4))
        -> (Vec<u64>, Vec<u64>) {
        dims.into_iter().map(|(n, b)| (n, b.min(n))).unzip()
    }
}

proptest! {
    #[test]
    fn writing_all_blocks_in_any_order_copies_the_array(
        (shape, block) in arrays(), seed in any::<u64>(), size in 1..5usize,
    ) {
        let count = shape.iter().product::<u64>() as usize;
        let data: Vec<u8> = (0..count * size).map(|i| (i * 31 % 251) as u8).collect();
        let mut copy = vec![0u8; data.len()];
        let walk = BlockWalk::ordered(&shape, &block, Order::Random { seed }, None).unwrap();
        let walk = Walk::Blocks(Box::new(walk));
        let written = time_writes(&walk, size, &shape, &data, FREE, |selection, bytes| {
            let Selection::Hyperslab(slab) = selection else { panic!("blocks are hyperslabs") };
            for (element, at) in bytes.chunks_exact(size).zip(elements(slab)) {
                copy[place(&shape, &at) * size..][..size].copy_from_slice(element);
            }
            Ok::<(), ReadError>(())
        }).unwrap();
        prop_assert_eq!(&copy, &data);
        prop_assert_eq!(written.selected_nbytes as usize, data.len());
        // Reading the same walk meets the same bytes in the same order.
        let read = time_walk(&walk, size, FREE, |selection, out| {
            gather(&shape, &data, size, selection, out)
        }).unwrap();
        prop_assert_eq!(read.checksums, written.checksums);
    }

    #[test]
    fn strided_selections_are_gathered_in_c_order(
        n in 1..40u64, start in 0..10u64, stride in 1..5u64, block in 1..4u64,
    ) {
        let stride = stride.max(block);
        prop_assume!(start + block <= n);
        let count = (n - start - block) / stride + 1;
        let slab = Hyperslab::new(&[n], &[start], &[stride], &[count], &[block]).unwrap();
        let data: Vec<u8> = (0..n as u8).collect();
        let mut out = vec![0; slab.len().unwrap() as usize];
        gather(&[n], &data, 1, &slab, &mut out).unwrap();
        let wanted: Vec<u8> = elements(&slab).iter().map(|at| at[0] as u8).collect();
        prop_assert_eq!(out, wanted);
    }
}

#[test]
fn data_of_another_shape_is_an_error() {
    let slab = Hyperslab::all(&[4, 5]);
    let mut out = [0u8; 20];
    assert!(gather(&[4, 5], &[0; 19], 1, &slab, &mut out).is_err());
    assert!(gather(&[20], &[0; 20], 1, &slab, &mut out).is_err());
    assert!(gather(&[4, 5], &[0; 20], 1, &slab, &mut out[..19]).is_err());
}

#[test]
fn a_selection_beyond_the_array_is_an_error() {
    // Its elements would be found in the data, in other rows.
    let slab = Hyperslab::new(&[4, 6], &[0, 5], &[1, 1], &[1, 1], &[1, 1]).unwrap();
    let beyond = SelectError::BeyondShape { end: 6, dimension: 1, size: 5 };
    let error = gather(&[4, 5], &[0; 20], 1, &slab, &mut [0]).unwrap_err();
    assert_eq!(error, ReadError::Select(beyond));
}

#[test]
fn a_few_operations_are_done_even_when_the_first_takes_all_the_time() {
    let blocks = BlockWalk::new(&[10], &[1]).unwrap();
    let walk = Walk::Blocks(Box::new(blocks));
    let ms = Duration::from_millis;
    let bounds = WalkBounds { max_operations: u64::MAX, max_time: ms(100) };
    // The first read decodes, the others find that cached; or all of them take far too long.
    for (first, done) in [(ms(120), 3), (ms(420), 1)] {
        let mut reads = 0;
        // Told, not slept: on a busy machine any sleep may be far too long.
        let record = time_parts(&walk, 1, bounds, &mut |_, _| true, |_, _| {
            reads += 1;
            let read = if reads == 1 { first } else { Duration::ZERO };
            Ok::<Lap, ReadError>(Lap { open: None, select: None, read })
        });
        assert_eq!(record.unwrap().operations, done);
    }
    let record = time_walk(&walk, 1, bounds, |_, _| {
        std::thread::sleep(ms(420));
        Ok::<(), ReadError>(())
    });
    assert_eq!(record.unwrap().operations, 1);
}

#[test]
fn parts_are_added_up_and_a_look_can_end_the_walk() {
    let walk = Walk::Blocks(Box::new(BlockWalk::new(&[10], &[1]).unwrap()));
    let ms = Duration::from_millis;
    let mut seen = Vec::new();
    let mut look = |number: u64, read: &[u8]| {
        seen.push((number, read.to_vec()));
        number < 3
    };
    let record = time_parts(&walk, 1, FREE, &mut look, |selection, out| {
        let Selection::Hyperslab(slab) = selection else { panic!("blocks are hyperslabs") };
        out[0] = slab.axes()[0].start() as u8;
        // The second opens nothing.
        let open = (out[0] != 1).then_some(ms(8));
        Ok::<Lap, ReadError>(Lap { open, select: Some(ms(4)), read: ms(1) })
    });
    let record = record.unwrap();
    assert_eq!((record.operations, record.total_operations), (4, 10));
    let close = |found: f64, ms: f64| (found - ms / 1e3).abs() < 1e-9;
    assert!(close(record.elapsed_s, 3.0 * 8.0 + 4.0 * 5.0));
    assert!(close(record.open_s.unwrap(), 24.0) && close(record.select_s.unwrap(), 16.0));
    assert!(close(record.latencies_s[1], 5.0));
    assert_eq!(seen, [(0, vec![0]), (1, vec![1]), (2, vec![2]), (3, vec![3])]);
    let plain = time_walk(&walk, 1, FREE, |_, _| Ok::<(), ReadError>(())).unwrap();
    assert_eq!((plain.open_s, plain.select_s), (None, None));
}
