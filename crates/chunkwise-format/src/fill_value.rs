//! What are elements that nobody wrote, and when is storage allocated and filled?
//!
//! Format specification, IV.A.2.e and IV.A.2.f.

use crate::error::{FormatError, Problem};
use crate::fields::Fields;

/// A fill value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillValue {
    /// When storage is allocated: 1 early, 2 late, 3 bit by bit; 0 where the message is too old to
    /// say.
    pub allocated: u8,
    /// When it is written: 0 with the allocation, 1 never, 2 if a user gave one.
    pub written: u8,
    /// The value.
    pub value: Value,
}

/// A fill value's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// None: such elements are whatever was there.
    Undefined,
    /// Zero.
    Default,
    /// These bytes, of the dataset's type.
    Given(Vec<u8>),
}

impl FillValue {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, FormatError> {
        match fields.u8()? {
            1 | 2 => {
                let (allocated, written) = (fields.u8()?, fields.u8()?);
                let value = match fields.u8()? {
                    0 => Value::Undefined,
                    _ => given(fields)?,
                };
                Ok(Self { allocated, written, value })
            }
            3 => {
                let flags = fields.u8()?;
                let value = match (flags & 0x10 != 0, flags & 0x20 != 0) {
                    (true, true) => return Err(fields.wrong("its flags contradict each other")),
                    (true, false) => Value::Undefined,
                    (false, true) => given(fields)?,
                    (false, false) => Value::Default,
                };
                Ok(Self { allocated: flags & 3, written: flags >> 2 & 3, value })
            }
            version => Err(fields.error(Problem::Version(version))),
        }
    }

    /// The message of HDF5 before 1.6.
    pub(crate) fn read_old(fields: &mut Fields<'_>) -> Result<Self, FormatError> {
        let value = match given(fields)? {
            Value::Default => Value::Undefined,
            value => value,
        };
        Ok(Self { allocated: 0, written: 2, value })
    }
}

/// A number of bytes, and these.
fn given(fields: &mut Fields<'_>) -> Result<Value, FormatError> {
    match fields.u32()? {
        // A negative number says that there is none.
        0 => Ok(Value::Default),
        nbytes if nbytes > i32::MAX as u32 => Ok(Value::Undefined),
        nbytes => Ok(Value::Given(fields.take(nbytes.into())?.to_vec())),
    }
}

#[cfg(test)]
mod tests {
    use super::{FillValue, Value};
    use crate::error::{FormatError, Structure};
    use crate::fields::{Fields, Place, Widths};

    fn read(bytes: &[u8]) -> Result<Value, FormatError> {
        let place = Place::new(Structure::Message(5), 0);
        let widths = Widths { offset: 8, length: 8 };
        FillValue::read(&mut Fields::new(bytes, place, widths)).map(|fill| fill.value)
    }

    #[test]
    fn values_are_given_zero_or_undefined() {
        assert_eq!(read(&[2, 2, 2, 1, 2, 0, 0, 0, 7, 8]), Ok(Value::Given(vec![7, 8])));
        assert_eq!(read(&[1, 2, 2, 1, 0, 0, 0, 0]), Ok(Value::Default));
        assert_eq!(read(&[2, 2, 2, 0]), Ok(Value::Undefined));
        assert_eq!(read(&[3, 0x20 | 9, 1, 0, 0, 0, 7]), Ok(Value::Given(vec![7])));
        assert_eq!(read(&[3, 0x10]), Ok(Value::Undefined));
        assert_eq!(read(&[3, 9]), Ok(Value::Default));
        assert!(read(&[3, 0x30]).is_err());
        assert!(read(&[3, 0x20, 9, 0, 0, 0, 7]).is_err());
    }
}
