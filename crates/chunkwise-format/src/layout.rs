//! How is a dataset stored?
//!
//! Format specification, IV.A.2.i.

use crate::dataspace::{Dims, MOST_RANK};
use crate::error::{FormatError, Problem};
use crate::fields::Fields;

/// How a dataset is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// In the header.
    Compact(Vec<u8>),
    /// In one piece.
    Contiguous {
        /// Where it is; None where nothing was written.
        address: Option<u64>,
        /// How many bytes it takes; None where the message is too old to say.
        nbytes: Option<u64>,
    },
    /// In chunks.
    Chunked(Chunked),
    /// In other datasets.
    Virtual {
        /// The collection of the global heap that holds the mappings; None where there are none.
        collection: Option<u64>,
        /// The object's number in that collection.
        number: u32,
    },
}

/// A layout in chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunked {
    /// A chunk's shape.
    pub chunk: Dims,
    /// Bytes of an element, as stored.
    pub element_nbytes: u64,
    /// Whether filters leave out chunks that are only partly within the dataset.
    pub edges_unfiltered: bool,
    /// The version of the message.
    pub version: u8,
    /// What leads to the chunks.
    pub index: ChunkIndex,
}

/// What leads to a dataset's chunks; addresses are None where nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkIndex {
    /// A version 1 B-tree.
    BTree1(Option<u64>),
    /// There is one chunk.
    Single {
        /// Where it is.
        address: Option<u64>,
        /// Bytes that it takes, and filters that it skips, where there are filters.
        filtered: Option<(u64, u32)>,
    },
    /// All chunks, one behind the other.
    Implicit(Option<u64>),
    /// A fixed array.
    FixedArray(Option<u64>),
    /// An extensible array.
    ExtensibleArray(Option<u64>),
    /// A version 2 B-tree.
    BTree2(Option<u64>),
}

const COMPACT: u8 = 0;
const CONTIGUOUS: u8 = 1;
const CHUNKED: u8 = 2;
const VIRTUAL: u8 = 3;

impl Layout {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, FormatError> {
        match fields.u8()? {
            version @ (1 | 2) => old(fields, version),
            version @ 3..=5 => new(fields, version),
            version => Err(fields.error(Problem::Version(version))),
        }
    }
}

fn old(fields: &mut Fields<'_>, version: u8) -> Result<Layout, FormatError> {
    let (rank, class) = (fields.u8()?, fields.u8()?);
    fields.skip(5)?;
    let address = if class == COMPACT { None } else { fields.address()? };
    let dims = dims(fields, rank, 4)?;
    match class {
        COMPACT => {
            let nbytes = fields.u32()?;
            Ok(Layout::Compact(fields.take(nbytes.into())?.to_vec()))
        }
        // Its dimensions may have been cut to 32 bits.
        CONTIGUOUS => Ok(Layout::Contiguous { address, nbytes: None }),
        CHUNKED => chunked(fields, dims, version, false, ChunkIndex::BTree1(address)),
        class => Err(fields.unknown("a class of number", class)),
    }
}

fn new(fields: &mut Fields<'_>, version: u8) -> Result<Layout, FormatError> {
    match fields.u8()? {
        COMPACT => {
            let nbytes = fields.u16()?;
            Ok(Layout::Compact(fields.take(nbytes.into())?.to_vec()))
        }
        CONTIGUOUS => {
            Ok(Layout::Contiguous { address: fields.address()?, nbytes: Some(fields.length()?) })
        }
        CHUNKED if version == 3 => {
            let rank = fields.u8()?;
            let index = ChunkIndex::BTree1(fields.address()?);
            let dims = dims(fields, rank, 4)?;
            chunked(fields, dims, version, false, index)
        }
        CHUNKED => {
            const EDGES_UNFILTERED: u8 = 1;
            const SINGLE_FILTERED: u8 = 2;
            let (flags, rank, width) = (fields.u8()?, fields.u8()?, fields.u8()?);
            if !(1..=8).contains(&width) {
                return Err(fields.unknown("a width of dimensions of", width));
            }
            let dims = dims(fields, rank, width)?;
            let index = index(fields, flags & SINGLE_FILTERED != 0)?;
            chunked(fields, dims, version, flags & EDGES_UNFILTERED != 0, index)
        }
        VIRTUAL if version >= 4 => {
            Ok(Layout::Virtual { collection: fields.address()?, number: fields.u32()? })
        }
        class => Err(fields.unknown("a class of number", class)),
    }
}

/// A message that says the same with lengths of chunks in no more bytes than they need; as long as
/// before.  None where they take no more.
pub(crate) fn narrowed(message: &[u8]) -> Option<Vec<u8>> {
    // Of other widths, nobody knows what they mean.
    let [version @ 4, class @ CHUNKED, flags, rank, width @ 1..=8, rest @ ..] = message else {
        return None;
    };
    let width = usize::from(*width);
    let (lengths, behind) = rest.split_at_checked(width.checked_mul((*rank).into())?)?;
    let needed = |length: &[u8]| {
        length.iter().rposition(|&byte| byte != 0).map_or(1, |at| at.saturating_add(1))
    };
    let most = lengths.chunks_exact(width).map(needed).max()?;
    if most >= width {
        return None;
    }
    let mut made = vec![*version, *class, *flags, *rank, most as u8];
    made.extend(lengths.chunks_exact(width).flat_map(|length| length.iter().take(most)));
    made.extend(behind);
    made.resize(message.len(), 0);
    Some(made)
}

