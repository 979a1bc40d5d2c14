//! Which elements of which other datasets does a virtual dataset show?
//!
//! The list of mappings is an object of the global heap, sealed with a checksum (format
//! specification, III.F).  In lists of
//! version 1, which HDF5 2.0 writes, a name that a mapping before had is that mapping's number.

use crate::error::{FormatError, Problem, Structure};
use crate::fields::Fields;
use crate::heap_global::Collection;
use crate::selection::Selection;
use crate::source::Source;

/// Bits of a mapping's flags.
const FILE_AS_BEFORE: u8 = 1;
const DATASET_AS_BEFORE: u8 = 2;
const SAME_FILE: u8 = 4;

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
    let version = fields.u8()?;
    if version > 1 {
        return Err(place.error(Problem::Version(version)));
    }
    let count = fields.length()?;
    let mut mappings: Vec<VirtualMapping> = Vec::new();
    for _ in 0..count {
        let flags = if version == 0 { 0 } else { fields.u8()? };
        let file = match flags & SAME_FILE != 0 {
            true => b".".to_vec(),
            false => name(&mut fields, flags & FILE_AS_BEFORE != 0, |number| {
                mappings.get(number).map(|mapping| &mapping.file)
            })?,
        };
        let dataset = name(&mut fields, flags & DATASET_AS_BEFORE != 0, |number| {
            mappings.get(number).map(|mapping| &mapping.dataset)
        })?;
        source.charge(place, (file.len() as u64).saturating_add(dataset.len() as u64))?;
        let mut selection = || Selection::read(&mut fields);
        mappings.push(VirtualMapping { file, dataset, source: selection()?, shown: selection()? });
    }
    if fields.rest().is_empty() { Ok(mappings) } else { Err(place.error(Problem::CutOff)) }
}

/// A name, or the number of the mapping that has the same one.
fn name<'m>(
    fields: &mut Fields<'_>,
    as_before: bool,
    before: impl FnOnce(usize) -> Option<&'m Vec<u8>>,
) -> Result<Vec<u8>, FormatError> {
    if !as_before {
        return fields.text().map(<[u8]>::to_vec);
    }
    let number = usize::try_from(fields.length()?).ok();
    match number.and_then(before) {
        Some(name) => Ok(name.clone()),
        None => Err(fields.wrong("a name is that of a mapping that there is not")),
    }
}
