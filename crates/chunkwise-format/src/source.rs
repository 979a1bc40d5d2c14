//! How are a file's structures read, without trusting a size or an address?
//!
//! Structures do not overlap, so that what one operation reads is bounded by the file's length.
//! Those that lead to the same place again and again are refused.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::bytes::Bytes;
use crate::checksum::checksum;
use crate::error::{FormatError, Problem};
use crate::fields::{Fields, Place, Widths};
use crate::filters::Filter;

/// Files of any length may have this many bytes read.
const LEAST_BUDGET: u64 = 2 << 20;
/// Times that a file's bytes may be read in one operation: some structures are read for each name.
const MOST_TIMES: u64 = 8;
/// What a read costs beside its bytes.
const READ_COST: u64 = 32;
/// Bytes with which every structure of a heap or a tree begins.
pub(crate) const HEAD_LEN: u64 = 8;
/// Bytes of a checksum.
const CHECKSUM_LEN: u64 = 4;

/// A file, by HDF5's addresses; for one operation.
pub(crate) struct Source<'a> {
    bytes: &'a dyn Bytes,
    base: u64,
    widths: Widths,
    /// Where the file ends, or says that it does: what is cut off may have been sound.
    stated_end: u64,
    left: Cell<u64>,
    /// Parts that were read, and found to be sound: by whose they are, and their addresses.
    kept: RefCell<HashMap<(u64, u64), Rc<Part<'a>>>>,
}

/// The bytes of one structure.
#[derive(Debug, Clone)]
pub(crate) struct Part<'a> {
    bytes: Cow<'a, [u8]>,
    place: Place,
    widths: Widths,
}

impl<'a> Source<'a> {
    pub(crate) fn new(bytes: &'a dyn Bytes, base: u64, widths: Widths) -> Self {
        let budget = bytes.nbytes().saturating_mul(MOST_TIMES).max(LEAST_BUDGET);
        let stated_end = bytes.nbytes().saturating_sub(base);
        let left = Cell::new(budget);
        Self { bytes, base, widths, stated_end, left, kept: RefCell::default() }
    }

    /// The same, of a file that says where it ends.
    pub(crate) fn stated(self, end: u64) -> Self {
        Self { stated_end: self.stated_end.max(end), ..self }
    }

    pub(crate) fn widths(&self) -> Widths {
        self.widths
    }

    /// Where the file ends, as HDF5 counts.
    pub(crate) fn end(&self) -> u64 {
        self.bytes.nbytes().saturating_sub(self.base)
    }

    /// Fails unless there are this many bytes.
    pub(crate) fn require(&self, place: Place, nbytes: u64) -> Result<(), FormatError> {
        before(self.end(), place, nbytes)
    }

