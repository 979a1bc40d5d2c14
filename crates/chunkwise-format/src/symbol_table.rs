//! Which links does a group of the old kind hold?
//!
//! A B-tree of nodes leads to lists of symbols, in the order of their names, which are in a local
//! heap (format specification, III.A.1, III.B and III.C).

use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::datatype::Charset;
use crate::error::{FormatError, Structure};
use crate::fields::Place;
use crate::heap_local::LocalHeap;
use crate::link::{Link, Target};
use crate::source::Source;

/// A node of the B-tree, of groups.
const GROUP: u8 = 0;

/// What is done with each link; breaks where no other is wanted.
pub(crate) type Each<'e> = dyn FnMut(Link) -> ControlFlow<()> + 'e;

/// Give each link, in the order of names; with a name, only those of nodes that may have it.
pub(crate) fn each(
    source: &Source<'_>,
    tree: u64,
    heap: u64,
    name: Option<&[u8]>,
    each: &mut Each<'_>,
) -> Result<(), FormatError> {
    let heap = LocalHeap::open(source, heap)?;
    let mut last = Vec::new();
    let mut seen = HashSet::new();
    let mut pending = vec![(tree, None)];
    while let Some((address, level)) = pending.pop() {
        if level == Some(None) {
            let place = Place::new(Structure::SymbolTableNode, address);
            if !seen.insert(address) {
                return Err(place.wrong("its tree leads to it twice"));
            }
            if nodes(source, address, &heap, name, &mut last, each)?.is_break() {
                return Ok(());
            }
            continue;
        }
        let place = Place::new(Structure::GroupBTree, address);
        if !seen.insert(address) {
            return Err(place.wrong("its tree leads to it twice"));
        }
        let (its_level, children) = children(source, place, &heap, name)?;
        if level.flatten().is_some_and(|level: u8| level != its_level) {
            return Err(place.wrong("it is of another level than its parent says"));
        }
        let below = its_level.checked_sub(1);
        // The last first, so that names come in their order.
        pending.extend(children.into_iter().rev().map(|child| (child, Some(below))));
    }
    Ok(())
}

/// The level of a node, and its children: with a name, the one that may have it.
fn children(
    source: &Source<'_>,
    place: Place,
    heap: &LocalHeap<'_>,
    name: Option<&[u8]>,
) -> Result<(u8, Vec<u64>), FormatError> {
    let widths = source.widths();
    let head_len = widths.nbytes(8, 2, 0);
    let head = source.read(place, head_len)?;
    let mut fields = head.fields();
    fields.signature(b"TREE")?;
    if fields.u8()? != GROUP {
        return Err(place.wrong("it is not the B-tree of a group"));
    }
    let (level, count) = (fields.u8()?, u64::from(fields.u16()?));
    // A key is as wide as a length, and one stands behind the last child.
    let node =
        source.read(place, widths.nbytes(8, count.saturating_add(2), count.saturating_add(1)))?;
    let mut fields = node.fields();
    fields.skip(head_len)?;
    let mut children = Vec::new();
    let mut key = fields.length()?;
    for _ in 0..count {
        let child = fields.defined()?;
        let next = fields.length()?;
        let wanted = match name {
            // Behind the key before it, up to the one after it.
            Some(name) => heap.text(key)? < name && name <= heap.text(next)?,
            None => true,
        };
        if wanted {
            children.push(child);
        }
        key = next;
    }
    Ok((level, children))
}

/// Give the links of a list of symbols.
fn nodes(
    source: &Source<'_>,
    address: u64,
    heap: &LocalHeap<'_>,
    name: Option<&[u8]>,
    last: &mut Vec<u8>,
    each: &mut Each<'_>,
) -> Result<ControlFlow<()>, FormatError> {
    let place = Place::new(Structure::SymbolTableNode, address);
    let head = source.read(place, 8)?;
    let mut fields = head.fields();
    fields.signature(b"SNOD")?;
    fields.version(1)?;
    fields.skip(1)?;
    let count = u64::from(fields.u16()?);
    // A name's place in the heap is as wide as a length.
    let widths = source.widths();
    let entry_len = widths.nbytes(24, 1, 1);
    let node = source.read(place, count.saturating_mul(entry_len).saturating_add(8))?;
    let mut fields = node.fields();
    fields.skip(8)?;
    for _ in 0..count {
        const SOFT: u32 = 2;
        let its_name = heap.text(fields.length()?)?;
        // libhdf5 looks names up by halves: it does not find what is out of order.
        if its_name <= last.as_slice() {
            return Err(place.wrong("its names are not in order"));
        }
        last.clear();
        last.extend_from_slice(its_name);
        let (header, cached) = (fields.address()?, fields.u32()?);
        fields.skip(4)?;
        let mut scratch = fields.part(16)?;
        if name.is_some_and(|name| name != its_name) {
            continue;
        }
        if cached > SOFT {
            return Err(place.wrong("an entry is of an unknown kind"));
        }
        let target = match (cached, header) {
            (SOFT, _) => Target::Soft(heap.text(u64::from(scratch.u32()?))?.to_vec()),
            (_, Some(header)) => Target::Hard(header),
            (_, None) => return Err(place.wrong("a link leads nowhere")),
        };
        source.charge(place, its_name.len() as u64)?;
        let name = its_name.to_vec();
        let link = Link { name, charset: Charset::Ascii, creation_order: None, target };
        if each(link).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
