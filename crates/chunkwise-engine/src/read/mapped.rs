//! How is a dataset read whose elements lie in other datasets?
//!
//! What is wanted is divided among the mappings by arithmetic (`chunkwise_select::Mapping`).  Each
//! part is cut where chunks of its source meet, and threads take pieces one by one: of sources of
//! one chunk each, all cores read different ones.  A piece that lands in the result as one run is
//! read in place, any other one into a buffer.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use chunkwise_codec::resize;
use chunkwise_select::{Dims, Mapping, Part, Selection, Wanted};

use crate::crew::{PARALLEL_NBYTES, Pieces, share};
use crate::dataset::Layout;
use crate::process::thread_count;
use crate::read::call::Call;
use crate::read::fields::Fields;
use crate::read::scatter::{SharedResult, fill_run};
use crate::read::view::PartView;
use crate::{Dataset, Explanation, ReadError};

/// A piece has about this many bytes, in the result.
const PIECE_NBYTES: u64 = 4 << 20;
/// Elements of a union that are looked up at a time.
const MOST_POINTS: u64 = 1 << 20;
/// Of unions of more elements, no element is looked at by itself to explain them.
const MOST_LISTED: u64 = 1 << 24;
/// Pairs of mappings that are compared before it is taken for granted that some overlap.
const MOST_COMPARED: usize = 1 << 22;

/// Where elements of a virtual dataset come from.
#[derive(Clone)]
pub enum AnyDataset {
    /// A dataset with bytes of its own.
    Stored(Arc<Dataset>),
    /// Another virtual dataset.
    Virtual(Arc<VirtualDataset>),
}

impl AnyDataset {
    /// Elements in each dimension, slowest first.
    pub fn shape(&self) -> &[u64] {
        match self {
            Self::Stored(dataset) => dataset.shape(),
            Self::Virtual(dataset) => dataset.shape(),
        }
    }

    /// Bytes of an element.
    pub fn element_size(&self) -> usize {
        match self {
            Self::Stored(dataset) => dataset.element_size(),
            Self::Virtual(dataset) => dataset.element_size,
        }
    }

    /// Whether elements that were never written are left as they are, for want of a fill value.
    pub fn leaves_missing_untouched(&self) -> bool {
        match self {
            Self::Stored(dataset) => dataset.leaves_missing_untouched(),
            Self::Virtual(dataset) => dataset.leaves_missing_untouched(),
        }
    }

    /// What identifies it.
    fn address(&self) -> usize {
        match self {
            Self::Stored(dataset) => Arc::as_ptr(dataset).addr(),
            Self::Virtual(dataset) => Arc::as_ptr(dataset).addr(),
        }
    }

    /// The shape of a chunk; of what has none, of one element.
    fn chunk(&self) -> Dims {
        match self {
            Self::Stored(dataset) => match &dataset.info().layout {
                Layout::Chunked { chunk, .. } => chunk.clone(),
                Layout::Contiguous { .. } => smallvec::smallvec![1; dataset.shape().len()],
            },
            Self::Virtual(dataset) => smallvec::smallvec![1; dataset.shape.len()],
        }
    }

    /// Know where all chunks lie.
    ///
    /// # Errors
    /// As [`Dataset::list_chunks`].
    pub fn list_chunks(&self) -> Result<(), ReadError> {
        match self {
            Self::Stored(dataset) => dataset.list_chunks(),
            Self::Virtual(dataset) => dataset.list_chunks(),
        }
    }

    /// The most bytes that reading `selection` may decode and copy, about.
    ///
    /// # Errors
    /// When the selection does not fit.
    pub fn work_nbytes(&self, selection: &Selection) -> Result<u64, ReadError> {
        match self {
            Self::Stored(dataset) => Ok(dataset.work_nbytes(&dataset.plan(selection)?)),
            Self::Virtual(dataset) => dataset.work_nbytes(selection),
        }
    }

