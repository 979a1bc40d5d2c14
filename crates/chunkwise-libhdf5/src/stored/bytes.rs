//! How are a file's structures read, without trusting a size or an address?

use std::cell::Cell;

use chunkwise_engine::{IndexError, Storage};

/// Why libhdf5 has to look at it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damage(pub(super) String);

/// No structure of an index is larger; what claims to be is damaged.
const MOST_NBYTES: u64 = 64 << 20;
/// No chunk has this address.
pub(super) const UNDEFINED: u64 = u64::MAX;

/// The file, by HDF5's addresses.
pub(super) struct Source<'a> {
    pub(super) storage: &'a dyn Storage,
    pub(super) base: u64,
    /// Where its data ends.
    pub(super) end: u64,
    /// Bytes that may still be read.
    left: Cell<u64>,
}

impl<'a> Source<'a> {
    /// Addresses count from `base`, and end at `end`.
    pub(super) fn new(storage: &'a dyn Storage, base: u64, end: u64) -> Self {
        // Structures do not overlap, and of headers alone the beginning is read twice.  Those that
        // lead to the same place again and again would cost the square of the file.
        Self { storage, base, end, left: Cell::new(end.saturating_mul(2)) }
    }

    /// Fails unless there are `nbytes` bytes at an address.
    pub(super) fn require(&self, address: u64, nbytes: u64) -> Result<(), Damage> {
        if address.checked_add(nbytes).is_some_and(|end| end <= self.end) {
            return Ok(());
        }
        Err(Damage(format!("{nbytes} bytes at address {address} are not in the file")))
    }

    /// `nbytes` bytes at an address.
    pub(super) fn read(&self, address: u64, nbytes: u64) -> Result<Vec<u8>, Damage> {
        let inside = self.require(address, nbytes).is_ok();
        let at = self.base.checked_add(address).filter(|_| inside && nbytes <= MOST_NBYTES);
        let Some(at) = at else {
            return Err(Damage(format!("{nbytes} bytes at address {address} are not in the file")));
        };
        let Some(left) = self.left.get().checked_sub(nbytes) else {
            return Err(Damage("its parts overlap".into()));
        };
        self.left.set(left);
        let mut bytes = vec![0; nbytes as usize];
        self.storage.read_metadata(at, &mut bytes).map_err(|error| Damage(error.to_string()))?;
        Ok(bytes)
    }

    /// Structures of `nbytes` bytes at these addresses will be read.
    pub(super) fn expect(&self, addresses: impl Iterator<Item = u64>, nbytes: u64) {
        if !self.storage.cost().is_remote() {
            return;
        }
        let inside = addresses.filter(|&address| self.require(address, nbytes).is_ok());
        let ranges: Vec<_> =
            inside.map(|address| (self.base.saturating_add(address), nbytes)).collect();
        if ranges.len() > 1 {
            self.storage.expect_metadata(&ranges);
        }
    }

    /// The bytes of a structure with this signature, which end with a checksum.
    pub(super) fn sealed(
        &self,
        address: u64,
        nbytes: u64,
        signature: &[u8; 4],
    ) -> Result<Vec<u8>, Damage> {
        let mut bytes = self.read(address, nbytes)?;
        unseal(&mut bytes, address)?;
        if bytes.starts_with(signature) { Ok(bytes) } else { Err(not_there(signature, address)) }
    }
}

/// Check the checksum at the end, and take it off.
pub(super) fn unseal(bytes: &mut Vec<u8>, address: u64) -> Result<(), Damage> {
    let sound = bytes.split_last_chunk().is_some_and(|(content, sum)| {
        chunkwise_format::checksum(content) == u32::from_le_bytes(*sum)
    });
    if !sound {
        return Err(Damage(format!("the checksum of what is at address {address} is wrong")));
    }
    bytes.truncate(bytes.len() - 4);
    Ok(())
}

pub(super) fn not_there(signature: &[u8; 4], address: u64) -> Damage {
    let signature = String::from_utf8_lossy(signature);
    Damage(format!("there is no {signature} at address {address}"))
}

/// What is left of a structure; numbers are little-endian.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Damage> {
        let Some((taken, rest)) = self.0.split_at_checked(len) else {
            return Err(Damage("a structure is cut off".into()));
        };
        self.0 = rest;
        Ok(taken)
    }

    /// A number of `len` bytes, at most eight.
    pub(super) fn number(&mut self, len: usize) -> Result<u64, Damage> {
        let mut wide = [0; 8];
        wide[..len].copy_from_slice(self.take(len)?);
        Ok(u64::from_le_bytes(wide))
    }

    pub(super) fn u8(&mut self) -> Result<u8, Damage> {
        Ok(self.number(1)? as u8)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Damage> {
        self.number(8)
    }
}

impl From<IndexError> for Damage {
    fn from(error: IndexError) -> Self {
        Self(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use chunkwise_engine::MemoryStorage;

    use super::{Damage, Source};

    #[test]
    fn a_file_is_not_read_again_and_again() {
        let storage = MemoryStorage(vec![7; 100]);
        let source = Source::new(&storage, 10, 90);
        for _ in 0..2 {
            assert_eq!(source.read(0, 90), Ok(vec![7; 90]));
        }
        assert_eq!(source.read(0, 1), Err(Damage("its parts overlap".into())));
    }
}
