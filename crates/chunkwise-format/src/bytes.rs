//! Where do the bytes of a file come from?

use std::borrow::Cow;

/// The bytes of a file, by position.
///
/// Memory gives what it has; others may give copies.
pub trait Bytes: Sync {
    /// `nbytes` bytes from a position on.
    ///
    /// # Errors
    /// Why they cannot be had, in words.  What lies beyond the end is never wanted.
    fn read(&self, position: u64, nbytes: usize) -> Result<Cow<'_, [u8]>, String>;

    /// Bytes in the file.
    fn nbytes(&self) -> u64;
}

impl Bytes for [u8] {
    fn read(&self, position: u64, nbytes: usize) -> Result<Cow<'_, [u8]>, String> {
        let begin = usize::try_from(position).ok();
        let end = begin.and_then(|begin| begin.checked_add(nbytes));
        let bytes = begin.zip(end).and_then(|(begin, end)| self.get(begin..end));
        bytes.map(Cow::Borrowed).ok_or_else(|| "it ends too early".into())
    }

    fn nbytes(&self) -> u64 {
        self.len() as u64
    }
}

impl<B: Bytes + ?Sized> Bytes for &B {
    fn read(&self, position: u64, nbytes: usize) -> Result<Cow<'_, [u8]>, String> {
        (**self).read(position, nbytes)
    }

    fn nbytes(&self) -> u64 {
        (**self).nbytes()
    }
}

impl Bytes for Vec<u8> {
    fn read(&self, position: u64, nbytes: usize) -> Result<Cow<'_, [u8]>, String> {
        self.as_slice().read(position, nbytes)
    }

    fn nbytes(&self) -> u64 {
        self.len() as u64
    }
}
