//! In which other files is a dataset's data?
//!
//! Format specification, IV.A.2.h.

use crate::error::FormatError;
use crate::fields::Fields;
use crate::heap_local::LocalHeap;
use crate::source::Source;

/// A part of another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalFile {
    /// Its name.
    pub name: Vec<u8>,
    /// Where the data begins.
    pub offset: u64,
    /// Bytes of data; None where there is no limit.
    pub nbytes: Option<u64>,
}

pub(crate) fn read(
    source: &Source<'_>,
    fields: &mut Fields<'_>,
) -> Result<Vec<ExternalFile>, FormatError> {
    fields.version(1)?;
    fields.skip(3)?;
    // As many as there is room for.
    fields.skip(2)?;
    let count = fields.u16()?;
    let heap = LocalHeap::open(source, fields.defined()?)?;
    let mut files = Vec::new();
    for _ in 0..count {
        let name = heap.text(fields.length()?)?;
        source.charge(fields.place(), name.len() as u64)?;
        let (offset, nbytes) = (fields.length()?, fields.defined_length()?);
        files.push(ExternalFile { name: name.to_vec(), offset, nbytes });
    }
    Ok(files)
}
