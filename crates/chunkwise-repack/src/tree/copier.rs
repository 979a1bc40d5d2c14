//! What is known of both files while one is copied to the other?

use std::collections::{HashMap, HashSet};
use std::ffi::CString;

use chunkwise_libhdf5::binding::hid_t;

use super::error::Fault;
use super::hdf5::Hdf5;
use super::inventory::Inventory;
use super::lost::Lost;

/// A copy at work, while the library's lock is held.
pub(super) struct Copier<'a> {
    pub(super) hdf5: Hdf5<'a>,
    pub(super) source: hid_t,
    pub(super) target: hid_t,
    /// libhdf5's number of the source, which references to it tell.
    pub(super) source_number: [std::ffi::c_ulong; 2],
    pub(super) lists: &'a Lists,
    pub(super) inventory: &'a Inventory,
    /// Creation properties that the caller wants, by the address of the source's dataset.
    pub(super) dcpls: &'a HashMap<u64, hid_t>,
    pub(super) made: &'a mut Made,
}

/// Link creation properties by the character set of the name (`H5T_cset_t`).
#[derive(Debug)]
pub(super) struct Lists {
    pub(super) ascii: hid_t,
    pub(super) utf8: hid_t,
}

/// What was made until now.
#[derive(Default)]
pub(super) struct Made {
    /// Addresses of copies by those of their sources.
    pub(super) moved: HashMap<u64, u64>,
    /// Those that have no link, and are counted as if they had one; by the address of the source.
    pub(super) held: HashSet<u64>,
    /// Open copies of committed types, by the address of the source.  One that has no name is
    /// kept by what uses it, which may come later: they stay open until the end.
    pub(super) datatypes: HashMap<u64, hid_t>,
    /// Those whose attributes were not copied yet.
    pub(super) bare_datatypes: Vec<u64>,
    /// Datasets whose data the caller copies.
    pub(super) datasets: Vec<usize>,
    /// What needs every object to be there.
    pub(super) later: Vec<Later>,
    pub(super) warnings: Vec<String>,
    /// What cannot be read, where that is no error.
    pub(super) lost: Lost,
}

/// What is copied at the end.
pub(super) enum Later {
    /// The value of an attribute, by the address of the source's object.
    Attribute { object: u64, name: CString },
    /// The elements of a dataset.
    Elements { node: usize },
}

impl Copier<'_> {
    /// Go on without an object of the source, or a part of it, where that is wanted.
    pub(super) fn go_on(&mut self, address: u64, fault: Fault) -> Result<(), Fault> {
        let object = self.printable(address);
        let fault = self.made.lost.known.named(address, fault);
        self.made.lost.go_on(&object, fault)
    }

    pub(super) fn warn(&mut self, object: &str, what: &str) {
        self.made.warnings.push(format!("{object}: {what}"));
    }

    /// The path of an object of the source, in words where it has none.
    pub(super) fn printable(&self, address: u64) -> String {
        match self.inventory.by_address.get(&address) {
            Some(&node) => self.inventory.printable(node),
            None => "a committed type without a name".to_string(),
        }
    }
}
