//! Where does a file begin, how wide are its numbers, and where is its root group?
//!
//! The superblock is at position 0, or behind a user block of 512, 1024, 2048, ... bytes.  Addresses
//! count from where it is found, whatever it says itself: so does libhdf5, and a user block may
//! have been put before a file, or taken away (format specification, II.A).

use crate::bytes::Bytes;
use crate::checksum::checksum;
use crate::error::{FormatError, Problem, Structure};
use crate::fields::{Fields, Place, Widths};
use crate::source::Source;

const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// More than any superblock takes.
const MOST_NBYTES: u64 = 256;
const PLACE: Place = Place { structure: Structure::Superblock, address: 0 };
/// An address that there is not.
const UNDEFINED: u64 = u64::MAX;

/// What a file says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// 0 to 3.
    pub version: u8,
    /// Bytes before it: the user block's.  Addresses count from here.
    pub base: u64,
    /// Bytes of an address.
    pub offset_nbytes: u8,
    /// Bytes of a length.
    pub length_nbytes: u8,
    /// Where it says itself that it is; None where it says nothing.
    pub stated_base: Option<u64>,
    /// Where the file's data ends, counted from the base.
    pub end: u64,
    /// Where the root group's object header is.
    pub root: u64,
    /// Where the header of its extension is.
    pub extension: Option<u64>,
    /// Where the block of a driver is that keeps one file as several.
    pub driver: Option<u64>,
    /// Whether a program has it open for writing, or did not close it.  Only version 3 says so: in
    /// version 2 the byte is there, without a meaning.
    pub open_for_writing: bool,
    /// Whether readers may follow that program (SWMR).
    pub open_for_swmr: bool,
    /// Half of the most children of a node: of the B-trees of groups, and of chunks.
    pub group_k: u16,
    /// See `group_k`.
    pub chunk_k: u16,
    /// Half of the most symbols in a symbol table node.
    pub leaf_k: u16,
}

impl Superblock {
    pub(crate) fn widths(&self) -> Widths {
        Widths { offset: self.offset_nbytes, length: self.length_nbytes }
    }

    /// Where the signature of HDF5 stands: how long the user block is.
    ///
    /// # Errors
    /// The bytes cannot be read.
    pub fn base(bytes: &dyn Bytes) -> Result<Option<u64>, FormatError> {
        let mut base = 0;
        while base < bytes.nbytes() {
            let source = Source::new(bytes, base, Widths { offset: 8, length: 8 });
            if source.end() >= 8 && source.read(PLACE, 8)?.bytes() == SIGNATURE {
                return Ok(Some(base));
            }
            base = if base == 0 { 512 } else { base.saturating_mul(2) };
        }
        Ok(None)
    }

    /// What the superblock behind this many bytes states, and whether that can be trusted: its
    /// checksum is right, and there is a root group.
    ///
    /// # Errors
    /// It is of no known version, its numbers have no known widths, or it is cut off.
    pub fn stated(
        bytes: &dyn Bytes,
        base: u64,
    ) -> Result<(Self, Result<(), FormatError>), FormatError> {
        let source = Source::new(bytes, base, Widths { offset: 8, length: 8 });
        let part = source.read_most(PLACE, MOST_NBYTES)?;
        let mut fields = part.fields();
        fields.skip(SIGNATURE.len() as u64)?;
        let (found, sealed) = match fields.u8()? {
            version @ (0 | 1) => (Self::old(version, fields, base)?, Ok(())),
            version @ (2 | 3) => {
                let found = Self::new(version, fields, base)?;
                let whole = source.read(PLACE, found.widths().nbytes(16, 4, 0))?;
                (found, whole.unsealed().map(drop))
            }
            version => return Err(PLACE.error(Problem::Version(version))),
        };
        let rooted = match found.root {
            UNDEFINED => Err(PLACE.wrong("an address is undefined")),
            _ => Ok(()),
        };
        Ok((found, sealed.and(rooted)))
    }

    /// Find and read one that can be trusted.
    pub(crate) fn find(bytes: &dyn Bytes) -> Result<Self, FormatError> {
        let base = Self::base(bytes)?.ok_or_else(|| PLACE.error(Problem::Signature))?;
        let (found, sound) = Self::stated(bytes, base)?;
        sound.map(|()| found)
    }

    /// Its bytes as a proper close of a file of this many bytes leaves them; None before version 3.
    pub fn closed(&self, nbytes: u64) -> Option<Vec<u8>> {
        if self.version < 3 {
            return None;
        }
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([self.version, self.offset_nbytes, self.length_nbytes, 0]);
        let end = self.end.max(nbytes.saturating_sub(self.base));
        let end = end.saturating_add(self.stated_base.unwrap_or(0));
        for address in [
            self.stated_base.unwrap_or(UNDEFINED),
            self.extension.unwrap_or(UNDEFINED),
            end,
            self.root,
        ] {
            bytes.extend(address.to_le_bytes().iter().take(self.offset_nbytes.into()));
        }
        bytes.extend(checksum(&bytes).to_le_bytes());
        Some(bytes)
    }

    fn old(version: u8, mut fields: Fields<'_>, base: u64) -> Result<Self, FormatError> {
        // Versions of free space, the root group and, behind a reserved byte, shared headers.
        fields.skip(4)?;
        let widths = widths(&mut fields)?;
        fields.skip(1)?;
        let (leaf_k, group_k) = (fields.u16()?, fields.u16()?);
        fields.skip(4)?;
        let mut chunk_k = 32;
        if version == 1 {
            chunk_k = fields.u16()?;
            fields.skip(2)?;
        }
        let mut fields = Fields::new(fields.rest(), fields.place(), widths);
        let said = fields.address()?;
        fields.address()?;
        let end = behind(fields.address()?, said);
        let driver = fields.address()?;
        // The root group's entry: a name, and where its header is.
        fields.length()?;
        let root = fields.address()?.unwrap_or(UNDEFINED);
        // What else the entry says of the group is for those who trust it.
        fields.skip(24)?;
        Ok(Self {
            version,
            base,
            offset_nbytes: widths.offset,
            length_nbytes: widths.length,
            stated_base: said,
            end,
            root,
            extension: None,
            driver,
            open_for_writing: false,
            open_for_swmr: false,
            group_k,
            chunk_k,
            leaf_k,
        })
    }

