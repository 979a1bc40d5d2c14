//! How are the bytes of shuffled elements put together again?
//!
//! HDF5's shuffle (`H5Zshuffle.c`) stores the first bytes of all elements, then all
//! second bytes, and so on.  Bytes left over when the length is no multiple of the
//! element's size stay at the end as they are.

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
        2 => unshuffle_fixed::<2>(body, out_body),
        4 => unshuffle_fixed::<4>(body, out_body),
        8 => unshuffle_fixed::<8>(body, out_body),
        16 => unshuffle_fixed::<16>(body, out_body),
        _ => unshuffle_any(element_size, body, out_body),
    }
}

/// With the size known to the compiler, which then interleaves with vector
/// instructions; `N` planes are read side by side.
fn unshuffle_fixed<const N: usize>(body: &[u8], out: &mut [u8]) {
    let elements = body.len() / N;
    let planes: [&[u8]; N] = std::array::from_fn(|j| &body[j * elements..][..elements]);
    // Through a block that stays in the first-level cache, so that the interleaving
    // works on fixed-size arrays without bounds checks.
    const BLOCK: usize = 64;
    let mut done = 0;
    for chunk in out.chunks_exact_mut(N * BLOCK) {
        for (j, plane) in planes.iter().enumerate() {
            let source = &plane[done..done + BLOCK];
            for (i, &byte) in source.iter().enumerate() {
                chunk[i * N + j] = byte;
            }
        }
        done += BLOCK;
    }
    for i in done..elements {
        for (j, plane) in planes.iter().enumerate() {
            out[i * N + j] = plane[i];
        }
    }
}

fn unshuffle_any(element_size: usize, body: &[u8], out: &mut [u8]) {
    let elements = body.len() / element_size;
    for (j, plane) in body.chunks_exact(elements).enumerate() {
        for (element, &byte) in out.chunks_exact_mut(element_size).zip(plane) {
            element[j] = byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, as HDF5's documentation gives it.
    fn shuffle(element_size: usize, raw: &[u8]) -> Vec<u8> {
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
            unshuffle(size, &shuffle(size, &raw), &mut out);
            prop_assert_eq!(out, raw);
        }
    }
}
