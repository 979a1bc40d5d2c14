//! How are numbers and runs of bytes read one after the other, without going too far?

/// What is left of some bytes; gives None beyond their end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// Bytes that are left.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Have the processor fetch what may be read soon, about this many bytes further on.
    pub(crate) fn expect(&self, at: usize) {
        #[cfg(target_arch = "x86_64")]
        for line in [at.saturating_sub(64), at, at.saturating_add(64)] {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            if let Some(byte) = self.0.get(line) {
                // SAFETY: the address of a live byte, of which this is a hint only.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = at;
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16_be(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32_be(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u32_le(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64_be(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}
