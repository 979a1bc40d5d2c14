//! Which symbol do the next bits of a stream say?
//!
//! A block's codes become tables that tell by the next [`BITS`] bits.  Rarer symbols, with longer
//! codes, are found in the code itself.

/// Bits that a look-up of literals and lengths sees.
pub(super) const BITS: u32 = 10;
/// Bits that a look-up of distances sees.
const DISTANCE_BITS: u32 = 8;
/// Entries of the table of distances: each second one, beside one for 'no distance'.
const DISTANCES: usize = 2 << DISTANCE_BITS;

/// A length as deflate has it: its least value, and how many bits are added to that.
pub(super) const LENGTHS: [(u16, u32); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];
/// A distance: the same.
pub(super) const OFFSETS: [(u16, u32); 30] = [
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 1),
    (7, 1),
    (9, 2),
    (13, 2),
    (17, 3),
    (25, 3),
    (33, 4),
    (49, 4),
    (65, 5),
    (97, 5),
    (129, 6),
    (193, 6),
    (257, 7),
    (385, 7),
    (513, 8),
    (769, 8),
    (1025, 9),
    (1537, 9),
    (2049, 10),
    (3073, 10),
    (4097, 11),
    (6145, 11),
    (8193, 12),
    (12289, 12),
    (16385, 13),
    (24577, 13),
];
/// The symbol that ends a block.
pub(super) const END: u16 = 256;

/// A code as it is stored: how many codes have each length, and the symbols in the codes' order.
#[derive(Clone)]
pub(super) struct Code {
    counts: [u16; 16],
    symbols: [u16; 288],
}

impl Code {
    /// None where the lengths make no code.  One that is incomplete has codes of one bit only, as
    /// zlib has it.
    pub(super) fn new(lengths: &[u8]) -> Option<Self> {
        let (mut counts, mut symbols) = ([0u16; 16], [0; 288]);
        for &len in lengths {
            counts[usize::from(len & 15)] += 1;
        }
        counts[0] = 0;
        let (mut next, mut begin, mut used, mut longest) = ([0; 16], 0, 0u32, 0);
        for len in 1..16 {
            next[len] = begin;
            begin += usize::from(counts[len]);
            used += u32::from(counts[len]) << (15 - len);
            longest = if counts[len] > 0 { len } else { longest };
        }
        if used > 1 << 15 || (used < 1 << 15 && longest > 1) {
            return None;
        }
        for (symbol, &len) in (0..).zip(lengths) {
            if len > 0 {
                let place = &mut next[usize::from(len & 15)];
                *symbols.get_mut(*place)? = symbol;
                *place += 1;
            }
        }
        Some(Self { counts, symbols })
    }

    /// Whether each sequence of bits begins with a code of at most `most` bits.
    pub(super) fn is_complete(&self, most: usize) -> bool {
        let share = |len: usize| u32::from(self.counts[len]) << (15 - len);
        (1..=most).map(share).sum::<u32>() == 1 << 15
    }

    /// The symbol that `bits` begin with, and its length; None where there is none.
    #[inline(never)]
    pub(super) fn symbol(&self, bits: u64) -> Option<(u16, u32)> {
        // Codes have their first bit highest: the next 15 bits lie in the span of one length.
        let code = (bits as u16).reverse_bits() as u32 >> 1;
        let (mut span_begin, mut first) = (0, 0);
        for len in 1..16 {
            let count = u32::from(self.counts[len as usize]);
            let (within, span) = (code - span_begin, count << (15 - len));
            if within < span {
                let symbol = self.symbols[(first + (within >> (15 - len))) as usize % 288];
                return Some((symbol, len));
            }
            span_begin += span;
            first += count;
        }
        None
    }

    /// Fill a table whose length is a power of two: `entry` of a symbol and its length where an
    /// index begins with its code, else `none`.
    pub(super) fn fill<T: Copy>(&self, table: &mut [T], none: T, entry: impl Fn(u16, u32) -> T) {
        table[0] = none;
        let (mut code, mut size, mut symbols) = (0usize, 1, self.symbols.iter());
        let mut len = 0;
        while size < table.len() {
            table.copy_within(..size, size);
            size *= 2;
            len += 1;
            for &symbol in symbols.by_ref().take(usize::from(self.counts[len])) {
                table[code] = entry(symbol, len as u32);
                // The next code, one more with the first bit highest.
                let zeros = code ^ (size - 1);
                let bit = 1 << zeros.checked_ilog2().unwrap_or(0);
                code = if zeros == 0 { 0 } else { code & (bit - 1) | bit };
            }
        }
    }
}

