//! Which text does a local heap hold at a place?
//!
//! A group of the old kind keeps the names of its links there, and what soft links lead to
//! (format specification, III.D).

use crate::error::{FormatError, Structure};
use crate::fields::{Place, until_zero};
use crate::source::{Part, Source};

/// A local heap.
pub(crate) struct LocalHeap<'a> {
    place: Place,
    data: Part<'a>,
}

impl<'a> LocalHeap<'a> {
    pub(crate) fn open(source: &Source<'a>, address: u64) -> Result<Self, FormatError> {
        let place = Place::new(Structure::LocalHeap, address);
        let widths = source.widths();
        let nbytes = widths.nbytes(8, 1, 2);
        let head = source.read(place, nbytes)?;
        let mut fields = head.fields();
        fields.signature(b"HEAP")?;
        fields.version(0)?;
        fields.skip(3)?;
        let nbytes = fields.length()?;
        // The first of its free places.
        fields.length()?;
        let data = fields.defined()?;
        let data = source.read(Place::new(Structure::LocalHeap, data), nbytes)?;
        Ok(Self { place, data })
    }

    /// The text at a place.
    pub(crate) fn text(&self, offset: u64) -> Result<&[u8], FormatError> {
        let from = usize::try_from(offset).ok().and_then(|from| self.data.bytes().get(from..));
        from.filter(|from| !from.is_empty())
            .map(until_zero)
            .ok_or_else(|| self.place.wrong("a text is not in it"))
    }
}

#[cfg(test)]
mod tests {
    use super::LocalHeap;
    use crate::fields::Widths;
    use crate::source::Source;

    #[test]
    fn texts_end_with_a_zero_or_with_the_heap() {
        let mut bytes = b"HEAP\0\0\0\0".to_vec();
        for number in [6u32, 0xffff_ffff, 20] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(*b"\0ab\0cd");
        let source = Source::new(&bytes, 0, Widths { offset: 4, length: 4 });
        let heap = LocalHeap::open(&source, 0).unwrap();
        assert_eq!(heap.text(0).unwrap(), b"");
        assert_eq!(heap.text(1).unwrap(), b"ab");
        assert_eq!(heap.text(4).unwrap(), b"cd");
        assert!(heap.text(6).is_err());
    }
}
