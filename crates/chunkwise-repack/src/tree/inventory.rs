//! Which objects does a file hold, under which names, before anything of it is copied?
//!
//! A file is a graph: hard links give an object several names, or lead back to a group above.
//! Each object is one node, met first under one name; the links of a group are kept in the
//! order in which they have to be made again.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, c_char, c_int, c_void};

use chunkwise_format::{Charset, Target};
use chunkwise_libhdf5::binding::{DEFAULT, ObjectInfo, hid_t};

use super::api::LinkInfo;
use super::error::{Fault, TreeError, buffer};
use super::hdf5::{Hdf5, Kind, kind_of};
use super::lost::{Lost, Salvage, crashes};

/// An object of the source.
pub(super) struct Node {
    pub(super) address: u64,
    pub(super) kind: Kind,
    /// Whether it keeps the time of its last change.
    pub(super) timed: bool,
    /// The group in which it was met first (the root group is its own), and its place there.
    parent: usize,
    place: usize,
    /// Of a group.
    pub(super) links: Vec<Link>,
}

/// A name in a group.
pub(super) struct Link {
    pub(super) name: CString,
    /// `H5T_cset_t`
    pub(super) charset: c_int,
    pub(super) target: LinkTarget,
}

/// Where a name leads.
pub(super) enum LinkTarget {
    /// To a node.
    Hard(usize),
    /// To a path, which need not exist.
    Soft(CString),
    /// To a path in a file, neither of which need exist.
    External { file: CString, path: CString },
}

/// The root group's node.
pub(super) const ROOT: usize = 0;

/// What is given as the address of the group of objects without a name, which the source lacks.
pub(super) const FOUND: u64 = u64::MAX - 1;

/// All objects that links lead to, the root group first, and then those that are met otherwise,
/// with what their links lead to.
#[derive(Default)]
pub(super) struct Inventory {
    pub(super) nodes: Vec<Node>,
    pub(super) by_address: HashMap<u64, usize>,
    /// What those are called that no link leads to, by node.
    pub(super) unlinked: HashMap<usize, Vec<u8>>,
}

impl Inventory {
    /// The path under which a node was met first; the name of one that no link leads to.
    pub(super) fn path(&self, mut node: usize) -> Vec<u8> {
        let mut names = Vec::new();
        let mut path = Vec::new();
        while node != ROOT {
            if let Some(name) = self.unlinked.get(&node) {
                path.clone_from(name);
                break;
            }
            let Node { parent, place, .. } = self.nodes[node];
            names.push(self.nodes[parent].links[place].name.as_bytes());
            node = parent;
        }
        if names.is_empty() && path.is_empty() {
            return b"/".to_vec();
        }
        for name in names.into_iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        path
    }

    /// The same for messages.
    pub(super) fn printable(&self, node: usize) -> String {
        String::from_utf8_lossy(&self.path(node)).into_owned()
    }

    fn printable_below(&self, group: usize, name: &CStr) -> String {
        let path = self.printable(group);
        format!("{}/{}", path.trim_end_matches('/'), name.to_string_lossy())
    }

