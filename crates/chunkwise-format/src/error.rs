//! Which structure of a file is not as the format says, where is it, and what is wrong with it?

use std::fmt;

use thiserror::Error;

/// A structure that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}the {structure} at address {address}: {problem}", of_object(*object))]
pub struct FormatError {
    /// Where the header is of the object that was being read, if it was one.
    pub object: Option<u64>,
    /// What should be there.
    pub structure: Structure,
    /// Where it is, as HDF5 counts: from the superblock on.
    pub address: u64,
    /// What is wrong.
    pub problem: Problem,
}

impl FormatError {
    /// The same, met while this object was read.
    pub(crate) fn of(self, object: u64) -> Self {
        Self { object: Some(object), ..self }
    }
}

/// What is done with the error of a part: where it gives none, the rest is read.
pub(crate) type Lost<'e> = dyn FnMut(FormatError) -> Result<(), FormatError> + 'e;

fn of_object(object: Option<u64>) -> String {
    object.map_or_else(String::new, |address| format!("the object at address {address}: "))
}

/// What is wrong with a structure.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Problem {
    /// It is not in the file.
    #[error("{nbytes} bytes are wanted, and the file ends at {end}")]
    Outside {
        /// Bytes of the structure.
        nbytes: u64,
        /// Where the file ends, as HDF5 counts.
        end: u64,
    },
    /// It ends before all was read that it must have.
    #[error("it is cut off")]
    CutOff,
    /// Something else is there.
    #[error("its signature is not there")]
    Signature,
    /// It is not what was written.
    #[error("its checksum is {stored:#010x}, that of its bytes {computed:#010x}")]
    Checksum {
        /// As stored in the file.
        stored: u32,
        /// As computed now.
        computed: u32,
    },
    /// It is of a version that is not known.
    #[error("version {0} is not known")]
    Version(u8),
    /// It names something that is not known.
    #[error("{what} {number} is not known")]
    Unknown {
        /// What is not known.
        what: &'static str,
        /// Its number.
        number: u64,
    },
    /// Something in it makes no sense.
    #[error("{0}")]
    Wrong(&'static str),
    /// It leads to the same bytes again and again.
    #[error("it leads to more bytes than the file has")]
    Overlaps,
    /// It is nested too deeply.
    #[error("it is nested more than {0} levels deep")]
    TooDeep(usize),
    /// The format allows it, and this reader does not know it.
    #[error("it has {0}, which is not read here")]
    Unsupported(&'static str),
    /// The bytes could not be had.
    #[error("{0}")]
    Read(String),
}

/// A kind of structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Structure {
    Superblock,
    ObjectHeader,
    HeaderBlock,
    Message(u16),
    SymbolTableNode,
    GroupBTree,
    ChunkBTree,
    BTree2,
    BTree2Node,
    LocalHeap,
    FractalHeap,
    FractalHeapBlock,
    FractalHeapObject,
    FreeSpace,
    GlobalHeap,
    FixedArray,
    ExtensibleArray,
    ImplicitIndex,
    SharedMessageTable,
    VirtualMappings,
    Selection,
    Reference,
    RawData,
}

impl fmt::Display for Structure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Superblock => "superblock",
            Self::ObjectHeader => "object header",
            Self::HeaderBlock => "continued object header",
            Self::Message(kind) => match kind {
                0x01 => "dataspace",
                0x02 => "link info",
                0x03 => "datatype",
                0x04 => "old fill value",
                0x05 => "fill value",
                0x06 => "link",
                0x07 => "external file list",
                0x08 => "layout",
                0x0a => "group info",
                0x0b => "filter pipeline",
                0x0c => "attribute",
                0x0d => "comment",
                0x0e => "old modification time",
                0x0f => "shared message table message",
                0x10 => "continuation message",
                0x11 => "symbol table message",
                0x12 => "modification time",
                0x13 => "message of B-tree sizes",
                0x14 => "driver info",
                0x15 => "attribute info",
                0x16 => "reference count",
                _ => return write!(f, "message of kind {kind:#x}"),
            },
            Self::SymbolTableNode => "symbol table node",
            Self::GroupBTree => "B-tree of a group",
            Self::ChunkBTree => "B-tree of chunks",
            Self::BTree2 => "version 2 B-tree",
            Self::BTree2Node => "node of a version 2 B-tree",
            Self::LocalHeap => "local heap",
            Self::FractalHeap => "fractal heap",
            Self::FractalHeapBlock => "block of a fractal heap",
            Self::FractalHeapObject => "object in a fractal heap",
            Self::FreeSpace => "free space of a fractal heap",
            Self::GlobalHeap => "global heap",
            Self::FixedArray => "fixed array",
            Self::ExtensibleArray => "extensible array",
            Self::ImplicitIndex => "implicit index",
            Self::SharedMessageTable => "shared message table",
            Self::VirtualMappings => "list of virtual mappings",
            Self::Selection => "stored selection",
            Self::Reference => "reference",
            Self::RawData => "raw data",
        };
        f.write_str(name)
    }
}
