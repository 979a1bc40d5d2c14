//! Does what any encoder writes decode to what it was given, whatever the options?

use proptest::prelude::*;

use crate::{
    EncodeError, EncodeScratch, Encoder, Encoding, Filter, FilterKind, Pipeline, Scratch, Step,
};

/// A filter with options that lose nothing, for chunks of `elements` elements of `size` bytes.
fn lossless(elements: usize, size: usize) -> impl Strategy<Value = (i32, Vec<u32>)> {
    let (n, bytes) = (elements as u32, size as u32);
    let all = 8 * bytes;
    let bits = if matches!(size, 1 | 2 | 4 | 8) { all } else { 8 };
    let szip = (
        prop::sample::select(vec![4 | 8, 4 | 16, 32 | 8, 32 | 16, 128 | 32 | 8]),
        1u32..33,
        1u32..400,
    )
        .prop_map(move |(mask, half, line)| (4, vec![mask, 2 * half, bits, line]));
    let nbit =
        any::<bool>().prop_map(move |whole| (5, vec![8, u32::from(whole), n, 1, bytes, 0, all, 0]));
    let fills = (any::<bool>(), 0u32..3, 0u32..2, 0u32..2, prop::bool::ANY);
    let offset = fills.prop_map(move |(has_fill, fill, sign, order, whole)| {
        let factor = if whole { all } else { 0 };
        let mut options = vec![2, factor, n, 0, bytes, sign, order, has_fill.into(), fill];
        options.resize(20, 0);
        (6, options)
    });
    let blosc = (1u32..10, 0u32..3, prop::sample::select(vec![0u32, 1, 2, 4, 5]), 0u32..300)
        .prop_map(move |(level, shuffle, codec, odd)| {
            let size = if odd < 200 { bytes } else { odd };
            (32001, vec![2, 2, size, 0, level.min(if codec > 3 { 6 } else { 9 }), shuffle, codec])
        });
    let bitshuffle = (0u32..40, prop::sample::select(vec![0u32, 2, 3]), -3i32..7).prop_map(
        move |(groups, inner, level)| {
            (32008, vec![0, 4, bytes, 8 * groups, inner, level.cast_unsigned()])
        },
    );
    let blosc2 =
        (0u32..10, 0u32..4, prop::sample::select(vec![0u32, 1, 2, 4, 5]), 0u32..900, 0u32..9)
            .prop_map(move |(level, filter, codec, block, columns)| {
                let level = level.min(if codec > 3 { 6 } else { 9 });
                let block = if block < 300 { 0 } else { block };
                let mut options = vec![1, block, bytes, n * bytes, level, filter, codec];
                if columns > 0 && n.is_multiple_of(columns) {
                    options.extend([2, n / columns, columns]);
                }
                (32026, options)
            });
    let lz4 = (0u32..300).prop_map(|block_nbytes| (32004, vec![block_nbytes]));
    let zstd = (-3i32..7).prop_map(|level| (32015, vec![level.cast_unsigned()]));
    let deflate = (0u32..10).prop_map(|level| (1, vec![level]));
    let bzip2 = (1u32..10).prop_map(|level| (307, vec![level]));
    prop_oneof![
        szip,
        nbit,
        offset,
        blosc,
        blosc2,
        bitshuffle,
        bzip2,
        deflate,
        lz4,
        zstd,
        Just((32000, vec![4, 261, 0]))
    ]
}

/// Elements of which some are alike, or none.
fn raw(elements: usize, size: usize, kind: u32, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    let mut element = vec![3; size];
    let mut out = Vec::new();
    for _ in 0..elements {
        match kind {
            0 => {}
            1 => element[0] = random() % 3,
            2 => element[0] = element[0].wrapping_add(random() % 4),
            _ => element.fill_with(&mut random),
        }
        out.extend(&element);
    }
    out
}

fn filter_and_step(id: i32, cd_values: &[u32], optional: bool) -> (Filter, Step) {
    let filter = Filter::from_hdf5(id, cd_values).unwrap();
    (filter, Step { encoder: Encoder::from_hdf5(id, cd_values).unwrap(), optional })
}

proptest! {
    /// With another filter behind it, which takes what it gives.
    #[test]
    fn what_is_encoded_decodes(
        (elements, size, (id, cd_values)) in (1usize..2000, prop::sample::select(vec![1, 2, 4, 8, 3, 12]))
            .prop_flat_map(|(n, size)| (Just(n), Just(size), lossless(n, size)))
            .prop_filter("sizes that scaleoffset has", |(_, size, (id, _))| *id != 6 || size.is_power_of_two()),
        kind in 0u32..4,
        seed in any::<u64>(),
    ) {
        let raw = raw(elements, size, kind, seed);
        let (filter, step) = filter_and_step(id, &cd_values, true);
        let (last, sum) = filter_and_step(3, &[], false);
        prop_assert_eq!(filter.kind(), step.kind());
        let (mut scratch, mut stored) = (EncodeScratch::default(), vec![9; 77]);
        let encoding = Encoding::new(vec![step, sum]);
        let mask = encoding.encode(&raw, &mut scratch, &mut stored).unwrap();
        let mut out = vec![9; raw.len()];
        Pipeline::new(vec![filter, last])
            .decode(&stored, mask, &mut Scratch::default(), &mut out)
            .unwrap();
        prop_assert_eq!(&out, &raw);
        // The same again, with what the scratch has kept.
        let before = stored.clone();
        prop_assert_eq!(encoding.encode(&raw, &mut scratch, &mut stored), Ok(mask));
        prop_assert_eq!(stored, before);
    }

    /// No options and no bytes are too strange, and what is claimed to be encoded is decoded.
    #[test]
    fn survives_any_options(
        kind in prop::sample::select(FilterKind::ALL.to_vec()),
        options in prop::collection::vec(
            prop_oneof![0u32..9, Just(16), Just(32), Just(64), Just(u32::MAX), any::<u32>()],
            0..24,
        ),
        (sized, elements, size) in (any::<bool>(), 0u32..40, 1u32..17),
        raw in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let mut options = options;
        // What the dataset is has its place in some filters' options.
        if sized {
            let places: &[(usize, u32)] = match kind {
                FilterKind::Nbit => &[(0, options.len() as u32), (2, elements), (4, size)],
                FilterKind::ScaleOffset => &[(2, elements), (4, size)],
                FilterKind::Blosc | FilterKind::Bitshuffle | FilterKind::Blosc2 => &[(2, size)],
                _ => &[],
            };
            for &(at, value) in places {
                if let Some(option) = options.get_mut(at) {
                    *option = value;
                }
            }
        }
        let Some(encoder) = Encoder::from_hdf5(kind.id(), &options) else { return Ok(()) };
        prop_assert_eq!(encoder.kind(), kind);
        let Some(filter) = Filter::from_hdf5(kind.id(), &options) else {
            return Err(TestCaseError::fail("encoded here, but not decoded"));
        };
        let mut stored = Vec::new();
        let encoding = Encoding::new(vec![Step { encoder, optional: false }]);
        match encoding.encode(&raw, &mut EncodeScratch::default(), &mut stored) {
            Ok(mask) => {
                prop_assert_eq!(mask, 0);
                let mut out = vec![0; raw.len()];
                let decoded = Pipeline::new(vec![filter])
                    .decode(&stored, 0, &mut Scratch::default(), &mut out);
                prop_assert_eq!(decoded, Ok(()));
            }
            Err(EncodeError::Failed { .. }) => {}
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }
}
