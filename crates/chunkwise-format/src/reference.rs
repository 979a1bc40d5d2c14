//! What does a stored reference lead to?
//!
//! References to objects are addresses.  Those to regions are in the global heap: an object's
//! address, and a selection.  The references of HDF5 1.12 have a head, and keep the rest in the
//! global heap, unless it is short.

use crate::context::Context;
use crate::error::{FormatError, Structure};
use crate::fields::{Fields, Place};
use crate::heap_global::Collection;
use crate::selection::Selection;

/// What a reference leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The address of the object's header.
    pub object: u64,
    /// Elements of it.
    pub region: Option<Selection>,
    /// An attribute of it.
    pub attribute: Option<Vec<u8>>,
    /// The file that has it, where that is another one.
    pub file: Option<Vec<u8>>,
}

impl Reference {
    fn to(object: u64) -> Self {
        Self { object, region: None, attribute: None, file: None }
    }
}

/// Where bytes in the global heap are: a collection, and a number in it.
pub(crate) fn heap_id(fields: &mut Fields<'_>) -> Result<Option<(u64, u32)>, FormatError> {
    let (collection, number) = (fields.address()?, fields.u32()?);
    // Where nothing was written, all bits are zero.
    Ok(collection.filter(|&collection| collection > 0).map(|collection| (collection, number)))
}

/// Read a stored reference of a kind (see `Class::Reference`); None where it leads nowhere.
pub(crate) fn read(
    context: Context<'_>,
    kind: u8,
    bytes: &[u8],
) -> Result<Option<Reference>, FormatError> {
    let source = context.source();
    let place = Place::new(Structure::Reference, 0);
    let mut fields = Fields::new(bytes, place, source.widths());
    match kind {
        0 => Ok(fields.address()?.filter(|&object| object > 0).map(Reference::to)),
        1 => {
            let Some((collection, number)) = heap_id(&mut fields)? else { return Ok(None) };
            let collection = Collection::open(&source, collection)?;
            let part = collection.part(number, Structure::Reference)?;
            let mut fields = part.fields();
            let object = fields.defined()?;
            let region = Some(Selection::read(&mut fields)?);
            Ok(Some(Reference { region, ..Reference::to(object) }))
        }
        _ => {
            let head = fields.take(2)?;
            // Bytes of the rest, and where it is.
            if fields.u32()? == 0 {
                return Ok(None);
            }
            let Some((collection, number)) = heap_id(&mut fields)? else { return Ok(None) };
            let collection = Collection::open(&source, collection)?;
            let part = collection.part(number, Structure::Reference)?;
            new(&mut part.fields(), head).map(Some)
        }
    }
}

/// What is in the heap of a reference of HDF5 1.12, whose head has a kind and flags.
fn new(fields: &mut Fields<'_>, head: &[u8]) -> Result<Reference, FormatError> {
    const EXTERNAL: u8 = 1;
    let [kind, flags] = *head else { return Err(fields.wrong("it has no head")) };
    let token_len = fields.u8()?;
    let mut token = fields.part(token_len.into())?;
    let mut found = Reference::to(token.defined()?);
    if flags & EXTERNAL != 0 {
        let len = fields.u16()?;
        found.file = Some(fields.take(len.into())?.to_vec());
    }
    match kind {
        2 => {}
        3 => {
            // Bytes of the selection, and the rank of its dataspace.
            fields.skip(8)?;
            found.region = Some(Selection::read(fields)?);
        }
        4 => {
            let len = fields.u16()?;
            found.attribute = Some(fields.take(len.into())?.to_vec());
        }
        kind => return Err(fields.unknown("a reference of kind", kind)),
    }
    Ok(found)
}
