//! How often does libhdf5 call each filter, and for how long?
//!
//! libhdf5 keeps its filters in a table, by number, and looks each chunk's filters up
//! there.  An entry is replaced by one that counts, takes the time, and calls the function
//! that was there before: what it reads and writes stays the same, and each decode of a
//! chunk is one that really happened, whatever program read it (h5py, netCDF-C, a loop of ours).
//!
//! An entry is a C function without data of its own, so that there is one function for each
//! of a fixed number of slots.  A slot belongs to one filter of one libhdf5 for good.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use chunkwise_loader::{Loaded, loaded_paths};
use parking_lot::Mutex;

use crate::Library;
use crate::api::{herr_t, htri_t};

/// `H5Z_func_t`
type FilterFunction = unsafe extern "C" fn(
    flags: c_uint,
    value_count: usize,
    values: *const c_uint,
    nbytes: usize,
    buffer_size: *mut usize,
    buffer: *mut *mut c_void,
) -> usize;

/// `H5Z_class2_t`, the same in every version from 1.8 on.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct FilterClass {
    version: c_int,
    id: c_int,
    encoder_present: c_uint,
    decoder_present: c_uint,
    name: *const c_char,
    can_apply: *const c_void,
    set_local: *const c_void,
    filter: Option<FilterFunction>,
}

/// `H5Z_CLASS_T_VERS`
const CLASS_VERSION: c_int = 1;
/// `H5Z_FLAG_REVERSE`: a filter decodes.
const DECODES: c_uint = 0x0100;
/// `H5Z_FILTER_RESERVED`: numbers below are libhdf5's own filters.
const FIRST_PLUGIN: i32 = 256;
/// `H5PL_TYPE_FILTER`
const PLUGIN_IS_FILTER: c_int = 0;

/// The classes of its own filters, which libhdf5 exports as data.
const OWN_CLASSES: [(i32, &str); 6] = [
    (1, "H5Z_DEFLATE"),
    (2, "H5Z_SHUFFLE"),
    (3, "H5Z_FLETCHER32"),
    (4, "H5Z_SZIP"),
    (5, "H5Z_NBIT"),
    (6, "H5Z_SCALEOFFSET"),
];

/// What the calls of one filter, in one direction, came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// How many.
    pub count: u64,
    /// How long they took together.
    pub time: Duration,
    /// Bytes given to them.
    pub nbytes_in: u64,
    /// Bytes that came out; 0 for a call that failed.
    pub nbytes_out: u64,
}

/// One filter's calls since it was first tallied, all datasets together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterTally {
    /// HDF5's number of the filter.
    pub id: i32,
    /// What libhdf5 calls it.
    pub name: String,
    /// Decoding: a call for each chunk loaded to which the filter was applied.
    pub decode: Calls,
    /// Encoding.
    pub encode: Calls,
}

#[derive(Debug, Default)]
struct Counters {
    count: AtomicU64,
    nanoseconds: AtomicU64,
    nbytes_in: AtomicU64,
    nbytes_out: AtomicU64,
}

impl Counters {
    const fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            nanoseconds: AtomicU64::new(0),
            nbytes_in: AtomicU64::new(0),
            nbytes_out: AtomicU64::new(0),
        }
    }

    fn add(&self, took: Duration, nbytes_in: usize, nbytes_out: usize) {
        self.count.fetch_add(1, Relaxed);
        // A call of 584 years is not distinguished from one of none.
        self.nanoseconds.fetch_add(took.as_nanos() as u64, Relaxed);
        self.nbytes_in.fetch_add(nbytes_in as u64, Relaxed);
        self.nbytes_out.fetch_add(nbytes_out as u64, Relaxed);
    }

    fn read(&self) -> Calls {
        Calls {
            count: self.count.load(Relaxed),
            time: Duration::from_nanos(self.nanoseconds.load(Relaxed)),
            nbytes_in: self.nbytes_in.load(Relaxed),
            nbytes_out: self.nbytes_out.load(Relaxed),
        }
    }
}

/// What one entry counts, and whom it calls.
struct Slot {
    original: OnceLock<FilterFunction>,
    decode: Counters,
    encode: Counters,
}

/// Filters of all libraries together that can be counted.
pub const SLOT_COUNT: usize = 32;
static SLOTS: [Slot; SLOT_COUNT] = [const {
    Slot { original: OnceLock::new(), decode: Counters::new(), encode: Counters::new() }
}; SLOT_COUNT];

