//! In which arithmetic does the calling thread compute?
//!
//! A program may have invalid numbers trapped, round otherwise than to the nearest, or take tiny
//! numbers for zero, and may ask later what was signalled.  libhdf5 converts numbers in that
//! arithmetic.  The engine works in the one that threads begin with, on this thread as on its own,
//! and leaves what the program has as it was.

/// The arithmetic that threads begin with, until this is dropped; then the program's again.
pub struct Usual {
    former: Word,
}

impl Usual {
    /// Begin.
    pub fn begin() -> Self {
        let former = word();
        set(BEGINNING);
        Self { former }
    }

    /// Whether the program computes in another arithmetic.
    pub fn differs(&self) -> bool {
        settings(self.former) != settings(BEGINNING)
    }
}

impl Drop for Usual {
    fn drop(&mut self) {
        set(self.former);
    }
}

#[cfg(target_arch = "x86_64")]
use x86_64::{BEGINNING, Word, set, settings, word};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::asm;

    /// What is set, and what was signalled.
    pub type Word = u32;
    /// All exceptions masked, to the nearest, nothing signalled.
    pub const BEGINNING: Word = 0x1F80;

    pub fn settings(word: Word) -> Word {
        // Below are the signals.
        word & !0x3F
    }

    pub fn word() -> Word {
        let mut word: Word = 0;
        // SAFETY: stores four bytes where they belong.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags));
        }
        word
    }

    pub fn set(word: Word) {
        // SAFETY: what was read, or what threads begin with.
        unsafe {
            asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags));
        }
    }
}

#[cfg(target_arch = "aarch64")]
use aarch64::{BEGINNING, Word, set, settings, word};

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use std::arch::asm;

    /// What is set, and what was signalled.
    pub type Word = (u64, u64);
    /// Nothing trapped, to the nearest, nothing signalled.
    pub const BEGINNING: Word = (0, 0);

    pub fn settings(word: Word) -> u64 {
        word.0
    }

    pub fn word() -> Word {
        let (control, signals): (u64, u64);
        // SAFETY: reads two registers.
        unsafe {
            asm!("mrs {}, fpcr", "mrs {}, fpsr", out(reg) control, out(reg) signals, options(nostack));
        }
        (control, signals)
    }

    pub fn set((control, signals): Word) {
        // SAFETY: what was read, or what threads begin with.
        unsafe {
            asm!("msr fpcr, {}", "msr fpsr, {}", in(reg) control, in(reg) signals, options(nostack));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BEGINNING, Usual, settings, word};

    #[test]
    fn what_was_signalled_stays_the_programs() {
        let before = word();
        let usual = Usual::begin();
        assert!(!usual.differs());
        assert_eq!(word(), BEGINNING);
        let third = std::hint::black_box(1.0f64) / std::hint::black_box(3.0);
        assert!(third > 0.0 && settings(word()) == settings(BEGINNING));
        drop(usual);
        assert_eq!(word(), before);
    }
}
