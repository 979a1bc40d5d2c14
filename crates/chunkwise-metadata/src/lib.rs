//! What does a file say of its objects, read by its storage: without libhdf5 and its lock?
//!
//! `chunkwise-format` makes records of bytes; here the bytes come from a file, datasets become
//! those of the engine, and all objects of a file are listed.

mod account;
mod cached_bytes;
mod damage;
mod index;
mod listing;
mod listings;
mod mapped;
mod metadata;
mod narrowed;
mod on_demand;
mod opens;
pub mod readable;
mod types;
mod values;
mod visit;

pub use account::{Account, Reads};
pub use index::{MOST_LISTED, StoredIndex, StoredKind, Unread, Wanted, end_of_data};
pub use listing::{Entry, Facts, Found, Shown, StoredFacts};
pub use listings::{Listed, Listings};
pub use mapped::{Absent, Mapped};
pub use metadata::Metadata;
pub use on_demand::{Checked, Followed};
pub use opens::Opens;
pub use types::{trimmed, type_of};
pub use values::Values;
pub use visit::Visit;
