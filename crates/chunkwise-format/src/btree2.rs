//! Which records does a version 2 B-tree hold?
//!
//! A node has records in ascending order.  A node above the leaves has a child before, between and
//! behind its records; a pointer says how many records the child has, and how many there are below
//! it (format specification, III.A.2).  How wide these numbers are follows from the most records
//! that a node of each level can have (`H5B2__hdr_init`).

use std::cmp::Ordering;

use crate::error::{FormatError, Lost, Structure};
use crate::fields::{Place, bytes_for};
use crate::source::Source;

/// Bytes of a signature, a version and a type; and of the checksum behind a node.
const HEAD_LEN: u64 = 6;
const CHECKSUM_LEN: u64 = 4;
/// More levels than any tree that fits a file has.
const MOST_LEVELS: u16 = 40;

/// A version 2 B-tree.
pub(crate) struct BTree2<'s, 'a> {
    source: &'s Source<'a>,
    place: Place,
    pub(crate) kind: u8,
    /// Bytes of a record.
    pub(crate) record_len: u64,
    /// Records in the whole tree, as it says.
    pub(crate) total: u64,
    node_len: u64,
    pub(crate) root: Option<u64>,
    root_count: u64,
    levels: Vec<Level>,
}

/// What the nodes of a level have in common; the leaves are the first level.
struct Level {
    /// The most records of a node.
    most: u64,
    /// Bytes of the number of all records below a node.
    total_len: u8,
}

/// What is done with records in their order.
pub(crate) type Each<'e> = dyn FnMut(&[u8]) -> Result<(), FormatError> + 'e;
/// Where a record lies: before what is wanted, in it, or behind it.
pub(crate) type Where<'e> = dyn Fn(&[u8]) -> Result<Ordering, FormatError> + 'e;

impl<'s, 'a> BTree2<'s, 'a> {
    pub(crate) fn open(source: &'s Source<'a>, address: u64) -> Result<Self, FormatError> {
        let place = Place::new(Structure::BTree2, address);
        let widths = source.widths();
        let nbytes = widths.nbytes(22, 1, 1);
        let part = source.sealed(place, nbytes, b"BTHD")?;
        let mut fields = part.fields();
        fields.skip(4)?;
        fields.version(0)?;
        let kind = fields.u8()?;
        let (node_len, record_len) = (u64::from(fields.u32()?), u64::from(fields.u16()?));
        let depth = fields.u16()?;
        // When nodes are split and merged.
        fields.skip(2)?;
        let (root, root_count, total) = (fields.address()?, fields.u16()?, fields.length()?);
        let levels = levels(place, node_len, record_len, depth, widths.offset)?;
        let root_count = u64::from(root_count);
        Ok(Self { source, place, kind, record_len, total, node_len, root, root_count, levels })
    }

    /// Fails unless its records are of this kind, and have this many bytes.
    pub(crate) fn expect(&self, kind: u8, record_len: u64) -> Result<(), FormatError> {
        if self.kind != kind {
            return Err(self.place.wrong("its records are of another kind"));
        }
        if self.record_len != record_len {
            return Err(self.place.wrong("its records have another length"));
        }
        Ok(())
    }

    /// All records.
    pub(crate) fn each(&self, each: &mut Each<'_>) -> Result<(), FormatError> {
        self.readable(each, &mut Err)
    }

    /// All records; without those nodes and records that fail, where `lost` goes on.
    pub(crate) fn readable(
        &self,
        each: &mut Each<'_>,
        lost: &mut Lost<'_>,
    ) -> Result<(), FormatError> {
        let (mut count, mut lacks) = (0u64, false);
        let mut each = |record: &[u8]| {
            count = count.saturating_add(1);
            each(record)
        };
        self.wanted(&|_| Ok(Ordering::Equal), &mut each, &mut |error| {
            lacks = true;
            lost(error)
        })?;
        match count == self.total || lacks {
            true => Ok(()),
            false => lost(self.place.wrong("it has not as many records as it says")),
        }
    }

