//! How does a buffer grow to a size that a file has named?

use std::collections::TryReserveError;

/// Make `buffer` `nbytes` long, new bytes zero; or say that there is no memory for it,
/// where `Vec::resize` would end the process.
///
/// # Errors
/// When the memory cannot be had; `buffer` is then as it was.
pub fn resize(buffer: &mut Vec<u8>, nbytes: usize) -> Result<(), TryReserveError> {
    buffer.try_reserve_exact(nbytes.saturating_sub(buffer.len()))?;
    buffer.resize(nbytes, 0);
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
}
