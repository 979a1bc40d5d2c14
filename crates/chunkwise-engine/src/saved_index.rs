//! Where do chunks lie, as was written down beside their file?
//!
//! Entries stand in pages of [`PAGE`], each with a checksum behind it, so that a few chunks are
//! looked up by reading a few pages.  Where at least half of the grid is written there is an entry
//! for each of its chunks; otherwise one for each written chunk, which begins with its position.

use std::sync::Arc;

use chunkwise_codec::crc32;

use crate::{ChunkIndex, ChunkIndexBuilder, ChunkRecord, FindChunks, Storage};

/// Entries in a page.
const PAGE: u64 = 512;
/// An address, bytes and a filter mask.
const RECORD_LEN: usize = 8 + 8 + 4;
const POSITION_LEN: usize = 8;
const SUM_LEN: usize = 4;
/// The address of a chunk that was never written.
const NEVER_WRITTEN: u64 = u64::MAX;

/// Which entries there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedForm {
    /// An entry for each chunk of the grid, in row-major order.
    pub is_dense: bool,
    /// Entries.
    pub entries: u64,
}

impl SavedForm {
    fn entry_len(self) -> usize {
        RECORD_LEN + if self.is_dense { 0 } else { POSITION_LEN }
    }

    fn pages(self) -> u64 {
        self.entries.div_ceil(PAGE)
    }

    /// Bytes of all pages before this one; None where they cannot be.
    fn offset(self, page: u64) -> Option<u64> {
        let whole = PAGE * self.entry_len() as u64 + SUM_LEN as u64;
        page.checked_mul(whole)
    }

    fn entries_in(self, page: u64) -> usize {
        (self.entries - page * PAGE).min(PAGE) as usize
    }
}

/// Write down the chunks of a grid of `grid_len`.
pub fn save_index(index: &ChunkIndex, grid_len: u64) -> (SavedForm, Vec<u8>) {
    let is_dense = index.written() >= grid_len.div_ceil(2);
    let entries = if is_dense { grid_len } else { index.written() };
    let form = SavedForm { is_dense, entries };
    let mut out = Vec::new();
    let mut page = Vec::with_capacity(PAGE as usize * form.entry_len());
    let mut positions = index.positions();
    for number in 0..entries {
        let position = if is_dense { Some(number) } else { positions.next() };
        let record = position.and_then(|position| index.get(position));
        let (address, nbytes, mask) =
            record.map_or((NEVER_WRITTEN, 0, 0), |r| (r.address, r.stored_nbytes, r.filter_mask));
        if !is_dense {
            page.extend_from_slice(&position.unwrap_or(u64::MAX).to_le_bytes());
        }
        page.extend_from_slice(&address.to_le_bytes());
        page.extend_from_slice(&nbytes.to_le_bytes());
        page.extend_from_slice(&mask.to_le_bytes());
        if number + 1 == entries || (number + 1) % PAGE == 0 {
            out.extend_from_slice(&page);
            out.extend_from_slice(&crc32(0, &page).to_le_bytes());
            page.clear();
        }
    }
    (form, out)
}

/// What [`save_index`] has written, in a storage.
pub struct SavedIndex {
    storage: Arc<dyn Storage>,
    /// Where it begins there.
    begin: u64,
    form: SavedForm,
    grid_len: u64,
}

impl SavedIndex {
    /// The chunks of a grid of `grid_len`, from `begin` on; None where these do not fit.
    pub fn new(
        storage: Arc<dyn Storage>,
        begin: u64,
        form: SavedForm,
        grid_len: u64,
    ) -> Option<Self> {
        let fits = if form.is_dense { form.entries == grid_len } else { form.entries <= grid_len };
        fits.then_some(Self { storage, begin, form, grid_len })
    }

    fn read(&self, page: u64) -> Result<Vec<u8>, String> {
        let nbytes = self.form.entries_in(page) * self.form.entry_len();
        let mut bytes = vec![0; nbytes + SUM_LEN];
        let at = self.form.offset(page).and_then(|offset| self.begin.checked_add(offset));
        let at = at.ok_or_else(|| "the saved index is too long".to_string())?;
        let read = self.storage.read_at(at, &mut bytes);
        read.map_err(|error| format!("the saved index cannot be read: {error}"))?;
        let sum = bytes.split_off(nbytes);
        if crc32(0, &bytes).to_le_bytes() != *sum {
            return Err(format!("the saved index is damaged (its page {page})"));
        }
        Ok(bytes)
    }

    /// The entries of a page: positions, and what is there.
    fn entries<'a>(
        &self,
        page: u64,
        bytes: &'a [u8],
    ) -> impl Iterator<Item = (u64, ChunkRecord)> + use<'a> {
        let is_dense = self.form.is_dense;
        bytes.chunks_exact(self.form.entry_len()).enumerate().map(move |(number, entry)| {
            let (position, entry) = match entry.split_first_chunk() {
                Some((position, entry)) if !is_dense => (u64::from_le_bytes(*position), entry),
                _ => (page * PAGE + number as u64, entry),
            };
            (position, record_of(entry))
        })
    }

    /// The first position of a page without positions for all.
    fn first(&self, page: u64) -> Result<u64, String> {
        let mut bytes = [0; POSITION_LEN];
        let at = self.form.offset(page).and_then(|offset| self.begin.checked_add(offset));
        let at = at.ok_or_else(|| "the saved index is too long".to_string())?;
        let read = self.storage.read_at(at, &mut bytes);
        read.map_err(|error| format!("the saved index cannot be read: {error}"))?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// The page in which a position stands if it stands anywhere.
    fn page_of(&self, position: u64) -> Result<Option<u64>, String> {
        if self.form.is_dense {
            return Ok((position < self.form.entries).then_some(position / PAGE));
        }
        // The last page that begins at or before it.
        let (mut low, mut high) = (0, self.form.pages());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.first(middle)? <= position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.checked_sub(1))
    }
}