    /// Begin with the root group.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn begin(hdf5: Hdf5<'_>, file: hid_t) -> Result<Self, TreeError> {
        let mut made = Self::default();
        // SAFETY: the caller's contract.
        let info = unsafe { hdf5.info(file, c"/") };
        let info = info.map_err(|error| Fault::from(error).at("/".to_string()))?;
        made.add(info.address(), Kind::Group, &info, ROOT, 0);
        Ok(made)
    }

    /// Enter an object that no link leads to, unless it is known.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn enter_unlinked(
        &mut self,
        hdf5: Hdf5<'_>,
        file: hid_t,
        address: u64,
        name: &[u8],
    ) -> Result<(), TreeError> {
        if self.by_address.contains_key(&address) {
            return Ok(());
        }
        let said = || String::from_utf8_lossy(name).into_owned();
        // SAFETY: the caller's contract; handles are checked.
        let info = unsafe { hdf5.open(file, address).and_then(|open| hdf5.info(open.id, c".")) };
        let info = info.map_err(|error| Fault::from(error).at(said()))?;
        let Some(kind) = kind_of(&info) else { return Err(unknown_kind(said())) };
        let node = self.add(address, kind, &info, ROOT, 0);
        self.unlinked.insert(node, name.to_vec());
        Ok(())
    }

    fn add(
        &mut self,
        address: u64,
        kind: Kind,
        info: &ObjectInfo,
        parent: usize,
        place: usize,
    ) -> usize {
        let timed = info.modified != 0;
        let node = self.nodes.len();
        self.nodes.push(Node { address, kind, timed, parent, place, links: Vec::new() });
        self.by_address.insert(address, node);
        node
    }

    /// Enter the links of a group, and the objects that are new.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn enter(
        &mut self,
        hdf5: Hdf5<'_>,
        file: hid_t,
        group: usize,
        lost: &mut Lost,
    ) -> Result<(), TreeError> {
        // SAFETY: the caller's contract; the callback and its data fit each other.
        unsafe {
            let open = match hdf5.open(file, self.nodes[group].address) {
                Ok(open) => open,
                Err(error) => {
                    let fault = lost.known.named(self.nodes[group].address, error.into());
                    return lost.go_on_at(self.printable(group), fault);
                }
            };
            let mut listed: Vec<Listed> = Vec::new();
            if let Err(error) = hdf5.each_link(open.id, list, (&raw mut listed).cast()) {
                let fault = Fault::from(error).of(|| "some of its links".into());
                let fault = lost.known.named(self.nodes[group].address, fault);
                lost.go_on_at(self.printable(group), fault)?;
                more_links(hdf5, open.id, &mut listed);
                let more = links_beside(&lost.known, self.nodes[group].address, &listed);
                listed.extend(more);
            }
            self.nodes[group].links.reserve_exact(listed.len());
            for link in listed {
                let charset = link.charset;
                let target =
                    match self.target(hdf5, (file, open.id), group, &link, &lost.known.objects) {
                        Ok(target) => target,
                        Err(error) if lost.wanted => {
                            let object = self.printable_below(group, &link.name);
                            let fault = match link.class {
                                HARD => lost.known.named(link.address_or_size, error.into_fault()),
                                _ => error.into_fault(),
                            };
                            lost.go_on_at(object, fault)?;
                            continue;
                        }
                        Err(error) => return Err(error),
                    };
                self.nodes[group].links.push(Link { name: link.name, charset, target });
            }
        }
        Ok(())
    }

    /// Enter objects to which no link leads that was met, in a group of their own.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    pub(super) unsafe fn adopt(&mut self, hdf5: Hdf5<'_>, file: hid_t, orphans: &[u64]) {
        let mut group = None;
        for &address in orphans {
            if self.by_address.contains_key(&address) {
                continue;
            }
            // SAFETY: the caller's contract.  What cannot be opened was perhaps no object.
            let info =
                unsafe { hdf5.open(file, address).and_then(|open| hdf5.info(open.id, c".")) };
            let Ok(info) = info else { continue };
            let Some(kind) = kind_of(&info) else { continue };
            let group = *group.get_or_insert_with(|| self.found_group());
            let place = self.nodes[group].links.len();
            let node = self.add(address, kind, &info, group, place);
            let name = CString::new(format!("at-{address}")).unwrap_or_default();
            let link = Link { name, charset: 0, target: LinkTarget::Hard(node) };
            self.nodes[group].links.push(link);
        }
    }

    /// The group of objects without a name, which is made here, under a name that is free.
    fn found_group(&mut self) -> usize {
        if let Some(&known) = self.by_address.get(&FOUND) {
            return known;
        }
        let mut name = String::from("lost+found");
        let root = &self.nodes[ROOT];
        while root.links.iter().any(|link| link.name.to_bytes() == name.as_bytes()) {
            name.push('_');
        }
        let place = root.links.len();
        let name = CString::new(name).unwrap_or_default();
        let node = self.add(FOUND, Kind::Group, &ObjectInfo::default(), ROOT, place);
        let link = Link { name, charset: 0, target: LinkTarget::Hard(node) };
        self.nodes[ROOT].links.push(link);
        node
    }

    /// Where a link leads.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn target(
        &mut self,
        hdf5: Hdf5<'_>,
        (file, open): (hid_t, hid_t),
        group: usize,
        link: &Listed,
        avoid: &HashSet<u64>,
    ) -> Result<LinkTarget, TreeError> {
        // SAFETY: the caller's contract.
        unsafe {
            match link.class {
                HARD if avoid.contains(&link.address_or_size) => {
                    Err(crashes().at(self.printable_below(group, &link.name)))
                }
                HARD => self.object(hdf5, (file, open), group, link),
                SOFT | EXTERNAL => value(hdf5, open, link).map_err(|fault| {
                    fault.of(|| "the link".into()).at(self.printable_below(group, &link.name))
                }),
                class => {
                    let object = self.printable_below(group, &link.name);
                    let reason = format!(
                        "it is a user-defined link (class {class}), which only the \
                         program that defined it can copy; delete it first"
                    );
                    Err(TreeError::Refused { object, reason })
                }
            }
        }
    }

    /// The object of a hard link.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn object(
        &mut self,
        hdf5: Hdf5<'_>,
        (file, open): (hid_t, hid_t),
        group: usize,
        link: &Listed,
    ) -> Result<LinkTarget, TreeError> {
        if let Some(&known) = self.by_address.get(&link.address_or_size) {
            return Ok(LinkTarget::Hard(known));
        }
        // SAFETY: the caller's contract.
        let info = unsafe {
            match link.by_address {
                true => hdf5
                    .open(file, link.address_or_size)
                    .and_then(|object| hdf5.info(object.id, c".")),
                false => hdf5.info(open, &link.name),
            }
        };
        let info =
            info.map_err(|error| Fault::from(error).at(self.printable_below(group, &link.name)))?;
        let Some(kind) = kind_of(&info) else {
            return Err(unknown_kind(self.printable_below(group, &link.name)));
        };
        let place = self.nodes[group].links.len();
        Ok(LinkTarget::Hard(self.add(link.address_or_size, kind, &info, group, place)))
    }
}

