//! How long does a program take that opens the file anew for each read?

use std::sync::Arc;

use chunkwise_engine::{Inspect, Lap, Stopwatch, WalkBounds, WalkRecord, time_parts};
use chunkwise_select::{Selection, Walk};

use crate::selecting::MemorySpace;
use crate::timed::{Access, WalkError};
use crate::{Library, OpenDataset, Properties, Unsuited};

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
    /// What libhdf5 says, in words.
    pub fn walk(
        &self,
        walk: &Walk,
        bounds: WalkBounds,
        inspect: Inspect<'_>,
    ) -> Result<WalkRecord, String> {
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

    /// Read them by chunkwise's engine, which asks for the chunk index anew each time.
    ///
    /// # Errors
    /// What libhdf5 or the engine says, in words; also why the engine does not read it.
    pub fn engine_walk(
        &self,
        walk: &Walk,
        bounds: WalkBounds,
        inspect: Inspect<'_>,
    ) -> Result<WalkRecord, String> {
        self.time(walk, bounds, inspect, |open, selection, out| {
            let mut watch = Stopwatch::start();
            let engine = open.describe()?;
            let index = watch.lap();
            let lap = read_by_engine(&engine, selection, out)?;
            Ok(Lap { read: index + lap.read, ..lap })
        })
    }

    /// Why the engine does not read it; None where it does.
    ///
    /// # Errors
    /// What libhdf5 says when it is opened.
    pub fn unsuited(&self) -> Result<Option<Unsuited>, String> {
        Ok(self.open().map_err(|error| error.to_string())?.describe().err())
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
    ) -> Result<WalkRecord, String> {
        let element_size = self.open().map_err(|error| error.to_string())?.element_size();
        let outcome = time_parts(walk, element_size, bounds, inspect, |selection, out| {
            let mut watch = Stopwatch::start();
            let open = self.open()?;
            let opened = watch.lap();
            let lap = read(&open, selection, out)?;
            Ok(Lap { open: Some(opened), ..lap })
        });
        outcome.map_err(|error: WalkError| error.to_string())
    }
}

/// Read a selection by the engine; putting a union together is timed apart, as of libhdf5.
///
/// # Errors
/// As [`chunkwise_engine::Dataset::read`].
pub fn read_by_engine(
    engine: &chunkwise_engine::Dataset,
    selection: &Selection,
    out: &mut [u8],
) -> Result<Lap, chunkwise_engine::ReadError> {
    let mut watch = Stopwatch::start();
    let anew = selection.anew()?;
    let select = matches!(selection, Selection::Union { .. }).then(|| watch.lap());
    engine.read(&anew, out)?;
    Ok(Lap { open: None, select, read: watch.lap() })
}
