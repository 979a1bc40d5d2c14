//! Does the engine read a dataset, or libhdf5, and why?
//!
//! The facts come from the file's own bytes ([`Metadata::dataset`](crate::Metadata::dataset)) or
//! from libhdf5 (`eligibility` of `chunkwise-libhdf5`, which has its own questions about files and
//! types); what follows from them is the same.

use std::sync::Arc;

use chunkwise_codec::{Filter, Pipeline};
use chunkwise_engine::{Chunks, Dataset, DatasetInfo, Layout, Storage};
use chunkwise_select::{ChunkGrid, Dims};

/// Why a virtual dataset is left to libhdf5: a caller that knows its sources can have it read.
pub const VIRTUAL_LAYOUT: &str = "its layout is virtual: the data lies in other datasets";
/// Why one is whose data lies in files that were not named.
pub const EXTERNAL_LAYOUT: &str = "its data lies in external files";

/// Why libhdf5 has to read a dataset, in words that follow "because".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left(pub String);

/// How a dataset whose elements are in memory as they are stored is described.
pub struct Description {
    /// Its shape.
    pub shape: Dims,
    /// Bytes of an element.
    pub element_size: usize,
    /// What was not written.
    pub fill: Fill,
    /// Where its data is.
    pub data: Data,
}

/// What an element that was never written reads as.
pub struct Fill {
    /// None where it is left untouched.
    pub value: Option<Vec<u8>>,
    /// Whether it is undefined though it should be filled: reading a dataset of which nothing was
    /// written is then an error (`H5D__read`).
    pub undefined: bool,
}

/// When libhdf5 fills what is not written (`H5D_fill_time_t`).
const NEVER: u32 = 1;
const IF_SET: u32 = 2;

impl Fill {
    /// As `H5D__chunk_read` decides: by the time, and whether a value is defined.
    ///
    /// # Errors
    /// The value cannot be had.
    pub fn of<E>(
        time: u32,
        is_defined: bool,
        value: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Self, E> {
        let undefined = !is_defined && time != NEVER;
        let untouched = time == NEVER || (time == IF_SET && !is_defined);
        Ok(Self { value: if untouched { None } else { Some(value()?) }, undefined })
    }
}

/// Where a dataset's data is.
pub enum Data {
    /// In the header.
    Compact,
    /// In one piece; None where nothing was written.
    Contiguous(Option<u64>),
    /// In chunks.
    Chunked {
        /// A chunk's shape.
        chunk: Dims,
        /// What decodes them, or which filter nothing here decodes.
        pipeline: Result<Pipeline, Left>,
        /// Whether chunks that reach beyond the shape are stored without filters.
        unfiltered_partial_chunks: bool,
    },
    /// In other datasets.
    Virtual,
    /// In other files.
    External,
    /// Where this number says, which is not known.
    Other(i64),
}

/// What undoes filters, each a number, its options, and what it is called.
///
/// # Errors
/// The first of them that is not decoded here.
pub fn pipeline_of<'f>(
    filters: impl Iterator<Item = (i32, &'f [u32], String)>,
) -> Result<Pipeline, Left> {
    let decoders = filters.map(|(number, options, label)| {
        let known = Filter::from_hdf5(number, options);
        known.ok_or_else(|| Left(format!("{label} is not decoded natively yet")))
    });
    Ok(Pipeline::new(decoders.collect::<Result<Vec<_>, _>>()?))
}

/// The engine's dataset; `chunks` says where those of a grid lie.
///
/// # Errors
/// Why libhdf5 has to read it, or what `chunks` fails with.
pub fn readable<E: From<Left>>(
    description: Description,
    storage: Arc<dyn Storage>,
    chunks: impl FnOnce(ChunkGrid, &Pipeline) -> Result<Chunks, E>,
) -> Result<Arc<Dataset>, E> {
    let left = |why: String| E::from(Left(why));
    let Description { shape, element_size, fill, data } = description;
    let layout = match data {
        Data::Contiguous(address) => Layout::Contiguous { address },
        Data::Chunked { chunk, pipeline, unfiltered_partial_chunks } => {
            let pipeline = pipeline?;
            let grid = ChunkGrid::new(&shape, &chunk).map_err(|error| left(error.to_string()))?;
            let index = chunks(grid, &pipeline)?;
            Layout::Chunked { chunk, pipeline, unfiltered_partial_chunks, index }
        }
        Data::Compact => {
            return Err(left("its layout is compact: the data lies in the object header".into()));
        }
        Data::Virtual => return Err(left(VIRTUAL_LAYOUT.into())),
        Data::External => return Err(left(EXTERNAL_LAYOUT.into())),
        Data::Other(number) => return Err(left(format!("its layout class {number} is not known"))),
    };
    let nothing_written = || match &layout {
        Layout::Contiguous { address } => Ok(address.is_none()),
        Layout::Chunked { index, .. } => match index.all() {
            Ok(index) => Ok(index.written() == 0),
            Err(error) => Err(left(error.to_string())),
        },
    };
    if fill.undefined && nothing_written()? {
        return Err(left("nothing was written and its fill value is undefined".into()));
    }
    let info = DatasetInfo { shape, element_size, fill: fill.value, layout };
    Dataset::new(info, storage).map_err(|error| left(error.to_string()))
}
