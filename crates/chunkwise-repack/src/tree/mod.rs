//! How is everything of a file copied but the plain bytes of its datasets?
//!
//! First an [`inventory::Inventory`] of the source, which refuses what cannot be kept before
//! anything is written.  Then its links are made again, group by group, with the objects that
//! they lead to: types are shared as they were, attributes are made in their order.  The
//! caller copies the plain data meanwhile, however that is best done.  At the end comes what
//! holds references, as every object has its copy by then, and data that libhdf5 alone can
//! write.
//!
//! An object that no link leads to, but a reference (or that is the type of something), is made
//! without a link too, and counted as if it had one: libhdf5 deletes an object that nothing
//! counts.  The caller names these; [`Leads`] finds them.
//!
//! Objects are opened by address, so that no depth of groups is a recursion.  The library's
//! lock is held for a few hundredths of a second at a time.

mod api;
mod attributes;
mod copier;
mod datatypes;
mod elements;
mod error;
mod groups;
mod hdf5;
mod inventory;
mod leads;
mod lost;
mod meaning;
mod natively;
mod nearby;
mod objects;
mod references;
#[cfg(test)]
mod tests;
mod values;

use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use error::TreeError;
pub use leads::{Lead, Leads};
pub use lost::{Missing, Salvage};
pub use meaning::{ElementPart, Led, Meaning, comment_of, meaning_of};

use chunkwise_libhdf5::binding::{Handle, hid_t, list};
use chunkwise_libhdf5::{BindError, Library};

use self::api::TreeApi;
use self::copier::{Copier, Later, Lists, Made};
use self::elements::Slabs;
use self::error::Fault;
use self::hdf5::{Hdf5, Kind};
use self::inventory::{FOUND, Inventory, ROOT};
use self::lost::Lost;

/// How long the library's lock is held at a time.
const PORTION: Duration = Duration::from_millis(20);

/// How often the progress is reported.
const REPORTING: Duration = Duration::from_millis(100);

/// Gets how many objects are done, of how many (0: not known yet); false stops the copy.
pub type TreeProgress<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// A file's tree, copied; the plain data of [`Self::datasets`] is the caller's to copy.
pub struct TreeCopy {
    library: Arc<Library>,
    calls: TreeApi,
    source: hid_t,
    target: hid_t,
    source_name: String,
    source_number: [std::ffi::c_ulong; 2],
    lists: Lists,
    inventory: Inventory,
    dcpls: HashMap<u64, hid_t>,
    made: Made,
}

impl TreeCopy {
    /// Copy the tree of the open file `source` to `target`, which is open for writing and has
    /// a root group only.
    ///
    /// `dcpls` are creation properties for datasets by the address of the source's; others
    /// keep theirs.  `unlinked` are the objects to copy that no link leads to, by address, with
    /// what they are called.  With `salvage`, what cannot be read is left out and listed.
    ///
    /// # Errors
    /// When the source cannot be read, or holds what cannot be kept; when the target cannot
    /// be written; when `progress` stops it.
    ///
    /// # Safety
    /// Live handles of this library: the files until the copy is finished or dropped, the
    /// property lists during this call.
    pub unsafe fn new(
        library: &Arc<Library>,
        source: hid_t,
        target: hid_t,
        dcpls: HashMap<u64, hid_t>,
        unlinked: &[(u64, Vec<u8>)],
        salvage: Option<Salvage>,
        progress: TreeProgress<'_>,
    ) -> Result<Self, TreeError> {
        let mut reporter = ProgressReporter::new(progress);
        // SAFETY: the library is never unloaded, its lock is held.
        let mut copy = library.locked(|api| unsafe {
            let symbol = |name| library.loaded().symbol(name);
            let calls = TreeApi::resolve(library.path(), symbol).map_err(TreeError::Library)?;
            let hdf5 = Hdf5 { api, tree: &calls };
            let start = || {
                let name = hdf5.file_name(source)?;
                Ok((String::from_utf8_lossy(&name).into_owned(), hdf5.info(source, c"/")?.file))
            };
            let (source_name, source_number) =
                start().map_err(|error: BindError| Fault::from(error).at("/".into()))?;
            let inventory = Inventory::begin(hdf5, source)?;
            let lists = link_lists(hdf5).map_err(TreeError::Library)?;
            let wanted = salvage.is_some();
            let lost = Lost { wanted, known: salvage.unwrap_or_default(), missing: Vec::new() };
            let (library, made) = (Arc::clone(library), Made { lost, ..Made::default() });
            Ok(Self {
                library,
                calls,
                source,
                target,
                source_name,
                source_number,
                lists,
                inventory,
                dcpls,
                made,
            })
        })?;
        copy.take_inventory(unlinked, &mut reporter)?;
        copy.make_objects(&mut reporter)?;
        Ok(copy)
    }

