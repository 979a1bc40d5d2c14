//! Which attributes does an object have?
//!
//! Few are messages of the header; many are in a fractal heap, to which a B-tree leads by the
//! checksum of names; large ones are huge objects of that heap.  Any of them may be in the file's
//! table of shared messages (format specification, IV.A.2.v).

use crate::attribute::Attribute;
use crate::checksum::checksum;
use crate::context::Context;
use crate::error::{FormatError, Lost, Structure};
use crate::fields::{Fields, Place};
use crate::header::{Header, kind};
use crate::heap_fractal::{FractalHeap, indexed};
use crate::shared;
use crate::source::Source;

/// Records of a B-tree by name: an ID in the heap, flags, creation order, and a checksum.
const BY_NAME: u8 = 8;
const ID_LEN: u64 = 8;
const RECORD_LEN: u64 = ID_LEN + 9;
/// A bit of a message's flags.
const SHARED: u8 = 2;

/// A record of the B-tree.
struct Record<'r> {
    id: &'r [u8],
    shared: bool,
    creation_order: u32,
    sum: u32,
}

/// All attributes, in the order of their names; without those that fail, where `lost` goes on.
pub(crate) fn all(
    context: Context<'_>,
    header: &Header<'_>,
    lost: &mut Lost<'_>,
) -> Result<Vec<Attribute>, FormatError> {
    let mut found = Vec::new();
    each(context, header, None, &mut |attribute| found.push(attribute), lost).or_else(lost)?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// The attribute with a name.
pub(crate) fn one(
    context: Context<'_>,
    header: &Header<'_>,
    name: &[u8],
) -> Result<Option<Attribute>, FormatError> {
    let mut found = None;
    each(context, header, Some(name), &mut |attribute| found = Some(attribute), &mut Err)?;
    Ok(found)
}

/// Give each attribute, or that with a name.
fn each(
    context: Context<'_>,
    header: &Header<'_>,
    name: Option<&[u8]>,
    each: &mut dyn FnMut(Attribute),
    lost: &mut Lost<'_>,
) -> Result<(), FormatError> {
    let source = context.source();
    let mut count = 0u64;
    let wanted = |attribute: &Attribute| name.is_none_or(|name| name == attribute.name);
    for message in header.all(kind::ATTRIBUTE) {
        let found = shared::content(context, &source, message);
        match found.and_then(|found| Attribute::read(context, &source, &mut found.part.fields())) {
            Ok(mut attribute) if wanted(&attribute) => {
                attribute.creation_order = message.creation_order.map(u32::from);
                each(attribute);
            }
            Ok(_) => {}
            Err(error) => lost(error)?,
        }
    }
    let Some(message) = header.first(kind::ATTRIBUTE_INFO) else { return Ok(()) };
    let (tracked, heap, tree) = kept(message.part.fields())?;
    let (Some(heap), Some(tree)) = (heap, tree) else { return Ok(()) };
    let (heap, tree) = indexed(&source, heap, tree)?;
    tree.expect(BY_NAME, RECORD_LEN)?;
    let mut take = |bytes: &[u8]| {
        let place = message.part.place();
        count = count.saturating_add(1);
        source.count(place, count)?;
        let record = record(&source, place, bytes)?;
        let mut attribute = stored(context, &source, &heap, &record)?;
        attribute.creation_order = tracked.then_some(record.creation_order);
        if wanted(&attribute) {
            each(attribute);
        }
        Ok(())
    };
    match name.map(checksum) {
        Some(sum) => tree.some(
            &|bytes| Ok(record(&source, message.part.place(), bytes)?.sum.cmp(&sum)),
            &mut take,
        ),
        None => tree.readable(&mut take, lost),
    }
}

/// Whether the order is tracked, the heap, and the B-tree by name.
fn kept(mut fields: Fields<'_>) -> Result<(bool, Option<u64>, Option<u64>), FormatError> {
    fields.version(0)?;
    let flags = fields.u8()?;
    let tracked = flags & 1 != 0;
    if tracked {
        fields.skip(2)?;
    }
    Ok((tracked, fields.address()?, fields.address()?))
}

fn record<'r>(
    source: &Source<'_>,
    place: Place,
    bytes: &'r [u8],
) -> Result<Record<'r>, FormatError> {
    let mut fields = Fields::new(bytes, place, source.widths());
    let id = fields.take(ID_LEN)?;
    let shared = fields.u8()? & SHARED != 0;
    Ok(Record { id, shared, creation_order: fields.u32()?, sum: fields.u32()? })
}

/// The attribute of a record.
fn stored<'f>(
    context: Context<'f>,
    source: &Source<'f>,
    heap: &FractalHeap<'_, '_>,
    record: &Record<'_>,
) -> Result<Attribute, FormatError> {
    let place = Place::new(Structure::Message(kind::ATTRIBUTE), 0);
    let part = match record.shared {
        true => shared::in_table(context, source, kind::ATTRIBUTE, place, record.id)?,
        false => heap.object(record.id, place.structure)?,
    };
    Attribute::read(context, source, &mut part.fields())
}
