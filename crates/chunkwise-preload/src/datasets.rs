//! What is known of the datasets that the program has open?
//!
//! HDF5 counts its handles upwards and gives none twice, so that a dataset is known by its handle
//! until that is closed.  One that is closed in a way that is not seen is only kept too long.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, c_int, c_ulong};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use chunkwise_codec::Filter;
use chunkwise_engine::{AnyDataset, Dataset, Layout, Published, WholeChunks};
use chunkwise_libhdf5::binding::{
    Api, Chunking, Handle, ObjectInfo, chunk_options, filters_of, hid_t, shape_of,
};
use chunkwise_libhdf5::{BindError, ChunkCommitter, Library, Unsuited, describe, tally_slot};
use chunkwise_metadata::Mapped;
use chunkwise_metadata::readable::VIRTUAL_LAYOUT;
use chunkwise_select::Dims;

use crate::callee::{Bound, Callee};
use crate::conversions::Types;
use crate::counted::{self, Line, Opened};
use crate::more::KIND_BIT;
use crate::traced::TracedStorage;
use crate::why::reason_of;
use crate::{elsewhere, environment};

/// A dataset that the program reads or writes.
pub struct Known {
    /// To be read by the engine; or why it is left to libhdf5.
    pub engine: Result<AnyDataset, String>,
    /// Of a virtual one, what has to be as it was.
    pub mapped: Option<Mapped>,
    /// Reads of fewer elements are left to libhdf5; all of them if this is the largest number.
    pub least: u64,
    /// For writing, once something large is written.
    pub whole: OnceLock<Result<Mutex<Whole>, String>>,
    /// Its file changed so that libhdf5 has to write it from then on.
    pub written_by_libhdf5: AtomicBool,
    /// A copy of its type as it is stored, which the program's memory type must equal; none where it
    /// is only observed.
    pub file_type: hid_t,
    /// How elements become those of other types in memory.
    pub types: Types,
    /// Its extents and the size of an element, as they are when it is first read.
    pub shape: Dims,
    pub item_nbytes: u64,
    /// Where it is counted; None without a report and without a trace.
    pub opened: Option<&'static Opened>,
}

impl Known {
    /// What is counted of it.
    pub fn line(&self) -> Option<&'static Line> {
        self.opened.map(|opened| opened.line)
    }

    /// What a trace has to know of its chunks.
    pub fn storage(&self) -> Option<&'static TracedStorage> {
        self.opened.and_then(|opened| opened.described.storage.as_ref())
    }
}

/// A dataset of which the engine writes whole chunks.
pub struct Whole {
    pub chunks: WholeChunks,
    pub committer: ChunkCommitter,
    /// What libhdf5's cache of its chunks holds.
    pub cache_nbytes: u64,
}

/// What is known of a handle.
enum State {
    /// This many small reads were passed on, before it was looked at.
    Passed(AtomicU32),
    Known(Arc<Known>),
}

type Table = RwLock<HashMap<(usize, hid_t), State>>;

static TABLE: Published<Table> = Published::nothing();

/// Small reads of a dataset that are passed on before it is looked at: that takes longer than they
/// do.
const PASSED: u32 = 2;

/// A read of less contiguous data is as fast by libhdf5.
const LEAST_CONTIGUOUS_NBYTES: u64 = 1 << 20;
/// Chunks of this many bytes or fewer take libhdf5 less time to decode than it takes the engine to
/// understand the call.
const TINY_NBYTES: u64 = 1 << 10;

/// Runs in the child right after `fork`: another thread may hold the table's lock.
extern "C" fn forget_parent() {
    GENERATION.fetch_add(1, Ordering::Release);
    TABLE.forget();
    counted::forget_parent();
}

/// Have forked children begin anew.  Before the program begins: a thread that did so later may be in the
/// midst of it when another one forks.
pub fn watch_forks() {
    // SAFETY: a function that lives as long as the program and does a few stores.
    unsafe { libc::pthread_atfork(None, None, Some(forget_parent)) };
}

