//! What is an element?
//!
//! A datatype is a tree: records have members, arrays and enumerations a base
//! (format specification, IV.A.2.d).

use crate::error::{FormatError, Problem};
use crate::fields::Fields;

/// Types within types.
const MOST_LEVELS: usize = 64;

/// A datatype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datatype {
    /// Of the message: 1 to 5.
    pub version: u8,
    /// Bytes of an element, as stored.
    pub nbytes: u32,
    /// What it is.
    pub class: Class,
    /// The address of the header, where it is a committed type.
    pub committed: Option<u64>,
}

/// What a datatype is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// An integer.
    Integer {
        /// Where its bits are.
        bits: Bits,
        /// Whether it may be negative (two's complement).
        signed: bool,
    },
    /// A floating-point number.
    Float {
        /// Where its bits are.
        bits: Bits,
        /// Its parts.
        float: FloatParts,
    },
    /// A time, which nobody writes.
    Time {
        /// The order of its bytes.
        order: ByteOrder,
        /// Bits in use.
        precision: u16,
    },
    /// Text of a fixed length.
    Text(Text),
    /// Bits without a meaning.
    Bitfield(Bits),
    /// Bytes without a meaning.
    Opaque {
        /// What they are.
        tag: Vec<u8>,
    },
    /// A record.
    Compound(Vec<Member>),
    /// A reference.
    Reference {
        /// 0: an object; 1: a region; 2, 3: the same, of the new kind; 4: an attribute.
        kind: u8,
    },
    /// Names for some values of an integer.
    Enumeration {
        /// The integer.
        base: Box<Datatype>,
        /// Names and values.
        members: Vec<(Vec<u8>, Vec<u8>)>,
    },
    /// A sequence of any length, in the global heap.
    Sequence(Box<Datatype>),
    /// Text of any length, in the global heap.
    LongText {
        /// How it ends, and how it is encoded.
        text: Text,
        /// A character.
        base: Box<Datatype>,
    },
    /// An array.
    Array {
        /// Its shape.
        shape: Vec<u32>,
        /// Its elements.
        base: Box<Datatype>,
    },
    /// A complex number.
    Complex {
        /// Whether both parts have the same type.
        homogeneous: bool,
        /// 0: real and imaginary part.
        form: u8,
        /// The type of its parts.
        base: Box<Datatype>,
    },
}

/// Where the bits of a number are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bits {
    /// The order of its bytes.
    pub order: ByteOrder,
    /// The first bit in use, from the least significant one on.
    pub offset: u16,
    /// Bits in use.
    pub precision: u16,
    /// What the bits before, behind, and (of floats) between these are.
    pub padding: [bool; 3],
}

/// The parts of a floating-point number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatParts {
    /// 0: none; 1: the most significant bit is set; 2: it is set and not stored.
    pub normalization: u8,
    /// The bit of the sign.
    pub sign: u8,
    /// The first bit of the exponent.
    pub exponent: u8,
    /// Bits of the exponent.
    pub exponent_bits: u8,
    /// The first bit of the mantissa.
    pub mantissa: u8,
    /// Bits of the mantissa.
    pub mantissa_bits: u8,
    /// What is subtracted from the exponent.
    pub exponent_bias: u32,
}

/// The order of a number's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The least significant byte first.
    Little,
    /// The most significant byte first.
    Big,
    /// That of a VAX.
    Vax,
}

/// How text ends, and how it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// 0: with a zero; 1: filled with zeros; 2: filled with blanks.
    pub padding: u8,
    /// Its characters.
    pub charset: Charset,
}

/// A set of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// ASCII, or nobody knows.
    Ascii,
    /// UTF-8.
    Utf8,
    /// Another, by number.
    Other(u8),
}

impl Charset {
    pub(crate) fn of(number: u8) -> Self {
        match number {
            0 => Self::Ascii,
            1 => Self::Utf8,
            number => Self::Other(number),
        }
    }
}

/// A member of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: Vec<u8>,
    /// Bytes before it.
    pub offset: u32,
    /// What it is.
    pub datatype: Datatype,
}

