//! How is a file opened, and which objects does it have?

use crate::bytes::Bytes;
use crate::context::{Context, Extension, Facts};
use crate::dataspace::Dims;
use crate::error::{FormatError, Structure};
use crate::fields::{Fields, Place};
use crate::heap_global::Collection;
use crate::index::{ChunkRecord, ChunkTable};
use crate::object::Object;
use crate::reference::{self, Reference};
use crate::superblock::Superblock;

/// A file.
pub struct File<B> {
    bytes: B,
    facts: Facts,
}

impl<B: Bytes> File<B> {
    /// Find the superblock, and read what it leads to.
    ///
    /// # Errors
    /// There is no superblock, or it is damaged.
    pub fn open(bytes: B) -> Result<Self, FormatError> {
        let facts = Facts::read(&bytes)?;
        Ok(Self { bytes, facts })
    }

    fn context(&self) -> Context<'_> {
        Context { bytes: &self.bytes, facts: &self.facts }
    }

    /// What the file says of itself.
    pub fn superblock(&self) -> &Superblock {
        &self.facts.superblock
    }

    /// What the superblock's extension says.
    ///
    /// # Errors
    /// It is damaged; most of the file can still be read.
    pub fn extension(&self) -> Result<&Extension, FormatError> {
        self.facts.extension.as_ref().map_err(Clone::clone)
    }

    /// The bytes that were given.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }

    /// The root group.
    ///
    /// # Errors
    /// Its header is damaged.
    pub fn root(&self) -> Result<Object<'_>, FormatError> {
        self.object(self.facts.superblock.root)
    }

    /// The object whose header is at an address.
    ///
    /// # Errors
    /// There is no header, or it is damaged.
    pub fn object(&self, address: u64) -> Result<Object<'_>, FormatError> {
        Object::read(self.context(), address)
    }

    /// Give each chunk to which a table of this file leads, or those of `places`, in ascending order.
    ///
    /// # Errors
    /// What leads to them is damaged.
    pub fn each_chunk(
        &self,
        table: &ChunkTable,
        places: Option<&[Dims]>,
        each: &mut dyn FnMut(ChunkRecord),
    ) -> Result<(), FormatError> {
        table.each(self.context(), places, each)
    }

    /// A collection of the global heap.
    ///
    /// # Errors
    /// There is none at this address, or it is damaged.
    pub fn collection(&self, address: u64) -> Result<Collection<'_>, FormatError> {
        Collection::open(&self.context().source(), address)
    }

    /// Where a stored value of variable length is: how many elements, the address of a collection,
    /// and a number in it.  None where it is empty.
    ///
    /// # Errors
    /// The value has not as many bytes as it takes.
    pub fn variable(&self, value: &[u8]) -> Result<Option<(u32, u64, u32)>, FormatError> {
        let place = Place::new(Structure::GlobalHeap, 0);
        let mut fields = Fields::new(value, place, self.facts.superblock.widths());
        let count = fields.u32()?;
        let found = reference::heap_id(&mut fields)?.filter(|_| count > 0);
        Ok(found.map(|(collection, number)| (count, collection, number)))
    }

    /// What a stored reference leads to; `kind` is that of its type.
    ///
    /// # Errors
    /// It is damaged.
    pub fn reference(&self, kind: u8, value: &[u8]) -> Result<Option<Reference>, FormatError> {
        reference::read(self.context(), kind, value)
    }
}
