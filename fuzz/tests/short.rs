//! The short run: the corpus, and what random changes make of it, the same each time.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use chunkwise_codec::crc32;
use chunkwise_fuzz::{Target, decoded};

mod changes;

use changes::Random;

/// Inputs that each target is fed with, beside the corpus; `CHUNKWISE_FUZZ_RUNS` says otherwise, and
/// `CHUNKWISE_FUZZ` names one target.
const RUNS: usize = 4_000;

/// After so long an input is taken to run for ever.  None takes a hundredth of it.
const HANGS: Duration = Duration::from_secs(60);

/// A target's inputs by name, in the order of names.
fn corpus(target: Target) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name());
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let named = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (named(path), std::fs::read(path).unwrap())).collect()
}

/// Run `work` on a thread that is given up when it does not end; the input is kept in a file.
fn bounded(target: Target, input: Vec<u8>) {
    let name = format!("{}-{:08x}", target.name(), crc32(0, &input));
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let (done, wait) = mpsc::channel();
    let copy = input.clone();
    std::thread::spawn(move || done.send(catch_unwind(|| target.run(&copy)).is_ok()));
    match wait.recv_timeout(HANGS) {
        Ok(true) => {}
        outcome => {
            std::fs::write(&kept, input).unwrap();
            let what = match outcome {
                Err(RecvTimeoutError::Timeout) => "does not end",
                _ => "fails",
            };
            panic!("the input in {} {what}", kept.display());
        }
    }
}

#[test]
fn the_corpus_and_what_random_changes_make_of_it() {
    let runs = std::env::var("CHUNKWISE_FUZZ_RUNS").ok().and_then(|runs| runs.parse().ok());
    let only = std::env::var("CHUNKWISE_FUZZ").ok();
    for target in
        Target::all().filter(|target| only.as_ref().is_none_or(|name| name == target.name()))
    {
        let seeds: Vec<Vec<u8>> = corpus(target).into_iter().map(|(_, seed)| seed).collect();
        assert!(!seeds.is_empty(), "there is no corpus of {}", target.name());
        seeds.iter().for_each(|seed| bounded(target, seed.clone()));
        let mut random = Random::new(target.name());
        for _ in 0..runs.unwrap_or(RUNS) {
            bounded(target, random.changed(&seeds));
        }
    }
}

/// A name that ends in a checksum is of a chunk that libhdf5's filters have encoded: it
/// decodes to what has this checksum.
#[test]
fn what_encoders_wrote_decodes_to_what_they_were_given() {
    let mut met = 0;
    for target in Target::all() {
        for (name, seed) in corpus(target) {
            let Some((_, checksum)) = name.split_once(".crc-") else { continue };
            let found = decoded(&seed).map(|raw| format!("{:08x}", crc32(0, &raw)));
            assert_eq!(found.as_deref(), Some(checksum), "{name}");
            met += 1;
        }
    }
    assert!(met > 50);
}
