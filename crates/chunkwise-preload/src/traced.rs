//! What is reported of the calls for one dataset?

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use chunkwise_libhdf5::TallySlot;
use chunkwise_select::{Dims, Hyperslab};

use crate::chosen::Chosen;
use crate::walked::{Span, Walked};

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
}

/// Calls of one kind.
#[derive(Default)]
pub struct Tally {
    ours: AtomicU64,
    ours_nbytes: AtomicU64,
    theirs: AtomicU64,
    /// The first reason for a call that was passed on.
    reason: OnceLock<String>,
}

impl Tally {
    /// A call that the engine has carried out, with this many bytes.
    pub fn ours(&self, nbytes: u64) {
        self.ours.fetch_add(1, Ordering::Relaxed);
        self.ours_nbytes.fetch_add(nbytes, Ordering::Relaxed);
    }

    /// Calls and bytes by the engine, and calls that were passed on.
    pub fn counts(&self) -> (u64, u64, u64) {
        let [ours, nbytes, theirs] = [&self.ours, &self.ours_nbytes, &self.theirs]
            .map(|count| count.load(Ordering::Relaxed));
        (ours, nbytes, theirs)
    }

    /// Calls by the engine, and the first reason for one that was passed on.
    pub fn by_whom(&self) -> (u64, String) {
        let reason = self.reason.get().cloned().unwrap_or_default();
        (self.ours.load(Ordering::Relaxed), reason)
    }

    /// A call that was passed on, for a reason of which the first is kept.
    pub fn theirs(&self, reason: &str) {
        self.theirs.fetch_add(1, Ordering::Relaxed);
        self.reason.get_or_init(|| reason.to_string());
    }
}

/// What a trace has to know of a chunked dataset: the shape of its chunks, and where its filters are
/// counted.
#[derive(PartialEq, Eq)]
pub struct TracedStorage {
    pub chunk: Dims,
    pub filters: Vec<TallySlot>,
    /// Slots and bytes of the program's chunk cache.
    pub cache: (u64, u64),
}

/// What a trace says of a dataset besides its calls.
pub struct Described {
    /// Which of the datasets that are counted it is.
    pub number: usize,
    pub item_nbytes: u64,
    pub storage: Option<TracedStorage>,
}

/// A call, as its thread notes it.
pub struct Noted {
    pub dataset: &'static Described,
    pub operation: Operation,
    /// Extents of the dataset.
    pub shape: Dims,
    /// What of it.
    pub chosen: Chosen,
    pub nbytes: u64,
    pub span: Span,
    /// What was decoded, where libhdf5 did it.
    pub decodes: Option<Decodes>,
}

/// This many filters of a dataset are reported.
const MOST_FILTERS: usize = 6;

/// By filter: how often it has decoded, and for how many nanoseconds; None where that is nothing.
pub type Decodes = Option<Box<Counts>>;
/// The same.
pub type Counts = [(u64, u64); MOST_FILTERS];

/// What was read of one dataset, or written.
#[derive(Debug, Default)]
pub struct Traced {
    shape: Vec<u64>,
    item_nbytes: u64,
    calls: u64,
    nbytes: u64,
    seconds: f64,
    walked: Walked,
    /// The shape of its chunks; empty without chunks.
    chunk: Vec<u64>,
    /// Slots and bytes of the program's chunk cache; 0 without chunks.
    cache: (u64, u64),
    /// Chunks of the dataset.
    chunks: u64,
    /// Of calls of libhdf5: chunks that they touched, and that it loaded.
    touched: u64,
    loaded: u64,
    /// By filter: its name, how often it decoded, and for how many nanoseconds.
    filters: Vec<(String, u64, u64)>,
}

impl Traced {
    /// Whether there was any call.
    pub fn is_empty(&self) -> bool {
        self.calls == 0
    }

