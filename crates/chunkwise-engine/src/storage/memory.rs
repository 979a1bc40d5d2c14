//! Bytes that are in memory anyway, for tests.

use crate::{ReadError, Storage};

/// Bytes in memory, for tests.
#[derive(Debug, Default)]
pub struct MemoryStorage(pub Vec<u8>);

impl Storage for MemoryStorage {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let found = usize::try_from(address)
            .ok()
            .and_then(|begin| self.0.get(begin..begin.checked_add(out.len())?));
        match found {
            Some(bytes) => {
                out.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(ReadError::Truncated { address, len: out.len() as u64, end: self.end() }),
        }
    }

    fn end(&self) -> u64 {
        self.0.len() as u64
    }
}