/// What a look-up says of one symbol.  A literal: its length in bits and the byte.  Else the
/// highest bit is set: all bits of a length with those added to it, bits of its code, its least
/// value.
#[derive(Clone, Copy)]
pub(super) struct Symbol(u32);

impl Symbol {
    const NOT_LITERAL: u32 = 1 << 31;
    /// The symbol has to be found in the code, or is none.
    pub(super) const OTHER: Self = Self(0xffff_0000);

    fn new(symbol: u16, len: u32) -> Self {
        if symbol < END {
            return Self(len | u32::from(symbol) << 8);
        }
        match LENGTHS.get(usize::from(symbol - END).wrapping_sub(1)) {
            Some(&(least, more)) => {
                Self(Self::NOT_LITERAL | (len + more) | len << 8 | u32::from(least) << 16)
            }
            None => Self::OTHER,
        }
    }

    #[inline(always)]
    pub(super) fn is_literal(self) -> bool {
        self.0 & Self::NOT_LITERAL == 0
    }

    #[inline(always)]
    pub(super) fn is_other(self) -> bool {
        self.0 >= Self::OTHER.0
    }

    /// All its bits.
    #[inline(always)]
    pub(super) fn nbits(self) -> u32 {
        self.0 & 63
    }

    #[inline(always)]
    pub(super) fn literal(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Bits of a length's code, and its least value.
    #[inline(always)]
    pub(super) fn length(self) -> (u32, u32) {
        (self.0 >> 8 & 63, self.0 >> 16 & 0x7fff)
    }
}

/// What a look-up says in a mixed block: up to two literals, and then perhaps a length.
#[derive(Clone, Copy, Default)]
pub(super) struct Several(u64);

impl Several {
    /// Added to the least value of a length whose further bits are still to be read.
    pub(super) const MORE: u32 = 0x400;
    /// In place of a length: the first symbol has to be found in the code, or is none.
    pub(super) const OTHER: u32 = 0xffff;
    /// Longer matches, and all that is in place of a length, are more than this.
    pub(super) const SHORT: u32 = 16;

    /// A single symbol of those that `index` begins with.
    fn one(symbol: Symbol, index: usize) -> Self {
        if symbol.is_literal() {
            let nbits = u64::from(symbol.nbits());
            return Self(nbits | nbits << 8 | u64::from(symbol.literal()) << 32 | 1 << 48);
        }
        if symbol.is_other() {
            return Self(u64::from(Self::OTHER) << 16);
        }
        let (all, (code, least)) = (symbol.nbits(), symbol.length());
        let (mut shift, mut len) = (code, least);
        if all > code && all <= BITS && least <= Self::SHORT {
            len += index as u32 >> code & ((1 << (all - code)) - 1);
            shift = all;
        } else if all > code {
            len += Self::MORE;
        }
        let rest = u64::from(shift) << 8 | u64::from(len) << 16;
        Self(u64::from(all) | rest | 1 << 63)
    }

    /// The symbol of `index` with that after it, if it is seen.
    fn new(symbols: &[Symbol; 1 << BITS], index: usize) -> Self {
        let first = Self::one(symbols[index], index);
        if !symbols[index].is_literal() {
            return first;
        }
        let (nbits, left) = (first.nbits(), index >> first.nbits());
        let second = symbols[left];
        let one = Self::one(second, left);
        if second.is_other() || one.shift() > BITS - nbits {
            return first;
        }
        const LITERAL: u64 = 0xff << 32;
        Self(first.0 + (one.0 & !LITERAL) + ((one.0 & LITERAL) << 8))
    }

    /// How many symbols it says.
    fn count(self) -> u32 {
        self.literal_count() + (self.0 >> 63) as u32
    }

    #[inline(always)]
    pub(super) fn nbits(self) -> u32 {
        (self.0 & 63) as u32
    }

    /// Bits before those that are added to the length.
    #[inline(always)]
    pub(super) fn shift(self) -> u32 {
        (self.0 >> 8 & 63) as u32
    }

    #[inline(always)]
    pub(super) fn length(self) -> u32 {
        (self.0 >> 16 & 0xffff) as u32
    }

    #[inline(always)]
    pub(super) fn literals(self) -> [u8; 2] {
        ((self.0 >> 32) as u16).to_le_bytes()
    }

    #[inline(always)]
    pub(super) fn literal_count(self) -> u32 {
        (self.0 >> 48 & 3) as u32
    }