    /// The name under which a file was opened, for messages; empty where it is not open.
    ///
    /// # Safety
    /// A handle of this library.
    pub unsafe fn name_of(library: &Library, file: hid_t) -> String {
        library.locked(|api| {
            let symbol = |name| library.loaded().symbol(name);
            // SAFETY: the library is never unloaded, its lock is held, which checks handles.
            let name = unsafe {
                let calls = TreeApi::resolve(library.path(), symbol);
                calls.and_then(|tree| Hdf5 { api, tree: &tree }.file_name(file))
            };
            String::from_utf8_lossy(&name.unwrap_or_default()).into_owned()
        })
    }

    /// The name under which the source was opened.
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// Where the datasets lie whose data the caller has to copy: the addresses of each in the
    /// source and in the target.
    pub fn datasets(&self) -> Vec<(u64, u64)> {
        let addresses = self.made.datasets.iter().map(|&node| self.inventory.nodes[node].address);
        addresses.filter_map(|at| Some((at, *self.made.moved.get(&at)?))).collect()
    }

    /// Where the copy lies of an object of the source; None where it has none.
    pub fn moved(&self, address: u64) -> Option<u64> {
        self.made.moved.get(&address).copied()
    }

    /// What is not quite as it was, in one line each that begins with the object's path.
    pub fn warnings(&self) -> &[String] {
        &self.made.warnings
    }

    /// What cannot be read, and is not in the copy.
    pub fn missing(&self) -> &[Missing] {
        &self.made.lost.missing
    }

    /// Have [`Self::finish`] copy the data of a dataset of this address, too.
    pub fn copy_later(&mut self, address: u64) {
        if let Some(&node) = self.inventory.by_address.get(&address) {
            self.made.later.push(Later::Elements { node });
        }
    }

