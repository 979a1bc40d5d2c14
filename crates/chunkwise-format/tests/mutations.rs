//! Does any change of a file end in an error, in time and within bounded memory?
//!
//! The target is that of `fuzz/`, whose corpus is changed at random, the same way each time.

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
/// What a small file may take, on a machine that others use too.
const MOST_TIME: Duration = Duration::from_secs(10);

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
    for number in 0..seeds.len() + runs.unwrap_or(RUNS) {
        let input = seeds.get(number).cloned().unwrap_or_else(|| random.changed(&seeds));
        let start = Instant::now();
        format::check(&input);
        let elapsed = start.elapsed();
        assert!(elapsed < MOST_TIME, "input {number} takes {elapsed:?}");
    }
}
