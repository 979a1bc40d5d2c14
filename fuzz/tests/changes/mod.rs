//! How is one input made of others, at random but the same each time?

/// Bytes that programs compare with, or that make lengths wrong.
const BYTES: [u8; 8] = [0, 1, 0x1f, 0x20, 0x7f, 0x80, 0xfe, 0xff];
const MOST_LEN: usize = 1 << 16;

/// Random numbers (splitmix64).
pub struct Random(u64);

impl Random {
    /// The numbers that belong to this name.
    pub fn new(name: &str) -> Self {
        Self(name.bytes().fold(0, |state, byte| state * 31 + u64::from(byte)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A place in `bytes`, half of the time near the front, where headers are.
    fn place(&mut self, bytes: &[u8]) -> usize {
        let end = if self.below(2) == 0 { bytes.len().min(64) } else { bytes.len() };
        self.below(end)
    }

    /// One of `seeds` with one to eight changes.
    pub fn changed(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(8) {
            self.change(&mut input, seeds);
        }
        input.truncate(MOST_LEN);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.place(input);
        let len = 1 + self.below(8);
        let end = (at + len).min(input.len());
        match self.below(8) {
            0 if at < end => input[at] ^= 1 << self.below(8),
            1 if at < end => input[at] = BYTES[self.below(BYTES.len())],
            2 if at < end => input[at..end].fill(BYTES[self.below(BYTES.len())]),
            3 if at < end => input[at] = self.next() as u8,
            4 => input.truncate(at),
            5 => drop(input.drain(at..end)),
            6 => {
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
            _ => {
                // The rest of another one.
                let other = &seeds[self.below(seeds.len())];
                let from = self.place(other);
                input.splice(at.., other[from..].iter().copied());
            }
        }
    }
}
