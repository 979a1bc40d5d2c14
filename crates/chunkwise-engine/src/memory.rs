//! How much memory may a read or a write take?
//!
//! Beside the caller's array it takes three things, each with a limit of its own (`docs/memory.md`
//! has the formula, and a test measures it):
//!
//! * What threads work in, three chunks each. Fewer threads decode where that is more than
//!   [`work_nbytes`] ([`most_threads`]).
//! * Stored bytes that wait to be decoded: `prefetch_nbytes` (`fetch`, `prefetch`).
//! * What is kept for later: `cache_nbytes` (`cache`) and `write_buffer_nbytes` (`write/dirty`).
//!
//! The last two are set in `settings`. What nobody has set is at most a share of the control
//! group's memory ([`memory_share`]).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// 0 until somebody asks.
static WORK_NBYTES: AtomicUsize = AtomicUsize::new(0);

/// Memory in which threads decode and encode, as long as a single chunk, stored and decoded, fits
/// into it.
pub fn work_nbytes() -> usize {
    match WORK_NBYTES.load(Relaxed) {
        0 => {
            let found = memory_share(512 << 20, 4).max(1);
            // The same for all, whichever thread is first.
            WORK_NBYTES.compare_exchange(0, found, Relaxed, Relaxed).err().unwrap_or(found)
        }
        known => known,
    }
}

/// How many of `threads` may decode chunks of that size at the same time in `work_nbytes`: a
/// stored chunk, a decoded one, and one between two filters each; at least one.
pub fn most_threads(chunk_nbytes: u64, threads: usize, work_nbytes: usize) -> usize {
    let chunks = work_nbytes as u64 / chunk_nbytes.saturating_mul(3).max(1);
    usize::try_from(chunks).map_or(threads, |most| threads.min(most)).max(1)
}

/// `most` bytes, or the control group's memory limit divided by `fraction` where that is less.
pub fn memory_share(most: usize, fraction: u64) -> usize {
    let limit = cgroup_memory_limit(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup"));
    within(limit, most, fraction)
}

fn within(limit: Option<u64>, most: usize, fraction: u64) -> usize {
    limit
        .and_then(|nbytes| usize::try_from(nbytes / fraction).ok())
        .map_or(most, |share| share.min(most))
}

/// The smallest memory limit among this process's control group and those above it,
/// for version 2 (`memory.max`) and version 1 (`memory.limit_in_bytes`).
fn cgroup_memory_limit(membership: &Path, root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(membership).ok()?;
    let mut limits = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (base, file): (PathBuf, &str) = if controllers.is_empty() {
            (root.to_path_buf(), "memory.max")
        } else if controllers.split(',').any(|c| c == "memory") {
            (root.join("memory"), "memory.limit_in_bytes")
        } else {
            continue;
        };
        // Within a container the group's path may lie outside what is mounted; the
        // mount's own root then holds the limit.
        let mut at = base.join(group.trim_start_matches('/'));
        while at.starts_with(&base) {
            let limit = std::fs::read_to_string(at.join(file));
            limits.extend(limit.ok().and_then(|l| l.trim().parse::<u64>().ok()));
            if !at.pop() {
                break;
            }
        }
    }
    limits.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_chunks_are_decoded_by_few_threads() {
        let most = |chunk_nbytes| most_threads(chunk_nbytes, 64, 512 << 20);
        assert_eq!([1 << 20, 40 << 20, 1 << 33, u64::MAX].map(most), [64, 4, 1, 1]);
        assert_eq!(most_threads(40 << 20, 64, 0), 1);
        assert!((1..=512 << 20).contains(&work_nbytes()));
    }

    #[test]
    fn memory_stays_within_the_control_group() {
        let dir = std::env::temp_dir().join(format!("chunkwise-cgroup-{}", std::process::id()));
        let inner = dir.join("job/step");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(dir.join("membership"), "0::/job/step\n").unwrap();
        std::fs::write(inner.join("memory.max"), "max\n").unwrap();
        std::fs::write(dir.join("job/memory.max"), "400000000\n").unwrap();
        let limit = cgroup_memory_limit(&dir.join("membership"), &dir);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(limit, Some(400_000_000));
        assert_eq!(within(limit, 256 << 20, 4), 100_000_000);
        assert_eq!(within(None, 1000, 4), 1000);
        assert_eq!(within(Some(1 << 40), 1000, 4), 1000);
    }

    /// As a container sees it: its own group is the mount's root, whatever the path says.
    #[test]
    fn a_limit_of_version_1_counts() {
        let dir = std::env::temp_dir().join(format!("chunkwise-cgroup1-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("memory")).unwrap();
        let members = "3:cpu,cpuacct:/docker/abc\n2:memory:/docker/abc\n";
        std::fs::write(dir.join("membership"), members).unwrap();
        let file = dir.join("memory/memory.limit_in_bytes");
        // No limit is the largest whole number of pages.
        std::fs::write(&file, "9223372036854771712\n").unwrap();
        let none = cgroup_memory_limit(&dir.join("membership"), &dir);
        std::fs::write(&file, "536870912\n").unwrap();
        let some = cgroup_memory_limit(&dir.join("membership"), &dir);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(within(none, 256 << 20, 4), 256 << 20);
        assert_eq!(within(some, 256 << 20, 4), 128 << 20);
    }
}
