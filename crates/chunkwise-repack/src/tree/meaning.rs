//! What do elements mean, whatever their type?
//!
//! For comparing two files: h5py reads neither references of HDF5 1.12 nor some nested types.
//! libhdf5 reads the elements in the type that the file states.  What they hold becomes bytes that
//! do not depend on the file: values as they are, what has a length after that length, text up to
//! its end.  A reference becomes a mark, and the object to which it leads, opened.

use std::ffi::{CStr, c_char, c_int, c_void};

use chunkwise_libhdf5::Library;
use chunkwise_libhdf5::binding::{Api, DEFAULT, HADDR_UNDEF, Handle, hid_t};

use super::api::TreeApi;
use super::error::{Fault, buffer};
use super::hdf5::Hdf5;
use super::values::Elements;

/// Which elements are read.
pub enum ElementPart<'a> {
    /// All of an attribute.
    Attribute,
    /// A box of a dataset: where it begins, and its sides.
    Box(&'a [u64], &'a [u64]),
}

/// Where a reference leads.  The handles are the caller's to close.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Led {
    /// The object; None if it leads nowhere.
    pub object: Option<hid_t>,
    /// A dataspace that selects the region, if it is a reference to one.
    pub region: Option<hid_t>,
    /// The attribute's name, if it is a reference to one.
    pub attribute: Vec<u8>,
}

/// What some elements mean.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Meaning {
    /// Everything but references.
    pub bytes: Vec<u8>,
    /// The references, in the order of the elements.
    pub references: Vec<Led>,
}

/// Return what elements of a dataset or an attribute mean.
///
/// # Errors
/// libhdf5's words, if it cannot read them.
///
/// # Safety
/// A live handle of a dataset or an attribute of this library; a box within the dataset.
pub unsafe fn meaning_of(
    library: &Library,
    holder: hid_t,
    part: &ElementPart<'_>,
) -> Result<Meaning, String> {
    library.locked(|api| {
        let symbol = |name| library.loaded().symbol(name);
        // SAFETY: the library is never unloaded, its lock is held; the caller's contract.
        unsafe {
            let tree = TreeApi::resolve(library.path(), symbol).map_err(|e| e.to_string())?;
            let reading = Reading { hdf5: Hdf5 { api, tree: &tree }, holder };
            reading.read(part).map_err(said)
        }
    })
}

/// Return an object's comment; empty if it has none.
///
/// # Errors
/// libhdf5's words.
///
/// # Safety
/// A live handle of an object of this library.
pub unsafe fn comment_of(library: &Library, object: hid_t) -> Result<Vec<u8>, String> {
    library.locked(|api| {
        let symbol = |name| library.loaded().symbol(name);
        // SAFETY: as above; room for the comment and the zero that ends it.
        unsafe {
            let tree = TreeApi::resolve(library.path(), symbol).map_err(|e| e.to_string())?;
            let length = (tree.H5Oget_comment)(object, std::ptr::null_mut(), 0);
            let length = api.checked_id("H5Oget_comment", length as hid_t);
            let length = length.map_err(|error| error.to_string())?.unsigned_abs();
            let mut found = buffer(length + 1).map_err(said)?;
            (tree.H5Oget_comment)(object, found.as_mut_ptr().cast(), found.len());
            found.truncate(if length == 0 { 0 } else { length as usize });
            Ok(found)
        }
    })
}

fn said(fault: Fault) -> String {
    fault.at("its elements".to_string()).to_string()
}

/// What an element is made of.
enum Form {
    Plain(usize),
    Text,
    Sequence { size: usize, each: Box<Self> },
    Array { count: usize, size: usize, each: Box<Self> },
    Compound(Vec<(usize, Self)>),
    Object,
    Region,
    Holder,
}

/// `H5T_class_t`
const COMPOUND: c_int = 6;
const REFERENCE: c_int = 7;
const VLEN: c_int = 9;
const ARRAY: c_int = 10;
/// `H5R_type_t`
const OBJECT: c_int = 0;
const REGION: c_int = 1;
const HOLDS_REGION: c_int = 3;
const HOLDS_ATTRIBUTE: c_int = 4;
/// Bytes of `hdset_reg_ref_t` and `H5R_ref_t`.
const REGION_NBYTES: usize = 12;
const HOLDER_NBYTES: usize = 64;

/// `hvl_t`
#[repr(C)]
struct Sequence {
    len: usize,
    data: *const u8,
}

/// `H5R_ref_t`, aligned as libhdf5's functions require.
#[repr(C, align(8))]
struct Holder([u8; HOLDER_NBYTES]);

/// One holder of elements.
struct Reading<'a> {
    hdf5: Hdf5<'a>,
    holder: hid_t,
}