fn table() -> &'static Table {
    TABLE.get_or_make(Table::default)
}

fn key(callee: &Callee, id: hid_t) -> (usize, hid_t) {
    (std::ptr::from_ref(callee) as usize, id)
}

/// What is known of a dataset, looked at now if that is worth it: `small` reads are passed on at
/// first.  None where this one is.
///
/// # Safety
/// The program's own handle of this library, which need not be valid.
pub unsafe fn known(callee: &Callee, id: hid_t, is_small: impl FnOnce() -> bool) -> Option<Held> {
    let key = key(callee, id);
    // Read by mistake before something is forgotten, this only leads to the table.
    let generation = generation();
    if let Some(known) = recent(key, generation) {
        return Some(known);
    }
    // SAFETY: the caller's contract.
    let known = Rc::new(unsafe { known_to_all(callee, key, is_small)? });
    let entry = Recent { key, generation, known: Rc::clone(&known) };
    // Without a place of its own, as when the thread ends, there is the table.
    let _ = RECENT.try_with(|recent| {
        if let Ok(mut recent) = recent.try_borrow_mut() {
            recent[id as usize % RECENT_LEN] = Some(entry);
        }
    });
    Some(known)
}

/// What a thread has read last.
struct Recent {
    key: (usize, hid_t),
    generation: u64,
    known: Held,
}

/// What a thread has of what all know: it counts its own references, which takes less time than to count
/// with the others.
pub type Held = Rc<Arc<Known>>;

const RECENT_LEN: usize = 8;

thread_local! {
    static RECENT: RefCell<[Option<Recent>; RECENT_LEN]> = const { RefCell::new([const { None }; RECENT_LEN]) };
}

/// Counts how often something was forgotten: what threads remember counts no more then.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// How often something was forgotten until now: then a handle may be another object's.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

fn recent(key: (usize, hid_t), generation: u64) -> Option<Held> {
    let found = RECENT.try_with(|recent| {
        let recent = recent.try_borrow().ok()?;
        let entry = recent[key.1 as usize % RECENT_LEN].as_ref()?;
        (entry.key == key && entry.generation == generation).then(|| Rc::clone(&entry.known))
    });
    found.ok().flatten()
}

/// How many dimensions a dataset has that this thread has read lately.
pub fn rank(callee: &Callee, id: hid_t) -> Option<usize> {
    recent(key(callee, id), generation()).map(|known| known.shape.len())
}

/// # Safety
/// As [`known`].
unsafe fn known_to_all(
    callee: &Callee,
    key: (usize, hid_t),
    is_small: impl FnOnce() -> bool,
) -> Option<Arc<Known>> {
    let id = key.1;
    if let Some(known) = in_table(key) {
        return Some(known);
    }
    // The table is not held: to ask calls libhdf5, which may wait for a thread that waits for it.
    let small = is_small();
    match table().read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        Some(State::Known(known)) => return Some(Arc::clone(known)),
        Some(State::Passed(count)) if small => {
            if count.fetch_add(1, Ordering::Relaxed) < PASSED {
                return None;
            }
        }
        Some(State::Passed(_)) | None => {}
    }
    let mut table_now = table().write().unwrap_or_else(PoisonError::into_inner);
    if small && !table_now.contains_key(&key) && !environment::is_reporting() {
        table_now.insert(key, State::Passed(AtomicU32::new(1)));
        return None;
    }
    // As above.
    drop(table_now);
    // SAFETY: the caller's contract.
    let known = unsafe { look(callee, id)? };
    let mut table_now = table().write().unwrap_or_else(PoisonError::into_inner);
    let first = match table_now.get(&key) {
        // Another thread has looked at the same time, and reads with what it has found.
        Some(State::Known(first)) => Some(Arc::clone(first)),
        _ => {
            table_now.insert(key, State::Known(Arc::clone(&known)));
            None
        }
    };
    drop(table_now);
    let Some(first) = first else { return Some(known) };
    close_types(callee, Some(State::Known(known)));
    Some(first)
}

