use super::*;
use crate::inflater::Inflater;
use libdeflater::{CompressionLvl, Compressor};
use proptest::prelude::*;

/// What streams are made of.
#[derive(Debug, Clone, Copy)]
enum Data {
    /// No two bytes alike, so that blocks are stored.
    Random,
    /// Symbols of which each comes half as often as the one before.
    Skewed,
    /// Numbers with noise: two bytes that are, and two that hardly change.
    Floats,
    /// Few literals.
    Runs,
}

fn bytes(data: Data, seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..len)
        .map(|at| match (data, next()) {
            (Data::Random, word) => (word >> 32) as u8,
            (Data::Skewed, word) => (word >> 20).trailing_zeros() as u8,
            (Data::Floats, word) if at % 4 < 2 => (word >> 32) as u8 & 0x7f,
            (Data::Floats, _) => (at >> 11) as u8,
            (Data::Runs, word) => (at / (word >> 61).max(1) as usize % 7 * 30) as u8,
        })
        .collect()
}

/// zlib's own stream; `strategy` makes it fixed codes, literals only or runs.
fn by_zlib(raw: &[u8], level: i32, strategy: i32, memory: i32) -> Vec<u8> {
    let mut stream = Box::new(std::mem::MaybeUninit::<libz_sys::z_stream>::zeroed());
    // SAFETY: a stream of zeros, then a live one; the lengths are those of live slices.
    unsafe {
        let size = size_of::<libz_sys::z_stream>() as i32;
        let version = libz_sys::zlibVersion();
        let stream = stream.as_mut_ptr();
        let begun = libz_sys::deflateInit2_(stream, level, 8, 15, memory, strategy, version, size);
        assert_eq!(begun, libz_sys::Z_OK);
        let mut out = vec![0; libz_sys::deflateBound(stream, raw.len() as _) as usize + 64];
        (*stream).next_in = raw.as_ptr().cast_mut();
        (*stream).avail_in = raw.len() as u32;
        (*stream).next_out = out.as_mut_ptr();
        (*stream).avail_out = out.len() as u32;
        assert_eq!(libz_sys::deflate(stream, libz_sys::Z_FINISH), libz_sys::Z_STREAM_END);
        out.truncate(out.len() - (*stream).avail_out as usize);
        libz_sys::deflateEnd(stream);
        out
    }
}

fn by_libdeflate(raw: &[u8], level: i32) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::new(level).unwrap());
    let mut stored = vec![0; compressor.zlib_compress_bound(raw.len())];
    let len = compressor.zlib_compress(raw, &mut stored).unwrap();
    stored.truncate(len);
    stored
}

/// What is done to a stream before it is inflated.
#[derive(Debug, Clone)]
enum Change {
    Nothing,
    Cut(prop::sample::Index),
    /// A bit somewhere, or near the beginning, where the codes are.
    Flip(prop::sample::Index, u8),
    FlipNear(u8, u8),
    /// Bytes after its end.
    More(u8),
    /// Room for more or fewer bytes than there are.
    Room(i8),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => Just(Change::Nothing),
        1 => any::<prop::sample::Index>().prop_map(Change::Cut),
        1 => (any::<prop::sample::Index>(), 0u8..8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        2 => (0u8..120, 0u8..8).prop_map(|(at, bit)| Change::FlipNear(at, bit)),
        1 => any::<u8>().prop_map(Change::More),
        1 => (-40i8..40).prop_map(Change::Room),
    ]
}

fn stream() -> impl Strategy<Value = (Vec<u8>, usize)> {
    let data =
        prop_oneof![Just(Data::Random), Just(Data::Skewed), Just(Data::Floats), Just(Data::Runs)];
    let len = prop_oneof![0usize..60, 60usize..3000, 3000usize..90_000];
    (data, any::<u64>(), len, 0i32..=9, 0i32..=4, 1i32..=9, any::<bool>(), change()).prop_map(
        |(data, seed, len, level, strategy, memory, zlib, change)| {
            let raw = bytes(data, seed, len);
            let mut stored = match zlib {
                true => by_zlib(&raw, level, strategy, memory),
                false => by_libdeflate(&raw, level + 1),
            };
            let mut room = raw.len();
            match change {
                Change::Nothing => {}
                Change::Cut(at) => stored.truncate(at.index(stored.len())),
                Change::Flip(at, bit) => {
                    let at = at.index(stored.len());
                    stored[at] ^= 1 << bit;
                }
                Change::FlipNear(at, bit) => {
                    let at = usize::from(at) % stored.len();
                    stored[at] ^= 1 << bit;
                }
                Change::More(byte) => stored.extend([byte; 9]),
                Change::Room(more) => room = room.saturating_add_signed(more.into()),
            }
            (stored, room)
        },
    )
}

