//! How is what libhdf5 opens closed again?

use std::ffi::c_int;

use crate::BindError;
use crate::api::{Api, hid_t};

/// Closes a handle when it goes out of scope.
pub struct Handle {
    /// The handle, for as long as this lives.
    pub id: hid_t,
    close: unsafe extern "C" fn(hid_t) -> c_int,
}

impl Handle {
    /// A handle that `call` has given; an error where it gave none.
    ///
    /// # Errors
    /// libhdf5's, where `id` is negative.
    ///
    /// # Safety
    /// `close` must close what `call` of this library gives, nobody else may, and `id` is not
    /// to be set to another.  The lock must be held, now and when this is dropped.
    #[inline]
    pub unsafe fn new(
        api: &Api,
        call: &'static str,
        id: hid_t,
        close: unsafe extern "C" fn(hid_t) -> c_int,
    ) -> Result<Self, BindError> {
        Ok(Self { id: api.checked_id(call, id)?, close })
    }

    /// Close it now, and learn whether that went well.
    ///
    /// # Errors
    /// What libhdf5 says.
    pub fn close(self, call: &'static str, api: &Api) -> Result<(), BindError> {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: as for drop, which does not happen any more.
        let status = unsafe { (this.close)(this.id) };
        api.checked(call, status).map(|_| ())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: a live handle with the function that closes its kind; the lock is held
        // wherever handles are made.
        unsafe { (self.close)(self.id) };
    }
}

/// A property list of a class, closed when it is dropped.
///
/// # Errors
/// What libhdf5 says.
///
/// # Safety
/// A class of this library; the lock must be held, and until the list is dropped.
pub unsafe fn list(api: &Api, class: hid_t) -> Result<Handle, BindError> {
    // SAFETY: the caller's contract.
    unsafe { Handle::new(api, "H5Pcreate", (api.H5Pcreate)(class), api.H5Pclose) }
}