/// What the table knows of a handle.
fn in_table(key: (usize, hid_t)) -> Option<Arc<Known>> {
    match table().read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        Some(State::Known(known)) => Some(Arc::clone(known)),
        _ => None,
    }
}

/// # Safety
/// As [`known`].
unsafe fn look(callee: &Callee, id: hid_t) -> Option<Arc<Known>> {
    environment::follow();
    let bound = match callee.bound() {
        Ok(bound) => bound,
        Err(reason) => {
            counted::unbound(callee.path(), reason);
            return None;
        }
    };
    bound.library.locked(|api| {
        if !environment::observe_only() {
            // SAFETY: the caller's contract.
            return unsafe { look_closely(bound, api, id) }.map(Arc::new);
        }
        // SAFETY: as above.
        let place = unsafe { place_of(callee, api, id)? };
        if let Ok(alike) = ALIKE.try_lock()
            && let Some(known) = alike.get(&place)
        {
            return Some(Arc::clone(known));
        }
        // SAFETY: as above; nothing is compared with the type, which was made just now.
        let known = unsafe {
            let mut known = look_closely(bound, api, id)?;
            (api.H5Tclose)(std::mem::replace(&mut known.file_type, NO_TYPE));
            Arc::new(known)
        };
        // In a file that is written a dataset may come to lie where another one was.
        if known.engine.is_ok()
            && let Ok(mut alike) = ALIKE.try_lock()
        {
            alike.insert(place, Arc::clone(&known));
        }
        Some(known)
    })
}

/// What is known of datasets, by where they lie, until a file is closed: what is only observed need
/// not be looked at again for each handle.  Locks are only tried: a forked child may find one locked.
static ALIKE: Mutex<BTreeMap<Place, Arc<Known>>> = Mutex::new(BTreeMap::new());

/// Of a known dataset that is only observed.
const NO_TYPE: hid_t = -1;

/// Of a dataset: library, process, file and address.
type Place = (usize, u32, [c_ulong; 2], u64);

/// # Safety
/// As [`known`], of a library whose lock is held.
unsafe fn place_of(callee: &Callee, api: &Api, id: hid_t) -> Option<Place> {
    let mut info = ObjectInfo::default();
    // SAFETY: a handle that is not valid makes the call fail; a string and a place for the answer.
    let status = unsafe { (api.H5Gget_objinfo)(id, c".".as_ptr(), false, &raw mut info) };
    let library = std::ptr::from_ref(callee) as usize;
    (status >= 0).then(|| (library, std::process::id(), info.file, info.address()))
}

/// Look at it, whatever is known.
///
/// # Safety
/// As [`known`], of a library whose lock is held.
unsafe fn look_closely(bound: &Bound, api: &Api, id: hid_t) -> Option<Known> {
    // SAFETY: a handle that is not valid makes the first call fail.
    let file_type = unsafe {
        let stored = (api.H5Dget_type)(id);
        let stored = Handle::new(api, "H5Dget_type", stored, api.H5Tclose).ok()?;
        // A committed type would keep the program's file open.
        api.checked_id("H5Tcopy", (api.H5Tcopy)(stored.id)).ok()?
    };
    // SAFETY: live handles of this library.
    let engine = unsafe { describe(&bound.library, id, file_type) };
    let mut engine = engine.map_err(reason_of).map(AnyDataset::Stored);
    let mut mapped = None;
    if engine.as_ref().is_err_and(|reason| reason == VIRTUAL_LAYOUT) {
        // SAFETY: as above.
        let found = unsafe { elsewhere::mapped(bound, api, id, &names(bound, id).0) };
        engine = found.map(|found| mapped.insert(found).source.clone());
    }
    // SAFETY: made above.
    let size = unsafe { (api.H5Tget_size)(file_type) } as u64;
    let (shape, item_nbytes) = match &engine {
        Ok(dataset) => (dataset.shape().into(), dataset.element_size() as u64),
        // SAFETY: as above.
        Err(_) => unsafe { (shape_of(api, id).map(|found| found.0).unwrap_or_default(), size) },
    };
    let opened = environment::is_reporting().then(|| {
        // SAFETY: as above.
        let storage = || unsafe { traced(&bound.library, api, id, shape.len()) };
        let storage = environment::trace().and_then(|_| storage().ok());
        // SAFETY: as above.
        let names = unsafe { names(bound, id) };
        counted::opened(bound.library.version(), names, item_nbytes, storage)
    });
    let whole = OnceLock::new();
    let (types, written_by_libhdf5) = (Types::default(), AtomicBool::new(false));
    Some(Known {
        least: match &engine {
            Ok(AnyDataset::Stored(dataset)) => least(dataset),
            _ => 0,
        },
        engine,
        mapped,
        whole,
        written_by_libhdf5,
        file_type,
        types,
        shape,
        item_nbytes,
        opened,
    })
}