impl Datatype {
    /// The content of a message.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, FormatError> {
        read(fields, MOST_LEVELS)
    }

    /// Whether elements, or parts of them, are elsewhere in the file.
    #[must_use]
    pub fn leads_elsewhere(&self) -> bool {
        match &self.class {
            Class::Sequence(_) | Class::LongText { .. } | Class::Reference { .. } => true,
            Class::Compound(members) => members.iter().any(|m| m.datatype.leads_elsewhere()),
            Class::Array { base, .. } => base.leads_elsewhere(),
            _ => false,
        }
    }
}

fn read(fields: &mut Fields<'_>, levels: usize) -> Result<Datatype, FormatError> {
    let Some(levels) = levels.checked_sub(1) else {
        return Err(fields.error(Problem::TooDeep(MOST_LEVELS)));
    };
    let first = fields.u8()?;
    let (version, number) = (first >> 4, first & 0xf);
    if !(1..=5).contains(&version) {
        return Err(fields.error(Problem::Version(version)));
    }
    let flags = Flags(fields.number(3)? as u32);
    let nbytes = fields.u32()?;
    if nbytes == 0 {
        return Err(fields.wrong("its elements have no bytes"));
    }
    let head = Head { version, nbytes, flags };
    let class = match number {
        0 => {
            let padding = [flags.bit(1), flags.bit(2), false];
            let bits = bits(fields, nbytes, flags.order(), padding)?;
            Class::Integer { bits, signed: flags.bit(3) }
        }
        1 => float(fields, head)?,
        2 => Class::Time { order: flags.order(), precision: fields.u16()? },
        3 => Class::Text(flags.text(0)),
        4 => {
            let padding = [flags.bit(1), flags.bit(2), false];
            Class::Bitfield(bits(fields, nbytes, flags.order(), padding)?)
        }
        5 => Class::Opaque { tag: opaque(fields, flags)? },
        6 => Class::Compound(members(fields, head, levels)?),
        7 => match (flags.0 & 0xf) as u8 {
            kind @ 0..=4 => Class::Reference { kind },
            kind => return Err(fields.unknown("a reference of kind", kind)),
        },
        8 => enumeration(fields, head, levels)?,
        9 => {
            let base = Box::new(read(fields, levels)?);
            match flags.0 & 0xf {
                0 => Class::Sequence(base),
                1 => Class::LongText { text: flags.text(4), base },
                kind => return Err(fields.unknown("a variable length of kind", kind)),
            }
        }
        10 => Class::Array {
            shape: array_shape(fields, version)?,
            base: Box::new(read(fields, levels)?),
        },
        11 => Class::Complex {
            homogeneous: flags.bit(0),
            form: (flags.0 >> 1 & 3) as u8,
            base: Box::new(read(fields, levels)?),
        },
        number => return Err(fields.unknown("a class of number", number)),
    };
    Ok(Datatype { version, nbytes, class, committed: None })
}

/// What comes before the properties of a class.
#[derive(Clone, Copy)]
struct Head {
    version: u8,
    nbytes: u32,
    flags: Flags,
}

/// The bits of a class.
#[derive(Clone, Copy)]
struct Flags(u32);

impl Flags {
    fn bit(self, number: u32) -> bool {
        self.0.checked_shr(number).is_some_and(|bits| bits & 1 != 0)
    }

    fn order(self) -> ByteOrder {
        if self.bit(0) { ByteOrder::Big } else { ByteOrder::Little }
    }

    /// How text ends and is encoded, from a bit on.
    fn text(self, from: u32) -> Text {
        let bits = self.0.checked_shr(from).unwrap_or(0);
        Text { padding: (bits & 0xf) as u8, charset: Charset::of((bits >> 4 & 0xf) as u8) }
    }

    /// How many members.
    fn count(self) -> u32 {
        self.0 & 0xffff
    }
}

/// Where the bits of a number of this many bytes are; libhdf5 refuses those that it has not.
fn bits(
    fields: &mut Fields<'_>,
    nbytes: u32,
    order: ByteOrder,
    padding: [bool; 3],
) -> Result<Bits, FormatError> {
    let (offset, precision) = (fields.u16()?, fields.u16()?);
    let whole = u64::from(nbytes).saturating_mul(8);
    if precision == 0 || !within(offset.into(), precision.into(), whole) {
        return Err(fields.wrong("it uses bits that it has not"));
    }
    Ok(Bits { order, offset, precision, padding })
}

