//! The loops in which time goes: a turn decodes a few symbols of each stream.
//!
//! A look-up waits for the one before it in its stream, so a processor has time for those of other
//! streams.  What needs more care ends the loop.

use super::stream::{COPIED, Stream, Why, repeat};
use super::tables::{Kind, Several, Symbol, Tables, low};

/// What of a stream changes from turn to turn, held in registers.
struct Lane<'s> {
    stored: &'s [u8],
    out: &'s mut [u8],
    tables: &'s Tables,
    /// Bits that were read.
    pos: usize,
    /// Bytes that were written: of 32 bits, so that a few more are no overflow.
    at: u32,
}

/// Literals in a turn: with the bits before them in their first byte, they fit into 64 bits.
const LITERALS: usize = 5;
/// Bytes that a turn in a mixed block may write to: behind up to three literals, as two bits tell.
const ROOM: usize = 3 + COPIED;

impl<'s> Lane<'s> {
    #[inline(always)]
    fn new(stream: &'s mut Stream<'_>) -> Self {
        let Stream { stored, out, tables, pos, at, .. } = stream;
        Self { stored, out, tables, pos: *pos, at: *at as u32 }
    }

    /// Bits that were read, and bytes that were written.
    #[inline(always)]
    fn places(self) -> (usize, usize) {
        (self.pos, self.at as usize)
    }

    /// Some literals were written, which left these bits.
    #[inline(always)]
    fn after(&mut self, bits: u64, literals: usize) {
        self.at += literals as u32;
        self.pos += bits.leading_zeros() as usize;
    }

    /// At least 56 of the next bits.
    #[inline(always)]
    fn bits(&self) -> Result<u64, Why> {
        let begin = self.pos >> 3;
        let bytes = self.stored.get(begin..begin + 8).and_then(|bytes| bytes.first_chunk());
        Ok(u64::from_le_bytes(*bytes.ok_or(Why::Edge)?) >> (self.pos & 7))
    }

    #[inline(always)]
    fn after_literals(&mut self, symbol: Symbol) -> Result<(), Why> {
        if symbol.is_other() {
            return Err(Why::Symbol);
        }
        let bits = self.bits()?;
        let (code, least) = symbol.length();
        self.pos += symbol.nbits() as usize;
        self.long_match(least as usize + (low(bits, symbol.nbits()) >> code) as usize)
    }

    /// What one look-up says of a mixed block, without a branch on whether there is a match.
    #[inline(always)]
    fn mixed(&mut self) -> Result<(), Why> {
        let bits = self.bits()?;
        let at = self.at as usize;
        let room = self.out.get_mut(at..at + ROOM).ok_or(Why::Edge)?;
        let found = self.tables.several(bits);
        [room[0], room[1]] = found.literals();
        let (len, end) = (found.length(), self.at + found.literal_count());
        let left = bits >> found.nbits();
        let distance = self.tables.distance_after(found, left);
        let back = distance.of(left) as u32;
        if len > Several::SHORT || len > back {
            return self.slow(found, bits);
        }
        // What was just written is slow to read: without a match, the first bytes are copied.
        let from = (end.wrapping_sub(back) & distance.wanted()) as usize;
        let source = self.out.get(from..from + COPIED).and_then(|bytes| bytes.first_chunk());
        let Some(&bytes) = source else { return self.slow(found, bits) };
        let bytes: [u8; COPIED] = bytes;
        let (room, count) = (&mut self.out[at..at + ROOM], found.literal_count() as usize);
        room[count..count + COPIED].copy_from_slice(&bytes);
        self.at = end + len;
        self.pos += (found.nbits() + distance.nbits()) as usize;
        Ok(())
    }

    /// The same for any match.
    #[inline(always)]
    fn slow(&mut self, found: Several, bits: u64) -> Result<(), Why> {
        let len = found.length();
        if len == Several::OTHER {
            return Err(Why::Symbol);
        }
        self.at += found.literal_count();
        self.pos += found.nbits() as usize;
        let more = low(bits, found.nbits()) >> found.shift();
        self.long_match((len & !Several::MORE) as usize + more as usize)
    }

