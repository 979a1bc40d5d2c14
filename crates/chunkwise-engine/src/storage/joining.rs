//! What does a request to a storage cost, and which are joined for that?

/// The most bytes between two pieces that are read rather than skipped, whatever a request costs.
const MOST_GAP_NBYTES: u64 = 1 << 20;

/// What reading costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageCost {
    /// Nanoseconds until the first byte of an answer comes.
    pub latency_ns: u64,
    /// Bytes that come in a second, of all requests together.
    pub nbytes_per_s: u64,
    /// More bytes than this take several requests.
    pub request_nbytes: u64,
    /// Requests that are worth having under way at a time.
    pub in_flight: usize,
}

impl StorageCost {
    /// A local disk's: a request is a system call, which costs as much as copying 16 KiB.
    pub const LOCAL: Self = Self {
        latency_ns: 4_000,
        nbytes_per_s: 16_384_000_000,
        request_nbytes: 1 << 20,
        in_flight: 4,
    };

    /// Whether requests are to be made together and ahead, as waiting for each would take longer
    /// than all else.
    pub fn is_remote(&self) -> bool {
        self.latency_ns > 200_000
    }

    /// Bytes between two pieces that are rather read than skipped: what comes in the time that a
    /// request takes up one of the places for requests under way.
    pub fn gap_nbytes(&self) -> u64 {
        let nbytes = u128::from(self.latency_ns) * u128::from(self.nbytes_per_s) / 1_000_000_000;
        let places = if self.is_remote() { self.in_flight.max(1) as u128 } else { 4 };
        u64::try_from(nbytes / places).unwrap_or(u64::MAX).min(MOST_GAP_NBYTES)
    }

    /// Bytes of one request for `run` and for what is wanted `next` (addresses and bytes), where it
    /// brings both sooner than two do; None where it does not.
    pub fn joined(&self, run: (u64, u64), next: (u64, u64)) -> Option<u64> {
        joined(run, next, (self.gap_nbytes(), self.request_nbytes))
    }

    /// Threads that read ahead.
    pub fn fetchers(&self) -> u64 {
        self.in_flight.clamp(1, if self.is_remote() { 16 } else { 4 }) as u64
    }

    /// Requests that one of them makes at a time.
    pub fn requests_a_fetcher(&self) -> u64 {
        if self.is_remote() { (self.in_flight as u64).div_ceil(self.fetchers()).max(1) } else { 1 }
    }
}

/// As [`StorageCost::joined`], where the most bytes between both and in all are known.
pub(crate) fn joined(
    (address, nbytes): (u64, u64),
    (next, len): (u64, u64),
    (most_gap, most): (u64, u64),
) -> Option<u64> {
    let gap = next.checked_sub(address.checked_add(nbytes)?)?;
    let together = next.checked_add(len)?.checked_sub(address)?;
    (gap <= most_gap && together <= most).then_some(together)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_worth_what_a_request_costs() {
        assert_eq!(StorageCost::LOCAL.gap_nbytes(), 16 << 10);
        let far = StorageCost {
            latency_ns: 50_000_000,
            nbytes_per_s: 200_000_000,
            request_nbytes: 8 << 20,
            in_flight: 100,
        };
        assert!(far.is_remote() && !StorageCost::LOCAL.is_remote());
        assert_eq!(far.gap_nbytes(), 100_000);
        assert_eq!((far.fetchers(), far.requests_a_fetcher()), (16, 7));
        // Up to that gap, and to the size of a request.
        assert_eq!(far.joined((10, 20), (100_030, 5)), Some(100_025));
        assert_eq!(far.joined((10, 20), (100_031, 5)), None);
        assert_eq!(far.joined((10, 20), (29, 5)), None);
        assert_eq!(far.joined((0, 4 << 20), (4 << 20, 4 << 20)), Some(8 << 20));
        assert_eq!(far.joined((0, 4 << 20), (4 << 20, (4 << 20) + 1)), None);
        assert_eq!(far.joined((0, u64::MAX), (u64::MAX, u64::MAX)), None);
        let endless = StorageCost { latency_ns: u64::MAX, nbytes_per_s: u64::MAX, ..far };
        assert_eq!(endless.gap_nbytes(), MOST_GAP_NBYTES);
    }
}
