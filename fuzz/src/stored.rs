//! Is the chunk index of any file read or refused, at the cost of the file?
//!
//! The input is a file behind a head: what libhdf5 says of its dataset.  Changes break checksums
//! first, so that, where the head says so, each structure is read with the right one.

#![allow(clippy::panic)]

use std::sync::Arc;

use chunkwise_engine::{ChunkIndex, MemoryStorage, ReadError, Storage};
use chunkwise_format::checksum;
use chunkwise_metadata::{StoredIndex, StoredKind, Wanted, end_of_data};
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
    // The head of older inputs had more: a number, and the largest shape.
    let (header, user_block, _, element_size) = (number()?, number()?, number()?, number()?);
    let mut dims = || (0..rank.clamp(1, MOST_RANK)).map(|_| number()).collect::<Option<Dims>>();
    let (shape, chunk, _) = (dims()?, dims()?, dims()?);
    let grid = ChunkGrid::new(&shape, &chunk).ok()?;
    let storage: Arc<dyn Storage> =
        Arc::new(Sealing { file: MemoryStorage(input.to_vec()), sums: flags & 2 != 0 });
    let wanted = Wanted {
        header,
        user_block,
        grid: grid.clone(),
        element_size: (element_size > 0).then_some(element_size),
        grows: flags & 4 != 0,
    };
    match StoredIndex::open(Arc::clone(&storage), wanted) {
        StoredKind::Found(index) => any_index(&index, &grid),
        StoredKind::Unsound(reason) => assert!(!reason.contains('\n'), "{reason}"),
        StoredKind::OtherKind => {}
    }
    end_of_data(&storage, user_block);
    Some(())
}

/// Listed twice it is the same, and so is each chunk that is looked up.
fn any_index(index: &StoredIndex, grid: &ChunkGrid) {
    let (listed, again) = match (index.list(), index.list()) {
        (Ok(listed), Ok(again)) => (listed, again),
        (Err(reason), Err(again)) => {
            assert_eq!(reason, again);
            assert!(!reason.contains('\n'), "{reason}");
            // What is sound of it may be found, at the cost of the file.
            let _: Result<ChunkIndex, String> = index.find(&any_positions(grid.len()));
            return;
        }
        (first, second) => panic!("listed twice, it is not the same: {first:?}, {second:?}"),
    };
    assert!(listed.written() <= grid.len());
    assert!(listed.positions().eq(again.positions()));
    for position in listed.positions() {
        assert!(position < grid.len());
        assert_eq!(listed.get(position), again.get(position));
    }
    let mut positions = any_positions(grid.len());
    positions.extend(listed.positions().step_by(1 + listed.written() as usize / 7));
    positions.sort_unstable();
    positions.dedup();
    match index.find(&positions) {
        Ok(found) => {
            for position in positions {
                assert_eq!(found.get(position), listed.get(position));
            }
        }
        Err(reason) => panic!("all of it is sound, but not a part: {reason}"),
    }
}

/// Some chunks of a grid of so many, ascending.
fn any_positions(len: u64) -> Vec<u64> {
    let mut positions: Vec<u64> = [0, len / 3, len / 2, len.saturating_sub(1)].into();
    positions.retain(|&position| position < len);
    positions.dedup();
    positions
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