/// Fewer elements of a dataset than these are read by libhdf5 as fast: less than 1 MiB where they are
/// contiguous; of chunks that are as quickly decoded as a call is understood, one or two.
fn least(dataset: &Dataset) -> u64 {
    let least = match &dataset.info().layout {
        Layout::Contiguous { .. } => LEAST_CONTIGUOUS_NBYTES / dataset.element_size() as u64,
        Layout::Chunked { pipeline, .. } => {
            let elements = dataset.grid().chunk_len();
            let nbytes = elements.saturating_mul(dataset.element_size() as u64);
            let is_tiny = nbytes <= environment::least_read().unwrap_or(TINY_NBYTES);
            // Others may not be there for libhdf5.
            let is_own = |filter: &Filter| {
                matches!(filter, Filter::Deflate(_) | Filter::Shuffle(_) | Filter::Fletcher32(_))
            };
            if is_tiny && pipeline.filters().iter().all(is_own) { 3 * elements } else { 0 }
        }
    };
    let all = dataset.shape().iter().copied().fold(1, u64::saturating_mul);
    if all < least { u64::MAX } else { least }
}

/// What a trace has to know; an error of a dataset without chunks.
///
/// # Safety
/// A live handle of this library, with the lock held.
unsafe fn traced(
    library: &Library,
    api: &Api,
    id: hid_t,
    rank: usize,
) -> Result<TracedStorage, Unsuited> {
    const CHUNKED: i32 = 2;
    // SAFETY: the caller's contract; every handle is checked.
    unsafe {
        let dcpl = (api.H5Dget_create_plist)(id);
        let dcpl = Handle::new(api, "H5Dget_create_plist", dcpl, api.H5Pclose)?;
        if (api.H5Pget_layout)(dcpl.id) != CHUNKED {
            return Err(Unsuited::Reason("it has no chunks".into()));
        }
        let Chunking { chunk, filters, .. } = chunk_options(api, dcpl.id, rank)?;
        let filters = filters_of(api, dcpl.id, filters)?;
        let filters = filters.iter().filter_map(|filter| tally_slot(library, filter.id)).collect();
        Ok(TracedStorage { chunk, filters, cache: chunk_cache(api, id)? })
    }
}

/// The slots and the bytes of the chunk cache of an open dataset.
///
/// # Safety
/// A live handle of this library, with the lock held.
pub unsafe fn chunk_cache(api: &Api, dataset: hid_t) -> Result<(u64, u64), BindError> {
    let (mut slots, mut nbytes, mut w0) = (0, 0, 0.0);
    // SAFETY: the caller's contract; three valid pointers.
    unsafe {
        let list = (api.H5Dget_access_plist)(dataset);
        let list = Handle::new(api, "H5Dget_access_plist", list, api.H5Pclose)?;
        let status =
            (api.H5Pget_chunk_cache)(list.id, &raw mut slots, &raw mut nbytes, &raw mut w0);
        api.checked("H5Pget_chunk_cache", status)?;
    }
    Ok((slots as u64, nbytes as u64))
}

