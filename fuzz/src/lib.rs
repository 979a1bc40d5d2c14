//! What do hostile bytes and numbers do to the decoders, chunk indexes and the plan?
//!
//! Each [`Target`] is a function of any bytes at all: it makes of them what it tests, and
//! panics where something does not hold that must.  The short run (`tests/short.rs`, part
//! of `cargo test`) calls the targets with the corpus and what random changes make of it;
//! the long one (`make fuzz`) lets libFuzzer search.

mod chunks;
mod decode;
mod format;
mod listing;
mod memory;
mod numbers;
mod plan;
mod product;
mod stored;
mod together;

use chunkwise_codec::FilterKind;

pub use decode::decoded;

/// Something that is fed with hostile input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// One filter's decoder, with any options.
    Filter(FilterKind),
    /// Several filters, and filter masks.
    Pipeline,
    /// A dataset whose chunk index is made up, and reads of it.
    Chunks,
    /// A file whose chunk index is read.
    Stored,
    /// A file whose metadata is read.
    Format,
    /// Streams that are inflated together.
    Together,
    /// A file whose objects are listed.
    Listing,
    /// Grids and selections of any numbers, and their plans.
    Plan,
}

impl Target {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let filters = FilterKind::ALL.into_iter().map(Self::Filter);
        let others = [
            Self::Pipeline,
            Self::Chunks,
            Self::Stored,
            Self::Format,
            Self::Listing,
            Self::Together,
            Self::Plan,
        ];
        filters.chain(others)
    }

    /// Its name, which is also its folder's in the corpus.
    pub fn name(self) -> &'static str {
        match self {
            Self::Filter(kind) => kind.name(),
            Self::Pipeline => "pipeline",
            Self::Chunks => "chunks",
            Self::Stored => "stored",
            Self::Format => "format",
            Self::Together => "together",
            Self::Listing => "listing",
            Self::Plan => "plan",
        }
    }

    /// Feed it.
    ///
    /// # Panics
    /// When something does not hold: that is what is looked for.
    pub fn run(self, input: &[u8]) {
        match self {
            Self::Filter(kind) => decode::check(Some(kind), input),
            Self::Pipeline => decode::check(None, input),
            Self::Chunks => chunks::check(input),
            Self::Stored => stored::check(input),
            Self::Format => format::check(input),
            Self::Together => together::check(input),
            Self::Listing => listing::check(input),
            Self::Plan => plan::check(input),
        }
    }
}
