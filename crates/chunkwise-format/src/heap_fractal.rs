//! Which bytes does a fractal heap hold for an ID?
//!
//! Small objects are in the ID itself (tiny), those of medium size in blocks of the heap (managed),
//! large ones anywhere in the file (huge).  Blocks are found by halving: a table of rows whose
//! blocks double in size, in which blocks too large for data are tables again
//! (format specification, III.G).

use std::borrow::Cow;
use std::rc::Rc;

use crate::btree2::BTree2;
use crate::checksum::checksum;
use crate::error::{FormatError, Problem, Structure};
use crate::fields::{Fields, Place, bytes_for};
use crate::filters::{self, Filter};
use crate::source::{HEAD_LEN, Part, Source};

/// More tables within tables than any heap has: each halves the bits of an offset's rest.
const MOST_LEVELS: usize = 64;
/// Bits of an ID's first byte.
const KIND: u8 = 0x30;
const VERSION: u8 = 0xc0;

/// A fractal heap.
pub(crate) struct FractalHeap<'s, 'a> {
    source: &'s Source<'a>,
    place: Place,
    id_len: u64,
    /// Bytes of an offset within the heap, and of an object's length.
    offset_len: u8,
    len_len: u8,
    /// What its blocks of data, and its huge objects, have gone through.
    filters: Vec<Filter>,
    /// How the root is stored, where it is a block of data.
    root_stored: Option<Stored>,
    sealed_blocks: bool,
    huge_tree: Option<u64>,
    /// What keeps track of its free space.
    space: Option<u64>,
    table: Table,
    root: Option<u64>,
    /// Rows of the root's table; 0 where the root is a block of data.
    root_rows: u32,
}

/// A heap, and the B-tree that leads to what it holds.
pub(crate) fn indexed<'s, 'a>(
    source: &'s Source<'a>,
    heap: u64,
    tree: u64,
) -> Result<(FractalHeap<'s, 'a>, BTree2<'s, 'a>), FormatError> {
    let (heap, tree) = (FractalHeap::open(source, heap)?, BTree2::open(source, tree)?);
    source.expect([heap.root, tree.root].into_iter().flatten(), HEAD_LEN);
    Ok((heap, tree))
}

/// How something is stored that has gone through filters: its bytes, and the filters left out.
#[derive(Debug, Clone, Copy)]
struct Stored {
    nbytes: u64,
    mask: u32,
}

/// How large the blocks of each row are.
#[derive(Debug, Clone, Copy)]
struct Table {
    width: u64,
    start_bits: u32,
    width_bits: u32,
    /// Rows of blocks of data; behind them are tables.
    direct_rows: u32,
}

impl Table {
    /// Bytes of a block in a row.
    fn block_len(self, row: u32) -> Option<u64> {
        1u64.checked_shl(self.start_bits.checked_add(row.saturating_sub(1))?)
    }

    /// The row in which an offset lies, the column, and where that block begins.
    fn locate(self, offset: u64) -> Option<(u32, u64, u64)> {
        let first_row = self.width.checked_shl(self.start_bits)?;
        let row = match offset.checked_div(first_row)? {
            0 => 0,
            rows => rows.ilog2().saturating_add(1),
        };
        let begin = match row {
            0 => 0,
            row => first_row.checked_shl(row.saturating_sub(1))?,
        };
        let block_len = self.block_len(row)?;
        let column = offset.checked_sub(begin)?.checked_div(block_len)?;
        Some((row, column, begin.checked_add(column.checked_mul(block_len)?)?))
    }

    /// Rows of the table that stands in a row.
    fn rows_within(self, row: u32) -> Option<u32> {
        let bits = self.start_bits.checked_add(row.saturating_sub(1))?;
        bits.checked_sub(self.start_bits.checked_add(self.width_bits)?)?.checked_add(1)
    }
}

