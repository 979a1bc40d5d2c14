//! Can elements be copied as they are stored?

use crate::Unsuited;
use crate::api::{Api, hid_t};
use crate::error::because;
use crate::facts::holds_pointers;

/// The size of an element, if elements can be copied as they are stored.
pub(crate) unsafe fn check_type(
    api: &Api,
    file_type: hid_t,
    memory_type: hid_t,
) -> Result<usize, Unsuited> {
    // SAFETY: two live types, by the caller's contract.
    unsafe {
        if holds_pointers(api, file_type)? {
            return because(
                "its elements are of variable length or references, stored elsewhere in the file",
            );
        }
        if api.checked("H5Tequal", (api.H5Tequal)(file_type, memory_type))? == 0 {
            return because("its stored type has to be converted for NumPy");
        }
        match (api.H5Tget_size)(file_type) {
            0 => Err(api.failed("H5Tget_size").into()),
            size => Ok(size),
        }
    }
}
