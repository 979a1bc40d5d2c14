//! Which libhdf5 was a call meant for?
//!
//! One process may have several: the wheels of h5py and netCDF4 bring one each.  The module that
//! called is where the return address lies; the library that this module, or what it depends on,
//! finds under `H5open` is the one that would have been called.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use chunkwise_engine::{NumberType, Published, PublishedSet};
use chunkwise_libhdf5::binding::{herr_t, hid_t, hsize_t};
use chunkwise_libhdf5::{Library, LibraryLock};
use chunkwise_loader::{Loaded, loaded_paths, path_at};

use crate::more::More;

/// What the program has it call may throw through these (C++).
///
/// Of `H5Dread`; `H5Dwrite` only promises not to change the buffer.
type Read = unsafe extern "C-unwind" fn(hid_t, hid_t, hid_t, hid_t, hid_t, *mut c_void) -> herr_t;
type ReadMulti = unsafe extern "C-unwind" fn(
    usize,
    *const hid_t,
    *const hid_t,
    *const hid_t,
    *const hid_t,
    hid_t,
    *const *mut c_void,
) -> herr_t;
/// Of `H5Tregister` and `H5Tunregister`, whose last argument is a function.
type Register =
    unsafe extern "C-unwind" fn(c_int, *const c_char, hid_t, hid_t, *const c_void) -> herr_t;
type OfOne = unsafe extern "C-unwind" fn(hid_t) -> c_int;
type OfNone = unsafe extern "C-unwind" fn() -> herr_t;
/// Of `H5Sselect_elements`.
type Pick = unsafe extern "C-unwind" fn(hid_t, c_int, usize, *const hsize_t) -> herr_t;
/// Of `H5Sselect_hyperslab`.
type Select = unsafe extern "C-unwind" fn(
    hid_t,
    c_int,
    *const hsize_t,
    *const hsize_t,
    *const hsize_t,
    *const hsize_t,
) -> herr_t;
/// Of one that changes the dataspace that is its first argument, and has up to three more.
type Change = unsafe extern "C-unwind" fn(hid_t, usize, usize, usize) -> herr_t;
/// Of `H5Dset_extent` and `H5Dextend`.
type Resize = unsafe extern "C-unwind" fn(hid_t, *const hsize_t) -> herr_t;

/// One libhdf5, and its own functions in whose place this library stands.
pub struct Callee {
    loaded: Loaded,
    /// `H5Dread`
    pub read: Option<Read>,
    /// `H5Dwrite`
    pub write: Option<Read>,
    /// `H5Dread_multi`, from 1.14 on.
    pub read_multi: Option<ReadMulti>,
    /// `H5Dwrite_multi`, whose buffers it only promises not to change.
    pub write_multi: Option<ReadMulti>,
    /// `H5Dclose`
    pub close_dataset: Option<OfOne>,
    /// `H5Oclose`
    pub close_object: Option<OfOne>,
    /// `H5Idec_ref`
    pub dec_ref: Option<OfOne>,
    /// `H5Fclose`
    pub close_file: Option<OfOne>,
    /// `H5Drefresh`
    pub refresh: Option<OfOne>,
    /// `H5Orefresh`
    pub refresh_object: Option<OfOne>,
    /// `H5close`
    pub close_library: Option<OfNone>,
    /// `H5Dset_extent`
    pub set_extent: Option<Resize>,
    /// `H5Dextend`
    pub extend: Option<Resize>,
    /// `H5Soffset_simple`
    pub offset_simple: Option<unsafe extern "C-unwind" fn(hid_t, *const i64) -> herr_t>,
    /// `H5Sselect_elements`
    pub select_elements: Option<Pick>,
    /// `H5Dget_space`
    pub get_space: Option<unsafe extern "C-unwind" fn(hid_t) -> hid_t>,
    /// `H5Sselect_hyperslab`
    pub select_hyperslab: Option<Select>,
    /// `H5Sselect_all`
    pub select_all: Option<Change>,
    /// `H5Sselect_none`
    pub select_none: Option<Change>,
    /// `H5Sselect_copy`
    pub select_copy: Option<Change>,
    /// `H5Sselect_adjust`
    pub select_adjust: Option<Change>,
    /// `H5Smodify_select`
    pub modify_select: Option<Change>,
    /// `H5Sset_extent_simple`
    pub set_extent_simple: Option<Change>,
    /// `H5Sset_extent_none`
    pub set_extent_none: Option<Change>,
    /// `H5Sextent_copy`
    pub extent_copy: Option<Change>,
    /// `H5Tget_class`
    pub class: Option<OfOne>,
    /// `H5Tregister`
    pub register: Option<Register>,
    /// `H5Tunregister`
    pub unregister: Option<Register>,
    bound: Published<Result<Bound, String>>,
}

