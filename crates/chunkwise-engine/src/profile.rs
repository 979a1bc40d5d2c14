//! Where does the engine's own time go, while somebody wants to know?
//!
//! Off, this costs one look at a flag; on, two looks at the clock for each piece of work.
//! The thread that reads or writes and the pool's threads are counted separately: what the first does or
//! waits for makes up the time of a read, while the others work beside it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use chunkwise_codec::FilterKind;

/// Copying fewer bytes than this is never timed, as two looks at the clock take as long.
pub(crate) const TIMED_NBYTES: u64 = 4 << 10;

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Listing the chunk index.
    Index,
    /// Reading stored bytes.
    Storage,
    /// Copying elements to their places, or out of them, except a few at a time, and fill
    /// values.
    Scatter,
    /// Waiting for other threads.
    Waiting,
    /// Handing encoded chunks over.
    Commit,
    /// Undoing a filter.
    Decode(FilterKind),
    /// Applying one.
    Encode(FilterKind),
}

const FILTERS: usize = FilterKind::ALL.len();
const PHASES: usize = 5 + 2 * FILTERS;

impl Phase {
    fn position(self) -> usize {
        match self {
            Self::Index => 0,
            Self::Storage => 1,
            Self::Scatter => 2,
            Self::Waiting => 3,
            Self::Commit => 4,
            Self::Decode(filter) => 5 + filter as usize,
            Self::Encode(filter) => 5 + FILTERS + filter as usize,
        }
    }
}

/// Time by phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhaseTimes([Duration; PHASES]);

impl PhaseTimes {
    /// The time of one phase.
    pub fn of(&self, phase: Phase) -> Duration {
        self.0[phase.position()]
    }
}

/// What was measured since the process began, while measuring was on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Profile {
    /// By threads that read or write.
    pub readers: PhaseTimes,
    /// By the pool's threads, all together.
    pub pool: PhaseTimes,
}

type Sums = [AtomicU64; PHASES];

static ON: AtomicBool = AtomicBool::new(false);
static READERS: Sums = [const { AtomicU64::new(0) }; PHASES];
static POOL: Sums = [const { AtomicU64::new(0) }; PHASES];

/// Begin or end measuring in this process.
pub fn set_profiling(on: bool) {
    ON.store(on, Relaxed);
}

/// What was measured so far.
pub fn profile() -> Profile {
    let times = |sums: &Sums| {
        PhaseTimes(std::array::from_fn(|i| Duration::from_nanos(sums[i].load(Relaxed))))
    };
    Profile { readers: times(&READERS), pool: times(&POOL) }
}

fn add(phase: Phase, took: Duration) {
    let sums = if rayon::current_thread_index().is_some() { &POOL } else { &READERS };
    sums[phase.position()].fetch_add(took.as_nanos() as u64, Relaxed);
}

/// Do something that belongs to a phase.
pub fn timed<T>(phase: Phase, work: impl FnOnce() -> T) -> T {
    if !ON.load(Relaxed) {
        return work();
    }
    let begun = Instant::now();
    let outcome = work();
    add(phase, begun.elapsed());
    outcome
}

/// Phases that follow each other without a gap.
pub(crate) struct Laps(Option<Instant>);

impl Laps {
    pub(crate) fn begin() -> Self {
        Self(ON.load(Relaxed).then(Instant::now))
    }

    /// What was done since the last lap belongs to `phase`.
    pub(crate) fn end(&mut self, phase: Phase) {
        if let Some(begun) = &mut self.0 {
            let now = Instant::now();
            add(phase, now.duration_since(*begun));
            *begun = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the phases, only this test uses the index: others run beside it.
    #[test]
    fn time_is_added_while_measuring_is_on() {
        let slow = || std::thread::sleep(Duration::from_millis(2));
        let index = || profile().readers.of(Phase::Index);
        let mut laps = Laps::begin();
        timed(Phase::Index, slow);
        laps.end(Phase::Index);
        assert_eq!(index(), Duration::ZERO);
        set_profiling(true);
        assert_eq!(timed(Phase::Index, || 7), 7);
        let mut laps = Laps::begin();
        slow();
        laps.end(Phase::Index);
        let first = index();
        assert!(first >= Duration::from_millis(2));
        slow();
        laps.end(Phase::Index);
        assert!(index() >= first + Duration::from_millis(2));
        set_profiling(false);
        assert_eq!(profile().pool.of(Phase::Index), Duration::ZERO);
    }
}
