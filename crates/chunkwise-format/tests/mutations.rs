//! Does any change of a file end in an error, in time and within bounded memory?
//!
//! The target is that of `fuzz/`, whose corpus is changed at random, the same way each time: by its
//! short run's changes, and by others that leave all structures where they are.

#![allow(missing_docs, dead_code)]

use std::path::Path;
use std::time::{Duration, Instant};

#[path = "../../../fuzz/tests/changes/mod.rs"]
mod changes;
#[path = "../../../fuzz/src/format.rs"]
mod format;
#[path = "../../../fuzz/src/memory.rs"]
mod memory;

/// Inputs beside the corpus; `CHUNKWISE_FUZZ_RUNS` says otherwise.
const RUNS: usize = 6_000;
/// What any file may take, on a machine that others use too.  `small` bounds the small ones.
const MOST_TIME: Duration = Duration::from_secs(10);
/// Bytes before the superblock and in it, which others change.
const HEAD_LEN: usize = 64 + 48;

/// Numbers in no order (an xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    /// A seed with some bytes replaced.
    fn replaced(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        const BYTES: [u8; 8] = [0, 1, 2, 8, 0x10, 0x7f, 0x80, 0xff];
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..=self.below(6) {
            let at = HEAD_LEN + self.below(input.len() - HEAD_LEN);
            let end = input.len().min(at + 1 + self.below(8) * self.below(2));
            match self.below(4) {
                0 => input[at] ^= 1 << self.below(8),
                1 => input[at] = self.below(256) as u8,
                2 => input[at..end].fill(BYTES[self.below(8)]),
                _ => {
                    // What stands elsewhere: most of all, another address.
                    let from = HEAD_LEN + self.below(input.len() - HEAD_LEN);
                    let nbytes = 8.min(input.len() - at.max(from));
                    input.copy_within(from..from + nbytes, at);
                }
            }
        }
        input
    }
}

#[test]
fn changed_files_are_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/format");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<_> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(seeds.len() > 10);
    let runs = std::env::var("CHUNKWISE_FUZZ_RUNS").ok().and_then(|runs| runs.parse().ok());
    let mut random = changes::Random::new("format");
    let mut numbers = Numbers(0x9e37_79b9);
    let mut longest = Duration::ZERO;
    for number in 0..seeds.len() + runs.unwrap_or(RUNS) {
        let input = match seeds.get(number) {
            Some(seed) => seed.clone(),
            None if number % 3 == 0 => random.changed(&seeds),
            None => numbers.replaced(&seeds),
        };
        let start = Instant::now();
        format::check(&input);
        longest = longest.max(start.elapsed());
        assert!(longest < MOST_TIME, "input {number} takes {longest:?}");
    }
    println!("the longest took {longest:?}");
}
