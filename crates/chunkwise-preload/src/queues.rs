//! How do threads hand on what they note, without waiting for each other?
//!
//! Each thread writes into blocks of its own and says how many places of a block are written.  Nobody
//! changes these places again, so that a collector may read them while the thread writes on.  A thread
//! whose block is full begins another one: it waits for no collector, and nothing is lost.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// Places of a block.  Two of these stay in a processor's nearest cache.
const BLOCK_LEN: usize = 32;

struct Block<T> {
    places: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// This many places are written, the first ones.
    written: AtomicUsize,
    /// What its thread writes after it.
    next: OnceLock<Arc<Block<T>>>,
}

// SAFETY: the one writer of a block writes only places from `written` on, and the others read only those
// before; values are dropped by whichever thread drops the block.
unsafe impl<T: Send + Sync> Sync for Block<T> {}

impl<T> Block<T> {
    fn new() -> Arc<Self> {
        let places = (0..BLOCK_LEN).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect();
        Arc::new(Self { places, written: AtomicUsize::new(0), next: OnceLock::new() })
    }

    /// What is written until now.
    fn values(&self) -> &[T] {
        let written = &self.places[..self.written.load(Ordering::Acquire)];
        // SAFETY: these places hold values (`Writer::write`) that nobody changes; the cells are
        // transparent.
        unsafe { &*(std::ptr::from_ref(written) as *const [T]) }
    }
}

impl<T> Drop for Block<T> {
    fn drop(&mut self) {
        for place in &mut self.places[..*self.written.get_mut()] {
            // SAFETY: a place that is written, of a block that nobody else has.
            unsafe { place.get_mut().assume_init_drop() };
        }
    }
}

/// The end of a queue where its thread writes.
pub struct Writer<T> {
    block: Arc<Block<T>>,
    /// As its `written`, which only this changes.
    written: usize,
}

/// Both ends of a new queue.
pub fn queue<T>() -> (Writer<T>, Reader<T>) {
    let block = Block::new();
    (Writer { block: Arc::clone(&block), written: 0 }, Reader { block, read: 0 })
}

impl<T> Writer<T> {
    /// Write what is made in its place; whether a block is full now, so that it is time to collect.
    #[inline]
    pub fn write(&mut self, make: impl FnOnce() -> T) -> bool {
        if self.written == BLOCK_LEN {
            self.begin_next();
        }
        // SAFETY: nobody reads this place yet, and only this writer writes to the block: `queue` and
        // `begin_next` make one for each.
        unsafe { (*self.block.places[self.written].get()).write(make()) };
        self.written += 1;
        self.block.written.store(self.written, Ordering::Release);
        self.written == BLOCK_LEN
    }

    #[cold]
    fn begin_next(&mut self) {
        let next = Block::new();
        // Only this writer sets it.
        let _ = self.block.next.set(Arc::clone(&next));
        *self = Self { block: next, written: 0 };
    }
}

/// The end of a queue where it is collected.
pub struct Reader<T> {
    block: Arc<Block<T>>,
    /// This many places of the block are collected.
    read: usize,
}

impl<T> Reader<T> {
    /// Add what is written and not yet collected; the block and the place up to which that is all.
    fn look<'a>(&'a self, found: &mut Vec<&'a T>) -> (&'a Arc<Block<T>>, usize) {
        let (mut block, mut read) = (&self.block, self.read);
        loop {
            let values = block.values();
            found.extend(&values[read..]);
            read = values.len();
            match block.next.get() {
                // It was set when this block was full, of which that may not have been seen.
                Some(next) if read == BLOCK_LEN => (block, read) = (next, 0),
                _ => return (block, read),
            }
        }
    }

    /// Whether nothing will come any more.
    fn is_at_end(&self) -> bool {
        // Its thread lets the block go after its last value and after it has said which one is next.
        let is_alone = Arc::strong_count(&self.block) == 1;
        fence(Ordering::Acquire);
        is_alone && self.block.values().len() == self.read && self.block.next.get().is_none()
    }
}

/// Give `take` what is written in all queues and not yet collected, by `time`; forget queues whose threads
/// have ended.
pub fn collect<T>(readers: &mut Vec<Reader<T>>, time: impl Fn(&T) -> f64, take: impl FnMut(&T)) {
    let mut found = Vec::with_capacity(BLOCK_LEN);
    let looked = readers.iter().map(|reader| reader.look(&mut found));
    let ends: Vec<_> = looked.map(|(block, read)| (Arc::clone(block), read)).collect();
    // Each queue is sorted already.
    found.sort_by(|a, b| time(a).total_cmp(&time(b)));
    found.into_iter().for_each(take);
    for (reader, (block, read)) in readers.iter_mut().zip(ends) {
        *reader = Reader { block, read };
    }
    readers.retain(|reader| !reader.is_at_end());
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    /// By whom, and the how many-th: on the heap, so that one that is dropped twice or never is found.
    type Value = Box<(usize, usize)>;

    #[test]
    fn nothing_is_lost_or_told_twice_while_threads_write() {
        const THREADS: usize = 4;
        const EACH: usize = 20 * BLOCK_LEN + 7;
        let (writers, mut readers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| queue()).unzip();
        let (begin, done) = (Barrier::new(THREADS + 1), AtomicBool::new(false));
        let mut seen = [0; THREADS];
        thread::scope(|scope| {
            let (begin, done) = (&begin, &done);
            let write = |(by, mut writer): (usize, Writer<Value>)| {
                scope.spawn(move || {
                    begin.wait();
                    let full = (0..EACH).filter(|&n| writer.write(|| Box::new((by, n)))).count();
                    assert_eq!(full, EACH / BLOCK_LEN);
                })
            };
            let writing: Vec<_> = writers.into_iter().enumerate().map(write).collect();
            let waiting = scope.spawn(move || {
                writing.into_iter().for_each(|one| assert!(one.join().is_ok()));
                done.store(true, Ordering::Release);
            });
            begin.wait();
            loop {
                let last = done.load(Ordering::Acquire);
                collect(
                    &mut readers,
                    |_| 0.0,
                    |value| {
                        let (by, n) = **value;
                        assert_eq!(n, seen[by]);
                        seen[by] += 1;
                    },
                );
                if last {
                    break;
                }
            }
            assert!(waiting.join().is_ok());
        });
        assert_eq!(seen, [EACH; THREADS]);
        assert!(readers.is_empty(), "all threads have ended");
    }

    #[test]
    fn queues_are_told_in_one_order_of_time() {
        let (mut writers, mut readers): (Vec<_>, Vec<_>) = (0..3).map(|_| queue()).unzip();
        for n in 0..400_u32 {
            writers[n as usize * 7 % 3].write(|| n);
        }
        let mut seen = Vec::new();
        collect(&mut readers, |&n| f64::from(n), |&n| seen.push(n));
        assert_eq!(seen, (0..400).collect::<Vec<_>>());
        assert_eq!(readers.len(), 3);
    }

    #[test]
    fn what_is_not_collected_is_dropped_once() {
        let alive = Arc::new(());
        let (mut writer, reader) = queue();
        for _ in 0..3 * BLOCK_LEN + 5 {
            writer.write(|| Arc::clone(&alive));
        }
        drop(writer);
        assert_eq!(Arc::strong_count(&alive), 3 * BLOCK_LEN + 6);
        drop(reader);
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
