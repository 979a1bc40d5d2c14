//! Which messages does an object header hold?
//!
//! A header is a list of messages in one or more blocks; a continuation message leads to the next
//! block.  Version 1 has no checksums; its blocks are as long as its messages.  Version 2 seals
//! each block (format specification, IV.A.1).

use std::collections::HashSet;

use crate::error::{FormatError, Problem, Structure};
use crate::fields::{Fields, Place};
use crate::source::{HEAD_LEN, Part, Source};

/// Kinds of messages.
pub mod kind {
    #![allow(missing_docs)]
    pub const NIL: u16 = 0x00;
    pub const DATASPACE: u16 = 0x01;
    pub const LINK_INFO: u16 = 0x02;
    pub const DATATYPE: u16 = 0x03;
    pub const OLD_FILL_VALUE: u16 = 0x04;
    pub const FILL_VALUE: u16 = 0x05;
    pub const LINK: u16 = 0x06;
    pub const EXTERNAL_FILES: u16 = 0x07;
    pub const LAYOUT: u16 = 0x08;
    pub const GROUP_INFO: u16 = 0x0a;
    pub const FILTERS: u16 = 0x0b;
    pub const ATTRIBUTE: u16 = 0x0c;
    pub const COMMENT: u16 = 0x0d;
    pub const OLD_MODIFICATION_TIME: u16 = 0x0e;
    pub const SHARED_TABLE: u16 = 0x0f;
    pub const CONTINUATION: u16 = 0x10;
    pub const SYMBOL_TABLE: u16 = 0x11;
    pub const MODIFICATION_TIME: u16 = 0x12;
    pub const BTREE_K: u16 = 0x13;
    pub const DRIVER_INFO: u16 = 0x14;
    pub const ATTRIBUTE_INFO: u16 = 0x15;
    pub const REFERENCE_COUNT: u16 = 0x16;
    pub const FILE_SPACE: u16 = 0x17;
}

/// Bytes before the messages of a header of version 1.
const OLD_HEAD_LEN: u64 = 16;
/// And of a message of such a header, without its data.
const OLD_MESSAGE_LEN: u64 = 8;
/// The most bytes before the messages of a header of version 2.
const MOST_HEAD_LEN: u64 = 34;
/// Bytes of a checksum.
const CHECKSUM_LEN: u64 = 4;
/// Bits of a message's flags.
const SHARED: u8 = 0x02;
const NEVER_SHARED: u8 = 0x04;
const FAIL_IF_UNKNOWN: u8 = 0x08;
const MARK_IF_UNKNOWN: u8 = 0x10;
const WAS_UNKNOWN: u8 = 0x20;
const SHAREABLE: u8 = 0x40;

/// A message of a header.
#[derive(Debug, Clone)]
pub(crate) struct Message<'a> {
    pub(crate) kind: u16,
    /// Whether it says where its content is.
    pub(crate) shared: bool,
    /// When it was added, where the header tracks this.
    pub(crate) creation_order: Option<u16>,
    pub(crate) part: Part<'a>,
}

impl Message<'_> {
    /// Where structures are to which it leads, and which are read with the header.
    fn leads(&self) -> Vec<u64> {
        let mut fields = self.part.fields();
        // Behind a version and flags, the first of which says that a number follows.
        let numbered = |fields: &mut Fields<'_>, nbytes| {
            fields.skip(1)?;
            let skipped = if fields.u8()? & 1 != 0 { nbytes } else { 0 };
            fields.skip(skipped)
        };
        let (begin, count) = match self.kind {
            kind::CONTINUATION => (Ok(()), 1),
            kind::SYMBOL_TABLE => (Ok(()), 2),
            kind::LINK_INFO => (numbered(&mut fields, 8), 2),
            kind::ATTRIBUTE_INFO => (numbered(&mut fields, 2), 2),
            _ => return Vec::new(),
        };
        let addresses = (0..count).map_while(|_| fields.address().ok());
        addresses.flatten().take(if begin.is_ok() { count } else { 0 }).collect()
    }
}