/// A libhdf5 that the engine can be used with.
pub struct Bound {
    pub library: Arc<Library>,
    pub more: More,
    /// Pairs of types that were converted by both, and whether that came out alike.
    probes: Mutex<Vec<(Pair, bool)>>,
}

/// From which type to which.
pub type Pair = (NumberType, NumberType);

impl Bound {
    /// Whether two types are converted alike, as it was found or as it is found now.
    pub fn probed(&self, pair: Pair, find: impl FnOnce() -> bool) -> bool {
        // Only tried: a forked child may find it locked for ever.
        let known = self.probes.try_lock().ok().and_then(|probes| {
            probes.iter().find(|(known, _)| *known == pair).map(|&(_, alike)| alike)
        });
        known.unwrap_or_else(|| {
            let alike = find();
            if let Ok(mut probes) = self.probes.try_lock() {
                probes.push((pair, alike));
            }
            alike
        })
    }
}

/// Held by the thread that is calling: see the crate's 'Locks'.
pub struct CallersLock;

impl LibraryLock for CallersLock {
    fn with(&self, work: &mut dyn FnMut()) {
        work();
    }
}

/// Where calls came from, and what they were meant for: found once for each place.
struct Place {
    address: usize,
    callee: &'static Callee,
}

const PLACES: usize = 1024;
static KNOWN: PublishedSet<Place, PLACES> = PublishedSet::nothing();
/// All libraries that were found, each once: what is known of its datasets goes by its address.
static CALLEES: PublishedSet<Callee, 16> = PublishedSet::nothing();
/// Whether any call came here.
pub static ANY_CALL: AtomicBool = AtomicBool::new(false);

/// The library that a call from `address` was meant for; None where the loader cannot say.
#[inline]
pub fn of(address: usize) -> Option<&'static Callee> {
    let is_it = |place: &Place| place.address == address;
    match KNOWN.find_or_make(address >> 2, is_it, || find(address)) {
        Some(place) => Some(place.callee),
        // All places are taken, or nothing is found.
        None => look(address),
    }
}

#[cold]
fn find(address: usize) -> Option<Place> {
    ANY_CALL.store(true, Ordering::Relaxed);
    Some(Place { address, callee: look(address)? })
}

/// Ask the loader.
fn look(address: usize) -> Option<&'static Callee> {
    // The caller stays loaded from now on, so that no other module comes to lie there.  A program
    // found by its name alone has no path, and the loader would look for one.
    let caller = path_at(address).filter(|path| path.contains('/'));
    let loaded = caller.and_then(|path| Loaded::find(&path).ok());
    let loaded = loaded.and_then(|module| module.holder("H5open"));
    // A program is found by no path, and its libraries are those that all modules see.
    let loaded = loaded.or_else(|| {
        let open = next(c"H5open");
        let path = (!open.is_null()).then(|| path_at(open as usize)).flatten()?;
        Loaded::find(&path).ok().filter(|library| !library.symbol("H5open").is_null())
    });
    // Code that lies in no module, such as one that is compiled as it runs: any library will do
    // better than none, and mostly there is but one.
    let loaded = loaded.or_else(|| {
        loaded_paths().iter().find_map(|path| Loaded::find(path).ok()?.holder("H5open"))
    })?;
    let open = loaded.symbol("H5open");
    let is_it = |callee: &Callee| callee.loaded.symbol("H5open") == open;
    CALLEES.find_or_make(0, is_it, || Some(Callee::new(loaded)))
}

