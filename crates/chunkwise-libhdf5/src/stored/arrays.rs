//! Which chunks does a fixed or an extensible array hold?
//!
//! Both number the chunks of the *largest* extent in row-major order, the unlimited dimension first.
//! A fixed array has one block of elements.  An extensible one has some elements in its index
//! block, which leads to blocks of growing size, directly or by way of super blocks.  Long blocks
//! are cut into pages, and a bit for each says whether it was ever written: those that were not
//! are skipped, however many there are (format specification, VII.B and VII.C).

use chunkwise_engine::ChunkRecord;
use chunkwise_select::Dims;

use super::bytes::{Damage, Fields, Source, UNDEFINED, unseal};
use super::collected::Chunks;

/// Bytes of a signature, a version and a kind of elements.
const HEAD_LEN: u64 = 6;
const CHECKSUM_LEN: u64 = 4;
const ADDRESS_LEN: u64 = 8;

/// What all parts of an array have in common.
struct Array<'a> {
    source: &'a Source<'a>,
    /// Where its header is, as all its parts say.
    header: u64,
    filtered: bool,
    /// Bytes of an element.
    entry_len: u64,
    /// Elements in a page.
    page: u64,
    /// Elements that it has: what lies behind them does not count.
    len: u64,
    numbering: Numbering,
    /// Numbers of the chunks that are wanted, ascending; None for all.
    only: Option<Vec<u64>>,
}

/// Read the fixed array whose header is at `header`.
pub(super) fn fixed(
    source: &Source<'_>,
    header: u64,
    chunks: &mut Chunks<'_>,
) -> Result<(), Damage> {
    const HEADER_LEN: u64 = HEAD_LEN + 2 + 8 + ADDRESS_LEN + CHECKSUM_LEN;
    let bytes = source.sealed(header, HEADER_LEN, b"FAHD")?;
    let mut fields = Fields(&bytes[4..]);
    let filtered = filtered(&mut fields, chunks)?;
    let (entry_len, page_bits, len) = (fields.number(1)?, fields.u8()?, fields.u64()?);
    let block = fields.u64()?;
    let page = power(page_bits)?;
    let (numbering, only) = Numbering::of(chunks);
    // libhdf5 looks for the others behind its memory.
    if numbering.count().is_none_or(|count| len < count) {
        return Err(Damage(format!("an array of {len} chunks, and the dataset may have more")));
    }
    let array = Array { source, header, filtered, entry_len, page, len, numbering, only };
    array.check(chunks)?;
    if block == UNDEFINED {
        return Ok(());
    }
    let paged = len > page;
    let bitmap_len = if paged { len.div_ceil(page).div_ceil(8) } else { 0 };
    let head_len = HEAD_LEN + ADDRESS_LEN + bitmap_len;
    if !paged {
        return array.block(block, (b"FADB", head_len), 0, len, chunks);
    }
    let head = array.part(block, head_len, b"FADB")?;
    let bitmap = &head[head.len() - bitmap_len as usize..];
    let written = Written { bitmap, begin: 0, pages: len.div_ceil(page) };
    array.pages(block + head_len + CHECKSUM_LEN, written, 0, len, chunks)
}