fn unknown_kind(object: String) -> TreeError {
    let reason = "it is an object of a kind that this libhdf5 does not know".to_string();
    TreeError::Refused { object, reason }
}

/// `H5L_type_t`
const HARD: c_int = 0;
const SOFT: c_int = 1;
const EXTERNAL: c_int = 64;

/// A link as libhdf5 lists it.
struct Listed {
    name: CString,
    class: c_int,
    charset: c_int,
    address_or_size: u64,
    /// Whether libhdf5 does not find it by its name.
    by_address: bool,
}

unsafe extern "C" fn list(
    _group: hid_t,
    name: *const c_char,
    info: *const LinkInfo,
    data: *mut c_void,
) -> c_int {
    // SAFETY: libhdf5 passes a live string and record, and `data` is a list of this.
    unsafe {
        let LinkInfo { class, charset, address_or_size, .. } = *info;
        let name = CStr::from_ptr(name).to_owned();
        let by_address = false;
        let listed = Listed { name, class, charset, address_or_size, by_address };
        (*data.cast::<Vec<Listed>>()).push(listed);
    }
    0
}

/// List links that another index, or the order in which they are stored, still gives.
///
/// # Safety
/// As [`Hdf5`] says.
unsafe fn more_links(hdf5: Hdf5<'_>, group: hid_t, listed: &mut Vec<Listed>) {
    for (index, order) in Hdf5::OTHER_ORDERS {
        let mut more: Vec<Listed> = Vec::new();
        // SAFETY: the caller's contract; the callback and its data fit each other.
        let _ = unsafe { hdf5.each_link_by(group, index, order, list, (&raw mut more).cast()) };
        for link in more {
            if listed.iter().all(|known| known.name != link.name) {
                listed.push(link);
            }
        }
    }
}

/// Hard links of a group that libhdf5 does not list because its index is damaged.
fn links_beside(known: &Salvage, group: u64, listed: &[Listed]) -> Vec<Listed> {
    let Some(metadata) = &known.metadata else { return Vec::new() };
    let Ok(object) = metadata.object(group) else { return Vec::new() };
    let names: HashSet<&CStr> = listed.iter().map(|link| &*link.name).collect();
    let links = object.readable_links().0.into_iter().filter_map(|link| {
        let Target::Hard(address_or_size) = link.target else { return None };
        let name = CString::new(link.name).ok().filter(|name| !names.contains(&**name))?;
        let charset = c_int::from(link.charset == Charset::Utf8);
        Some(Listed { name, class: HARD, charset, address_or_size, by_address: true })
    });
    links.collect()
}

/// Where a soft or external link leads.
///
/// # Safety
/// As [`Hdf5`] says.
unsafe fn value(hdf5: Hdf5<'_>, group: hid_t, link: &Listed) -> Result<LinkTarget, Fault> {
    // One more, so that it ends with zero whatever the file says.
    let mut value = buffer(link.address_or_size.saturating_add(1))?;
    let size = value.len() - 1;
    // SAFETY: the caller's contract; room for the value.  The strings of an external link lie
    // within it, which H5Lunpack_elink_val checks.
    unsafe {
        let status = (hdf5.tree.H5Lget_val)(
            group,
            link.name.as_ptr(),
            value.as_mut_ptr().cast(),
            size,
            DEFAULT,
        );
        hdf5.api.checked("H5Lget_val", status)?;
        if link.class == SOFT {
            let path = CStr::from_bytes_until_nul(&value).map(CStr::to_owned);
            return Ok(LinkTarget::Soft(path.unwrap_or_default()));
        }
        let (mut file, mut path) = (std::ptr::null(), std::ptr::null());
        let status = (hdf5.tree.H5Lunpack_elink_val)(
            value.as_ptr().cast(),
            size,
            std::ptr::null_mut(),
            &raw mut file,
            &raw mut path,
        );
        hdf5.api.checked("H5Lunpack_elink_val", status)?;
        let (file, path) = (CStr::from_ptr(file).to_owned(), CStr::from_ptr(path).to_owned());
        Ok(LinkTarget::External { file, path })
    }
}
