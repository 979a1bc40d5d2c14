//! Are streams that one thread inflates together inflated as one by one, and as zlib inflates them?
//!
//! An input is how many streams there are (1); for each the bytes that it holds (4, little-endian)
//! and its stored bytes (2); then what is stored, one stream after the other.  Each of the first ones
//! may be cut by the end of the input.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use chunkwise_codec::{Job, Scratch};

/// Streams hold no more than this, so that the search is fast.
const MOST_RAW: usize = 1 << 17;
const MOST_STREAMS: u8 = 9;
/// What is put before each output and behind it.
const GUARD: [u8; 32] = [0x5a; 32];

pub(crate) fn check(input: &[u8]) {
    let Some(streams) = parse(input) else { return };
    let mut scratch = Scratch::default();
    let [alone, together] = [false, true].map(|together| inflate(&streams, together, &mut scratch));
    // Beside others or in another order, each is the same.
    let backwards: Vec<_> = streams.iter().rev().copied().collect();
    let mut again = inflate(&backwards, true, &mut scratch);
    again.reverse();
    assert_eq!(together, again, "in another order, it is not the same");
    for ((one, other), &(stored, raw_len)) in together.iter().zip(&alone).zip(&streams) {
        // What is refused is libdeflate's to judge.
        if one.is_some() {
            assert_eq!(one, other, "libdeflate inflates it otherwise");
            assert_eq!(*one, by_zlib(stored, raw_len), "zlib inflates it otherwise");
        }
    }
}

/// Stored bytes, and how many they are to become.
fn parse(mut input: &[u8]) -> Option<Vec<(&[u8], usize)>> {
    let count = *input.split_off_first()? % (MOST_STREAMS + 1);
    let mut lengths = Vec::new();
    for _ in 0..count {
        let raw_len = u32::from_le_bytes(*input.split_off(..4)?.first_chunk()?) as usize;
        let stored_len = u16::from_le_bytes(*input.split_off(..2)?.first_chunk()?);
        lengths.push((raw_len % (MOST_RAW + 1), usize::from(stored_len)));
    }
    let mut stored = |len: usize| input.split_off(..len.min(input.len())).unwrap_or_default();
    Some(lengths.into_iter().map(|(raw_len, len)| (stored(len), raw_len)).collect())
}

/// What each becomes; None where it is refused.
fn inflate(
    streams: &[(&[u8], usize)],
    together: bool,
    scratch: &mut Scratch,
) -> Vec<Option<Vec<u8>>> {
    let guarded = |&(_, len): &(&[u8], usize)| [&GUARD[..], &vec![0xa5; len], &GUARD].concat();
    let mut outs: Vec<Vec<u8>> = streams.iter().map(guarded).collect();
    // As short as they are, so that a byte behind the end is not theirs.
    let copies: Vec<Box<[u8]>> = streams.iter().map(|(stored, _)| (*stored).into()).collect();
    let jobs = copies.iter().zip(&mut outs).map(|(stored, out)| {
        let len = out.len();
        Job { stored, out: &mut out[GUARD.len()..len - GUARD.len()], done: false }
    });
    let mut jobs: Vec<Job<'_>> = jobs.collect();
    scratch.inflate(&mut jobs, together);
    let done: Vec<bool> = jobs.iter().map(|job| job.done).collect();
    let outs = outs.into_iter().zip(done).map(|(out, done)| {
        let (before, rest) = out.split_at(GUARD.len());
        let (raw, after) = rest.split_at(rest.len() - GUARD.len());
        assert!(before == GUARD && after == GUARD, "bytes beside the output were written");
        done.then(|| raw.to_vec())
    });
    outs.collect()
}

/// What zlib makes of a stream that holds exactly so many bytes.
fn by_zlib(stored: &[u8], raw_len: usize) -> Option<Vec<u8>> {
    let (mut out, mut stream) = (vec![0; raw_len + 1], MaybeUninit::<libz_sys::z_stream>::zeroed());
    // SAFETY: a stream of zeros has no buffers, and zlib's own functions for memory; then it is a live
    // one, and the lengths, far below 4 GiB, are those of live slices, of which zlib writes to `out`
    // alone.
    let (status, left) = unsafe {
        let (version, size) = (libz_sys::zlibVersion(), size_of::<libz_sys::z_stream>() as c_int);
        if libz_sys::inflateInit_(stream.as_mut_ptr(), version, size) != libz_sys::Z_OK {
            return None;
        }
        let stream = stream.assume_init_mut();
        stream.next_in = stored.as_ptr().cast_mut();
        stream.avail_in = stored.len() as u32;
        stream.next_out = out.as_mut_ptr();
        stream.avail_out = out.len() as u32;
        let status = libz_sys::inflate(stream, libz_sys::Z_FINISH);
        libz_sys::inflateEnd(stream);
        (status, stream.avail_out as usize)
    };
    out.truncate(raw_len);
    (status == libz_sys::Z_STREAM_END && left == 1).then_some(out)
}
