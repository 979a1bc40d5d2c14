//! The long run: libFuzzer searches for inputs of the target that `CHUNKWISE_FUZZ` names.

#![no_main]
#![allow(clippy::expect_used, missing_docs)]

use std::sync::OnceLock;

use chunkwise_fuzz::Target;

static TARGET: OnceLock<Target> = OnceLock::new();

fn target() -> Target {
    let name = std::env::var("CHUNKWISE_FUZZ").unwrap_or_default();
    Target::all().find(|target| target.name() == name).expect("CHUNKWISE_FUZZ names a target")
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| TARGET.get_or_init(target).run(input));
