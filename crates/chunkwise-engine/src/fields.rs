//! Which bytes of each element are wanted, and where do they go?
//!
//! Of a compound type a program often wants a field or two.  Their bytes are copied straight from
//! decoded chunks; the other fields are decoded with them, and left there.

use chunkwise_select::Strip;

use crate::ReadError;
use crate::scatter::{SharedResult, copy_strip};

/// A run of bytes of each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldBytes {
    /// Where it begins in an element of the dataset.
    pub src: usize,
    /// Where it goes in an element of the result.
    pub dst: usize,
    /// How long it is.
    pub len: usize,
}

/// Some fields of a dataset's elements.
#[derive(Debug, Clone)]
pub struct Fields {
    /// Bytes of an element of the result.
    pub(crate) size: usize,
    parts: Vec<FieldBytes>,
}

impl Fields {
    /// Parts of elements of `element_size` bytes, as elements of `size` bytes; bytes of these that no
    /// part fills are left as they are.
    ///
    /// # Errors
    /// [`ReadError::Fields`] where a part reaches beyond an element, or parts overlap in the result.
    pub fn new(
        element_size: usize,
        size: usize,
        mut parts: Vec<FieldBytes>,
    ) -> Result<Self, ReadError> {
        parts.sort_unstable_by_key(|part| part.dst);
        let mut filled = 0;
        for part in &parts {
            let (src, dst) = (part.src.checked_add(part.len), part.dst.checked_add(part.len));
            let inside = src.is_some_and(|end| end <= element_size) && part.dst >= filled;
            filled = dst.filter(|&end| end <= size && inside).ok_or(ReadError::Fields)?;
        }
        if size == 0 { Err(ReadError::Fields) } else { Ok(Self { size, parts }) }
    }

    /// The fill value of an element of the result.
    pub(crate) fn of_element(&self, element: &[u8]) -> Vec<u8> {
        let mut out = vec![0; self.size];
        for part in &self.parts {
            out[part.dst..][..part.len].copy_from_slice(&element[part.src..][..part.len]);
        }
        out
    }

    /// Copy the fields of one strip of elements of `size` bytes; as [`copy_strip`].
    ///
    /// # Safety
    /// As [`copy_strip`].
    pub(crate) unsafe fn copy(
        &self,
        chunk: &[u8],
        result: &SharedResult<'_>,
        strip: &Strip,
        size: usize,
    ) -> Option<()> {
        let (from, to) = (size as u64, self.size as u64);
        for run in 0..strip.count {
            let place = if strip.backwards { strip.count - 1 - run } else { run };
            let src = strip.src.checked_add(run.checked_mul(strip.src_step)?)?.checked_mul(from)?;
            let dst = strip.dst.checked_add(place.checked_mul(strip.dst_step)?)?.checked_mul(to)?;
            for part in &self.parts {
                // In bytes: each element of the run has a run of its own.
                let bytes = Strip {
                    src: src + part.src as u64,
                    dst: dst + part.dst as u64,
                    len: part.len as u64,
                    count: strip.len,
                    src_step: from,
                    dst_step: to,
                    backwards: false,
                };
                // SAFETY: the caller's contract.
                unsafe { copy_strip(chunk, result, &bytes, 1)? };
            }
        }
        Some(())
    }
}
