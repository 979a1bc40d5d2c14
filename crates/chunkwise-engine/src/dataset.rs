//! What does the engine know of a dataset?

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use chunkwise_codec::Pipeline;
use chunkwise_select::{ChunkGrid, Dims, Plan, Selected};

use crate::access_pattern::AccessPattern;
use crate::process::ProcessState;
use crate::read::inflate_trial::InflateTrial;
use crate::read::short_runs::ShortRuns;
use crate::{ChunkRecord, Chunks, ReadError, Storage};

/// How a dataset's bytes are laid out in its file.
#[derive(Debug, Clone)]
pub enum Layout {
    /// All elements in row-major order from `address` on; None when nothing was written.
    Contiguous {
        /// Where the first element lies, user block included.
        address: Option<u64>,
    },
    /// Chunks.
    Chunked {
        /// Shape of a chunk, slowest dimension first.
        chunk: Dims,
        /// The filters.
        pipeline: Pipeline,
        /// Chunks that reach beyond the dataset's edge are stored without filters
        /// (`H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`).
        unfiltered_partial_chunks: bool,
        /// Where the chunks lie.
        index: Chunks,
    },
}

/// The facts from which a [`Dataset`] is made.
#[derive(Debug, Clone)]
pub struct DatasetInfo {
    /// Elements in each dimension, slowest first; at least one dimension.
    pub shape: Dims,
    /// Bytes of an element; at least one.
    pub element_size: usize,
    /// The bytes of an element that was never written; None where libhdf5 leaves the
    /// destination as it is (an undefined fill value, or `H5D_FILL_TIME_NEVER`).
    pub fill: Option<Vec<u8>>,
    /// Where everything lies.
    pub layout: Layout,
}

/// A dataset that can be read from any number of threads.
pub struct Dataset {
    pub(crate) number: u64,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) info: DatasetInfo,
    /// The chunks; for a contiguous dataset slabs of whole rows, so that both layouts
    /// are read by one path.
    pub(crate) grid: ChunkGrid,
    pub(crate) chunk_nbytes: u64,
    pub(crate) pattern: AccessPattern,
    pub(crate) short_runs: ShortRuns,
    pub(crate) inflating: InflateTrial,
    /// For work that outlives a call.
    pub(crate) itself: Weak<Dataset>,
}

/// A contiguous dataset is cut into slabs of about this size, to be read in parallel.
const SLAB_NBYTES: u64 = 4 << 20;

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Where a chunk's bytes are, and what has to be done with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Nowhere: never written.
    Missing,
    /// At an address, as they are.
    Raw { address: u64 },
    /// Behind filters.
    Filtered(ChunkRecord),
}

/// What a read would do, in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// Chunks touched, written or not; for a contiguous dataset 0.
    pub chunks: u64,
    /// Those of them that were never written.
    pub missing_chunks: u64,
    /// Those of them that are behind filters, and so would be decoded.
    pub filtered_chunks: u64,
    /// Stored bytes of the chunks touched; of those without filters, the bytes wanted.
    pub stored_nbytes: u64,
    /// Bytes that come out of the filters; of chunks without filters, the bytes wanted.
    pub decoded_nbytes: u64,
    /// Bytes asked for.
    pub selected_nbytes: u64,
    /// Of chunks that are stored in blocks: how many of their blocks would be decoded, and how many
    /// they have; None where there are none, or so many chunks that this was not looked at.
    pub blocks: Option<(u64, u64)>,
}

/// The blocks of at most so many chunks are looked at to explain a read.
const EXPLAINED_CHUNKS: u64 = 1024;

