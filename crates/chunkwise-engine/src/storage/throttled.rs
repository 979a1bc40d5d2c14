//! How does reading do on storage that is slow to answer?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::{ReadError, Storage};

/// Another storage, each of whose answers is waited for; counts its requests.
///
/// For tests: a disk or a network made slow enough to see whether its reads overlap.
pub struct ThrottledStorage {
    inner: Arc<dyn Storage>,
    latency: Duration,
    nbytes_per_s: Option<u64>,
    requests: AtomicU64,
    nbytes: AtomicU64,
}

impl ThrottledStorage {
    /// Every read takes `latency`, and as long as its bytes take at `nbytes_per_s` (None:
    /// no time).  Reads at the same time do not slow each other down.
    pub fn new(inner: Arc<dyn Storage>, latency: Duration, nbytes_per_s: Option<u64>) -> Self {
        let (requests, nbytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { inner, latency, nbytes_per_s, requests, nbytes }
    }

    /// Reads so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// Bytes read so far.
    pub fn nbytes(&self) -> u64 {
        self.nbytes.load(Relaxed)
    }
}

impl Storage for ThrottledStorage {
    fn read_at(&self, address: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.requests.fetch_add(1, Relaxed);
        self.nbytes.fetch_add(out.len() as u64, Relaxed);
        let transfer = self.nbytes_per_s.filter(|&rate| rate > 0);
        let transfer = transfer.map_or(0.0, |rate| out.len() as f64 / rate as f64);
        std::thread::sleep(self.latency + Duration::from_secs_f64(transfer));
        self.inner.read_at(address, out)
    }

    fn end(&self) -> u64 {
        self.inner.end()
    }

    fn read_at_once(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }
}
