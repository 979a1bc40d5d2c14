//! What of a damaged source cannot be read, and is left out of the copy?

use std::collections::HashSet;
use std::sync::Arc;

use chunkwise_metadata::Metadata;
use chunkwise_select::Dims;

use super::error::{Fault, TreeError};

/// Something that is not in the copy, because it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The object's path.
    pub object: String,
    /// Which attribute of it.
    pub attribute: Option<String>,
    /// Which elements of it: where a box of them begins, and its shape.
    pub elements: Option<(Dims, Dims)>,
    /// What libhdf5 said.
    pub reason: String,
}

/// What is known of a damaged source: parts of objects that must not be touched, because libhdf5
/// crashes on them, by the objects' addresses.
#[derive(Clone, Default)]
pub struct Salvage {
    /// Of these objects all.
    pub objects: HashSet<u64>,
    /// Of these their attributes.
    pub attributes: HashSet<u64>,
    /// Of these their data.
    pub data: HashSet<u64>,
    /// Objects to which a link may be lost: they are kept in a group of their own.
    pub orphans: Vec<u64>,
    /// The source as it is read without libhdf5: it goes on where that ends.
    pub metadata: Option<Arc<Metadata>>,
}

/// This many errors of an object are named.
const MOST_NAMED: usize = 3;

impl Salvage {
    /// A fault of libhdf5's, with the structures of an object that are damaged.
    pub(super) fn named(&self, address: u64, fault: Fault) -> Fault {
        let errors = self.metadata.iter().flat_map(|metadata| metadata.damage(address));
        errors.take(MOST_NAMED).fold(fault, |fault, error| fault.because(&error.to_string()))
    }
}

/// What was left out until now.
#[derive(Default)]
pub(super) struct Lost {
    /// Whether anything may be: without, what cannot be read is an error.
    pub(super) wanted: bool,
    pub(super) known: Salvage,
    pub(super) missing: Vec<Missing>,
}

impl Lost {
    /// Go on without an object, or a part of it, where that is wanted.
    pub(super) fn go_on(&mut self, object: &str, fault: Fault) -> Result<(), Fault> {
        self.leave_out(object, None, None, fault)
    }

    /// The same without an attribute, or a box of elements.
    pub(super) fn leave_out(
        &mut self,
        object: &str,
        attribute: Option<&str>,
        elements: Option<(Dims, Dims)>,
        fault: Fault,
    ) -> Result<(), Fault> {
        if !self.wanted {
            return Err(fault);
        }
        let attribute = attribute.map(str::to_string);
        let whole = attribute.is_some() || elements.is_some();
        let reason = if whole { fault.message() } else { fault.in_words() };
        self.missing.push(Missing { object: object.to_string(), attribute, elements, reason });
        Ok(())
    }

    /// The same for who knows the object already.
    pub(super) fn go_on_at(&mut self, object: String, fault: Fault) -> Result<(), TreeError> {
        self.go_on(&object, fault).map_err(|fault| fault.at(object))
    }
}

/// What is said of what is avoided.
pub(super) fn crashes() -> Fault {
    Fault::reading("libhdf5 crashes on it")
}
