//! Why is a call left to libhdf5?

use std::borrow::Cow;

use chunkwise_libhdf5::Unsuited;

use crate::spaces::Reason;

/// Why a call is passed on.
pub struct Why(pub Cow<'static, str>);

impl From<Reason> for Why {
    fn from(reason: Reason) -> Self {
        Self(reason.into())
    }
}

impl From<String> for Why {
    fn from(reason: String) -> Self {
        Self(reason.into())
    }
}

impl From<Unsuited> for Why {
    fn from(unsuited: Unsuited) -> Self {
        match unsuited {
            Unsuited::Reason(reason) => reason.into(),
            Unsuited::Failed(error) => error.to_string().into(),
        }
    }
}

/// The same of a dataset, in words.
pub fn reason_of(unsuited: Unsuited) -> String {
    Why::from(unsuited).0.into_owned()
}