    /// Copy the rest: attributes that hold references, and data that is no plain bytes.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn finish(&mut self, progress: TreeProgress<'_>) -> Result<(), TreeError> {
        let mut reporter = ProgressReporter::new(progress);
        let total = self.made.later.len() as u64;
        let mut done = 0;
        while !self.made.later.is_empty() {
            reporter.report(done, total)?;
            done += self.locked(|copier| {
                let deadline = Instant::now() + PORTION;
                let mut done = 0;
                while Instant::now() < deadline {
                    match copier.made.later.last() {
                        Some(Later::Attribute { object, name }) => {
                            let (object, name) = (*object, name.clone());
                            // SAFETY: live handles, by the contract of `new`.
                            unsafe { copier.finish_attribute(object, &name)? };
                            copier.made.later.pop();
                            done += 1;
                        }
                        Some(Later::Elements { .. }) | None => break,
                    }
                }
                Ok(done)
            })?;
            if let Some(&Later::Elements { node }) = self.made.later.last() {
                self.finish_elements(node, &mut |_| reporter.report(done, total))?;
                self.made.later.pop();
                done += 1;
            }
        }
        reporter.report_now(total, total)?;
        self.close_datatypes();
        Ok(())
    }

    /// Meet every object of the source.
    fn take_inventory(
        &mut self,
        unlinked: &[(u64, Vec<u8>)],
        reporter: &mut ProgressReporter<'_>,
    ) -> Result<(), TreeError> {
        let mut next = self.enter_from(ROOT, reporter)?;
        for (address, name) in unlinked {
            let Self { library, calls, source, inventory, .. } = self;
            library.locked(|api| {
                let hdf5 = Hdf5 { api, tree: calls };
                // SAFETY: live handles, by the contract of `new`.
                unsafe { inventory.enter_unlinked(hdf5, *source, *address, name) }
            })?;
            next = self.enter_from(next, reporter)?;
        }
        // Adopted are those that nothing leads to.
        let Self { library, calls, source, inventory, made, .. } = self;
        let orphans = std::mem::take(&mut made.lost.known.orphans);
        if !orphans.is_empty() {
            library.locked(|api| {
                // SAFETY: live handles, by the contract of `new`.
                unsafe { inventory.adopt(Hdf5 { api, tree: calls }, *source, &orphans) };
            });
            self.enter_from(next, reporter)?;
        }
        Ok(())
    }

    /// Enter the links of all groups from this node on; gives how many nodes there are then.
    fn enter_from(
        &mut self,
        mut next: usize,
        reporter: &mut ProgressReporter<'_>,
    ) -> Result<usize, TreeError> {
        while next < self.inventory.nodes.len() {
            reporter.report(0, 0)?;
            let Self { library, calls, source, inventory, made, .. } = self;
            next = library.locked(|api| {
                let deadline = Instant::now() + PORTION;
                let hdf5 = Hdf5 { api, tree: calls };
                while let Some(node) = inventory.nodes.get(next) {
                    if node.kind == Kind::Group && node.address != FOUND {
                        // SAFETY: live handles, by the contract of `new`.
                        unsafe { inventory.enter(hdf5, *source, next, &mut made.lost)? };
                    }
                    next += 1;
                    if Instant::now() >= deadline {
                        break;
                    }
                }
                Ok::<usize, TreeError>(next)
            })?;
        }
        Ok(next)
    }

    /// Make all links and objects, group by group in the order in which they were found, which
    /// is that in which they are made.
    fn make_objects(&mut self, reporter: &mut ProgressReporter<'_>) -> Result<(), TreeError> {
        // SAFETY: live handles, by the contract of `new`.
        self.locked(|copier| unsafe { copier.dress_root() })?;
        let total = self.inventory.nodes.len() as u64;
        let (mut group, mut place) = (ROOT, 0);
        while group < self.inventory.nodes.len() {
            reporter.report(self.made.moved.len() as u64, total)?;
            (group, place) = self.locked(|copier| {
                let deadline = Instant::now() + PORTION;
                while let Some(node) = copier.inventory.nodes.get(group) {
                    if place == 0 && copier.inventory.unlinked.contains_key(&group) {
                        // SAFETY: live handles, by the contract of `new`.
                        unsafe { copier.make_unlinked(group)? };
                    }
                    if place < node.links.len() {
                        // SAFETY: live handles, by the contract of `new`.
                        place = unsafe { copier.make_links(group, place, deadline)? };
                    }
                    if place < node.links.len() {
                        break;
                    }
                    (group, place) = (group + 1, 0);
                    if Instant::now() >= deadline {
                        break;
                    }
                }
                Ok((group, place))
            })?;
        }
        reporter.report_now(total, total)
    }

    /// Copy the elements of a dataset slab by slab.
    fn finish_elements(
        &mut self,
        node: usize,
        report: &mut dyn FnMut(()) -> Result<(), TreeError>,
    ) -> Result<(), TreeError> {
        let address = self.inventory.nodes[node].address;
        let library = Arc::clone(&self.library);
        // SAFETY: live handles, by the contract of `new`.
        let slabs = self.locked(|copier| unsafe {
            let open = copier.hdf5.open(copier.source, address).map_err(Fault::from);
            match open.and_then(|source| Slabs::of(copier.hdf5, source.id, &library)) {
                Ok(slabs) => Ok(Some(slabs)),
                Err(fault) => {
                    let object = copier.printable(address);
                    copier.made.lost.go_on_at(object, fault.of(|| "its data".into()))?;
                    Ok(None)
                }
            }
        })?;
        let Some(mut slabs) = slabs else { return Ok(()) };
        loop {
            report(())?;
            let done = self.locked(|copier| {
                let deadline = Instant::now() + PORTION;
                // SAFETY: as above.
                let done = unsafe { copier.copy_slabs(address, &mut slabs, deadline) };
                done.map_err(|fault| {
                    fault.of(|| "its data".to_string()).at(copier.printable(address))
                })
            })?;
            if done {
                break;
            }
        }
        let (lost, missing) = (slabs.lost, slabs.missing);
        self.locked(|copier| {
            copier.warn_of_lost(address, "", lost);
            let object = copier.printable(address);
            for (start, count, fault) in missing {
                let lost = &mut copier.made.lost;
                let left_out = lost.leave_out(&object, None, Some((start, count)), fault);
                left_out.map_err(|fault| fault.at(object.clone()))?;
            }
            Ok(())
        })
    }

    fn close_datatypes(&mut self) {
        let datatypes = std::mem::take(&mut self.made.datatypes);
        self.library.locked(|api| {
            for id in datatypes.into_values() {
                // SAFETY: a live handle that nothing else closes, or one of a file that was
                // closed with all of its objects, which libhdf5 tells.
                unsafe { (api.H5Tclose)(id) };
            }
        });
    }

    /// Work on both files while holding the library's lock.
    fn locked<T>(
        &mut self,
        work: impl FnOnce(&mut Copier<'_>) -> Result<T, TreeError>,
    ) -> Result<T, TreeError> {
        let Self { library, calls, lists, inventory, dcpls, made, .. } = self;
        let (source, target, source_number) = (self.source, self.target, self.source_number);
        library.locked(|api| {
            let hdf5 = Hdf5 { api, tree: calls };
            let mut copier =
                Copier { hdf5, source, target, source_number, lists, inventory, dcpls, made };
            work(&mut copier)
        })
    }
}