    fn new(version: u8, mut fields: Fields<'_>, base: u64) -> Result<Self, FormatError> {
        let widths = widths(&mut fields)?;
        let flags = fields.u8()?;
        let mut fields = Fields::new(fields.rest(), fields.place(), widths);
        let said = fields.address()?;
        let extension = fields.address()?;
        let end = behind(fields.address()?, said);
        let root = fields.address()?.unwrap_or(UNDEFINED);
        let has_flags = version > 2;
        Ok(Self {
            version,
            base,
            offset_nbytes: widths.offset,
            length_nbytes: widths.length,
            stated_base: said,
            end,
            root,
            extension,
            driver: None,
            open_for_writing: has_flags && flags & 1 != 0,
            open_for_swmr: has_flags && flags & 4 != 0,
            group_k: 16,
            chunk_k: 32,
            leaf_k: 4,
        })
    }
}

/// The end of the data, counted from where the file begins.
fn behind(end: Option<u64>, said: Option<u64>) -> u64 {
    end.unwrap_or(u64::MAX).saturating_sub(said.unwrap_or(0))
}

fn widths(fields: &mut Fields<'_>) -> Result<Widths, FormatError> {
    let widths = Widths { offset: fields.u8()?, length: fields.u8()? };
    for (what, width) in
        [("a width of addresses of", widths.offset), ("a width of lengths of", widths.length)]
    {
        if !matches!(width, 2 | 4 | 8) {
            return Err(fields.unknown(what, width));
        }
    }
    Ok(widths)
}

#[cfg(test)]
mod tests {
    use super::Superblock;
    use crate::checksum::checksum;
    use crate::error::Problem;

    fn new(base: u64) -> Vec<u8> {
        let mut bytes = b"\x89HDF\r\n\x1a\n\x03\x08\x08\x01".to_vec();
        for number in [base, u64::MAX, 1000, 48] {
            bytes.extend(number.to_le_bytes());
        }
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    #[test]
    fn it_is_found_behind_a_user_block_whatever_it_says_of_that() {
        for before in [0, 512, 1024, 4096] {
            let mut bytes = vec![7; before];
            bytes.extend(new(512));
            let found = Superblock::find(&bytes).unwrap();
            assert_eq!((found.base, found.root, found.end), (before as u64, 48, 488));
            assert!(found.open_for_writing && found.extension.is_none());
        }
        let mut bytes = vec![7; 100];
        bytes.extend(new(0));
        assert_eq!(Superblock::find(&bytes).unwrap_err().problem, Problem::Signature);
    }

    #[test]
    fn a_changed_one_is_refused() {
        let mut bytes = new(0);
        bytes[20] ^= 1;
        let problem = Superblock::find(&bytes).unwrap_err().problem;
        assert!(matches!(problem, Problem::Checksum { .. }));
        bytes[8] = 9;
        assert_eq!(Superblock::find(&bytes).unwrap_err().problem, Problem::Version(9));
        assert!(Superblock::find(&bytes[..9].to_vec()).is_err());
    }

    #[test]
    fn what_a_damaged_one_states_is_told() {
        let mut bytes = new(0);
        bytes[20] ^= 1;
        let (found, sound) = Superblock::stated(&bytes, 0).unwrap();
        assert_eq!((found.version, found.end), (3, 1000));
        assert!(sound.is_err());
    }

    #[test]
    fn a_closed_one_has_no_marks_and_ends_where_the_file_does() {
        let mut bytes = vec![7; 512];
        bytes.extend(new(512));
        bytes.resize(3000, 0);
        let found = Superblock::find(&bytes).unwrap();
        let closed = found.closed(3000).unwrap();
        bytes[512..560].copy_from_slice(&closed);
        let closed = Superblock::find(&bytes).unwrap();
        assert_eq!((closed.base, closed.end, closed.stated_base), (512, 2488, Some(512)));
        assert_eq!(Superblock { open_for_writing: false, end: 2488, ..found }, closed);
        let older = Superblock { version: 2, ..closed };
        assert_eq!(older.closed(0), None);
    }

    #[test]
    fn in_version_2_the_byte_of_marks_has_no_meaning() {
        let mut bytes = new(0);
        bytes[8] = 2;
        let (found, _) = Superblock::stated(&bytes, 0).unwrap();
        assert!(!found.open_for_writing && !found.open_for_swmr);
    }

    #[test]
    fn the_old_one_has_the_root_groups_entry() {
        let mut bytes = b"\x89HDF\r\n\x1a\n\x01\0\0\0\0\x04\x08\0".to_vec();
        bytes.extend([4, 0, 16, 0, 0, 0, 0, 0, 32, 0, 0, 0]);
        // The name of the root group, as wide as a length, and its header.
        for number in [0, u32::MAX, 900, u32::MAX, 0, 0, 96] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend([0; 24]);
        let found = Superblock::find(&bytes).unwrap();
        assert_eq!((found.root, found.end, found.offset_nbytes), (96, 900, 4));
        assert_eq!((found.leaf_k, found.group_k, found.chunk_k), (4, 16, 32));
    }
}
