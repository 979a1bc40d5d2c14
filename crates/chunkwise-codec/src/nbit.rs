//! How are only the significant bits of elements stored, and how do elements come back?
//!
//! The options describe the type: which bits of each number count.  The bits of all
//! elements follow each other, each number's highest first (`H5Znbit.c`); all other bits
//! become zero.

use crate::bit_writer::{BitWriter, SLACK};
use crate::bits::Bits;
use crate::filter::{Decode, Decoded, Encode, Encoded, Options};
use crate::state::{EncoderState, State};
use crate::{EncodeError, Output, resize};

/// The filter's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nbit {
    elements: usize,
    /// None where all bits count, and chunks are stored as they are.
    kind: Option<Kind>,
}

/// A type, and which of its bits are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Number { size: usize, big_endian: bool, precision: u32, offset: u32 },
    Bytes { size: usize },
    Array { size: usize, base: Box<Kind> },
    Compound { size: usize, members: Vec<(usize, Kind)> },
}

impl Options for Nbit {
    /// From `cd_values`: their number, whether chunks are stored as they are, elements in
    /// a chunk, the type.
    fn from_cd_values(cd_values: &[u32]) -> Option<Self> {
        let &[count, as_it_is, elements, ref kind @ ..] = cd_values else { return None };
        let elements = elements as usize;
        if count as usize != cd_values.len() {
            return None;
        }
        if as_it_is != 0 {
            return Some(Self { elements, kind: None });
        }
        let kind = Kind::parse(&mut kind.iter().map(|&value| value as usize), MOST_NESTED)?;
        Some(Self { elements, kind: Some(kind) })
    }
}

impl Decode for Nbit {
    fn decode(&self, stored: &[u8], _: &mut State, output: &mut Output<'_>) -> Decoded {
        let Some(kind) = &self.kind else {
            output.room(stored.len())?.copy_from_slice(stored);
            return Ok(());
        };
        let damaged = output.damaged();
        if kind.stored_bits() * self.elements as u128 > stored.len() as u128 * 8 {
            return Err(damaged);
        }
        let nbytes = self.elements.checked_mul(kind.size()).ok_or(damaged)?;
        let out = output.room(nbytes)?;
        out.fill(0);
        let mut bits = Bits::new(stored);
        for element in out.chunks_exact_mut(kind.size()) {
            kind.unpack(&mut bits, element);
        }
        Ok(())
    }
}

impl Encode for Nbit {
    /// Encode `raw`; false where that is not the chunk that the options describe.
    fn encode(&self, raw: &[u8], _: &mut EncoderState, out: &mut Vec<u8>) -> Encoded {
        let memory = |nbytes| move |_| EncodeError::Memory { nbytes };
        let Some(kind) = &self.kind else {
            resize(out, raw.len()).map_err(memory(raw.len()))?;
            out.copy_from_slice(raw);
            return Ok(true);
        };
        if self.elements.checked_mul(kind.size()) != Some(raw.len()) {
            return Ok(false);
        }
        // Members of a compound may overlap, and then take more than the whole.
        let bits = kind.stored_bits().saturating_mul(self.elements as u128);
        let nbytes = usize::try_from(bits / 8 + 1).unwrap_or(usize::MAX);
        let room = nbytes.saturating_add(SLACK);
        resize(out, room).map_err(memory(room))?;
        out[..room].fill(0);
        let mut writer = BitWriter::new(&mut out[..room]);
        for element in raw.chunks_exact(kind.size()) {
            kind.pack(element, &mut writer);
        }
        let written = writer.finish().is_some();
        // A byte more than is full, as the original has it, which may look at it.
        out.truncate(nbytes);
        Ok(written)
    }
}

/// Types within types, beyond which a description is no one's.
const MOST_NESTED: usize = 100;

impl Kind {
    /// The next type that `values` describe; no type has a size of zero, and all parts lie
    /// within their type, at most `nested` deep.
    fn parse(values: &mut impl Iterator<Item = usize>, nested: usize) -> Option<Self> {
        let nested = nested.checked_sub(1)?;
        let (class, size) = (values.next()?, values.next()?);
        if size == 0 {
            return None;
        }
        match class {
            1 => {
                let (order, precision, offset) = (values.next()?, values.next()?, values.next()?);
                let fits = precision > 0 && precision.checked_add(offset)? <= 8 * size;
                let (precision, offset) = (precision as u32, offset as u32);
                (order <= 1 && fits && size <= 16).then_some(Self::Number {
                    size,
                    big_endian: order == 1,
                    precision,
                    offset,
                })
            }
            2 => {
                let base = Box::new(Self::parse(values, nested)?);
                (size % base.size() == 0).then_some(Self::Array { size, base })
            }
            3 => {
                let count = values.next()?;
                let mut members = Vec::new();
                for _ in 0..count {
                    let offset = values.next()?;
                    let member = Self::parse(values, nested)?;
                    if offset.checked_add(member.size())? > size {
                        return None;
                    }
                    members.push((offset, member));
                }
                Some(Self::Compound { size, members })
            }
            4 => Some(Self::Bytes { size }),
            _ => None,
        }
    }

