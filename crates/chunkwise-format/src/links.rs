//! Which links does a group hold, and which has a name?
//!
//! Few links are messages of the header; many are in a fractal heap, to which B-trees lead by the
//! checksum of names, and by the order in which links were made.  Groups of the old kind have a
//! symbol table (format specification, IV.A.2.c).

use std::ops::ControlFlow;

use crate::checksum::checksum;
use crate::context::Context;
use crate::error::{FormatError, Lost, Structure};
use crate::fields::Fields;
use crate::header::{Header, kind};
use crate::heap_fractal::indexed;
use crate::heap_local::LocalHeap;
use crate::link::Link;
use crate::shared;
use crate::source::Source;
use crate::symbol_table;

/// Records of a B-tree by name: a checksum, and an ID in the heap.
const BY_NAME: u8 = 5;
const ID_LEN: u64 = 7;

/// How a group keeps its links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kept {
    /// Whether the order is known in which they were made.
    tracked: bool,
    heap: Option<u64>,
    by_name: Option<u64>,
}

impl Kept {
    fn read(mut fields: Fields<'_>) -> Result<Self, FormatError> {
        fields.version(0)?;
        let flags = fields.u8()?;
        let tracked = flags & 1 != 0;
        if tracked {
            fields.skip(8)?;
        }
        Ok(Self { tracked, heap: fields.address()?, by_name: fields.address()? })
    }
}

/// Whether the order is known in which links were made.
pub(crate) fn tracked(header: &Header<'_>) -> Result<bool, FormatError> {
    match header.first(kind::LINK_INFO) {
        Some(message) => Ok(Kept::read(message.part.fields())?.tracked),
        None => Ok(false),
    }
}

/// All links, in the order of their names; without those that fail, where `lost` goes on.
pub(crate) fn all(
    context: Context<'_>,
    header: &Header<'_>,
    lost: &mut Lost<'_>,
) -> Result<Vec<Link>, FormatError> {
    let mut found = Vec::new();
    let mut add = |link| {
        found.push(link);
        ControlFlow::Continue(())
    };
    each(context, header, None, &mut add, lost).or_else(lost)?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Bytes of names that are read to find one: in a group of the old kind those of all.
pub(crate) fn names_nbytes(context: Context<'_>, header: &Header<'_>) -> Result<u64, FormatError> {
    let Some(message) = header.first(kind::SYMBOL_TABLE) else { return Ok(0) };
    let mut fields = message.part.fields();
    fields.defined()?;
    Ok(LocalHeap::head(&context.source(), fields.defined()?)?.nbytes)
}

/// The link with a name.
pub(crate) fn one(
    context: Context<'_>,
    header: &Header<'_>,
    name: &[u8],
) -> Result<Option<Link>, FormatError> {
    let mut found = None;
    let mut take = |link| {
        found = Some(link);
        ControlFlow::Break(())
    };
    each(context, header, Some(name), &mut take, &mut Err)?;
    Ok(found)
}

/// Give each link, or those with a name.
fn each(
    context: Context<'_>,
    header: &Header<'_>,
    name: Option<&[u8]>,
    each: &mut symbol_table::Each<'_>,
    lost: &mut Lost<'_>,
) -> Result<(), FormatError> {
    let source = context.source();
    if let Some(message) = header.first(kind::SYMBOL_TABLE) {
        let mut fields = message.part.fields();
        let (tree, heap) = (fields.defined()?, fields.defined()?);
        let tree = symbol_table::Tree { address: tree, k: context.group_k(), heap };
        return symbol_table::each(&source, &tree, name, each, lost);
    }
    let Some(message) = header.first(kind::LINK_INFO) else { return Ok(()) };
    let kept = Kept::read(message.part.fields())?;
    if let (Some(heap), Some(tree)) = (kept.heap, kept.by_name) {
        return dense(&source, heap, tree, name, each, lost);
    }
    for message in header.all(kind::LINK) {
        let found = shared::content(context, &source, message);
        match found.and_then(|found| Link::read(&mut found.part.fields())) {
            Ok(link) if name.is_some_and(|name| name != link.name) => {}
            Ok(link) => {
                if each(link).is_break() {
                    break;
                }
            }
            Err(error) => lost(error)?,
        }
    }
    Ok(())
}

/// Give links of a fractal heap.
fn dense(
    source: &Source<'_>,
    heap: u64,
    tree: u64,
    name: Option<&[u8]>,
    each: &mut symbol_table::Each<'_>,
    lost: &mut Lost<'_>,
) -> Result<(), FormatError> {
    let (heap, tree) = indexed(source, heap, tree)?;
    tree.expect(BY_NAME, ID_LEN.saturating_add(4))?;
    let (mut done, mut count) = (false, 0u64);
    let mut link = |record: &[u8]| {
        let id = record.get(4..).unwrap_or_default();
        let part = heap.object(id, Structure::Message(kind::LINK))?;
        count = count.saturating_add(1);
        source.count(part.place(), count)?;
        let link = Link::read(&mut part.fields())?;
        if !done && name.is_none_or(|name| name == link.name) {
            done = each(link).is_break();
        }
        Ok(())
    };
    match name.map(checksum) {
        Some(sum) => tree.some(
            &|record| {
                let stored = record.first_chunk().copied().map_or(0, u32::from_le_bytes);
                Ok(stored.cmp(&sum))
            },
            &mut link,
        ),
        None => tree.readable(&mut link, lost),
    }
}