    /// The records that are wanted, which lie side by side.
    pub(crate) fn some(&self, compare: &Where<'_>, each: &mut Each<'_>) -> Result<(), FormatError> {
        self.wanted(compare, each, &mut Err)
    }

    fn wanted(
        &self,
        compare: &Where<'_>,
        each: &mut Each<'_>,
        lost: &mut Lost<'_>,
    ) -> Result<(), FormatError> {
        let level = self.levels.len().saturating_sub(1);
        match (self.root, self.root_count) {
            (Some(root), count @ 1..) => {
                self.node(root, level, count, compare, each, lost).or_else(lost)
            }
            _ => Ok(()),
        }
    }

    fn node(
        &self,
        address: u64,
        level: usize,
        count: u64,
        compare: &Where<'_>,
        each: &mut Each<'_>,
        lost: &mut Lost<'_>,
    ) -> Result<(), FormatError> {
        let place = Place::new(Structure::BTree2Node, address);
        let Some(facts) = self.levels.get(level).filter(|facts| (1..=facts.most).contains(&count))
        else {
            return Err(place.wrong("it has more records than fit, or none"));
        };
        self.source.require(place, self.node_len)?;
        let offset_len = self.source.widths().offset;
        let count_len = self.levels.first().map_or(1, |leaf| bytes_for(leaf.most));
        let below = level.checked_sub(1);
        let total_len =
            below.and_then(|below| self.levels.get(below)).map_or(0, |below| below.total_len);
        let pointer_len = pointer_len(offset_len, count_len, total_len);
        let pointers_len =
            if below.is_some() { count.saturating_add(1).saturating_mul(pointer_len) } else { 0 };
        let records_len = count.saturating_mul(self.record_len);
        let nbytes =
            records_len.saturating_add(pointers_len).saturating_add(HEAD_LEN + CHECKSUM_LEN);
        let signature = if below.is_some() { b"BTIN" } else { b"BTLF" };
        let part = self.source.sealed(place, nbytes, signature)?;
        self.source.takes(address, self.node_len);
        let mut fields = part.fields();
        fields.skip(4)?;
        fields.version(0)?;
        if fields.u8()? != self.kind || facts.most < count {
            return Err(place.wrong("it is of another B-tree"));
        }
        let mut records = fields.part(records_len)?;
        // A child is looked at if the record before it is not behind what is wanted, and the one
        // after it is not before that.
        let mut before = Ordering::Equal;
        let mut steps = Vec::new();
        for number in 0..=count {
            let record = match number == count {
                true => None,
                false => Some(records.take(self.record_len)?),
            };
            let after = record.map_or(Ok(Ordering::Equal), compare)?;
            let mut child = None;
            if let Some(below) = below {
                let found = (below, fields.defined()?, fields.number(count_len)?);
                fields.number(total_len)?;
                child =
                    Some(found).filter(|_| before != Ordering::Greater && after != Ordering::Less);
            }
            steps.push((child, record.filter(|_| after == Ordering::Equal)));
            before = after;
        }
        let children = steps.iter().filter_map(|(child, _)| child.map(|(_, address, _)| address));
        self.source.expect(children, self.node_len);
        for (child, record) in steps {
            if let Some((below, address, count)) = child {
                self.node(address, below, count, compare, each, lost).or_else(&mut *lost)?;
            }
            if let Some(record) = record {
                each(record).or_else(&mut *lost)?;
            }
        }
        Ok(())
    }
}

/// Bytes of a pointer to a node: its address, and how many records it has, and all below it.
fn pointer_len(offset_len: u8, count_len: u8, total_len: u8) -> u64 {
    [offset_len, count_len, total_len].iter().fold(0u64, |sum, &len| sum.saturating_add(len.into()))
}

