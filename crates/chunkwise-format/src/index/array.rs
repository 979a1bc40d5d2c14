//! Which chunks do the elements of an array name?
//!
//! Fixed and extensible arrays have blocks of elements.  Long blocks are cut into pages, and a bit
//! for each says whether it was ever written: those that were not are skipped, however many there
//! are (format specification, VII.C and VII.D).

use super::numbered::Numbered;
use super::wanted::{ChunkRecord, Each, Wanted};
use crate::error::FormatError;
use crate::fields::{Fields, Place};
use crate::source::{Part, Source};

/// Bytes of a signature, a version and a kind of elements.
pub(super) const HEAD_LEN: u64 = 6;
pub(super) const CHECKSUM_LEN: u64 = 4;

/// What all parts of an array have in common.
pub(super) struct Array<'a, 's> {
    pub(super) source: &'a Source<'s>,
    pub(super) wanted: &'a Wanted<'a>,
    /// Where its header is, as all its parts say.
    pub(super) header: Place,
    /// Bytes of an element.
    pub(super) entry_len: u64,
    /// Elements in a page.
    pub(super) page: u64,
    /// Elements that it has: what lies behind them does not count.
    pub(super) len: u64,
    pub(super) numbered: Numbered,
}

/// Which pages of one block were ever written: a run of bits, which need not begin with a byte.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) bitmap: &'a [u8],
    /// The first page's bit, counted from the most significant one of the first byte.
    pub(super) begin: u64,
    pub(super) pages: u64,
}

impl Written<'_> {
    /// Their numbers within the block; bytes without any cost next to nothing.
    fn numbers(self) -> impl Iterator<Item = u64> {
        let (begin, end) = (self.begin, self.begin.saturating_add(self.pages));
        let bytes = (begin / 8..end.div_ceil(8)).zip(self.bitmap.iter().skip((begin / 8) as usize));
        bytes
            .filter(|(_, bits)| **bits != 0)
            .flat_map(|(at, bits)| {
                (0u64..8)
                    .filter(move |bit| bits.checked_shl(*bit as u32).is_some_and(|b| b & 0x80 != 0))
                    .map(move |bit| at.saturating_mul(8).saturating_add(bit))
            })
            .filter(move |bit| (begin..end).contains(bit))
            .map(move |bit| bit.saturating_sub(begin))
    }
}

/// Fails unless the elements are those of the dataset's chunks, as an array's header says.
pub(super) fn check_kind(fields: &mut Fields<'_>, wanted: &Wanted<'_>) -> Result<(), FormatError> {
    fields.version(0)?;
    match fields.u8()? {
        kind if kind == u8::from(wanted.filtered) => Ok(()),
        _ => Err(fields.wrong("its elements are of another kind")),
    }
}

/// Two to a power.
pub(super) fn power(place: Place, bits: u32) -> Result<u64, FormatError> {
    1u64.checked_shl(bits).ok_or_else(|| too_long(place))
}

pub(super) fn too_long(place: Place) -> FormatError {
    place.wrong("it has more elements than there are numbers")
}

impl<'s> Array<'_, 's> {
    /// Whether elements are as long as they are for these chunks.
    pub(super) fn check(&self) -> Result<(), FormatError> {
        let offset_len = u64::from(self.source.widths().offset);
        let sound = match self.wanted.filtered {
            true => (1..=8).contains(&self.entry_len.saturating_sub(offset_len.saturating_add(4))),
            false => self.entry_len == offset_len,
        };
        if sound { Ok(()) } else { Err(self.header.wrong("its elements have another length")) }
    }

    /// Bytes before what is in a part.
    pub(super) fn part_head_len(&self) -> u64 {
        HEAD_LEN.saturating_add(self.source.widths().offset.into())
    }

    /// A part with this signature, and a checksum behind `nbytes`; gives these.
    pub(super) fn part(
        &self,
        address: u64,
        nbytes: u64,
        signature: &[u8; 4],
    ) -> Result<Part<'s>, FormatError> {
        let place = Place::new(self.header.structure, address);
        let part = self.source.sealed(place, nbytes.saturating_add(CHECKSUM_LEN), signature)?;
        let mut fields = part.fields();
        fields.skip(4)?;
        check_kind(&mut fields, self.wanted)?;
        match fields.address()? {
            Some(header) if header == self.header.address => Ok(part),
            _ => Err(place.wrong("it is of another array")),
        }
    }

    /// A block of `count` elements behind `head_len` bytes.
    pub(super) fn block(
        &self,
        address: u64,
        (signature, head_len): (&[u8; 4], u64),
        first: u64,
        count: u64,
        each: &mut Each<'_>,
    ) -> Result<(), FormatError> {
        let nbytes = count.checked_mul(self.entry_len).ok_or_else(|| too_long(self.header))?;
        let part = self.part(address, head_len.saturating_add(nbytes), signature)?;
        let mut fields = part.fields();
        fields.skip(head_len)?;
        self.elements(&mut fields, first, count, each)
    }

    /// The pages of `count` elements from `address` on, those that were written.
    pub(super) fn pages(
        &self,
        address: u64,
        written: Written<'_>,
        first: u64,
        count: u64,
        each: &mut Each<'_>,
    ) -> Result<(), FormatError> {
        let page_len = self.page.saturating_mul(self.entry_len).saturating_add(CHECKSUM_LEN);
        self.source.takes(address, written.pages.saturating_mul(page_len));
        for number in written.numbers() {
            let begin = number.saturating_mul(self.page);
            let elements = count.saturating_sub(begin).min(self.page);
            if !self.numbered.wants(first.saturating_add(begin), elements) {
                continue;
            }
            let address = address.saturating_add(number.saturating_mul(page_len));
            let nbytes = elements.saturating_mul(self.entry_len).saturating_add(CHECKSUM_LEN);
            let place = Place::new(self.header.structure, address);
            let page = self.source.read(place, nbytes)?.unsealed()?;
            self.elements(&mut page.fields(), first.saturating_add(begin), elements, each)?;
        }
        Ok(())
    }

    /// Elements one after the other, from number `first` on.
    pub(super) fn elements(
        &self,
        fields: &mut Fields<'_>,
        first: u64,
        count: u64,
        each: &mut Each<'_>,
    ) -> Result<(), FormatError> {
        let count = count.min(self.len.saturating_sub(first));
        if !self.numbered.wants(first, count) {
            return Ok(());
        }
        let offset_len = u64::from(self.source.widths().offset);
        let size_len = self.entry_len.saturating_sub(offset_len).saturating_sub(4);
        for number in first..first.saturating_add(count) {
            let address = fields.address()?;
            let (stored_nbytes, filter_mask) = match self.wanted.filtered {
                true => (fields.number(size_len as u8)?, fields.u32()?),
                false => (self.wanted.chunk_nbytes(), 0),
            };
            let (Some(address), Some(scaled)) = (address, self.numbered.place(number)) else {
                continue;
            };
            let record = ChunkRecord { scaled, address, stored_nbytes, filter_mask };
            self.wanted.give(record, each)?;
        }
        Ok(())
    }
}
