//! Are two runs of bytes the same?

/// CRC-32 (that of gzip and zlib) of `bytes`, continuing from `value`, which is 0 at
/// the start.
pub fn crc32(value: u32, bytes: &[u8]) -> u32 {
    // SAFETY: a pointer and the length of a live slice.
    unsafe { libdeflate_sys::libdeflate_crc32(value, bytes.as_ptr().cast(), bytes.len()) }
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn continues_where_it_left_off() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(crc32(0, b"1234"), b"56789"), 0xcbf4_3926);
        assert_eq!(crc32(7, b""), 7);
    }
}