    /// What reading `selection` would do if nothing were cached.
    ///
    /// # Errors
    /// As [`Dataset::explain`].
    pub fn explain(&self, selection: &Selection) -> Result<Explanation, ReadError> {
        match self {
            Self::Stored(dataset) => dataset.explain(selection),
            Self::Virtual(dataset) => dataset.explain(selection),
        }
    }

    /// Read `selection` into `out`, in its order; with `fields`, of each element these.
    ///
    /// # Errors
    /// As [`Dataset::read_plan`], of a virtual one about the source that it concerns;
    /// [`ReadError::Replaced`] where a file is not what it was.
    pub fn read(
        &self,
        selection: &Selection,
        fields: Option<&Fields>,
        out: &mut [u8],
        cancelled: &AtomicBool,
    ) -> Result<(), ReadError> {
        self.read_within(selection, fields, out, Call::new(cancelled))
    }

    fn read_within(
        &self,
        selection: &Selection,
        fields: Option<&Fields>,
        out: &mut [u8],
        call: Call<'_>,
    ) -> Result<(), ReadError> {
        match self {
            Self::Stored(dataset) => {
                dataset.read_within(&dataset.plan(selection)?, fields, out, call)
            }
            Self::Virtual(dataset) => dataset.read_within(selection, fields, out, call),
        }
    }
}

/// A mapping, and what it leads to.
pub struct MappedSource {
    /// Which elements.
    pub mapping: Mapping,
    /// Where they come from.
    pub source: AnyDataset,
    /// How they become elements of the virtual dataset; None where they are such.
    pub fields: Option<Fields>,
    /// File and dataset, for messages.
    pub name: String,
}

/// A dataset whose elements lie in others; where nothing is mapped, they are the fill value.
pub struct VirtualDataset {
    shape: Dims,
    element_size: usize,
    fill: Option<Vec<u8>>,
    /// No element is in two mappings.
    sources: Vec<MappedSource>,
    /// Of all that it leads to: found out once, as sources may be shared by many mappings on many
    /// levels.
    converts: bool,
    leaves_missing: bool,
}

/// A piece of a read.
struct Piece<'a> {
    source: &'a MappedSource,
    part: Part,
}

impl VirtualDataset {
    /// A dataset of `shape` with elements of `element_size` bytes; without `fill`, what is not mapped
    /// is left as it is.  None where mappings may overlap: what libhdf5 then makes of elements that
    /// are not mapped depends on what else is read.
    ///
    /// # Errors
    /// When a mapping or its conversion is of another dataset.
    pub fn new(
        shape: Dims,
        element_size: usize,
        fill: Option<Vec<u8>>,
        sources: Vec<MappedSource>,
    ) -> Result<Option<Arc<Self>>, ReadError> {
        let fits = |one: &MappedSource| {
            let size = one.fields.as_ref().map_or(one.source.element_size(), |f| f.size);
            let whole = one.mapping.fits(&shape, one.source.shape());
            size == element_size && whole
        };
        let filled = fill.as_ref().is_none_or(|fill| fill.len() == element_size);
        if element_size == 0 || !filled || !sources.iter().all(fits) {
            return Err(ReadError::Fields);
        }
        let disjoint = are_disjoint(&sources, shape.len());
        let converts = sources.iter().any(|one| {
            let within = matches!(&one.source, AnyDataset::Virtual(inner) if inner.converts);
            within || one.fields.is_some()
        });
        let leaves_missing =
            fill.is_none() || sources.iter().any(|one| one.source.leaves_missing_untouched());
        Ok(disjoint.then(|| {
            Arc::new(Self { shape, element_size, fill, sources, converts, leaves_missing })
        }))
    }

    /// Elements in each dimension, slowest first.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Bytes of an element.
    pub fn element_size(&self) -> usize {
        self.element_size
    }

    /// Whether some elements are left as they are, for want of a fill value.
    pub fn leaves_missing_untouched(&self) -> bool {
        self.leaves_missing
    }

    /// Whether elements of a source are converted, here or deeper.
    pub fn converts(&self) -> bool {
        self.converts
    }

