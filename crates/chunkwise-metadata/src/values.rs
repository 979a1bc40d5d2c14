//! Which bytes are values of variable length, and where do references lead?

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use chunkwise_format::{
    ByteOrder, Class, Collection, FormatError, Member, Object, Problem, Structure, Target,
};

use crate::metadata::Metadata;

/// Values of attributes.
pub struct Values<'f> {
    metadata: &'f Metadata,
    /// Those of the global heap that were read: one holds values of many objects.
    collections: RefCell<HashMap<u64, Collection<'f>>>,
}

/// This many collections are kept.
const MOST_COLLECTIONS: usize = 64;

impl<'f> Values<'f> {
    /// Of a file.
    #[must_use]
    pub fn new(metadata: &'f Metadata) -> Self {
        Self { metadata, collections: RefCell::default() }
    }

    /// The bytes of a value of variable length, whose elements have `nbytes` each.
    ///
    /// # Errors
    /// The heap that holds them is damaged.
    pub fn variable(&self, value: &[u8], nbytes: usize) -> Result<Vec<u8>, FormatError> {
        let file = &self.metadata.file;
        let Some((count, address, number)) = file.variable(value)? else { return Ok(Vec::new()) };
        let mut known = self.collections.borrow_mut();
        if known.len() >= MOST_COLLECTIONS && !known.contains_key(&address) {
            known.clear();
        }
        let collection = match known.entry(address) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(file.collection(address)?),
        };
        let len = (count as usize).saturating_mul(nbytes);
        let bytes = collection.get(number).and_then(|bytes| bytes.get(..len));
        bytes.map(<[u8]>::to_vec).ok_or(FormatError {
            object: None,
            structure: Structure::GlobalHeap,
            address,
            problem: Problem::Wrong("it lacks an object to which a value leads"),
        })
    }

    /// The addresses to which a sequence of references leads.
    ///
    /// # Errors
    /// As of [`Values::variable`].
    pub fn references(&self, value: &[u8]) -> Result<Vec<Option<u64>>, FormatError> {
        let width = usize::from(self.metadata.file.superblock().offset_nbytes).max(1);
        let bytes = self.variable(value, width)?;
        bytes.chunks_exact(width).map(|bytes| self.reference(bytes)).collect()
    }

    /// The address to which a reference to an object leads.
    ///
    /// # Errors
    /// It has not as many bytes as it takes.
    pub fn reference(&self, value: &[u8]) -> Result<Option<u64>, FormatError> {
        Ok(self.metadata.file.reference(0, value)?.map(|found| found.object))
    }

    /// The places of `REFERENCE_LIST`: a dataset's address, and which of its dimensions; None of
    /// what has other members.
    #[must_use]
    pub fn places(
        &self,
        members: &[Member],
        value: &[u8],
        nbytes: usize,
    ) -> Option<Vec<(u64, u32)>> {
        let [dataset, dimension] = members else { return None };
        let is_reference = dataset.datatype.class == (Class::Reference { kind: 0 });
        let order = match &dimension.datatype.class {
            Class::Integer { bits, .. } if dimension.datatype.nbytes == 4 => bits.order,
            _ => return None,
        };
        if !is_reference {
            return None;
        }
        let places = value.chunks_exact(nbytes).map(|value| {
            let begin = dataset.offset as usize;
            let bytes = value.get(begin..begin + dataset.datatype.nbytes as usize)?;
            let object = self.reference(bytes).ok()??;
            let number = value.get(dimension.offset as usize..)?.first_chunk().copied()?;
            let number = match order {
                ByteOrder::Little => u32::from_le_bytes(number),
                ByteOrder::Big => u32::from_be_bytes(number),
                ByteOrder::Vax => return None,
            };
            Some((object, number))
        });
        places.collect()
    }
}

impl Metadata {
    /// Have all come, together, that is read of these objects and their attributes.
    pub fn expect(&self, addresses: &[u64]) {
        self.file.bytes().together(&|| {
            let values = Values::new(self);
            addresses.iter().for_each(|&address| drop(self.expect_object(&values, address)));
        });
    }

    /// The same of a group and its members: those whose links are here, while others come.
    pub fn expect_members(&self, group: u64) {
        self.file.bytes().together(&|| {
            let values = Values::new(self);
            let links = self.expect_object(&values, group).map(|found| found.readable_links().0);
            for link in links.into_iter().flatten() {
                if let Target::Hard(address) = link.target {
                    let _ = self.expect_object(&values, address);
                }
            }
        });
    }

    /// Read what is read of an object and its attributes, without what is missing.
    fn expect_object(&self, values: &Values<'_>, address: u64) -> Option<Object<'_>> {
        let object = self.object(address).ok()?;
        let _ = (object.datatype(), object.dataspace(), object.layout(), object.filters());
        for attribute in object.readable_attributes().0 {
            let nbytes = attribute.datatype.nbytes.max(1) as usize;
            let is_long =
                matches!(attribute.datatype.class, Class::LongText { .. } | Class::Sequence(_));
            for value in attribute.value.chunks_exact(nbytes).filter(|_| is_long) {
                let _ = values.variable(value, 1);
            }
        }
        Some(object)
    }
}
