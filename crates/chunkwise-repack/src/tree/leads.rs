//! Which other objects does an object lead to, but for the links of a group?
//!
//! Those that its references mean, and the committed types of its data and attributes.  Such
//! objects need no link: JLD2 stores all nested values so.  Only what was written is read, a
//! bounded slab at a time; what cannot be read leads nowhere, and is left for others to report.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_ulong};
use std::mem::ManuallyDrop;
use std::sync::Arc;

use chunkwise_libhdf5::binding::{DEFAULT, Handle, hid_t};
use chunkwise_libhdf5::{BindError, Library};

use super::api::TreeApi;
use super::attributes::NULL_SPACE;
use super::elements::{Slabs, select};
use super::error::Fault;
use super::hdf5::{Hdf5, Kind, kind_of};
use super::objects::VIRTUAL;
use super::references::{Places, lead};
use super::values::Elements;

/// An object that another leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lead {
    /// The attribute that names it; None for the data of a dataset.
    pub attribute: Option<Vec<u8>>,
    /// Which element, counted as C counts, and which reference of it; None where the object is
    /// the type of all of them.
    pub element: Option<(u64, u64)>,
    /// Where the object lies, if there is one.
    pub address: u64,
}

/// After this many slabs that cannot be read, the others are left alone.
const MOST_FAILED: u32 = 1000;

/// A name that no attribute has.
const NO_ATTRIBUTE: &CStr = c"\x01";

/// Finds what objects lead to, in one library.
pub struct Leads {
    library: Arc<Library>,
    calls: TreeApi,
}

impl Leads {
    /// Look up what it calls.
    ///
    /// # Errors
    /// This libhdf5 lacks a function for it.
    pub fn new(library: &Arc<Library>) -> Result<Self, BindError> {
        let symbol = |name| library.loaded().symbol(name);
        // SAFETY: the library is never unloaded.
        let calls = library.locked(|_| unsafe { TreeApi::resolve(library.path(), symbol) })?;
        Ok(Self { library: Arc::clone(library), calls })
    }

    /// All objects that an open object leads to, each once for its data and once for each
    /// attribute: first those of its data, in the order of elements, then its attributes by name.
    ///
    /// # Errors
    /// libhdf5 knows nothing of the object.
    ///
    /// # Safety
    /// A live handle of this library.
    pub unsafe fn of(&self, object: hid_t) -> Result<Vec<Lead>, BindError> {
        let Self { library, calls } = self;
        library.locked(|api| {
            let hdf5 = Hdf5 { api, tree: calls };
            // SAFETY: the library's lock is held; the caller's contract.
            unsafe {
                let info = hdf5.info(object, c".")?;
                let mut finder =
                    Finder { hdf5, object, file: info.file, library, found: Vec::new() };
                if kind_of(&info) == Some(Kind::Dataset) {
                    // What cannot be read leads nowhere.
                    finder.data().ok();
                }
                let mut names = finder.attribute_names().unwrap_or_default();
                names.sort();
                for name in names {
                    finder.attribute(&name).ok();
                }
                Ok(finder.found)
            }
        })
    }

    /// Open an object by its address; None where there is none, or one that was deleted.
    ///
    /// # Safety
    /// A live file of this library, or an object in it; the handle is the caller's to close.
    pub unsafe fn open(&self, file: hid_t, address: u64) -> Option<hid_t> {
        let Self { library, calls } = self;
        library.locked(|api| {
            let hdf5 = Hdf5 { api, tree: calls };
            // SAFETY: the library's lock is held; libhdf5 checks the address.
            unsafe {
                let object = hdf5.open(file, address).ok()?;
                // As H5Rdereference has it.
                let is_there = hdf5.info(object.id, c".").ok()?.links > 0;
                is_there.then(|| ManuallyDrop::new(object).id)
            }
        })
    }
}

/// Looks at one object, while the library's lock is held.
struct Finder<'a> {
    hdf5: Hdf5<'a>,
    object: hid_t,
    /// libhdf5's number of its file.
    file: [c_ulong; 2],
    library: &'a Library,
    found: Vec<Lead>,
}

/// By address, the first place that names it.
type First = HashMap<u64, (u64, u64)>;