fn record_of(entry: &[u8]) -> ChunkRecord {
    let mut wide = [0; RECORD_LEN];
    wide.copy_from_slice(&entry[..RECORD_LEN]);
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = wide;
    ChunkRecord {
        address: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        stored_nbytes: u64::from_le_bytes([i, j, k, l, m, n, o, p]),
        filter_mask: u32::from_le_bytes([q, r, s, t]),
    }
}

impl FindChunks for SavedIndex {
    fn find(&self, positions: &[u64]) -> Result<ChunkIndex, String> {
        let mut builder = ChunkIndexBuilder::default();
        let mut known: Option<(u64, Vec<(u64, ChunkRecord)>)> = None;
        for &position in positions {
            let Some(page) = self.page_of(position)? else { continue };
            if known.as_ref().is_none_or(|(number, _)| *number != page) {
                let bytes = self.read(page)?;
                known = Some((page, self.entries(page, &bytes).collect()));
            }
            let entries = known.as_ref().map_or(&[][..], |(_, entries)| entries);
            let at = entries.binary_search_by_key(&position, |(position, _)| *position);
            let Ok(at) = at else { continue };
            let record = entries[at].1;
            if record.address != NEVER_WRITTEN {
                builder.push(position, record).map_err(|error| error.to_string())?;
            }
        }
        builder.finish(self.grid_len).map_err(|error| error.to_string())
    }

    fn list(&self) -> Result<ChunkIndex, String> {
        let mut builder = ChunkIndexBuilder::default();
        for page in 0..self.form.pages() {
            let bytes = self.read(page)?;
            for (position, record) in self.entries(page, &bytes) {
                if record.address != NEVER_WRITTEN {
                    builder.push(position, record).map_err(|error| error.to_string())?;
                }
            }
        }
        builder.finish(self.grid_len).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::MemoryStorage;

    fn index_of(chunks: &[(u64, ChunkRecord)], grid_len: u64) -> ChunkIndex {
        let mut builder = ChunkIndexBuilder::default();
        for &(position, record) in chunks {
            builder.push(position, record).unwrap();
        }
        builder.finish(grid_len).unwrap()
    }

    fn record() -> impl Strategy<Value = ChunkRecord> {
        (0..1u64 << 40, any::<u32>(), 0..9u64, prop::bool::ANY).prop_map(
            |(address, mask, large, masked)| ChunkRecord {
                address,
                stored_nbytes: 17 + (large << 30),
                filter_mask: if masked { mask } else { 0 },
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_was_saved_is_found(
            chunks in prop::collection::btree_map(0..3000u64, record(), 0..1200),
            grid_len in 3000..4000u64,
            dense in prop::bool::ANY,
            wanted in prop::collection::btree_set(0..3000u64, 0..50),
        ) {
            let grid_len = if dense { 3000 } else { grid_len };
            let chunks: Vec<_> = chunks.into_iter().collect();
            let index = index_of(&chunks, grid_len);
            let (form, bytes) = save_index(&index, grid_len);
            let mut file = vec![9; 5];
            file.extend(bytes);
            let storage: Arc<dyn Storage> = Arc::new(MemoryStorage(file));
            let saved = SavedIndex::new(storage, 5, form, grid_len).unwrap();
            let listed = saved.list().unwrap();
            prop_assert_eq!(listed.written(), index.written());
            let wanted: Vec<u64> = wanted.into_iter().collect();
            let found = saved.find(&wanted).unwrap();
            for position in 0..3000 {
                prop_assert_eq!(listed.get(position), index.get(position));
                let known = found.get(position);
                let expected = wanted.contains(&position).then(|| index.get(position)).flatten();
                prop_assert_eq!(known, expected);
            }
        }

        #[test]
        fn no_changed_byte_is_believed(
            written in prop::collection::btree_set(0..1500u64, 1..900),
            at in any::<prop::sample::Index>(),
            bit in 0..8u8,
        ) {
            let record = ChunkRecord { address: 4096, stored_nbytes: 10, filter_mask: 0 };
            let chunks: Vec<_> = written.into_iter().map(|position| (position, record)).collect();
            let (form, mut bytes) = save_index(&index_of(&chunks, 1500), 1500);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let storage: Arc<dyn Storage> = Arc::new(MemoryStorage(bytes));
            let saved = SavedIndex::new(storage, 0, form, 1500).unwrap();
            prop_assert!(saved.list().is_err());
        }
    }

    #[test]
    fn what_ends_early_or_does_not_fit_is_refused() {
        let record = ChunkRecord { address: 4096, stored_nbytes: 10, filter_mask: 0 };
        let (form, bytes) = save_index(&index_of(&[(7, record)], 1000), 1000);
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage(bytes[..20].to_vec()));
        let saved = SavedIndex::new(Arc::clone(&storage), 0, form, 1000).unwrap();
        assert!(saved.list().is_err());
        assert!(saved.find(&[7]).is_err());
        let vast = SavedForm { is_dense: true, entries: 999 };
        assert!(SavedIndex::new(storage, 0, vast, 1000).is_none());
    }
}
