//! How are a program's selections said shortly?
//!
//! A program that reads a million rows in order has made one walk.  A run is a sequence of equal
//! boxes, each where the one before leads: to the next box of the dataset in row-major order, or
//! by the same distance as before.

use std::fmt::Write as _;

use chunkwise_select::{Axis, Dims, Hyperslab};

/// This many runs are kept of one dataset; what comes then is counted.
const MOST_RUNS: usize = 10_000;

/// What a program has selected of one dataset, in order.
#[derive(Debug, Default)]
pub struct Walked {
    runs: Vec<Run>,
    /// Selections that are no regular hyperslabs, and those beyond the most runs.
    unlisted: u64,
}

/// A box, and how it was moved.
#[derive(Debug)]
struct Run {
    first: Hyperslab,
    /// Where the last one begins; it is like the first otherwise.
    last: Dims,
    times: u64,
    /// From each to the next, modulo 2^64: a step back has its highest bit; None where that is not the
    /// same.
    by: Option<Dims>,
    /// Whether each is the next in row-major order.
    in_order: bool,
    span: Span,
}

/// When calls were made, in seconds since the first that was traced, and how long they took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    pub began: f64,
    pub ended: f64,
    pub within: f64,
}

impl Span {
    /// Both, and what was between them.
    fn and(self, later: Span) -> Span {
        let (began, ended) = (self.began.min(later.began), self.ended.max(later.ended));
        Span { began, ended, within: self.within + later.within }
    }
}

impl Walked {
    /// Note a selection of a dataset of `shape`; None for one that is no hyperslab.
    pub fn note(&mut self, shape: &[u64], slab: Option<&Hyperslab>, span: Span) {
        let Some(slab) = slab else {
            self.unlisted += 1;
            return;
        };
        if self.runs.last_mut().is_some_and(|run| run.takes(shape, slab, span)) {
            return;
        }
        if self.runs.len() == MOST_RUNS {
            self.unlisted += 1;
            return;
        }
        let last = slab.axes().iter().map(Axis::start).collect();
        self.runs.push(Run { first: slab.clone(), last, times: 1, by: None, in_order: true, span });
    }

    /// As JSON: a list of runs, and how many selections are in none.
    pub fn json(&self) -> String {
        let mut text = String::from("\"runs\": [");
        for (i, run) in self.runs.iter().enumerate() {
            let axis =
                |a: &Axis| format!("[{}, {}, {}, {}]", a.start(), a.stride(), a.count(), a.block());
            let first: Vec<_> = run.first.axes().iter().map(axis).collect();
            let steps = |by: &Dims| by.iter().map(|&step| step as i64).collect::<Vec<_>>();
            let by = run.by.as_ref().map(|by| format!("{:?}", steps(by)));
            let comma = if i > 0 { ", " } else { "" };
            let _ = write!(
                text,
                "{comma}{{\"first\": [{}], \"last\": {:?}, \"times\": {}, \"by\": {}, \
                 \"in_order\": {}, \"began\": {:e}, \"ended\": {:e}, \"seconds\": {:e}}}",
                first.join(", "),
                run.last.as_slice(),
                run.times,
                by.as_deref().unwrap_or("null"),
                run.in_order && run.times > 1,
                run.span.began,
                run.span.ended,
                run.span.within,
            );
        }
        let _ = write!(text, "], \"unlisted\": {}", self.unlisted);
        text
    }
}

impl Run {
    /// Go on with `slab`, if it is what comes next.
    fn takes(&mut self, shape: &[u64], slab: &Hyperslab, span: Span) -> bool {
        let form = |a: &Axis| (a.stride(), a.count(), a.block());
        let (first, now) = (self.first.axes(), slab.axes());
        if first.len() != now.len() || first.iter().zip(now).any(|(a, b)| form(a) != form(b)) {
            return false;
        }
        let steps =
            || now.iter().zip(&self.last).map(|(now, &last)| now.start().wrapping_sub(last));
        let in_order = self.in_order && is_next(shape, &self.last, now);
        let same =
            self.times == 1 || self.by.as_ref().is_some_and(|by| steps().eq(by.iter().copied()));
        if !in_order && !same {
            return false;
        }
        if self.times == 1 {
            self.by = Some(steps().collect());
        } else if !same {
            self.by = None;
        }
        self.in_order = in_order;
        for (last, axis) in self.last.iter_mut().zip(now) {
            *last = axis.start();
        }
        self.times += 1;
        self.span = self.span.and(span);
        true
    }
}

/// Whether a box is the next one in row-major order after its like that begins at `last`.
fn is_next(shape: &[u64], last: &[u64], now: &[Axis]) -> bool {
    let mut is_moved = false;
    for ((axis, &last), &size) in now.iter().zip(last).zip(shape).rev() {
        let next = match is_moved {
            true => last,
            false => {
                let Some(end) = axis.len().checked_sub(1) else { return false };
                // Without a division where there are no gaps.
                let span = match axis.is_contiguous() {
                    true => axis.len(),
                    false => axis.index_of(end) + 1 - axis.start(),
                };
                is_moved = span.saturating_mul(2).saturating_add(last) <= size;
                if is_moved { last + span } else { 0 }
            }
        };
        if axis.start() != next {
            return false;
        }
    }
    is_moved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slab(starts: &[u64], lens: &[u64]) -> Hyperslab {
        let axes = starts.iter().zip(lens).map(|(&start, &len)| Axis::range(start, len));
        Hyperslab::from_axes(axes.collect())
    }

    fn json(shape: &[u64], slabs: &[Hyperslab]) -> String {
        let mut walked = Walked::default();
        for (slab, at) in slabs.iter().zip(0_u8..) {
            let began = f64::from(at);
            walked.note(shape, Some(slab), Span { began, ended: began + 0.5, within: 0.25 });
        }
        walked.json()
    }

    #[test]
    fn a_walk_over_all_rows_is_one_run() {
        let rows = (0..12).map(|i| slab(&[i / 4, i % 4, 0], &[1, 1, 9]));
        let text = json(&[3, 4, 9], &rows.collect::<Vec<_>>());
        assert_eq!(
            text,
            "\"runs\": [{\"first\": [[0, 1, 1, 1], [0, 1, 1, 1], [0, 9, 1, 9]], \
             \"last\": [2, 3, 0], \"times\": 12, \"by\": null, \"in_order\": true, \
             \"began\": 0e0, \"ended\": 1.15e1, \"seconds\": 3e0}], \"unlisted\": 0"
        );
    }

    #[test]
    fn columns_are_moved_by_the_same_distance() {
        let columns: Vec<_> = (0..5).map(|i| slab(&[0, 7 * i], &[10, 1])).collect();
        let text = json(&[10, 40], &columns);
        assert!(text.contains("\"last\": [0, 28], \"times\": 5, \"by\": [0, 7]"), "{text}");
        assert!(text.contains("\"in_order\": false"), "{text}");
    }

    #[test]
    fn what_does_not_go_on_begins_a_run() {
        let slabs = [slab(&[0], &[2]), slab(&[2], &[2]), slab(&[2], &[2]), slab(&[0], &[3])];
        let text = json(&[9], &slabs);
        assert_eq!(text.matches("first").count(), 3, "{text}");
    }

    #[test]
    fn what_is_no_hyperslab_is_counted() {
        let mut walked = Walked::default();
        walked.note(&[3], None, Span::default());
        assert_eq!(walked.json(), "\"runs\": [], \"unlisted\": 1");
    }
}
