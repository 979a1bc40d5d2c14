//! What does a thread that encodes reuse from chunk to chunk?

use std::cell::RefCell;

use chunkwise_codec::{EncodeScratch, Scratch};

/// What a thread reuses from chunk to chunk.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) raw: Vec<u8>,
    pub(super) old: Vec<u8>,
    pub(super) encoding: EncodeScratch,
    pub(super) decoding: Scratch,
}

impl Buffers {
    /// Buffers larger than this are given back after a write.
    const KEEP_NBYTES: usize = 32 << 20;

    fn trim(&mut self) {
        for buffer in [&mut self.raw, &mut self.old] {
            if buffer.capacity() > Self::KEEP_NBYTES {
                *buffer = Vec::new();
            }
        }
        self.encoding.trim(Self::KEEP_NBYTES);
        self.decoding.trim(Self::KEEP_NBYTES);
    }
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Run `work` with this thread's buffers.
pub(super) fn with_buffers<T>(work: impl FnOnce(&mut Buffers) -> T) -> T {
    BUFFERS.with(|cell| match cell.try_borrow_mut() {
        Ok(mut buffers) => {
            let outcome = work(&mut buffers);
            buffers.trim();
            outcome
        }
        // Unreachable while encoding does not call back; correct if it ever does.
        Err(_) => work(&mut Buffers::default()),
    })
}