    /// Add a call.
    pub fn add(&mut self, noted: &Noted) {
        let Noted { dataset, shape, span, .. } = noted;
        let slab = noted.chosen.slab();
        if self.shape != **shape {
            self.shape = shape.to_vec();
        }
        if self.calls == 0 {
            self.item_nbytes = dataset.item_nbytes;
            self.chunk = dataset.storage.as_ref().map_or_else(Vec::new, |it| it.chunk.to_vec());
            self.cache = dataset.storage.as_ref().map_or((0, 0), |it| it.cache);
        }
        self.calls += 1;
        self.nbytes = self.nbytes.saturating_add(noted.nbytes);
        self.seconds += span.within;
        self.walked.note(shape, slab.as_ref(), *span);
        if let (Some(storage), Some(decodes)) = (&dataset.storage, &noted.decodes) {
            self.add_chunks(storage, slab.as_ref(), decodes);
        }
    }

    /// Add what libhdf5 did with chunks.
    fn add_chunks(&mut self, storage: &TracedStorage, slab: Option<&Hyperslab>, decodes: &Decodes) {
        if self.filters.is_empty() {
            let across = |(&size, &chunk): (&u64, &u64)| size.div_ceil(chunk.max(1));
            self.chunks =
                self.shape.iter().zip(&storage.chunk).map(across).fold(1, u64::saturating_mul);
            let filters = storage.filters.iter().take(MOST_FILTERS);
            self.filters = filters.map(|filter| (filter.name.clone(), 0, 0)).collect();
        }
        // A chunk that is loaded is decoded once by each filter that was not left out for it.
        let counts = decodes.as_ref().map_or(&[] as &[_], |counts| &**counts);
        let loaded = counts.iter().map(|decoded| decoded.0).max().unwrap_or(0);
        self.loaded += loaded;
        self.touched += slab.map_or(loaded, |slab| touched(slab, &storage.chunk)).max(loaded);
        for (filter, decoded) in self.filters.iter_mut().zip(counts) {
            filter.1 += decoded.0;
            filter.2 += decoded.1;
        }
    }

    /// As JSON, with what is counted besides.
    pub fn json(&self, tally: &Tally) -> String {
        let (ours, reason) = tally.by_whom();
        format!(
            "\"shape\": {:?}, \"item_nbytes\": {}, \"calls\": {}, \"nbytes\": {}, \
             \"seconds\": {:e}, \"by_chunkwise\": {ours}, \"reason\": {}, \"chunk\": {:?}, \
             \"cache_nslots\": {}, \"cache_nbytes\": {}, \"chunks\": {}, \
             \"touched\": {}, \"loaded\": {}, \"filters\": [{}], {}",
            self.shape,
            self.item_nbytes,
            self.calls,
            self.nbytes,
            self.seconds,
            quoted(&reason),
            self.chunk,
            self.cache.0,
            self.cache.1,
            self.chunks,
            self.touched,
            self.loaded,
            filters(&self.filters),
            self.walked.json(),
        )
    }
}

/// Chunks that a box touches; of one with gaps between its blocks, no fewer.
pub fn touched(slab: &Hyperslab, chunk: &[u64]) -> u64 {
    let along = slab.axes().iter().zip(chunk).map(|(axis, &chunk)| {
        let chunk = chunk.max(1);
        let Some(last) = axis.len().checked_sub(1) else { return 0 };
        let end = if axis.is_contiguous() { axis.start() + last } else { axis.index_of(last) };
        let spanned = end / chunk - axis.start() / chunk + 1;
        spanned.min(axis.count().saturating_mul(axis.block().div_ceil(chunk) + 1))
    });
    along.fold(1, u64::saturating_mul)
}

fn filters(filters: &[(String, u64, u64)]) -> String {
    let one = |(name, decodes, nanoseconds): &(String, u64, u64)| {
        let seconds = *nanoseconds as f64 / 1e9;
        let name = quoted(name);
        format!("{{\"name\": {name}, \"decodes\": {decodes}, \"seconds\": {seconds:e}}}")
    };
    filters.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A string as JSON has it.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_escaped() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
    }
}
