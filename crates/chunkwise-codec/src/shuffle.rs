//! How are the bytes of elements stored plane by plane, and put together again?
//!
//! HDF5's shuffle (`H5Zshuffle.c`) stores the first bytes of all elements, then all
//! second bytes, and so on.  Bytes left over when the length is no multiple of the
//! element's size stay at the end as they are.

use crate::filter::{Decode, Decoded, Encode, Encoded, Options};
use crate::lanes::{LANES, Lanes, deinterleave, interleave, load_rows, store_rows};
use crate::state::{EncoderState, State};
use crate::{Output, grown};

/// Elements put together from some of their planes before the next planes' turn: as many
/// as stay in the first-level cache with their planes.
const TILE_NBYTES: usize = 16 << 10;

/// The filter's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shuffle {
    /// Bytes in an element.
    pub element_size: usize,
}

impl Options for Shuffle {
    /// libhdf5 stores the element's size when the dataset is made, and refuses to decode with anything
    /// else.
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        let &[element_size] = cd_values else { return None };
        let element_size = usize::try_from(element_size).ok()?;
        (element_size > 0).then_some(Self { element_size })
    }
}

impl Decode for Shuffle {
    fn most_decoded(&self, stored_len: usize) -> usize {
        stored_len
    }

    fn decode(&self, stored: &[u8], _: &mut State, output: &mut Output<'_>) -> Decoded {
        unshuffle(self.element_size, stored, output.room(stored.len())?);
        Ok(())
    }
}

impl Encode for Shuffle {
    fn encode(&self, raw: &[u8], _: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        grown(out, raw.len())?;
        out.truncate(raw.len());
        shuffle(self.element_size, raw, out);
        Ok(true)
    }
}

/// Undo the shuffle of elements of `element_size` bytes; both slices are of one length.
pub fn unshuffle(element_size: usize, shuffled: &[u8], out: &mut [u8]) {
    debug_assert_eq!(shuffled.len(), out.len());
    let elements = if element_size > 1 { shuffled.len() / element_size } else { 0 };
    if elements <= 1 {
        out.copy_from_slice(shuffled);
        return;
    }
    let whole = elements * element_size;
    let (body, rest) = shuffled.split_at(whole);
    let (out_body, out_rest) = out.split_at_mut(whole);
    out_rest.copy_from_slice(rest);
    match element_size {
        2 | 4 | 8 | 16 => unshuffle_some(element_size, body, 0, out_body),
        3 => in_parts::<2>(element_size, body, out_body),
        5..8 => in_parts::<4>(element_size, body, out_body),
        9..16 => in_parts::<8>(element_size, body, out_body),
        _ => in_parts::<16>(element_size, body, out_body),
    }
}

/// The elements from number `first` on, as many as fill `out`, of those whose shuffled bytes are
/// `planes`.
///
/// # Panics
/// When there are fewer.
pub(crate) fn unshuffle_some(element_size: usize, planes: &[u8], first: usize, out: &mut [u8]) {
    debug_assert!(out.len() + first * element_size <= planes.len());
    match element_size {
        2 => adjacent::<2>(planes, first, out),
        4 => adjacent::<4>(planes, first, out),
        8 => adjacent::<8>(planes, first, out),
        16 => adjacent::<16>(planes, first, out),
        _ => one_by_one(element_size, planes, (first, 0), out),
    }
}

/// Shuffle elements of `element_size` bytes; both slices are of one length.
pub fn shuffle(element_size: usize, raw: &[u8], out: &mut [u8]) {
    debug_assert_eq!(raw.len(), out.len());
    let elements = if element_size > 1 { raw.len() / element_size } else { 0 };
    if elements <= 1 {
        out.copy_from_slice(raw);
        return;
    }
    let whole = elements * element_size;
    let (body, rest) = raw.split_at(whole);
    let (planes, out_rest) = out.split_at_mut(whole);
    out_rest.copy_from_slice(rest);
    match element_size {
        2 => adjacent_apart::<2>(body, planes),
        4 => adjacent_apart::<4>(body, planes),
        8 => adjacent_apart::<8>(body, planes),
        16 => adjacent_apart::<16>(body, planes),
        3 => parts_apart::<2>(element_size, body, planes),
        5..8 => parts_apart::<4>(element_size, body, planes),
        9..16 => parts_apart::<8>(element_size, body, planes),
        _ => parts_apart::<16>(element_size, body, planes),
    }
}

/// Elements of `W` bytes from number `first` on, which vectors fill without a gap.
fn adjacent<const W: usize>(body: &[u8], first: usize, out: &mut [u8]) {
    let elements = body.len() / W;
    let mut done = 0;
    for to in out.chunks_exact_mut(W * LANES) {
        let Some(planes) = load_rows::<W>(body, elements, first + done) else { break };
        for (to, lanes) in to.as_chunks_mut::<LANES>().0.iter_mut().zip(interleave(planes)) {
            lanes.store(to);
        }
        done += LANES;
    }
    one_by_one(W, body, (first, done), out);
}