/// Read the extensible array whose header is at `header`.
pub(super) fn extensible(
    source: &Source<'_>,
    header: u64,
    chunks: &mut Chunks<'_>,
) -> Result<(), Damage> {
    const HEADER_LEN: u64 = HEAD_LEN + 6 + 6 * 8 + ADDRESS_LEN + CHECKSUM_LEN;
    let bytes = source.sealed(header, HEADER_LEN, b"EAHD")?;
    let mut fields = Fields(&bytes[4..]);
    let filtered = filtered(&mut fields, chunks)?;
    let (entry_len, len_bits, direct) = (fields.number(1)?, fields.u8()?, fields.number(1)?);
    let (least, least_pointers, page_bits) = (fields.number(1)?, fields.number(1)?, fields.u8()?);
    // Four numbers that are of no use here, and the elements that were ever set.
    fields.take(4 * 8)?;
    let len = fields.u64()?;
    fields.u64()?;
    let block = fields.u64()?;
    let page = power(page_bits)?;
    let (numbering, only) = Numbering::of(chunks);
    let array = Array { source, header, filtered, entry_len, page, len, numbering, only };
    array.check(chunks)?;
    let sound =
        (1..=64).contains(&len_bits) && least.is_power_of_two() && least_pointers.is_power_of_two();
    let least_bits = least.checked_ilog2().unwrap_or(0);
    if !sound || least_bits > u32::from(len_bits) {
        return Err(Damage("the options of its extensible array make no sense".into()));
    }
    if block == UNDEFINED {
        return Ok(());
    }
    let supers = 1 + u32::from(len_bits) - least_bits;
    // The first of them have no block of their own: the index block leads to their data.
    let without = (2 * least_pointers.ilog2()).min(supers);
    let pointers = 2 * (least_pointers - 1);
    let supers_with = u64::from(supers - without);
    let nbytes =
        HEAD_LEN + ADDRESS_LEN + direct * entry_len + (pointers + supers_with) * ADDRESS_LEN;
    let bytes = array.part(block, nbytes, b"EAIB")?;
    let mut fields = Fields(&bytes[(HEAD_LEN + ADDRESS_LEN) as usize..]);
    array.elements(fields.take((direct * entry_len) as usize)?, 0, chunks)?;
    let offset_len = u64::from(len_bits).div_ceil(8);
    let data_head = HEAD_LEN + ADDRESS_LEN + offset_len;
    let mut first = direct;
    for number in 0..supers {
        // As many blocks, and elements in each, as libhdf5 makes of the number.
        let blocks = power((number / 2) as u8)?;
        let elements = power(number.div_ceil(2) as u8)?.checked_mul(least).ok_or_else(too_long)?;
        let mut level = Level { first, blocks, elements };
        first = blocks
            .checked_mul(elements)
            .and_then(|all| first.checked_add(all))
            .ok_or_else(too_long)?;
        if number < without {
            let addresses = fields.take((blocks * ADDRESS_LEN) as usize)?;
            if elements > page {
                return Err(Damage("its index block leads to pages".into()));
            }
            array.expect(addresses, data_head, &level);
            for address in addresses.as_chunks().0.iter().map(|a| u64::from_le_bytes(*a)) {
                array.data(address, data_head, None, &mut level, chunks)?;
            }
        } else {
            let address = fields.u64()?;
            let wanted = array.wants(level.first, first - level.first);
            if wanted && level.first < len && address != UNDEFINED {
                array.super_block(address, offset_len, level, chunks)?;
            }
        }
        if first >= len {
            break;
        }
    }
    Ok(())
}

/// The blocks of data under a super block, from the one that comes next.
struct Level {
    /// Number of the next block's first element.
    first: u64,
    blocks: u64,
    /// Elements in each.
    elements: u64,
}

/// Which pages of one block were ever written: a run of bits, which need not begin with a byte.
struct Written<'a> {
    bitmap: &'a [u8],
    /// The first page's bit, counted from the most significant one of the first byte.
    begin: u64,
    pages: u64,
}

impl Written<'_> {
    /// Their numbers within the block; bytes without any cost next to nothing.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        let (begin, end) = (self.begin, self.begin.saturating_add(self.pages));
        let bytes = (begin / 8..end.div_ceil(8)).zip(self.bitmap.iter().skip((begin / 8) as usize));
        bytes
            .filter(|(_, bits)| **bits != 0)
            .flat_map(|(at, bits)| {
                (0..8).filter(move |bit| bits & 0x80 >> bit != 0).map(move |bit| at * 8 + bit)
            })
            .filter(move |bit| (begin..end).contains(bit))
            .map(move |bit| bit - begin)
    }
}

