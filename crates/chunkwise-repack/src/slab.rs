//! Where does a super-block lie while its chunks are made: in this process's memory, or in memory
//! that the processes of a machine share?
//!
//! Shared, each source chunk is decoded by one of them, as by the threads of one process.

use std::fs::File;
use std::ops::Range;

use chunkwise_engine::zeroed;
use memmap2::{MmapOptions, MmapRaw};

use crate::CopyError;
use crate::share::Share;

/// Holds one block after another.
pub struct Slab<'a> {
    own: Vec<u8>,
    shared: Option<(&'a dyn Share, MmapRaw)>,
}

impl<'a> Slab<'a> {
    /// In memory that others have too, if there is some.
    pub fn new(shared: Option<(&'a dyn Share, &File)>) -> Result<Self, CopyError> {
        let map = |(share, file): (&'a dyn Share, &File)| {
            let map = MmapOptions::new().map_raw(file);
            map.map(|map| (share, map))
                .map_err(|error| CopyError::Share(format!("shared memory: {error}")))
        };
        Ok(Self { own: Vec::new(), shared: shared.map(map).transpose()? })
    }

    /// Whether others have it too.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Have room for a block of this many bytes.
    pub fn hold(&mut self, nbytes: usize) -> Result<(), CopyError> {
        match &self.shared {
            Some((_, map)) if map.len() < nbytes => {
                Err(CopyError::Refused("a block is larger than the memory for it".into()))
            }
            None if self.own.len() < nbytes => {
                self.own = zeroed(nbytes)?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A part of the block, which this process alone writes until all meet.
    pub fn part(&mut self, place: Range<usize>) -> &mut [u8] {
        match &mut self.shared {
            None => &mut self.own[place],
            Some((_, map)) => {
                assert!(place.start <= place.end && place.end <= map.len());
                // SAFETY: within the map, which lives as long as `self`; each part is handed to
                // one process (`Share::next`), and nobody reads it before all have met.
                unsafe {
                    std::slice::from_raw_parts_mut(
                        map.as_mut_ptr().add(place.start),
                        place.end - place.start,
                    )
                }
            }
        }
    }

    /// The whole of it, once all have met.
    pub fn bytes(&self) -> &[u8] {
        match &self.shared {
            None => &self.own,
            // SAFETY: the map lives as long as `self`, its file is as long (it was reserved), and
            // nobody writes to it between two meetings, while it is read.
            Some((_, map)) => unsafe { std::slice::from_raw_parts(map.as_ptr(), map.len()) },
        }
    }

    /// Wait for those who share it.
    pub fn meet(&self) -> Result<(), CopyError> {
        match &self.shared {
            None => Ok(()),
            Some((share, _)) => share.meet().map_err(CopyError::Share),
        }
    }
}
