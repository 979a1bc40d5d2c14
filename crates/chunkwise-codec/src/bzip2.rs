//! How is a bzip2 stream compressed and decompressed?

use std::cell::Cell;

use bzip2::{Action, Compress, Compression, Decompress, Status};

use crate::filter::{Decode, Decoded, Encode, Encoded, Options, expanded};
use crate::state::{EncoderState, State};
use crate::{Output, grown};

/// A block of 900,000 bytes, each four of which stand for 259 at most, takes more than
/// 32 bytes.
const MOST_EXPANSION: usize = 1 << 21;

/// The filter's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bzip2 {
    /// Bytes of a block in units of 100,000.
    pub(crate) level: u32,
}

impl Options for Bzip2 {
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        Some(Self { level: cd_values.first().copied().unwrap_or(9) })
    }
}

impl Decode for Bzip2 {
    fn most_decoded(&self, stored_len: usize) -> usize {
        expanded(stored_len, MOST_EXPANSION)
    }

    /// Decompress the first stream; bytes after it are ignored, as HDF5's filter (`H5Zbzip2.c`)
    /// does.
    fn decode(&self, stored: &[u8], _: &mut State, output: &mut Output<'_>) -> Decoded {
        let damaged = output.damaged();
        let used = Cell::new(0);
        let attempt = |out: &mut [u8]| {
            let mut state = Decompress::new(false);
            let status = state.decompress(stored, out);
            used.set(state.total_in());
            let written = usize::try_from(state.total_out()).map_err(|_| damaged.clone())?;
            match status {
                Ok(Status::StreamEnd) => Ok(Some(written)),
                // The end of the stream may still be to be read when the room is full.
                Ok(_) if written == out.len() => {
                    let read = usize::try_from(state.total_in()).map_err(|_| damaged.clone())?;
                    match state.decompress(stored.get(read..).unwrap_or_default(), &mut [0]) {
                        Ok(Status::StreamEnd) if state.total_out() as usize == written => {
                            used.set(state.total_in());
                            Ok(Some(written))
                        }
                        Ok(_) if state.total_out() as usize > written => Ok(None),
                        _ => Err(damaged.clone()),
                    }
                }
                _ => Err(damaged.clone()),
            }
        };
        let first = |chunk: &mut [u8]| match decompress_first(stored, chunk) {
            true => Ok(()),
            false => Err(damaged.clone()),
        };
        output.growing(usize::MAX, attempt, Some(&first))?;
        output.ends_after(usize::try_from(used.get()).unwrap_or(usize::MAX));
        Ok(())
    }
}

/// Decompress the first bytes of `stored` to `chunk` and all others to nowhere; whether the
/// stream is sound to its end, and fills the chunk.
fn decompress_first(stored: &[u8], chunk: &mut [u8]) -> bool {
    const NOWHERE_NBYTES: usize = 32 << 10;
    let (mut state, mut nowhere) = (Decompress::new(false), vec![0; NOWHERE_NBYTES]);
    let mut filled = 0;
    loop {
        let before = (state.total_in(), state.total_out());
        let unread = usize::try_from(before.0).ok().and_then(|read| stored.get(read..));
        let out = if filled < chunk.len() { &mut chunk[filled..] } else { &mut nowhere[..] };
        let status = state.decompress(unread.unwrap_or_default(), out);
        let written = usize::try_from(state.total_out() - before.1).unwrap_or(usize::MAX);
        filled += written.min(chunk.len() - filled);
        match status {
            Ok(Status::StreamEnd) => return filled == chunk.len(),
            Ok(_) if before != (state.total_in(), state.total_out()) => {}
            _ => return false,
        }
    }
}

impl Encode for Bzip2 {
    fn is_possible(&self) -> bool {
        (1..=9).contains(&self.level)
    }

    /// Compress `raw`, be that shorter or not.
    fn encode(&self, raw: &[u8], _: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        /// The library's own choice, for repetitive data.
        const WORK_FACTOR: u32 = 0;
        // The most that comes out, as bzip2's manual has it.
        let most = raw.len() + raw.len() / 100 + 600;
        grown(out, most)?;
        let mut state = Compress::new(Compression::new(self.level), WORK_FACTOR);
        let status = state.compress(raw, out, Action::Finish);
        out.truncate(usize::try_from(state.total_out()).unwrap_or(0));
        Ok(matches!(status, Ok(Status::StreamEnd)))
    }
}
