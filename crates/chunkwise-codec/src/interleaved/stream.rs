//! One stream: its blocks' heads, its end, and symbols that take care.

use super::tables::{Code, END, Kind, LENGTHS, OFFSETS, Tables, low};

/// A zlib stream, and where its bytes go.
#[derive(Debug)]
pub struct Job<'a> {
    /// The stream; bytes after its end are ignored.
    pub stored: &'a [u8],
    /// Exactly as long as what the stream holds.
    pub out: &'a mut [u8],
    /// Whether all went well; otherwise what is in `out` is unspecified.
    pub done: bool,
}

/// Why a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The next symbol has to be found in the code.
    Symbol,
    /// So does the distance of a match of that length.
    Distance(usize),
    /// The end of the stored bytes or of the output is near.
    Edge,
}

/// Bytes that are copied at once.
pub(super) const COPIED: usize = 16;

/// Bytes that a zlib stream has before the blocks, and after them.
const HEAD_NBYTES: usize = 2;
const CHECK_NBYTES: usize = 4;

/// Sums are brought up to date after as many bytes, while they are near.
const SUMMED_NBYTES: usize = 8 << 10;

/// A stream that is being inflated.
pub(super) struct Stream<'a> {
    pub(super) stored: &'a [u8],
    pub(super) out: &'a mut [u8],
    pub(super) done: &'a mut bool,
    pub(super) tables: &'a mut Tables,
    /// Bits that were read.
    pub(super) pos: usize,
    /// Bytes that were written.
    pub(super) at: usize,
    /// How the block's symbols are looked up.
    pub(super) kind: Kind,
    is_last: bool,
    /// The Adler-32 of the first bytes that were written, and how many.
    adler: u32,
    summed: usize,
}

/// What comes next in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Symbols,
    End,
}

impl<'a> Stream<'a> {
    pub(super) fn new(job: &'a mut Job<'_>, tables: &'a mut Tables) -> Self {
        let Job { stored, out, done } = job;
        Self {
            stored,
            out,
            done,
            tables,
            pos: 8 * HEAD_NBYTES,
            at: 0,
            kind: Kind::Mixed,
            is_last: false,
            adler: 1,
            summed: 0,
        }
    }

    /// Come to the first symbol; None where this is no zlib stream.
    pub(super) fn begin(&mut self) -> Option<Next> {
        let head = u16::from_be_bytes(*self.stored.first_chunk::<HEAD_NBYTES>()?);
        // Deflate, a window of at most 32 KiB, no dictionary.
        let sound = head >> 8 & 15 == 8 && head >> 12 < 8 && head & 32 == 0 && head % 31 == 0;
        // Places in the output are counted in 32 bits.
        let counted = u32::try_from(self.out.len()).is_ok();
        let long_enough = self.stored.len() >= HEAD_NBYTES + CHECK_NBYTES;
        if sound && counted && long_enough { self.block() } else { None }
    }