/// Where `symbol` would be found by the rest of the process, after this library.
fn next(symbol: &CStr) -> *mut c_void {
    // SAFETY: a valid string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) }
}

/// A function of a library under its own name, None where it has none; never one of ours, as a
/// library finds its own first.
macro_rules! own {
    ($loaded:expr, $name:literal) => {{
        let found = $loaded.symbol($name);
        // SAFETY: a libhdf5's function of that name has that signature in every version.
        (!found.is_null()).then(|| unsafe { std::mem::transmute(found) })
    }};
}

impl Callee {
    fn new(loaded: Loaded) -> Self {
        Self {
            read: own!(loaded, "H5Dread"),
            write: own!(loaded, "H5Dwrite"),
            read_multi: own!(loaded, "H5Dread_multi"),
            write_multi: own!(loaded, "H5Dwrite_multi"),
            close_dataset: own!(loaded, "H5Dclose"),
            close_object: own!(loaded, "H5Oclose"),
            dec_ref: own!(loaded, "H5Idec_ref"),
            close_file: own!(loaded, "H5Fclose"),
            refresh: own!(loaded, "H5Drefresh"),
            refresh_object: own!(loaded, "H5Orefresh"),
            close_library: own!(loaded, "H5close"),
            set_extent: own!(loaded, "H5Dset_extent"),
            extend: own!(loaded, "H5Dextend"),
            offset_simple: own!(loaded, "H5Soffset_simple"),
            select_elements: own!(loaded, "H5Sselect_elements"),
            get_space: own!(loaded, "H5Dget_space"),
            select_hyperslab: own!(loaded, "H5Sselect_hyperslab"),
            select_all: own!(loaded, "H5Sselect_all"),
            select_none: own!(loaded, "H5Sselect_none"),
            select_copy: own!(loaded, "H5Sselect_copy"),
            select_adjust: own!(loaded, "H5Sselect_adjust"),
            modify_select: own!(loaded, "H5Smodify_select"),
            set_extent_simple: own!(loaded, "H5Sset_extent_simple"),
            set_extent_none: own!(loaded, "H5Sset_extent_none"),
            extent_copy: own!(loaded, "H5Sextent_copy"),
            class: own!(loaded, "H5Tget_class"),
            register: own!(loaded, "H5Tregister"),
            unregister: own!(loaded, "H5Tunregister"),
            bound: Published::nothing(),
            loaded,
        }
    }

    /// Its functions for the engine; why there are none.
    pub fn bound(&self) -> Result<&Bound, &str> {
        self.bound.get_or_make(|| self.bind()).as_ref().map_err(String::as_str)
    }

    fn bind(&self) -> Result<Bound, String> {
        let path = self.loaded.path();
        let lock = Box::new(CallersLock);
        let library = Library::from_path(path, lock).map_err(|error| error.to_string())?;
        // SAFETY: a libhdf5 that stays loaded.
        let more = unsafe { More::resolve(path, |symbol| library.loaded().symbol(symbol)) };
        let (library, more) = (Arc::new(library), more.map_err(|error| error.to_string())?);
        Ok(Bound { library, more, probes: Mutex::default() })
    }

    /// Leave everything to it from now on.
    pub fn give_up(&self, reason: &str) {
        self.bound.replace(Err(reason.to_string()));
    }

    /// Where it lies.
    pub fn path(&self) -> &str {
        self.loaded.path()
    }
}