impl<'s, 'a> FractalHeap<'s, 'a> {
    pub(crate) fn open(source: &'s Source<'a>, address: u64) -> Result<Self, FormatError> {
        let place = Place::new(Structure::FractalHeap, address);
        let widths = source.widths();
        let plain_len = widths.nbytes(26, 3, 12);
        let head = source.read(place, plain_len)?;
        let mut fields = head.fields();
        fields.signature(b"FRHP")?;
        fields.version(0)?;
        let (id_len, filters_len) = (u64::from(fields.u16()?), u64::from(fields.u16()?));
        let filtered = filters_len > 0;
        let more = if filtered { widths.nbytes(4, 0, 1).saturating_add(filters_len) } else { 0 };
        let all = source.read(place, plain_len.saturating_add(more))?.unsealed()?;
        let mut fields = all.fields();
        fields.skip(9)?;
        let flags = fields.u8()?;
        let most_managed = u64::from(fields.u32()?);
        fields.length()?;
        let huge_tree = fields.address()?;
        fields.length()?;
        let space = fields.address()?;
        fields.skip(widths.nbytes(0, 0, 8))?;
        let width = u64::from(fields.u16()?);
        let (start, most_direct) = (fields.length()?, fields.length()?);
        let offset_bits = fields.u16()?;
        fields.skip(2)?;
        let (root, root_rows) = (fields.address()?, u32::from(fields.u16()?));
        let mut root_stored = None;
        let mut filters = Vec::new();
        if filtered {
            root_stored = Some(Stored { nbytes: fields.length()?, mask: fields.u32()? });
            filters = filters::read(&mut fields.part(filters_len)?)?;
        }
        let sound = width.is_power_of_two()
            && start.is_power_of_two()
            && most_direct.is_power_of_two()
            && start <= most_direct
            && (1..=64).contains(&offset_bits);
        if !sound {
            return Err(place.wrong("its options make no sense"));
        }
        let (start_bits, direct_bits) = (start.ilog2(), most_direct.ilog2());
        let table = Table {
            width,
            start_bits,
            width_bits: width.ilog2(),
            direct_rows: direct_bits.saturating_sub(start_bits).saturating_add(2),
        };
        let direct_len = direct_bits.div_ceil(8) as u8;
        Ok(Self {
            source,
            place,
            id_len,
            offset_len: offset_bits.div_ceil(8) as u8,
            len_len: direct_len.min(bytes_for(most_managed)),
            filters,
            root_stored,
            sealed_blocks: flags & 2 != 0,
            huge_tree,
            space,
            table,
            root,
            root_rows,
        })
    }

    /// Read what keeps track of its free space, which is needed for nothing else (format
    /// specification, III.J).
    pub(crate) fn check_space(&self) -> Result<(), FormatError> {
        let Some(address) = self.space else { return Ok(()) };
        let place = Place::new(Structure::FreeSpace, address);
        let part = self.source.sealed(place, self.source.widths().nbytes(18, 1, 7), b"FSHD")?;
        let mut fields = part.fields();
        // Versions and counts, then what is of use in writing.
        fields.skip(self.source.widths().nbytes(14, 0, 5))?;
        let (sections, _, nbytes) = (fields.address()?, fields.length()?, fields.length()?);
        if let Some(sections) = sections {
            self.source.takes(sections, nbytes);
        }
        Ok(())
    }

