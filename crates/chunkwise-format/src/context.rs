//! What must be known of a file to read any of its objects?

use crate::bytes::Bytes;
use crate::error::{FormatError, Structure};
use crate::fields::{Fields, Place};
use crate::header::{Header, kind};
use crate::source::Source;
use crate::superblock::Superblock;

/// What is known of a whole file.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) superblock: Superblock,
    /// What the superblock's extension says.
    pub(crate) extension: Result<Extension, FormatError>,
}

/// What a superblock's extension says; nothing where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extension {
    /// Half of the most children of a node of chunks, of groups, and half of the most symbols in
    /// a node.
    pub btree_k: Option<[u16; 3]>,
    /// The driver that wrote the file, where that keeps one file as several.
    pub driver: Option<[u8; 8]>,
    /// The table of shared messages.
    pub shared_messages: Vec<SharedIndex>,
}

/// Shared messages of some kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedIndex {
    /// A bit for each kind: 1 << kind.
    pub kinds: u16,
    /// The fractal heap that holds them.
    pub heap: Option<u64>,
    /// How many there are.
    pub count: u16,
}

/// A file, as its objects see it.
#[derive(Clone, Copy)]
pub(crate) struct Context<'f> {
    pub(crate) bytes: &'f dyn Bytes,
    pub(crate) facts: &'f Facts,
}

impl<'f> Context<'f> {
    /// The file, for one operation.
    pub(crate) fn source(self) -> Source<'f> {
        source(self.bytes, &self.facts.superblock)
    }

    /// Half of the most children of a node of groups, and half of the most symbols in a list.
    pub(crate) fn group_k(self) -> [u16; 2] {
        let superblock = &self.facts.superblock;
        let stated = self.facts.extension.as_ref().ok().and_then(|extension| extension.btree_k);
        stated.map_or([superblock.group_k, superblock.leaf_k], |[_, group, leaf]| [group, leaf])
    }
}

fn source<'f>(bytes: &'f dyn Bytes, superblock: &Superblock) -> Source<'f> {
    Source::new(bytes, superblock.base, superblock.widths()).stated(superblock.end)
}

impl Facts {
    pub(crate) fn read(bytes: &dyn Bytes) -> Result<Self, FormatError> {
        let superblock = Superblock::find(bytes)?;
        let extension = Extension::read(&source(bytes, &superblock), &superblock);
        Ok(Self { superblock, extension })
    }
}

impl Extension {
    fn read(source: &Source<'_>, superblock: &Superblock) -> Result<Self, FormatError> {
        let mut found = Self::default();
        let Some(address) = superblock.extension else { return Ok(found) };
        for message in &Header::read(source, address)?.messages {
            let mut fields = message.part.fields();
            match message.kind {
                kind::SHARED_TABLE => {
                    fields.version(0)?;
                    let (table, count) = (fields.address()?, fields.u8()?);
                    if let Some(table) = table {
                        found.shared_messages = shared_table(source, table, count)?;
                    }
                }
                kind::BTREE_K => {
                    fields.version(0)?;
                    found.btree_k = Some([fields.u16()?, fields.u16()?, fields.u16()?]);
                }
                kind::DRIVER_INFO => {
                    fields.version(0)?;
                    found.driver = fields.take(8)?.first_chunk().copied();
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

/// The table of shared messages (format specification, III.I).
fn shared_table(
    source: &Source<'_>,
    address: u64,
    count: u8,
) -> Result<Vec<SharedIndex>, FormatError> {
    let place = Place::new(Structure::SharedMessageTable, address);
    let index_len = source.widths().nbytes(14, 2, 0);
    let nbytes = index_len.saturating_mul(count.into()).saturating_add(8);
    let part = source.sealed(place, nbytes, b"SMTB")?;
    let mut fields = part.fields();
    fields.skip(4)?;
    (0..count).map(|_| shared_index(&mut fields)).collect()
}

fn shared_index(fields: &mut Fields<'_>) -> Result<SharedIndex, FormatError> {
    fields.version(0)?;
    // Whether it is a list or a tree, which is of use in writing alone.
    fields.skip(1)?;
    let kinds = fields.u16()?;
    fields.skip(8)?;
    let count = fields.u16()?;
    fields.address()?;
    Ok(SharedIndex { kinds, heap: fields.address()?, count })
}
