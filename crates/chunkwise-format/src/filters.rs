//! Through which filters do a dataset's chunks go?
//!
//! Format specification, IV.A.2.l.

use crate::error::{FormatError, Problem};
use crate::fields::{Fields, until_zero};

/// Filters in a pipeline (`H5Z_MAX_NFILTERS`).
const MOST_FILTERS: u8 = 32;
/// From this number on, filters have names in messages of version 2.
const FIRST_NAMED: u16 = 256;

/// A filter of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Its number, as registered with the HDF Group.
    pub number: u16,
    /// Its name, where the file has one.
    pub name: Option<Vec<u8>>,
    /// Whether a chunk may be stored without it.
    pub optional: bool,
    /// Its options.
    pub options: Vec<u32>,
}

/// The filters of a message, in the order in which chunks are encoded.
pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Vec<Filter>, FormatError> {
    let (version, count) = (fields.u8()?, fields.u8()?);
    match version {
        1 => fields.skip(6)?,
        2 => {}
        version => return Err(fields.error(Problem::Version(version))),
    }
    if count > MOST_FILTERS {
        return Err(fields.wrong("it has more filters than HDF5 allows"));
    }
    (0..count).map(|_| filter(fields, version)).collect()
}

fn filter(fields: &mut Fields<'_>, version: u8) -> Result<Filter, FormatError> {
    let number = fields.u16()?;
    let name_len = match version == 1 || number >= FIRST_NAMED {
        true => u64::from(fields.u16()?),
        false => 0,
    };
    let (flags, count) = (fields.u16()?, fields.u16()?);
    let name_len = if version == 1 { name_len.next_multiple_of(8) } else { name_len };
    let name = until_zero(fields.take(name_len)?);
    let options = (0..count).map(|_| fields.u32()).collect::<Result<_, _>>()?;
    if version == 1 && count % 2 == 1 {
        fields.skip(4)?;
    }
    let name = (!name.is_empty()).then(|| name.to_vec());
    Ok(Filter { number, name, optional: flags & 1 != 0, options })
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::error::Structure;
    use crate::fields::{Fields, Place, Widths};

    #[test]
    fn both_versions_say_the_same() {
        let mut old = vec![1, 2, 0, 0, 0, 0, 0, 0];
        old.extend([1, 0, 8, 0, 1, 0, 1, 0]);
        old.extend(*b"deflate\0\x06\0\0\0\0\0\0\0");
        old.extend([3, 0, 0, 0, 0, 0, 0, 0]);
        let mut new = vec![2, 2, 1, 0, 1, 0, 1, 0, 6, 0, 0, 0];
        new.extend([3, 0, 0, 0, 0, 0]);
        let widths = Widths { offset: 8, length: 8 };
        let place = Place::new(Structure::Message(0xb), 0);
        let of = |bytes: &[u8]| read(&mut Fields::new(bytes, place, widths));
        let (old, new) = (of(&old).unwrap(), of(&new).unwrap());
        assert_eq!(old[0].name.as_deref(), Some(&b"deflate"[..]));
        let facts = |filters: &[super::Filter]| -> Vec<_> {
            filters.iter().map(|f| (f.number, f.optional, f.options.clone())).collect()
        };
        assert_eq!(facts(&old), facts(&new));
        assert_eq!(facts(&old), [(1, true, vec![6]), (3, false, vec![])]);
        assert!(of(&[2, 33]).is_err());
    }
}
