//! How is what one write covers whole put into the file at once, with nothing kept for later?
//!
//! For datasets to which libhdf5 writes everything else: chunks that are covered in part are not
//! touched, and after each write the file holds what was written.  What is remembered from write
//! to write is which encoder was chosen, which does not change what is read.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use chunkwise_codec::{Effort, Encoding, Tuning};
use chunkwise_select::{Axis, ChunkGrid, Dims, Hyperslab, Plan, Selected};
use smallvec::SmallVec;

use crate::write::chunk_maker::{CallersData, ChunkJob, ChunkMaker, Stored};
use crate::write::dirty::DirtyChunks;
use crate::write::encode::Jobs;
use crate::write::encoder_choice::EncoderChoice;
use crate::write::{Committer, WriteError, WriteInfo};

/// Until this many bytes are written, deflate's encoder is the one stated: to choose another takes
/// as long as to encode some of them, which it has to gain first.
const CHOICE_NBYTES: u64 = 8 << 20;

/// Elements from where to where, a dimension each.
pub type Bounds = SmallVec<[Range<u64>; 4]>;

/// Encodes and commits chunks of one dataset, each in the write that covers it whole.
pub struct WholeChunks {
    info: WriteInfo,
    grid: ChunkGrid,
    chunk_nbytes: usize,
    choice: EncoderChoice,
    /// The encoding in use and what was chosen, once there was enough to choose by.
    tuned: Option<(Encoding, Option<Tuning>)>,
}

impl WholeChunks {
    /// For the dataset with these facts.
    ///
    /// # Errors
    /// When the shapes do not fit together, or a chunk cannot be held in memory.
    pub fn new(info: WriteInfo) -> Result<Self, WriteError> {
        let grid = ChunkGrid::new(&info.shape, &info.chunk)?;
        let nbytes = grid.chunk_len().saturating_mul(info.element_size as u64);
        let chunk_nbytes = usize::try_from(nbytes).ok().filter(|&n| n <= isize::MAX as usize);
        Ok(Self {
            grid,
            chunk_nbytes: chunk_nbytes.ok_or(WriteError::Memory(nbytes))?,
            choice: EncoderChoice::from(CHOICE_NBYTES),
            tuned: None,
            info,
        })
    }

    /// Go on with the encoder that was chosen by `former`, which was made of the same dataset, or
    /// of another one that is made alike.
    pub fn go_on_from(&mut self, former: &mut Self) {
        if (&former.info.encoding, former.chunk_nbytes) == (&self.info.encoding, self.chunk_nbytes)
        {
            self.choice = std::mem::take(&mut former.choice);
            self.tuned = former.tuned.take();
        }
    }

    /// The dataset's facts.
    pub fn info(&self) -> &WriteInfo {
        &self.info
    }

    /// Which encoder of deflate was chosen; None before that, or without a choice.
    pub fn tuning(&self) -> Option<&Tuning> {
        self.tuned.as_ref().and_then(|(_, tuning)| tuning.as_ref())
    }

    /// The dataset's chunks are these now: it has another shape, or the same.
    pub fn set_grid(&mut self, grid: ChunkGrid) {
        debug_assert_eq!(grid.chunk(), self.grid.chunk(), "no dataset changes its chunks");
        self.grid = grid;
    }

    /// The part of a box of elements that consists of whole chunks; None where there is none, or
    /// the selection has gaps.
    ///
    /// A chunk at the edge is whole with all elements within the shape.  One that may get more,
    /// as the dataset grows, only counts with `growing`: who appends would have it encoded once
    /// for each of them.
    pub fn whole_part(&self, selection: &Hyperslab, growing: bool) -> Option<Bounds> {
        let lengths = self.grid.shape().iter().zip(&self.info.max_shape).zip(self.grid.chunk());
        let part = |(axis, ((&size, &most), &chunk)): (&Axis, ((&u64, &u64), &u64))| {
            let len = axis.len();
            let end = axis.start().checked_add(len).filter(|&end| end <= size)?;
            if !axis.is_contiguous() || len == 0 {
                return None;
            }
            let first = axis.start().div_ceil(chunk).checked_mul(chunk)?;
            let edge_is_whole =
                end == size && (growing || size == most) && !self.info.unfiltered_partial_chunks;
            let last = if edge_is_whole { end } else { end / chunk * chunk };
            (first < last).then_some(first..last)
        };
        selection.axes().iter().zip(lengths).map(part).collect()
    }

    /// Encode and commit the selection's [`whole_part`](Self::whole_part); `data` has all elements
    /// of the selection.
    ///
    /// # Errors
    /// When the selection does not fit the data, and when a chunk cannot be encoded or committed:
    /// those before it are in the file.
    pub fn write(
        &mut self,
        selection: &Hyperslab,
        growing: bool,
        data: &[u8],
        committer: &mut dyn Committer,
    ) -> Result<(), WriteError> {
        let Some(part) = self.whole_part(selection, growing) else { return Ok(()) };
        let plan = Plan::new(&self.grid, Selected::from(selection))?;
        let size = self.info.element_size as u64;
        let selected = plan.summary().selected_elements.saturating_mul(size);
        if selected != data.len() as u64 {
            return Err(WriteError::Source { selected, given: data.len() as u64 });
        }
        let jobs: Vec<ChunkJob> = (0..plan.len())
            .map(|number| ChunkJob {
                chunk_index: plan.task(number).chunk_index(),
                task: Some(number),
            })
            .filter(|job| self.lies_within(&job.chunk_index, &part))
            .collect();
        let nothing_stored: Vec<Stored> = vec![None; jobs.len()];
        let none_dirty = DirtyChunks::default();
        let maker = || ChunkMaker {
            info: &self.info,
            grid: &self.grid,
            chunk_nbytes: self.chunk_nbytes,
            dirty: &none_dirty,
            data: Some(CallersData { plan: &plan, data }),
        };
        let former = self.tuned.as_ref().map(|(encoding, _)| encoding);
        let chosen =
            self.choice.made(&maker(), &jobs, &nothing_stored, Effort::AsStated, former)?;
        if chosen.is_some() {
            self.tuned = chosen;
        }
        let encoding = self.tuned.as_ref().map_or(&self.info.encoding, |(tuned, _)| tuned);
        let made = Jobs { jobs: &jobs, stored: &nothing_stored, encoding, maker: maker() };
        // As libhdf5's own writes, it is not interrupted.
        let (_, done) = made.run(committer, &AtomicBool::new(false));
        done.map(|_| ())
    }

    /// Whether a chunk that the selection touches lies in the part of it that is whole.
    fn lies_within(&self, chunk_index: &Dims, part: &Bounds) -> bool {
        self.grid
            .origin(chunk_index)
            .into_iter()
            .zip(part)
            .all(|(origin, bounds)| bounds.contains(&origin))
    }
}

impl std::fmt::Debug for WholeChunks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WholeChunks({:?})", self.grid.shape())
    }
}