/// The function of slot `N`, in the filter's place.
///
/// # Safety
/// As the filter's own function, to which all arguments go as they are.
unsafe extern "C" fn count_call<const N: usize>(
    flags: c_uint,
    value_count: usize,
    values: *const c_uint,
    nbytes: usize,
    buffer_size: *mut usize,
    buffer: *mut *mut c_void,
) -> usize {
    let slot = &SLOTS[N];
    // It is set before this function is registered; 0 says to libhdf5 that a filter failed.
    let Some(original) = slot.original.get() else { return 0 };
    let begun = Instant::now();
    // SAFETY: the caller's contract is that of the original.
    let nbytes_out = unsafe { original(flags, value_count, values, nbytes, buffer_size, buffer) };
    let took = begun.elapsed();
    let counters = if flags & DECODES != 0 { &slot.decode } else { &slot.encode };
    counters.add(took, nbytes, nbytes_out);
    nbytes_out
}

macro_rules! functions_of_slots {
    ($($n:literal)*) => { [$(count_call::<$n>),*] };
}

static FUNCTIONS: [FilterFunction; SLOT_COUNT] = functions_of_slots!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
);

/// To whom a slot belongs.
struct Owner {
    /// The address of its `H5Zregister`, which distinguishes one libhdf5 from another.
    library: usize,
    /// The class that counts.
    class: FilterClass,
}

// SAFETY: its pointers are to strings and functions of a library that is never unloaded,
// and are only read.
unsafe impl Send for Owner {}

/// Slots are given in order: the `n`-th owner has slot `n`.
static OWNERS: Mutex<Vec<Owner>> = Mutex::new(Vec::new());

/// Registers a class; 0 or more when that succeeded.
type Register = unsafe extern "C" fn(*const FilterClass) -> herr_t;

/// Count the calls of those of `filters` (by HDF5's numbers) whose functions can be found in a
/// library, from now on if not already, and return what was counted until now.
///
/// The functions of libhdf5's own filters are found by their classes, which it exports, and
/// those of others in plugins that are loaded.  Of the rest, nothing is known: they are
/// missing in the answer.
pub fn tally(library: &Library, filters: &[i32]) -> Vec<FilterTally> {
    // SAFETY: the library's lock is held.
    let find = |id: i32| unsafe { tally_one(library.loaded(), id) };
    let one = |&id: &i32| {
        let TallySlot { number, id, name } = find(id)?;
        let slot = &SLOTS[number];
        Some(FilterTally { id, name, decode: slot.decode.read(), encode: slot.encode.read() })
    };
    library.locked(|_| filters.iter().filter_map(one).collect())
}

/// Where the calls of a filter are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TallySlot {
    /// For [`decodes`].
    pub number: usize,
    /// HDF5's number of the filter.
    pub id: i32,
    /// What libhdf5 calls it.
    pub name: String,
}

/// As [`tally`], of one filter, for those who ask again and again what was counted.
///
/// # Safety
/// The library's lock must be held.
pub unsafe fn tally_slot(library: &Library, filter: i32) -> Option<TallySlot> {
    // SAFETY: the caller's contract.
    unsafe { tally_one(library.loaded(), filter) }
}

/// How often a filter has decoded until now, and for how many nanoseconds; nothing of a slot that
/// there is not.
pub fn decodes(slot: usize) -> (u64, u64) {
    SLOTS.get(slot).map_or((0, 0), |slot| {
        (slot.decode.count.load(Relaxed), slot.decode.nanoseconds.load(Relaxed))
    })
}

/// Register the counting entry of a filter, and return where it counts.
///
/// It is registered again each time: a plugin that is loaded later replaces it.
///
/// # Safety
/// `library` must be a libhdf5 that has been started, and its lock must be held.
unsafe fn tally_one(library: &Loaded, id: i32) -> Option<TallySlot> {
    let public = library.symbol("H5Zregister");
    // H5Zregister refuses libhdf5's own filters; the function that it calls does not.
    let register = if id < FIRST_PLUGIN { library.symbol("H5Z_register") } else { public };
    if public.is_null() || register.is_null() {
        return None;
    }
    // SAFETY: both functions take a class and give a herr_t in every version from 1.8 on,
    // the inner one needing no more than a library that has been started.
    let register = unsafe { std::mem::transmute::<*mut c_void, Register>(register) };
    let owned = |owner: &Owner| owner.library == public as usize && owner.class.id == id;
    let find = |owners: &[Owner]| {
        let number = owners.iter().position(owned)?;
        Some((number, owners[number].class))
    };
    // Nothing of libhdf5 is called while these are locked: a thread that is in it may wait for them.
    let known = find(&OWNERS.lock());
    let (number, class) = match known {
        Some(found) => found,
        None => {
            // SAFETY: the caller's contract.
            let original = unsafe { class_of(library, id)? };
            let mut owners = OWNERS.lock();
            match find(&owners) {
                Some(found) => found,
                None => {
                    let number = owners.len();
                    let function = *FUNCTIONS.get(number)?;
                    // The slot is free, so that this sets it.
                    SLOTS[number].original.get_or_init(|| original.1);
                    let class = FilterClass { filter: Some(function), ..original.0 };
                    owners.push(Owner { library: public as usize, class });
                    (number, class)
                }
            }
        }
    };
    // SAFETY: a valid class, which libhdf5 copies; the lock is held.
    if unsafe { register(&raw const class) } < 0 {
        return None;
    }
    let name = if class.name.is_null() {
        String::new()
    } else {
        // SAFETY: the name of a class, in a library that is never unloaded.
        unsafe { CStr::from_ptr(class.name) }.to_string_lossy().into_owned()
    };
    Some(TallySlot { number, id, name })
}

