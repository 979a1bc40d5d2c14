//! What is made of some blocks of a chunk, and how is it put together with the others?

/// Encoders need a little more room than what they make in the end.  Where there is less than
/// this left of the room that a chunk has, it is encoded as one.
pub(crate) const SLACK_NBYTES: usize = 128;

/// Some blocks that follow each other, encoded.
#[derive(Debug, Default)]
pub struct EncodedBlocks {
    pub(crate) bytes: Vec<u8>,
    /// Where each begins in the bytes, where the filter lists that.
    pub(crate) starts: Vec<u32>,
}

/// Append the places of all blocks, of which the first begins at byte `at`.
pub(crate) fn put_starts(parts: &[EncodedBlocks], mut at: usize, out: &mut Vec<u8>) {
    for part in parts {
        let starts = part.starts.iter().map(|start| (at as u32).wrapping_add(*start).to_le_bytes());
        out.extend(starts.flatten());
        at += part.bytes.len();
    }
}
