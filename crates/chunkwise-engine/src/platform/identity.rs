//! Which file is open, as Linux and macOS number files?

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{FileKey, Identity};

impl Identity {
    /// Of an open file.
    ///
    /// # Errors
    /// The system's.
    pub fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|metadata| Self::from(&metadata))
    }

    /// Of the file at a path.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|metadata| Self::from(&metadata))
    }

    fn from(metadata: &Metadata) -> Self {
        Self {
            key: (metadata.dev(), metadata.ino()),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            manner: (metadata.mode(), metadata.uid(), metadata.gid(), metadata.nlink()),
        }
    }
}

/// Which file is open.
pub(crate) fn key_of(file: &File) -> io::Result<FileKey> {
    file.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The system's number for an open file, as [`reopened`](super::reopened) takes it.
pub(crate) fn number_of(file: &File) -> isize {
    file.as_raw_fd() as isize
}
