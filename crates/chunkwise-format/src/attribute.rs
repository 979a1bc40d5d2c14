//! What is an attribute called, and what is its value?
//!
//! The message has a name, a datatype, a dataspace and the values, one behind the other; the
//! datatype and the dataspace may be elsewhere (format specification, IV.A.2.m).

use crate::context::Context;
use crate::dataspace::Dataspace;
use crate::datatype::{Charset, Datatype};
use crate::error::{FormatError, Problem};
use crate::fields::{Fields, until_zero};
use crate::header::kind;
use crate::shared;
use crate::source::Source;

/// An attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: Vec<u8>,
    /// The characters of the name.
    pub charset: Charset,
    /// When it was made, beside others of its object, where this is tracked.
    pub creation_order: Option<u32>,
    /// What its values are.
    pub datatype: Datatype,
    /// The bytes that state this type; others may follow.
    pub datatype_message: Vec<u8>,
    /// The shape of its values.
    pub dataspace: Dataspace,
    /// Its values, as stored.
    pub value: Vec<u8>,
}

impl Attribute {
    /// The content of a message.
    pub(crate) fn read<'f>(
        context: Context<'f>,
        source: &Source<'f>,
        fields: &mut Fields<'_>,
    ) -> Result<Self, FormatError> {
        let version = fields.u8()?;
        if !(1..=3).contains(&version) {
            return Err(fields.error(Problem::Version(version)));
        }
        // Reserved in the first version.
        let flags = fields.u8()? & if version == 1 { 0 } else { 3 };
        let lens = [fields.u16()?, fields.u16()?, fields.u16()?];
        let charset = Charset::of(if version == 3 { fields.u8()? } else { 0 });
        // To the next multiple of 8.
        let gap = |len: u16| if version == 1 { u64::from(len.wrapping_neg() % 8) } else { 0 };
        let stored = fields.take(lens[0].into())?;
        fields.skip(gap(lens[0]))?;
        // As libhdf5 does, which takes any last byte for the end (H5O__attr_decode).
        let len = usize::from(lens[0]).checked_sub(1);
        let name = until_zero(len.and_then(|len| stored.get(..len)).unwrap_or_default()).to_vec();
        if name.is_empty() || Some(name.len()) != len {
            return Err(fields.wrong("its name has another length than stated"));
        }
        // What lies between is no part of either.
        let datatype_fields = fields.part(lens[1].into())?;
        fields.skip(gap(lens[1]))?;
        let (datatype, datatype_message) =
            datatype(context, source, datatype_fields, flags & 1 != 0)?;
        let mut dataspace_fields = fields.part(lens[2].into())?;
        fields.skip(gap(lens[2]))?;
        let dataspace = match flags & 2 != 0 {
            true => {
                let found = shared::find(context, source, kind::DATASPACE, &mut dataspace_fields)?;
                Dataspace::read(&mut found.part.fields())?
            }
            false => Dataspace::read(&mut dataspace_fields)?,
        };
        let nbytes = dataspace.count().and_then(|n| n.checked_mul(datatype.nbytes.into()));
        let Some(nbytes) = nbytes else {
            return Err(fields.wrong("it has more values than there are numbers"));
        };
        let value = fields.take(nbytes)?.to_vec();
        let creation_order = None;
        Ok(Self { name, charset, creation_order, datatype, datatype_message, dataspace, value })
    }
}

/// A datatype, which may be that of a committed object, and the message that states it.
fn datatype<'f>(
    context: Context<'f>,
    source: &Source<'f>,
    mut fields: Fields<'_>,
    is_shared: bool,
) -> Result<(Datatype, Vec<u8>), FormatError> {
    if !is_shared {
        let message = fields.rest().to_vec();
        return Ok((Datatype::read(&mut fields)?, message));
    }
    let found = shared::find(context, source, kind::DATATYPE, &mut fields)?;
    let datatype = Datatype::read(&mut found.part.fields())?;
    let message = found.part.bytes().to_vec();
    Ok((Datatype { committed: found.committed, ..datatype }, message))
}
