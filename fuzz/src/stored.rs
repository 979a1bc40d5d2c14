//! Is the chunk index of any file read or refused, at the cost of the file?
//!
//! The input is a file behind a head: what libhdf5 says of its dataset.  Changes break checksums
//! first, so that, where the head says so, each structure is read with the right one.

#![allow(clippy::panic)]

use chunkwise_engine::{MemoryStorage, ReadError, Storage};
use chunkwise_libhdf5::stored::{Stored, Wanted, checksum, end_of_data, read_index};
use chunkwise_select::{ChunkGrid, Dims};

use crate::memory::within;

/// Far from what a file may claim.
const MOST_NBYTES: usize = 64 << 20;
const MOST_RANK: u8 = 4;

pub(crate) fn check(input: &[u8]) {
    within(MOST_NBYTES, || {
        // An input that ends early says nothing.
        let _: Option<()> = any_file(input);
    });
}

fn any_file(mut input: &[u8]) -> Option<()> {
    let [flags, rank] = *take(&mut input)?;
    let mut number = || take(&mut input).map(|bytes| u64::from_le_bytes(*bytes));
    let (header, user_block, btree_k, element_size) = (number()?, number()?, number()?, number()?);
    let mut dims = || (0..rank.clamp(1, MOST_RANK)).map(|_| number()).collect::<Option<Dims>>();
    let (shape, chunk, max_shape) = (dims()?, dims()?, dims()?);
    let grid = ChunkGrid::new(&shape, &chunk).ok()?;
    let storage = Sealing { file: MemoryStorage(input.to_vec()), sums: flags & 2 != 0 };
    let wanted = Wanted {
        header,
        user_block,
        // As many as libhdf5 takes.
        btree_k: btree_k.min(1 << 16) as u32,
        grid: &grid,
        max_shape: &max_shape,
        element_size: (element_size > 0).then_some(element_size),
        filtered: flags & 1 != 0,
    };
    let found = read_index(&storage, &wanted);
    let again = read_index(&storage, &wanted);
    match (found, again) {
        (Stored::Found(index), Stored::Found(again)) => {
            assert!(index.written() <= grid.len());
            assert!(index.positions().eq(again.positions()));
            for position in index.positions() {
                assert!(position < grid.len());
                assert_eq!(index.get(position), again.get(position));
            }
        }
        (Stored::Unsound(reason), Stored::Unsound(again)) => {
            assert_eq!(reason, again);
            assert!(!reason.contains('\n'), "{reason}");
        }
        (Stored::OtherKind, Stored::OtherKind) => {}
        (first, second) => panic!("read twice, it is not the same: {first:?}, {second:?}"),
    }
    end_of_data(&storage, user_block);
    Some(())
}

/// The next bytes of the input.
fn take<'a, const LEN: usize>(input: &mut &'a [u8]) -> Option<&'a [u8; LEN]> {
    let (taken, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(taken)
}

/// A file whose structures come with the right checksums, if they are wanted so.
struct Sealing {
    file: MemoryStorage,
    sums: bool,
}

impl Storage for Sealing {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        /// The most bytes of an object header that say how long it is.
        const HEAD_LEN: usize = 34;
        self.file.read_at(address, out)?;
        let has_none = out.starts_with(b"\x89HDF")
            || out.starts_with(b"TREE")
            || out.starts_with(b"OHDR") && out.len() <= HEAD_LEN;
        if self.sums
            && !has_none
            && let Some((content, sum)) = out.split_last_chunk_mut()
        {
            *sum = checksum(content).to_le_bytes();
        }
        Ok(())
    }

    fn end(&self) -> u64 {
        self.file.end()
    }
}
