//! Any filters in any order: do they give back what went in, and survive what is damaged?

mod blocks;
mod encoders;

use std::io::Write;

use libdeflater::{CompressionLvl, Compressor};
use proptest::prelude::*;

use crate::bzip2::Bzip2;
use crate::lz4::Lz4;
use crate::zstd::Zstd;
use crate::{
    DecodeError, Deflate, Filter, FilterKind, Fletcher32, PassedOver, Pipeline, Scratch, Shuffle,
    fletcher32,
};

const LZ4: Filter = Filter::Lz4(Lz4 { block_nbytes: 1 << 30 });
const BZIP2: Filter = Filter::Bzip2(Bzip2 { level: 9 });

fn encode(filters: &[Filter], mask: u32, raw: &[u8]) -> Vec<u8> {
    let mut data = raw.to_vec();
    for (i, filter) in filters.iter().enumerate() {
        if mask >> i & 1 == 1 {
            continue;
        }
        data = match filter {
            Filter::Deflate(_) => {
                let mut c = Compressor::new(CompressionLvl::new(4).unwrap());
                let mut out = vec![0; c.zlib_compress_bound(data.len())];
                let n = c.zlib_compress(&data, &mut out).unwrap();
                out.truncate(n);
                out
            }
            &Filter::Shuffle(Shuffle { element_size }) => {
                let elements = data.len() / element_size;
                let mut out: Vec<u8> = (0..element_size)
                    .flat_map(|j| (0..elements).map(move |i| (i, j)))
                    .map(|(i, j)| data[i * element_size + j])
                    .collect();
                out.extend(&data[elements * element_size..]);
                out
            }
            Filter::Fletcher32(_) => {
                let sum = fletcher32::checksum(&data);
                data.extend(sum.to_le_bytes());
                data
            }
            Filter::Zstd(_) => zstd_frame(&data),
            Filter::Lz4(_) => lz4_container(&data),
            Filter::Bzip2(_) => bzip2_stream(&data),
            other => unreachable!("{other:?} is compared with libhdf5's, in Python"),
        };
    }
    data
}

fn zstd_frame(raw: &[u8]) -> Vec<u8> {
    let mut out = vec![0; zstd_safe::compress_bound(raw.len())];
    let n = zstd_safe::compress(&mut out[..], raw, 3).unwrap();
    out.truncate(n);
    out
}

fn lz4_container(raw: &[u8]) -> Vec<u8> {
    const BLOCK: usize = 300;
    let mut out = (raw.len() as u64).to_be_bytes().to_vec();
    out.extend((BLOCK as u32).to_be_bytes());
    for block in raw.chunks(BLOCK) {
        let mut packed = vec![0u8; 2 * BLOCK];
        // SAFETY: the lengths are those of the slices.
        let len = unsafe {
            lz4_sys::LZ4_compress_default(
                block.as_ptr().cast(),
                packed.as_mut_ptr().cast(),
                block.len() as i32,
                packed.len() as i32,
            )
        };
        let stored = if len as usize >= block.len() { block } else { &packed[..len as usize] };
        out.extend((stored.len() as u32).to_be_bytes());
        out.extend(stored);
    }
    out
}

fn bzip2_stream(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = bzip2::write::BzEncoder::new(&mut out, bzip2::Compression::new(1));
    encoder.write_all(raw).unwrap();
    encoder.finish().unwrap();
    out
}