    /// Know where all chunks of all sources lie.
    ///
    /// # Errors
    /// [`ReadError::Source`] for an index that is not as it should be.
    pub fn list_chunks(&self) -> Result<(), ReadError> {
        // Many mappings may lead to one source, on each of several levels.
        let mut seen = HashSet::new();
        self.sources
            .iter()
            .filter(|one| seen.insert(one.source.address()))
            .try_for_each(|one| one.source.list_chunks().map_err(|error| named(one, error)))
    }

    /// The most bytes that reading `selection` may decode and copy, about.
    ///
    /// # Errors
    /// When the selection does not fit.
    pub fn work_nbytes(&self, selection: &Selection) -> Result<u64, ReadError> {
        if let Selection::Union { union, .. } = selection {
            return Ok(union.len().saturating_mul(self.element_size as u64));
        }
        let mut decoded = 0u64;
        self.for_each_source(selection, |one, selection| {
            decoded = decoded.saturating_add(one.source.work_nbytes(selection)?);
            Ok(())
        })?;
        let selected = selection.len().unwrap_or(u64::MAX);
        Ok(decoded.max(selected.saturating_mul(self.element_size as u64)))
    }

    fn read_within(
        &self,
        selection: &Selection,
        fields: Option<&Fields>,
        out: &mut [u8],
        call: Call<'_>,
    ) -> Result<(), ReadError> {
        if fields.is_some() && self.converts() {
            return Err(ReadError::Fields);
        }
        let size = fields.map_or(self.element_size, |fields| fields.size) as u64;
        let selected = selection.len()?.checked_mul(size).ok_or(ReadError::Memory(None))?;
        if selected != out.len() as u64 {
            let destination = out.len() as u64;
            return Err(ReadError::Destination { selected, destination });
        }
        let Selection::Union { union, .. } = selection else {
            return self.read_wanted(&Wanted::of(selection), fields, size, out, call);
        };
        // Of a union each element takes memory, so that not too many are looked at at a time.
        let mut left = out;
        for wanted in Wanted::of_union(union, MOST_POINTS) {
            let nbytes =
                usize::try_from(wanted.len() * size).map_err(|_| ReadError::Memory(None))?;
            let (part, rest) = left.split_at_mut(nbytes.min(left.len()));
            self.read_wanted(&wanted, fields, size, part, call)?;
            left = rest;
        }
        Ok(())
    }

    /// Read what is wanted into `out`, which has room for as many elements of `size` bytes.
    fn read_wanted(
        &self,
        wanted: &Wanted,
        fields: Option<&Fields>,
        size: u64,
        out: &mut [u8],
        call: Call<'_>,
    ) -> Result<(), ReadError> {
        let (mut parts, mut rest) = held_at_once(&self.sources, wanted);
        let later = rest.iter().filter_map(|one| one.mapping.part(wanted));
        let covered = parts.iter().map(|one| one.part.len()).sum::<u64>()
            + later.map(|part| part.len()).sum::<u64>();
        if covered < wanted.len() {
            self.fill_all(fields, out);
        }
        loop {
            check_unchanged(&parts)?;
            let pieces = match parts.as_slice() {
                // The source's own read knows best.
                [one] if one.part.lands_whole_at().is_some() => parts,
                _ => parts.into_iter().flat_map(|one| pieces_of(one, size)).collect(),
            };
            read_pieces(&pieces, fields, size, out, call)?;
            if rest.is_empty() {
                return Ok(());
            }
            (parts, rest) = held_at_once(rest, wanted);
        }
    }

