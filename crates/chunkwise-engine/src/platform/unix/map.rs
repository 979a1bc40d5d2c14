//! How are a file's bytes read as memory, when the file may shrink meanwhile?
//!
//! Touching a page of a map that the file no longer has raises SIGBUS, which ends a
//! process.  Here a handler marks the map and puts empty pages in place of it and the rest; who has
//! copied from it looks at the mark afterwards, and reads with `pread` instead, which says
//! what is missing.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use memmap2::{Mmap, MmapOptions};

/// A file's bytes as memory, as far as the file reached when the map was made.
///
/// What another program writes into the file meanwhile may be seen or not, as with `pread`.
#[derive(Debug)]
pub struct Map {
    bytes: Mmap,
    region: &'static Region,
}

/// Addresses that belong to a map, for the handler to find.
#[derive(Debug)]
struct Region {
    /// 0 when free, 1 while it is being filled in.
    start: AtomicUsize,
    len: AtomicUsize,
    /// Pages were missing.
    lost: AtomicBool,
}

/// Maps that a process may have at a time.
const REGIONS: usize = 256;
const FREE: usize = 0;
const TAKEN: usize = 1;

static REGION: [Region; REGIONS] = [const {
    Region { start: AtomicUsize::new(FREE), len: AtomicUsize::new(0), lost: AtomicBool::new(false) }
}; REGIONS];

impl Map {
    /// Map all of a file; None when it is empty, is too large for the address space, there
    /// are too many maps, or something else handles SIGBUS.
    pub fn new(file: &File) -> Option<Self> {
        let len = usize::try_from(file.metadata().ok()?.len()).ok().filter(|&len| len > 0)?;
        if !handler_is_ours() {
            return None;
        }
        // SAFETY: the file may change while it is mapped.  Bytes are only ever copied out of
        // the map; if pages vanish, the handler makes that harmless, and `is_intact` tells.
        let bytes = unsafe { MmapOptions::new().len(len).map(file) }.ok()?;
        let region = REGION.iter().find(|region| {
            let free =
                region.start.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed);
            free.is_ok()
        })?;
        region.lost.store(false, Ordering::Relaxed);
        region.len.store(len, Ordering::Release);
        region.start.store(bytes.as_ptr() as usize, Ordering::Release);
        Some(Self { bytes, region })
    }

    /// The file's bytes; those that vanished meanwhile are zeros.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether all that was touched so far was there, and a fault would be noticed.
    ///
    /// The last page of a file that has shrunk within it shows zeros without a fault: look at
    /// the file's size as well.
    pub fn is_intact(&self) -> bool {
        // After all that was read: no load of the pages may come later than that of the mark.
        fence(Ordering::Acquire);
        !self.region.lost.load(Ordering::Relaxed) && handler_is_ours()
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // Before the memory goes: its addresses may be somebody else's next.
        self.region.start.store(FREE, Ordering::Release);
    }
}

/// What handled SIGBUS before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Whether a fault comes to [`on_fault`]; installs it the first time.
fn handler_is_ours() -> bool {
    // Here and in the handler: the kernel's struct, of which all zeros are a valid value.
    // SAFETY: as said.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks only, into a struct of ours.
    if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut now) } != 0 {
        return false;
    }
    let ours = on_fault as Handler as usize;
    if now.sa_sigaction == ours {
        return true;
    }
    // Somebody who came after us, and knows nothing of our maps, is left alone.
    if BEFORE.set(now).is_err() {
        return false;
    }
    // SAFETY: see above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ours;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the handler does only what a handler may (one look at atomics, mmap).
    unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) == 0 }
}

/// Whether a fault of this thread comes to a handler: where its signal is blocked, it ends the
/// process.
pub(crate) fn faults_are_handled() -> bool {
    let mut blocked = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: asks only, into a set of ours; which is looked at once it was filled in.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), blocked.as_mut_ptr()) == 0
            && libc::sigismember(blocked.as_ptr(), libc::SIGBUS) == 0
    }
}

/// Put an empty page where a mapped one is missing; what is not ours goes to the handler
/// that was there before.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: a SA_SIGINFO handler is given a valid `info`; mmap is safe in handlers on the
    // systems this runs on, and replaces a page of a live map of ours.
    unsafe {
        let at = (*info).si_addr() as usize;
        let page = libc::sysconf(libc::_SC_PAGESIZE).max(1) as usize;
        for region in &REGION {
            let start = region.start.load(Ordering::Acquire);
            let len = region.len.load(Ordering::Acquire).next_multiple_of(page);
            // Looked at again: between the two the region may have become another map's.
            let same = region.start.load(Ordering::Acquire) == start;
            if start <= TAKEN || !same || at < start || at - start >= len {
                continue;
            }
            // Before there is anything to read, which others may do at once.
            region.lost.store(true, Ordering::Release);
            // All that follows as well: each page apart would make a mapping of its own, of
            // which a process may have some ten thousand.
            let begin = at - at % page;
            let rest = start + len - begin;
            let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let put = libc::mmap(begin as *mut c_void, rest, libc::PROT_READ, flags, -1, 0);
            if put != libc::MAP_FAILED {
                return;
            }
        }
        pass_on(signal, info, context);
    }
}

/// A fault that is none of ours.
///
/// # Safety
/// To be called from a handler of this signal, with what it was given.
unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: see `handler_is_ours`; a handler installed with SA_SIGINFO takes these three
    // arguments, another one takes the first.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        let before = BEFORE.get().unwrap_or(&default);
        match before.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                // The access is tried again, and ends the process as it would have.
                libc::sigaction(signal, &raw const default, std::ptr::null_mut());
            }
            handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
            }
            handler => std::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_shrinks_under_a_map_is_noticed() {
        let path = std::env::temp_dir().join(format!("chunkwise-map-{}", std::process::id()));
        std::fs::write(&path, vec![7; 100_000]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let map = Map::new(&file).unwrap();
        assert!(map.bytes()[50_000] == 7 && map.is_intact());
        file.set_len(10_000).unwrap();
        // Page after page is missing; each is replaced.
        assert_eq!(std::hint::black_box(map.bytes())[20_000..].iter().max(), Some(&0));
        assert_eq!(map.bytes()[5_000], 7);
        assert!(!map.is_intact());
        let other = Map::new(&file).unwrap();
        assert!(other.is_intact() && other.bytes().len() == 10_000);
    }

    #[test]
    fn an_empty_file_has_no_map() {
        let path = std::env::temp_dir().join(format!("chunkwise-empty-{}", std::process::id()));
        let file = File::create_new(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(Map::new(&file).is_none());
    }
}
