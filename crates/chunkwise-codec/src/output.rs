//! Where do a filter's decoded bytes go, and how many may there be?
//!
//! The last filter's go straight to the chunk if they fill it exactly; all others go to
//! a buffer.  How long they become is the stream's word, or found by trying: either way
//! it is bounded here, so that a damaged or hostile chunk costs little more than a chunk's
//! memory.  What comes after the last byte of a chunk is dropped, as libhdf5 drops it.

use crate::{DecodeError, PassedOver, resize};

/// Decodes the first bytes of a stream, and sees that the rest is sound.
type First<'a> = &'a dyn Fn(&mut [u8]) -> Result<(), DecodeError>;

/// Room for what one filter decodes.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    filter: &'static str,
    /// The chunk, when this filter is the last to be undone.
    chunk: Option<&'a mut [u8]>,
    buffer: &'a mut Vec<u8>,
    expected: usize,
    most: usize,
    in_chunk: bool,
    /// Bytes of the chunk that a shorter stream has filled.
    filled_nbytes: Option<usize>,
    used_nbytes: Option<usize>,
    beyond_chunk: bool,
}

impl<'a> Output<'a> {
    /// `expected` bytes are likely, and more than `most` an error; `chunk` is where they
    /// go if they fill it.
    pub(crate) fn new(
        filter: &'static str,
        chunk: Option<&'a mut [u8]>,
        buffer: &'a mut Vec<u8>,
        expected: usize,
        most: usize,
    ) -> Self {
        Self {
            filter,
            chunk,
            buffer,
            expected: expected.min(most),
            most,
            in_chunk: false,
            filled_nbytes: None,
            used_nbytes: None,
            beyond_chunk: false,
        }
    }

    /// The stream ends after this many input bytes of the filter.
    pub(crate) fn ends_after(&mut self, nbytes: usize) {
        self.used_nbytes = Some(nbytes);
    }

    /// What was passed over of a stream of this many bytes.
    pub(crate) fn passed_over(&self, given_nbytes: usize) -> PassedOver {
        let used_nbytes = self.used_nbytes.unwrap_or(given_nbytes);
        PassedOver {
            trailing_nbytes: given_nbytes.saturating_sub(used_nbytes),
            beyond_chunk: self.beyond_chunk,
        }
    }

    /// How many bytes went straight to the chunk; None where they are in the buffer.
    pub(crate) fn in_chunk(&self) -> Option<usize> {
        let chunk = self.chunk.as_ref().filter(|_| self.in_chunk)?;
        Some(self.filled_nbytes.unwrap_or(chunk.len()))
    }

    /// The error for a stream that is damaged.
    pub(crate) fn damaged(&self) -> DecodeError {
        DecodeError::Damaged { filter: self.filter }
    }

    /// The error for a stream that only libhdf5's filter can decode.
    pub(crate) fn unsupported(&self, what: &'static str) -> DecodeError {
        DecodeError::Unsupported { filter: self.filter, what }
    }

    /// Room for `nbytes`, all of which the caller overwrites; what is in it is unspecified.
    /// A stream that names an impossible length is damaged: libhdf5's filters would allocate
    /// it, and some trust it.
    pub(crate) fn room(&mut self, nbytes: usize) -> Result<&mut [u8], DecodeError> {
        if let Some(chunk) = &mut self.chunk
            && chunk.len() == nbytes
        {
            self.in_chunk = true;
            return Ok(chunk);
        }
        if nbytes > self.most {
            return Err(DecodeError::Damaged { filter: self.filter });
        }
        self.in_chunk = false;
        resize(self.buffer, nbytes).map_err(|_| DecodeError::Memory { nbytes })?;
        Ok(self.buffer)
    }

    /// Let `attempt` decode into more and more room until it is enough.  It gives the
    /// number of bytes written, or None where there are more than fit, never more than
    /// `ceiling`.
    ///
    /// Where there is more than the chunk itself holds, `first` decodes the first bytes to it and
    /// the others to nowhere, which takes no memory however many they are.
    pub(crate) fn growing(
        &mut self,
        ceiling: usize,
        mut attempt: impl FnMut(&mut [u8]) -> Result<Option<usize>, DecodeError>,
        first: Option<First<'_>>,
    ) -> Result<(), DecodeError> {
        let most = self.most.min(ceiling).max(64);
        let mut nbytes = self.expected.clamp(64.min(self.expected), most);
        loop {
            match attempt(self.room(nbytes)?)? {
                Some(written) if written == nbytes => return Ok(()),
                Some(written) if self.in_chunk => {
                    self.filled_nbytes = Some(written);
                    return Ok(());
                }
                Some(written) => {
                    self.buffer.truncate(written);
                    return Ok(());
                }
                None => match first {
                    Some(first) if self.in_chunk => {
                        self.beyond_chunk = true;
                        return first(self.room(nbytes)?);
                    }
                    _ if nbytes < most => nbytes = nbytes.saturating_mul(2).clamp(64, most),
                    _ => return Err(DecodeError::TooLong { filter: self.filter, most }),
                },
            }
        }
    }
}
