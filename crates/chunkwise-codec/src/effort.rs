//! How hard is an encoder to try?

/// What is asked of encoders that have a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// Files no larger than those of zlib at the level stated, or hardly so.
    #[default]
    AsStated,
    /// The fastest encoder, even if chunks become larger; the caller reports by how much.
    Fast,
}