impl Finder<'_> {
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn attribute_names(&self) -> Result<Vec<CString>, BindError> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract.  Where a header is damaged, H5Aiterate before 2.0
        // releases what it has not filled; looking for a name decodes the same headers.
        unsafe {
            let exists = (tree.H5Aexists)(self.object, NO_ATTRIBUTE.as_ptr());
            api.checked("H5Aexists", exists)?;
            self.hdf5.attribute_names_as_stored(self.object)
        }
    }

    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn data(&mut self) -> Result<(), Fault> {
        let Hdf5 { api, .. } = self.hdf5;
        // SAFETY: the caller's contract; handles are checked.
        unsafe {
            let datatype = (api.H5Dget_type)(self.object);
            let datatype = Handle::new(api, "H5Dget_type", datatype, api.H5Tclose)?;
            self.committed(datatype.id, None)?;
            let Some(places) = Places::of(self.hdf5, datatype.id)? else { return Ok(()) };
            let dcpl = (api.H5Dget_create_plist)(self.object);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            let space = (api.H5Dget_space)(self.object);
            let space = Handle::new(api, "H5Dget_space", space, api.H5Sclose)?;
            if (api.H5Pget_layout)(dcpl.id) == VIRTUAL
                || (api.H5Pget_external_count)(dcpl.id) > 0
                || (api.H5Sget_simple_extent_npoints)(space.id) <= 0
                || (api.H5Dget_storage_size)(self.object) == 0
            {
                return Ok(());
            }
            let mut slabs = Slabs::of(self.hdf5, self.object, self.library)?;
            if slabs.unlisted {
                return Ok(());
            }
            let (mut first, mut failed) = (First::new(), 0);
            while let Some((start, count)) = slabs.advance() {
                let read =
                    self.slab(&slabs, datatype.id, space.id, &places, (&start, &count), &mut first);
                // One that is damaged hides no other; but a header may claim any size.
                failed += u32::from(read.is_err());
                if failed > MOST_FAILED {
                    break;
                }
            }
            self.add(None, first);
        }
        Ok(())
    }

    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn slab(
        &self,
        slabs: &Slabs,
        datatype: hid_t,
        space: hid_t,
        places: &Places,
        (start, count): (&chunkwise_select::Dims, &chunkwise_select::Dims),
        first: &mut First,
    ) -> Result<(), Fault> {
        let Hdf5 { api, .. } = self.hdf5;
        // SAFETY: the caller's contract; there is room for all elements.
        unsafe {
            let memory =
                if start.is_empty() { None } else { Some(select(self.hdf5, space, start, count)?) };
            let memory = memory.as_ref().map_or(space, |memory| memory.id);
            let elements = count.iter().product();
            let mut values = Elements::new(self.hdf5, datatype, memory, elements)?;
            values.fill(|place| {
                let status = (api.H5Dread)(self.object, datatype, memory, space, DEFAULT, place);
                api.checked("H5Dread", status)?;
                Ok(())
            })?;
            self.collect(
                &mut values,
                places,
                |number| within(&slabs.shape, start, count, number),
                first,
            )
        }
    }

    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn attribute(&mut self, name: &CStr) -> Result<(), Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract; handles are checked, there is room for all elements.
        unsafe {
            let attribute = (tree.H5Aopen)(self.object, name.as_ptr(), DEFAULT);
            let attribute = Handle::new(api, "H5Aopen", attribute, tree.H5Aclose)?;
            let datatype = (tree.H5Aget_type)(attribute.id);
            let datatype = Handle::new(api, "H5Aget_type", datatype, api.H5Tclose)?;
            self.committed(datatype.id, Some(name))?;
            let Some(places) = Places::of(self.hdf5, datatype.id)? else { return Ok(()) };
            let space = (tree.H5Aget_space)(attribute.id);
            let space = Handle::new(api, "H5Aget_space", space, api.H5Sclose)?;
            let count = (api.H5Sget_simple_extent_npoints)(space.id);
            if count <= 0 || (api.H5Sget_simple_extent_type)(space.id) == NULL_SPACE {
                return Ok(());
            }
            let mut values = Elements::new(self.hdf5, datatype.id, space.id, count.unsigned_abs())?;
            values.fill(|place| {
                api.checked("H5Aread", (tree.H5Aread)(attribute.id, datatype.id, place))?;
                Ok(())
            })?;
            let mut first = First::new();
            self.collect(&mut values, &places, |number| number, &mut first)?;
            self.add(Some(name), first);
        }
        Ok(())
    }

    /// Note where the references of some elements lead, `at` of which in the whole they are.
    ///
    /// # Safety
    /// As [`Hdf5`] says; `places` is of their type.
    unsafe fn collect(
        &self,
        values: &mut Elements<'_>,
        places: &Places,
        at: impl Fn(u64) -> u64,
        first: &mut First,
    ) -> Result<(), Fault> {
        for (element, index) in values.each().zip(0..) {
            let mut number = 0;
            // SAFETY: the caller's contract; they have been read.
            unsafe {
                places.each(element, &mut |reference, element| {
                    if let Some(address) =
                        lead(self.hdf5, self.object, self.file, reference, element)
                    {
                        let place = (at(index), number);
                        let known = first.entry(address).or_insert(place);
                        *known = place.min(*known);
                    }
                    number += 1;
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn committed(&mut self, datatype: hid_t, name: Option<&CStr>) -> Result<(), BindError> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract.
        unsafe {
            if api.checked("H5Tcommitted", (tree.H5Tcommitted)(datatype))? > 0 {
                let address = self.hdf5.address(datatype)?;
                let attribute = name.map(|name| name.to_bytes().to_vec());
                self.found.push(Lead { attribute, element: None, address });
            }
        }
        Ok(())
    }

    fn add(&mut self, name: Option<&CStr>, first: First) {
        let mut sorted: Vec<_> = first.into_iter().map(|(address, at)| (at, address)).collect();
        sorted.sort_unstable();
        self.found.extend(sorted.into_iter().map(|(place, address)| Lead {
            attribute: name.map(|name| name.to_bytes().to_vec()),
            element: Some(place),
            address,
        }));
    }
}

/// Which element of the whole the one of this number in a slab is.
fn within(shape: &[u64], start: &[u64], count: &[u64], mut number: u64) -> u64 {
    let (mut index, mut step) = (0, 1);
    for axis in (0..shape.len()).rev() {
        let size = count[axis].max(1);
        index += (start[axis] + number % size) * step;
        number /= size;
        step *= shape[axis];
    }
    index
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn elements_of_a_slab_are_counted_in_the_whole() {
        let found: Vec<u64> = (0..4).map(|n| within(&[4, 5], &[2, 3], &[2, 2], n)).collect();
        assert_eq!(found, [13, 14, 18, 19]);
        assert_eq!(within(&[], &[], &[], 0), 0);
    }
}