/// Elements of any size of at least `W`: `W` planes at a time, the last of which may
/// be among those of the time before.
fn in_parts<const W: usize>(element_size: usize, body: &[u8], out: &mut [u8]) {
    let elements = body.len() / element_size;
    let vectors = elements / LANES;
    let tile = (TILE_NBYTES / element_size / LANES).max(1);
    for begin in (0..vectors).step_by(tile) {
        for first in (0..element_size).step_by(W) {
            let first = first.min(element_size - W);
            for vector in begin..(begin + tile).min(vectors) {
                let at = vector * LANES;
                let Some(planes) = load_rows::<W>(&body[first * elements..], elements, at) else {
                    break;
                };
                let mut records = [[0; LANES]; W];
                for (to, lanes) in records.iter_mut().zip(interleave(planes)) {
                    lanes.store(to);
                }
                let to = &mut out[at * element_size..][..LANES * element_size];
                let records = records.as_flattened().as_chunks::<W>().0;
                for (to, record) in to.chunks_exact_mut(element_size).zip(records) {
                    to[first..first + W].copy_from_slice(record);
                }
            }
        }
    }
    one_by_one(element_size, body, (0, vectors * LANES), out);
}

/// The elements from number `first` on, after the `done` first of them, too few for a vector.
fn one_by_one(element_size: usize, body: &[u8], (first, done): (usize, usize), out: &mut [u8]) {
    let elements = body.len() / element_size;
    for (j, plane) in body.chunks_exact(elements).enumerate() {
        let out = out.chunks_exact_mut(element_size).skip(done);
        for (element, &byte) in out.zip(&plane[first + done..]) {
            element[j] = byte;
        }
    }
}

/// The bytes of elements of `W` bytes to their planes.
fn adjacent_apart<const W: usize>(body: &[u8], planes: &mut [u8]) {
    let elements = body.len() / W;
    let mut done = 0;
    for from in body.chunks_exact(W * LANES) {
        let mut records = [Lanes::load(&[0; LANES]); W];
        for (lanes, from) in records.iter_mut().zip(from.as_chunks::<LANES>().0) {
            *lanes = Lanes::load(from);
        }
        if !store_rows(deinterleave(records), planes, elements, done) {
            break;
        }
        done += LANES;
    }
    one_by_one_apart(W, body, done, planes);
}

/// The bytes of elements of any size of at least `W` to their planes, `W` at a time.
fn parts_apart<const W: usize>(element_size: usize, body: &[u8], planes: &mut [u8]) {
    let elements = body.len() / element_size;
    let vectors = elements / LANES;
    let tile = (TILE_NBYTES / element_size / LANES).max(1);
    for begin in (0..vectors).step_by(tile) {
        for first in (0..element_size).step_by(W) {
            let first = first.min(element_size - W);
            for vector in begin..(begin + tile).min(vectors) {
                let at = vector * LANES;
                let mut bytes = [[0; LANES]; W];
                let from = body[at * element_size..].chunks_exact(element_size);
                for (to, from) in bytes.as_flattened_mut().chunks_exact_mut(W).zip(from) {
                    to.copy_from_slice(&from[first..first + W]);
                }
                let records = bytes.map(|bytes| Lanes::load(&bytes));
                let rows = &mut planes[first * elements..];
                if !store_rows(deinterleave(records), rows, elements, at) {
                    break;
                }
            }
        }
    }
    one_by_one_apart(element_size, body, vectors * LANES, planes);
}

/// The elements from number `done` on, too few for a vector.
fn one_by_one_apart(element_size: usize, body: &[u8], done: usize, planes: &mut [u8]) {
    let elements = body.len() / element_size;
    for (j, plane) in planes.chunks_exact_mut(elements).enumerate() {
        let left = body.chunks_exact(element_size).skip(done);
        for (to, element) in plane[done..].iter_mut().zip(left) {
            *to = element[j];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, as HDF5's documentation gives it.
    fn slowly(element_size: usize, raw: &[u8]) -> Vec<u8> {
        let elements = raw.len() / element_size;
        let mut out = Vec::with_capacity(raw.len());
        for j in 0..element_size {
            out.extend((0..elements).map(|i| raw[i * element_size + j]));
        }
        out.extend(&raw[elements * element_size..]);
        out
    }

    proptest! {
        #[test]
        fn inverts_shuffle(size in 1usize..20, raw in prop::collection::vec(any::<u8>(), 0..3000)) {
            let mut out = vec![0; raw.len()];
            unshuffle(size, &slowly(size, &raw), &mut out);
            prop_assert_eq!(out, raw);
        }
        #[test]
        fn some_elements_are_those_of_all(
            size in 2usize..20,
            elements in 1usize..300,
            part in (0f64..1.0, 0f64..1.0),
            seed in any::<u8>(),
        ) {
            let byte = |at: usize| (at.wrapping_mul(0x9e37_79b9) >> 9) as u8 ^ seed;
            let raw: Vec<u8> = (0..size * elements).map(byte).collect();
            let first = (part.0 * elements as f64) as usize;
            let count = 1 + (part.1 * (elements - first) as f64) as usize;
            let part = first * size..(first + count.min(elements - first)) * size;
            let mut out = vec![0; part.len()];
            unshuffle_some(size, &slowly(size, &raw), first, &mut out);
            prop_assert_eq!(&out, &raw[part]);
        }
        #[test]
        fn agrees_with_the_definition(
            size in prop_oneof![1usize..20, 20usize..90],
            raw in prop::collection::vec(any::<u8>(), 0..3000),
        ) {
            let mut out = vec![0; raw.len()];
            shuffle(size, &raw, &mut out);
            prop_assert_eq!(out, slowly(size, &raw));
        }
    }
}
