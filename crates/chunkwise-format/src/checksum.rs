//! Is a structure what was written?
//!
//! Bob Jenkins' `lookup3`, as HDF5 seals its metadata (`H5_checksum_lookup3`, from 0).  Names of
//! links and attributes have the same sum, by which their B-trees are sorted.

/// The checksum of bytes.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let [mut a, mut b, mut c] = [start; 3];
    // The last part, whole or not, is mixed in another way.
    let mut rest = bytes;
    while rest.len() > PART_LEN
        && let Some((part, behind)) = rest.split_first_chunk()
    {
        [a, b, c] = added([a, b, c], part);
        rest = behind;
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
    }
    if rest.is_empty() {
        return c;
    }
    let mut part = [0; PART_LEN];
    for (to, from) in part.iter_mut().zip(rest) {
        *to = *from;
    }
    [a, b, c] = added([a, b, c], &part);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// Bytes that are mixed at once.
const PART_LEN: usize = 12;

/// Three numbers, with those of a part added.
fn added([a, b, c]: [u32; 3], part: &[u8; PART_LEN]) -> [u32; 3] {
    let [p, q, r, s, t, u, v, w, x, y, z, end] = *part;
    [
        a.wrapping_add(u32::from_le_bytes([p, q, r, s])),
        b.wrapping_add(u32::from_le_bytes([t, u, v, w])),
        c.wrapping_add(u32::from_le_bytes([x, y, z, end])),
    ]
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn sums_are_those_of_lookup3() {
        assert_eq!(checksum(b""), 0xdead_beef);
        assert_eq!(checksum(b"Four score and seven years ago"), 0x1777_0551);
    }
}
