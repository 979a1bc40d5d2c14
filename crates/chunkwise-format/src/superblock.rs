//! Where does a file begin, how wide are its numbers, and where is its root group?
//!
//! The superblock is at position 0, or behind a user block of 512, 1024, 2048, ... bytes.  Addresses
//! count from where it is found, whatever it says itself: so does libhdf5, and a user block may
//! have been put before a file, or taken away (format specification, II.A).

use crate::bytes::Bytes;
use crate::error::{FormatError, Problem, Structure};
use crate::fields::{Fields, Place, Widths};
use crate::source::Source;

const SIGNATURE: &[u8; 8] = b"\x89HDF\r\n\x1a\n";
/// More than any superblock takes.
const MOST_NBYTES: u64 = 256;

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
    /// Where the file's data ends, counted from the base.
    pub end: u64,
    /// Where the root group's object header is.
    pub root: u64,
    /// Where the header of its extension is.
    pub extension: Option<u64>,
    /// Where the block of a driver is that keeps one file as several.
    pub driver: Option<u64>,
    /// Whether a program has it open for writing, or did not close it (versions 2 and 3).
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

    /// Find and read it.
    pub(crate) fn find(bytes: &dyn Bytes) -> Result<Self, FormatError> {
        let end = bytes.nbytes();
        let mut base = 0;
        while base < end {
            let place = Place::new(Structure::Superblock, 0);
            let source = Source::new(bytes, base, Widths { offset: 8, length: 8 });
            if source.end() >= 8 && source.read(place, 8)?.bytes() == SIGNATURE {
                return Self::read(&source, place, base);
            }
            base = if base == 0 { 512 } else { base.saturating_mul(2) };
        }
        Err(Place::new(Structure::Superblock, 0).error(Problem::Signature))
    }

    fn read(source: &Source<'_>, place: Place, base: u64) -> Result<Self, FormatError> {
        let part = source.read_most(place, MOST_NBYTES)?;
        let mut fields = part.fields();
        fields.skip(SIGNATURE.len() as u64)?;
        let found = match fields.u8()? {
            version @ (0 | 1) => Self::old(version, fields, base)?,
            version @ (2 | 3) => {
                let found = Self::new(version, fields, base)?;
                source.read(place, found.widths().nbytes(16, 4, 0))?.unsealed()?;
                found
            }
            version => return Err(place.error(Problem::Version(version))),
        };
        Ok(found)
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
        let root = fields.defined()?;
        Ok(Self {
            version,
            base,
            offset_nbytes: widths.offset,
            length_nbytes: widths.length,
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
        let root = fields.defined()?;
        Ok(Self {
            version,
            base,
            offset_nbytes: widths.offset,
            length_nbytes: widths.length,
            end,
            root,
            extension,
            driver: None,
            open_for_writing: flags & 1 != 0,
            open_for_swmr: flags & 4 != 0,
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
        let mut bytes = b"\x89HDF\r\n\x1a\n\x02\x08\x08\x01".to_vec();
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
    fn the_old_one_has_the_root_groups_entry() {
        let mut bytes = b"\x89HDF\r\n\x1a\n\x01\0\0\0\0\x04\x08\0".to_vec();
        bytes.extend([4, 0, 16, 0, 0, 0, 0, 0, 32, 0, 0, 0]);
        // The name of the root group, as wide as a length, and its header.
        for number in [0, u32::MAX, 900, u32::MAX, 0, 0, 96] {
            bytes.extend(number.to_le_bytes());
        }
        let found = Superblock::find(&bytes).unwrap();
        assert_eq!((found.root, found.end, found.offset_nbytes), (96, 900, 4));
        assert_eq!((found.leaf_k, found.group_k, found.chunk_k), (4, 16, 32));
    }
}
