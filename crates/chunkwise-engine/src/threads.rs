//! How many threads may this process use?

use std::num::NonZero;

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
}