    /// All bits set if a distance follows, else none.
    #[inline(always)]
    fn has_distance(self) -> usize {
        (self.0.cast_signed() >> 63) as usize
    }
}

/// What a look-up says of a distance: its bits, those of its code, whether there is one, and its
/// least value.
#[derive(Clone, Copy, Default)]
pub(super) struct Distance(u32);

impl Distance {
    const WANTED: u32 = 1 << 7;

    fn new(symbol: u16, len: u32) -> Self {
        match OFFSETS.get(usize::from(symbol)) {
            Some(&(least, more)) => {
                Self((len + more) | len << 8 | Self::WANTED | u32::from(least) << 16)
            }
            None => Self(Self::WANTED),
        }
    }

    #[inline(always)]
    pub(super) fn nbits(self) -> u32 {
        self.0 & 63
    }

    /// 0 where the distance has to be found in the code, or none is wanted.
    #[inline(always)]
    pub(super) fn of(self, bits: u64) -> usize {
        (self.0 >> 16) as usize + (low(bits, self.nbits()) >> (self.0 >> 8 & 63)) as usize
    }

    /// All bits set if one is wanted, else none.
    #[inline(always)]
    pub(super) fn wanted(self) -> u32 {
        ((self.0 << 24).cast_signed() >> 31).cast_unsigned()
    }
}

/// The lowest `count` of `bits`.
#[inline(always)]
pub(super) fn low(bits: u64, count: u32) -> u64 {
    bits & ((1 << count) - 1)
}

/// How a block's symbols are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// One at a time: nearly all are literals.
    Literals,
    /// Up to three at a time.
    Mixed,
}

/// Costs of decoding, in quarters of a cycle: a literal, and a match in a block of literals...
const LITERAL_COST: u64 = 14;
const MATCH_COST: u64 = 160;
/// ... and a look-up in a mixed block.
const LOOK_UP_COST: u64 = 45;

/// The codes of one block, and their tables.
pub(super) struct Tables {
    pub(super) symbols: [Symbol; 1 << BITS],
    several: [Several; 1 << BITS],
    distances: [Distance; DISTANCES],
    pub(super) codes: [Code; 2],
}

impl Tables {
    pub(super) fn new() -> Self {
        let none = Code { counts: [0; 16], symbols: [0; 288] };
        Self {
            symbols: [Symbol::OTHER; 1 << BITS],
            several: [Several::default(); 1 << BITS],
            distances: [Distance::default(); DISTANCES],
            codes: [none.clone(), none],
        }
    }

    /// For a block with codes of these lengths; None where they make none.
    pub(super) fn set(&mut self, lengths: &[u8], distances: &[u8]) -> Option<Kind> {
        self.codes = [Code::new(lengths)?, Code::new(distances)?];
        let [symbols, offsets] = &self.codes;
        let mut dense = [Distance::default(); 1 << DISTANCE_BITS];
        offsets.fill(&mut dense, Distance(Distance::WANTED), Distance::new);
        self.distances[0] = Distance::default();
        for (two, one) in self.distances.chunks_exact_mut(2).zip(dense) {
            two[1] = one;
        }
        symbols.fill(&mut self.symbols, Symbol::OTHER, Symbol::new);
        // Of 32768 symbols as the code expects them.
        let matches: u64 =
            lengths.iter().skip(257).filter(|&&len| len > 0).map(|len| 1 << 15 >> len).sum();
        if matches * 100 < 4 << 15 {
            return Some(Kind::Literals);
        }
        let mut found = 0;
        for (index, several) in self.several.iter_mut().enumerate() {
            *several = Several::new(&self.symbols, index);
            found += u64::from(several.count());
        }
        let apart = ((1 << 15) - matches) * LITERAL_COST + matches * MATCH_COST;
        let together = LOOK_UP_COST << 15 << BITS;
        Some(if apart * found < together { Kind::Literals } else { Kind::Mixed })
    }

    /// One symbol.
    #[inline(always)]
    pub(super) fn symbol(&self, bits: u64) -> Symbol {
        self.symbols[low(bits, BITS) as usize]
    }

    /// Several symbols.
    #[inline(always)]
    pub(super) fn several(&self, bits: u64) -> Several {
        self.several[low(bits, BITS) as usize]
    }

    /// The distance after `several`, if there is one.
    #[inline(always)]
    pub(super) fn distance_after(&self, several: Several, bits: u64) -> Distance {
        let index = (bits << 1 | 1) as usize & (DISTANCES - 1);
        self.distances[index & several.has_distance()]
    }

    /// A distance.
    #[inline(always)]
    pub(super) fn distance(&self, bits: u64) -> Distance {
        self.distances[(bits << 1 | 1) as usize & (DISTANCES - 1)]
    }
}
