//! Which chunks does a version 1 B-tree hold?
//!
//! A node has keys around its children: a chunk, or a node of the level below, lies at or after
//! the key before it, and before the key after it.  A key of a leaf is also its chunk's: bytes
//! stored, filter mask, origin, and one number more, for the bytes of an element, which is 0.
//! libhdf5 looks chunks up by all of a key, and lists them whatever the keys are: where these are
//! not in order, or do not agree from level to level, it would not find all that it lists
//! (format specification, III.A.1).

use std::collections::HashSet;
use std::ops::Range;

use super::wanted::{ChunkRecord, Each, Wanted};
use crate::dataspace::Dims;
use crate::error::{FormatError, Structure};
use crate::fields::{Fields, Place};
use crate::source::Source;

/// The kind of a node, of chunks.
const CHUNKS: u8 = 1;

/// Where a chunk begins, in elements, and in bytes of an element.
type Origin = Dims;

/// A node to look at: where it is, of which level, and between which keys all its chunks must be.
struct Pending {
    address: u64,
    /// None for the root, whose level is what it says.
    level: Option<u8>,
    keys: Range<Option<Origin>>,
}

pub(super) fn read(
    source: &Source<'_>,
    root: u64,
    wanted: &Wanted<'_>,
    each: &mut Each<'_>,
) -> Result<(), FormatError> {
    let widths = source.widths();
    let head_len = widths.nbytes(8, 2, 0);
    let key_len = (wanted.chunk.len() as u64).saturating_mul(8).saturating_add(16);
    let entry_len = key_len.saturating_add(widths.offset.into());
    let len_of = |count: u64| {
        count.saturating_mul(entry_len).saturating_add(head_len).saturating_add(key_len)
    };
    let most = u64::from(wanted.chunk_k).saturating_mul(2);
    let mut seen = HashSet::new();
    let mut pending = vec![Pending { address: root, level: None, keys: None..None }];
    while let Some(Pending { address, level, keys }) = pending.pop() {
        let place = Place::new(Structure::ChunkBTree, address);
        if !seen.insert(address) {
            return Err(place.wrong("its tree leads to it twice"));
        }
        let head = source.read(place, head_len)?;
        let mut fields = head.fields();
        fields.signature(b"TREE")?;
        if fields.u8()? != CHUNKS {
            return Err(place.wrong("it is not a B-tree of chunks"));
        }
        let (its_level, count) = (fields.u8()?, u64::from(fields.u16()?));
        if level.is_some_and(|level| level != its_level) {
            return Err(place.wrong("it is of another level than its parent says"));
        }
        source.require_room(place, len_of(most))?;
        let node = source.read_node(place, (count, most), len_of)?;
        let mut fields = node.fields();
        fields.skip(head_len)?;
        let out_of_order = || place.wrong("its keys are out of order");
        let mut key = Key::read(&mut fields, wanted)?;
        let mut children = Vec::new();
        for _ in 0..count {
            let child = fields.defined()?;
            let next = Key::read(&mut fields, wanted)?;
            if key.origin >= next.origin {
                return Err(out_of_order());
            }
            let origin = Some(&key.origin);
            if let Some(below) = its_level.checked_sub(1) {
                let begin = origin.max(keys.start.as_ref()).cloned();
                // The keys at a node's ends may be older than those above.
                let above = keys.end.as_ref().unwrap_or(&next.origin);
                let end = Some(above.min(&next.origin).clone());
                let keys = begin..end;
                if wants(wanted, &keys) {
                    children.push(Pending { address: child, level: Some(below), keys });
                }
            } else if origin < keys.start.as_ref()
                || keys.end.as_ref().is_some_and(|end| key.origin >= *end)
            {
                return Err(out_of_order());
            } else {
                wanted.give(key.chunk(place, child, wanted)?, each)?;
            }
            key = next;
        }
        source.expect(children.iter().map(|child| child.address), len_of(most));
        // The last first, so that chunks come in their order.
        pending.extend(children.into_iter().rev());
    }
    Ok(())
}

/// Whether a chunk is wanted that may lie between these keys.
fn wants(wanted: &Wanted<'_>, keys: &Range<Option<Origin>>) -> bool {
    // All chunks begin where chunks can, so that a key's place in the grid tells as much.
    let (begin, end) = (keys.start.as_ref(), keys.end.as_ref());
    let begin = begin.map(|key| place(wanted, key));
    // A key that goes on beyond its chunk's origin lies behind that chunk.
    let end = end.map(|key| {
        let mut end = place(wanted, key);
        if let (Some(last), Some(1..)) = (end.last_mut(), key.last()) {
            *last = last.saturating_add(1);
        }
        end
    });
    wanted.wants_between(begin.as_deref(), end.as_deref())
}

/// A key's place in the grid of chunks.
fn place(wanted: &Wanted<'_>, key: &Origin) -> Dims {
    key.iter().zip(wanted.chunk).map(|(o, c)| o.checked_div(*c).unwrap_or(0)).collect()
}

struct Key {
    stored_nbytes: u64,
    filter_mask: u32,
    origin: Origin,
}

impl Key {
    fn read(fields: &mut Fields<'_>, wanted: &Wanted<'_>) -> Result<Self, FormatError> {
        let (stored_nbytes, filter_mask) = (u64::from(fields.u32()?), fields.u32()?);
        let mut origin = Origin::new();
        for len in wanted.chunk.iter().copied().chain([wanted.element_nbytes]) {
            let number = fields.u64()?;
            if number.checked_rem(len) != Some(0) {
                return Err(fields.wrong("a chunk begins where none can begin"));
            }
            origin.push(number);
        }
        Ok(Self { stored_nbytes, filter_mask, origin })
    }

    /// The chunk at `address`, which has this key.
    fn chunk(
        &self,
        at: Place,
        address: u64,
        wanted: &Wanted<'_>,
    ) -> Result<ChunkRecord, FormatError> {
        if self.origin.last() != Some(&0) {
            return Err(at.wrong("a chunk begins within an element"));
        }
        let (stored_nbytes, filter_mask) = (self.stored_nbytes, self.filter_mask);
        Ok(ChunkRecord { scaled: place(wanted, &self.origin), address, stored_nbytes, filter_mask })
    }
}
