//! What does a plan come to?

/// A plan in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Chunks touched, written or not.
    pub chunks: u64,
    /// Elements selected.
    pub selected_elements: u64,
    /// Elements in all chunks touched: what is decoded if nothing is cached.
    pub decoded_elements: u64,
}
