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

/// Where the bytes of a local heap are.
pub(crate) struct Head {
    pub(crate) nbytes: u64,
    free: u64,
    data: u64,
}

impl<'a> LocalHeap<'a> {
    pub(crate) fn head(source: &Source<'a>, address: u64) -> Result<Head, FormatError> {
        let place = Place::new(Structure::LocalHeap, address);
        let widths = source.widths();
        let nbytes = widths.nbytes(8, 1, 2);
        let head = source.read(place, nbytes)?;
        let mut fields = head.fields();
        fields.signature(b"HEAP")?;
        fields.version(0)?;
        fields.skip(3)?;
        Ok(Head { nbytes: fields.length()?, free: fields.length()?, data: fields.defined()? })
    }

    pub(crate) fn open(source: &Source<'a>, address: u64) -> Result<Self, FormatError> {
        let place = Place::new(Structure::LocalHeap, address);
        let Head { nbytes, free, data } = Self::head(source, address)?;
        let data = source.read(Place::new(Structure::LocalHeap, data), nbytes)?;
        check_free(place, &data, free)?;
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

/// Refuse, as libhdf5 does, a heap whose free places are not in it, each behind the one before.
fn check_free(place: Place, data: &Part<'_>, first: u64) -> Result<(), FormatError> {
    /// The last of them leads here.
    const NONE: u64 = 1;
    let nbytes = data.bytes().len() as u64;
    let mut next = first;
    let mut most = nbytes;
    while next != NONE {
        let mut fields = data.fields();
        fields.skip(next)?;
        let (after, len) = (fields.length()?, fields.length()?);
        if most == 0 || len == 0 || next.saturating_add(len) > nbytes {
            return Err(place.wrong("a free place is not in it"));
        }
        // They cannot be more than bytes, unless they lead in a circle.
        most = most.saturating_sub(len);
        next = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::LocalHeap;
    use crate::fields::Widths;
    use crate::source::Source;

    #[test]
    fn texts_end_with_a_zero_or_with_the_heap() {
        let mut bytes = b"HEAP\0\0\0\0".to_vec();
        for number in [6u32, 1, 20] {
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

    #[test]
    fn free_places_are_in_the_heap_and_end() {
        let opened = |first: u32, next: u32, nbytes: u32| {
            let mut bytes = b"HEAP\0\0\0\0".to_vec();
            for number in [16, first, 20, 0, 0, next, nbytes] {
                bytes.extend(number.to_le_bytes());
            }
            let source = Source::new(&bytes, 0, Widths { offset: 4, length: 4 });
            LocalHeap::open(&source, 0).is_ok()
        };
        assert!(opened(8, 1, 8));
        assert!(!opened(8, 1, 9));
        assert!(!opened(8, 1, 0));
        assert!(!opened(8, 8, 8));
        assert!(!opened(20, 1, 8));
    }
}
