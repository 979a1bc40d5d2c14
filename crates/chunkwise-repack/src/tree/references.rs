//! Where in an element do references lie, where do they lead, and how is each led to the copied
//! object?
//!
//! Elements are raw memory in the type that the source states.  A type is walked once to a
//! [`Places`], which tells where its references are; elements are then changed in place.

use std::ffi::{c_int, c_void};

use chunkwise_libhdf5::BindError;
use chunkwise_libhdf5::binding::{DEFAULT, HADDR_UNDEF, Handle, hid_t};

use super::copier::Copier;
use super::error::{Fault, Writing, buffer};
use super::hdf5::Hdf5;

/// What a reference is in memory.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reference {
    /// An object's address (`hobj_ref_t`).
    Object,
    /// The name of a region in the file's heap (`hdset_reg_ref_t`).
    Region,
    /// One that holds memory (`H5R_ref_t`).
    Holder,
}

/// Where references lie within an element.
#[derive(Debug)]
pub(super) enum Places {
    /// It is one.
    One(Reference),
    /// This many in a row, each of this many bytes.
    Array { count: usize, size: usize, each: Box<Self> },
    /// Members that hold references, with where they begin.
    Compound(Vec<(usize, Self)>),
    /// A sequence elsewhere in memory (`hvl_t`) of elements of this many bytes.
    Sequence { size: usize, each: Box<Self> },
}

/// `H5T_class_t`
const COMPOUND: c_int = 6;
const REFERENCE: c_int = 7;
const VLEN: c_int = 9;
const ARRAY: c_int = 10;

/// `H5R_DATASET_REGION1` and, of references that hold memory, the other kinds.
const REGION: c_int = 1;
const HOLDS_OBJECT: c_int = 2;
const HOLDS_REGION: c_int = 3;
const HOLDS_ATTRIBUTE: c_int = 4;

/// Bytes of `hdset_reg_ref_t` and `H5R_ref_t`.
const REGION_NBYTES: usize = 12;
const HOLDER_NBYTES: usize = 64;

/// `hvl_t`
#[repr(C)]
struct Sequence {
    len: usize,
    data: *mut u8,
}

impl Places {
    /// Where references lie in elements of a type; None where there are none.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn of(hdf5: Hdf5<'_>, datatype: hid_t) -> Result<Option<Self>, BindError> {
        let Hdf5 { api, tree } = hdf5;
        // SAFETY: a live type, by the caller's contract; handles are checked.
        unsafe {
            let class = api.checked("H5Tget_class", (api.H5Tget_class)(datatype))?;
            let size = (api.H5Tget_size)(datatype);
            Ok(match class {
                REFERENCE => {
                    let is = |known| api.checked("H5Tequal", (api.H5Tequal)(datatype, known));
                    if is(tree.H5T_STD_REF_OBJ_g)? > 0 {
                        Some(Self::One(Reference::Object))
                    } else if is(tree.H5T_STD_REF_DSETREG_g)? > 0 {
                        Some(Self::One(Reference::Region))
                    } else {
                        Some(Self::One(Reference::Holder))
                    }
                }
                ARRAY | VLEN => {
                    let base = (api.H5Tget_super)(datatype);
                    let base = Handle::new(api, "H5Tget_super", base, api.H5Tclose)?;
                    let Some(each) = Self::of(hdf5, base.id)? else { return Ok(None) };
                    let (each, base_size) = (Box::new(each), (api.H5Tget_size)(base.id));
                    match class {
                        VLEN => Some(Self::Sequence { size: base_size, each }),
                        _ => {
                            let count = size.checked_div(base_size).unwrap_or(0);
                            Some(Self::Array { count, size: base_size, each })
                        }
                    }
                }
                COMPOUND => {
                    let members = (api.H5Tget_nmembers)(datatype);
                    let members = api.checked("H5Tget_nmembers", members)?.unsigned_abs();
                    let mut found = Vec::new();
                    for number in 0..members {
                        let member = (api.H5Tget_member_type)(datatype, number);
                        let member = Handle::new(api, "H5Tget_member_type", member, api.H5Tclose)?;
                        if let Some(each) = Self::of(hdf5, member.id)? {
                            found.push(((tree.H5Tget_member_offset)(datatype, number), each));
                        }
                    }
                    (!found.is_empty()).then_some(Self::Compound(found))
                }
                _ => None,
            })
        }
    }
}