    /// At least 56 of the next bits, zeros after the end.
    fn bits(&self) -> u64 {
        let rest = self.stored.get(self.pos >> 3..).unwrap_or_default();
        let bytes = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut bytes = [0; 8];
            bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            bytes
        });
        u64::from_le_bytes(bytes) >> (self.pos & 7)
    }

    /// Whether all that was read are bits of blocks.
    fn is_within(&self) -> bool {
        self.pos <= 8 * (self.stored.len() - CHECK_NBYTES)
    }

    /// The next `count` bits.
    fn take(&mut self, count: u32) -> Option<usize> {
        let bits = low(self.bits(), count) as usize;
        self.pos += count as usize;
        self.is_within().then_some(bits)
    }

    /// The next symbol of one of the codes.
    fn symbol(&mut self, which: usize) -> Option<u16> {
        let (symbol, len) = self.tables.codes[which].symbol(self.bits())?;
        self.pos += len as usize;
        self.is_within().then_some(symbol)
    }

    /// Go on after the loop ended here; None where the stream is damaged.
    pub(super) fn resume(&mut self, why: Why) -> Option<Next> {
        match why {
            Why::Symbol => self.careful(),
            Why::Distance(len) => self.careful_match(len).map(|()| Next::Symbols),
            // There are few left.
            Why::Edge => loop {
                let next = self.careful()?;
                if next == Next::End {
                    return Some(next);
                }
            },
        }
    }

    /// One symbol, with every check.
    fn careful(&mut self) -> Option<Next> {
        let symbol = self.symbol(0)?;
        match symbol.checked_sub(END) {
            None => {
                *self.out.get_mut(self.at)? = symbol as u8;
                self.at += 1;
            }
            Some(0) => return self.block(),
            Some(number) => {
                let (least, more) = *LENGTHS.get(usize::from(number - 1))?;
                let len = usize::from(least) + self.take(more)?;
                self.careful_match(len)?;
            }
        }
        Some(Next::Symbols)
    }

    /// The rest of a match.
    fn careful_match(&mut self, len: usize) -> Option<()> {
        let (least, more) = *OFFSETS.get(usize::from(self.symbol(1)?))?;
        let back = usize::from(least) + self.take(more)?;
        if back > self.at || len > self.out.len() - self.at {
            return None;
        }
        repeat(self.out, self.at, back, len);
        self.at += len;
        Some(())
    }

    /// The head of the next block that has symbols, if there is one; stored blocks are copied.
    pub(super) fn block(&mut self) -> Option<Next> {
        if self.at - self.summed >= SUMMED_NBYTES {
            self.sum_up();
        }
        while !self.is_last {
            let head = self.take(3)?;
            self.is_last = head & 1 == 1;
            match head >> 1 {
                0 => self.stored_block()?,
                1 => {
                    let mut lengths = [8; 288];
                    lengths[144..256].fill(9);
                    lengths[256..280].fill(7);
                    self.kind = self.tables.set(&lengths, &[5; 32])?;
                    return Some(Next::Symbols);
                }
                2 => {
                    self.codes()?;
                    return Some(Next::Symbols);
                }
                _ => return None,
            }
        }
        Some(Next::End)
    }

    fn stored_block(&mut self) -> Option<()> {
        self.pos = self.pos.next_multiple_of(8);
        let (len, inverse) = (self.take(16)?, self.take(16)?);
        if len ^ inverse != 0xffff {
            return None;
        }
        let begin = self.pos >> 3;
        self.pos += 8 * len;
        let bytes = self.stored.get(begin..begin + len).filter(|_| self.is_within())?;
        self.out.get_mut(self.at..self.at + len)?.copy_from_slice(bytes);
        self.at += len;
        Some(())
    }

    /// The codes of a block that brings its own.
    fn codes(&mut self) -> Option<()> {
        const ORDER: [u8; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        let (symbols, offsets) = (self.take(5)? + 257, self.take(5)? + 1);
        let count = self.take(4)? + 4;
        if symbols > 286 || offsets > 30 {
            return None;
        }
        let mut lengths = [0; 19];
        for place in &ORDER[..count] {
            lengths[usize::from(*place)] = self.take(3)? as u8;
        }
        let code = Code::new(&lengths).filter(|code| code.is_complete(7))?;
        let mut table = [0; 128];
        code.fill(&mut table, 0, |symbol, len| (symbol as u8) << 3 | len as u8);
        let (mut lengths, mut len) = ([0; 286 + 30], 0);
        while len < symbols + offsets {
            let bits = self.bits();
            let entry = table[low(bits, 7) as usize];
            let (nbits, symbol) = (u32::from(entry & 7), entry >> 3);
            let more = low(bits >> nbits, 7) as usize;
            let (again, times, extra) = match symbol {
                0..16 => (symbol, 1, 0),
                16 => (*lengths.get(len.checked_sub(1)?)?, 3 + (more & 3), 2),
                17 => (0, 3 + (more & 7), 3),
                _ => (0, 11 + more, 7),
            };
            self.pos += (nbits + extra) as usize;
            lengths[..symbols + offsets].get_mut(len..len + times)?.fill(again);
            len += times;
        }
        let (lengths, offsets) = lengths[..len].split_at(symbols);
        if !self.is_within() || lengths[usize::from(END)] == 0 {
            return None;
        }
        self.kind = self.tables.set(lengths, offsets)?;
        Some(())
    }

    fn sum_up(&mut self) {
        let written = &self.out[self.summed..self.at];
        // SAFETY: the bytes of a live slice.
        self.adler = unsafe {
            libdeflate_sys::libdeflate_adler32(self.adler, written.as_ptr().cast(), written.len())
        };
        self.summed = self.at;
    }

    /// All blocks were read: say whether the stream is as it was written, and fills the output.
    pub(super) fn finish(&mut self) {
        self.sum_up();
        let check = self.stored.get(self.pos.div_ceil(8)..).and_then(|rest| rest.first_chunk());
        let sound = check.is_some_and(|check| u32::from_be_bytes(*check) == self.adler);
        *self.done = sound && self.at == self.out.len();
    }
}

/// Copy `len` bytes from `back` bytes before `at`; they may overlap.
#[inline(never)]
pub(super) fn repeat(out: &mut [u8], at: usize, back: usize, len: usize) {
    let room = out.len() - at;
    if len + COPIED > room {
        for to in at..at + len {
            out[to] = out[to - back];
        }
        return;
    }
    // Bytes that come again every few come again every twenty or so.
    let (mut done, far) = (0, if back >= COPIED { back } else { back * COPIED.div_ceil(back) });
    while done < far - back {
        out[at + done] = out[at + done - back];
        done += 1;
    }
    while done < len {
        let to = at + done;
        out.copy_within(to - far..to - far + COPIED, to);
        done += COPIED;
    }
}
