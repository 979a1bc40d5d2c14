//! How do threads agree on one value, without a lock that a forked child may find held?
//!
//! The first value that is published is the one that all get; a thread that comes second gets it too,
//! and its own is dropped.  So a thread that makes a value uses what these return, never what it has made.

use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A place for one value.
///
/// What is in it is never changed, and freed with the place alone; what is taken out of it is leaked,
/// because other threads may be using it.
pub struct Published<T> {
    /// Null, or from `Box::into_raw`.
    place: AtomicPtr<T>,
    /// Shared and sent as this would be, which also holds what any thread has made.
    as_if: PhantomData<OnceLock<T>>,
}

impl<T> Published<T> {
    /// A place with nothing in it.
    pub const fn nothing() -> Self {
        Self { place: AtomicPtr::new(null_mut()), as_if: PhantomData }
    }

    /// What is in it.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: null, or from Box::into_raw and freed with `self` alone.
        unsafe { self.place.load(Ordering::Acquire).as_ref() }
    }

    /// What is in it, made now if there is nothing.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        self.get_or_replace(|_| true, make)
    }

    /// What is in it if that will do, and otherwise what is made now, or by another thread meanwhile.
    pub fn get_or_replace(&self, will_do: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> &T {
        let former = self.place.load(Ordering::Acquire);
        // SAFETY: as in `get`.
        match unsafe { former.as_ref() } {
            Some(there) if will_do(there) => there,
            _ => self.exchange(former, Box::new(make())).unwrap_or_else(|(there, _)| there),
        }
    }

    /// Put a value in the place of `former`; what another thread has put there, with the value.
    fn exchange(&self, former: *mut T, value: Box<T>) -> Result<&T, (&T, Box<T>)> {
        let fresh = Box::into_raw(value);
        match self.place.compare_exchange(former, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: published just now, and freed with `self` alone.
            Ok(_) => Ok(unsafe { &*fresh }),
            // SAFETY: `other` was published, as nothing but `forget` puts null there, after a fork,
            // where there are no other threads.  `fresh` was not published.
            Err(other) => Err(unsafe { (&*other, Box::from_raw(fresh)) }),
        }
    }

    /// Put another value there for all who ask from now on.
    pub fn replace(&self, value: T) {
        self.place.store(Box::into_raw(Box::new(value)), Ordering::Release);
    }

    /// Leave the place with nothing in it; one store, which a forked child may do, before it has
    /// threads of its own.
    pub fn forget(&self) {
        self.place.store(null_mut(), Ordering::Release);
    }
}

impl<T> Drop for Published<T> {
    fn drop(&mut self) {
        let there = *self.place.get_mut();
        if !there.is_null() {
            // SAFETY: from Box::into_raw, and nobody borrows from `self` any more.
            drop(unsafe { Box::from_raw(there) });
        }
    }
}

/// Places for up to `N` values, each of which is there once.
///
/// Values only come, and each is put into the first place that is free, counted from a start that
/// depends on the value alone.  So all threads that look for it find the same one.
pub struct PublishedSet<T, const N: usize>([Published<T>; N]);

impl<T, const N: usize> PublishedSet<T, N> {
    /// Places with nothing in them.
    pub const fn nothing() -> Self {
        Self([const { Published::nothing() }; N])
    }