/// An object's header.
#[derive(Debug, Clone)]
pub(crate) struct Header<'a> {
    pub(crate) address: u64,
    /// 1 or 2.
    pub(crate) version: u8,
    /// Links that lead here; None where a message says how many.
    pub(crate) reference_count: Option<u32>,
    /// When it was last read, written, changed and made, in seconds since 1970.
    pub(crate) times: Option<[u32; 4]>,
    /// Whether the order is known in which attributes were made.
    pub(crate) tracks_attributes: bool,
    pub(crate) messages: Vec<Message<'a>>,
    /// All messages, those too that are not kept; empty ones side by side are one.
    count: u64,
    /// Where its blocks are, and how long without their checksums.
    pub(crate) blocks: Vec<(u64, u64)>,
}

/// A block of messages.
struct Block<'a> {
    part: Part<'a>,
    /// Bytes before its messages.
    head_len: u64,
}

impl<'a> Header<'a> {
    pub(crate) fn read(source: &Source<'a>, address: u64) -> Result<Self, FormatError> {
        let place = Place::new(Structure::ObjectHeader, address);
        let start = source.read_most(place, MOST_HEAD_LEN)?;
        match start.bytes() {
            [1, ..] => Self::old(source, &start),
            [b'O', b'H', b'D', b'R', 2, flags, ..] => Self::new(source, &start, *flags),
            [b'O', b'H', b'D', b'R', version, ..] => Err(place.error(Problem::Version(*version))),
            _ => Err(place.error(Problem::Signature)),
        }
    }

    fn old(source: &Source<'a>, start: &Part<'a>) -> Result<Self, FormatError> {
        let place = start.place();
        let mut fields = start.fields();
        fields.skip(2)?;
        let count = fields.u16()?;
        let (reference_count, nbytes) = (fields.u32()?, fields.u32()?);
        // As HDF5 2.0 does.
        if count > 0 && u64::from(nbytes) < OLD_MESSAGE_LEN {
            return Err(place.wrong("it has no room for the messages that it says it has"));
        }
        let all = source.read(place, OLD_HEAD_LEN.saturating_add(nbytes.into()))?;
        let mut header = Self {
            address: place.address,
            version: 1,
            reference_count: Some(reference_count),
            times: None,
            tracks_attributes: false,
            messages: Vec::new(),
            count: 0,
            blocks: Vec::new(),
        };
        header.follow(source, Block { part: all, head_len: OLD_HEAD_LEN }, 0)?;
        // libhdf5 refuses more messages than it says, and takes fewer.
        if header.count > u64::from(count) {
            return Err(place.wrong("it has more messages than it says"));
        }
        Ok(header)
    }

    fn new(source: &Source<'a>, start: &Part<'a>, flags: u8) -> Result<Self, FormatError> {
        let place = start.place();
        let mut fields = start.fields();
        fields.skip(6)?;
        let times = match flags & 0x20 != 0 {
            true => Some([fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?]),
            false => None,
        };
        // When attributes move out of the header.
        fields.skip(if flags & 0x10 != 0 { 4 } else { 0 })?;
        let nbytes = fields.number(1 << (flags & 3))?;
        let head_len = (start.bytes().len().saturating_sub(fields.rest().len())) as u64;
        let len = head_len.saturating_add(nbytes).saturating_add(CHECKSUM_LEN);
        let part = source.sealed(place, len, b"OHDR")?;
        let mut header = Self {
            address: place.address,
            version: 2,
            reference_count: None,
            times,
            tracks_attributes: flags & 4 != 0,
            messages: Vec::new(),
            count: 0,
            blocks: Vec::new(),
        };
        header.follow(source, Block { part, head_len }, flags)?;
        Ok(header)
    }

