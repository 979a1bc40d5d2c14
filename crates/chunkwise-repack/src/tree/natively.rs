//! How is an attribute kept that libhdf5 does not list, because another one is damaged?
//!
//! The others are read from the file's bytes, and made of what these say.  References, and
//! sequences of any length, are left to libhdf5.

use std::ffi::{CString, c_int, c_void};

use chunkwise_format::{Attribute, Class, Dataspace, Datatype};
use chunkwise_libhdf5::BindError;
use chunkwise_libhdf5::binding::{DEFAULT, Handle, hid_t};
use chunkwise_metadata::Values;

use super::copier::Copier;
use super::error::{Fault, Writing};
use super::hdf5::Hdf5;

/// What `H5Tdecode` takes before the message of a type: its kind, and a version.
const ENCODED: [u8; 2] = [3, 0];
/// `H5S_SCALAR`, `H5S_NULL`
const SCALAR: c_int = 0;
const NULL: c_int = 2;

impl Copier<'_> {
    /// Make those attributes of an object that can be read without libhdf5, which gave this fault,
    /// and all that are `known`.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn dress_natively(
        &mut self,
        address: u64,
        target: hid_t,
        fault: Fault,
        known: &[CString],
    ) -> Result<(), Fault> {
        let metadata = self.made.lost.known.metadata.clone();
        let Some(metadata) = metadata.filter(|_| self.made.lost.wanted) else {
            return self.go_on(address, fault.of(|| "its attributes".into()));
        };
        let (mut found, damaged) = match metadata.object(address) {
            Ok(object) => {
                let (found, damaged) = object.readable_attributes();
                (found, !damaged.is_empty())
            }
            Err(_) => (Vec::new(), true),
        };
        // In the order in which they were made, where that is known.
        found.sort_by_key(|attribute| attribute.creation_order);
        let none = found.is_empty() && known.is_empty();
        let part = if none { "its attributes" } else { "some attributes" };
        if damaged {
            self.go_on(address, fault.of(|| part.into()))?;
        }
        let values = Values::new(&metadata);
        for attribute in found {
            let Ok(name) = CString::new(attribute.name.clone()) else { continue };
            if known.contains(&name) {
                continue;
            }
            // SAFETY: the caller's contract.
            let made = unsafe { self.make_attribute(target, &name, &attribute, &values) };
            if let Err(fault) = made {
                // SAFETY: as above.
                unsafe { self.lose_attribute(address, target, &name, fault)? };
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn make_attribute(
        &self,
        target: hid_t,
        name: &CString,
        attribute: &Attribute,
        values: &Values<'_>,
    ) -> Result<(), Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        let Attribute { datatype, dataspace, value, .. } = attribute;
        let Some(decode) = tree.H5Tdecode1.or(tree.H5Tdecode) else {
            let path = String::from("libhdf5");
            return Err(BindError::Symbol { path, symbol: "H5Tdecode" }.into());
        };
        let encoded = [&ENCODED[..], &attribute.datatype_message[..]].concat();
        // What the value is in memory, kept until it is written.
        let (mut texts, mut pointers) = (Vec::new(), Vec::new());
        let memory: *const c_void = match &datatype.class {
            Class::LongText { .. } => {
                for value in value.chunks_exact(datatype.nbytes.max(1) as usize) {
                    let mut text = values.variable(value, 1).map_err(reading)?;
                    text.push(0);
                    texts.push(text);
                }
                pointers.extend(texts.iter().map(|text| text.as_ptr()));
                pointers.as_ptr().cast()
            }
            _ if is_plain(datatype) => value.as_ptr().cast(),
            _ => return Err(Fault::reading("it leads to other values, which libhdf5 has to read")),
        };
        // SAFETY: the caller's contract; handles are checked.  The message was read as that of a
        // type, and what of it is behind is not looked at; there are as many values as the space
        // has elements, each as large as the type says.
        unsafe {
            let datatype = decode(encoded.as_ptr().cast());
            let datatype = Handle::new(api, "H5Tdecode", datatype, api.H5Tclose)?;
            let shape = dataspace.shape();
            let space = match dataspace {
                Dataspace::Null => (tree.H5Screate)(NULL),
                Dataspace::Scalar => (tree.H5Screate)(SCALAR),
                Dataspace::Simple { .. } => {
                    (api.H5Screate_simple)(shape.len() as c_int, shape.as_ptr(), std::ptr::null())
                }
            };
            let space = Handle::new(api, "H5Screate", space, api.H5Sclose)?;
            let (of, name) = (datatype.id, name.as_ptr());
            let copy = (tree.H5Acreate2)(target, name, of, space.id, DEFAULT, DEFAULT);
            let copy = Handle::new(api, "H5Acreate2", copy, tree.H5Aclose).writing()?;
            if *dataspace != Dataspace::Null {
                let written = (tree.H5Awrite)(copy.id, datatype.id, memory);
                api.checked("H5Awrite", written).writing()?;
            }
        }
        Ok(())
    }
}

/// Whether the stored bytes are the value.
fn is_plain(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Reference { .. } | Class::Sequence(_) | Class::LongText { .. } => false,
        Class::Compound(members) => members.iter().all(|member| is_plain(&member.datatype)),
        Class::Array { base, .. } => is_plain(base),
        _ => true,
    }
}

fn reading(error: chunkwise_format::FormatError) -> Fault {
    Fault::reading(error.to_string())
}
