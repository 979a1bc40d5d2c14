//! What does the operating system do for us, and how does each do it?
//!
//! Everything that differs between systems is here: the other files of this crate, and of those above
//! it, have no `cfg` of a system.  How libraries are found is in `chunkwise-loader`.

use std::ffi::c_int;

#[cfg(unix)]
mod identity;
#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod own;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "macos.rs"]
mod own;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use identity::*;
#[cfg(unix)]
pub use own::*;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

/// A file of the C library in this process, as libhdf5 and Python number them.
pub type Descriptor = c_int;

/// Which file it is: the device or volume, and the file's number there.
pub type FileKey = (u64, u64);

/// Which file it is, and whether it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Which file.
    pub key: FileKey,
    /// Its size.
    pub len: u64,
    /// When it was last written to, as programs may set it.
    pub modified: (i64, i64),
    /// The same, of any change to the file, as the system keeps it.
    changed: (i64, i64),
    /// Permissions, owner, group and links: changing one of them is a change as well.
    manner: (u32, u32, u32, u64),
}

impl Identity {
    /// Whether it is that file with the same bytes.  Where the time of change alone differs, a
    /// program has written to it and set the other time back.
    pub fn is_unchanged(&self, other: &Self) -> bool {
        (self.key, self.len, self.modified) == (other.key, other.len, other.modified)
            && (self.changed == other.changed || self.manner != other.manner)
    }
}
