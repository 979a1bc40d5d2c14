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

/// Let this thread take no signals but those of its own faults: a program's handlers run on the
/// program's own threads.
///
/// A fault whose signal is blocked ends the process, and a map of a file that shrinks is one.
pub(crate) fn take_no_signals() {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let faults = [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];
    // SAFETY: the first call fills the set, others change it; the last reads it, and changes this
    // thread alone.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        for fault in faults {
            libc::sigdelset(all.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
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
    fn a_thread_takes_its_faults_even_where_its_parent_took_none() {
        let thread = std::thread::spawn(|| {
            let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: each call fills the set, or reads it after that; the masks are this thread's.
            unsafe {
                libc::sigfillset(set.as_mut_ptr());
                libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
                take_no_signals();
                libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), set.as_mut_ptr());
                [libc::SIGBUS, libc::SIGSEGV, libc::SIGINT, libc::SIGTERM]
                    .map(|signal| libc::sigismember(set.as_ptr(), signal))
            }
        });
        assert_eq!(thread.join().unwrap(), [0, 0, 1, 1]);
    }

    #[test]
    fn the_least_number_of_threads_wins() {
        let some = |text: &str| Some(text.to_string());
        assert_eq!(least_threads(8, &[None, None]), 8);
        assert_eq!(least_threads(8, &[some("4"), some("2")]), 2);
        assert_eq!(least_threads(2, &[some("4"), None]), 2);
        assert_eq!(least_threads(8, &[some("0"), some("many")]), 8);
    }
}
