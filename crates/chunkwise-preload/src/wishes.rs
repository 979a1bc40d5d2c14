//! What does the environment say of memory and of threads?
//!
//! `chunkwise run` sets the variables, after it has looked at them; a batch script may do so, too.
//! Threads the engine looks up by itself.

use std::sync::Once;

use chunkwise_engine::{Setting, change};

const VARIABLES: [(&str, Setting); 2] = [
    ("CHUNKWISE_CACHE_NBYTES", Setting::CacheNbytes),
    ("CHUNKWISE_PREFETCH_NBYTES", Setting::PrefetchNbytes),
];

/// Follow the variables, once; one that is no size counts for nothing.
pub fn follow() {
    static FOLLOWED: Once = Once::new();
    FOLLOWED.call_once(|| {
        for (name, setting) in VARIABLES {
            let size = std::env::var(name).ok().and_then(|text| nbytes(text.trim()));
            if let Some(size) = size {
                change(setting, Some(size));
            }
        }
    });
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