/// Any filters that are decoded here, with options that may make no sense for the data.
fn any_filters() -> impl Strategy<Value = Vec<Filter>> {
    let number = prop_oneof![0u32..9, Just(20), any::<u32>()];
    let ids = FilterKind::ALL.map(FilterKind::id).to_vec();
    let options = prop::collection::vec(number, 0..22);
    let one = (prop::sample::select(ids), options, any::<bool>()).prop_filter_map(
        "options that the filter has",
        |(id, mut options, counted)| {
            if counted && !options.is_empty() {
                options[0] = options.len() as u32;
            }
            Filter::from_hdf5(id, &options).or_else(|| {
                let plausible: &[u32] = match id {
                    2 => &[4],
                    5 => &[8, 0, 50, 1, 2, 0, 9, 3],
                    6 => &[2, 0, 50, 0, 4, 1, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                    4 => &[32, 8, 8, 64],
                    32008 => &[0, 4, 3, 16, 2],
                    _ => return None,
                };
                Filter::from_hdf5(id, plausible)
            })
        },
    );
    prop::collection::vec(one, 1..4)
}

fn filters() -> impl Strategy<Value = Vec<Filter>> {
    let one = prop_oneof![
        Just(Filter::Deflate(Deflate)),
        (1usize..9).prop_map(|element_size| Filter::Shuffle(Shuffle { element_size })),
        Just(Filter::Fletcher32(Fletcher32)),
        Just(Filter::Zstd(Zstd { level: 3 })),
        Just(LZ4),
        Just(BZIP2),
    ];
    prop::collection::vec(one, 0..5)
}

proptest! {
    /// Any order and repetition of filters, with any of them masked.
    #[test]
    fn decodes_what_was_encoded(
        filters in filters(),
        mask in 0u32..32,
        raw in prop::collection::vec(0u8..4, 0..2000),
    ) {
        let stored = encode(&filters, mask, &raw);
        let mut out = vec![9; raw.len()];
        let mut scratch = Scratch::default();
        let mut done = Vec::new();
        let applied = filters.iter().enumerate().filter(|&(i, _)| mask >> i & 1 == 0);
        let applied: Vec<FilterKind> = applied.map(|(_, filter)| filter.kind()).rev().collect();
        Pipeline::new(filters.clone())
            .decode_in_steps(&stored, mask, &mut scratch, &mut out, |filter| done.push(filter))
            .unwrap();
        prop_assert_eq!(out, raw);
        prop_assert_eq!(done, applied);
    }

    /// A stream of a chunk's first bytes gives these, and zeros for the others.
    #[test]
    fn a_short_stream_gives_what_it_has(
        filters in filters(),
        mask in 0u32..32,
        raw in prop::collection::vec(1u8..4, 0..2000),
        lacking in 1usize..2000,
    ) {
        let stored = encode(&filters, mask, &raw);
        let (mut out, mut scratch) = (vec![9; raw.len() + lacking], Scratch::default());
        let pipeline = Pipeline::new(filters);
        let len = pipeline.decode_in_steps(&stored, mask, &mut scratch, &mut out, |_| ());
        prop_assert_eq!(len, Ok(raw.len()));
        let (there, others) = out.split_at(raw.len());
        prop_assert_eq!(there, &raw[..]);
        prop_assert!(others.iter().all(|&byte| byte == 0));
        let strictly = pipeline.decode_strictly(&stored, mask, &mut scratch, &mut out);
        prop_assert_eq!(strictly, Ok((PassedOver::default(), raw.len())));
    }

    /// Bytes from anywhere give an error or a result, never a panic.
    #[test]
    fn survives_any_bytes(
        filters in any_filters(),
        mask in any::<u32>(),
        stored in prop::collection::vec(any::<u8>(), 0..300),
        len in 0usize..400,
    ) {
        let mut scratch = Scratch::default();
        let _ = Pipeline::new(filters).decode(&stored, mask, &mut scratch, &mut vec![0; len]);
    }

    /// A real stream with bytes changed, cut off or appended.
    #[test]
    fn survives_damage(
        filters in filters(),
        raw in prop::collection::vec(0u8..4, 1..500),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut stored = encode(&filters, 0, &raw);
        let at = at.index(stored.len());
        stored[at] = byte;
        stored.truncate(cut.index(stored.len() + 1));
        let mut scratch = Scratch::default();
        let _ = Pipeline::new(filters).decode(&stored, 0, &mut scratch, &mut vec![0; raw.len()]);
    }
}

#[test]
fn a_short_chunk_is_an_error_and_a_long_one_is_cut() {
    let deflate = Pipeline::new(vec![Filter::Deflate(Deflate)]);
    let stored = encode(&[Filter::Deflate(Deflate)], 0, b"abcdefgh");
    let mut scratch = Scratch::default();
    let mut longer = [0; 9];
    assert_eq!(
        deflate.decode(&stored, 0, &mut scratch, &mut longer),
        Err(DecodeError::TooShort { len: 8, expected: 9 })
    );
    let mut shorter = [0; 3];
    deflate.decode(&stored, 0, &mut scratch, &mut shorter).unwrap();
    assert_eq!(&shorter, b"abc");
}

#[test]
fn what_cannot_be_a_chunk_is_seen_before_decoding() {
    let pipeline =
        Pipeline::new(vec![Filter::Shuffle(Shuffle { element_size: 4 }), Filter::Deflate(Deflate)]);
    assert!(pipeline.check_len(17, 0, 17 * 1032 + 64).is_ok());
    assert!(pipeline.check_len(17, 0, 17 * 1032 + 65).is_err());
    assert!(pipeline.check_len(17, 0b10, 18).is_err());
    let zeros = vec![0; 10_000_000];
    let stored = encode(&[Filter::Deflate(Deflate)], 0, &zeros);
    assert!(
        Pipeline::new(vec![Filter::Deflate(Deflate)])
            .check_len(stored.len(), 0, zeros.len())
            .is_ok()
    );
}

#[test]
fn bytes_after_the_stream_are_ignored() {
    let mut stored = encode(&[Filter::Deflate(Deflate)], 0, b"abcdefgh");
    stored.extend(b"trailing");
    let mut out = [0; 8];
    Pipeline::new(vec![Filter::Deflate(Deflate)])
        .decode(&stored, 0, &mut Scratch::default(), &mut out)
        .unwrap();
    assert_eq!(&out, b"abcdefgh");
}

#[test]
fn a_bomb_takes_what_a_chunk_does() {
    let stored = encode(&[Filter::Deflate(Deflate)], 0, &vec![0; 10_000_000]);
    let mut out = [1; 100];
    let mut scratch = Scratch::default();
    Pipeline::new(vec![Filter::Deflate(Deflate)])
        .decode(&stored, 0, &mut scratch, &mut out)
        .unwrap();
    assert_eq!(out, [0; 100]);
    assert!(scratch.nbytes() < 1 << 20);
}

#[test]
fn a_bomb_within_a_bomb_takes_what_a_chunk_does() {
    let filters = [Filter::Deflate(Deflate), Filter::Deflate(Deflate)];
    let stored = encode(&filters, 0, &vec![0; 100_000_000]);
    assert!(stored.len() < 2000);
    let (mut out, mut scratch) = ([1; 100], Scratch::default());
    Pipeline::new(filters.to_vec()).decode(&stored, 0, &mut scratch, &mut out).unwrap();
    assert_eq!(out, [0; 100]);
    assert!(scratch.nbytes() < 1 << 20);
}

/// A filter that permutes all bytes, or sums them, wants all of them.
#[test]
fn a_bomb_before_a_filter_that_wants_all_of_it_is_refused() {
    let sizes = [100_000, 10_000_000];
    for outer in [Filter::Shuffle(Shuffle { element_size: 4 }), Filter::Fletcher32(Fletcher32)] {
        let filters = [outer.clone(), Filter::Deflate(Deflate)];
        let pipeline = Pipeline::new(filters.to_vec());
        let decode = |nbytes: usize| {
            let raw: Vec<u8> = (0..nbytes).map(|i| (i / 1000) as u8).collect();
            let (mut out, mut scratch) = ([1; 100], Scratch::default());
            let stored = encode(&filters, 0, &raw);
            let decoded = pipeline.decode(&stored, 0, &mut scratch, &mut out);
            (decoded, out, raw)
        };
        let [(some, out, raw), (many, ..)] = sizes.map(decode);
        // The first bytes of what the whole becomes, as libhdf5 has it.
        assert_eq!((some, &out[..]), (Ok(()), &raw[..100]));
        assert_eq!(many, Err(DecodeError::TooLong { filter: "deflate", most: 4 << 20 }));
    }
}

proptest! {
    /// What decoding passes over is said, and nothing of what was written is passed over.
    #[test]
    fn what_is_passed_over_is_said(
        filter in prop::sample::select(vec![
            Filter::Deflate(Deflate), LZ4, BZIP2, Filter::Fletcher32(Fletcher32),
        ]),
        checked in any::<bool>(),
        raw in prop::collection::vec(0u8..4, 1..2000),
        more in prop::collection::vec(any::<u8>(), 1..20),
    ) {
        let mut filters = vec![Filter::Shuffle(Shuffle { element_size: 4 }), filter.clone()];
        let mut stored = encode(&filters, 0, &raw);
        let mut longer = stored.clone();
        longer.extend(&more);
        if checked {
            filters.push(Filter::Fletcher32(Fletcher32));
            for bytes in [&mut stored, &mut longer] {
                let sum = fletcher32::checksum(bytes);
                bytes.extend(sum.to_le_bytes());
            }
        }
        let pipeline = Pipeline::new(filters);
        let mut scratch = Scratch::default();
        let mut strictly = |stored: &[u8], len: usize| {
            let mut out = vec![0; len];
            let found = pipeline.decode_strictly(stored, 0, &mut scratch, &mut out);
            found.map(|(passed_over, len)| (passed_over, out[..len].to_vec()))
        };
        let (nothing, out) = strictly(&stored, raw.len()).unwrap();
        prop_assert!(nothing.is_nothing());
        prop_assert_eq!(out, raw.clone());
        if !matches!(filter, Filter::Fletcher32(_)) {
            let (trailing, _) = strictly(&longer, raw.len()).unwrap();
            let expected = PassedOver { trailing_nbytes: more.len(), beyond_chunk: false };
            prop_assert_eq!(trailing, expected);
        }
        let (beyond, _) = strictly(&stored, raw.len() - 1).unwrap();
        prop_assert!(beyond.beyond_chunk);
    }
}
