//! Which library in this process made a handle?
//!
//! More than one libhdf5 may be loaded, and handles are small numbers: a handle of one is
//! mostly valid in another, and names something else there.  So a handle is looked for whose
//! object no other library can have by chance.

use std::ffi::c_void;

use chunkwise_loader::{Loaded, loaded_paths};

use crate::BindError;
use crate::api::{Api, hid_t, hsize_t};

/// A dataspace made for this purpose: the library that knows it by these extents made it.
#[derive(Debug, Clone, Copy)]
pub struct Witness<'a> {
    /// Its handle.
    pub id: hid_t,
    /// Its extents, chosen at random.
    pub dims: &'a [u64],
}

/// As many dimensions as libhdf5 allows (`H5S_MAX_RANK`).
const MAX_RANK: usize = 32;

impl Witness<'_> {
    /// Whether a library knows the dataspace.
    ///
    /// # Safety
    /// As [`Api`]; that library's lock must be held, as far as there is one.
    pub(crate) unsafe fn is_known_to(&self, api: &Api) -> bool {
        let mut dims: [hsize_t; MAX_RANK] = [0; MAX_RANK];
        // SAFETY: a handle that is none of the library's makes these calls fail, and so does
        // one that is no dataspace; there is room for as many dimensions as there can be.
        let rank = unsafe {
            (api.H5Sget_simple_extent_dims)(self.id, dims.as_mut_ptr(), std::ptr::null_mut())
        };
        usize::try_from(rank).is_ok_and(|rank| dims.get(..rank) == Some(self.dims))
    }
}

/// Try the libraries to which `modules` lead, then all that this process has loaded, until
/// `bind` takes one.  Each library is tried once.
///
/// A module need not lead to the library that it calls: a linker told `--as-needed` leaves a
/// library out that another module has loaded by then, and a library that was loaded for all
/// to see takes the place of the module's own.
///
/// # Errors
/// When none is taken: all that was tried, and why it did not fit.
pub(crate) fn find<T>(
    modules: &[String],
    mut bind: impl FnMut(Loaded) -> Result<T, BindError>,
) -> Result<T, BindError> {
    let mut tried = Tried::default();
    let mut seen: Vec<*mut c_void> = Vec::new();
    let mut attempt = |path: &str, is_module: bool| {
        let library = match Loaded::find(path) {
            Ok(loaded) => loaded.holder("H5open"),
            Err(message) if is_module => {
                tried.reasons.push(format!("{path}: {message}"));
                return None;
            }
            Err(_) => None,
        };
        let Some(library) = library else {
            match is_module {
                true => tried.reasons.push(format!("{path} leads to no H5open")),
                false => tried.others += 1,
            }
            return None;
        };
        let place = library.symbol("H5open");
        if seen.contains(&place) {
            return None;
        }
        seen.push(place);
        bind(library).map_err(|error| tried.reasons.push(error.to_string())).ok()
    };
    let found = modules.iter().find_map(|path| attempt(path, true));
    let found = found.or_else(|| loaded_paths().iter().find_map(|path| attempt(path, false)));
    found.ok_or(BindError::NoMaker { tried: tried.reasons, others: tried.others })
}

/// What was tried in vain.
#[derive(Default)]
struct Tried {
    reasons: Vec<String>,
    /// Libraries of this process that are no libhdf5, and lead to none.
    others: usize,
}