/// The class of a filter as libhdf5, or the plugin that has it, defines it, and its function.
///
/// # Safety
/// As [`tally_one`].
unsafe fn class_of(library: &Loaded, id: i32) -> Option<(FilterClass, FilterFunction)> {
    let class = match OWN_CLASSES.iter().find(|own| own.0 == id) {
        Some((_, symbol)) => library.symbol(symbol).cast::<FilterClass>().cast_const(),
        None if id < FIRST_PLUGIN => return None,
        // SAFETY: the caller's contract.
        None => unsafe { class_of_plugin(library, id)? },
    };
    // SAFETY: null, or a class that its library never changes nor unloads.
    let class = unsafe { class.as_ref()? };
    // Anything else is no class as it is known here, and is left alone.
    if class.version != CLASS_VERSION || class.id != id {
        return None;
    }
    Some((*class, class.filter?))
}

/// The class of a filter that one plugin in this process offers; None where none does, or
/// several, of which it is not known here which libhdf5 has taken.
///
/// # Safety
/// As [`tally_one`].
unsafe fn class_of_plugin(library: &Loaded, id: i32) -> Option<*const FilterClass> {
    let available = library.symbol("H5Zfilter_avail");
    if available.is_null() {
        return None;
    }
    // SAFETY: the function has this signature; asking loads the plugin.
    let available = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> htri_t>(available)(id)
    };
    if available <= 0 {
        return None;
    }
    let mut found: Option<*const FilterClass> = None;
    for path in loaded_paths() {
        let Ok(module) = Loaded::find(&path) else { continue };
        let (kind, class) =
            (module.symbol("H5PLget_plugin_type"), module.symbol("H5PLget_plugin_info"));
        if kind.is_null() || class.is_null() {
            continue;
        }
        // SAFETY: functions of these names have these signatures (H5PLextern.h), take
        // nothing and give constants.
        let class = unsafe {
            if std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(kind)()
                != PLUGIN_IS_FILTER
            {
                continue;
            }
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const FilterClass>(class)(
            )
        };
        // SAFETY: null, or a class; modules that HDF5 took a filter from stay loaded, and
        // the handle taken above keeps this one.
        if unsafe { class.as_ref() }.is_none_or(|class| class.id != id) {
            continue;
        }
        if found.is_some_and(|other| other != class) {
            return None;
        }
        found = Some(class);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Doubles what it is given, without touching the buffer.
    unsafe extern "C" fn double(
        _flags: c_uint,
        value_count: usize,
        _values: *const c_uint,
        nbytes: usize,
        buffer_size: *mut usize,
        _buffer: *mut *mut c_void,
    ) -> usize {
        // SAFETY: the test below passes a valid pointer.
        unsafe { *buffer_size = value_count };
        2 * nbytes
    }

    #[test]
    fn a_call_is_forwarded_and_counted_by_its_direction() {
        // The last slot: the tests of whole libraries take them from the first on.
        let (slot, function) = (&SLOTS[SLOT_COUNT - 1], FUNCTIONS[SLOT_COUNT - 1]);
        let mut size = 0usize;
        let call = |flags, nbytes, size: &mut usize| {
            let (values, buffer) = (std::ptr::null(), std::ptr::null_mut());
            // SAFETY: the function above looks at nothing but `size`.
            unsafe { function(flags, 7, values, nbytes, size, buffer) }
        };
        assert_eq!(call(DECODES, 5, &mut size), 0, "a slot of nobody fails");
        slot.original.get_or_init(|| double);
        assert_eq!(call(DECODES, 5, &mut size), 10);
        assert_eq!(size, 7);
        assert_eq!(call(DECODES | 1, 6, &mut size), 12);
        assert_eq!(call(1, 100, &mut size), 200);
        let sums = |calls: Calls| (calls.count, calls.nbytes_in, calls.nbytes_out);
        assert_eq!(sums(slot.decode.read()), (2, 11, 22));
        assert_eq!(sums(slot.encode.read()), (1, 100, 200));
    }

    #[test]
    fn each_slot_has_a_function_of_its_own() {
        let mut addresses: Vec<_> = FUNCTIONS.iter().map(|&f| f as usize).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), SLOT_COUNT);
    }
}
