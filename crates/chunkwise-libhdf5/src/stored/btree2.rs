//! Which chunks does a version 2 B-tree hold?
//!
//! A node has records in ascending order, one for each chunk: address, for chunks with filters also
//! bytes stored and filter mask, and the chunk's place in the grid.  A node above the leaves has a
//! child before, between and behind its records; a pointer says how many records the child has,
//! and how many there are below it (format specification, III.A.2).  How wide these numbers are
//! follows from the most records that a node of each level can have (`H5B2__hdr_init`).

use chunkwise_engine::ChunkRecord;
use chunkwise_select::Dims;

use super::bytes::{Damage, Fields, Source, UNDEFINED};
use super::collected::Chunks;

const ADDRESS_LEN: u64 = 8;
/// Bytes of a signature, a version and a type; and of the checksum behind a node.
const HEAD_LEN: u64 = 6;
const CHECKSUM_LEN: u64 = 4;
/// Types of records: chunks without filters, and with them.
const PLAIN: u8 = 10;
const FILTERED: u8 = 11;
/// More levels than any tree that fits a file has.
const MOST_LEVELS: u64 = 64;

/// What all nodes have in common.
struct Tree {
    kind: u8,
    /// Bytes of a node, however many of them it uses.
    node_len: u64,
    record_len: u64,
    /// By level, from the leaves on: the most records of a node.
    most: Vec<u64>,
    /// By level: bytes of the number of all records below a node.
    total_len: Vec<u64>,
    /// Bytes of the number of a node's records.
    count_len: u64,
}

/// A node to look at.
struct Pending {
    address: u64,
    level: usize,
    count: u64,
    /// The chunks before and behind it.
    between: (Option<Dims>, Option<Dims>),
}

pub(super) fn read(
    source: &Source<'_>,
    header: u64,
    chunks: &mut Chunks<'_>,
) -> Result<(), Damage> {
    const HEADER_LEN: u64 = 38;
    let bytes = source.sealed(header, HEADER_LEN, b"BTHD")?;
    let mut fields = Fields(&bytes[4..]);
    let (version, kind) = (fields.u8()?, fields.u8()?);
    let (node_len, record_len) = (fields.number(4)?, fields.number(2)?);
    let depth = fields.number(2)?;
    fields.take(2)?;
    let (root, count, total) = (fields.u64()?, fields.number(2)?, fields.u64()?);
    let wanted_kind = if chunks.wanted.filtered { FILTERED } else { PLAIN };
    if version != 0 || kind != wanted_kind {
        return Err(Damage("its B-tree is of another kind".into()));
    }
    let tree = Tree::new(kind, node_len, record_len, depth, chunks)?;
    if root == UNDEFINED || count == 0 {
        return if total == 0 { Ok(()) } else { Err(Damage("its B-tree has no root".into())) };
    }
    let (level, mut seen) = (depth as usize, 0);
    let mut pending = vec![Pending { address: root, level, count, between: (None, None) }];
    while let Some(node) = pending.pop() {
        seen += node.count;
        tree.node(source, &node, chunks, &mut pending)?;
    }
    if chunks.wants_all() && seen != total {
        return Err(Damage(format!("its B-tree says {total} chunks and has {seen}")));
    }
    Ok(())
}

impl Tree {
    fn new(
        kind: u8,
        node_len: u64,
        record_len: u64,
        depth: u64,
        chunks: &Chunks<'_>,
    ) -> Result<Self, Damage> {
        let place_len = 8 * chunks.wanted.grid.rank() as u64;
        let size_len = record_len.wrapping_sub(ADDRESS_LEN + 4 + place_len);
        let sound = match kind {
            FILTERED => (1..=8).contains(&size_len),
            _ => record_len == ADDRESS_LEN + place_len,
        };
        let room = node_len.checked_sub(HEAD_LEN + CHECKSUM_LEN).filter(|&room| room >= record_len);
        let (true, Some(room)) = (sound && depth <= MOST_LEVELS, room) else {
            return Err(Damage("the options of its B-tree make no sense".into()));
        };
        let leaf = room / record_len;
        let mut tree = Self {
            kind,
            node_len,
            record_len,
            most: vec![leaf],
            total_len: vec![0],
            count_len: bytes_for(leaf),
        };
        let mut total = leaf;
        for level in 1..=depth as usize {
            let pointer = tree.pointer_len(level);
            let most = room.saturating_sub(pointer) / (record_len + pointer);
            if most == 0 {
                return Err(Damage("the nodes of its B-tree have room for nothing".into()));
            }
            total = (most + 1).saturating_mul(total).saturating_add(most);
            tree.most.push(most);
            tree.total_len.push(bytes_for(total));
        }
        Ok(tree)
    }