    /// What reading `selection` would do if nothing were cached.
    ///
    /// # Errors
    /// As [`Dataset::explain`].
    pub fn explain(&self, selection: &Selection) -> Result<Explanation, ReadError> {
        let selected = selection.len().unwrap_or(u64::MAX);
        let selected_nbytes = selected.saturating_mul(self.element_size as u64);
        let mut sum = Explanation {
            chunks: 0,
            missing_chunks: 0,
            filtered_chunks: 0,
            stored_nbytes: 0,
            decoded_nbytes: 0,
            selected_nbytes,
            blocks: None,
        };
        self.for_each_source(selection, |source, selection| {
            let one = source.source.explain(selection);
            let one = one.map_err(|error| named(source, error))?;
            sum.chunks += one.chunks;
            sum.missing_chunks += one.missing_chunks;
            sum.filtered_chunks += one.filtered_chunks;
            sum.stored_nbytes = sum.stored_nbytes.saturating_add(one.stored_nbytes);
            sum.decoded_nbytes = sum.decoded_nbytes.saturating_add(one.decoded_nbytes);
            if let Some((decoded, all)) = one.blocks {
                let (before, of) = sum.blocks.unwrap_or((0, 0));
                sum.blocks = Some((before + decoded, of + all));
            }
            Ok(())
        })?;
        Ok(sum)
    }

    /// Call `visit` with each source that has some of `selection`, and what that is there, in
    /// whatever order.
    fn for_each_source(
        &self,
        selection: &Selection,
        mut visit: impl FnMut(&MappedSource, &Selection) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        if let Selection::Union { union, .. } = selection
            && union.len() > MOST_LISTED
        {
            for one in &self.sources {
                if let Some(found) = one.mapping.source_of(union)? {
                    visit(one, &found)?;
                }
            }
            return Ok(());
        }
        let wanted = Wanted::of(selection);
        for one in &self.sources {
            if let Some(part) = one.mapping.part(&wanted) {
                visit(one, &part.selection()?)?;
            }
        }
        Ok(())
    }

    /// Fill the result, before what is mapped is read.
    fn fill_all(&self, fields: Option<&Fields>, out: &mut [u8]) {
        match (&self.fill, fields) {
            (None, _) => {}
            (Some(fill), None) => fill_run(out, fill),
            (Some(fill), Some(fields)) => fill_run(out, &fields.of_element(fill)),
        }
    }
}

/// What sources have of the elements wanted, one after another until that takes as much memory as it
/// may, and those that are left: of lists each source has numbers of its own.
fn held_at_once<'a>(
    sources: &'a [MappedSource],
    wanted: &Wanted,
) -> (Vec<Piece<'a>>, &'a [MappedSource]) {
    let (mut found, mut listed, mut rest) = (Vec::new(), 0, sources);
    while let [source, others @ ..] = rest
        && listed < MOST_POINTS
    {
        if let Some(part) = source.mapping.part(wanted) {
            listed += part.listed();
            found.push(Piece { source, part });
        }
        rest = others;
    }
    (found, rest)
}

/// Whether no two mappings are about the same element.
fn are_disjoint(sources: &[MappedSource], rank: usize) -> bool {
    let starts = |axis: usize| {
        let mut found: Vec<u64> = sources.iter().map(|one| start_of(one, axis)).collect();
        found.sort_unstable();
        found.dedup();
        found.len()
    };
    // Along the dimension in which they begin at most places, few have to be compared.
    let Some(axis) = (0..rank).max_by_key(|&axis| starts(axis)) else {
        return sources.len() < 2;
    };
    let mut sorted: Vec<&MappedSource> = sources.iter().collect();
    sorted.sort_by_key(|one| start_of(one, axis));
    let mut compared = 0;
    for (at, one) in sorted.iter().enumerate() {
        let slab = &one.mapping.wanted().axes()[axis];
        let last = slab.index_of(slab.len() - 1);
        for other in sorted[at + 1..].iter().take_while(|other| start_of(other, axis) <= last) {
            compared += 1;
            if compared > MOST_COMPARED || one.mapping.may_overlap(&other.mapping) {
                return false;
            }
        }
    }
    true
}

fn start_of(one: &MappedSource, axis: usize) -> u64 {
    one.mapping.wanted().axes()[axis].start()
}

