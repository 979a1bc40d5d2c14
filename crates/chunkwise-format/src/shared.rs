//! Where is the content of a message that says where it is?
//!
//! In the header of a committed object, which has a message of the same kind, or in the fractal
//! heap of a table of shared messages (format specification, IV.A.2, 'shared message').

use crate::context::Context;
use crate::error::{FormatError, Problem, Structure};
use crate::fields::{Fields, Place};
use crate::header::{Header, Message};
use crate::heap_fractal::FractalHeap;
use crate::source::{Part, Source};

/// A message's content, wherever it is.
pub(crate) struct Found<'f> {
    pub(crate) part: Part<'f>,
    /// The header of the committed object that has it.
    pub(crate) committed: Option<u64>,
}

/// Where a message's content is.
enum Home {
    Header(u64),
    Heap([u8; 8]),
}

/// The content of a message.
pub(crate) fn content<'f>(
    context: Context<'f>,
    source: &Source<'f>,
    message: &Message<'f>,
) -> Result<Found<'f>, FormatError> {
    match message.shared {
        false => Ok(Found { part: message.part.clone(), committed: None }),
        true => find(context, source, message.kind, &mut message.part.fields()),
    }
}

/// The content of a message of this kind, whose place comes next.
pub(crate) fn find<'f>(
    context: Context<'f>,
    source: &Source<'f>,
    kind: u16,
    fields: &mut Fields<'_>,
) -> Result<Found<'f>, FormatError> {
    match home(fields)? {
        Home::Header(address) => {
            let place = Place::new(Structure::ObjectHeader, address);
            let header = Header::read(source, address)?;
            match header.first(kind) {
                Some(message) if !message.shared => {
                    Ok(Found { part: message.part.clone(), committed: Some(address) })
                }
                Some(_) => Err(place.wrong("a shared message is shared with another")),
                None => Err(place.wrong("it has no message of the kind that is shared")),
            }
        }
        Home::Heap(id) => {
            let part = in_table(context, source, kind, fields.place(), &id)?;
            Ok(Found { part, committed: None })
        }
    }
}

fn home(fields: &mut Fields<'_>) -> Result<Home, FormatError> {
    const IN_HEAP: u8 = 1;
    let version = fields.u8()?;
    let kind = fields.u8()?;
    match version {
        1 => {
            fields.skip(6)?;
            fields.length()?;
            fields.defined().map(Home::Header)
        }
        2 => fields.defined().map(Home::Header),
        3 if kind == IN_HEAP => {
            let id = fields.take(8)?.first_chunk().copied();
            id.map(Home::Heap).ok_or_else(|| fields.error(Problem::CutOff))
        }
        3 => fields.defined().map(Home::Header),
        version => Err(fields.error(Problem::Version(version))),
    }
}

/// A message of the table of shared messages.
pub(crate) fn in_table<'f>(
    context: Context<'f>,
    source: &Source<'f>,
    kind: u16,
    place: Place,
    id: &[u8],
) -> Result<Part<'f>, FormatError> {
    let extension = context.facts.extension.as_ref().map_err(Clone::clone)?;
    let bit = 1u16.checked_shl(kind.into()).unwrap_or(0);
    let index = extension.shared_messages.iter().find(|index| index.kinds & bit != 0);
    let Some(heap) = index.and_then(|index| index.heap) else {
        return Err(place.wrong("the file has no table of shared messages of its kind"));
    };
    FractalHeap::open(source, heap)?.object(id, Structure::Message(kind))
}