impl Places {
    /// Work on each reference of an element, in their order.
    ///
    /// # Safety
    /// `element` is one that libhdf5 has read in the type that this is of.
    pub(super) unsafe fn each(
        &self,
        element: *mut u8,
        work: &mut dyn FnMut(Reference, *mut u8) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's contract; offsets and sizes are the type's own.  Members of a
        // compound need not be aligned.
        unsafe {
            match self {
                Self::One(reference) => work(*reference, element)?,
                Self::Array { count, size, each } => {
                    for number in 0..*count {
                        each.each(element.add(number * size), work)?;
                    }
                }
                Self::Compound(members) => {
                    for (offset, each) in members {
                        each.each(element.add(*offset), work)?;
                    }
                }
                Self::Sequence { size, each } => {
                    let Sequence { len, data } = element.cast::<Sequence>().read_unaligned();
                    if !data.is_null() {
                        for number in 0..len {
                            each.each(data.add(number * size), work)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Where a reference leads; None where it is null, or leads nowhere in this file.
///
/// # Safety
/// As [`Hdf5`] says, for `file`; `element` is a reference of this kind that was read from it.
pub(super) unsafe fn lead(
    hdf5: Hdf5<'_>,
    file: hid_t,
    file_number: [std::ffi::c_ulong; 2],
    reference: Reference,
    element: *mut u8,
) -> Option<u64> {
    let Hdf5 { api, tree } = hdf5;
    // SAFETY: the caller's contract; handles are checked.  A holder need not be aligned, which
    // libhdf5 wants: it is given a copy, that owns nothing.
    unsafe {
        let object = match reference {
            Reference::Object => {
                let address = element.cast::<u64>().read_unaligned();
                return (![0, HADDR_UNDEF].contains(&address)).then_some(address);
            }
            Reference::Region if is_null(element, REGION_NBYTES) => return None,
            Reference::Region => {
                let object = (tree.H5Rdereference2)(file, DEFAULT, REGION, element.cast());
                Handle::new(api, "H5Rdereference2", object, tree.H5Oclose).ok()?
            }
            Reference::Holder if is_null(element, HOLDER_NBYTES) => return None,
            Reference::Holder => {
                let mut holder = Holder::read(element);
                let object = (tree.H5Ropen_object?)(holder.place(), DEFAULT, DEFAULT);
                Handle::new(api, "H5Ropen_object", object, tree.H5Oclose).ok()?
            }
        };
        let info = hdf5.info(object.id, c".").ok()?;
        (info.file == file_number).then(|| info.address())
    }
}

impl Copier<'_> {
    /// Lead each reference of an element to the copied object; gives how many led nowhere,
    /// which are null now.
    ///
    /// # Safety
    /// As [`Hdf5`] says; `element` is one that libhdf5 has read in the type that `places` is of.
    pub(super) unsafe fn retarget(&self, places: &Places, element: *mut u8) -> Result<u64, Fault> {
        let mut lost = 0;
        // SAFETY: the caller's contract.
        unsafe {
            places.each(element, &mut |reference, element| {
                let led = match reference {
                    Reference::Object => self.retarget_object(element),
                    Reference::Region => self.retarget_region(element)?,
                    Reference::Holder => self.retarget_holder(element)?,
                };
                lost += u64::from(!led);
                Ok(())
            })?;
        }
        Ok(lost)
    }

    /// Whether it is null or leads somewhere.
    ///
    /// # Safety
    /// As [`Self::retarget`].
    unsafe fn retarget_object(&self, element: *mut u8) -> bool {
        let place = element.cast::<u64>();
        // SAFETY: the caller's contract.
        let address = unsafe { place.read_unaligned() };
        if [0, HADDR_UNDEF].contains(&address) {
            return true;
        }
        let moved = self.made.moved.get(&address);
        // SAFETY: as above.
        unsafe { place.write_unaligned(moved.copied().unwrap_or(0)) };
        moved.is_some()
    }

    /// # Safety
    /// As [`Self::retarget`].
    unsafe fn retarget_region(&self, element: *mut u8) -> Result<bool, Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract.
        unsafe {
            if is_null(element, REGION_NBYTES) {
                return Ok(true);
            }
            let place = element.cast::<c_void>();
            let object = (tree.H5Rdereference2)(self.source, DEFAULT, REGION, place);
            let space = (tree.H5Rget_region)(self.source, REGION, place);
            let object = Handle::new(api, "H5Rdereference2", object, tree.H5Oclose);
            let space = Handle::new(api, "H5Rget_region", space, api.H5Sclose);
            element.write_bytes(0, REGION_NBYTES);
            let (Ok(object), Ok(space)) = (object, space) else { return Ok(false) };
            let Some(object) = self.copied(object.id)? else { return Ok(false) };
            let status = (tree.H5Rcreate)(place, object.id, c".".as_ptr(), REGION, space.id);
            api.checked("H5Rcreate", status).writing()?;
        }
        Ok(true)
    }

    /// # Safety
    /// As [`Self::retarget`].
    unsafe fn retarget_holder(&self, element: *mut u8) -> Result<bool, Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        let unknown = || Fault::reading("this libhdf5 does not know its kind of reference");
        // SAFETY: the caller's contract.  The element need not be aligned, which libhdf5's
        // functions want: they are given a copy.
        unsafe {
            if is_null(element, HOLDER_NBYTES) {
                return Ok(true);
            }
            let mut old = Holder::read(element);
            let kind = (tree.H5Rget_type.ok_or_else(unknown)?)(old.place());
            let object = (tree.H5Ropen_object.ok_or_else(unknown)?)(old.place(), DEFAULT, DEFAULT);
            let object = Handle::new(api, "H5Ropen_object", object, tree.H5Oclose).ok();
            if let Some(object) = &object
                && self.hdf5.info(object.id, c".")?.file != self.source_number
            {
                // It leads to another file, and still does.
                return Ok(true);
            }
            let copied = match &object {
                Some(object) => self.copied(object.id)?,
                None => None,
            };
            let mut new = Holder::null();
            if let Some(copied) = &copied {
                let (at, dot) = (copied.id, c".".as_ptr());
                let status = match kind {
                    HOLDS_OBJECT => {
                        let create = tree.H5Rcreate_object.ok_or_else(unknown)?;
                        create(at, dot, DEFAULT, new.place())
                    }
                    HOLDS_REGION => {
                        let open = tree.H5Ropen_region.ok_or_else(unknown)?;
                        let space = open(old.place(), DEFAULT, DEFAULT);
                        let space = Handle::new(api, "H5Ropen_region", space, api.H5Sclose)?;
                        let create = tree.H5Rcreate_region.ok_or_else(unknown)?;
                        create(at, dot, space.id, DEFAULT, new.place())
                    }
                    HOLDS_ATTRIBUTE => {
                        let name_of = tree.H5Rget_attr_name.ok_or_else(unknown)?;
                        let length = name_of(old.place(), std::ptr::null_mut(), 0);
                        let length = api.checked_id("H5Rget_attr_name", length as hid_t)?;
                        let mut name = buffer(length.unsigned_abs() + 1)?;
                        name_of(old.place(), name.as_mut_ptr().cast(), name.len());
                        let create = tree.H5Rcreate_attr.ok_or_else(unknown)?;
                        create(at, dot, name.as_ptr().cast(), DEFAULT, new.place())
                    }
                    _ => return Err(unknown()),
                };
                api.checked("H5Rcreate_object", status).writing()?;
            }
            // Reclaiming the elements destroys the new one.
            new.write(element);
            (tree.H5Rdestroy.ok_or_else(unknown)?)(old.place());
            Ok(copied.is_some())
        }
    }

    /// The copy of an object of the source; None where it has none.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn copied(&self, object: hid_t) -> Result<Option<Handle>, Fault> {
        // SAFETY: the caller's contract.
        unsafe {
            let address = self.hdf5.address(object)?;
            let Some(&moved) = self.made.moved.get(&address) else { return Ok(None) };
            Ok(Some(self.hdf5.open(self.target, moved).writing()?))
        }
    }
}

/// Whether all bytes are zero.
///
/// # Safety
/// This many bytes can be read.
unsafe fn is_null(element: *const u8, nbytes: usize) -> bool {
    // SAFETY: the caller's contract.
    unsafe { std::slice::from_raw_parts(element, nbytes) }.iter().all(|&byte| byte == 0)
}

/// `H5R_ref_t`
#[repr(C, align(8))]
struct Holder([u8; HOLDER_NBYTES]);

impl Holder {
    fn null() -> Self {
        Self([0; HOLDER_NBYTES])
    }

    /// # Safety
    /// One of them can be read.
    unsafe fn read(element: *const u8) -> Self {
        // SAFETY: the caller's contract.
        unsafe { element.cast::<Self>().read_unaligned() }
    }

    /// # Safety
    /// There is room for one.
    unsafe fn write(self, element: *mut u8) {
        // SAFETY: the caller's contract.
        unsafe { element.cast::<Self>().write_unaligned(self) };
    }

    fn place(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}