/// The file and the name of a dataset.
///
/// # Safety
/// A live handle of this library.
unsafe fn names(bound: &Bound, id: hid_t) -> (String, String) {
    let text = |get: unsafe extern "C" fn(hid_t, *mut std::ffi::c_char, usize) -> isize| {
        let mut buffer = [0u8; 4096];
        // SAFETY: room for this many bytes, the last of which stays 0.
        let len = unsafe { get(id, buffer.as_mut_ptr().cast(), buffer.len() - 1) };
        let name = CStr::from_bytes_until_nul(&buffer).ok().filter(|_| len >= 0);
        name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    (text(bound.more.H5Fget_name), text(bound.more.H5Iget_name))
}

/// Forget a handle that is being closed.
pub fn forget(callee: &Callee, id: hid_t) {
    let key = key(callee, id);
    if !table().read().unwrap_or_else(PoisonError::into_inner).contains_key(&key) {
        return;
    }
    let former = table().write().unwrap_or_else(PoisonError::into_inner).remove(&key);
    GENERATION.fetch_add(1, Ordering::Release);
    close_types(callee, former);
}

/// Handles of a library that are in the table.
fn handles(callee: &Callee) -> Vec<hid_t> {
    let table = table().read().unwrap_or_else(PoisonError::into_inner);
    let own = std::ptr::from_ref(callee) as usize;
    table.keys().filter(|key| key.0 == own).map(|key| key.1).collect()
}

/// Forget the handles that were closed with a file, which is closed now as `status` says.
pub fn forget_closed(callee: &Callee, status: c_int) {
    if status < 0 {
        // Without a call of libhdf5: the program is to find its errors.
        drop(take_all(callee));
        return;
    }
    forget_alike();
    let of_this = handles(callee);
    if of_this.is_empty() {
        return;
    }
    let Ok(bound) = callee.bound() else { return };
    for id in of_this {
        // SAFETY: any number may be given.
        let valid = bound.library.locked(|_| unsafe { (bound.more.H5Iis_valid)(id) });
        if valid <= 0 {
            forget(callee, id);
        }
    }
}

/// As [`forget_closed`], where one reference to a handle of any kind was given up: this many are left.
pub fn forget_closed_by_reference(callee: &Callee, id: hid_t, left: c_int) {
    const FILE: hid_t = 1;
    if left == 0 && id >> KIND_BIT == FILE {
        forget_closed(callee, 0);
    }
}

/// Forget all handles of a library.
pub fn forget_all(callee: &Callee) {
    take_all(callee).into_values().for_each(|state| close_types(callee, Some(state)));
}

/// Take all handles of a library out of the table.
fn take_all(callee: &Callee) -> HashMap<(usize, hid_t), State> {
    let own = std::ptr::from_ref(callee) as usize;
    let mut table_now = table().write().unwrap_or_else(PoisonError::into_inner);
    let (gone, kept) = std::mem::take(&mut *table_now).into_iter().partition(|one| one.0.0 == own);
    *table_now = kept;
    drop(table_now);
    GENERATION.fetch_add(1, Ordering::Release);
    forget_alike();
    gone
}

fn forget_alike() {
    if let Ok(mut alike) = ALIKE.try_lock() {
        alike.clear();
    }
}

/// Close what was kept open for a dataset.
fn close_types(callee: &Callee, state: Option<State>) {
    let Some(State::Known(known)) = state else { return };
    if known.file_type == NO_TYPE {
        return;
    }
    if let Ok(bound) = callee.bound() {
        // SAFETY: made by `look`, and nobody else closes it; a read that goes on in another
        // thread has compared it already, or passes its call on.
        bound.library.locked(|api| unsafe {
            (api.H5Tclose)(known.file_type);
            for copy in known.types.take() {
                (api.H5Tclose)(copy);
            }
        });
    }
}
