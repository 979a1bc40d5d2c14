//! How many threads, and how much memory, may this process use?

use std::num::NonZero;
use std::path::{Path, PathBuf};

/// Threads that reading may use: the least of the process's affinity and control-group
/// quota, `SLURM_CPUS_PER_TASK` and `CHUNKWISE_THREADS`; at least 1.
pub fn thread_limit() -> usize {
    // Affinity and quota are both what the standard library's figure is made of.
    let machine = std::thread::available_parallelism().map_or(1, NonZero::get);
    let variables = ["SLURM_CPUS_PER_TASK", "CHUNKWISE_THREADS"].map(|v| std::env::var(v).ok());
    least_threads(machine, &variables)
}

/// The least of `machine` and the variables that hold a positive number.
fn least_threads(machine: usize, variables: &[Option<String>]) -> usize {
    let named = variables.iter().flatten().filter_map(|v| v.trim().parse::<usize>().ok());
    named.filter(|&n| n > 0).fold(machine.max(1), usize::min)
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
    fn the_least_number_of_threads_wins() {
        let some = |text: &str| Some(text.to_string());
        assert_eq!(least_threads(8, &[None, None]), 8);
        assert_eq!(least_threads(8, &[some("4"), some("2")]), 2);
        assert_eq!(least_threads(2, &[some("4"), None]), 2);
        assert_eq!(least_threads(8, &[some("0"), some("many")]), 8);
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