    /// A match of which the length is known.
    #[inline(always)]
    fn long_match(&mut self, len: usize) -> Result<(), Why> {
        let bits = self.bits().map_err(|_| Why::Distance(len))?;
        let distance = self.tables.distance(bits);
        let (at, back) = (self.at as usize, distance.of(bits));
        if back == 0 || back > at || len > self.out.len() - at {
            return Err(Why::Distance(len));
        }
        self.pos += distance.nbits() as usize;
        if len <= back && len <= COPIED && at + COPIED <= self.out.len() {
            self.out.copy_within(at - back..at - back + COPIED, at);
        } else {
            repeat(self.out, at, back, len);
        }
        self.at += len as u32;
        Ok(())
    }
}

/// Both loops for some number of streams.
macro_rules! loops {
    ($literals:ident, $mixed:ident, $count:literal: $($stream:ident $lane:ident $bits:ident $room:ident $number:literal),+) => {
        /// Turns of literals, until a stream needs more care: which, and why.
        #[inline(never)]
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "bmi1,bmi2,lzcnt"))]
        fn $literals([$($stream),+]: [&mut Stream<'_>; $count]) -> (usize, Why) {
            $(let mut $lane = Lane::new($stream);)+
            let ended = loop {
                // The highest bit that is set tells how many bits are left.
                $(
                    let Ok(bits) = $lane.bits() else { break ($number, Why::Edge) };
                    let mut $bits = bits | 1 << 63;
                    let at = $lane.at as usize;
                    let Some($room) = $lane.out.get_mut(at..at + LITERALS) else {
                        break ($number, Why::Edge);
                    };
                )+
                // After how many literals there is something else, where, and what.
                let other = 'turn: {
                    for done in 0..LITERALS {
                        $(
                            let symbol = $lane.tables.symbol($bits);
                            if !symbol.is_literal() {
                                break 'turn Some((done, $number, symbol));
                            }
                            $room[done] = symbol.literal();
                            $bits >>= symbol.nbits();
                        )+
                    }
                    None
                };
                let Some((done, which, symbol)) = other else {
                    $($lane.after($bits, LITERALS);)+
                    continue;
                };
                $($lane.after($bits, done + usize::from($number < which));)+
                let went = match which {
                    $($number => $lane.after_literals(symbol),)+
                    _ => Ok(()),
                };
                if let Err(why) = went {
                    break (which, why);
                }
            };
            $(
                let places = $lane.places();
                ($stream.pos, $stream.at) = places;
            )+
            ended
        }

        /// Turns of mixed symbols, until a stream needs more care: which, and why.
        #[inline(never)]
        #[cfg_attr(target_arch = "x86_64", target_feature(enable = "bmi1,bmi2,lzcnt"))]
        fn $mixed([$($stream),+]: [&mut Stream<'_>; $count]) -> (usize, Why) {
            $(let mut $lane = Lane::new($stream);)+
            let ended = loop {
                $(
                    if let Err(why) = $lane.mixed() {
                        break ($number, why);
                    }
                )+
            };
            $(
                let places = $lane.places();
                ($stream.pos, $stream.at) = places;
            )+
            ended
        }
    };
}

loops!(literals_1, mixed_1, 1: a la ba ra 0);
loops!(literals_2, mixed_2, 2: a la ba ra 0, b lb bb rb 1);
loops!(literals_3, mixed_3, 3: a la ba ra 0, b lb bb rb 1, c lc bc rc 2);
loops!(literals_4, mixed_4, 4: a la ba ra 0, b lb bb rb 1, c lc bc rc 2, d ld bd rd 3);

/// Turns of some streams, until one needs more care: which, and why.  None if they are too many, or
/// none.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "bmi1,bmi2,lzcnt"))]
pub(super) fn run(kind: Kind, streams: &mut [Stream<'_>]) -> Option<(usize, Why)> {
    Some(match (kind, streams) {
        (Kind::Literals, [a]) => literals_1([a]),
        (Kind::Literals, [a, b]) => literals_2([a, b]),
        (Kind::Literals, [a, b, c]) => literals_3([a, b, c]),
        (Kind::Literals, [a, b, c, d]) => literals_4([a, b, c, d]),
        (Kind::Mixed, [a]) => mixed_1([a]),
        (Kind::Mixed, [a, b]) => mixed_2([a, b]),
        (Kind::Mixed, [a, b, c]) => mixed_3([a, b, c]),
        (Kind::Mixed, [a, b, c, d]) => mixed_4([a, b, c, d]),
        _ => return None,
    })
}
