//! Which chunks does an extensible array hold?
//!
//! Some elements are in its index block, which leads to blocks of growing size, directly or by way
//! of super blocks (format specification, VII.D).

use super::array::{Array, CHECKSUM_LEN, HEAD_LEN, Written, check_kind, power, too_long};
use super::numbered::Numbered;
use super::wanted::{Each, Wanted};
use crate::error::{FormatError, Structure};
use crate::fields::{Fields, Place};
use crate::source::Source;

/// The blocks of data under a super block, from the one that comes next.
struct Level {
    /// Number of the next block's first element.
    first: u64,
    blocks: u64,
    /// Elements in each.
    elements: u64,
}

pub(super) fn read(
    source: &Source<'_>,
    address: u64,
    wanted: &Wanted<'_>,
    each: &mut Each<'_>,
) -> Result<(), FormatError> {
    let header = Place::new(Structure::ExtensibleArray, address);
    let widths = source.widths();
    let nbytes = widths.nbytes(HEAD_LEN + 6 + CHECKSUM_LEN, 1, 6);
    let part = source.sealed(header, nbytes, b"EAHD")?;
    let mut fields = part.fields();
    fields.skip(4)?;
    check_kind(&mut fields, wanted)?;
    let (entry_len, len_bits) = (u64::from(fields.u8()?), u32::from(fields.u8()?));
    let (direct, least) = (u64::from(fields.u8()?), u64::from(fields.u8()?));
    let (least_pointers, page_bits) = (u64::from(fields.u8()?), fields.u8()?);
    // Four numbers that are of no use here, and the elements that were ever set.
    fields.skip(widths.nbytes(0, 0, 4))?;
    let len = fields.length()?;
    fields.length()?;
    let block = fields.address()?;
    let page = power(header, page_bits.into())?;
    let numbered = Numbered::new(wanted);
    let array = Array { source, wanted, header, entry_len, page, len, numbered };
    array.check()?;
    let sound =
        (1..=64).contains(&len_bits) && least.is_power_of_two() && least_pointers.is_power_of_two();
    let least_bits = least.checked_ilog2().unwrap_or(0);
    let supers = len_bits.saturating_add(1).checked_sub(least_bits);
    let (true, Some(supers)) = (sound, supers) else {
        return Err(header.wrong("its options make no sense"));
    };
    let Some(block) = block else { return Ok(()) };
    // The first of them have no block of their own: the index block leads to their data.
    let without = least_pointers.ilog2().saturating_mul(2).min(supers);
    let pointers = least_pointers.saturating_sub(1).saturating_mul(2);
    let all_pointers = pointers.saturating_add(supers.saturating_sub(without).into());
    let direct_len = direct.saturating_mul(entry_len);
    let head_len = array.part_head_len();
    let nbytes = widths.nbytes(direct_len, all_pointers, 0);
    let part = array.part(block, head_len.saturating_add(nbytes), b"EAIB")?;
    let mut fields = part.fields();
    fields.skip(head_len)?;
    array.elements(&mut fields.part(direct_len)?, 0, direct, each)?;
    // Behind the head of each other part comes where it begins.
    let head_len = head_len.saturating_add(len_bits.div_ceil(8).into());
    let mut first = direct;
    for number in 0..supers {
        // As many blocks, and elements in each, as libhdf5 makes of the number.
        let blocks = power(header, number / 2)?;
        let elements = power(header, number.div_ceil(2))?.checked_mul(least);
        let elements = elements.ok_or_else(|| too_long(header))?;
        let mut level = Level { first, blocks, elements };
        first = blocks
            .checked_mul(elements)
            .and_then(|all| first.checked_add(all))
            .ok_or_else(|| too_long(header))?;
        if number < without {
            if elements > page {
                return Err(header.wrong("its index block leads to pages"));
            }
            array.expect(fields.clone(), head_len, &level);
            for _ in 0..blocks {
                let address = fields.address()?;
                array.data(address, head_len, None, &mut level, each)?;
            }
        } else {
            let address = fields.address()?;
            let wanted = array.numbered.wants(level.first, first.saturating_sub(level.first));
            if let Some(address) = address.filter(|_| wanted && level.first < len) {
                array.super_block(address, head_len, level, each)?;
            }
        }
        if first >= len {
            break;
        }
    }
    Ok(())
}

impl Array<'_, '_> {
    fn super_block(
        &self,
        address: u64,
        head_len: u64,
        mut level: Level,
        each: &mut Each<'_>,
    ) -> Result<(), FormatError> {
        let paged = level.elements > self.page;
        let pages = if paged { level.elements.checked_div(self.page).unwrap_or(0) } else { 0 };
        // Room for whole bytes for each block, in which the bits of all follow each other
        // (H5EA__lookup_elmt).
        let bitmaps_len = pages.div_ceil(8).checked_mul(level.blocks);
        let bitmaps_len = bitmaps_len.ok_or_else(|| too_long(self.header))?;
        let addresses_len = level.blocks.saturating_mul(self.source.widths().offset.into());
        let nbytes = head_len.saturating_add(bitmaps_len).saturating_add(addresses_len);
        let part = self.part(address, nbytes, b"EASB")?;
        let mut fields: Fields<'_> = part.fields();
        fields.skip(head_len)?;
        let bitmap = fields.take(bitmaps_len)?;
        self.expect(fields.clone(), head_len, &level);
        for number in 0..level.blocks {
            let address = fields.address()?;
            let begin = number.saturating_mul(pages);
            let written = (pages > 0).then_some(Written { bitmap, begin, pages });
            self.data(address, head_len, written, &mut level, each)?;
        }
        Ok(())
    }

    /// The wanted blocks of data at these addresses will be read; of those with pages, their heads.
    fn expect(&self, mut addresses: Fields<'_>, head_len: u64, level: &Level) {
        let elements = if level.elements > self.page { 0 } else { level.elements };
        let nbytes = elements.saturating_mul(self.entry_len).saturating_add(head_len);
        let blocks = if self.source.is_far() { level.blocks } else { 0 };
        let wanted = (0..blocks).filter_map(|number| {
            let address = addresses.address().ok()??;
            let first = number.saturating_mul(level.elements).saturating_add(level.first);
            (first < self.len && self.numbered.wants(first, level.elements)).then_some(address)
        });
        self.source.expect(wanted, nbytes.saturating_add(CHECKSUM_LEN));
    }

    /// The next block of data, if there is one; `written` is about its pages, if it has pages.
    fn data(
        &self,
        address: Option<u64>,
        head_len: u64,
        written: Option<Written<'_>>,
        level: &mut Level,
        each: &mut Each<'_>,
    ) -> Result<(), FormatError> {
        let (first, count) = (level.first, level.elements);
        level.first = first.saturating_add(count);
        let wanted = first < self.len && self.numbered.wants(first, count);
        let Some(address) = address.filter(|_| wanted) else { return Ok(()) };
        let Some(written) = written else {
            return self.block(address, (b"EADB", head_len), first, count, each);
        };
        self.part(address, head_len, b"EADB")?;
        let pages = address.saturating_add(head_len).saturating_add(CHECKSUM_LEN);
        self.pages(pages, written, first, count, each)
    }
}