    fn size(&self) -> usize {
        match *self {
            Self::Number { size, .. }
            | Self::Bytes { size }
            | Self::Array { size, .. }
            | Self::Compound { size, .. } => size,
        }
    }

    /// Bits of an element that are stored.
    fn stored_bits(&self) -> u128 {
        match self {
            Self::Number { precision, .. } => u128::from(*precision),
            Self::Bytes { size } => *size as u128 * 8,
            Self::Array { size, base } => base.stored_bits() * (size / base.size()) as u128,
            Self::Compound { members, .. } => members.iter().map(|(_, m)| m.stored_bits()).sum(),
        }
    }

    /// Write the bits of an element that count.
    fn pack(&self, element: &[u8], bits: &mut BitWriter<'_>) {
        match self {
            Self::Number { size, big_endian, precision, offset } => {
                let mut bytes = [0; 16];
                for (i, byte) in element.iter().enumerate() {
                    bytes[if *big_endian { size - 1 - i } else { i }] = *byte;
                }
                let value = u128::from_le_bytes(bytes) >> offset;
                let high = precision.saturating_sub(64);
                bits.put((value >> 64) as u64, high);
                bits.put(value as u64, precision - high);
            }
            Self::Bytes { .. } => element.iter().for_each(|&byte| bits.put(byte.into(), 8)),
            Self::Array { base, .. } => {
                element.chunks_exact(base.size()).for_each(|part| base.pack(part, bits));
            }
            Self::Compound { members, .. } => {
                for (offset, member) in members {
                    member.pack(&element[*offset..][..member.size()], bits);
                }
            }
        }
    }

    /// Fill an element, which is zero.
    fn unpack(&self, bits: &mut Bits<'_>, element: &mut [u8]) {
        match self {
            Self::Number { size, big_endian, precision, offset } => {
                let high = precision.saturating_sub(64);
                let value =
                    u128::from(bits.take(high)) << 64 | u128::from(bits.take(precision - high));
                let bytes = value << offset;
                let bytes = bytes.to_le_bytes();
                for (i, to) in element.iter_mut().enumerate() {
                    *to = bytes[if *big_endian { size - 1 - i } else { i }];
                }
            }
            Self::Bytes { .. } => element.fill_with(|| bits.take(8) as u8),
            Self::Array { base, .. } => {
                element.chunks_exact_mut(base.size()).for_each(|part| base.unpack(bits, part));
            }
            Self::Compound { members, .. } => {
                for (offset, member) in members {
                    member.unpack(bits, &mut element[*offset..][..member.size()]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_that_make_no_sense_are_refused() {
        let number = [8, 0, 4, 1, 2, 0, 12, 3];
        assert!(Nbit::from_cd_values(&number).is_some());
        assert!(Nbit::from_cd_values(&number[..7]).is_none());
        assert!(Nbit::from_cd_values(&[8, 0, 4, 1, 2, 0, 12, 5]).is_none());
        assert!(Nbit::from_cd_values(&[8, 0, 4, 1, 0, 0, 0, 0]).is_none());
        // Arrays in arrays without end.
        let deep: Vec<u32> = [60_003, 0, 1].into_iter().chain([2, 1].repeat(30_000)).collect();
        assert!(Nbit::from_cd_values(&deep).is_none());
        // A compound whose member reaches beyond it.
        assert!(Nbit::from_cd_values(&[12, 0, 4, 3, 4, 1, 3, 1, 2, 0, 12, 3]).is_none());
        assert!(Nbit::from_cd_values(&[12, 0, 4, 3, 5, 1, 3, 1, 2, 0, 12, 3]).is_some());
    }

    #[test]
    fn bits_come_back_where_they_were() {
        // 12 bits of which the lowest is bit 3, big-endian: 0xabc << 3, then 0x123 << 3.
        let kind = Kind::Number { size: 2, big_endian: true, precision: 12, offset: 3 };
        let kind = Kind::Compound {
            size: 7,
            members: vec![
                (1, Kind::Array { size: 4, base: Box::new(kind) }),
                (6, Kind::Bytes { size: 1 }),
            ],
        };
        let mut element = [0; 7];
        kind.unpack(&mut Bits::new(&[0xab, 0xc1, 0x23, 0x45]), &mut element);
        assert_eq!(element, [0, 0x55, 0xe0, 0x09, 0x18, 0, 0x45]);
        assert_eq!(kind.stored_bits(), 32);
        let mut packed = [0; 4 + SLACK];
        let mut writer = BitWriter::new(&mut packed);
        kind.pack(&element, &mut writer);
        assert_eq!(writer.finish(), Some(4));
        assert_eq!(packed[..4], [0xab, 0xc1, 0x23, 0x45]);
    }
}
