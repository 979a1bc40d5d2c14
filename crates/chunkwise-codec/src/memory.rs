//! How does a buffer grow to a size that a file has named?

use std::alloc::{Layout, alloc_zeroed};
use std::collections::TryReserveError;

use crate::{DecodeError, EncodeError};

/// Make `buffer` `nbytes` long, new bytes zero; or say that there is no memory for it,
/// where `Vec::resize` would end the process.
///
/// # Errors
/// When the memory cannot be had; `buffer` is then as it was.
pub fn resize(buffer: &mut Vec<u8>, nbytes: usize) -> Result<(), TryReserveError> {
    if buffer.is_empty()
        && nbytes > buffer.capacity()
        && let Some(fresh) = zeroed(nbytes)
    {
        *buffer = fresh;
        return Ok(());
    }
    buffer.try_reserve_exact(nbytes.saturating_sub(buffer.len()))?;
    buffer.resize(nbytes, 0);
    Ok(())
}

/// Memory that the system hands out as zeros need not be written once more, which
/// takes as long as a tenth of decoding does.
fn zeroed(nbytes: usize) -> Option<Vec<u8>> {
    let layout = Layout::array::<u8>(nbytes).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the layout's size is not 0.
    let start = unsafe { alloc_zeroed(layout) };
    // SAFETY: the global allocator gave `nbytes` initialised bytes at an alignment of 1.
    (!start.is_null()).then(|| unsafe { Vec::from_raw_parts(start, nbytes, nbytes) })
}

/// As [`resize`], for what is encoded.
pub(crate) fn grown(buffer: &mut Vec<u8>, nbytes: usize) -> Result<(), EncodeError> {
    resize(buffer, nbytes).map_err(|_| EncodeError::Memory { nbytes })
}

/// Make `buffer` a copy of bytes that may change meanwhile.
pub(crate) fn copy(bytes: &[u8], buffer: &mut Vec<u8>) -> Result<(), DecodeError> {
    let nbytes = bytes.len();
    buffer.clear();
    buffer.try_reserve(nbytes).map_err(|_| DecodeError::Memory { nbytes })?;
    buffer.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::resize;

    #[test]
    fn an_impossible_size_is_an_error() {
        let mut buffer = vec![1, 2];
        assert!(resize(&mut buffer, usize::MAX / 2).is_err());
        assert_eq!(buffer, [1, 2]);
        resize(&mut buffer, 3).unwrap();
        assert_eq!(buffer, [1, 2, 0]);
        resize(&mut buffer, 1).unwrap();
        assert_eq!(buffer, [1]);
    }

    #[test]
    fn an_empty_one_becomes_zeros() {
        let mut buffer = Vec::new();
        assert!(resize(&mut buffer, usize::MAX).is_err());
        assert!(resize(&mut buffer, usize::MAX / 2).is_err());
        resize(&mut buffer, 0).unwrap();
        assert!(buffer.is_empty());
        resize(&mut buffer, 5000).unwrap();
        assert_eq!(buffer, [0; 5000]);
        buffer.fill(1);
        buffer.clear();
        resize(&mut buffer, 10).unwrap();
        assert_eq!(buffer, [0; 10]);
    }
}