fn assert_as_libdeflate(streams: &[(Vec<u8>, usize)], complete: bool) {
    let (mut interleaved, mut alone) = (Interleaved::default(), Inflater::default());
    let mut outs: Vec<Vec<u8>> = streams.iter().map(|(_, room)| vec![0xa5; *room]).collect();
    let jobs = streams.iter().zip(&mut outs);
    let mut jobs: Vec<Job<'_>> =
        jobs.map(|((stored, _), out)| Job { stored, out, done: false }).collect();
    interleaved.inflate(&mut jobs);
    for (job, (stored, room)) in jobs.iter().zip(streams) {
        let mut expected = vec![0; *room];
        let sound = alone.inflate_exactly(stored, &mut expected);
        // It may refuse what libdeflate takes, as libdeflate is tried then; but not what is usual.
        assert!(sound || !job.done);
        assert!(!job.done || *job.out == expected[..]);
        assert!(job.done || !sound || !complete || !Interleaved::is_possible());
    }
}

proptest! {
    #[test]
    fn streams_are_inflated_as_by_libdeflate(streams in prop::collection::vec(stream(), 0..11)) {
        assert_as_libdeflate(&streams, true);
    }

    #[test]
    fn any_bytes_are_no_harm(
        streams in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..400), 0usize..3000), 4..9),
    ) {
        let zlib = |(mut bytes, room): (Vec<u8>, usize)| {
            bytes.splice(0..0, [0x78, 0x9c]);
            (bytes, room)
        };
        assert_as_libdeflate(&streams.into_iter().map(zlib).collect::<Vec<_>>(), false);
    }

    /// Codes of any lengths, also such as no encoder makes.
    #[test]
    fn any_codes_are_no_harm(
        codes in prop::collection::vec(
            (prop::collection::vec(0u8..16, 257..287), prop::collection::vec(0u8..16, 1..31),
             prop::collection::vec(any::<u8>(), 0..300), any::<bool>()),
            4..9),
    ) {
        let streams: Vec<_> = codes.into_iter().map(|(mut lengths, mut offsets, rest, complete)| {
            if complete {
                completed(&mut lengths);
                completed(&mut offsets);
            }
            (with_codes(&lengths, &offsets, &rest), 2000)
        }).collect();
        assert_as_libdeflate(&streams, false);
    }
}

/// Make lengths those of a complete code, as far as there are symbols enough.
fn completed(lengths: &mut [u8]) {
    let mut left = 1u32 << 15;
    let count = lengths.len();
    for (at, len) in lengths.iter_mut().enumerate() {
        // The rest, in codes of which each takes half of what is left.
        let share =
            if at + 20 > count { left / 2 } else { (left / 4).min(1 << (15 - (*len).max(1))) };
        let share = if at + 1 == count || share == 0 { left } else { share };
        *len = if share == 0 { 0 } else { 15 - share.ilog2() as u8 };
        left -= if share == 0 { 0 } else { 1 << share.ilog2() };
    }
}

/// A stream of one block with codes of these lengths.
fn with_codes(lengths: &[u8], offsets: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut bits: Vec<u8> = Vec::new();
    let mut put = |value: usize, count: usize| {
        bits.extend((0..count).map(|bit| (value >> bit & 1) as u8));
    };
    put(5, 3);
    put(lengths.len() - 257, 5);
    put(offsets.len() - 1, 5);
    put(15, 4);
    // The lengths' own code: four bits each, none for repetitions.
    for place in [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15] {
        put(if place < 16 { 4 } else { 0 }, 3);
    }
    for len in lengths.iter().chain(offsets) {
        // The first bit of a code is its highest.
        put(usize::from(len.reverse_bits() >> 4), 4);
    }
    let mut stored = vec![0x78, 0x9c];
    stored.extend(
        bits.chunks(8)
            .map(|byte| byte.iter().enumerate().map(|(place, bit)| bit << place).sum::<u8>()),
    );
    stored.extend(rest);
    stored
}

#[test]
fn each_flip_of_head_and_checksum_is_noticed() {
    let raw = bytes(Data::Floats, 5, 9000);
    let stored = by_zlib(&raw, 6, 0, 8);
    let places = (0..16).chain(8 * (stored.len() - 4)..8 * stored.len());
    let mut streams: Vec<_> = places
        .map(|bit| {
            let mut stored = stored.clone();
            stored[bit / 8] ^= 1 << (bit % 8);
            (stored, raw.len())
        })
        .collect();
    streams.push((stored, raw.len()));
    assert_as_libdeflate(&streams, true);
}
