//! What does a thread that decodes reuse from chunk to chunk?

use crate::interleaved::Job;
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

impl Scratch {
    /// Inflate each of `jobs`, of which [`Job::done`] then says whether it went well: by libdeflate one
    /// after another, or at the same time.
    pub fn inflate(&mut self, jobs: &mut [Job<'_>], together: bool) {
        let State { inflater, interleaved, .. } = &mut self.state;
        if together {
            return interleaved.inflate(jobs);
        }
        for job in jobs {
            job.done = inflater.inflate_exactly(job.stored, job.out);
        }
    }
}
