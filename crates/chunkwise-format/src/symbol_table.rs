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

/// Where a group's links are.
pub(crate) struct Tree {
    pub(crate) address: u64,
    /// Half of the most children of a node, and half of the most symbols in a list.
    pub(crate) k: [u16; 2],
    pub(crate) heap: u64,
}

/// Give each link, in the order of names; with a name, only those of nodes that may have it.
pub(crate) fn each(
    source: &Source<'_>,
    tree: &Tree,
    name: Option<&[u8]>,
    each: &mut Each<'_>,
    lost: &mut Lost<'_>,
) -> Result<(), FormatError> {
    let heap = LocalHeap::open(source, tree.heap)?;
    let mut last = Vec::new();
    let mut seen = HashSet::new();
    let mut pending = vec![Pending { address: tree.address, level: None, keys: (b"", None) }];
    while let Some(Pending { address, level, keys }) = pending.pop() {
        let is_leaf = level == Some(None);
        let kind = if is_leaf { Structure::SymbolTableNode } else { Structure::GroupBTree };
        let place = Place::new(kind, address);
        let node = Node { place, heap: &heap, k: tree.k, keys };
        let done = match seen.insert(address) {
            false => Err(place.wrong("its tree leads to it twice")),
            true if is_leaf => node.symbols(source, name, &mut last, each, lost).map(|flow| {
                if flow.is_break() {
                    pending.clear();
                }
            }),
            true => node.children(source, name, level.flatten(), lost).map(|found| {
                source.expect(found.iter().map(|child| child.address), HEAD_LEN);
                // The last first, so that names come in their order.
                pending.extend(found.into_iter().rev());
            }),
        };
        done.or_else(&mut *lost)?;
    }
    Ok(())
}

/// A node that is to be read.
struct Pending<'h> {
    address: u64,
    /// None for the root, whose level is what it says; then None for a list of symbols.
    level: Option<Option<u8>>,
    keys: Keys<'h>,
}

/// Names in a node lie behind the first of these, up to the second; with None, there is no end.
type Keys<'h> = (&'h [u8], Option<&'h [u8]>);

struct Node<'h> {
    place: Place,
    heap: &'h LocalHeap<'h>,
    k: [u16; 2],
    keys: Keys<'h>,
}

impl<'h> Node<'h> {
    /// The children: with a name, the one that may have it.
    fn children(
        &self,
        source: &Source<'_>,
        name: Option<&[u8]>,
        stated: Option<u8>,
        lost: &mut Lost<'_>,
    ) -> Result<Vec<Pending<'h>>, FormatError> {
        let (place, widths) = (self.place, source.widths());
        let head_len = widths.nbytes(8, 2, 0);
        // A key is as wide as a length, and one stands behind the last child.
        let len_of =
            |count: u64| widths.nbytes(8, count.saturating_add(2), count.saturating_add(1));
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
        let [most, _] = self.k.map(|k| u64::from(k).saturating_mul(2));
        source.require_room(place, len_of(most)).or_else(&mut *lost)?;
        let node = source.read_node(place, (count, most), len_of)?;
        let mut fields = node.fields();
        fields.skip(head_len)?;
        let mut children = Vec::new();
        let mut key = fields.length()?;
        for _ in 0..count {
            let address = fields.defined()?;
            let next = fields.length()?;
            let (begin, end) = (self.heap.text(key)?, self.heap.text(next)?);
            // Behind the key before it, up to the one after it.
            if name.is_none_or(|name| begin < name && name <= end) {
                let end = self.keys.1.map_or(end, |last| last.min(end));
                let keys = (begin.max(self.keys.0), Some(end));
                children.push(Pending { address, level: Some(level.checked_sub(1)), keys });
            }
            key = next;
        }
        Ok(children)
    }

    /// Give the links of a list of symbols.
    fn symbols(
        &self,
        source: &Source<'_>,
        name: Option<&[u8]>,
        last: &mut Vec<u8>,
        each: &mut Each<'_>,
        lost: &mut Lost<'_>,
    ) -> Result<ControlFlow<()>, FormatError> {
        let (place, heap) = (self.place, self.heap);
        let head = source.read(place, 8)?;
        let mut fields = head.fields();
        fields.signature(b"SNOD")?;
        fields.version(1)?;
        fields.skip(1)?;
        let count = u64::from(fields.u16()?);
        // A name's place in the heap is as wide as a length.
        let entry_len = source.widths().nbytes(24, 1, 1);
        let len_of = |count: u64| count.saturating_mul(entry_len).saturating_add(8);
        let [_, most] = self.k.map(|k| u64::from(k).saturating_mul(2));
        source.require_room(place, len_of(most)).or_else(&mut *lost)?;
        let node = source.read_node(place, (count, most), len_of)?;
        let mut fields = node.fields();
        fields.skip(8)?;
        let (begin, end) = self.keys;
        let mut flow = ControlFlow::Continue(());
        for _ in 0..count {
            let mut entry = fields.part(entry_len)?;
            let mut link = || {
                let its_name = heap.text(entry.length()?)?;
                // libhdf5 looks names up by halves: it does not find what is out of order.
                if its_name <= last.as_slice() {
                    lost(place.wrong("its names are not in order"))?;
                } else if its_name <= begin || end.is_some_and(|end| its_name > end) {
                    lost(place.wrong("a name is not between the keys that lead to it"))?;
                }
                last.clear();
                last.extend_from_slice(its_name);
                // libhdf5 decodes all of a node, and refuses all for the sake of one.
                let target = target(place, &mut entry, heap)?;
                if flow.is_break() || name.is_some_and(|name| name != its_name) {
                    return Ok(None);
                }
                source.charge(place, its_name.len() as u64)?;
                let name = its_name.to_vec();
                Ok(Some(Link { name, charset: Charset::Ascii, creation_order: None, target }))
            };
            match link() {
                Ok(Some(link)) => flow = each(link),
                Ok(None) => {}
                Err(error) => lost(error)?,
            }
        }
        Ok(flow)
    }
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
