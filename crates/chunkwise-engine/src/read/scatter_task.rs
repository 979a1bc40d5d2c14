//! How are the elements of one task scattered into the result: from a decoded chunk, or as the
//! fill value?

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use chunkwise_codec::DecodeError;

use crate::profile::{Phase, TIMED_NBYTES, timed};
use crate::read::decode::StoredChunk;
use crate::read::reading::Reading;
use crate::read::scatter::fill_run;
use crate::read::view::TaskView;
use crate::{LostChunk, ReadError};

impl Reading<'_> {
    /// Go on without a chunk that gave this error, where that is wanted: its elements are
    /// filled, and it is listed.
    pub(crate) fn lose(&self, view: &mut TaskView<'_>, error: ReadError) -> Result<(), ReadError> {
        // What only libhdf5 makes sense of is not lost.
        let for_libhdf5 =
            matches!(error, ReadError::Decode { source: DecodeError::Unsupported { .. }, .. });
        let of_the_chunk = matches!(
            error,
            ReadError::Decode { .. }
                | ReadError::Short { .. }
                | ReadError::TruncatedChunk { .. }
                | ReadError::Truncated { .. }
                | ReadError::Io { .. }
        );
        let Some(lost) =
            self.once.and_then(|once| once.lost).filter(|_| of_the_chunk && !for_libhdf5)
        else {
            return Err(error);
        };
        let zeros = vec![0; self.dataset.info.element_size];
        let fill = self.fill_value().unwrap_or_else(|| self.of_result(&zeros));
        fill_all(view, &fill);
        self.list_lost(&view.task().chunk_index(), lost, error);
        Ok(())
    }

    /// Go on with a chunk of which some elements are missing, where that is wanted: these are
    /// filled in `decoded`, and it is listed; whether it was done.
    pub(crate) fn lose_some(
        &self,
        chunk: &StoredChunk,
        error: &ReadError,
        decoded: &mut [u8],
    ) -> bool {
        let (ReadError::Short { lacking, .. }, Some(lost)) =
            (error, self.once.and_then(|once| once.lost))
        else {
            return false;
        };
        let info = &self.dataset.info;
        let held = lacking.nbytes as usize / info.element_size * info.element_size;
        let missing = decoded.get_mut(held..).unwrap_or_default();
        match &info.fill {
            Some(fill) => fill_run(missing, fill),
            None => missing.fill(0),
        }
        self.list_lost(&chunk.chunk_index, lost, error.clone());
        true
    }

    fn list_lost(&self, chunk_index: &[u64], lost: &Mutex<Vec<LostChunk>>, error: ReadError) {
        let chunk_origin = self.dataset.grid.origin(chunk_index);
        lost.lock().unwrap_or_else(PoisonError::into_inner).push(LostChunk { chunk_origin, error });
    }

    /// Set the task's elements to the fill value, if there is one.
    pub(crate) fn fill(&self, view: &mut TaskView<'_>) {
        if let Some(fill) = self.fill_value() {
            timed(Phase::Scatter, || fill_all(view, &fill));
        }
    }

    /// The fill value of an element of the result, if there is one.
    pub(crate) fn fill_value(&self) -> Option<Cow<'_, [u8]>> {
        self.dataset.info.fill.as_deref().map(|fill| self.of_result(fill))
    }

    /// What of an element is in the result.
    fn of_result<'e>(&self, element: &'e [u8]) -> Cow<'e, [u8]> {
        match self.fields {
            None => Cow::Borrowed(element),
            Some(fields) => Cow::Owned(fields.of_element(element)),
        }
    }

    /// Copy the task's elements out of its decoded chunk.
    pub(crate) fn copy(&self, view: &mut TaskView<'_>, chunk: &[u8]) {
        let size = self.dataset.info.element_size;
        let nbytes = view.task().selected_elements() * (size as u64);
        let mut copy_strips = || {
            view.for_each_strip(|mut strip| {
                let copied = match self.fields {
                    None => strip.copy(chunk),
                    Some(fields) => fields.copy(chunk, &mut strip, size),
                };
                debug_assert!(copied.is_some(), "a plan's strips lie within chunk and result");
            });
        };
        if nbytes < TIMED_NBYTES {
            copy_strips();
        } else {
            timed(Phase::Scatter, copy_strips);
        }
    }
}

/// Set a task's elements to `fill`, one element's bytes.
fn fill_all(view: &mut TaskView<'_>, fill: &[u8]) {
    view.for_each_strip(|mut strip| {
        let filled = strip.fill(fill);
        debug_assert!(filled.is_some(), "a plan's strips lie within the result");
    });
}
