//! What does a thread that decodes reuse from chunk to chunk?

use crate::state::State;

/// Buffers and state that decoding reuses; one for each thread.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) buffers: [Vec<u8>; 2],
    pub(crate) state: State,
}

impl Scratch {
    /// Give back buffers of more than `most` bytes.
    pub fn trim(&mut self, most: usize) {
        let State { packed, planes, block, .. } = &mut self.state;
        for buffer in self.buffers.iter_mut().chain([packed, planes, block]) {
            if buffer.capacity() > most {
                *buffer = Vec::new();
            }
        }
    }
}

impl Scratch {
    /// Bytes that buffers take.
    #[cfg(test)]
    pub(crate) fn nbytes(&self) -> usize {
        let State { packed, planes, block, .. } = &self.state;
        self.buffers.iter().chain([packed, planes, block]).map(Vec::capacity).sum()
    }
}
