//! Where does a chunk lie, if a dataset's chunks are divided among several files?
//!
//! An address has the file's number in its upper 16 bits, and the place in that file in the others.
//! One file alone is number 0: its addresses are as HDF5 has them.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;

/// Files that hold the chunks of one dataset.
#[derive(Debug)]
pub struct Files(Vec<File>);

/// Bits of an address that are the place within a file: 256 TiB.
const PLACE_BITS: u32 = 48;

impl From<File> for Files {
    fn from(file: File) -> Self {
        Self(vec![file])
    }
}

impl From<Vec<File>> for Files {
    fn from(files: Vec<File>) -> Self {
        Self(files)
    }
}

impl Files {
    /// Write bytes to their place.
    ///
    /// # Errors
    /// What the system says, or that there is no such file.
    pub fn write_all_at(&self, bytes: &[u8], address: u64) -> Result<()> {
        let (file, at) = self.place(address)?;
        file.write_all_at(bytes, at)
    }

    /// Fill `bytes` from their place.
    ///
    /// # Errors
    /// What the system says, that the file ends before, or that there is no such file.
    pub fn read_exact_at(&self, bytes: &mut [u8], address: u64) -> Result<()> {
        let (file, at) = self.place(address)?;
        file.read_exact_at(bytes, at)
    }

    /// Whether so many bytes are at an address.
    pub fn holds(&self, address: u64, nbytes: u64) -> bool {
        let Ok((file, at)) = self.place(address) else { return false };
        let end = file.metadata().map_or(0, |metadata| metadata.len());
        at.checked_add(nbytes).is_some_and(|last| last <= end)
    }

    fn place(&self, address: u64) -> Result<(&File, u64)> {
        let number = address >> PLACE_BITS;
        let file = usize::try_from(number).ok().and_then(|number| self.0.get(number));
        let file = file.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no file of number {number}"))
        })?;
        Ok((file, address & ((1 << PLACE_BITS) - 1)))
    }
}
