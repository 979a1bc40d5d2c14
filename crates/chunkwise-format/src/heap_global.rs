//! Which bytes does a collection of the global heap hold, by number?
//!
//! Values of variable length, regions that references lead to, and the mappings of virtual datasets
//! are kept there (format specification, III.E).

use std::collections::HashMap;
use std::ops::Range;

use crate::error::{FormatError, Structure};
use crate::fields::Place;
use crate::source::{Part, Source};

/// A collection of the global heap.
pub struct Collection<'a> {
    part: Part<'a>,
    objects: HashMap<u16, Range<u64>>,
}

impl<'a> Collection<'a> {
    pub(crate) fn open(source: &Source<'a>, address: u64) -> Result<Self, FormatError> {
        let place = Place::new(Structure::GlobalHeap, address);
        // Before the first object, and before the bytes of each, is a multiple of eight bytes.
        let head_len = u64::from(source.widths().length).next_multiple_of(8).saturating_add(8);
        let head = source.read(place, head_len)?;
        let mut fields = head.fields();
        fields.signature(b"GCOL")?;
        fields.version(1)?;
        fields.skip(3)?;
        let nbytes = fields.length()?;
        let part = source.read(place, nbytes.max(head_len))?;
        let mut fields = part.fields();
        fields.skip(head_len)?;
        let mut objects = HashMap::new();
        let mut at = head_len;
        // What is left where no object fits is a gap.
        while fields.rest().len() as u64 >= head_len {
            let index = fields.u16()?;
            fields.skip(6)?;
            let len = fields.length()?;
            fields
                .skip(head_len.saturating_sub(8).saturating_sub(source.widths().length.into()))?;
            // Number 0 is the free space, up to the end.
            if index == 0 {
                break;
            }
            let begin = at.saturating_add(head_len);
            let end = begin.saturating_add(len);
            let Some(padded) = len.checked_next_multiple_of(8) else {
                return Err(place.wrong("an object is longer than the file can be"));
            };
            if len > fields.rest().len() as u64 {
                return Err(place.wrong("an object is longer than the collection"));
            }
            fields.skip(padded.min(fields.rest().len() as u64))?;
            objects.insert(index, begin..end);
            at = begin.saturating_add(padded);
        }
        Ok(Self { part, objects })
    }

    /// The object with this number.
    pub(crate) fn part(&self, index: u32, structure: Structure) -> Result<Part<'a>, FormatError> {
        let range = u16::try_from(index).ok().and_then(|index| self.objects.get(&index));
        let Some(range) = range else {
            return Err(self.part.place().wrong("it has no object with a number that is used"));
        };
        let address = self.part.place().address.saturating_add(range.start);
        let len = range.end.saturating_sub(range.start);
        self.part.slice(range.start, len, Place::new(structure, address))
    }

    /// The bytes of the object with this number; None where there is none.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&[u8]> {
        let range = self.objects.get(&u16::try_from(index).ok()?)?;
        self.part.bytes().get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
    }

    /// The numbers of its objects, ascending.
    #[must_use]
    pub fn numbers(&self) -> Vec<u16> {
        let mut numbers: Vec<u16> = self.objects.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::Collection;
    use crate::fields::Widths;
    use crate::source::Source;

    #[test]
    fn objects_have_numbers_and_are_padded() {
        for length in [4u8, 8] {
            let number = |n: u64| n.to_le_bytes();
            let mut bytes = b"GCOL\x01\0\0\0".to_vec();
            bytes.extend(number(96));
            for (index, content) in [(2u8, &b"abc"[..]), (7, b"")] {
                bytes.extend([index, 0, 1, 0, 0, 0, 0, 0]);
                bytes.extend(number(content.len() as u64));
                bytes.extend(content);
                bytes.resize(bytes.len().next_multiple_of(8), 0);
            }
            bytes.resize(96, 0);
            let source = Source::new(&bytes, 0, Widths { offset: 8, length });
            let heap = Collection::open(&source, 0).unwrap();
            assert_eq!(heap.numbers(), [2, 7]);
            assert_eq!(heap.get(2), Some(&b"abc"[..]));
            assert_eq!(
                (heap.get(7), heap.get(3), heap.get(1 << 16 | 2)),
                (Some(&[][..]), None, None)
            );
            bytes[24] = 100;
            let source = Source::new(&bytes, 0, Widths { offset: 8, length });
            assert!(Collection::open(&source, 0).is_err());
        }
    }
}
