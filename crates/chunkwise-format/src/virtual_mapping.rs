//! Which elements of which other datasets does a virtual dataset show?
//!
//! The list of mappings is an object of the global heap, sealed with a checksum
//! (format specification, VII.B of version 3: 'virtual dataset').

use crate::error::{FormatError, Problem, Structure};
use crate::heap_global::Collection;
use crate::selection::Selection;
use crate::source::Source;

/// Elements of another dataset that a virtual one shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualMapping {
    /// The other dataset's file, as it is named; `.` where it is the same.
    pub file: Vec<u8>,
    /// The other dataset's path.
    pub dataset: Vec<u8>,
    /// Elements of the other dataset.
    pub source: Selection,
    /// Where they are shown.
    pub shown: Selection,
}

/// The mappings that an object of the global heap lists.
pub(crate) fn read(
    source: &Source<'_>,
    collection: u64,
    number: u32,
) -> Result<Vec<VirtualMapping>, FormatError> {
    let collection = Collection::open(source, collection)?;
    let part = collection.part(number, Structure::VirtualMappings)?;
    let place = part.place();
    let part = part.unsealed()?;
    let mut fields = part.fields();
    fields.version(0)?;
    let count = fields.length()?;
    let mut mappings = Vec::new();
    for _ in 0..count {
        let (file, dataset) = (fields.text()?.to_vec(), fields.text()?.to_vec());
        let mut selection = || Selection::read(&mut fields);
        mappings.push(VirtualMapping { file, dataset, source: selection()?, shown: selection()? });
    }
    if fields.rest().is_empty() { Ok(mappings) } else { Err(place.error(Problem::CutOff)) }
}
