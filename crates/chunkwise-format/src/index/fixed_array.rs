//! Which chunks does a fixed array hold?
//!
//! It has one block of elements, one for each chunk of the largest extent
//! (format specification, VII.C).

use super::array::{Array, CHECKSUM_LEN, HEAD_LEN, Written, check_kind, power};
use super::numbered::Numbered;
use super::wanted::{Each, Wanted};
use crate::error::{FormatError, Structure};
use crate::fields::Place;
use crate::source::Source;

pub(super) fn read(
    source: &Source<'_>,
    address: u64,
    wanted: &Wanted<'_>,
    each: &mut Each<'_>,
) -> Result<(), FormatError> {
    let header = Place::new(Structure::FixedArray, address);
    let nbytes = source.widths().nbytes(HEAD_LEN + 2 + CHECKSUM_LEN, 1, 1);
    let part = source.sealed(header, nbytes, b"FAHD")?;
    let mut fields = part.fields();
    fields.skip(4)?;
    check_kind(&mut fields, wanted)?;
    let (entry_len, page_bits) = (u64::from(fields.u8()?), fields.u8()?);
    let (len, block) = (fields.length()?, fields.address()?);
    let page = power(header, page_bits.into())?;
    let numbered = Numbered::new(wanted);
    if numbered.count().is_none_or(|count| len < count) {
        return Err(header.wrong("it has fewer elements than the dataset may have chunks"));
    }
    let array = Array { source, wanted, header, entry_len, page, len, numbered };
    array.check()?;
    let Some(block) = block else { return Ok(()) };
    let head_len = array.part_head_len();
    if len <= page {
        return array.block(block, (b"FADB", head_len), 0, len, each);
    }
    let pages = len.div_ceil(page);
    let bitmap_len = pages.div_ceil(8);
    let block_head_len = head_len.saturating_add(bitmap_len);
    let head = array.part(block, block_head_len, b"FADB")?;
    let mut fields = head.fields();
    fields.skip(head_len)?;
    let written = Written { bitmap: fields.take(bitmap_len)?, begin: 0, pages };
    let first_page = block.saturating_add(block_head_len).saturating_add(CHECKSUM_LEN);
    array.pages(first_page, written, 0, len, each)
}