fn named(source: &MappedSource, error: ReadError) -> ReadError {
    match error {
        // What the caller did, or what already has the name of a deeper one.
        ReadError::Cancelled
        | ReadError::Changed(_)
        | ReadError::Replaced(_)
        | ReadError::Source { .. } => error,
        error => ReadError::Source { name: source.name.clone(), error: Box::new(error) },
    }
}

/// Refuse to read files that are not what they were; each is looked at once.
fn check_unchanged(pieces: &[Piece<'_>]) -> Result<(), ReadError> {
    let mut seen = HashSet::new();
    for piece in pieces {
        // A virtual one looks when it is read.
        let AnyDataset::Stored(dataset) = &piece.source.source else { continue };
        let storage = dataset.storage();
        if seen.insert(Arc::as_ptr(storage).cast::<()>()) && !storage.is_unchanged() {
            return Err(ReadError::Replaced(piece.source.name.clone()));
        }
    }
    Ok(())
}

fn pieces_of(one: Piece<'_>, size: u64) -> Vec<Piece<'_>> {
    let source = one.source;
    let pieces = one.part.pieces(PIECE_NBYTES / size.max(1), &source.source.chunk());
    pieces.into_iter().map(|part| Piece { source, part }).collect()
}

/// Read pieces that do not overlap, on as many threads as are free.
fn read_pieces(
    pieces: &[Piece<'_>],
    fields: Option<&Fields>,
    size: u64,
    out: &mut [u8],
    call: Call<'_>,
) -> Result<(), ReadError> {
    let (selected, result) = (out.len() as u64, SharedResult::new(out));
    let work = Pieces::new(pieces.iter().map(|piece| {
        // SAFETY: each piece is given once, and no two have the same element: mappings are disjoint
        // (`VirtualDataset::new`), and so are the pieces of one.
        (piece.source, unsafe { PartView::new(&piece.part, result, size) })
    }));
    let helpers = match pieces.len() {
        0 | 1 => 0,
        // A small read of large chunks is worth helpers, too.
        count if selected >= PARALLEL_NBYTES || decodes_much(pieces) => {
            thread_count().min(count) - 1
        }
        _ => 0,
    };
    share(helpers, &|| work.each(|(source, view)| read_piece(source, view, fields, call)));
    work.outcome()
}

/// Whether there is enough to decode for several threads.
fn decodes_much(pieces: &[Piece<'_>]) -> bool {
    let mut sum = 0u64;
    pieces.iter().any(|piece| {
        let nbytes = piece.part.selection().map_err(ReadError::from);
        let nbytes = nbytes.and_then(|selection| piece.source.source.work_nbytes(&selection));
        sum = sum.saturating_add(nbytes.unwrap_or(0));
        sum >= PARALLEL_NBYTES
    })
}

fn read_piece(
    source: &MappedSource,
    mut view: PartView<'_>,
    fields: Option<&Fields>,
    call: Call<'_>,
) -> Result<(), ReadError> {
    if call.cancelled.load(Relaxed) {
        return Err(ReadError::Cancelled);
    }
    let fields = fields.or(source.fields.as_ref());
    let selection = view.part().selection()?;
    let read = |out: &mut [u8]| {
        let read = source.source.read_within(&selection, fields, out, call);
        read.map_err(|error| named(source, error))
    };
    let beyond = || ReadError::Memory(None);
    if view.part().lands_whole_at().is_some() {
        return read(view.whole().ok_or_else(beyond)?);
    }
    let nbytes = selection.len()?.checked_mul(view.size()).and_then(|n| usize::try_from(n).ok());
    let mut elements = Vec::new();
    resize(&mut elements, nbytes.ok_or_else(beyond)?)?;
    if fields.is_some() || source.source.leaves_missing_untouched() {
        // Bytes that nobody sets stay as they are.
        let kept = view.exchange(&mut elements, |ours, out| ours.copy_from_slice(out));
        kept.ok_or_else(beyond)?;
    }
    read(&mut elements)?;
    view.exchange(&mut elements, |ours, out| out.copy_from_slice(ours)).ok_or_else(beyond)
}
