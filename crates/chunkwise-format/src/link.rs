//! What is a link called, and where does it lead?
//!
//! Format specification, IV.A.2.g.

use crate::datatype::Charset;
use crate::error::FormatError;
use crate::fields::Fields;

/// A link of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its name.
    pub name: Vec<u8>,
    /// The characters of the name.
    pub charset: Charset,
    /// When it was made, beside others of its group, where this is tracked.
    pub creation_order: Option<i64>,
    /// Where it leads.
    pub target: Target,
}

/// Where a link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To the object with this address.
    Hard(u64),
    /// To what has this path.
    Soft(Vec<u8>),
    /// To what has a path in another file.
    External {
        /// The file.
        file: Vec<u8>,
        /// The path.
        path: Vec<u8>,
    },
    /// Somewhere that a program knows.
    Other {
        /// The number of its kind.
        kind: u8,
        /// What the program knows it by.
        value: Vec<u8>,
    },
}

impl Link {
    /// The content of a message.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, FormatError> {
        fields.version(1)?;
        let flags = fields.u8()?;
        let kind = if flags & 8 != 0 { fields.u8()? } else { 0 };
        let creation_order = match flags & 4 != 0 {
            true => Some(fields.u64()?.cast_signed()),
            false => None,
        };
        let charset = Charset::of(if flags & 0x10 != 0 { fields.u8()? } else { 0 });
        let name_len = fields.number(1 << (flags & 3))?;
        let name = fields.take(name_len)?.to_vec();
        if name.is_empty() {
            return Err(fields.wrong("its name is empty"));
        }
        let target = match kind {
            0 => Target::Hard(fields.defined()?),
            1 => Target::Soft(value(fields)?.to_vec()),
            64 => external(fields)?,
            kind => Target::Other { kind, value: value(fields)?.to_vec() },
        };
        Ok(Self { name, charset, creation_order, target })
    }
}

fn value<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8], FormatError> {
    let len = fields.u16()?;
    fields.take(len.into())
}

fn external(fields: &mut Fields<'_>) -> Result<Target, FormatError> {
    let len = fields.u16()?;
    let mut value = fields.part(len.into())?;
    // A version and flags, which are all zero.
    value.skip(1)?;
    Ok(Target::External { file: value.text()?.to_vec(), path: value.text()?.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::{Link, Target};
    use crate::error::{FormatError, Structure};
    use crate::fields::{Fields, Place, Widths};

    fn read(bytes: &[u8]) -> Result<Link, FormatError> {
        let place = Place::new(Structure::Message(6), 0);
        let widths = Widths { offset: 4, length: 8 };
        Link::read(&mut Fields::new(bytes, place, widths))
    }

    #[test]
    fn links_lead_to_objects_paths_files_and_elsewhere() {
        let hard = read(b"\x01\0\x02ab\x07\0\0\0").unwrap();
        assert_eq!((&*hard.name, hard.target), (&b"ab"[..], Target::Hard(7)));
        let soft = read(b"\x01\x0c\x01\x09\0\0\0\0\0\0\0\x01a\x02\0/x").unwrap();
        assert_eq!((soft.creation_order, soft.target), (Some(9), Target::Soft(b"/x".to_vec())));
        let external = read(b"\x01\x08\x40\x01a\x06\0\0f\0/x\0").unwrap();
        let (file, path) = (b"f".to_vec(), b"/x".to_vec());
        assert_eq!(external.target, Target::External { file, path });
        let other = read(b"\x01\x08\x50\x01a\x01\0v").unwrap();
        assert_eq!(other.target, Target::Other { kind: 80, value: b"v".to_vec() });
    }

    #[test]
    fn links_without_a_name_or_an_address_are_refused() {
        assert!(read(b"\x01\0\0\x07\0\0\0").is_err());
        assert!(read(b"\x01\0\x01a\xff\xff\xff\xff").is_err());
        assert!(read(b"\x01\x03\xff\xff\xff\xff\xff\xff\xff\xff").is_err());
    }
}