impl Array<'_> {
    /// Whether a chunk is wanted that has one of `count` numbers from `first` on.
    fn wants(&self, first: u64, count: u64) -> bool {
        let Some(only) = &self.only else { return true };
        let at = only.partition_point(|&number| number < first);
        only.get(at).is_some_and(|&number| number - first < count)
    }

    /// Whether elements are as libhdf5 makes them for these chunks.
    fn check(&self, chunks: &Chunks<'_>) -> Result<(), Damage> {
        let size_len = self.entry_len.wrapping_sub(ADDRESS_LEN + 4);
        let sound = match self.filtered {
            true => (1..=8).contains(&size_len),
            false => self.entry_len == ADDRESS_LEN,
        };
        if sound && chunks.wanted.filtered == self.filtered {
            return Ok(());
        }
        Err(Damage(format!("an array of chunks with {} bytes each", self.entry_len)))
    }

    /// A part with this signature and a checksum behind `nbytes`; gives these.
    fn part(&self, address: u64, nbytes: u64, signature: &[u8; 4]) -> Result<Vec<u8>, Damage> {
        let bytes = self.source.sealed(address, nbytes.saturating_add(CHECKSUM_LEN), signature)?;
        let mut fields = Fields(&bytes[4..]);
        let head = (fields.u8()?, fields.u8()?, fields.u64()?);
        if head == (0, u8::from(self.filtered), self.header) {
            return Ok(bytes);
        }
        Err(Damage(format!("what is at address {address} is of another array")))
    }

    /// A block of `count` elements behind `head_len` bytes.
    fn block(
        &self,
        address: u64,
        (signature, head_len): (&[u8; 4], u64),
        first: u64,
        count: u64,
        chunks: &mut Chunks<'_>,
    ) -> Result<(), Damage> {
        let nbytes = count.checked_mul(self.entry_len).ok_or_else(too_long)?;
        let bytes = self.part(address, head_len.saturating_add(nbytes), signature)?;
        self.elements(&bytes[head_len as usize..], first, chunks)
    }

    /// The pages of `count` elements from `address` on, those that were written.
    fn pages(
        &self,
        address: u64,
        written: Written<'_>,
        first: u64,
        count: u64,
        chunks: &mut Chunks<'_>,
    ) -> Result<(), Damage> {
        let page_len = self.page.saturating_mul(self.entry_len).saturating_add(CHECKSUM_LEN);
        for number in written.numbers() {
            let begin = number.saturating_mul(self.page);
            let elements = count.saturating_sub(begin).min(self.page);
            if !self.wants(first.saturating_add(begin), elements) {
                continue;
            }
            let address = address.saturating_add(number.saturating_mul(page_len));
            let nbytes = elements * self.entry_len + CHECKSUM_LEN;
            let mut page = self.source.read(address, nbytes)?;
            unseal(&mut page, address)?;
            self.elements(&page, first.saturating_add(begin), chunks)?;
        }
        Ok(())
    }

    fn super_block(
        &self,
        address: u64,
        offset_len: u64,
        mut level: Level,
        chunks: &mut Chunks<'_>,
    ) -> Result<(), Damage> {
        let pages = if level.elements > self.page { level.elements / self.page } else { 0 };
        // Room for whole bytes for each block, in which the bits of all follow each other
        // (H5EA__lookup_elmt).
        let bitmap_len = pages.div_ceil(8);
        let head_len = HEAD_LEN + ADDRESS_LEN + offset_len;
        let bitmaps_len = bitmap_len.checked_mul(level.blocks).ok_or_else(too_long)?;
        let addresses_len = level.blocks.checked_mul(ADDRESS_LEN).ok_or_else(too_long)?;
        let nbytes = head_len.saturating_add(bitmaps_len).saturating_add(addresses_len);
        let bytes = self.part(address, nbytes, b"EASB")?;
        let (bitmaps, addresses) = bytes[head_len as usize..].split_at(bitmaps_len as usize);
        self.expect(addresses, head_len, &level);
        for (number, address) in addresses.as_chunks().0.iter().enumerate() {
            let begin = number as u64 * pages;
            let written = (pages > 0).then_some(Written { bitmap: bitmaps, begin, pages });
            self.data(u64::from_le_bytes(*address), head_len, written, &mut level, chunks)?;
        }
        Ok(())
    }

    /// The wanted blocks of data at these addresses will be read; of those with pages, their heads.
    fn expect(&self, addresses: &[u8], head_len: u64, level: &Level) {
        let paged = level.elements > self.page;
        let elements = if paged { 0 } else { level.elements };
        let nbytes = head_len.saturating_add(elements.saturating_mul(self.entry_len));
        let wanted = addresses.as_chunks().0.iter().map(|a| u64::from_le_bytes(*a)).enumerate();
        let wanted = wanted.filter(|&(number, address)| {
            let begin = (number as u64).saturating_mul(level.elements).saturating_add(level.first);
            address != UNDEFINED && begin < self.len && self.wants(begin, level.elements)
        });
        let wanted = wanted.map(|(_, address)| address);
        self.source.expect(wanted, nbytes.saturating_add(CHECKSUM_LEN));
    }

    /// The next block of data, if there is one; `written` is about its pages, if it has pages.
    fn data(
        &self,
        address: u64,
        head_len: u64,
        written: Option<Written<'_>>,
        level: &mut Level,
        chunks: &mut Chunks<'_>,
    ) -> Result<(), Damage> {
        let (first, count) = (level.first, level.elements);
        level.first += count;
        if address == UNDEFINED || first >= self.len || !self.wants(first, count) {
            return Ok(());
        }
        let Some(written) = written else {
            return self.block(address, (b"EADB", head_len), first, count, chunks);
        };
        self.part(address, head_len, b"EADB")?;
        let pages = address.saturating_add(head_len + CHECKSUM_LEN);
        self.pages(pages, written, first, count, chunks)
    }

    /// Elements one after the other, from number `first` on.
    fn elements(&self, bytes: &[u8], first: u64, chunks: &mut Chunks<'_>) -> Result<(), Damage> {
        let left = self.len.saturating_sub(first);
        if !self.wants(first, left) {
            return Ok(());
        }
        for (number, entry) in bytes.chunks_exact(self.entry_len as usize).enumerate() {
            let mut fields = Fields(entry);
            let address = fields.u64()?;
            if address == UNDEFINED || number as u64 >= left {
                continue;
            }
            if !self.wants(first + number as u64, 1) {
                continue;
            }
            let (stored_nbytes, filter_mask) = if self.filtered {
                let size_len = entry.len() - (ADDRESS_LEN + 4) as usize;
                (fields.number(size_len)?, fields.number(4)? as u32)
            } else {
                (chunks.chunk_nbytes(), 0)
            };
            if let Some(index) = self.numbering.index(first + number as u64) {
                chunks.add(&index, ChunkRecord { address, stored_nbytes, filter_mask })?;
            }
        }
        Ok(())
    }
}