fn dims(fields: &mut Fields<'_>, rank: u8, width: u8) -> Result<Dims, FormatError> {
    if usize::from(rank) > MOST_RANK.saturating_add(1) {
        return Err(fields.wrong("it has more dimensions than HDF5 allows"));
    }
    (0..rank).map(|_| fields.number(width)).collect()
}

/// The kind of an index, its options, which the index repeats, and where it is.
fn index(fields: &mut Fields<'_>, single_filtered: bool) -> Result<ChunkIndex, FormatError> {
    match fields.u8()? {
        1 => {
            let filtered = match single_filtered {
                true => Some((fields.length()?, fields.u32()?)),
                false => None,
            };
            Ok(ChunkIndex::Single { address: fields.address()?, filtered })
        }
        2 => fields.address().map(ChunkIndex::Implicit),
        3 => {
            fields.skip(1)?;
            fields.address().map(ChunkIndex::FixedArray)
        }
        4 => {
            fields.skip(5)?;
            fields.address().map(ChunkIndex::ExtensibleArray)
        }
        5 => {
            fields.skip(6)?;
            fields.address().map(ChunkIndex::BTree2)
        }
        kind => Err(fields.unknown("a chunk index of kind", kind)),
    }
}

fn chunked(
    fields: &Fields<'_>,
    mut dims: Dims,
    version: u8,
    edges_unfiltered: bool,
    index: ChunkIndex,
) -> Result<Layout, FormatError> {
    // The last is for the bytes of an element.
    let element_nbytes = dims.pop().unwrap_or(0);
    if element_nbytes == 0 || dims.is_empty() || dims.contains(&0) {
        return Err(fields.wrong("its chunks are empty"));
    }
    Ok(Layout::Chunked(Chunked { chunk: dims, element_nbytes, edges_unfiltered, version, index }))
}

#[cfg(test)]
mod tests {
    use super::{ChunkIndex, Layout};
    use crate::error::{FormatError, Structure};
    use crate::fields::{Fields, Place, Widths};

    fn read(bytes: &[u8]) -> Result<Layout, FormatError> {
        let place = Place::new(Structure::Message(8), 0);
        let widths = Widths { offset: 8, length: 8 };
        Layout::read(&mut Fields::new(bytes, place, widths))
    }

    #[test]
    fn old_layouts_have_the_bytes_of_an_element_as_a_dimension() {
        let mut bytes = vec![3, 2, 3];
        bytes.extend(800u64.to_le_bytes());
        for number in [5u32, 7, 4] {
            bytes.extend(number.to_le_bytes());
        }
        let Layout::Chunked(chunked) = read(&bytes).unwrap() else { panic!() };
        assert_eq!((&chunked.chunk[..], chunked.element_nbytes), (&[5, 7][..], 4));
        assert_eq!(chunked.index, ChunkIndex::BTree1(Some(800)));
        bytes[11] = 0;
        assert!(read(&bytes).is_err());
    }

    #[test]
    fn a_single_chunk_may_have_filters() {
        let mut bytes = vec![4, 2, 2, 2, 1, 9, 2, 1];
        bytes.extend(77u64.to_le_bytes());
        bytes.extend([1, 0, 0, 0]);
        bytes.extend(800u64.to_le_bytes());
        let Layout::Chunked(chunked) = read(&bytes).unwrap() else { panic!() };
        let single = ChunkIndex::Single { address: Some(800), filtered: Some((77, 1)) };
        assert_eq!((chunked.index, chunked.element_nbytes), (single, 2));
    }

    #[test]
    fn lengths_take_no_more_bytes_than_they_need() {
        let wide = [4, 2, 0, 2, 3, 44, 1, 0, 4, 0, 0, 1, 9, 8, 7];
        let narrow = [4, 2, 0, 2, 2, 44, 1, 4, 0, 1, 9, 8, 7, 0, 0];
        assert_eq!(super::narrowed(&wide), Some(narrow.to_vec()));
        assert_eq!(super::narrowed(&narrow), None);
        for len in 0..8 {
            assert_eq!(super::narrowed(&wide[..len]), None);
        }
        // HDF5 knows no width of nine bytes.
        let strange: Vec<u8> = [&[4, 2, 0, 1, 9, 44], &[0; 8][..], &[9, 8, 7]].concat();
        assert_eq!(super::narrowed(&strange), None);
    }

    #[test]
    fn compact_values_are_in_the_message() {
        assert_eq!(read(&[3, 0, 2, 0, 7, 8]), Ok(Layout::Compact(vec![7, 8])));
        assert!(read(&[3, 0, 3, 0, 7, 8]).is_err());
        assert!(read(&[6, 0]).is_err());
    }
}
