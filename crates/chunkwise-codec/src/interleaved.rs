//! How does one thread inflate several zlib streams at the same time?
//!
//! In noisy numbers nearly every symbol is a literal, and a look-up has to wait for the one before
//! it.  The look-ups of up to four streams in turns take little more time than those of one: so a
//! thread inflates noise up to twice as fast as libdeflate does.  Where there are many matches,
//! libdeflate is faster.
//!
//! Nothing here judges a stream: what is not inflated to the last byte, with the right checksum, is
//! libdeflate's to inflate or to refuse.

mod stream;
mod tables;
#[cfg(test)]
mod tests;
mod turns;

pub use stream::Job;
use stream::{Next, Stream};
use tables::{Kind, Tables};

/// Streams that are inflated at the same time.
pub const STREAMS: usize = 4;

/// More streams with matches than this do not gain.
const MIXED_STREAMS: usize = 3;

/// No stream waits until others are more bytes ahead of it: it would be alone at the end.
const MOST_AHEAD: usize = 16 << 10;

/// State that is used again; one for each thread.
#[derive(Default)]
pub struct Interleaved {
    tables: Vec<Tables>,
}

impl std::fmt::Debug for Interleaved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interleaved")
    }
}

impl Interleaved {
    /// Whether it is known to be worth a try: on processors on which it was measured.
    pub fn is_possible() -> bool {
        #[cfg(all(target_arch = "x86_64", not(feature = "simulated")))]
        return std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt");
        #[cfg(not(all(target_arch = "x86_64", not(feature = "simulated"))))]
        return false;
    }

    /// Inflate each of `jobs`, of which [`Job::done`] then says whether it went well.
    pub(crate) fn inflate(&mut self, jobs: &mut [Job<'_>]) {
        if !Self::is_possible() {
            return;
        }
        self.tables.resize_with(STREAMS, Tables::new);
        #[cfg(not(target_arch = "x86_64"))]
        inflate(&mut self.tables, jobs);
        // SAFETY: `is_possible` has found the instructions that this is compiled to.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            inflate(&mut self.tables, jobs);
        }
    }
}

#[cfg_attr(target_arch = "x86_64", target_feature(enable = "bmi1,bmi2,lzcnt"))]
fn inflate(tables: &mut [Tables], jobs: &mut [Job<'_>]) {
    let (mut waiting, mut free) = (jobs.iter_mut(), tables.iter_mut().collect::<Vec<_>>());
    let mut live: Vec<Stream<'_>> = Vec::with_capacity(STREAMS);
    loop {
        while let Some(tables) = free.pop() {
            let Some(job) = waiting.next() else { break };
            live.push(Stream::new(job, tables));
            let place = live.len() - 1;
            let next = live[place].begin();
            end_unless_symbols(next, place, &mut live, &mut free);
        }
        // Streams in blocks of the other kind wait until they are more, or far behind.
        let mixed = live.iter().filter(|stream| stream.kind == Kind::Mixed).count();
        let usual = if 2 * mixed <= live.len() { Kind::Literals } else { Kind::Mixed };
        let ahead = live.iter().map(|stream| stream.at).max().unwrap_or(0);
        let last = live.iter().min_by_key(|stream| stream.at);
        let kind = match last {
            Some(last) if ahead - last.at > MOST_AHEAD => last.kind,
            _ => usual,
        };
        let (kind, count) = match kind {
            Kind::Literals => (kind, live.len() - mixed),
            Kind::Mixed => (kind, mixed.min(MIXED_STREAMS)),
        };
        let place_of = |stream: &Stream<'_>| (stream.kind != kind, stream.at);
        if !live.is_sorted_by_key(place_of) {
            live.sort_unstable_by_key(place_of);
        }
        let Some((place, why)) = turns::run(kind, &mut live[..count]) else { return };
        let next = live[place].resume(why);
        end_unless_symbols(next, place, &mut live, &mut free);
    }
}

/// Let a stream go that has ended, or is damaged.
fn end_unless_symbols<'a>(
    next: Option<Next>,
    place: usize,
    live: &mut Vec<Stream<'a>>,
    free: &mut Vec<&'a mut Tables>,
) {
    if next != Some(Next::Symbols) {
        let mut stream = live.swap_remove(place);
        if next == Some(Next::End) {
            stream.finish();
        }
        free.push(stream.tables);
    }
}