/// Whether the elements are those of chunks with filters, after an array's signature.
fn filtered(fields: &mut Fields<'_>, chunks: &Chunks<'_>) -> Result<bool, Damage> {
    match (fields.u8()?, fields.u8()?) {
        (0, kind @ (0 | 1)) if chunks.wanted.filtered == (kind == 1) => Ok(kind == 1),
        _ => Err(Damage("its array is of another kind".into())),
    }
}

fn power(bits: u8) -> Result<u64, Damage> {
    1u64.checked_shl(u32::from(bits)).ok_or_else(too_long)
}

fn too_long() -> Damage {
    Damage("an array of more elements than there are numbers".into())
}

/// Which chunk has which number?
struct Numbering {
    /// The dimension that is taken before all others.
    first: usize,
    /// Chunks along each dimension of the largest extent, other than the first's.
    counts: Dims,
}

impl Numbering {
    /// Also the numbers of the chunks that are wanted, ascending.
    fn of(chunks: &Chunks<'_>) -> (Self, Option<Vec<u64>>) {
        let (grid, most) = (&chunks.wanted.grid, &chunks.wanted.max_shape);
        let first = most.iter().position(|&most| most == u64::MAX).unwrap_or(0);
        let counts = most.iter().zip(grid.chunk()).map(|(most, chunk)| most.div_ceil(*chunk));
        let numbering = Self { first, counts: counts.collect() };
        let only = chunks.places().map(|places| {
            let numbers = places.iter().filter_map(|place| numbering.number(place));
            let mut numbers: Vec<u64> = numbers.collect();
            numbers.sort_unstable();
            numbers
        });
        (numbering, only)
    }

    /// How many numbers there are; None where that is no number.
    fn count(&self) -> Option<u64> {
        self.counts.iter().try_fold(1u64, |all, &count| all.checked_mul(count))
    }

    /// The number of the chunk at a place in the grid; None beyond the largest extent.
    fn number(&self, place: &[u64]) -> Option<u64> {
        let mut number = *place.get(self.first)?;
        for d in (0..self.counts.len()).filter(|&d| d != self.first) {
            if place[d] >= self.counts[d] {
                return None;
            }
            number = number.checked_mul(self.counts[d])?.checked_add(place[d])?;
        }
        Some(number)
    }

    /// The place in the grid of the chunk with this number.
    fn index(&self, number: u64) -> Option<Dims> {
        let mut index: Dims = self.counts.iter().map(|_| 0).collect();
        let mut rest = number;
        for d in (0..self.counts.len()).rev().filter(|&d| d != self.first) {
            index[d] = rest.checked_rem(self.counts[d])?;
            rest /= self.counts[d];
        }
        *index.get_mut(self.first)? = rest;
        Some(index)
    }
}