    /// Bytes of a pointer in a node of a level.
    fn pointer_len(&self, level: usize) -> u64 {
        ADDRESS_LEN + self.count_len + self.total_len[level - 1]
    }

    /// Take the records of a node, and note its children.
    fn node(
        &self,
        source: &Source<'_>,
        node: &Pending,
        chunks: &mut Chunks<'_>,
        pending: &mut Vec<Pending>,
    ) -> Result<(), Damage> {
        let Pending { address, level, count, .. } = *node;
        if count == 0 || count > self.most[level] {
            return Err(Damage(format!("the B-tree's node at address {address} makes no sense")));
        }
        source.require(address, self.node_len)?;
        let pointers_len = if level == 0 { 0 } else { (count + 1) * self.pointer_len(level) };
        let nbytes = HEAD_LEN + count * self.record_len + pointers_len + CHECKSUM_LEN;
        let bytes = source.sealed(address, nbytes, if level == 0 { b"BTLF" } else { b"BTIN" })?;
        let mut fields = Fields(&bytes[4..]);
        if (fields.u8()?, fields.u8()?) != (0, self.kind) {
            return Err(Damage(format!("what is at address {address} is of another B-tree")));
        }
        let mut records = Fields(fields.take((count * self.record_len) as usize)?);
        let mut pointers = fields;
        let mut before = node.between.0.clone();
        let former = pending.len();
        for number in 0..=count {
            let record = (number < count).then(|| self.record(&mut records, chunks)).transpose()?;
            let behind = match &record {
                Some((place, _)) => Some(place),
                None => node.between.1.as_ref(),
            };
            if before.as_ref().zip(behind).is_some_and(|(before, behind)| before >= behind) {
                return Err(Damage(format!(
                    "keys of the B-tree's node at address {address} are out of order"
                )));
            }
            if level > 0 {
                let child = pointers.u64()?;
                let count = pointers.number(self.count_len as usize)?;
                pointers.take(self.total_len[level - 1] as usize)?;
                let between = (before, behind.cloned());
                if chunks.wants_between(between.0.as_deref(), between.1.as_deref()) {
                    pending.push(Pending { address: child, level: level - 1, count, between });
                }
            }
            let Some((place, record)) = record else { break };
            chunks.add(&place, record)?;
            before = Some(place);
        }
        let children = pending[former..].iter().map(|child| child.address);
        source.expect(children, self.node_len);
        Ok(())
    }

    /// The next record: its place in the grid, and where its bytes lie.
    fn record(
        &self,
        fields: &mut Fields<'_>,
        chunks: &Chunks<'_>,
    ) -> Result<(Dims, ChunkRecord), Damage> {
        let address = fields.u64()?;
        let rank = chunks.wanted.grid.rank();
        let (stored_nbytes, filter_mask) = if self.kind == FILTERED {
            let size_len = self.record_len - (ADDRESS_LEN + 4 + 8 * rank as u64);
            (fields.number(size_len as usize)?, fields.number(4)? as u32)
        } else {
            (chunks.chunk_nbytes(), 0)
        };
        if address == UNDEFINED {
            return Err(Damage("a chunk of its B-tree has no address".into()));
        }
        let place = (0..rank).map(|_| fields.u64()).collect::<Result<Dims, _>>()?;
        Ok((place, ChunkRecord { address, stored_nbytes, filter_mask }))
    }
}

/// Bytes that hold a number up to this (`H5VM_limit_enc_size`).
fn bytes_for(most: u64) -> u64 {
    u64::from(most.checked_ilog2().unwrap_or(0)) / 8 + 1
}
