//! How many threads and how many bytes may this process use?
//!
//! One table of atomics, which every read and write looks at when it begins.  What was chosen
//! stays in force in a forked child; a program that is started anew begins with the defaults.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::memory::memory_share;
use crate::threads::thread_limit;

/// What may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Threads that one read or write uses, the calling one included.
    Threads,
    /// Bytes of decoded chunks that are kept for later reads, of all datasets; 0 keeps none.
    CacheNbytes,
    /// Bytes of chunks that were written in part and wait to be complete.
    WriteBufferNbytes,
    /// Stored bytes that are read before they are wanted; at 0 no chunk is decoded ahead either.
    PrefetchNbytes,
}

/// Nobody has said anything, or nobody has looked yet.
const UNSET: usize = usize::MAX;

static CHOSEN: [AtomicUsize; 4] = [const { AtomicUsize::new(UNSET) }; 4];
static DEFAULTS: [AtomicUsize; 4] = [const { AtomicUsize::new(UNSET) }; 4];

impl Setting {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Threads, Self::CacheNbytes, Self::WriteBufferNbytes, Self::PrefetchNbytes];

    /// As users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::CacheNbytes => "cache_nbytes",
            Self::WriteBufferNbytes => "write_buffer_nbytes",
            Self::PrefetchNbytes => "prefetch_nbytes",
        }
    }

    /// The value in force; a number of threads is at least 1.
    pub fn value(self) -> usize {
        match (CHOSEN[self as usize].load(Relaxed), self) {
            // Counted each time, as the processors that a process may use change.
            (UNSET, Self::Threads) => thread_limit().min(DEFAULTS[0].load(Relaxed)).max(1),
            (UNSET, _) => found_once(&DEFAULTS[self as usize], || self.of_the_machine()),
            (chosen, Self::Threads) => chosen.max(1),
            (chosen, _) => chosen,
        }
    }

    /// What is in force where nobody says otherwise: no more than this share of the control
    /// group's memory, so that all of them together, with what threads work in, stay below it.
    fn of_the_machine(self) -> usize {
        match self {
            Self::Threads => thread_limit(),
            Self::CacheNbytes | Self::WriteBufferNbytes => memory_share(256 << 20, 4),
            Self::PrefetchNbytes => memory_share(64 << 20, 16),
        }
    }

    /// Note what was chosen, None for the default; gives what was before.
    pub(crate) fn choose(self, value: Option<usize>) -> Option<usize> {
        swap(&CHOSEN[self as usize], value)
    }

    /// Note what shall be the default instead of what the machine has; of threads, the most.
    pub(crate) fn choose_default(self, value: Option<usize>) {
        swap(&DEFAULTS[self as usize], value);
    }
}

fn swap(place: &AtomicUsize, value: Option<usize>) -> Option<usize> {
    let former = place.swap(value.map_or(UNSET, |value| value.min(UNSET - 1)), Relaxed);
    (former != UNSET).then_some(former)
}

/// What is there, or what `find` gives: the same, whichever thread is first.
fn found_once(place: &AtomicUsize, find: impl FnOnce() -> usize) -> usize {
    match place.load(Relaxed) {
        UNSET => {
            let found = find().min(UNSET - 1);
            // Somebody may have said otherwise meanwhile.
            place.compare_exchange(UNSET, found, Relaxed, Relaxed).err().unwrap_or(found)
        }
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, as all tests of a program share the table.
    #[test]
    fn what_is_chosen_is_in_force_until_it_is_taken_back() {
        for setting in Setting::ALL {
            let default = setting.value();
            assert_eq!(setting.choose(Some(3)), None);
            assert_eq!(setting.value(), 3);
            assert_eq!(setting.choose(Some(5)), Some(3));
            assert_eq!(setting.choose(None), Some(5));
            assert_eq!(setting.value(), default);
        }
        // The largest is not taken for none.
        Setting::WriteBufferNbytes.choose(Some(usize::MAX));
        assert_eq!(Setting::WriteBufferNbytes.value(), usize::MAX - 1);
        Setting::WriteBufferNbytes.choose(None);
        assert_eq!(Setting::Threads.choose(Some(0)), None);
        assert_eq!(Setting::Threads.value(), 1);
        Setting::Threads.choose(None);
        // Another default: for sizes it counts instead of the machine's, for threads beside it.
        let most = thread_limit();
        for setting in Setting::ALL {
            setting.choose_default(Some(1 << 40));
            let threads = setting == Setting::Threads;
            assert_eq!(setting.value(), if threads { most } else { 1 << 40 });
            setting.choose_default(Some(1));
            assert_eq!(setting.value(), 1);
            setting.choose_default(None);
        }
    }
}