    pub(crate) fn read(&self, place: Place, nbytes: u64) -> Result<Part<'a>, FormatError> {
        self.require(place, nbytes)?;
        let outside = || place.error(Problem::Outside { nbytes, end: self.end() });
        let at = self.base.checked_add(place.address).ok_or_else(outside)?;
        let len = usize::try_from(nbytes).map_err(|_| outside())?;
        let cost = nbytes.saturating_add(READ_COST);
        let Some(left) = self.left.get().checked_sub(cost) else {
            return Err(place.error(Problem::Overlaps));
        };
        self.left.set(left);
        let bytes = self.bytes.read(at, len).map_err(|why| place.error(Problem::Read(why)))?;
        if bytes.len() != len {
            return Err(place.error(Problem::Read("fewer bytes came than were wanted".into())));
        }
        Ok(Part { bytes, place, widths: self.widths })
    }

    /// Whether parts are better read together.
    pub(crate) fn is_far(&self) -> bool {
        self.bytes.is_far()
    }

    /// Parts of this many bytes at these addresses will be read.
    pub(crate) fn expect(&self, addresses: impl Iterator<Item = u64>, nbytes: u64) {
        let Some(len) = usize::try_from(nbytes).ok().filter(|_| self.is_far()) else { return };
        let (base, end) = (self.base, self.end());
        let inside = addresses.filter(|at| at.checked_add(nbytes).is_some_and(|to| to <= end));
        let parts: Vec<_> = inside.map(|at| (base.saturating_add(at), len)).collect();
        if parts.len() > 1 {
            self.bytes.expect(&parts);
        }
    }

    /// A structure takes this many bytes, of which not all are read.
    pub(crate) fn takes(&self, address: u64, nbytes: u64) {
        self.bytes.takes(self.base.saturating_add(address), nbytes);
    }

    /// This many bytes, or fewer where the file ends earlier.
    pub(crate) fn read_most(&self, place: Place, nbytes: u64) -> Result<Part<'a>, FormatError> {
        self.read(place, nbytes.min(self.end().saturating_sub(place.address)).max(1))
    }

    /// A node with room for `most` entries, of which there are `count`; `len_of` this many are its
    /// bytes.  All of them, where the file has them.
    pub(crate) fn read_node(
        &self,
        place: Place,
        (count, most): (u64, u64),
        len_of: impl Fn(u64) -> u64,
    ) -> Result<Part<'a>, FormatError> {
        if count > most {
            return Err(place.wrong("it has more entries than fit a node"));
        }
        let room = len_of(most).min(self.end().saturating_sub(place.address));
        self.read(place, len_of(count).max(room))
    }

    /// Fails if a node's room goes on beyond the end: libhdf5 reads all of it.
    pub(crate) fn require_room(&self, place: Place, nbytes: u64) -> Result<(), FormatError> {
        before(self.stated_end, place, nbytes)
    }

    /// A structure that has this signature and ends with a checksum, which is taken off.
    pub(crate) fn sealed(
        &self,
        place: Place,
        nbytes: u64,
        signature: &[u8; 4],
    ) -> Result<Part<'a>, FormatError> {
        let part = self.read(place, nbytes)?;
        if !part.bytes.starts_with(signature) {
            return Err(place.error(Problem::Signature));
        }
        part.unsealed()
    }

    /// A part that went through filters before it was stored; it has `nbytes` bytes.
    pub(crate) fn unfiltered(
        &self,
        part: &Part<'a>,
        filters: &[Filter],
        mask: u32,
        nbytes: u64,
    ) -> Result<Part<'a>, FormatError> {
        let place = part.place;
        self.charge(place, nbytes)?;
        let len = usize::try_from(nbytes).ok();
        let bytes = len.and_then(|len| self.bytes.unfilter(filters, mask, &part.bytes, len));
        match bytes {
            Some(bytes) if Some(bytes.len()) == len => {
                Ok(Part { bytes: Cow::Owned(bytes), ..*part })
            }
            Some(_) => Err(place.wrong("its filters give another length")),
            None => Err(place.error(Problem::Unsupported("filters"))),
        }
    }

    /// A part of a structure that was read before, or is read now.
    pub(crate) fn kept(
        &self,
        of: u64,
        address: u64,
        read: impl FnOnce() -> Result<Part<'a>, FormatError>,
    ) -> Result<Rc<Part<'a>>, FormatError> {
        if let Some(part) = self.kept.borrow().get(&(of, address)) {
            return Ok(Rc::clone(part));
        }
        let part = Rc::new(read()?);
        self.kept.borrow_mut().insert((of, address), Rc::clone(&part));
        Ok(part)
    }

    /// Fails where there are more of something than the file has bytes: each takes its own.
    pub(crate) fn count(&self, place: Place, count: u64) -> Result<(), FormatError> {
        if count > self.end() { Err(place.error(Problem::Overlaps)) } else { Ok(()) }
    }

    /// What was read counts, and what is made of it: fails where that is too much.
    pub(crate) fn charge(&self, place: Place, nbytes: u64) -> Result<(), FormatError> {
        match self.left.get().checked_sub(nbytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(place.error(Problem::Overlaps)),
        }
    }
}

impl<'a> Part<'a> {
    pub(crate) fn new(bytes: Cow<'a, [u8]>, place: Place, widths: Widths) -> Self {
        Self { bytes, place, widths }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(crate) fn fields(&self) -> Fields<'_> {
        Fields::new(&self.bytes, self.place, self.widths)
    }

    /// Check the checksum at the end, and take it off.
    pub(crate) fn unsealed(self) -> Result<Self, FormatError> {
        let Some((content, sum)) = self.bytes.split_last_chunk::<{ CHECKSUM_LEN as usize }>()
        else {
            return Err(self.place.error(Problem::CutOff));
        };
        let (stored, computed) = (u32::from_le_bytes(*sum), checksum(content));
        if stored != computed {
            return Err(self.place.error(Problem::Checksum { stored, computed }));
        }
        let len = content.len() as u64;
        self.slice(0, len, self.place)
    }

    /// Some of its bytes, which are a structure themselves.
    pub(crate) fn slice(&self, begin: u64, len: u64, place: Place) -> Result<Self, FormatError> {
        let bytes = match &self.bytes {
            Cow::Borrowed(bytes) => cut(bytes, begin, len).map(Cow::Borrowed),
            Cow::Owned(bytes) => cut(bytes, begin, len).map(|cut| Cow::Owned(cut.to_vec())),
        };
        let bytes = bytes.ok_or_else(|| self.place.error(Problem::CutOff))?;
        Ok(Self { bytes, place, widths: self.widths })
    }
}

/// Fails unless there are this many bytes before `end`.
fn before(end: u64, place: Place, nbytes: u64) -> Result<(), FormatError> {
    match place.address.checked_add(nbytes) {
        Some(behind) if behind <= end => Ok(()),
        _ => Err(place.error(Problem::Outside { nbytes, end })),
    }
}

/// Some bytes of others.
fn cut(bytes: &[u8], begin: u64, len: u64) -> Option<&[u8]> {
    let begin = usize::try_from(begin).ok()?;
    bytes.get(begin..begin.checked_add(usize::try_from(len).ok()?)?)
}
