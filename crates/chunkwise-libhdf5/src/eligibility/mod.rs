//! Which datasets does the engine read and write itself, and why are the others libhdf5's?
//!
//! The rule is what [`describe`] and [`describe_for_writing`] ask, in this order; the first no is
//! the reason ([`Unsuited::Reason`](crate::Unsuited::Reason)), which `Dataset.explain()` shows.
//!
//! | asked of | the engine does it | looked at in |
//! | --- | --- | --- |
//! | file | reading: open for reading alone, by the sec2 driver, and to follow a writer (SWMR) only by who asks for that; writing: open for writing | `file` |
//! | type | in memory as in the file; nothing of variable length, no references | `element_type` |
//! | layout | reading: contiguous, in files that can be opened, or chunked; writing: chunked | `readable`, `writing` |
//! | filters | all of them decoded here, and for writing encoded here | `readable`, `writing` |
//! | chunk index | sound, and listed under right coordinates; not too long to be listed | `index`, `chunks`; where chunks are looked up one by one, as they are read |
//! | bytes | within the end of the file's data | `on_demand`, in `chunkwise-metadata` |
//! | fill value | defined, or something was written | `readable` |
//!
//! What follows from a dataset's facts is in `readable`, in `chunkwise-metadata`, whoever has found
//! them: libhdf5, or the file's own bytes.
//!
//! What is only known in Python, such as that a dataset is too small to be worth it, is in
//! `routing/eligibility.py`; what a virtual dataset leads to, in `routing/elsewhere.py`, and for
//! programs that are run, in `chunkwise-metadata`.

mod element_type;
mod examining;
mod reading;
mod writing;

pub use examining::{Examinable, examinable};
pub use reading::{
    DescribeOptions, Described, ExternalFile, Saved, describe, describe_as, describe_as_stored,
    describe_listed,
};
pub use writing::{describe_for_writing, encoding_of, look_again};