fn levels(
    place: Place,
    node_len: u64,
    record_len: u64,
    depth: u16,
    offset_len: u8,
) -> Result<Vec<Level>, FormatError> {
    let room = node_len.saturating_sub(HEAD_LEN + CHECKSUM_LEN);
    let Some(leaf) = room.checked_div(record_len).filter(|&leaf| leaf > 0 && depth <= MOST_LEVELS)
    else {
        return Err(place.wrong("its options make no sense"));
    };
    let mut levels = vec![Level { most: leaf, total_len: 0 }];
    let (mut total, mut total_len) = (leaf, 0);
    for _ in 0..depth {
        let pointer_len = pointer_len(offset_len, bytes_for(leaf), total_len);
        let entry_len = record_len.saturating_add(pointer_len);
        let most = room.saturating_sub(pointer_len).checked_div(entry_len).unwrap_or(0);
        if most == 0 {
            return Err(place.wrong("its nodes have room for nothing"));
        }
        total = most.saturating_add(1).saturating_mul(total).saturating_add(most);
        total_len = bytes_for(total);
        levels.push(Level { most, total_len });
    }
    Ok(levels)
}

#[cfg(test)]
mod tests {
    use super::BTree2;
    use crate::checksum::checksum;
    use crate::error::FormatError;
    use crate::fields::Widths;
    use crate::source::Source;

    fn sealed(mut bytes: Vec<u8>, len: usize) -> Vec<u8> {
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes.resize(len, 0);
        bytes
    }

    /// A root with a record between two leaves; nodes of 64 bytes, records of one.
    fn tree() -> Vec<u8> {
        let mut head = b"BTHD\0\x05\x40\0\0\0\x01\0\x01\0\0\0".to_vec();
        head.extend(64u32.to_le_bytes());
        head.extend([1, 0]);
        head.extend(5u32.to_le_bytes());
        let mut root = b"BTIN\0\x05c".to_vec();
        for (address, count) in [(128u32, 2), (192, 2)] {
            root.extend(address.to_le_bytes());
            root.push(count);
        }
        let mut bytes = sealed(head, 64);
        bytes.extend(sealed(root, 64));
        bytes.extend(sealed(b"BTLF\0\x05ab".to_vec(), 64));
        bytes.extend(sealed(b"BTLF\0\x05de".to_vec(), 64));
        bytes
    }

    fn records(bytes: &[u8], wanted: Option<u8>) -> Result<Vec<u8>, FormatError> {
        let source = Source::new(&bytes, 0, Widths { offset: 4, length: 4 });
        let tree = BTree2::open(&source, 0)?;
        let mut found = Vec::new();
        let mut take = |record: &[u8]| {
            found.extend(record);
            Ok(())
        };
        match wanted {
            Some(wanted) => tree.some(&|record| Ok(record.cmp(&[wanted])), &mut take)?,
            None => tree.each(&mut take)?,
        }
        Ok(found)
    }

    #[test]
    fn records_come_in_their_order() {
        let bytes = tree();
        assert_eq!(records(&bytes, None).unwrap(), b"abcde");
        for wanted in *b"abcde" {
            assert_eq!(records(&bytes, Some(wanted)).unwrap(), [wanted]);
        }
        assert_eq!(records(&bytes, Some(b'x')).unwrap(), b"");
    }

    #[test]
    fn only_what_leads_to_a_record_is_read() {
        let mut bytes = tree();
        bytes[192] = 0;
        assert_eq!(records(&bytes, Some(b'b')).unwrap(), b"b");
        assert!(records(&bytes, Some(b'd')).is_err());
        assert!(records(&bytes, None).is_err());
    }

    #[test]
    fn a_bad_leaf_loses_its_records_alone() {
        let mut bytes = tree();
        bytes[128] = 0;
        let source = Source::new(&bytes, 0, Widths { offset: 4, length: 4 });
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        let mut take = |record: &[u8]| {
            found.extend(record);
            Ok(())
        };
        let tree = BTree2::open(&source, 0).unwrap();
        let mut lost = |error: FormatError| {
            errors.push(error.address);
            Ok(())
        };
        tree.readable(&mut take, &mut lost).unwrap();
        assert_eq!((found, errors), (b"cde".to_vec(), vec![128]));
    }
}
