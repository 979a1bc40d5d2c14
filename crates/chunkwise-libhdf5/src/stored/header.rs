//! Of which kind is a dataset's chunk index, and where does it begin?
//!
//! An object header is a list of messages in one or more blocks; one of them is the layout
//! (format specification, IV.A.1 and IV.A.2.i).

use chunkwise_select::Dims;

use super::bytes::{Damage, Fields, Source, UNDEFINED, not_there, unseal};

/// A chunked layout.
pub(super) struct Layout {
    /// A chunk's shape, and bytes of an element.
    pub(super) dims: Dims,
    pub(super) index: Index,
}

pub(super) enum Index {
    /// Nothing was written.
    None,
    BTree1 {
        root: u64,
    },
    BTree2 {
        header: u64,
    },
    Fixed {
        header: u64,
    },
    Extensible {
        header: u64,
    },
    Other,
}

const LAYOUT: u64 = 8;
const CONTINUATION: u64 = 16;
/// More than any header has: what leads from block to block may lead back.
const MOST_BLOCKS: usize = 10_000;

/// The layout of the dataset whose header is at `address`; None where it is of a kind that is not
/// known here.
pub(super) fn layout(source: &Source<'_>, address: u64) -> Result<Option<Layout>, Damage> {
    let mut start = source.read(address, 16)?;
    let old = start[0] == 1;
    let (mut flags, mut blocks) = (0, Vec::new());
    if old {
        let nbytes = Fields(&start[8..]).number(4)?;
        blocks.push((address.saturating_add(16), nbytes));
    } else if start.starts_with(b"OHDR\x02") {
        flags = start[5];
        let times = if flags & 0x20 != 0 { 16 } else { 0 };
        let phases = if flags & 0x10 != 0 { 4 } else { 0 };
        let (before, width) = (6 + times + phases, 1 << (flags & 3));
        start = source.read(address, before + width)?;
        let nbytes = Fields(&start[before as usize..]).number(width as usize)?;
        blocks.push((address, before.saturating_add(width + 4).saturating_add(nbytes)));
    } else {
        return Err(not_there(b"OHDR", address));
    }
    let mut at = 0;
    while let Some(&(address, nbytes)) = blocks.get(at) {
        let mut bytes = source.read(address, nbytes)?;
        let skipped = match (old, at) {
            (true, _) => 0,
            (false, 0) => start.len(),
            (false, _) => 4,
        };
        if !old {
            unseal(&mut bytes, address)?;
            if at > 0 && !bytes.starts_with(b"OCHK") {
                return Err(not_there(b"OCHK", address));
            }
        }
        let mut fields = Fields(&bytes);
        fields.take(skipped)?;
        let head_len = if old { 8 } else { 4 + usize::from(flags >> 2 & 1) * 2 };
        while fields.0.len() >= head_len {
            let mut head = Fields(fields.take(head_len)?);
            let kind = head.number(if old { 2 } else { 1 })?;
            let len = head.number(2)?;
            let shared = head.u8()? & 2 != 0;
            let mut content = Fields(fields.take(len as usize)?);
            match kind {
                LAYOUT if shared => return Ok(None),
                LAYOUT => return chunked(content),
                CONTINUATION if blocks.len() < MOST_BLOCKS => {
                    blocks.push((content.u64()?, content.u64()?));
                }
                _ => {}
            }
        }
        at += 1;
    }
    Ok(None)
}

/// The layout message, where it is one of chunks.
fn chunked(mut fields: Fields<'_>) -> Result<Option<Layout>, Damage> {
    const CHUNKED: u8 = 2;
    const SINGLE_WITH_FILTER: u8 = 2;
    let version = fields.u8()?;
    if !(3..=5).contains(&version) || fields.u8()? != CHUNKED {
        return Ok(None);
    }
    if version == 3 {
        let rank = fields.u8()?;
        let root = fields.u64()?;
        let dims = (0..rank).map(|_| fields.number(4)).collect::<Result<Dims, _>>()?;
        let index = if root == UNDEFINED { Index::None } else { Index::BTree1 { root } };
        return Ok(Some(Layout { dims, index }));
    }
    let (flags, rank, width) = (fields.u8()?, fields.u8()?, usize::from(fields.u8()?));
    if !(1..=8).contains(&width) {
        return Err(Damage(format!("a chunk shape of {width} bytes a number")));
    }
    let dims = (0..rank).map(|_| fields.number(width)).collect::<Result<Dims, _>>()?;
    let kind = fields.u8()?;
    // Options, which the index repeats.
    fields.take(match kind {
        1 if flags & SINGLE_WITH_FILTER != 0 => 12,
        3 => 1,
        4 => 5,
        5 => 6,
        _ => 0,
    })?;
    let header = fields.u64()?;
    let index = match kind {
        3..=5 if header == UNDEFINED => Index::None,
        3 => Index::Fixed { header },
        4 => Index::Extensible { header },
        5 => Index::BTree2 { header },
        _ => Index::Other,
    };
    Ok(Some(Layout { dims, index }))
}