/// Whether `len` bits from one on are among the first `whole`.
fn within(from: u64, len: u64, whole: u64) -> bool {
    from.saturating_add(len) <= whole
}

fn float(
    fields: &mut Fields<'_>,
    Head { version, nbytes, flags }: Head,
) -> Result<Class, FormatError> {
    let order = match (flags.bit(6), flags.bit(0)) {
        (false, _) => flags.order(),
        (true, true) if version >= 3 => ByteOrder::Vax,
        // Early files have the bit set without a meaning.
        (true, _) if version < 3 => flags.order(),
        (true, _) => return Err(fields.wrong("its order of bytes makes no sense")),
    };
    let bits = bits(fields, nbytes, order, [flags.bit(1), flags.bit(2), flags.bit(3)])?;
    let sign = (flags.0 >> 8 & 0xff) as u8;
    let normalization = (flags.0 >> 4 & 3) as u8;
    let float = FloatParts {
        normalization,
        sign,
        exponent: fields.u8()?,
        exponent_bits: fields.u8()?,
        mantissa: fields.u8()?,
        mantissa_bits: fields.u8()?,
        exponent_bias: fields.u32()?,
    };
    let [exponent, exponent_bits, mantissa, mantissa_bits] =
        [float.exponent, float.exponent_bits, float.mantissa, float.mantissa_bits].map(u64::from);
    let whole = bits.precision.into();
    let apart =
        within(exponent, exponent_bits, mantissa) || within(mantissa, mantissa_bits, exponent);
    if !(within(exponent, exponent_bits, whole) && within(mantissa, mantissa_bits, whole) && apart)
    {
        return Err(fields.wrong("its exponent and mantissa are not within it, or overlap"));
    }
    Ok(Class::Float { bits, float })
}

fn opaque(fields: &mut Fields<'_>, flags: Flags) -> Result<Vec<u8>, FormatError> {
    let tag = fields.take(u64::from(flags.0 & 0xff))?;
    Ok(crate::fields::until_zero(tag).to_vec())
}

fn name(fields: &mut Fields<'_>, version: u8) -> Result<Vec<u8>, FormatError> {
    match version {
        1 | 2 => fields.padded_text(),
        _ => fields.text(),
    }
    .map(<[u8]>::to_vec)
}

fn members(
    fields: &mut Fields<'_>,
    Head { version, nbytes, flags }: Head,
    levels: usize,
) -> Result<Vec<Member>, FormatError> {
    let mut members = Vec::new();
    let offset_len = crate::fields::bytes_for(u64::from(nbytes));
    for _ in 0..flags.count() {
        let name = name(fields, version)?;
        let offset = match version {
            1 | 2 => fields.u32()?,
            _ => fields.number(offset_len)? as u32,
        };
        let shape = if version == 1 { old_shape(fields)? } else { Vec::new() };
        let base = read(fields, levels)?;
        let datatype = if shape.is_empty() { base } else { array(fields, shape, base)? };
        let within = u64::from(offset).saturating_add(u64::from(datatype.nbytes));
        if within > u64::from(nbytes) {
            return Err(fields.wrong("a member is not within its record"));
        }
        members.push(Member { name, offset, datatype });
    }
    Ok(members)
}

/// The shape of a member that is an array, as the first version says.
fn old_shape(fields: &mut Fields<'_>) -> Result<Vec<u32>, FormatError> {
    let rank = usize::from(fields.u8()?);
    // Reserved; a permutation, which was never in use; reserved.
    fields.skip(11)?;
    let all = [fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?];
    match all.get(..rank) {
        Some(shape) => Ok(shape.to_vec()),
        None => Err(fields.wrong("a member has more than four dimensions")),
    }
}

