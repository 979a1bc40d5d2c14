//! Where do the bytes of a file come from?

use std::borrow::Cow;

use crate::filters::Filter;

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

    /// Whether reading takes so long that parts are better read together, as [`expect`](Self::expect)
    /// names them.
    fn is_far(&self) -> bool {
        false
    }

    /// Parts, by position and length, that will be read one after the other.
    fn expect(&self, parts: &[(u64, usize)]) {
        let _ = parts;
    }

    /// A structure takes this many bytes from a position on, of which not all may be read.
    fn takes(&self, position: u64, nbytes: u64) {
        let _ = (position, nbytes);
    }

    /// What went through filters before it was stored, `nbytes` bytes.  `mask` has a bit for each
    /// filter that was left out.  None where that cannot be done: metadata has filters in groups
    /// that were made so, which nearly nobody does.
    fn unfilter(
        &self,
        filters: &[Filter],
        mask: u32,
        stored: &[u8],
        nbytes: usize,
    ) -> Option<Vec<u8>> {
        let _ = (filters, mask, stored, nbytes);
        None
    }
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

    fn is_far(&self) -> bool {
        (**self).is_far()
    }

    fn expect(&self, parts: &[(u64, usize)]) {
        (**self).expect(parts);
    }

    fn takes(&self, position: u64, nbytes: u64) {
        (**self).takes(position, nbytes);
    }

    fn unfilter(
        &self,
        filters: &[Filter],
        mask: u32,
        stored: &[u8],
        nbytes: usize,
    ) -> Option<Vec<u8>> {
        (**self).unfilter(filters, mask, stored, nbytes)
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
