//! Which numbers does a structure hold, one after the other?
//!
//! Nothing is read beyond a structure's end, and each error says which structure it is.

use crate::error::{FormatError, Problem, Structure};

/// A structure, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) structure: Structure,
    pub(crate) address: u64,
}

impl Place {
    pub(crate) fn new(structure: Structure, address: u64) -> Self {
        Self { structure, address }
    }

    pub(crate) fn error(self, problem: Problem) -> FormatError {
        FormatError { object: None, structure: self.structure, address: self.address, problem }
    }

    pub(crate) fn wrong(self, what: &'static str) -> FormatError {
        self.error(Problem::Wrong(what))
    }
}

/// Bytes of the two kinds of numbers whose width the superblock says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Widths {
    /// Of addresses.
    pub(crate) offset: u8,
    /// Of lengths.
    pub(crate) length: u8,
}

impl Widths {
    /// Bytes of a structure with this many addresses and lengths, and other bytes.
    pub(crate) fn nbytes(self, others: u64, offsets: u64, lengths: u64) -> u64 {
        let (offset, length) = (u64::from(self.offset), u64::from(self.length));
        let offsets = offset.saturating_mul(offsets);
        others.saturating_add(offsets).saturating_add(length.saturating_mul(lengths))
    }
}

/// What is left of a structure; numbers are little-endian.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    place: Place,
    widths: Widths,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8], place: Place, widths: Widths) -> Self {
        Self { rest: bytes, place, widths }
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// All that was not taken.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn error(&self, problem: Problem) -> FormatError {
        self.place.error(problem)
    }

    pub(crate) fn wrong(&self, what: &'static str) -> FormatError {
        self.place.wrong(what)
    }

    pub(crate) fn unknown(&self, what: &'static str, number: impl Into<u64>) -> FormatError {
        self.error(Problem::Unknown { what, number: number.into() })
    }

    pub(crate) fn take(&mut self, len: u64) -> Result<&'a [u8], FormatError> {
        let split = usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len));
        let Some((taken, rest)) = split else { return Err(self.error(Problem::CutOff)) };
        self.rest = rest;
        Ok(taken)
    }

    /// Fields of the next bytes alone.
    pub(crate) fn part(&mut self, len: u64) -> Result<Self, FormatError> {
        Ok(Self { rest: self.take(len)?, ..*self })
    }

    pub(crate) fn skip(&mut self, len: u64) -> Result<(), FormatError> {
        self.take(len).map(|_| ())
    }

    fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], FormatError> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(self.error(Problem::CutOff));
        };
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FormatError> {
        self.array().map(|[number]| number)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, FormatError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FormatError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of this many bytes, at most eight.
    pub(crate) fn number(&mut self, len: u8) -> Result<u64, FormatError> {
        let taken = self.take(u64::from(len))?;
        if taken.len() > 8 {
            return Err(self.wrong("a number has more than eight bytes"));
        }
        Ok(taken.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// A length.
    pub(crate) fn length(&mut self) -> Result<u64, FormatError> {
        self.number(self.widths.length)
    }

    /// A length; None where all its bits are set.
    pub(crate) fn defined_length(&mut self) -> Result<Option<u64>, FormatError> {
        let number = self.length()?;
        Ok((number != all_bits(self.widths.length)).then_some(number))
    }

    /// An address; None where it is undefined.
    pub(crate) fn address(&mut self) -> Result<Option<u64>, FormatError> {
        let number = self.number(self.widths.offset)?;
        Ok((number != all_bits(self.widths.offset)).then_some(number))
    }

    /// An address that there must be.
    pub(crate) fn defined(&mut self) -> Result<u64, FormatError> {
        match self.address()? {
            Some(address) => Ok(address),
            None => Err(self.wrong("an address is undefined")),
        }
    }

    /// Fails unless this version comes next.
    pub(crate) fn version(&mut self, expected: u8) -> Result<(), FormatError> {
        match self.u8()? {
            version if version == expected => Ok(()),
            version => Err(self.error(Problem::Version(version))),
        }
    }

    pub(crate) fn signature(&mut self, expected: &[u8; 4]) -> Result<(), FormatError> {
        if self.array::<4>()? == *expected { Ok(()) } else { Err(self.error(Problem::Signature)) }
    }

    /// Text that ends with a zero, which is taken too.
    pub(crate) fn text(&mut self) -> Result<&'a [u8], FormatError> {
        let text = until_zero(self.rest);
        let Some(behind) = self.rest.get(text.len().saturating_add(1)..) else {
            return Err(self.error(Problem::CutOff));
        };
        self.rest = behind;
        Ok(text)
    }

    /// Text that ends with a zero, with padding behind: together a multiple of eight bytes.
    pub(crate) fn padded_text(&mut self) -> Result<&'a [u8], FormatError> {
        let text = until_zero(self.rest);
        let len = (text.len() as u64 / 8).saturating_add(1).saturating_mul(8);
        self.skip(len)?;
        Ok(text)
    }
}

/// What comes before the first zero.
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// The greatest number of this many bytes.
fn all_bits(len: u8) -> u64 {
    match u32::from(len).checked_mul(8) {
        Some(bits @ ..64) => !(u64::MAX << bits),
        _ => u64::MAX,
    }
}

/// Bytes that a number up to `most` takes in arrays and heaps.
pub(crate) fn bytes_for(most: u64) -> u8 {
    (most.checked_ilog2().unwrap_or(0) / 8).saturating_add(1) as u8
}

#[cfg(test)]
mod tests {
    use super::{Fields, Place, Widths, bytes_for};
    use crate::error::{Problem, Structure};

    const WIDTHS: Widths = Widths { offset: 4, length: 2 };

    fn fields(bytes: &[u8]) -> Fields<'_> {
        Fields::new(bytes, Place::new(Structure::Superblock, 7), WIDTHS)
    }

    #[test]
    fn numbers_are_as_wide_as_the_superblock_says() {
        let mut fields = fields(&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 2, 1, 9]);
        assert_eq!(fields.address(), Ok(Some(1)));
        assert_eq!(fields.address(), Ok(None));
        assert_eq!(fields.length(), Ok(0x102));
        let error = fields.u16().unwrap_err();
        assert_eq!((error.address, &error.problem), (7, &Problem::CutOff));
        assert_eq!(error.to_string(), "the superblock at address 7: it is cut off");
    }

    #[test]
    fn text_ends_with_a_zero_and_may_be_padded() {
        let mut padded = fields(b"12345678\0.......x");
        assert_eq!(padded.padded_text().unwrap(), b"12345678");
        assert_eq!(padded.rest(), b"x");
        let mut plain = fields(b"ab\0c");
        assert_eq!(plain.text().unwrap(), b"ab");
        assert!(plain.text().is_err());
    }

    #[test]
    fn numbers_take_as_many_bytes_as_the_greatest_needs() {
        assert_eq!([0, 255, 256, u64::MAX].map(bytes_for), [1, 1, 2, 8]);
    }
}
