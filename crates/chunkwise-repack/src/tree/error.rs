//! What can go wrong when a tree is copied, and whose fault is it?

use thiserror::Error;

use chunkwise_libhdf5::BindError;

/// Why a file's tree was not copied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TreeError {
    /// This libhdf5 cannot copy at all.
    #[error("{0}")]
    Library(BindError),
    /// Something that cannot be kept, found before anything was written.
    #[error("{object}: {reason}")]
    Refused {
        /// Its path.
        object: String,
        /// What it is.
        reason: String,
    },
    /// The source cannot be read.
    #[error("{object}: {what} cannot be read: {message}")]
    Read {
        /// Its path.
        object: String,
        /// Which part of it.
        what: String,
        /// What libhdf5 said.
        message: String,
    },
    /// The target cannot be written.
    #[error("{object}: {what} cannot be written: {message}")]
    Write {
        /// Its path.
        object: String,
        /// Which part of it.
        what: String,
        /// What libhdf5 said.
        message: String,
    },
    /// There is not so much memory.
    #[error("{object}: {what} takes {nbytes} bytes, for which there is no memory")]
    Memory {
        /// Its path.
        object: String,
        /// Which part of it.
        what: String,
        /// How much was wanted.
        nbytes: u64,
    },
    /// The follower of the progress wants no more.
    #[error("it was stopped")]
    Stopped,
}

impl TreeError {
    /// What failed, for who knows the object.
    pub(super) fn into_fault(self) -> Fault {
        match self {
            Self::Refused { reason, .. } => Fault::reading(reason),
            Self::Read { what, message, .. } | Self::Write { what, message, .. } => {
                let fault = Fault::reading(message);
                if what == "it" { fault } else { fault.of(|| what) }
            }
            Self::Memory { nbytes, .. } => Fault::memory(nbytes),
            other => Fault::reading(other.to_string()),
        }
    }
}

/// What failed, before it is known of which object.
#[derive(Debug)]
pub(super) struct Fault {
    side: Side,
    /// Which part of the object; empty for the object itself.
    part: String,
    message: String,
}

#[derive(Debug)]
enum Side {
    Read,
    Write,
    Memory(u64),
}

impl From<BindError> for Fault {
    /// Most calls ask the source something.
    fn from(error: BindError) -> Self {
        Self { side: Side::Read, part: String::new(), message: error.to_string() }
    }
}

impl Fault {
    pub(super) fn reading(message: impl Into<String>) -> Self {
        Self { side: Side::Read, part: String::new(), message: message.into() }
    }

    pub(super) fn memory(nbytes: u64) -> Self {
        Self { side: Side::Memory(nbytes), part: String::new(), message: String::new() }
    }

    /// Say more about why.
    pub(super) fn because(mut self, reason: &str) -> Self {
        self.message = format!("{}; {reason}", self.message);
        self
    }

    /// It is about a part of the object, in words that follow the object's name.
    pub(super) fn of(mut self, part: impl FnOnce() -> String) -> Self {
        if self.part.is_empty() {
            self.part = part();
        }
        self
    }

    /// Whether the source cannot be read.
    pub(super) fn is_reading(&self) -> bool {
        matches!(self.side, Side::Read)
    }

    /// Whether a filter refused its bytes: of a chunk, nothing can be read then.
    pub(super) fn is_of_filter(&self) -> bool {
        self.message.contains("filter") || self.message.contains("pipeline")
    }

    /// What went wrong.
    pub(super) fn message(&self) -> String {
        match self.side {
            Side::Memory(nbytes) => {
                format!("it takes {nbytes} bytes, for which there is no memory")
            }
            _ => self.message.clone(),
        }
    }

    /// What went wrong with which part.
    pub(super) fn in_words(&self) -> String {
        let message = self.message();
        if self.part.is_empty() { message } else { format!("{}: {message}", self.part) }
    }

    /// It is about this object.
    pub(super) fn at(self, object: String) -> TreeError {
        let what = if self.part.is_empty() { "it".to_string() } else { self.part };
        let message = self.message;
        match self.side {
            Side::Read => TreeError::Read { object, what, message },
            Side::Write => TreeError::Write { object, what, message },
            Side::Memory(nbytes) => TreeError::Memory { object, what, nbytes },
        }
    }
}

/// A call that writes the target.
pub(super) trait Writing<T> {
    /// What failed is writing.
    fn writing(self) -> Result<T, Fault>;
}

impl<T> Writing<T> for Result<T, BindError> {
    fn writing(self) -> Result<T, Fault> {
        self.map_err(|error| Fault { side: Side::Write, ..Fault::from(error) })
    }
}

/// Zeroed memory whose size a file names.
pub(super) fn buffer(nbytes: u64) -> Result<Vec<u8>, Fault> {
    let mut made = Vec::new();
    let size = usize::try_from(nbytes).map_err(|_| Fault::memory(nbytes))?;
    made.try_reserve_exact(size).map_err(|_| Fault::memory(nbytes))?;
    made.resize(size, 0);
    Ok(made)
}