    /// The value that `is_it`, made now if there is none; None if `make` gives none, or if there is
    /// neither the value nor a place for it.
    #[inline]
    pub fn find_or_make(
        &self,
        start: usize,
        is_it: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Option<T>,
    ) -> Option<&T> {
        let mut make = Some(make);
        let mut fresh = None;
        for step in 0..N {
            let place = &self.0[(start % N + step) % N];
            let there = match place.get() {
                Some(there) => there,
                None => {
                    let value = match fresh.take() {
                        Some(value) => value,
                        None => Box::new(make.take()?()?),
                    };
                    match place.exchange(null_mut(), value) {
                        Ok(own) => return Some(own),
                        Err((there, own)) => {
                            fresh = Some(own);
                            there
                        }
                    }
                }
            };
            if is_it(there) {
                return Some(there);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use proptest::prelude::*;

    use super::*;

    const THREADS: usize = 4;

    /// A value that counts how many of its kind there are.
    struct Counted<'a> {
        key: usize,
        maker: usize,
        alive: &'a AtomicUsize,
    }

    impl<'a> Counted<'a> {
        fn new(key: usize, maker: usize, alive: &'a AtomicUsize) -> Self {
            alive.fetch_add(1, Ordering::Relaxed);
            Self { key, maker, alive }
        }
    }

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.alive.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// What each of several threads gives that begin at the same moment.
    fn together<R: Send>(work: impl Fn(usize) -> R + Sync) -> Vec<R> {
        let barrier = Barrier::new(THREADS);
        thread::scope(|scope| {
            let started: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (barrier, work) = (&barrier, &work);
                    scope.spawn(move || {
                        barrier.wait();
                        work(thread)
                    })
                })
                .collect();
            started.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    #[test]
    fn all_threads_get_the_same_value_and_the_others_are_dropped() {
        for _ in 0..500 {
            let alive = AtomicUsize::new(0);
            let place = Published::nothing();
            let got =
                together(|thread| place.get_or_make(|| Counted::new(0, thread, &alive)).maker);
            assert!(got.iter().all(|&maker| maker == got[0]));
            assert_eq!(place.get().unwrap().maker, got[0]);
            assert_eq!(alive.load(Ordering::Relaxed), 1);
            drop(place);
            assert_eq!(alive.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn what_will_not_do_is_replaced_once() {
        for _ in 0..200 {
            let place = Published::nothing();
            place.get_or_make(|| (0, 0));
            let got =
                together(|thread| *place.get_or_replace(|value| value.0 == 1, || (1, thread)));
            assert!(got.iter().all(|&value| value == got[0] && value.0 == 1));
        }
    }

    #[test]
    fn what_is_forgotten_or_replaced_is_made_no_more_than_needed() {
        let place = Published::nothing();
        assert!(place.get().is_none());
        assert_eq!(*place.get_or_make(|| 1), 1);
        assert_eq!(*place.get_or_make(|| unreachable!()), 1);
        place.replace(2);
        assert_eq!(place.get(), Some(&2));
        place.forget();
        assert_eq!(*place.get_or_make(|| 3), 3);
    }

    /// Threads look for values in an order of their own, mostly for the same ones at the same time.
    fn each_is_there_once<const N: usize>(keys: &[usize], starts: usize) {
        let alive = AtomicUsize::new(0);
        let set: PublishedSet<Counted<'_>, N> = PublishedSet::nothing();
        let got = together(|thread| {
            let order = (0..keys.len()).map(|n| (n + thread % 2) % keys.len());
            let mut found: Vec<_> = order
                .map(|n| {
                    let key = keys[n];
                    let start = (key % starts).wrapping_sub(1);
                    let value = set.find_or_make(
                        start,
                        |value| value.key == key,
                        || Some(Counted::new(key, thread, &alive)),
                    );
                    (key, value.map(std::ptr::from_ref).map(<*const _>::addr))
                })
                .collect();
            found.sort_unstable();
            found
        });
        let mut different = keys.to_vec();
        different.sort_unstable();
        different.dedup();
        let stored = set.0.iter().filter_map(Published::get).map(|value| value.key);
        let mut stored: Vec<_> = stored.collect();
        stored.sort_unstable();
        assert_eq!(stored.len(), different.len().min(N));
        assert!(stored.windows(2).all(|pair| pair[0] < pair[1]), "{stored:?}");
        // Those for which there is no place were dropped.
        assert_eq!(alive.load(Ordering::Relaxed), stored.len());
        for found in &got {
            for &(key, value) in found {
                assert_eq!(value.is_some(), stored.contains(&key));
            }
        }
        if different.len() <= N {
            assert!(got.iter().all(|found| *found == got[0]));
        }
    }

    proptest! {
        #[test]
        fn each_value_is_in_a_set_once_and_all_threads_get_it(
            keys in prop::collection::vec(0usize..12, 1..30),
            starts in 1usize..5,
        ) {
            each_is_there_once::<16>(&keys, starts);
            each_is_there_once::<5>(&keys, starts);
        }
    }

    #[test]
    fn what_cannot_be_made_takes_no_place() {
        let set: PublishedSet<usize, 2> = PublishedSet::nothing();
        assert_eq!(set.find_or_make(7, |&value| value == 1, || None), None);
        assert_eq!(set.find_or_make(7, |&value| value == 1, || Some(1)), Some(&1));
        assert_eq!(set.find_or_make(7, |&value| value == 2, || Some(2)), Some(&2));
        assert_eq!(set.find_or_make(7, |&value| value == 3, || unreachable!()), None);
        assert_eq!(set.find_or_make(7, |&value| value == 1, || unreachable!()), Some(&1));
    }
}
