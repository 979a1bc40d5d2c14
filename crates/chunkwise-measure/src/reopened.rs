//! How long does a program take that opens the file anew for each read?

use std::sync::Arc;

use chunkwise_libhdf5::{Library, Unsuited};
use chunkwise_select::Selection;

use crate::memory_space::MemorySpace;
use crate::reads::{Access, read_by_engine};
use crate::timed::{Inspect, Lap, Stopwatch, WalkBounds, WalkRecord, time_parts};
use crate::{OpenDataset, Properties, Walk, WalkError};

/// A dataset that is opened for each read, and closed behind it.
///
/// Nothing else may have it open in this library: HDF5 would share what that has in memory.
#[derive(Debug)]
pub struct Reopened<'a> {
    /// Who reads.
    pub library: &'a Arc<Library>,
    /// The file.
    pub path: &'a [u8],
    /// The dataset's path in it.
    pub name: &'a [u8],
    /// What it is opened with.
    pub properties: Properties,
}

impl Reopened<'_> {
    /// Read the selections of `walk` with `H5Dread`, as [`OpenDataset::walk`] does.
    ///
    /// Opening is a part of each read's time, closing is not.
    ///
    /// # Errors
    /// What libhdf5 says.
    pub fn walk(
        &self,
        walk: &Walk,
        bounds: WalkBounds,
        inspect: Inspect<'_>,
    ) -> Result<WalkRecord, WalkError> {
        self.time(walk, bounds, inspect, |open, selection, out| {
            open.library().locked(|api| {
                // SAFETY: live handles of this library, and the lock is held.
                unsafe {
                    let access = Access::of(open, api, open.id())?;
                    let mut memory = MemorySpace::new(api);
                    access.read(open, api, selection, &mut memory, out)
                }
            })
        })
    }

    /// Read them by chunkwise's engine, which asks for the chunk index anew each time; what it
    /// does not read, libhdf5 does, and the reason why is given.
    ///
    /// # Errors
    /// What libhdf5 or the engine says.
    pub fn engine_walk(
        &self,
        walk: &Walk,
        bounds: WalkBounds,
        inspect: Inspect<'_>,
    ) -> Result<(WalkRecord, Option<Unsuited>), WalkError> {
        if let Err(reason) = self.open()?.describe() {
            return Ok((self.walk(walk, bounds, inspect)?, Some(reason)));
        }
        let record = self.time(walk, bounds, inspect, |open, selection, out| {
            let mut watch = Stopwatch::start();
            let engine = open.describe()?;
            let index = watch.lap();
            let lap = read_by_engine(&engine, selection, out)?;
            Ok(Lap { read: index + lap.read, ..lap })
        })?;
        Ok((record, None))
    }

    fn open(&self) -> Result<OpenDataset, WalkError> {
        let library = Arc::clone(self.library);
        Ok(OpenDataset::open(library, self.path, self.name, self.properties.clone())?)
    }

    fn time(
        &self,
        walk: &Walk,
        bounds: WalkBounds,
        inspect: Inspect<'_>,
        mut read: impl FnMut(&OpenDataset, &Selection, &mut [u8]) -> Result<Lap, WalkError>,
    ) -> Result<WalkRecord, WalkError> {
        let element_size = self.open()?.element_size();
        time_parts(walk, element_size, bounds, inspect, |selection, out| {
            let mut watch = Stopwatch::start();
            let open = self.open()?;
            let opened = watch.lap();
            let lap = read(&open, selection, out)?;
            Ok(Lap { open: Some(opened), ..lap })
        })
    }
}
