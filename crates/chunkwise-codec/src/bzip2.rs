//! How is a bzip2 stream compressed and decompressed?

use bzip2::{Action, Compress, Compression, Decompress, Status};

use crate::{DecodeError, EncodeError, Output, resize};

/// A block of 900,000 bytes, each four of which stand for 259 at most, takes more than
/// 32 bytes.
pub(crate) const MOST_EXPANSION: usize = 1 << 21;

/// Decompress the first stream of `stored`; bytes after it are ignored, as HDF5's filter
/// (`H5Zbzip2.c`) does.
pub(crate) fn decode(stored: &[u8], output: &mut Output<'_>) -> Result<(), DecodeError> {
    let damaged = output.damaged();
    output.growing(usize::MAX, |out| {
        let mut state = Decompress::new(false);
        let status = state.decompress(stored, out);
        let written = usize::try_from(state.total_out()).map_err(|_| damaged.clone())?;
        match status {
            Ok(Status::StreamEnd) => Ok(Some(written)),
            // The end of the stream may still be to be read when the room is full.
            Ok(_) if written == out.len() => {
                let read = usize::try_from(state.total_in()).map_err(|_| damaged.clone())?;
                match state.decompress(stored.get(read..).unwrap_or_default(), &mut [0]) {
                    Ok(Status::StreamEnd) if state.total_out() as usize == written => {
                        Ok(Some(written))
                    }
                    Ok(_) if state.total_out() as usize > written => Ok(None),
                    _ => Err(damaged.clone()),
                }
            }
            _ => Err(damaged.clone()),
        }
    })
}

/// Compress `raw` in blocks of `level` times 100,000 bytes, be that shorter or not.
pub(crate) fn encode(level: u32, raw: &[u8], out: &mut Vec<u8>) -> Result<bool, EncodeError> {
    /// The library's own choice, for repetitive data.
    const WORK_FACTOR: u32 = 0;
    // The most that comes out, as bzip2's manual has it.
    let most = raw.len() + raw.len() / 100 + 600;
    resize(out, most).map_err(|_| EncodeError::Memory { nbytes: most })?;
    let mut state = Compress::new(Compression::new(level), WORK_FACTOR);
    let status = state.compress(raw, out, Action::Finish);
    out.truncate(usize::try_from(state.total_out()).unwrap_or(0));
    Ok(matches!(status, Ok(Status::StreamEnd)))
}