    /// Take the messages of the first block and of all that it leads to.
    fn follow(
        &mut self,
        source: &Source<'a>,
        first: Block<'a>,
        flags: u8,
    ) -> Result<(), FormatError> {
        let mut seen = HashSet::from([self.address]);
        let mut next = vec![first];
        while let Some(block) = next.pop() {
            let from = self.messages.len();
            self.blocks.push((block.part.place().address, block.part.bytes().len() as u64));
            self.take(&block, flags)?;
            let mut later = Vec::new();
            let messages = self.messages.get(from..).unwrap_or_default();
            let continued = messages.iter().filter(|message| message.kind == kind::CONTINUATION);
            if source.is_far() {
                source.expect(messages.iter().flat_map(Message::leads), HEAD_LEN);
            }
            for message in continued {
                let mut fields = message.part.fields();
                let (address, nbytes) = (fields.defined()?, fields.length()?);
                let place = Place::new(Structure::HeaderBlock, address);
                if !seen.insert(address) {
                    return Err(place.wrong("a header leads to it twice"));
                }
                // As HDF5 2.0 does.
                if nbytes == 0 {
                    return Err(place.wrong("it has no bytes"));
                }
                later.push(match self.version {
                    1 => Block { part: source.read(place, nbytes)?, head_len: 0 },
                    _ => Block { part: source.sealed(place, nbytes, b"OCHK")?, head_len: 4 },
                });
            }
            next.extend(later.into_iter().rev());
        }
        let empty = |message: &Message<'_>| message.kind == kind::NIL;
        let joined = self.messages.windows(2).filter(|two| two.iter().all(empty)).count();
        self.count = self.messages.len().saturating_sub(joined) as u64;
        self.messages.retain(|message| !matches!(message.kind, kind::NIL | kind::CONTINUATION));
        Ok(())
    }

    /// Take the messages of one block.
    fn take(&mut self, block: &Block<'a>, flags: u8) -> Result<(), FormatError> {
        let old = self.version == 1;
        let tracked = flags & 4 != 0;
        let head_len: usize = match (old, tracked) {
            (true, _) => 8,
            (false, true) => 6,
            (false, false) => 4,
        };
        let mut fields = block.part.fields();
        fields.skip(block.head_len)?;
        // What is left where no message fits is a gap, which old headers do not have.
        while fields.rest().len() >= head_len {
            let (kind, len) = match old {
                true => (fields.u16()?, fields.u16()?),
                false => (u16::from(fields.u8()?), fields.u16()?),
            };
            let message_flags = fields.u8()?;
            let mut creation_order = None;
            if old {
                fields.skip(3)?;
                if len % 8 != 0 {
                    return Err(fields.wrong("a message does not end at a multiple of 8 bytes"));
                }
            } else if tracked {
                creation_order = Some(fields.u16()?);
            }
            let begin = begin_of(block, &fields);
            fields.skip(u64::from(len))?;
            let address = block.part.place().address.saturating_add(begin);
            let place = Place::new(Structure::Message(kind), address);
            let part = block.part.slice(begin, u64::from(len), place)?;
            let shared = message_flags & SHARED != 0;
            if !makes_sense(kind, message_flags) {
                return Err(place.wrong("its flags make no sense"));
            }
            self.messages.push(Message { kind, shared, creation_order, part });
        }
        if old && !fields.rest().is_empty() {
            return Err(fields.wrong("a gap follows its last message"));
        }
        Ok(())
    }

    /// The first message of a kind.
    pub(crate) fn first(&self, kind: u16) -> Option<&Message<'a>> {
        self.messages.iter().find(|message| message.kind == kind)
    }

    pub(crate) fn all(&self, kind: u16) -> impl Iterator<Item = &Message<'a>> {
        self.messages.iter().filter(move |message| message.kind == kind)
    }
}

/// Whether libhdf5 takes a message of a kind with these flags.
fn makes_sense(kind: u16, flags: u8) -> bool {
    let has = |bits: u8| flags & bits == bits;
    let unknown = has(WAS_UNKNOWN) && (has(FAIL_IF_UNKNOWN) || !has(MARK_IF_UNKNOWN));
    let shared = flags & (SHARED | SHAREABLE) != 0;
    !unknown && !has(SHARED | NEVER_SHARED) && (!shared || may_be_shared(kind))
}

