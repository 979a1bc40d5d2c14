//! Which chunks does a version 1 B-tree hold, where libhdf5 would find each of them?
//!
//! A node has keys around its children: a chunk, or a node of the level below, lies at or after
//! the key before it, and before the key after it.  A key of a leaf is also its chunk's: bytes
//! stored, filter mask, origin, and one number more, for the bytes of an element, which is 0.
//! libhdf5 looks chunks up by all of a key, and lists them whatever the keys are: where these are
//! not in order, or do not agree from level to level, it would not find all that it lists.

use std::ops::Range;

use chunkwise_engine::ChunkRecord;
use chunkwise_select::Dims;

use super::bytes::{Damage, Fields, Source, UNDEFINED, not_there};
use super::collected::Chunks;

/// Where a chunk begins, in elements, and in bytes of an element.
type Origin = Dims;

/// A node to look at: where it is, of which level, and between which keys all its chunks must be.
struct Pending {
    address: u64,
    /// None for the root, whose level is what it says.
    level: Option<u8>,
    keys: Range<Option<Origin>>,
}

pub(super) fn read(source: &Source<'_>, root: u64, chunks: &mut Chunks<'_>) -> Result<(), Damage> {
    const HEAD_LEN: u64 = 24;
    const SIGNATURE: &[u8; 4] = b"TREE";
    const CHUNKS: u8 = 1;
    let most = u64::from(chunks.wanted.btree_k) * 2;
    let rank = chunks.wanted.grid.rank() + 1;
    let key_len = 8 + 8 * rank;
    // A node takes as much as its most children.
    let node_len = HEAD_LEN + most * (key_len as u64 + 8) + key_len as u64;
    let mut pending = vec![Pending { address: root, level: None, keys: None..None }];
    while let Some(Pending { address, level, keys }) = pending.pop() {
        let node = source.read(address, node_len)?;
        let mut fields = Fields(&node);
        if fields.take(4)? != SIGNATURE || fields.u8()? != CHUNKS {
            return Err(not_there(SIGNATURE, address));
        }
        let (its_level, count) = (fields.u8()?, fields.number(2)?);
        if level.is_some_and(|level| level != its_level) || count > most {
            return Err(Damage(format!("the B-tree's node at address {address} makes no sense")));
        }
        // Its neighbours, which nobody needs.
        fields.take(16)?;
        let out_of_order =
            || Damage(format!("keys of the B-tree's node at address {address} are out of order"));
        let mut key = Key::parse(&mut fields, chunks)?;
        let mut children = Vec::new();
        for _ in 0..count {
            let child = fields.u64()?;
            let next = Key::parse(&mut fields, chunks)?;
            if key.origin >= next.origin {
                return Err(out_of_order());
            }
            let origin = Some(&key.origin);
            if its_level > 0 {
                let begin = origin.max(keys.start.as_ref()).cloned();
                // The keys at a node's ends may be older than those above.
                let above = keys.end.as_ref().unwrap_or(&next.origin);
                let end = Some(above.min(&next.origin).clone());
                let keys = begin..end;
                if wants(chunks, &keys) {
                    children.push(Pending { address: child, level: Some(its_level - 1), keys });
                }
            } else if origin < keys.start.as_ref()
                || keys.end.as_ref().is_some_and(|end| key.origin >= *end)
            {
                return Err(out_of_order());
            } else {
                key.add(child, chunks)?;
            }
            key = next;
        }
        // What has no chunks could be gone through again and again.
        if count == 0 && level.is_some() {
            return Err(out_of_order());
        }
        source.expect(children.iter().map(|child| child.address), node_len);
        // The last first, so that chunks come in their order.
        pending.extend(children.into_iter().rev());
    }
    Ok(())
}

/// Whether a chunk is wanted that may lie between these keys.
fn wants(chunks: &Chunks<'_>, keys: &Range<Option<Origin>>) -> bool {
    let chunk = chunks.wanted.grid.chunk();
    // All chunks begin where chunks can, so that a key's place in the grid tells as much.
    let place = |key: &Origin| -> Dims { key.iter().zip(chunk).map(|(o, c)| o / c).collect() };
    let (begin, end) = (keys.start.as_ref().map(place), keys.end.as_ref());
    // A key that goes on beyond its chunk's origin lies behind that chunk.
    let end = end.map(|key| {
        let mut end = place(key);
        if let (Some(last), Some(1..)) = (end.last_mut(), key.last()) {
            *last = last.saturating_add(1);
        }
        end
    });
    chunks.wants_between(begin.as_deref(), end.as_deref())
}

struct Key {
    stored_nbytes: u64,
    filter_mask: u32,
    origin: Origin,
}

impl Key {
    fn parse(fields: &mut Fields<'_>, chunks: &Chunks<'_>) -> Result<Self, Damage> {
        let (stored_nbytes, filter_mask) = (fields.number(4)?, fields.number(4)? as u32);
        let lens = chunks.wanted.grid.chunk().iter().copied();
        let mut origin = Origin::new();
        for len in lens.chain([chunks.element_size]) {
            let number = fields.u64()?;
            if number.checked_rem(len) != Some(0) {
                return Err(Damage(format!("no chunk can begin at {number}")));
            }
            origin.push(number);
        }
        Ok(Self { stored_nbytes, filter_mask, origin })
    }

    /// Add the chunk at `address`, which has this key.
    fn add(&self, address: u64, chunks: &mut Chunks<'_>) -> Result<(), Damage> {
        if self.origin.last() != Some(&0) {
            return Err(Damage("a chunk of its B-tree begins within an element".into()));
        }
        if address == UNDEFINED {
            return Err(Damage("a chunk of its B-tree has no address".into()));
        }
        let index: Dims =
            self.origin.iter().zip(chunks.wanted.grid.chunk()).map(|(o, c)| o / c).collect();
        let (stored_nbytes, filter_mask) = (self.stored_nbytes, self.filter_mask);
        chunks.add(&index, ChunkRecord { address, stored_nbytes, filter_mask })
    }
}
