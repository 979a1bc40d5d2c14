//! What does a stored reference lead to?
//!
//! References to objects are addresses.  Those to regions are in the global heap: an object's
//! address, and a selection.  The references of HDF5 1.12 have a head; behind it is an object's
//! address, or where in the global heap the rest is.

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
            let head = [fields.u8()?, fields.u8()?];
            match head {
                [0, _] => Ok(None),
                [OBJECT, flags] if flags & EXTERNAL == 0 => token(&mut fields).map(Some),
                _ => {
                    // Bytes of what is in the heap.
                    fields.skip(4)?;
                    let Some((collection, number)) = heap_id(&mut fields)? else {
                        return Ok(None);
                    };
                    let collection = Collection::open(&source, collection)?;
                    let part = collection.part(number, Structure::Reference)?;
                    new(&mut part.fields(), head).map(Some)
                }
            }
        }
    }
}

/// Kinds of references of HDF5 1.12, and a bit of their flags.
const OBJECT: u8 = 2;
const REGION: u8 = 3;
const ATTRIBUTE: u8 = 4;
const EXTERNAL: u8 = 1;

/// An address behind its length.
fn token(fields: &mut Fields<'_>) -> Result<Reference, FormatError> {
    let len = fields.u8()?;
    let mut token = fields.part(len.into())?;
    token.defined().map(Reference::to)
}

/// What is in the heap of a reference of HDF5 1.12.
fn new(fields: &mut Fields<'_>, [kind, flags]: [u8; 2]) -> Result<Reference, FormatError> {
    let mut found = token(fields)?;
    if flags & EXTERNAL != 0 {
        let len = fields.u16()?;
        found.file = Some(fields.take(len.into())?.to_vec());
    }
    match kind {
        OBJECT => {}
        REGION => {
            // Bytes of the selection, and the rank of its dataspace.
            fields.skip(8)?;
            found.region = Some(Selection::read(fields)?);
        }
        ATTRIBUTE => {
            let len = fields.u16()?;
            found.attribute = Some(fields.take(len.into())?.to_vec());
        }
        kind => return Err(fields.unknown("a reference of kind", kind)),
    }
    Ok(found)
}