fn array(fields: &Fields<'_>, shape: Vec<u32>, base: Datatype) -> Result<Datatype, FormatError> {
    let nbytes = shape.iter().try_fold(base.nbytes, |nbytes, &n| nbytes.checked_mul(n));
    let Some(nbytes) = nbytes else {
        return Err(fields.wrong("an array is larger than an element can be"));
    };
    let (version, base) = (base.version, Box::new(base));
    Ok(Datatype { version, nbytes, class: Class::Array { shape, base }, committed: None })
}

fn array_shape(fields: &mut Fields<'_>, version: u8) -> Result<Vec<u32>, FormatError> {
    let rank = fields.u8()?;
    if usize::from(rank) > crate::dataspace::MOST_RANK {
        return Err(fields.wrong("an array has more dimensions than HDF5 allows"));
    }
    if version < 3 {
        fields.skip(3)?;
    }
    let shape = (0..rank).map(|_| fields.u32()).collect::<Result<_, _>>()?;
    if version < 3 {
        // A permutation, which was never in use.
        fields.skip(u64::from(rank).saturating_mul(4))?;
    }
    Ok(shape)
}

fn enumeration(
    fields: &mut Fields<'_>,
    Head { version, flags, .. }: Head,
    levels: usize,
) -> Result<Class, FormatError> {
    let base = read(fields, levels)?;
    if base.nbytes == 0 {
        return Err(fields.wrong("its values have no bytes"));
    }
    let mut names = Vec::new();
    for _ in 0..flags.count() {
        names.push(name(fields, version)?);
    }
    let mut members = Vec::new();
    for name in names {
        members.push((name, fields.take(u64::from(base.nbytes))?.to_vec()));
    }
    Ok(Class::Enumeration { base: Box::new(base), members })
}

#[cfg(test)]
mod tests {
    use super::{ByteOrder, Class, Datatype};
    use crate::error::{Problem, Structure};
    use crate::fields::{Fields, Place, Widths};

    fn read(bytes: &[u8]) -> Result<Datatype, Problem> {
        let place = Place::new(Structure::Message(3), 0);
        let widths = Widths { offset: 8, length: 8 };
        let mut fields = Fields::new(bytes, place, widths);
        Datatype::read(&mut fields).map_err(|error| error.problem)
    }

    const BIG_INT16: [u8; 12] = [0x10, 9, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0];

    #[test]
    fn integers_have_an_order_and_a_sign() {
        let Class::Integer { bits, signed } = read(&BIG_INT16).unwrap().class else { panic!() };
        assert_eq!((bits.order, bits.precision, signed), (ByteOrder::Big, 16, true));
        for len in 0..BIG_INT16.len() {
            assert_eq!(read(&BIG_INT16[..len]), Err(Problem::CutOff));
        }
    }

    #[test]
    fn members_of_the_first_version_may_be_arrays() {
        let mut bytes = vec![0x16, 1, 0, 0, 12, 0, 0, 0];
        bytes.extend(*b"ab\0\0\0\0\0\0");
        bytes.extend([0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(BIG_INT16);
        let Class::Compound(members) = read(&bytes).unwrap().class else { panic!() };
        let Class::Array { shape, base } = &members[0].datatype.class else { panic!() };
        assert_eq!((&*members[0].name, &**shape, base.nbytes), (&b"ab"[..], &[2, 3][..], 2));
        assert_eq!(members[0].datatype.nbytes, 12);
        // A record that is too short for it.
        bytes[4] = 11;
        assert_eq!(read(&bytes), Err(Problem::Wrong("a member is not within its record")));
    }

    #[test]
    fn types_within_types_come_to_an_end() {
        let sequence = [0x19, 0, 0, 0, 16, 0, 0, 0];
        let deep: Vec<u8> = sequence.iter().copied().cycle().take(8 * 1000).collect();
        assert_eq!(read(&deep), Err(Problem::TooDeep(64)));
    }

    #[test]
    fn unknown_classes_and_versions_are_named() {
        let unknown = Problem::Unknown { what: "a class of number", number: 12 };
        assert_eq!(read(&[0x1c, 0, 0, 0, 1, 0, 0, 0]), Err(unknown));
        assert_eq!(read(&[0x60, 0, 0, 0, 1, 0, 0, 0]), Err(Problem::Version(6)));
    }
}
