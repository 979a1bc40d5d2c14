//! Which bytes keep HDF5 2.0 from opening datasets of a sound file, and which would not?
//!
//! HDF5 2.0 refuses lengths of chunks in more bytes than they need, which the format allows.
//! Narrowed the same header with narrow lengths, it opens the dataset.

use std::collections::HashSet;

use chunkwise_format::{Object, Target};

use crate::listing::holds_references;
use crate::metadata::Metadata;

/// What new headers begin with.
const HEADER: &[u8] = b"OHDR";
/// So many bytes are looked at together.
const PART_NBYTES: usize = 1 << 20;

/// The address of a dataset's header, where other bytes may stand in the file, and these.
pub type Narrowed = (u64, u64, Vec<u8>);

impl Metadata {
    /// Other bytes for the headers of all datasets whose lengths of chunks take more bytes than they
    /// need.  What is damaged is left out.
    #[must_use]
    pub fn narrowed(&self) -> Vec<Narrowed> {
        let mut found = Vec::new();
        let (mut seen, mut waiting, mut leads) = (HashSet::new(), vec![self.root()], false);
        while let Some(address) = waiting.pop() {
            let Some(object) = seen.insert(address).then(|| self.object(address).ok()).flatten()
            else {
                continue;
            };
            found.extend(self.narrowed_in(&object));
            leads = leads || leads_further(&object);
            let (links, _) = object.readable_links();
            waiting.extend(links.into_iter().filter_map(|link| match link.target {
                Target::Hard(address) => Some(address),
                _ => None,
            }));
        }
        if leads {
            for address in self.headers() {
                let object = seen.insert(address).then(|| self.object(address).ok()).flatten();
                found.extend(object.and_then(|object| self.narrowed_in(&object)));
            }
        }
        found
    }

    fn narrowed_in(&self, object: &Object<'_>) -> Option<Narrowed> {
        let (address, bytes) = object.narrowed().ok()??;
        Some((object.address(), self.file.superblock().base.checked_add(address)?, bytes))
    }

    /// Where headers may be, found by what they begin with: those of what only references lead to.
    fn headers(&self) -> Vec<u64> {
        let base = self.file.superblock().base;
        let mut found = Vec::new();
        let mut part = vec![0; PART_NBYTES];
        let mut at = base;
        while let Some(left) = self.storage.end().checked_sub(at).filter(|&left| left > 0) {
            part.truncate(usize::try_from(left).unwrap_or(PART_NBYTES));
            if self.storage.read_at(at, &mut part).is_err() {
                break;
            }
            let here = part.windows(HEADER.len()).zip(at - base..);
            found.extend(here.filter(|(bytes, _)| *bytes == HEADER).map(|(_, address)| address));
            // One may begin in this part and go on in the next.
            at += part.len().saturating_sub(HEADER.len() - 1).max(1) as u64;
        }
        found
    }
}

/// Whether values of an object may refer to objects that no link reaches.
fn leads_further(object: &Object<'_>) -> bool {
    let (attributes, _) = object.readable_attributes();
    object.datatype().ok().flatten().is_some_and(|datatype| holds_references(&datatype))
        || attributes.iter().any(|attribute| {
            attribute.name != b"DIMENSION_LIST"
                && attribute.name != b"REFERENCE_LIST"
                && holds_references(&attribute.datatype)
        })
}
