//! Where in what is stored of a chunk are its blocks?

use std::ops::Range;

use crate::bytes::Reader;

/// A chunk's bytes in blocks of equal length, of which the last may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) len: usize,
    pub(crate) block_len: usize,
}

impl Cut {
    /// How many blocks there are.
    pub(crate) fn count(self) -> usize {
        self.len.div_ceil(self.block_len)
    }

    /// The bytes of block `number`.
    pub(crate) fn run(self, number: usize) -> Range<usize> {
        let begin = number.saturating_mul(self.block_len).min(self.len);
        begin..begin.saturating_add(self.block_len).min(self.len)
    }
}

/// The bytes of `count` blocks that begin where a table of numbers at byte `table` says, and end
/// where another one begins, or at the end; None where two begin at the same place.
pub(crate) fn places(stored: &[u8], table: usize, count: usize) -> Option<Vec<&[u8]>> {
    let mut numbers = Reader::new(stored.get(table..)?);
    let mut starts = Vec::with_capacity(count.min(stored.len() / 4));
    for number in 0..count {
        starts.push((numbers.u32_le()? as usize, number));
    }
    starts.sort_unstable();
    let ends = starts.iter().skip(1).map(|&(start, _)| start).chain([stored.len()]);
    let mut places: Vec<&[u8]> = vec![&[]; count];
    for (&(start, number), end) in starts.iter().zip(ends) {
        places[number] = stored.get(start..end).filter(|bytes| !bytes.is_empty())?;
    }
    Some(places)
}
