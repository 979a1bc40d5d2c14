//! Which object has a path, and would libhdf5 open it?
//!
//! What is not certain is left to libhdf5, which has words for what is missing or damaged.

use chunkwise_format::{Dataspace, Kind, Layout, Object, Target};
use chunkwise_select::{ChunkGrid, Dims};

use crate::metadata::Metadata;

/// To read more names than these, to find one, takes longer than libhdf5, which keeps them.
const MOST_NAMES_NBYTES: u64 = 64 << 10;

/// What libhdf5 makes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opens {
    /// A group, whose header is at this address.
    Group(u64),
    /// A dataset.
    Dataset(u64),
    /// Only libhdf5 says it.
    Left,
}

impl Metadata {
    /// What hard links lead to from a group, by a path in its plainest form; None for all others,
    /// and for what is not there.
    pub fn find(&self, group: u64, path: &[u8]) -> Option<Opens> {
        if !self.is_whole() {
            return None;
        }
        let (mut at, mut path) = (group, path);
        if let Some(rest) = path.strip_prefix(b"/") {
            (at, path) = (self.root(), rest);
        }
        for name in path.split(|&byte| byte == b'/') {
            // libhdf5 goes on without these.
            if name.is_empty() || name == b"." || name.contains(&0) {
                return None;
            }
            let group = self.object(at).ok()?;
            if !self.file.bytes().is_whole() && group.names_nbytes().ok()? > MOST_NAMES_NBYTES {
                return None;
            }
            match group.link(name).ok()??.target {
                Target::Hard(address) => at = address,
                _ => return None,
            }
        }
        self.opens(&self.object(at).ok()?)
    }

    /// What libhdf5 makes of an object; None of what is unknown.
    pub(crate) fn opens(&self, object: &Object<'_>) -> Option<Opens> {
        let end = self.storage.end().saturating_sub(self.file.superblock().base);
        match object.kind() {
            Kind::Unknown => None,
            Kind::Group => Some(Opens::Group(object.address())),
            Kind::Dataset if is_plain(object, end).unwrap_or(false) => {
                Some(Opens::Dataset(object.address()))
            }
            _ => Some(Opens::Left),
        }
    }
}

/// Whether all is known that libhdf5 looks at as it opens a dataset of a file that ends there, and
/// none of it is unusual.
fn is_plain(object: &Object<'_>, end: u64) -> Option<bool> {
    let (datatype, dataspace) = (object.datatype().ok()??, object.dataspace().ok()??);
    let _ = (object.fill_value().ok()??, object.filters().ok()?);
    // HDF5 2.0 refuses wide lengths of chunks.
    if !object.external_files().ok()?.is_empty() || object.narrowed().ok()?.is_some() {
        return Some(false);
    }
    Some(match object.layout().ok()?? {
        Layout::Compact(bytes) => {
            Some(bytes.len() as u64) == dataspace.count()?.checked_mul(datatype.nbytes.into())
        }
        Layout::Contiguous { address, nbytes } => {
            let whole = dataspace.count()?.checked_mul(datatype.nbytes.into())?;
            let is_inside =
                address.is_none_or(|at| at.checked_add(whole).is_some_and(|to| to <= end));
            is_inside && nbytes.is_none_or(|nbytes| nbytes == whole)
        }
        Layout::Chunked(chunked) if dataspace != Dataspace::Null => {
            let grid = ChunkGrid::new(
                &Dims::from_slice(dataspace.shape()),
                &Dims::from_slice(&chunked.chunk),
            );
            grid.is_ok() && chunked.element_nbytes == u64::from(datatype.nbytes)
        }
        _ => false,
    })
}