/// Whether messages of a kind may say where their content is.
fn may_be_shared(kind: u16) -> bool {
    // Of one that is not known, nothing is.
    kind > kind::FILE_SPACE
        || matches!(
            kind,
            kind::DATASPACE
                | kind::DATATYPE
                | kind::OLD_FILL_VALUE
                | kind::FILL_VALUE
                | kind::FILTERS
                | kind::ATTRIBUTE
        )
}

/// Where in a block its next field begins.
fn begin_of(block: &Block<'_>, fields: &Fields<'_>) -> u64 {
    block.part.bytes().len().saturating_sub(fields.rest().len()) as u64
}

#[cfg(test)]
mod tests {
    use super::{Header, kind};
    use crate::checksum::checksum;
    use crate::error::{FormatError, Problem};
    use crate::fields::Widths;
    use crate::source::Source;

    const WIDTHS: Widths = Widths { offset: 8, length: 8 };

    fn kinds(bytes: &[u8]) -> Result<Vec<u16>, FormatError> {
        let header = Header::read(&Source::new(&bytes, 0, WIDTHS), 0)?;
        Ok(header.messages.iter().map(|message| message.kind).collect())
    }

    /// A header of version 1 whose second message leads to `next`.
    fn old(next: u64) -> Vec<u8> {
        let mut bytes = vec![1, 0, 3, 0, 1, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([0x12, 0, 8, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0]);
        bytes.extend([0x10, 0, 16, 0, 0, 0, 0, 0]);
        bytes.extend(next.to_le_bytes());
        bytes.extend(16u64.to_le_bytes());
        bytes.extend([0x0d, 0, 8, 0, 0, 0, 0, 0, b'h', b'i', 0, 0, 0, 0, 0, 0]);
        bytes
    }

    #[test]
    fn messages_go_on_in_other_blocks() {
        assert_eq!(kinds(&old(56)), Ok(vec![kind::MODIFICATION_TIME, kind::COMMENT]));
    }

    #[test]
    fn blocks_that_lead_back_are_refused() {
        let wrong = Problem::Wrong("a header leads to it twice");
        assert_eq!(kinds(&old(0)).unwrap_err().problem, wrong);
        let problem = kinds(&old(1 << 40)).unwrap_err().problem;
        assert!(matches!(problem, Problem::Outside { nbytes: 16, .. }));
        let mut empty = old(56);
        empty[48] = 0;
        assert_eq!(kinds(&empty).unwrap_err().problem, Problem::Wrong("it has no bytes"));
    }

    #[test]
    fn old_headers_are_refused_as_libhdf5_does() {
        let changed = |at: usize, byte: u8| {
            let mut bytes = old(56);
            bytes[at] = byte;
            kinds(&bytes)
        };
        // Its first message's length, and flags: shared; marked as unknown, and not to be marked.
        for (at, byte) in [(18, 7), (20, 0x02), (20, 0x40), (20, 0x20)] {
            assert!(changed(at, byte).is_err(), "{at} {byte}");
        }
        assert!(changed(20, 0x30).is_ok());
        // Two bytes are left behind the last message.
        assert!(changed(8, 42).is_err());
    }

    #[test]
    fn new_headers_are_sealed() {
        let mut bytes = b"OHDR\x02\x04\x0a".to_vec();
        bytes.extend([0x0d, 3, 0, 0, 9, 0, b'h', b'i', 0, 0]);
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        let header = Header::read(&Source::new(&bytes, 0, WIDTHS), 0).unwrap();
        assert!(header.tracks_attributes);
        assert_eq!(header.messages.len(), 1);
        assert_eq!(header.messages[0].creation_order, Some(9));
        for at in 6..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x20;
            assert!(kinds(&changed).is_err(), "{at}");
        }
    }
}