impl Dataset {
    /// A dataset made of these facts, read through `storage`.
    ///
    /// # Errors
    /// When the shapes do not fit together or cannot be counted in 64 bits.
    pub fn new(info: DatasetInfo, storage: Arc<dyn Storage>) -> Result<Arc<Self>, ReadError> {
        let size = info.element_size as u64;
        let grid = match &info.layout {
            Layout::Chunked { chunk, .. } => ChunkGrid::new(&info.shape, chunk)?,
            Layout::Contiguous { .. } => {
                ChunkGrid::new(&info.shape, &slab_shape(&info.shape, size))?
            }
        };
        let chunk_nbytes = grid.chunk_len().checked_mul(size).ok_or(ReadError::Memory(None))?;
        // Offsets within the result are counted in bytes, in 64 bits.
        let total = info.shape.iter().try_fold(size, |n, &d| n.checked_mul(d));
        if total.is_none() && !grid.is_empty() {
            return Err(ReadError::Memory(None));
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let pattern = AccessPattern::new();
        let short_runs = ShortRuns::new(grid.len().saturating_mul(chunk_nbytes));
        Ok(Arc::new_cyclic(|itself| {
            let itself = Weak::clone(itself);
            let inflating = InflateTrial::default();
            Self {
                number,
                storage,
                info,
                grid,
                chunk_nbytes,
                pattern,
                short_runs,
                inflating,
                itself,
            }
        }))
    }

    /// Elements in each dimension, slowest first.
    pub fn shape(&self) -> &[u64] {
        &self.info.shape
    }

    /// Bytes of an element.
    pub fn element_size(&self) -> usize {
        self.info.element_size
    }

    /// Whether it has chunks with filters.
    pub fn is_filtered(&self) -> bool {
        match &self.info.layout {
            Layout::Chunked { pipeline, .. } => !pipeline.filters().is_empty(),
            Layout::Contiguous { .. } => false,
        }
    }

    /// Whether elements that were never written leave the destination as it is.
    pub fn leaves_missing_untouched(&self) -> bool {
        self.info.fill.is_none()
    }

    /// The facts that it was made from.
    pub fn info(&self) -> &DatasetInfo {
        &self.info
    }

    /// Where its bytes come from.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// Its chunks; of a contiguous dataset, slabs of whole rows.
    pub fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// Where the chunk at `position` in row-major order lies.
    ///
    /// # Errors
    /// [`ReadError::Index`]; not where a plan with it was prepared.
    pub(crate) fn placement(
        &self,
        position: u64,
        chunk_index: &[u64],
    ) -> Result<Placement, ReadError> {
        Ok(match &self.info.layout {
            Layout::Contiguous { address: None } => Placement::Missing,
            Layout::Contiguous { address: Some(address) } => {
                // Slabs are whole rows, so that each is one range of bytes.
                let offset = (0..self.grid.rank()).fold(0u64, |offset, d| {
                    offset * self.grid.shape()[d] + chunk_index[d] * self.grid.chunk()[d]
                });
                let nbytes = offset.saturating_mul(self.info.element_size as u64);
                Placement::Raw { address: address.saturating_add(nbytes) }
            }
            Layout::Chunked { pipeline, unfiltered_partial_chunks, index, .. } => {
                let Some(record) = index.get(position)? else { return Ok(Placement::Missing) };
                let unfiltered = pipeline.is_identity(record.filter_mask)
                    || (*unfiltered_partial_chunks && self.grid.is_partial(chunk_index));
                // A chunk stored short is left to the pipeline, which looks for what it lacks.
                if unfiltered && record.stored_nbytes >= self.chunk_nbytes {
                    return Ok(Placement::Raw { address: record.address });
                }
                Placement::Filtered(record)
            }
        })
    }

    /// Know where all chunks of a plan lie, before it is carried out.
    ///
    /// # Errors
    /// [`ReadError::Index`].
    pub(crate) fn prepare(&self, plan: &Plan<'_>) -> Result<(), ReadError> {
        match &self.info.layout {
            Layout::Chunked { index, .. } => index.prepare(plan),
            Layout::Contiguous { .. } => Ok(()),
        }
    }

    /// What was found to be wrong with its chunk index, so that libhdf5 has to read it.
    pub fn unsound(&self) -> Option<&str> {
        match &self.info.layout {
            Layout::Chunked { index: Chunks::OnDemand(index), .. } => index.unsound(),
            _ => None,
        }
    }

    /// Know where all chunks lie.
    ///
    /// # Errors
    /// [`ReadError::Index`].
    pub fn list_chunks(&self) -> Result<(), ReadError> {
        match &self.info.layout {
            Layout::Chunked { index, .. } => index.all().map(drop),
            Layout::Contiguous { .. } => Ok(()),
        }
    }

    /// What reading `selection` would do if nothing were cached.
    ///
    /// # Errors
    /// When the selection does not fit the dataset; [`ReadError::Index`].
    pub fn explain<'a>(
        &'a self,
        selection: impl Into<Selected<'a>>,
    ) -> Result<Explanation, ReadError> {
        let size = self.info.element_size as u64;
        let plan = Plan::new(&self.grid, selection)?;
        self.prepare(&plan)?;
        let chunked = matches!(self.info.layout, Layout::Chunked { .. });
        let mut figures = Explanation {
            chunks: if chunked { plan.len() } else { 0 },
            // Until found to be written.
            missing_chunks: if chunked { plan.len() } else { 0 },
            filtered_chunks: 0,
            stored_nbytes: 0,
            decoded_nbytes: 0,
            selected_nbytes: plan.summary().selected_elements.saturating_mul(size),
            blocks: None,
        };
        let mut add = |placement: Placement, wanted: u64| {
            let (stored, decoded) = match placement {
                Placement::Missing => return,
                Placement::Raw { .. } => (wanted * size, wanted * size),
                Placement::Filtered(record) => (record.stored_nbytes, self.chunk_nbytes),
            };
            figures.missing_chunks = figures.missing_chunks.saturating_sub(1);
            figures.filtered_chunks += u64::from(matches!(placement, Placement::Filtered(_)));
            figures.stored_nbytes = figures.stored_nbytes.saturating_add(stored);
            figures.decoded_nbytes = figures.decoded_nbytes.saturating_add(decoded);
        };
        match &self.info.layout {
            // In a sparse dataset the written chunks may be far fewer than those touched.
            Layout::Chunked { index, .. }
                if index.listed().is_some_and(|index| index.written() < plan.len()) =>
            {
                for position in index.all()?.positions() {
                    let chunk_index = self.grid.chunk_index(position);
                    let wanted = plan.selected_of(&chunk_index);
                    if wanted > 0 {
                        add(self.placement(position, &chunk_index)?, wanted);
                    }
                }
            }
            // Slabs are no chunks, and a damaged header may tell of any number of them.
            Layout::Contiguous { address } => {
                if address.is_some() {
                    figures.stored_nbytes = figures.selected_nbytes;
                    figures.decoded_nbytes = figures.selected_nbytes;
                }
            }
            Layout::Chunked { .. } => {
                let (mut blocks, mut saved_nbytes) = (None, 0);
                for task in plan.tasks() {
                    let placement = self.placement(task.linear_index(), &task.chunk_index())?;
                    add(placement, task.selected_elements());
                    if plan.len() <= EXPLAINED_CHUNKS
                        && let Placement::Filtered(record) = placement
                        && let Some((decoded, all, nbytes)) = self.explain_blocks(&task, record)
                    {
                        let (before, of) = blocks.unwrap_or((0, 0));
                        blocks = Some((before + decoded, of + all));
                        saved_nbytes += self.chunk_nbytes.saturating_sub(nbytes);
                    }
                }
                figures.blocks = blocks;
                figures.decoded_nbytes = figures.decoded_nbytes.saturating_sub(saved_nbytes);
            }
        }
        Ok(figures)
    }
}

impl Drop for Dataset {
    fn drop(&mut self) {
        ProcessState::of_this_process().cache().forget(self.number);
    }
}

/// The shape of about [`SLAB_NBYTES`] of consecutive elements: whole rows of the inner
/// dimensions, some of one dimension, one of those outside it.
fn slab_shape(shape: &[u64], size: u64) -> Dims {
    let mut slab: Dims = smallvec::smallvec![1; shape.len()];
    let mut room = (SLAB_NBYTES / size).max(1);
    for d in (0..shape.len()).rev() {
        slab[d] = shape[d].clamp(1, room);
        room /= slab[d];
        if slab[d] < shape[d] {
            break;
        }
    }
    slab
}
