//! Are bytes still those that were written?

use twox_hash::XxHash3_64;

/// A checksum of some bytes: XXH3, 64 bits.
pub fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}
