//! What is wrong with a frame that is not decoded?

use crate::DecodeError;

/// What the filter's bytes do not say as they should.
pub(crate) const DAMAGED: DecodeError = DecodeError::Damaged { filter: "blosc2" };

/// What only libhdf5's filter can decode.
pub(crate) const fn unsupported(what: &'static str) -> DecodeError {
    DecodeError::Unsupported { filter: "blosc2", what }
}