    /// The object with this ID; the errors of what is made of it name `structure`.
    pub(crate) fn object(&self, id: &[u8], structure: Structure) -> Result<Part<'a>, FormatError> {
        let place = Place::new(Structure::FractalHeapObject, self.place.address);
        let Some((&first, rest)) = id.split_first() else {
            return Err(place.error(Problem::CutOff));
        };
        if first & VERSION != 0 {
            return Err(place.error(Problem::Version(first >> 6)));
        }
        let mut fields = Fields::new(rest, place, self.source.widths());
        match (first & KIND) >> 4 {
            0 => self.managed(&mut fields, structure),
            1 => self.huge(&mut fields, structure),
            2 => self.tiny(first, &mut fields, structure),
            kind => Err(fields.unknown("an ID of kind", kind)),
        }
    }

    fn tiny(
        &self,
        first: u8,
        fields: &mut Fields<'_>,
        structure: Structure,
    ) -> Result<Part<'a>, FormatError> {
        let mut len = u64::from(first & 0xf);
        // IDs that are long enough take twelve bits for the length.
        if self.id_len > 18 {
            len = len << 8 | u64::from(fields.u8()?);
        }
        let bytes = fields.take(len.saturating_add(1))?.to_vec();
        let place = Place::new(structure, self.place.address);
        Ok(Part::new(Cow::Owned(bytes), place, self.source.widths()))
    }

    fn huge(&self, fields: &mut Fields<'_>, structure: Structure) -> Result<Part<'a>, FormatError> {
        let widths = self.source.widths();
        // Where it is, and how it is stored; behind the filters left out, its own length.
        let filtered = !self.filters.is_empty();
        let place_len = widths.nbytes(0, 1, 1);
        let record_len =
            if filtered { place_len.saturating_add(widths.nbytes(4, 0, 1)) } else { place_len };
        let found_in = |fields: &mut Fields<'_>| {
            let (address, nbytes) = (fields.defined()?, fields.length()?);
            let filtered = if filtered { Some((fields.u32()?, fields.length()?)) } else { None };
            Ok((address, nbytes, filtered))
        };
        let (address, nbytes, filtered) = if record_len <= self.id_len.saturating_sub(1) {
            found_in(fields)?
        } else {
            let wanted = fields.number(self.id_len.saturating_sub(1).min(8) as u8)?;
            let Some(tree) = self.huge_tree else {
                return Err(fields.wrong("its heap has no tree of huge objects"));
            };
            let tree = BTree2::open(self.source, tree)?;
            let kind = if filtered { 2 } else { 1 };
            tree.expect(kind, record_len.saturating_add(widths.length.into()))?;
            let record_of = |record: &[u8]| {
                let mut record = Fields::new(record, self.place, widths);
                Ok((found_in(&mut record)?, record.length()?))
            };
            let mut found = None;
            tree.some(&|record| record_of(record).map(|(_, id)| id.cmp(&wanted)), &mut |record| {
                found = Some(record_of(record)?.0);
                Ok(())
            })?;
            found.ok_or_else(|| fields.wrong("it is not in the tree of huge objects"))?
        };
        let part = self.source.read(Place::new(structure, address), nbytes)?;
        match filtered {
            Some((mask, nbytes)) => self.source.unfiltered(&part, &self.filters, mask, nbytes),
            None => Ok(part),
        }
    }

    fn managed(
        &self,
        fields: &mut Fields<'_>,
        structure: Structure,
    ) -> Result<Part<'a>, FormatError> {
        let (offset, len) = (fields.number(self.offset_len)?, fields.number(self.len_len)?);
        let astray = || fields.wrong("it is not in a block of its heap");
        let mut address = self.root.ok_or_else(astray)?;
        let mut rows = self.root_rows;
        let mut stored = self.root_stored;
        // Where the block begins within the heap, and how many bytes it takes.
        let mut begin = 0u64;
        let mut block_len = self.table.block_len(0).ok_or_else(astray)?;
        for _ in 0..MOST_LEVELS {
            let within = offset.checked_sub(begin).ok_or_else(astray)?;
            if rows == 0 {
                let block = self.direct(address, begin, block_len, stored)?;
                let place = Place::new(structure, address.saturating_add(within));
                self.source.charge(place, len)?;
                return block.slice(within, len, place);
            }
            let (row, column, at) = self.table.locate(within).ok_or_else(astray)?;
            if row >= rows {
                return Err(astray());
            }
            let child = self.child(address, begin, rows, (row, column))?;
            address = child.0.ok_or_else(astray)?;
            stored = child.1;
            begin = begin.checked_add(at).ok_or_else(astray)?;
            block_len = self.table.block_len(row).ok_or_else(astray)?;
            rows = match row < self.table.direct_rows {
                true => 0,
                false => self.table.rows_within(row).ok_or_else(astray)?,
            };
        }
        Err(fields.error(Problem::TooDeep(MOST_LEVELS)))
    }

    /// What a table in the heap says of a child: where it is, and how it is stored.
    fn child(
        &self,
        address: u64,
        begin: u64,
        rows: u32,
        (row, column): (u32, u64),
    ) -> Result<(Option<u64>, Option<Stored>), FormatError> {
        let place = Place::new(Structure::FractalHeapBlock, address);
        let widths = self.source.widths();
        let filtered = !self.filters.is_empty();
        // Blocks of data come first, and have longer entries where there are filters.
        let entry_len = if filtered { widths.nbytes(4, 1, 1) } else { widths.nbytes(0, 1, 0) };
        let before = |entries: u64| {
            let direct = u64::from(self.table.direct_rows).saturating_mul(self.table.width);
            let direct = entries.min(direct);
            let others = widths.nbytes(0, entries.saturating_sub(direct), 0);
            direct.saturating_mul(entry_len).saturating_add(others)
        };
        let entries_len = before(u64::from(rows).saturating_mul(self.table.width));
        let head_len = widths.nbytes(5, 1, 0).saturating_add(self.offset_len.into());
        let nbytes = head_len.saturating_add(entries_len).saturating_add(4);
        let block = self.source.kept(self.place.address, address, || {
            let block = self.source.sealed(place, nbytes, b"FHIB")?;
            self.check_head(&mut block.fields(), begin)?;
            Ok(block)
        })?;
        let number = u64::from(row).saturating_mul(self.table.width).saturating_add(column);
        let mut fields = block.fields();
        fields.skip(head_len.saturating_add(before(number)))?;
        let child = fields.address()?;
        let stored = match filtered && row < self.table.direct_rows {
            true => Some(Stored { nbytes: fields.length()?, mask: fields.u32()? }),
            false => None,
        };
        Ok((child, stored))
    }

    /// A block of data.
    fn direct(
        &self,
        address: u64,
        begin: u64,
        len: u64,
        stored: Option<Stored>,
    ) -> Result<Rc<Part<'a>>, FormatError> {
        let place = Place::new(Structure::FractalHeapBlock, address);
        self.source.kept(self.place.address, address, || {
            let block = match stored {
                Some(Stored { nbytes, mask }) => {
                    let block = self.source.read(place, nbytes)?;
                    self.source.unfiltered(&block, &self.filters, mask, len)?
                }
                None => self.source.read(place, len)?,
            };
            let mut fields = block.fields();
            fields.signature(b"FHDB")?;
            let mut fields = block.fields();
            self.check_head(&mut fields, begin)?;
            if self.sealed_blocks {
                let head_len = block.bytes().len().saturating_sub(fields.rest().len());
                let stored = fields.u32()?;
                // Taken while its own place was zero.
                let mut bytes = block.bytes().to_vec();
                bytes.iter_mut().skip(head_len).take(4).for_each(|byte| *byte = 0);
                let computed = checksum(&bytes);
                if stored != computed {
                    return Err(place.error(Problem::Checksum { stored, computed }));
                }
            }
            Ok(block)
        })
    }

    /// Check what every block begins with, behind its signature.
    fn check_head(&self, fields: &mut Fields<'_>, begin: u64) -> Result<(), FormatError> {
        fields.skip(4)?;
        fields.version(0)?;
        if fields.address()? != Some(self.place.address) {
            return Err(fields.wrong("it is of another heap"));
        }
        if fields.number(self.offset_len)? != begin {
            return Err(fields.wrong("it stands elsewhere in its heap"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{FractalHeap, Table};
    use crate::checksum::checksum;
    use crate::error::Structure;
    use crate::fields::Widths;
    use crate::source::Source;

    #[test]
    fn offsets_lead_to_rows_of_blocks_that_double() {
        let table = Table { width: 4, start_bits: 9, width_bits: 2, direct_rows: 9 };
        assert_eq!(table.locate(0), Some((0, 0, 0)));
        assert_eq!(table.locate(2047), Some((0, 3, 1536)));
        assert_eq!(table.locate(2048), Some((1, 0, 2048)));
        assert_eq!(table.locate(4096), Some((2, 0, 4096)));
        assert_eq!(table.locate(4096 + 1024), Some((2, 1, 5120)));
        assert_eq!(table.block_len(2), Some(1024));
        // A table as large as four rows of the smallest blocks.
        assert_eq!(table.rows_within(9), Some(7));
    }

    /// A heap with one block of 64 bytes behind its header.
    fn heap() -> Vec<u8> {
        let mut bytes = b"FRHP\0\x07\0\0\0\0".to_vec();
        bytes.extend(64u32.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend([0xff; 8]);
        bytes.extend([0; 8]);
        bytes.extend([0xff; 8]);
        bytes.extend([0; 64]);
        bytes.extend([4, 0]);
        bytes.extend(64u64.to_le_bytes());
        bytes.extend(64u64.to_le_bytes());
        bytes.extend([16, 0, 1, 0]);
        bytes.extend(146u64.to_le_bytes());
        bytes.extend([0, 0]);
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        assert_eq!(bytes.len(), 146);
        bytes.extend(*b"FHDB\0\0\0\0\0\0\0\0\0\0\0object");
        bytes.resize(146 + 64, 0);
        bytes
    }

    #[test]
    fn objects_are_in_blocks_and_in_ids() {
        let bytes = heap();
        let source = Source::new(&bytes, 0, Widths { offset: 8, length: 8 });
        let heap = FractalHeap::open(&source, 0).unwrap();
        let get = |id: &[u8]| heap.object(id, Structure::Message(6));
        assert_eq!(get(&[0, 15, 0, 6]).unwrap().bytes(), b"object");
        assert_eq!(get(b"\x22abc...").unwrap().bytes(), b"abc");
        for id in [&[0, 63, 0, 6][..], &[0, 200, 0, 1], &[0x10, 0, 0, 0, 0, 0, 0], &[0x40], &[]] {
            assert!(get(id).is_err(), "{id:?}");
        }
    }
}
