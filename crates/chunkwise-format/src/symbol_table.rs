//! Which links does a group of the old kind hold?
//!
//! A B-tree of nodes leads to lists of symbols, in the order of their names, which are in a local
//! heap (format specification, III.A.1, III.B and III.C).

use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::datatype::Charset;
use crate::error::{FormatError, Lost, Structure};
use crate::fields::{Fields, Place};
use crate::heap_local::LocalHeap;
use crate::link::{Link, Target};
use crate::source::{HEAD_LEN, Source};

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
    lost: &mut Lost<'_>,
) -> Result<(), FormatError> {
    let heap = LocalHeap::open(source, heap)?;
    let mut last = Vec::new();
    let mut seen = HashSet::new();
    let mut pending = vec![(tree, None)];
    while let Some((address, level)) = pending.pop() {
        let is_leaf = level == Some(None);
        let kind = if is_leaf { Structure::SymbolTableNode } else { Structure::GroupBTree };
        let place = Place::new(kind, address);
        let done = match seen.insert(address) {
            false => Err(place.wrong("its tree leads to it twice")),
            true if is_leaf => {
                nodes(source, place, &heap, name, &mut last, each, lost).map(|flow| {
                    if flow.is_break() {
                        pending.clear();
                    }
                })
            }
            true => {
                children(source, place, &heap, name, level.flatten()).map(|(its_level, found)| {
                    let below = its_level.checked_sub(1);
                    source.expect(found.iter().copied(), HEAD_LEN);
                    // The last first, so that names come in their order.
                    pending.extend(found.into_iter().rev().map(|child| (child, Some(below))));
                })
            }
        };
        done.or_else(&mut *lost)?;
    }
    Ok(())
}

/// The level of a node, and its children: with a name, the one that may have it.
fn children(
    source: &Source<'_>,
    place: Place,
    heap: &LocalHeap<'_>,
    name: Option<&[u8]>,
    stated: Option<u8>,
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
    if stated.is_some_and(|stated| stated != level) {
        return Err(place.wrong("it is of another level than its parent says"));
    }
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
    place: Place,
    heap: &LocalHeap<'_>,
    name: Option<&[u8]>,
    last: &mut Vec<u8>,
    each: &mut Each<'_>,
    lost: &mut Lost<'_>,
) -> Result<ControlFlow<()>, FormatError> {
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
        let mut entry = fields.part(entry_len)?;
        let mut link = || {
            let its_name = heap.text(entry.length()?)?;
            // libhdf5 looks names up by halves: it does not find what is out of order.
            if its_name <= last.as_slice() {
                lost(place.wrong("its names are not in order"))?;
            }
            last.clear();
            last.extend_from_slice(its_name);
            if name.is_some_and(|name| name != its_name) {
                return Ok(None);
            }
            source.charge(place, its_name.len() as u64)?;
            let (name, target) = (its_name.to_vec(), target(place, &mut entry, heap)?);
            Ok(Some(Link { name, charset: Charset::Ascii, creation_order: None, target }))
        };
        match link() {
            Ok(Some(link)) => {
                if each(link).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(None) => {}
            Err(error) => lost(error)?,
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Where an entry leads, behind its name.
fn target(
    place: Place,
    entry: &mut Fields<'_>,
    heap: &LocalHeap<'_>,
) -> Result<Target, FormatError> {
    const SOFT: u32 = 2;
    let (header, cached) = (entry.address()?, entry.u32()?);
    entry.skip(4)?;
    match (cached, header) {
        (3.., _) => Err(place.wrong("an entry is of an unknown kind")),
        (SOFT, _) => Ok(Target::Soft(heap.text(u64::from(entry.u32()?))?.to_vec())),
        (_, Some(header)) => Ok(Target::Hard(header)),
        (_, None) => Err(place.wrong("a link leads nowhere")),
    }
}
