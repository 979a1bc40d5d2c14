//! What does the environment say: of memory, and of what is reported at the end?
//!
//! `chunkwise run` sets the variables, after it has looked at them; a batch script may do so, too.
//! Threads the engine looks up by itself.

use std::sync::{Once, OnceLock};

use chunkwise_engine::{Setting, change, distrust_descriptors};

const VARIABLES: [(&str, Setting); 2] = [
    ("CHUNKWISE_CACHE_NBYTES", Setting::CacheNbytes),
    ("CHUNKWISE_PREFETCH_NBYTES", Setting::PrefetchNbytes),
];

/// Follow the variables, once; one that is no size counts for nothing.
pub fn follow() {
    static FOLLOWED: Once = Once::new();
    FOLLOWED.call_once(|| {
        // The program knows nothing of ours.
        distrust_descriptors();
        for (name, setting) in VARIABLES {
            let size = std::env::var(name).ok().and_then(|text| nbytes(text.trim()));
            if let Some(size) = size {
                change(setting, Some(size));
            }
        }
    });
}

/// Where the report goes: `-` for standard error, or a file; None for nowhere.
pub fn report() -> Option<&'static str> {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    said(&WANTED, "CHUNKWISE_REPORT")
}

/// The folder for what is traced; None where nothing is.
pub fn trace() -> Option<&'static str> {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    said(&WANTED, "CHUNKWISE_TRACE")
}

/// Whether the engine is to answer nothing.
pub fn observe_only() -> bool {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    said(&WANTED, "CHUNKWISE_OBSERVE").is_some()
}

/// Whether whole chunks are written by the engine: not with `CHUNKWISE_WRITE=0`.
pub fn write() -> bool {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    said(&WANTED, "CHUNKWISE_WRITE") != Some("0")
}

/// Chunks of this many bytes or fewer are read by libhdf5, a few at a time: tests read smaller ones.
pub fn least_read() -> Option<u64> {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    said(&WANTED, "CHUNKWISE_READ_LEAST").and_then(nbytes).map(|n| n as u64)
}

/// Fewer bytes than this are written by libhdf5: tests write less than is worth it.
pub fn least_write() -> Option<u64> {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    said(&WANTED, "CHUNKWISE_WRITE_LEAST").and_then(nbytes).map(|n| n as u64)
}

/// Look at all of them that are looked at once.
pub fn look() {
    let _ = (report(), trace(), observe_only(), write(), least_read(), least_write());
}

/// Whether anything that is read is reported.
pub fn is_reporting() -> bool {
    report().is_some() || trace().is_some()
}

/// A variable as it was at first, if it says anything.
fn said(found: &'static OnceLock<Option<String>>, name: &str) -> Option<&'static str> {
    found.get_or_init(|| std::env::var(name).ok()).as_deref().filter(|text| !text.is_empty())
}

/// `64MiB`, `64 MB`, `1000`.
fn nbytes(text: &str) -> Option<usize> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit: usize = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::nbytes;

    #[test]
    fn sizes_are_read_as_the_command_line_reads_them() {
        assert_eq!(nbytes("1000"), Some(1000));
        assert_eq!(nbytes("64MiB"), Some(64 << 20));
        assert_eq!(nbytes("2 GB"), Some(2_000_000_000));
        for wrong in ["", "MiB", "-1", "64 Mib", "99999999999GiB"] {
            assert_eq!(nbytes(wrong), None, "{wrong}");
        }
    }
}
