//! Which chunks does a version 2 B-tree hold?
//!
//! A record has an address, for chunks with filters also bytes stored and filter mask, and the
//! chunk's place in the grid.

use super::wanted::{ChunkRecord, Each, Wanted};
use crate::btree2::BTree2;
use crate::dataspace::Dims;
use crate::error::{FormatError, Structure};
use crate::fields::{Fields, Place};
use crate::source::Source;

/// Kinds of records: chunks without filters, and with them.
const PLAIN: u8 = 10;
const FILTERED: u8 = 11;

pub(super) fn read(
    source: &Source<'_>,
    header: u64,
    wanted: &Wanted<'_>,
    each: &mut Each<'_>,
) -> Result<(), FormatError> {
    let place = Place::new(Structure::BTree2, header);
    let tree = BTree2::open(source, header)?;
    let kind = if wanted.filtered { FILTERED } else { PLAIN };
    let offset_len = u64::from(source.widths().offset);
    let plain_len = (wanted.chunk.len() as u64).saturating_mul(8).saturating_add(offset_len);
    // What chunks with filters have more: their size, and four bytes.
    let size_len = tree.record_len.saturating_sub(plain_len).saturating_sub(4);
    if wanted.filtered && !(1..=8).contains(&size_len) {
        return Err(place.wrong("its records have another length"));
    }
    tree.expect(kind, if wanted.filtered { tree.record_len } else { plain_len })?;
    let record = |bytes: &[u8]| -> Result<ChunkRecord, FormatError> {
        let mut fields = Fields::new(bytes, place, source.widths());
        let address = fields.defined()?;
        let (stored_nbytes, filter_mask) = match wanted.filtered {
            true => (fields.number(size_len as u8)?, fields.u32()?),
            false => (wanted.chunk_nbytes(), 0),
        };
        let scaled = wanted.chunk.iter().map(|_| fields.u64()).collect::<Result<Dims, _>>()?;
        Ok(ChunkRecord { scaled, address, stored_nbytes, filter_mask })
    };
    let mut give = |bytes: &[u8]| wanted.give(record(bytes)?, each);
    match wanted.places {
        None => tree.each(&mut give),
        Some(places) => places.iter().try_for_each(|place| {
            tree.some(&|bytes| Ok(record(bytes)?.scaled.cmp(place)), &mut give)
        }),
    }
}
