//! How is each link of a group made again, with the object that it leads to?

use std::ffi::CStr;
use std::time::Instant;

use chunkwise_libhdf5::binding::{DEFAULT, Handle, filters_of, hid_t, holds_pointers, list};

use super::copier::{Copier, Later, Lists};
use super::elements::small;
use super::error::{Fault, TreeError, Writing};
use super::hdf5::{Hdf5, Kind};
use super::inventory::{FOUND, Link, LinkTarget, ROOT};
use super::lost::crashes;

/// `H5T_CSET_ASCII`
const ASCII: i32 = 0;

/// A name that no link of a file has.
const FOR_A_MOMENT: &CStr = c"\x01chunkwise: a copy without a link";

/// `H5D_layout_t`
pub(super) const COMPACT: i32 = 0;
pub(super) const CONTIGUOUS: i32 = 1;
pub(super) const VIRTUAL: i32 = 3;

impl Lists {
    pub(super) fn of(&self, link: &Link) -> hid_t {
        if link.charset == ASCII { self.ascii } else { self.utf8 }
    }
}

impl Copier<'_> {
    /// Copy attributes and comment of the root group, which is there already.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn dress_root(&mut self) -> Result<(), TreeError> {
        let Hdf5 { api, tree } = self.hdf5;
        let address = self.inventory.nodes[ROOT].address;
        // SAFETY: the caller's contract; handles are checked.
        let done = unsafe {
            self.hdf5.info(self.target, c"/").writing().and_then(|info| {
                self.made.moved.insert(address, info.address());
                let source = self.hdf5.open(self.source, address)?;
                let target = self.hdf5.open(self.target, info.address()).writing()?;
                let gcpl = (tree.H5Gget_create_plist)(source.id);
                let gcpl = Handle::new(api, "H5Gget_create_plist", gcpl, api.H5Pclose)?;
                self.dress(address, source.id, target.id, gcpl.id)
            })
        };
        done.map_err(|fault| fault.at("/".to_string()))?;
        // SAFETY: as above.
        unsafe { self.dress_datatypes() }
    }

    /// Make links of a group from the one in place `from` on, until `deadline`; gives the
    /// place of the first that was not made.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn make_links(
        &mut self,
        group: usize,
        from: usize,
        deadline: Instant,
    ) -> Result<usize, TreeError> {
        let node = &self.inventory.nodes[group];
        // Each group was made before its links, by a link of a group before it.
        let Some(&moved) = self.made.moved.get(&node.address) else { return Ok(node.links.len()) };
        // SAFETY: the caller's contract.
        let target = unsafe { self.hdf5.open(self.target, moved).writing() };
        let target = target.map_err(|fault| fault.at(self.inventory.printable(group)))?;
        for (place, link) in node.links.iter().enumerate().skip(from) {
            if place > from && Instant::now() >= deadline {
                return Ok(place);
            }
            // SAFETY: the caller's contract.
            unsafe {
                if let Err(fault) = self.make_link(target.id, link) {
                    let path = self.inventory.printable(group);
                    let name = link.name.to_string_lossy();
                    let object = format!("{}/{name}", path.trim_end_matches('/'));
                    self.made.lost.go_on_at(object, fault)?;
                }
                self.dress_datatypes()?;
            }
        }
        Ok(node.links.len())
    }

    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn make_link(&mut self, group: hid_t, link: &Link) -> Result<(), Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        let (name, lcpl) = (link.name.as_ptr(), self.lists.of(link));
        // SAFETY: the caller's contract; strings that end with zero.
        unsafe {
            let (call, status) = match &link.target {
                LinkTarget::Soft(path) => {
                    let path = path.as_ptr();
                    ("H5Lcreate_soft", (tree.H5Lcreate_soft)(path, group, name, lcpl, DEFAULT))
                }
                LinkTarget::External { file, path } => {
                    let (file, path) = (file.as_ptr(), path.as_ptr());
                    let make = tree.H5Lcreate_external;
                    ("H5Lcreate_external", make(file, path, group, name, lcpl, DEFAULT))
                }
                LinkTarget::Hard(node) => {
                    let address = self.inventory.nodes[*node].address;
                    let Some(&moved) = self.made.moved.get(&address) else {
                        return self.make_object(*node, Some((group, link)));
                    };
                    let object = self.hdf5.open(self.target, moved).writing()?;
                    let make = tree.H5Lcreate_hard;
                    let dot = c".".as_ptr();
                    let status = make(object.id, dot, group, name, lcpl, DEFAULT);
                    api.checked("H5Lcreate_hard", status).writing()?;
                    if self.made.held.remove(&address) {
                        let status = (tree.H5Odecr_refcount)(object.id);
                        api.checked("H5Odecr_refcount", status).writing()?;
                    }
                    return Ok(());
                }
            };
            api.checked(call, status).writing()?;
        }
        Ok(())
    }

    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn make_object(
        &mut self,
        node: usize,
        place: Option<(hid_t, &Link)>,
    ) -> Result<(), Fault> {
        let address = self.inventory.nodes[node].address;
        // SAFETY: the caller's contract.
        unsafe {
            if let (FOUND, Some((group, link))) = (address, place) {
                return self.make_found_group(group, link);
            }
            let source = self.hdf5.open(self.source, address)?;
            match self.inventory.nodes[node].kind {
                Kind::Group => self.make_group(address, source.id, place),
                Kind::Dataset => self.make_dataset(node, source.id, place),
                Kind::Datatype => {
                    let copy = self.commit(address, source.id, place)?;
                    if place.is_none() {
                        self.hold(address, copy)?;
                    }
                    Ok(())
                }
            }
        }
    }

    /// Make an object to which no link leads, unless it is there already: a type that one made
    /// before it uses.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn make_unlinked(&mut self, node: usize) -> Result<(), TreeError> {
        if self.made.moved.contains_key(&self.inventory.nodes[node].address) {
            return Ok(());
        }
        // SAFETY: the caller's contract.
        unsafe {
            if let Err(fault) = self.make_object(node, None) {
                let object = self.inventory.printable(node);
                let fault = self.made.lost.known.named(self.inventory.nodes[node].address, fault);
                self.made.lost.go_on_at(object, fault)?;
            }
            self.dress_datatypes()
        }
    }

    /// Note where the copy of an object lies; one without a link is held.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn keep(
        &mut self,
        address: u64,
        copy: hid_t,
        unlinked: bool,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's contract.
        unsafe {
            let moved = self.hdf5.address(copy).writing()?;
            self.made.moved.insert(address, moved);
            if unlinked { self.hold(address, copy) } else { Ok(()) }
        }
    }

    /// Count a link that is not there, so that libhdf5 does not delete the object when it is
    /// closed.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn hold(&mut self, address: u64, copy: hid_t) -> Result<(), Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract.
        let status = unsafe { (tree.H5Oincr_refcount)(copy) };
        api.checked("H5Oincr_refcount", status).writing()?;
        self.made.held.insert(address);
        Ok(())
    }

    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn make_dataset(
        &mut self,
        node: usize,
        source: hid_t,
        place: Option<(hid_t, &Link)>,
    ) -> Result<(), Fault> {
        let Hdf5 { api, tree } = self.hdf5;
        let address = self.inventory.nodes[node].address;
        let wanted = self.dcpls.get(&address).copied();
        // SAFETY: the caller's contract; handles are checked.
        unsafe {
            let datatype = (api.H5Dget_type)(source);
            let datatype = Handle::new(api, "H5Dget_type", datatype, api.H5Tclose)?;
            let space = (api.H5Dget_space)(source);
            let space = Handle::new(api, "H5Dget_space", space, api.H5Sclose)?;
            let dcpl = (api.H5Dget_create_plist)(source);
            let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
            self.keep_times(address, source, dcpl.id)?;
            // Where damage is left out, chunks are copied one by one.
            if wanted.is_none()
                && !self.made.lost.wanted
                && let Some(copy) = self.copy_verbatim(source, datatype.id, dcpl.id, place)?
            {
                self.keep(address, copy.id, place.is_none())?;
                if place.is_none() {
                    let status = (tree.H5Ldelete)(self.target, FOR_A_MOMENT.as_ptr(), DEFAULT);
                    api.checked("H5Ldelete", status).writing()?;
                }
                return self.dress(address, source, copy.id, dcpl.id);
            }
            let made = self.committed(datatype.id)?;
            if wanted.is_none() {
                self.strip_filters(dcpl.id)?;
            }
            let of = wanted.unwrap_or(dcpl.id);
            let copy = match place {
                Some((group, link)) => {
                    let (name, lcpl) = (link.name.as_ptr(), self.lists.of(link));
                    (api.H5Dcreate2)(group, name, made, space.id, lcpl, of, DEFAULT)
                }
                None => (tree.H5Dcreate_anon)(self.target, made, space.id, of, DEFAULT),
            };
            let copy = Handle::new(api, "H5Dcreate2", copy, tree.H5Oclose).writing();
            let copy = copy.map_err(|fault| match self.missing_filter(of) {
                Some(reason) => fault.because(&reason),
                None => fault,
            })?;
            self.keep(address, copy.id, place.is_none())?;
            self.dress(address, source, copy.id, dcpl.id)?;

            let layout = api.checked("H5Pget_layout", (api.H5Pget_layout)(dcpl.id))?;
            let external = (api.H5Pget_external_count)(dcpl.id);
            let elsewhere =
                layout == VIRTUAL || api.checked("H5Pget_external_count", external)? > 0;
            if elsewhere && wanted.is_none() {
                return self.warn_of_names(node, dcpl.id, layout == VIRTUAL);
            }
            // Nothing was written yet, and what reads as the fill value still does.
            let unwritten = layout == CONTIGUOUS && (api.H5Dget_storage_size)(source) == 0;
            let count = (api.H5Sget_simple_extent_npoints)(space.id);
            if count <= 0 || (unwritten && !elsewhere) {
                return Ok(());
            }
            let rank = (api.H5Sget_simple_extent_ndims)(space.id);
            if self.made.lost.known.data.contains(&address) {
                self.go_on(address, crashes().of(|| "its data".into()))?;
            } else if holds_pointers(api, datatype.id)? {
                self.made.later.push(Later::Elements { node });
            } else if rank == 0
                || layout == COMPACT
                || (layout == CONTIGUOUS && wanted.is_none() && small(api, datatype.id, count))
            {
                if self.made.lost.wanted {
                    // What cannot be read of it is found element by element.
                    self.made.later.push(Later::Elements { node });
                } else {
                    self.copy_whole(source, copy.id, datatype.id, space.id)?;
                }
            } else {
                self.made.datasets.push(node);
            }
        }
        Ok(())
    }

    /// Where an object keeps no times, neither does the copy: headers of the first version
    /// say nothing of that in their creation properties.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn keep_times(
        &self,
        address: u64,
        source: hid_t,
        ocpl: hid_t,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's contract.
        unsafe {
            let timed = match self.inventory.by_address.get(&address) {
                Some(&node) => self.inventory.nodes[node].timed,
                None => self.hdf5.info(source, c".")?.modified != 0,
            };
            if !timed {
                let status = (self.hdf5.tree.H5Pset_obj_track_times)(ocpl, false);
                self.hdf5.api.checked("H5Pset_obj_track_times", status)?;
            }
        }
        Ok(())
    }

    /// Copy a dataset with its chunks as they are stored, if a plugin might complete its filter
    /// otherwise when a dataset is made; None if that is not so, or libhdf5 cannot.  Where it has
    /// no place, it has a link in the root group until the caller deletes that.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn copy_verbatim(
        &self,
        source: hid_t,
        datatype: hid_t,
        dcpl: hid_t,
        place: Option<(hid_t, &Link)>,
    ) -> Result<Option<Handle>, Fault> {
        const FIRST_PLUGIN: i32 = 256;
        const WITHOUT_ATTRIBUTES: u32 = 0x10;
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract; handles are checked.
        unsafe {
            let count = api.checked("H5Pget_nfilters", (api.H5Pget_nfilters)(dcpl))?;
            let filters = filters_of(api, dcpl, count.unsigned_abs())?;
            // A committed type would be committed once more.
            if filters.iter().all(|filter| filter.id < FIRST_PLUGIN)
                || api.checked("H5Tcommitted", (tree.H5Tcommitted)(datatype))? != 0
                || holds_pointers(api, datatype)?
            {
                return Ok(None);
            }
            let how = list(api, tree.H5P_CLS_OBJECT_COPY_ID_g)?;
            let status = (tree.H5Pset_copy_object)(how.id, WITHOUT_ATTRIBUTES);
            api.checked("H5Pset_copy_object", status)?;
            let (group, name, lcpl) = match place {
                Some((group, link)) => (group, link.name.as_ptr(), self.lists.of(link)),
                None => (self.target, FOR_A_MOMENT.as_ptr(), DEFAULT),
            };
            if (tree.H5Ocopy)(source, c".".as_ptr(), group, name, how.id, lcpl) < 0 {
                return Ok(None);
            }
            let copy = (api.H5Dopen2)(group, name, DEFAULT);
            Ok(Some(Handle::new(api, "H5Dopen2", copy, tree.H5Oclose).writing()?))
        }
    }

    /// Give filters the values that they were given once: when a dataset is made, Bitshuffle's
    /// plugin puts its version and the element's size before them, each time.  Others put theirs
    /// in the same places again.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn strip_filters(&self, dcpl: hid_t) -> Result<(), Fault> {
        const BITSHUFFLE: i32 = 32008;
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract; all of the client data.
        unsafe {
            let count = api.checked("H5Pget_nfilters", (api.H5Pget_nfilters)(dcpl))?;
            for filter in filters_of(api, dcpl, count.unsigned_abs())? {
                if let (BITSHUFFLE, Some(values)) = (filter.id, filter.cd_values.get(3..)) {
                    let (modify, flags) = (tree.H5Pmodify_filter, filter.flags);
                    let status = modify(dcpl, filter.id, flags, values.len(), values.as_ptr());
                    api.checked("H5Pmodify_filter", status)?;
                }
            }
        }
        Ok(())
    }

    /// Why a dataset of these properties cannot be made, if that is a filter.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn missing_filter(&self, dcpl: hid_t) -> Option<String> {
        const OPTIONAL: u32 = 1;
        let Hdf5 { api, tree } = self.hdf5;
        // SAFETY: the caller's contract.
        unsafe {
            let count = (api.H5Pget_nfilters)(dcpl);
            let filters = filters_of(api, dcpl, u32::try_from(count).ok()?).ok()?;
            let missing = filters.iter().find(|filter| {
                filter.flags & OPTIONAL == 0 && (tree.H5Zfilter_avail)(filter.id) <= 0
            })?;
            Some(format!("libhdf5 lacks its {}: install that plugin", missing.label()))
        }
    }
}
