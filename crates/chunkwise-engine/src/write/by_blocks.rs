//! How is one large chunk encoded on several threads?

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use chunkwise_codec::{EncodeError, EncodeScratch, EncodedBlocks, Encoding};

use crate::crew::share_beside;
use crate::profile::{Phase, timed};
use crate::write::buffers::with_buffers;

/// Smaller chunks are encoded by one thread.
const LEAST_NBYTES: usize = 1 << 20;
/// A thread takes about this many bytes at a time, or a block where that is more.
const PIECE_NBYTES: usize = 128 << 10;

/// What one thread has made of a piece.
type Made = Result<Option<EncodedBlocks>, EncodeError>;

/// Encode a chunk to `out`, whatever was in it, on this thread, and on helpers if it is large and
/// stored in blocks; gives its filter mask.  Who helps makes no difference to the bytes.
///
/// # Errors
/// Those of [`Encoding::encode`].
pub fn encode_chunk(
    encoding: &Encoding,
    raw: &[u8],
    scratch: &mut EncodeScratch,
    helpers: usize,
    out: &mut Vec<u8>,
) -> Result<u32, EncodeError> {
    match encode_by_blocks(encoding, raw, scratch, helpers, out)? {
        Some(filter_mask) => Ok(filter_mask),
        None => encoding.encode(raw, scratch, out),
    }
}

/// Encode a chunk block by block, on this thread and on helpers, to `out`; gives its filter mask,
/// or None where it is to be encoded as one.
pub(super) fn encode_by_blocks(
    encoding: &Encoding,
    raw: &[u8],
    scratch: &mut EncodeScratch,
    helpers: usize,
    out: &mut Vec<u8>,
) -> Result<Option<u32>, EncodeError> {
    if helpers == 0 || raw.len() < LEAST_NBYTES {
        return Ok(None);
    }
    let Some(blocks) = encoding.by_blocks(raw.len()) else { return Ok(None) };
    let count = blocks.count();
    // Of equal length, but for the last.
    let taken = (PIECE_NBYTES * count / raw.len()).max(1);
    let pieces = count.div_ceil(taken);
    if pieces < 2 {
        return Ok(None);
    }
    let phase = encoding.steps().first().map(|step| Phase::Encode(step.kind()));
    let made: Vec<Mutex<Option<Made>>> = (0..pieces).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = |scratch: &mut EncodeScratch| {
        loop {
            let number = next.fetch_add(1, Relaxed);
            let Some(place) = made.get(number) else { return };
            let numbers = number * taken..((number + 1) * taken).min(count);
            let encode = || blocks.encode(raw, numbers, scratch);
            let piece = match phase {
                Some(phase) => timed(phase, encode),
                None => encode(),
            };
            if !matches!(piece, Ok(Some(_))) {
                // Nobody takes another.
                next.store(pieces, Relaxed);
            }
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(piece);
        }
    };
    let theirs = || with_buffers(|buffers| work(&mut buffers.encoding));
    share_beside(helpers.min(pieces - 1), &theirs, || work(scratch));
    let mut parts = Vec::with_capacity(pieces);
    for place in made {
        match place.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(Ok(Some(part))) => parts.push(part),
            Some(Err(error)) => return Err(error),
            Some(Ok(None)) | None => return Ok(None),
        }
    }
    blocks.join(&parts, out)
}
