//! Which bytes of a stream came before, so that LZF and BloscLZ need not store them again?
//!
//! A table tells where the four bytes at hand came last; nothing but that one place is tried.
//! The longer nothing is found, the more bytes are passed over at once.

/// What can be stored as a repeat.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes that a repeat may reach back.
    pub(crate) distance: usize,
    /// Bytes that it may have at most.
    pub(crate) len: usize,
    /// And at least, beyond so far back.
    pub(crate) far: (usize, usize),
    /// A repeat never covers this many bytes at the end.
    pub(crate) tail: usize,
}

/// A stream that is written: runs of bytes as they are, each behind their number less one,
/// and repeats.
#[derive(Debug)]
pub(crate) struct Stream<'a> {
    out: &'a mut [u8],
    len: usize,
}

impl Stream<'_> {
    /// Write `bytes`; None where there is no room.
    #[inline(always)]
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Option<()> {
        self.out.get_mut(self.len..self.len + bytes.len())?.copy_from_slice(bytes);
        self.len += bytes.len();
        Some(())
    }

    fn literal(&mut self, bytes: &[u8]) -> Option<()> {
        const LONGEST: usize = 32;
        bytes.chunks(LONGEST).try_for_each(|run| {
            self.put(&[run.len() as u8 - 1])?;
            self.put(run)
        })
    }
}

/// Fewer are not looked for.
const LEAST: usize = 4;
const TABLE_BITS: u32 = 14;
/// A step grows by one for each stretch of this many bytes (a power of two of them) without a repeat.
const PATIENCE: u32 = 6;

/// Where bytes came last, for one stream after the other.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    table: Vec<u32>,
}

impl Repeats {
    /// Write `source` to `out`, with `repeat` for this many bytes from so far back; the bytes
    /// written, or None where there is no room for them.
    pub(crate) fn compress(
        &mut self,
        source: &[u8],
        limits: Limits,
        out: &mut [u8],
        repeat: impl Fn(&mut Stream<'_>, usize, usize) -> Option<()>,
    ) -> Option<usize> {
        let mut stream = Stream { out, len: 0 };
        self.table.clear();
        self.table.resize(1 << TABLE_BITS, 0);
        let table: &mut [u32; 1 << TABLE_BITS] = self.table.as_mut_slice().try_into().ok()?;
        u32::try_from(source.len()).ok()?;
        let end = source.len().saturating_sub(limits.tail);
        // What comes first is found by the table's zeros.
        let (mut at, mut done, mut misses) = (1, 0, 0u32);
        while let Some(&four) = source[..end].get(at..).and_then(|rest| rest.first_chunk()) {
            let place = &mut table[slot(four)];
            let from = *place as usize;
            *place = at as u32;
            let distance = at - from;
            if distance > limits.distance || !source[from..].starts_with(&four) {
                at += 1 + (misses >> PATIENCE) as usize;
                misses += 1;
                continue;
            }
            let most = limits.len.min(end - at);
            let len = LEAST + common(&source[from + LEAST..], &source[at + LEAST..at + most]);
            if distance > limits.far.0 && len < limits.far.1 {
                at += 1;
                continue;
            }
            if done < at {
                stream.literal(&source[done..at])?;
            }
            repeat(&mut stream, distance, len)?;
            misses = 0;
            // The table learns of the repeat's end, and of no more.
            for near in [at + len - 2, at + len - 1] {
                if let Some(&four) = source[near..].first_chunk() {
                    table[slot(four)] = near as u32;
                }
            }
            at += len;
            done = at;
        }
        if done < source.len() {
            stream.literal(&source[done..])?;
        }
        Some(stream.len)
    }
}

/// The place of four bytes in the table.
#[inline(always)]
fn slot(four: [u8; LEAST]) -> usize {
    (u32::from_le_bytes(four).wrapping_mul(2_654_435_761) >> (32 - TABLE_BITS)) as usize
}

/// Bytes that both begin with.
#[inline(always)]
fn common(one: &[u8], two: &[u8]) -> usize {
    let mut len = 0;
    for (a, b) in one.as_chunks::<8>().0.iter().zip(two.as_chunks::<8>().0) {
        let different = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if different != 0 {
            return len + (different.trailing_zeros() / 8) as usize;
        }
        len += 8;
    }
    len + one[len..].iter().zip(&two[len..]).take_while(|(a, b)| a == b).count()
}

/// Copy `len` bytes at `from` to `at`, which may be among them: then they repeat.
pub(crate) fn repeat(out: &mut [u8], from: usize, at: usize, len: usize) {
    let distance = at - from;
    if distance >= len {
        out.copy_within(from..from + len, at);
    } else if distance == 1 {
        let byte = out[from];
        out[at..at + len].fill(byte);
    } else {
        // Each copy doubles what may be copied at once.
        let mut done = 0;
        while done < len {
            let step = (distance + done).min(len - done);
            out.copy_within(from..from + step, at + done);
            done += step;
        }
    }
}