impl Copier<'_> {
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn finish_attribute(
        &mut self,
        object: u64,
        name: &std::ffi::CStr,
    ) -> Result<(), TreeError> {
        let part = || attributes::part(name);
        // SAFETY: the caller's contract.
        let lost = match unsafe { self.fill_attribute(object, name) } {
            Ok(lost) => lost,
            Err(fault) => {
                // SAFETY: the caller's contract.
                let left_out = unsafe { self.lose_filled(object, name, fault) };
                return left_out.map_err(|fault| fault.of(part).at(self.printable(object)));
            }
        };
        self.warn_of_lost(object, &format!("{}: ", part()), lost);
        Ok(())
    }

    /// Leave out an attribute that is in the copy without its value.
    ///
    /// # Safety
    /// As [`Hdf5`] says.
    unsafe fn lose_filled(
        &mut self,
        object: u64,
        name: &std::ffi::CStr,
        fault: Fault,
    ) -> Result<(), Fault> {
        let Some(&moved) = self.made.moved.get(&object) else { return Ok(()) };
        // SAFETY: the caller's contract.
        unsafe {
            let target = self.hdf5.open(self.target, moved)?;
            self.lose_attribute(object, target.id, name, fault)
        }
    }

    fn warn_of_lost(&mut self, object: u64, part: &str, lost: u64) {
        if lost > 0 {
            let object = self.printable(object);
            self.warn(
                &object,
                &format!("{part}{lost} of its references led to nothing and are null in the copy"),
            );
        }
    }
}

impl Drop for TreeCopy {
    fn drop(&mut self) {
        self.close_datatypes();
        let Lists { ascii, utf8 } = self.lists;
        self.library.locked(|api| {
            for id in [ascii, utf8] {
                // SAFETY: a live property list that nothing else closes.
                unsafe { (api.H5Pclose)(id) };
            }
        });
    }
}

impl std::fmt::Debug for TreeCopy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (of, made) = (self.inventory.nodes.len(), self.made.moved.len());
        write!(f, "TreeCopy({made} of {of} objects of {})", self.source_name)
    }
}

/// Link creation properties for both character sets.
///
/// # Safety
/// As [`Hdf5`] says.
unsafe fn link_lists(hdf5: Hdf5<'_>) -> Result<Lists, BindError> {
    // SAFETY: a class of this library, and live lists of it.
    unsafe {
        let made = |charset| {
            let lcpl = list(hdf5.api, hdf5.api.H5P_CLS_LINK_CREATE_ID_g)?;
            let status = (hdf5.tree.H5Pset_char_encoding)(lcpl.id, charset);
            hdf5.api.checked("H5Pset_char_encoding", status)?;
            Ok(lcpl)
        };
        let (ascii, utf8) = (made(0)?, made(1)?);
        // Closed with the copy.
        let kept = |list: Handle| ManuallyDrop::new(list).id;
        Ok(Lists { ascii: kept(ascii), utf8: kept(utf8) })
    }
}

/// Reports the progress now and then.
struct ProgressReporter<'a> {
    progress: TreeProgress<'a>,
    last: Instant,
}

impl<'a> ProgressReporter<'a> {
    fn new(progress: TreeProgress<'a>) -> Self {
        Self { progress, last: Instant::now() }
    }

    fn report(&mut self, done: u64, total: u64) -> Result<(), TreeError> {
        if self.last.elapsed() < REPORTING {
            return Ok(());
        }
        self.report_now(done, total)
    }

    fn report_now(&mut self, done: u64, total: u64) -> Result<(), TreeError> {
        self.last = Instant::now();
        if (self.progress)(done, total) { Ok(()) } else { Err(TreeError::Stopped) }
    }
}