impl Reading<'_> {
    /// # Safety
    /// As [`meaning_of`]; the lock is held.
    unsafe fn read(&self, part: &ElementPart<'_>) -> Result<Meaning, Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract; handles are checked, and there is room for all elements.
        unsafe {
            let (datatype, space) = match part {
                ElementPart::Attribute => {
                    ((tree.H5Aget_type)(self.holder), (tree.H5Aget_space)(self.holder))
                }
                ElementPart::Box(..) => {
                    ((api.H5Dget_type)(self.holder), (api.H5Dget_space)(self.holder))
                }
            };
            let datatype = Handle::new(api, "H5Dget_type", datatype, api.H5Tclose)?;
            let space = Handle::new(api, "H5Dget_space", space, api.H5Sclose)?;
            let memory = match part {
                ElementPart::Box(start, count) if !count.is_empty() => {
                    Some(select(api, space.id, start, count)?)
                }
                _ => None,
            };
            let within = memory.as_ref().map_or(space.id, |memory| memory.id);
            let form = self.form(datatype.id)?;
            let count = (api.H5Sget_simple_extent_npoints)(within);
            let count = api.checked_id("H5Sget_simple_extent_npoints", count)?.unsigned_abs();
            let mut meaning = Meaning::default();
            if count == 0 {
                return Ok(meaning);
            }
            let mut elements = Elements::new(self.hdf5, datatype.id, within, count)?;
            elements.fill(|place| {
                let status = match part {
                    ElementPart::Attribute => (tree.H5Aread)(self.holder, datatype.id, place),
                    ElementPart::Box(..) => {
                        (api.H5Dread)(self.holder, datatype.id, within, space.id, DEFAULT, place)
                    }
                };
                api.checked("H5Dread", status)?;
                Ok(())
            })?;
            for element in elements.each() {
                self.add(&form, element, &mut meaning)?;
            }
            Ok(meaning)
        }
    }

    /// # Safety
    /// A live type.
    unsafe fn form(&self, datatype: hid_t) -> Result<Form, Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract; handles are checked.
        unsafe {
            let class = api.checked("H5Tget_class", (api.H5Tget_class)(datatype))?;
            let size = (api.H5Tget_size)(datatype);
            let is_text =
                api.checked("H5Tis_variable_str", (api.H5Tis_variable_str)(datatype))? > 0;
            Ok(match class {
                _ if is_text => Form::Text,
                REFERENCE => {
                    let is = |known| api.checked("H5Tequal", (api.H5Tequal)(datatype, known));
                    if is(tree.H5T_STD_REF_OBJ_g)? > 0 {
                        Form::Object
                    } else if is(tree.H5T_STD_REF_DSETREG_g)? > 0 {
                        Form::Region
                    } else {
                        Form::Holder
                    }
                }
                ARRAY | VLEN => {
                    let base = (api.H5Tget_super)(datatype);
                    let base = Handle::new(api, "H5Tget_super", base, api.H5Tclose)?;
                    let (each, each_size) =
                        (Box::new(self.form(base.id)?), (api.H5Tget_size)(base.id));
                    if class == VLEN {
                        Form::Sequence { size: each_size, each }
                    } else {
                        let count = size.checked_div(each_size).unwrap_or(0);
                        Form::Array { count, size: each_size, each }
                    }
                }
                COMPOUND => {
                    let members = (api.H5Tget_nmembers)(datatype);
                    let members = api.checked("H5Tget_nmembers", members)?.unsigned_abs();
                    let mut found = Vec::new();
                    for number in 0..members {
                        let member = (api.H5Tget_member_type)(datatype, number);
                        let member = Handle::new(api, "H5Tget_member_type", member, api.H5Tclose)?;
                        let offset = (tree.H5Tget_member_offset)(datatype, number);
                        found.push((offset, self.form(member.id)?));
                    }
                    Form::Compound(found)
                }
                _ => Form::Plain(size),
            })
        }
    }

    /// Add what an element means.
    ///
    /// # Safety
    /// `element` is one of that form that libhdf5 has read.
    unsafe fn add(
        &self,
        form: &Form,
        element: *const u8,
        meaning: &mut Meaning,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's contract; members of a compound need not be aligned.
        unsafe {
            match form {
                Form::Plain(size) => {
                    meaning.bytes.extend_from_slice(std::slice::from_raw_parts(element, *size));
                }
                Form::Text => {
                    let text = element.cast::<*const c_char>().read_unaligned();
                    // Readers take no text at all for an empty one.
                    let text = if text.is_null() { c"" } else { CStr::from_ptr(text) }.to_bytes();
                    meaning.bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
                    meaning.bytes.extend_from_slice(text);
                }
                Form::Sequence { size, each } => {
                    let Sequence { len, data } = element.cast::<Sequence>().read_unaligned();
                    let len = if data.is_null() { 0 } else { len };
                    meaning.bytes.extend_from_slice(&(len as u64).to_le_bytes());
                    for number in 0..len {
                        self.add(each, data.add(number * size), meaning)?;
                    }
                }
                Form::Array { count, size, each } => {
                    for number in 0..*count {
                        self.add(each, element.add(number * size), meaning)?;
                    }
                }
                Form::Compound(members) => {
                    for (offset, each) in members {
                        self.add(each, element.add(*offset), meaning)?;
                    }
                }
                Form::Object => meaning.references.push(self.object(element)),
                Form::Region => meaning.references.push(self.region(element)),
                Form::Holder => {
                    let led = self.holder(element)?;
                    meaning.references.push(led);
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// An `hobj_ref_t`, not necessarily aligned.
    unsafe fn object(&self, element: *const u8) -> Led {
        // SAFETY: the caller's contract.
        unsafe {
            let address = element.cast::<u64>().read_unaligned();
            if [0, HADDR_UNDEF].contains(&address) {
                return Led::default();
            }
            let place = (&raw const address).cast::<c_void>();
            let object = (self.hdf5.tree.H5Rdereference2)(self.holder, DEFAULT, OBJECT, place);
            Led { object: (object >= 0).then_some(object), ..Led::default() }
        }
    }

    /// # Safety
    /// An `hdset_reg_ref_t`.
    unsafe fn region(&self, element: *const u8) -> Led {
        let tree = self.hdf5.tree;
        // SAFETY: the caller's contract.
        unsafe {
            let bytes = std::slice::from_raw_parts(element, REGION_NBYTES);
            if bytes.iter().all(|&byte| byte == 0) {
                return Led::default();
            }
            let place = element.cast::<c_void>();
            let object = (tree.H5Rdereference2)(self.holder, DEFAULT, REGION, place);
            let region = (tree.H5Rget_region)(self.holder, REGION, place);
            Led {
                object: (object >= 0).then_some(object),
                region: (region >= 0).then_some(region),
                attribute: Vec::new(),
            }
        }
    }

    /// # Safety
    /// An `H5R_ref_t`, not necessarily aligned.
    unsafe fn holder(&self, element: *const u8) -> Result<Led, Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        let unknown = || Fault::reading("this libhdf5 does not know its kind of reference");
        // SAFETY: the caller's contract.
        unsafe {
            let mut holder = Holder(element.cast::<[u8; HOLDER_NBYTES]>().read_unaligned());
            if holder.0.iter().all(|&byte| byte == 0) {
                return Ok(Led::default());
            }
            let place = (&raw mut holder).cast::<c_void>();
            let kind = (tree.H5Rget_type.ok_or_else(unknown)?)(place);
            let object = (tree.H5Ropen_object.ok_or_else(unknown)?)(place, DEFAULT, DEFAULT);
            let mut led = Led { object: (object >= 0).then_some(object), ..Led::default() };
            if kind == HOLDS_REGION {
                let region = (tree.H5Ropen_region.ok_or_else(unknown)?)(place, DEFAULT, DEFAULT);
                led.region = (region >= 0).then_some(region);
            }
            if kind == HOLDS_ATTRIBUTE {
                let name_of = tree.H5Rget_attr_name.ok_or_else(unknown)?;
                let length = name_of(place, std::ptr::null_mut(), 0);
                let length = api.checked_id("H5Rget_attr_name", length as hid_t)?;
                led.attribute = buffer(length.unsigned_abs() + 1)?;
                name_of(place, led.attribute.as_mut_ptr().cast(), led.attribute.len());
                led.attribute.pop();
            }
            Ok(led)
        }
    }
}

/// Select a box of a space, and return a space of its shape.
///
/// # Safety
/// A live space of this rank; the lock is held.
unsafe fn select(api: &Api, space: hid_t, start: &[u64], count: &[u64]) -> Result<Handle, Fault> {
    const SELECT_SET: c_int = 0;
    let null = std::ptr::null();
    // SAFETY: the caller's contract; as many numbers as dimensions.
    unsafe {
        let status = (api.H5Sselect_hyperslab)(
            space,
            SELECT_SET,
            start.as_ptr(),
            null,
            count.as_ptr(),
            null,
        );
        api.checked("H5Sselect_hyperslab", status)?;
        let memory = (api.H5Screate_simple)(count.len() as c_int, count.as_ptr(), null);
        Ok(Handle::new(api, "H5Screate_simple", memory, api.H5Sclose)?)
    }
}
