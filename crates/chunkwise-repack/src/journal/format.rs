//! What does a journal look like on disk?
//!
//! Frames: a length, a checksum, and as many bytes.  The first holds whose journal it is,
//! each other one a chunk.  A frame that is cut off or damaged ends the journal: what comes
//! after it is not believed.

use chunkwise_select::{Dims, MAX_RANK};

use crate::checksum::checksum;

/// Begins every journal; the last digit is the format's version.
pub const MAGIC: &[u8; 8] = b"CWREPK02";

/// A chunk that lies in the half-written file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub chunk_origin: Dims,
    pub filter_mask: u32,
    pub address: u64,
    pub stored_nbytes: u64,
    /// Checksum of the stored bytes.
    pub stored: u64,
}

/// Append a frame.
pub fn put_frame(out: &mut Vec<u8>, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    out.extend_from_slice(&checksum(payload).to_le_bytes());
    out.extend_from_slice(payload);
}

/// The next frame, if it is whole and sound.
pub fn take_frame<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut at = *rest;
    let len = usize::try_from(take_u64(&mut at)?).ok()?;
    let stated = take_u64(&mut at)?;
    let payload = at.get(..len)?;
    *rest = at.get(len..)?;
    (checksum(payload) == stated).then_some(payload)
}

impl Entry {
    /// As a frame of the dataset called `label`.
    pub fn put(&self, label: &str, out: &mut Vec<u8>) {
        let mut payload = Vec::with_capacity(64 + label.len());
        let mut number = |n: u64| payload.extend_from_slice(&n.to_le_bytes());
        number(self.chunk_origin.len() as u64);
        self.chunk_origin.iter().for_each(|&n| number(n));
        let figures = [u64::from(self.filter_mask), self.address, self.stored_nbytes];
        figures.into_iter().chain([self.stored]).for_each(number);
        payload.extend_from_slice(label.as_bytes());
        put_frame(out, &payload);
    }

    /// From a frame's bytes: the dataset's label, and the entry.
    pub fn take(mut payload: &[u8]) -> Option<(&str, Self)> {
        let from = &mut payload;
        let rank = usize::try_from(take_u64(from)?).ok().filter(|&rank| rank <= MAX_RANK)?;
        let chunk_origin = (0..rank).map(|_| take_u64(from)).collect::<Option<Dims>>()?;
        let filter_mask = u32::try_from(take_u64(from)?).ok()?;
        let (address, stored_nbytes) = (take_u64(from)?, take_u64(from)?);
        let stored = take_u64(from)?;
        let label = std::str::from_utf8(payload).ok()?;
        Some((label, Self { chunk_origin, filter_mask, address, stored_nbytes, stored }))
    }
}

fn take_u64(from: &mut &[u8]) -> Option<u64> {
    let (number, rest) = from.split_first_chunk::<8>()?;
    *from = rest;
    Some(u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_cut_off_or_damaged_is_not_believed(
            origins in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..4), 1..6),
            cut in any::<prop::sample::Index>(),
            damaged in any::<bool>(),
        ) {
            let entries: Vec<Entry> = origins
                .iter()
                .map(|origin| Entry {
                    chunk_origin: origin.iter().copied().collect(),
                    filter_mask: 3,
                    address: 77,
                    stored_nbytes: 5,
                    stored: 1 << 60,
                })
                .collect();
            let mut bytes = Vec::new();
            let mut ends = Vec::new();
            for entry in &entries {
                entry.put("/a/b", &mut bytes);
                ends.push(bytes.len());
            }
            let at = cut.index(bytes.len());
            if damaged {
                bytes[at] ^= 1;
            } else {
                bytes.truncate(at);
            }
            let whole = ends.iter().filter(|&&end| end <= at).count();
            let mut rest = &bytes[..];
            for entry in &entries[..whole] {
                let payload = take_frame(&mut rest).unwrap();
                prop_assert_eq!(Entry::take(payload), Some(("/a/b", entry.clone())));
            }
            prop_assert!(take_frame(&mut rest).is_none());
        }
    }
}
